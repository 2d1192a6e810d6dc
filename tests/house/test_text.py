"""What stands in the files of the project: no path of one machine, nothing unsafe, one idea a module."""

import ast
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
PRODUCT = sorted(path for package in ("embed", "partition", "pexeso") for path in (ROOT / package).rglob("*.py"))
MAX_LINES = 450

# Put together here, so that this file is none of those that hold them.
MACHINE_PATHS = ["/" + start + "/" for start in ("work", "root", "Users", "tmp/lakes", "home/user")]
UNSAFE_MODULES = {"pickle", "cPickle", "cloudpickle", "dill", "marshal", "shelve"}
UNSAFE_CALLS = {"eval", "exec", "compile", "__import__", "os.system", "os.popen"}


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def tracked_files() -> list[Path]:
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip("not a git checkout, so there is no list of tracked files")
    return [ROOT / name for name in done.stdout.split("\0") if name and (ROOT / name).is_file()]


def unsafe(tree: ast.Module) -> list[str]:
    """Return what in a module could run what a file or a user says, or vanishes under `python -O`."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module]
            found += [f"imports {name}" for name in names if name.partition(".")[0] in UNSAFE_MODULES]
        elif isinstance(node, ast.Assert):
            found.append(f"line {node.lineno}: asserts")
        elif isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            keywords = {keyword.arg: ast.unparse(keyword.value) for keyword in node.keywords}
            if called in UNSAFE_CALLS:
                found.append(f"line {node.lineno}: calls {called}")
            if keywords.get("shell", "False") != "False" or keywords.get("allow_pickle", "False") != "False":
                found.append(f"line {node.lineno}: {ast.unparse(node)}")
            if called.endswith("torch.load") and keywords.get("weights_only") != "True":
                found.append(f"line {node.lineno}: torch.load without weights_only=True")
    return found


def test_no_file_names_a_path_of_one_machine():
    found = []
    for path in tracked_files():
        content = path.read_bytes()
        found += [f"{relative(path)}: {text}" for text in MACHINE_PATHS if text.encode() in content]
    assert found == []


@pytest.mark.parametrize("path", PRODUCT, ids=relative)
def test_a_module_is_safe_documented_and_short(path):
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    assert unsafe(tree) == []
    assert ast.get_docstring(tree), "no docstring"
    assert len(text.splitlines()) <= MAX_LINES


@pytest.mark.parametrize(
    "program",
    [
        "import pickle",
        "from pickle import loads",
        "def f():\n    eval('1')",
        "subprocess.run('ls', shell=True)",
        "np.load(path, allow_pickle=True)",
        "torch.load(path)",
        "assert x",
    ],
)
def test_what_is_unsafe_is_found(program):
    assert unsafe(ast.parse(program))
