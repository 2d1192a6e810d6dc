"""Tests of the project's files: no path of one machine, nothing unsafe, one idea per module."""

import ast
import re
from pathlib import Path

import pytest
from tracked_files import ROOT, tracked_files

PRODUCT = sorted(
    path for package in ("embed", "partition", "pexeso") for path in (ROOT / package).rglob("*.py")
)
MAX_LINES = 600
MORE_LINES = {"pexeso/index.py": 1080}
"""The objects that users hold.

A third of it is code, the rest says what its methods take and give.
"""

# Put together here, so that this file is none of those that hold them.
MACHINE_PATHS = ["/" + start + "/" for start in ("work", "root", "Users", "tmp/lakes", "home/user")]
UNSAFE_MODULES = {"pickle", "cPickle", "cloudpickle", "dill", "marshal", "shelve"}
PICKLER = "imports multiprocessing.reduction"
UNSAFE_CALLS = {"eval", "exec", "compile", "__import__", "os.system", "os.popen"}


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def unsafe(tree: ast.Module) -> list[str]:
    """Return code of a module that could run outside input or vanishes under `python -O`.

    Outside input is what a file or a user says.
    """
    reasons = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = (
                [alias.name for alias in node.names]
                if isinstance(node, ast.Import)
                else [node.module]
            )
            reasons += [
                f"imports {name}"
                for name in names
                if name.partition(".")[0] in UNSAFE_MODULES or name == "multiprocessing.reduction"
            ]
        elif isinstance(node, ast.Assert):
            reasons.append(f"line {node.lineno}: asserts")
        elif isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            keywords = {keyword.arg: ast.unparse(keyword.value) for keyword in node.keywords}
            if called in UNSAFE_CALLS:
                reasons.append(f"line {node.lineno}: calls {called}")
            if (
                keywords.get("shell", "False") != "False"
                or keywords.get("allow_pickle", "False") != "False"
            ):
                reasons.append(f"line {node.lineno}: {ast.unparse(node)}")
            if called.endswith("torch.load") and keywords.get("weights_only") != "True":
                reasons.append(f"line {node.lineno}: torch.load without weights_only=True")
    return reasons


def test_no_file_names_a_path_of_one_machine():
    hits = []
    for path in tracked_files():
        content = path.read_bytes()
        hits += [f"{relative(path)}: {text}" for text in MACHINE_PATHS if text.encode() in content]
    assert hits == []


@pytest.fixture(scope="module")
def product() -> dict[str, str]:
    """Every module of the product: its path and its text."""
    texts = {relative(path): path.read_text(encoding="utf-8") for path in PRODUCT}
    assert len(texts) > 100, "the modules were not found"
    return texts


def test_every_module_is_safe(product):
    reasons_by_path = {path: unsafe(ast.parse(text)) for path, text in product.items()}
    # A build sends tasks to processes that it has started, over pipes that no one else has.
    assert {path: reasons for path, reasons in reasons_by_path.items() if reasons} == {
        "pexeso/build/workers.py": [PICKLER]
    }


def test_every_module_has_a_docstring(product):
    assert [path for path, text in product.items() if not ast.get_docstring(ast.parse(text))] == []


def test_no_module_is_too_long(product):
    assert {
        path: n
        for path, text in product.items()
        if (n := len(text.splitlines())) > MORE_LINES.get(path, MAX_LINES)
    } == {}


def test_modules_that_a_package_lists_are_there(product):
    listed = [
        (path, name)
        for path, text in product.items()
        if path.endswith("/__init__.py")
        for name in re.findall(
            r"^`(\w+)` {2,}\S", ast.get_docstring(ast.parse(text)) or "", re.MULTILINE
        )
    ]
    assert listed, "no list was found"
    assert [
        (path, name) for path, name in listed if path.replace("__init__", name) not in product
    ] == []


@pytest.mark.parametrize(
    "program",
    [
        "import pickle", "from pickle import loads",
        "from multiprocessing.reduction import ForkingPickler", "def f():\n    eval('1')",
        "subprocess.run('ls', shell=True)", "np.load(path, allow_pickle=True)", "torch.load(path)",
        "assert x",
    ],
)  # fmt: skip
def test_what_is_unsafe_is_found(program):
    assert unsafe(ast.parse(program))


def cannot_fail(tree: ast.Module) -> list[str]:
    """Return the asserts of a module that hold whatever the program does."""
    asserts = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Assert):
            continue
        test, text = node.test, ast.unparse(node.test)
        parts = (
            test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or) else [test]
        )
        parts += [test.body, test.orelse] if isinstance(test, ast.IfExp) else []
        always = any(isinstance(part, ast.Constant | ast.JoinedStr | ast.Tuple) for part in parts)
        is_time = re.search(r"second|_ms\b|elapsed", text) and re.search(r">= 0(\.0)?$", text)
        same = isinstance(test, ast.Compare) and [ast.unparse(test.left)] == list(
            map(ast.unparse, test.comparators)
        )
        has_call = any(isinstance(part, ast.Call) for part in ast.walk(test))
        if always or is_time or (same and not has_call):
            asserts.append(f"line {node.lineno}: {text}")
    return asserts


def test_every_assert_of_the_tests_can_fail():
    paths = sorted((ROOT / "tests").rglob("*.py"))
    assert len(paths) > 100
    asserts_by_path = {
        relative(path): cannot_fail(ast.parse(path.read_text(encoding="utf-8"))) for path in paths
    }
    assert {path: asserts for path, asserts in asserts_by_path.items() if asserts} == {}


@pytest.mark.parametrize(
    "program",
    [
        "assert x or True",
        "assert seconds >= 0",
        "assert A == A",
        "assert f'{x}' if y else z in row",
        "assert (x, 'y')",
    ],
)
def test_an_assert_that_cannot_fail_is_found(program):
    assert cannot_fail(ast.parse(program))
