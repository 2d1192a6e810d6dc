"""Tests that run everything that README and docs show.

This includes commands with their output, Python with its results, and targets of make.

Blocks of a page run in order, in one folder that holds the examples:

- ``console``: lines ``$ command``, below each what a terminal would show. Where an ``Error:`` is
  shown the command must fail.
- ``python``: lines ``>>> ...`` with their results; all blocks of a page share their names.
- ``KIND file=NAME``: written to that file.
- ``KIND shows=NAME``: the text of that file, which a command before has written.

The commands of README are processes, as a reader starts them, and so is the demo, which builds the
same index as the command of INDEX_COMMAND. That command and those of other pages run in this
process and build on the session that tests share: what takes half a minute then takes a few
seconds.
"""

import doctest
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import chdir
from pathlib import Path

import pytest
from click.testing import CliRunner
from doc_pages import PAGES, ROOT, Block, Step, blocks, make_targets, same_output, steps
from long_runs import long_but

from pexeso.faces.cli.main import cli

PEXESO = Path(sys.executable).parent / "pexeso"
INDEX_COMMAND = "pexeso index examples/lake lake.pexeso"
DEMO_COMMANDS = ("make demo", "pexeso demo")

FOLDER = "/data"
"""What pages call the folder in which their commands run."""

TOOLS = {"cat", "head", "ls"}
KEPT_VARIABLES = ("HOME", "LANG", "TMPDIR", "JAVA_HOME", "LD_LIBRARY_PATH", "PEXESO_TEST_RUN")
LIMIT_SECONDS = 600

FIRST_RUN = "Compiling loops for this machine"
"""What a command says once on each machine; pages show what it says from then on."""

Outcome = tuple[int, str]


def run_here(step: Step, folder: Path, same: tuple[Path, ...] = ()) -> Outcome:
    """Do as `run_command` for a command of pexeso, in this process.

    Its folder must be this one.
    """
    given = None if step.redirected_from is None else (folder / step.redirected_from).read_bytes()
    runner = CliRunner(env={"COLUMNS": "120"})
    result = runner.invoke(cli, step.arguments[1:], input=given, prog_name="pexeso")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    if step.redirected_to is not None:
        (folder / step.redirected_to).write_bytes(result.stdout_bytes)
    shown = result.stderr if step.redirected_to is not None else result.output
    return result.exit_code, with_plain_folders(shown, (folder, *same))


def with_plain_folders(shown: str, folders: tuple[Path, ...]) -> str:
    """Put `FOLDER` in the place of each of these folders."""
    for folder in folders:
        shown = shown.replace(str(folder), FOLDER)
    return shown


def run_command(step: Step, folder: Path, same: tuple[Path, ...] = ()) -> Outcome:
    """Run a command in a folder; return its exit code and what a terminal would show.

    The output has `FOLDER` in place of this folder and the folders in `same`.
    """
    program, *arguments = step.arguments
    if program in ("pexeso", "python"):
        program = str(PEXESO.with_name(program))
    elif program not in TOOLS:
        raise ValueError(
            f"a page may run pexeso, python, make, {', '.join(sorted(TOOLS))}; got {program!r}"
        )
    environment = {name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ}
    environment |= {
        "COLUMNS": "120",
        "PYTHONUTF8": "1",
        "PATH": f"{PEXESO.parent}:{os.environ['PATH']}",
    }
    if step.redirected_from is not None:
        raise ValueError(f"line {step.line}: only commands of pexeso read a file by <")
    target = None if step.redirected_to is None else (folder / step.redirected_to).open("wb")
    try:
        done = subprocess.run(
            [program, *arguments],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=target or subprocess.PIPE,
            stderr=subprocess.PIPE if target else subprocess.STDOUT,
            timeout=LIMIT_SECONDS,
            check=False,
        )
    finally:
        if target:
            target.close()
    shown = (done.stderr if target else done.stdout).decode("utf-8")
    return done.returncode, with_plain_folders(shown, (folder, *same))


@pytest.fixture(scope="session")
def lake_index(
    tmp_path_factory: pytest.TempPathFactory, spark
) -> Callable[[], tuple[Path, Outcome]]:
    """Return a function that builds the index of the demo lake on its first call.

    The function returns the index and the output of the command.
    """
    built: list[tuple[Path, Outcome]] = []

    def build() -> tuple[Path, Outcome]:
        if not built:
            folder = tmp_path_factory.mktemp("docs_index")
            (folder / "examples").symlink_to(ROOT / "examples")
            with chdir(folder):
                outcome = run_here(Step(INDEX_COMMAND, 0, ()), folder)
            built.append((folder / "lake.pexeso", outcome))
        return built[0]

    return build


@pytest.fixture(scope="session")
def demo_once(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Outcome]:
    """Return a function that runs the demo the first time."""
    ran: list[Outcome] = []

    def run() -> Outcome:
        if not ran:
            ran.append(
                run_command(Step("pexeso demo", 0, ()), tmp_path_factory.mktemp("docs_demo"))
            )
        return ran[0]

    return run


