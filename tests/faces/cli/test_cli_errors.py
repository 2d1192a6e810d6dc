"""What goes wrong is one sentence on stderr and an exit code, never a traceback."""

import sys
from pathlib import Path

import pytest
from processes import ran, ran_pexeso

import pexeso.build.diagnostics.info
import pexeso.faces.service.bases
from pexeso.errors import MissingPackageError, QueryError

ROOT = Path(__file__).resolve().parents[3]


def test_a_file_that_is_not_there(fail, small_index, tmp_path):
    missing = tmp_path / "none.csv"
    said = fail(1, "search", small_index, f"{missing}:place")
    assert said == f"Error: {missing} cannot be read: No such file or directory.\n"


def test_an_index_that_is_not_there(fail, tmp_path, places):
    said = fail(1, "search", tmp_path / "none", f"{places}:place")
    assert (
        said
        == f"Error: There is no index at '{tmp_path / 'none'}': no such folder. Build one with "
        "'pexeso index'.\n"
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--max-distance", "1.5"], "--max-distance must be a number in [0, 1]. Got 1.5 instead."),
        (["--max-distance", "nan"], "--max-distance must be a number in [0, 1]. Got nan instead."),
        (
            ["--min-joinability", "0"],
            "--min-joinability must be a number in (0, 1]. Got 0.0 instead.",
        ),
        (["-k", "0"], "'0' is neither 'all' nor a whole number of at least 1."),
        (["--memory-budget", "lots"], "A size must be a number with a unit"),
        (
            ["--device", "tpu"],
            "The device must be one of auto, cpu, cuda or cuda:NUMBER. Got 'tpu' instead.",
        ),
        (["--pairs", "0"], "'0' is neither 'all' nor a whole number of at least 1."),
        (["--pairs", "few"], "'few' is neither 'all' nor a whole number of at least 1."),
    ],
)
def test_options_out_of_range(fail, small_index, places, arguments, words):
    assert words in fail(2, "search", small_index, f"{places}:place", *arguments)


def test_a_table_without_text_columns(fail, small_index, write):
    path = write("numbers.csv", "a,b\n1,2\n3,4\n")
    said = fail(2, "search", small_index, path)
    assert said == (
        f"Error: '{path}' has no column of text or dates to search with. Name a column: "
        f"{path}:COLUMN, one of a, b.\n"
    )
    assert "has no column of text or dates" in fail(2, "search", small_index, path, "--all-columns")


def raising(error):
    def fail(*arguments, **options):
        raise error

    return fail


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (MissingPackageError("It needs the package x."), "Error: It needs the package x.\n"),
        (
            RuntimeError("two\nlines"),
            "Error: RuntimeError: two lines. This was not foreseen; set PEXESO_DEBUG=1 and run "
            "again to see where it happened.\n",
        ),
        (MemoryError(), "Error: There is not enough memory for this."),
    ],
)
def test_what_was_not_foreseen_is_still_one_sentence(fail, small_index, monkeypatch, error, said):
    monkeypatch.setattr(pexeso.build.diagnostics.info, "index_info", raising(error))
    assert fail(1, "info", small_index).startswith(said)
    assert fail(1, "info", small_index).count("\n") == 1


def test_a_traceback_is_shown_when_asked_for(run, small_index, monkeypatch):
    monkeypatch.setattr(pexeso.build.diagnostics.info, "index_info", raising(RuntimeError("oh")))
    monkeypatch.setenv("PEXESO_DEBUG", "1")
    said = run("info", small_index, code=1).stderr
    assert said.startswith("Traceback")
    assert said.splitlines()[-1].startswith("Error: RuntimeError: oh.")


@pytest.mark.parametrize(
    ("code", "error", "said"),
    [
        (
            130,
            KeyboardInterrupt(),
            "\nInterrupted. Run again: pexeso search {} {}:place --max-distance 0.1\n",
        ),
        (2, QueryError("It is wrong."), "Error: It is wrong.\n"),
    ],
)
def test_ctrl_c_and_misuse(fail, small_index, places, monkeypatch, code, error, said):
    monkeypatch.setattr(pexeso.faces.service.bases, "read_query", raising(error))
    shown = fail(code, "search", small_index, f"{places}:place", "--max-distance", "0.1")
    assert shown == said.format(small_index, places)


def test_as_a_module_and_its_version():
    done = ran_pexeso("--version", cwd=ROOT)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"pexeso {pexeso.__version__}")


def test_help_loads_neither_torch_nor_spark():
    code = """
import sys
from pexeso.faces.cli.main import main
try:
    main(["search", "-h"])
except SystemExit:
    heavy = ("torch", "pyspark", "pandas", "fasttext", "sklearn", "tqdm")
    print(*[name for name in heavy if name in sys.modules], file=sys.stderr)
"""
    done = ran([sys.executable, "-c", code], cwd=ROOT)
    assert done.stdout.startswith("Usage: pexeso search [OPTIONS] INDEX FILE:COLUMN")
    assert done.stderr == "\n"


@pytest.mark.parametrize("command", ["rules", "search -h", "--version"])
def test_the_code_of_a_closed_pipe_is_that_of_its_signal(command):
    pipeline = f'{sys.executable} -m pexeso {command} | sleep 0; echo "${{PIPESTATUS[0]}}"'
    done = ran(["bash", "-c", pipeline], cwd=ROOT)
    assert (done.stdout, done.stderr) == ("141\n", "")


def test_a_name_that_is_no_utf_8_is_shown_all_the_same():
    command = [sys.executable.encode(), b"-m", b"pexeso", b"info", b"n\xffne"]
    done = ran(command, cwd=ROOT, text=False)
    assert done.returncode == 1
    assert done.stderr.startswith(b"Error: There is no index at 'n")
    assert len(done.stderr.splitlines()) == 1
