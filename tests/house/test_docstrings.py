"""Docstrings name the parameters that there are."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
FOLDERS = ("pexeso", "embed", "partition", "benchmarks", "examples")
_SECTION = re.compile(r"^Parameters\n-+\n(.*?)(?=^\w[^\n]*\n-+\n|\Z)", re.DOTALL | re.MULTILINE)
_NAMES = re.compile(r"^(\*{0,2}\w+(?:, \*{0,2}\w+)*)(?: :|$)", re.MULTILINE)


def described(docstring: str | None) -> list[str]:
    """Return the names in the section on parameters of a docstring in NumPy style."""
    section = _SECTION.search(docstring or "")
    lines = _NAMES.findall(section[1]) if section else []
    return [name.strip("* ") for line in lines for name in line.split(",")]


def parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    return {node.arg for node in ast.walk(function.args) if isinstance(node, ast.arg)}


def taken_by(node: ast.AST) -> set[str] | None:
    """Return what a function or the constructor of a class takes; None where that is inherited."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return parameters(node)
    if not isinstance(node, ast.ClassDef):
        return None
    constructors = [
        parameters(item)
        for item in node.body
        if isinstance(item, ast.FunctionDef) and item.name in ("__init__", "__new__")
    ]
    fields = {
        item.target.id
        for item in node.body
        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)
    }
    return set().union(fields, *constructors) if fields or constructors else None


def unknown_parameters(source: str) -> list[str]:
    names = []
    for node in ast.walk(ast.parse(source)):
        known = taken_by(node)
        if known is not None:
            names += [name for name in described(ast.get_docstring(node)) if name not in known]
    return names


def test_docstrings_describe_parameters_that_there_are():
    unknown = {
        path.relative_to(ROOT).as_posix(): names
        for folder in FOLDERS
        for path in sorted((ROOT / folder).rglob("*.py"))
        if (names := unknown_parameters(path.read_text(encoding="utf-8")))
    }
    assert unknown == {}


def test_a_parameter_that_is_not_there_is_noticed():
    section = "Parameters\n    ----------\n    rows, columns : int\n    **options\n"
    source = f'def draw(rows, **options):\n    """Draw.\n\n    {section}    """\n'
    assert unknown_parameters(source) == ["columns"]