class PageRun:
    """One page at work: its folder, the names of its Python blocks, and what was not as shown."""

    def __init__(
        self,
        folder: Path,
        lake_index: Callable[[], tuple[Path, Outcome]],
        demo: Callable[[], Outcome],
        *,
        in_processes: bool,
    ):
        self.folder, self.lake_index, self.demo = folder, lake_index, demo
        self.in_processes = in_processes
        self.names: dict[str, object] = {"__name__": "__main__"}
        self.problems: list[str] = []
        self.same: tuple[Path, ...] = ()
        (folder / "examples").symlink_to(ROOT / "examples")

    def run(self, block: Block) -> None:
        """Run one block."""
        if block.file is not None:
            path = self.folder / block.file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("".join(f"{line}\n" for line in block.lines), encoding="utf-8")
        elif block.shows is not None:
            real = (self.folder / block.shows).read_text(encoding="utf-8").splitlines()
            if list(block.lines) != real:
                self._note(block.line, f"what {block.shows} has", real)
        elif block.kind == "console":
            for step in steps(block):
                self._command(step)
        elif block.kind == "python":
            self._python(block)
        else:
            for line in block.lines:
                if line.split("#")[0].strip() in DEMO_COMMANDS:
                    self._compare(Step("make demo", block.line, ("...",)), *self.demo())

    def _command(self, step: Step) -> None:
        if step.command in DEMO_COMMANDS:
            self._compare(step, *self.demo())
        elif step.command.split()[0] == "make":
            pass  # that the target exists is a test of its own
        elif step.command == INDEX_COMMAND:
            index, outcome = self.lake_index()
            self.same = (index.parent,)  # an index knows the lake it was made from
            if not (self.folder / index.name).exists():
                shutil.copytree(index, self.folder / index.name)
            self._compare(step, *outcome)
        else:
            here = step.command.split()[0] == "pexeso" and not self.in_processes
            self._compare(step, *(run_here if here else run_command)(step, self.folder, self.same))

    def _compare(self, step: Step, code: int, text: str) -> None:
        real = [line for line in text.splitlines() if not line.startswith(FIRST_RUN)]
        if (code != 0) != step.fails:
            self._note(step.line, step.command, [f"(exit code {code})", *real])
        elif not same_output(list(step.shown), real):
            self._note(step.line, step.command, real)

    def _python(self, block: Block) -> None:
        examples = doctest.DocTestParser().get_examples("\n".join(block.lines) + "\n")
        if not examples:
            self._note(block.line, "python", ["(no >>> in this block)"])
        test = doctest.DocTest(examples, self.names, "page", None, block.line, None)
        printed: list[str] = []
        doctest.DocTestRunner(_Checker(), verbose=False).run(
            test, out=printed.append, clear_globs=False
        )
        self.names.update(test.globs)
        if printed:
            self._note(
                block.line,
                "python",
                "".join(printed).replace(str(self.folder), FOLDER).splitlines(),
            )

    def _note(self, line: int, what: str, real: list[str]) -> None:
        self.problems.append("\n".join([f"line {line}: {what}", *(f"    {text}" for text in real)]))


class _Checker(doctest.OutputChecker):
    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        return super().check_output(want, got, optionflags) or same_output(
            want.splitlines(), got.splitlines()
        )


LONG = ("docs/how-to/choose-thresholds.md",)
"""Pages whose commands take half a minute."""


def runs(page: Path) -> bool:
    page_blocks = blocks(page.read_text(encoding="utf-8"))
    return any(
        block.kind in ("console", "python") for block in page_blocks
    ) or "make demo" in page.read_text("utf-8")


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    long_but(
        [page for page in PAGES if page.relative_to(ROOT).as_posix() not in LONG],
        filter(runs, PAGES),
    ),
    ids=lambda page: page.relative_to(ROOT).as_posix(),
)
def test_a_page_shows_what_happens(page, tmp_path, monkeypatch, spark, lake_index, demo_once):
    text = page.read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    run = PageRun(tmp_path, lake_index, demo_once, in_processes=page == ROOT / "README.md")
    for block in blocks(text):
        run.run(block)
    assert not run.problems, "not as shown:\n\n" + "\n\n".join(run.problems)


def named_targets() -> list[str]:
    return sorted(set().union(*(make_targets(page.read_text(encoding="utf-8")) for page in PAGES)))


@pytest.mark.parametrize("target", named_targets())
def test_a_target_that_a_page_names_exists(target):
    if shutil.which("make") is None:
        pytest.skip("there is no make on this machine")
    done = subprocess.run(
        ["make", "-n", target], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_the_first_page_names_the_two_commands():
    assert {"demo", "test"} <= make_targets((ROOT / "README.md").read_text(encoding="utf-8"))
