"""What goes wrong is one sentence on stderr and an exit code, never a traceback."""

import subprocess
import sys
from pathlib import Path

import pytest
from processes import ran

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


def test_a_table_without_text_columns(fail, small_index, tmp_path):
    path = tmp_path / "numbers.csv"
    path.write_text("a,b\n1,2\n3,4\n", encoding="utf-8")
    said = fail(2, "search", small_index, path)
    assert said == (
        f"Error: '{path}' has no column of text or dates to search with. Name a column: "
        f"{path}:COLUMN, one of a, b.\n"
    )
    assert "has no column of text or dates" in fail(2, "search", small_index, path, "--all-columns")


def test_errors_of_the_library_end_with_one(fail, small_index, monkeypatch):
    def missing(store):
        raise MissingPackageError("It needs the package x.")

    monkeypatch.setattr(pexeso.build.diagnostics.info, "index_info", missing)
    assert fail(1, "info", small_index) == "Error: It needs the package x.\n"


def test_what_was_not_foreseen_is_still_one_sentence(fail, small_index, monkeypatch):
    def broken(store):
        raise RuntimeError("two\nlines")

    monkeypatch.setattr(pexeso.build.diagnostics.info, "index_info", broken)
    assert fail(1, "info", small_index) == (
        "Error: RuntimeError: two lines. This was not foreseen; set PEXESO_DEBUG=1 and run again "
        "to see where it happened.\n"
    )


def test_a_traceback_is_shown_when_asked_for(run, small_index, monkeypatch):
    def broken(store):
        raise RuntimeError("oh")

    monkeypatch.setattr(pexeso.build.diagnostics.info, "index_info", broken)
    monkeypatch.setenv("PEXESO_DEBUG", "1")
    said = run("info", small_index).stderr
    assert said.startswith("Traceback")
    assert said.splitlines()[-1].startswith("Error: RuntimeError: oh.")


def test_too_little_memory(fail, small_index, monkeypatch):
    def full(store):
        raise MemoryError

    monkeypatch.setattr(pexeso.build.diagnostics.info, "index_info", full)
    assert fail(1, "info", small_index).startswith("Error: There is not enough memory for this.")


def test_ctrl_c(run, small_index, places, monkeypatch):
    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(pexeso.faces.service.bases, "read_query", interrupted)
    result = run("search", small_index, f"{places}:place", "--max-distance", "0.1")
    assert result.exit_code == 130
    assert (
        result.stderr
        == f"\nInterrupted. Run again: pexeso search {small_index} {places}:place --max-distance "
        "0.1\n"
    )


def test_a_query_error_is_a_misuse(fail, small_index, places, monkeypatch):
    def wrong(*arguments, **options):
        raise QueryError("It is wrong.")

    monkeypatch.setattr(pexeso.faces.service.bases, "read_query", wrong)
    assert fail(2, "search", small_index, f"{places}:place") == "Error: It is wrong.\n"


def fresh(*arguments: str, code: str = "") -> subprocess.CompletedProcess:
    """Run the command line, or a program, in a process of its own."""
    command = [sys.executable, "-c", code] if code else [sys.executable, "-m", "pexeso", *arguments]
    return ran(command, cwd=ROOT)


def test_as_a_module_and_its_version():
    done = fresh("--version")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"pexeso {pexeso.__version__}")


def test_help_loads_neither_torch_nor_spark():
    code = (
        "import sys\nfrom pexeso.faces.cli.main import main\ntry:\n    main(['search', "
        "'-h'])\nexcept "
        "SystemExit:\n"
        "    print(*[name for name in ('torch', 'pyspark', 'pandas', 'fasttext', 'sklearn', "
        "'tqdm') if name in sys.modules], file=sys.stderr)"
    )
    done = fresh(code=code)
    assert done.stdout.startswith("Usage: pexeso search [OPTIONS] INDEX FILE:COLUMN")
    assert done.stderr == "\n"


@pytest.mark.parametrize("command", ["rules", "search -h", "--version"])
def test_the_code_of_a_closed_pipe_is_that_of_its_signal(command):
    pipeline = f'{sys.executable} -m pexeso {command} | sleep 0; echo "${{PIPESTATUS[0]}}"'
    done = ran(["bash", "-c", pipeline], cwd=ROOT)
    assert (done.stdout, done.stderr) == ("141\n", "")


def test_a_name_that_is_no_utf_8_is_shown_all_the_same():
    command = [sys.executable.encode(), b"-m", b"pexeso", b"info", b"n\xffne"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith(b"Error: There is no index at 'n")
    assert len(done.stderr.splitlines()) == 1
