"""The error tree: as its docstring draws it, and able to travel between processes."""

import inspect
import pickle
import re

from pexeso import errors

CLASSES = {name: one for name, one in vars(errors).items() if inspect.isclass(one)}


def drawn() -> dict[str, str | None]:
    """Return class -> parent as the docstring of the module draws it.

    A built-in parent is in brackets.
    """
    parents: dict[str, str | None] = {}
    above: list[str] = []
    for line in errors.__doc__.splitlines():
        match = re.match(r" {4}([ │├└─]*)(\w+Error)\b", line)
        if match:
            depth = len(match.group(1)) // 4
            above[depth:] = [match.group(2)]
            parents[match.group(2)] = above[depth - 1] if depth else None
    return parents


def test_the_drawing_is_the_tree():
    real = {
        name: next((base.__name__ for base in one.__bases__ if base in CLASSES.values()), None)
        for name, one in CLASSES.items()
    }
    assert drawn() == real
    assert [name for name, parent in real.items() if parent is None] == ["PexesoError"]


def test_built_in_parents_are_drawn():
    built_in = {
        name: [
            base.__name__
            for base in one.__bases__
            if base not in CLASSES.values() and base is not Exception
        ]
        for name, one in CLASSES.items()
    }
    for name, bases in built_in.items():
        for base in bases:
            assert f"{name} ({base})" in errors.__doc__
    assert built_in["InputError"] == ["ValueError"]


def test_every_error_survives_the_way_from_a_worker():
    errors_made = [one("The file 'a.csv' is no table: it is empty.") for one in CLASSES.values()]
    copies = pickle.loads(pickle.dumps(errors_made))
    assert [type(copy) for copy in copies] == list(CLASSES.values())
    assert [copy.args for copy in copies] == [error.args for error in errors_made]
    assert {str(copy) for copy in copies} == {"The file 'a.csv' is no table: it is empty."}


def test_every_error_says_in_its_docstring_when_it_happens():
    assert [
        name for name, one in CLASSES.items() if not (one.__doc__ or "").strip().endswith(".")
    ] == []
