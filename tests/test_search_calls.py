"""A warm search stays flat: few functions and modules, few moves between packages, one check."""

import sys
from collections import Counter
from pathlib import Path

import pytest

import pexeso
from pexeso.runtime import threads

ROOT = Path(pexeso.__file__).resolve().parent.parent
CITIES = ["Oslo", "Rome", "Paris", "Berlin", "Madrid", "Bergen"]
LAKE = {
    "capitals": [*CITIES, "Vienna", "Lisbon", "Athens", "Dublin", "Prague", "Warsaw"],
    "copies": [*CITIES, "Vienna", "Lisbon", "Athens", "Dublin", "Prague", "Warsaw"],
    "airports": [f"{city} airport" for city in CITIES],
    "people": ["Anna Novak", "Bert Rossi", "Carla Smith"],
}


class Calls:
    """What a call does in functions of this project.

    Comprehensions are part of the function that has them, as they are for Python from 3.12 on.
    """

    def __init__(self):
        self.functions, self.moves, self.edges = set(), 0, Counter()

    def __call__(self, frame, event, argument):
        code = frame.f_code
        if event != "call" or not is_ours(code) or code.co_name.startswith("<"):
            return
        caller = frame.f_back
        while caller is not None and not is_ours(caller.f_code):
            caller = caller.f_back
        self.functions.add((code.co_filename, code.co_qualname))
        if caller is not None:
            self.moves += package(caller.f_code) != package(code)
            self.edges[caller.f_code.co_filename, code.co_qualname] += 1

    @property
    def modules(self):
        return {module for module, _ in self.functions}


def is_ours(code):
    folder = Path(code.co_filename)
    return any(ROOT / name in folder.parents for name in ("pexeso", "embed", "partition"))


def package(code):
    """Return the top-level package of a function: that in pexeso, embed or partition."""
    parts = Path(code.co_filename).relative_to(ROOT).parts
    return parts[:2] if parts[0] == "pexeso" and len(parts) > 2 else parts[:1]


@pytest.fixture(scope="module")
def calls(tmp_path_factory):
    folder = tmp_path_factory.mktemp("flat")
    (folder / "lake").mkdir()
    for name, values in LAKE.items():
        rows = "".join(f"{value},{number}\n" for number, value in enumerate(values))
        (folder / "lake" / f"{name}.csv").write_text(f"name,number\n{rows}", encoding="utf-8")
    index = pexeso.build_index(folder / "lake", folder / "lake.pexeso")
    for _ in range(2):  # files are mapped, loops are loaded
        result = index.search(CITIES)
    assert [match.table for match in result] == ["capitals.csv", "airports.csv"]
    calls = Calls()
    with pytest.MonkeyPatch.context() as patch:
        # Whatever torch or the environment has: what other threads call is not seen.
        patch.setattr(threads.given, "threads", 1, raising=False)
        sys.setprofile(calls)
        try:
            index.search(CITIES)
        finally:
            sys.setprofile(None)
    return calls


def test_a_warm_search_takes_few_functions_and_moves(calls):
    assert len(calls.functions) <= 145
    assert len(calls.modules) <= 36
    assert calls.moves <= 52


def test_options_are_checked_once_where_they_come_in(calls):
    by_callee = {}
    for (caller, callee), n in calls.edges.items():
        by_callee.setdefault(callee, Counter())[Path(caller).name] += n
    assert by_callee["SearchOptions.__post_init__"] == {"options.py": 1}
    for check in ("require_flag", "require_choice", "require_k", "flags", "plain_scalar"):
        assert set(by_callee.get(check, ())) <= {"index.py", "options.py", "checks.py"}
