"""Sources that do the same have the same text; those that may not, another."""

import ast

import pytest

from benchmarks.canonical import canonical_text
from benchmarks.origin import ROOT

SAME = {
    "a variable": ("def f(a):\n b = a\n return b", "def f(a):\n c = a\n return c"),
    "in a lambda": ("k = lambda a, b=2: a + b", "k = lambda x, y=2: x + y"),
    "of a comprehension": ("s = {a: b for a, b in p if a}", "s = {k: v for k, v in p if k}"),
    "two comprehensions": (
        "def f(p):\n return [a for a in p], [a for a in p]",
        "def f(p):\n return [b for b in p], [c for c in p]",
    ),
    "one within another": (
        "s = [[a for a in b] for b in p for c in b]",
        "s = [[x for x in y] for y in p for z in y]",
    ),
    "an outer variable": (
        "def f():\n a = 1\n def g():\n  nonlocal a\n  a += 1\n return g, a",
        "def f():\n b = 1\n def g():\n  nonlocal b\n  b += 1\n return g, b",
    ),
    "a private parameter": ("def _f(a, *b, **c): g(a, b, c)", "def _f(x, *y, **z): g(x, y, z)"),
    "an inner parameter": (
        "def f():\n def g(a): return a\n return g",
        "def f():\n def g(b): return b\n return g",
    ),
    "an error": (
        "def f():\n try: g()\n except E as a: h(a)",
        "def f():\n try: g()\n except E as b: h(b)",
    ),
    "a pattern": (
        "def f(p):\n match p:\n  case [a, *b]: return a, b",
        "def f(p):\n match p:\n  case [c, *d]: return c, d",
    ),
    "a walrus": (
        "def f(p):\n return [b for a in p if (b := g(a))]",
        "def f(p):\n return [y for x in p if (y := g(x))]",
    ),
    "lines": (
        "def f(a):\n\n return g(a, 1)  # one",
        'def f(a):\n """F."""\n return g(\n  a, 1\n )',
    ),
}
OTHER = {
    "a parameter": ("def f(a): return a", "def f(b): return b"),
    "a private parameter that is a keyword": (
        "def _f(a, b): return a - b\n_f(a=1, b=2)",
        "def _f(b, a): return b - a\n_f(a=1, b=2)",
    ),
    "a variable of the module": ("a = 1\nprint(a)", "b = 1\nprint(b)"),
    "a global": ("def f():\n global a\n a = 1", "def f():\n global b\n b = 1"),
    "a global beside a variable": (
        "def f():\n a = 1\n def g():\n  global a\n  a = 2\n return a",
        "def f():\n a = 1\n def g():\n  nonlocal a\n  a = 2\n return a",
    ),
    "an attribute": ("def f(p): p.a = 1", "def f(p): p.b = 1"),
    "a field": ("class A:\n a: int", "class A:\n b: int"),
    "an inner function": (
        "def f():\n def g(): pass\n return g",
        "def f():\n def h(): pass\n return h",
    ),
    "two variables for one": (
        "def f(p):\n a = p\n b = g(p)\n return a",
        "def f(p):\n a = p\n a = g(p)\n return a",
    ),
    "which variable": (
        "def f():\n a = 1\n b = 2\n return a",
        "def f():\n a = 1\n b = 2\n return b",
    ),
    "a variable over a name of the module": (
        "def f():\n a = g()\n return len(a)",
        "def f():\n len = g()\n return len(len)",
    ),
    "a variable of a class, unseen by its functions": (
        "def f():\n a = 1\n class C:\n  a = 2\n  def g(self): return a",
        "def f():\n b = 1\n class C:\n  a = 2\n  def g(self): return a",
    ),
    "the first iterable is read outside": (
        "def f(a):\n return [a for a in a]",
        "def f(a):\n return [b for b in b]",
    ),
    "an empty text": ('f("", 1)', "f(1)"),
    "an empty text in a list": ('f(["", 1])', "f([1])"),
    "a number": ("a = 1", "a = 1.0"),
    "what is true": ("a = 1", "a = True"),
    "bytes": ('a = "b"', 'a = b"b"'),
    "a name in an f-string": (
        'def f():\n a = 1\n return f"{a=}"',
        'def f():\n b = 1\n return f"{b=}"',
    ),
}


@pytest.mark.parametrize("name", SAME)
def test_names_that_no_other_code_can_see_do_not_count(name):
    first, second = SAME[name]
    assert canonical_text(first) == canonical_text(second)


@pytest.mark.parametrize("name", OTHER)
def test_all_else_counts(name):
    first, second = OTHER[name]
    assert canonical_text(first) != canonical_text(second)


class Renamed(ast.NodeTransformer):
    """Variables of one function, all renamed."""

    def __init__(self, names):
        self.names = names

    def visit_Name(self, node):
        return ast.copy_location(
            ast.Name(f"{node.id}_2" if node.id in self.names else node.id, node.ctx), node
        )


def plain_functions(tree):
    """Functions that have no other within, nor a comprehension: all that they bind is theirs."""
    scopes = (ast.FunctionDef, ast.Lambda, ast.ClassDef, ast.comprehension, ast.Global)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and not any(
            isinstance(part, scopes) for part in ast.walk(node) if part is not node
        ):
            yield node


@pytest.mark.parametrize("package", ["engine", "lake/normalise", "cleanup"])
def test_renaming_the_variables_of_real_functions_changes_nothing(package):
    renamed = 0
    for path in sorted((ROOT / "pexeso" / package).glob("*.py")):
        source = path.read_text(encoding="utf-8")
        tree = ast.parse(source)
        for function in plain_functions(tree):
            stored = {
                node.id
                for node in ast.walk(function)
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
            }
            names = stored - {part.arg for part in ast.walk(function) if isinstance(part, ast.arg)}
            function.body = [Renamed(names).visit(statement) for statement in function.body]
            renamed += len(names)
        assert canonical_text(ast.unparse(tree)) == canonical_text(source), path
    assert renamed > 10


def test_a_module_may_be_written_with_any_indentation():
    source = "def f(a):\n    if a:\n        return 1\n"
    assert canonical_text(source) == canonical_text(source.replace("    ", "\t"))
