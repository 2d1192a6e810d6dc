"""What systems lack: one module knows, and the core gives the same answers without it."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from processes import ran

from pexeso.runtime import system

ROOT = Path(__file__).resolve().parent.parent.parent
TESTS = ROOT / "tests"

PORTABLE_FLAGS = {"O_RDONLY", "O_WRONLY", "O_RDWR", "O_CREAT", "O_EXCL", "O_APPEND", "O_TRUNC"}
OF_SYSTEM = {"fcntl", "grp", "pwd", "resource", "termios"}
PORTABLE_SIGNALS = {"SIGINT", "SIGTERM", "SIG_DFL", "SIG_IGN", "Signals"}
NAMES = {
    "os": {
        "fork",
        "forkpty",
        "geteuid",
        "getuid",
        "kill",
        "killpg",
        "link",
        "mkfifo",
        "nice",
        "posix_fadvise",
        "posix_fallocate",
        "register_at_fork",
        "sched_getaffinity",
        "statvfs",
    },
    "signal": {"alarm", "setitimer"},
}
WORDS = OF_SYSTEM.union(*NAMES.values(), ["os.O_", "signal.SIG"])
"""One of these is in the text of a module that names what systems lack."""


def test_one_module_knows_what_systems_lack():
    named = set()
    for package in ("embed", "partition", "pexeso"):
        for path in (ROOT / package).rglob("*.py"):
            name, text = path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")
            if name != "pexeso/runtime/system.py" and any(word in text for word in WORDS):
                tree = ast.parse(text)
                named |= {(name, what) for node in ast.walk(tree) for what in missing_in(node)}
    assert named == set()


def missing_in(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names if alias.name in OF_SYSTEM]
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        module, name = node.value.id, node.attr
        is_flag = module == "os" and name.startswith("O_") and name not in PORTABLE_FLAGS
        is_signal = module == "signal" and name.startswith("SIG") and name not in PORTABLE_SIGNALS
        if is_flag or is_signal or name in NAMES.get(module, ()):
            return [f"{module}.{name}"]
    return []


@pytest.mark.long
def test_every_golden_answer_is_given_without_it(tmp_path):
    program = """
import without_unix
import json, sys
sys.modules.update(dict.fromkeys(("pyspark", "scipy", "sklearn", "torch")))
from pathlib import Path
import test_cli_golden_answers as golden

golden.set_out(Path(sys.argv[1]))
kept = json.loads(golden.GOLDEN.read_text(encoding="utf-8"))
wrong = [name for name, command in golden.COMMANDS.items() if golden.answer(command) != kept[name]]
print(json.dumps(wrong))
"""
    assert json.loads(run_without(["-c", program, str(tmp_path / "demo")])) == []


@pytest.mark.slow
def test_what_is_done_instead_holds():
    checks = Path(__file__).with_name("without_unix_checks.py")
    shown = run_without(["-m", "pytest", "-q", "-p", "without_unix", str(checks)])
    assert " passed" in shown
    assert "skipped" not in shown


def run_without(arguments: list[str]) -> str:
    """Run Python with the folders of the tests on its path, and return what it prints."""
    folders = [
        ROOT,
        TESTS,
        TESTS / "faces" / "cli",
        *os.environ.get("PYTHONPATH", "").split(os.pathsep),
    ]
    done = ran(
        [sys.executable, *arguments],
        cwd=ROOT,
        variables={"PYTHONPATH": os.pathsep.join(map(str, folders))},
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_writer_of_an_open_file_is_known(tmp_path):
    path = tmp_path / "table.csv"
    path.write_bytes(b"a")
    reading = os.open(path, os.O_RDONLY)
    try:
        with open(path, "ab"):
            assert system.has_writer(reading) in (True, None)
        assert system.has_writer(reading) in (False, None)
    finally:
        os.close(reading)


@pytest.mark.skipif(not system.HAS_FOLDER_STEPS, reason="it follows no path step by step")
def test_a_step_that_is_a_link_is_not_opened(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    above = system.open_folder(tmp_path)
    try:
        for open_it in (system.open_step, system.open_folder):
            os.close(open_it("real", dir_fd=above))
            with pytest.raises(OSError, match=r"Not a directory|Too many levels"):
                open_it("link", dir_fd=above)
    finally:
        os.close(above)


def test_no_file_is_opened_through_a_link(tmp_path):
    (tmp_path / "file").write_text("a")
    (tmp_path / "link").symlink_to("file")
    os.close(system.open_unlinked(tmp_path / "file", os.O_RDONLY))
    with pytest.raises(OSError, match="Too many levels"):
        system.open_unlinked(tmp_path / "link", os.O_RDONLY)


def test_a_process_that_ended_does_not_run():
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    assert system.is_running(os.getpid())
    assert not system.is_running(ended.pid)
