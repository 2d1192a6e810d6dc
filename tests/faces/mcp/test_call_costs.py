"""What a warm call of a tool does: it validates nothing that was validated before."""

import sys
import threading
from collections import Counter
from pathlib import Path

import anyio

import pexeso
from pexeso.faces.mcp.tool_call import Desk
from pexeso.faces.mcp.tools import TOOLS

SOURCES = str(Path(pexeso.__file__).parent)
MAX_CALLS, MAX_MOVES = 780, 175
"""Calls of functions of pexeso for six values, and those from one of its packages to another."""


class Client:
    async def report_progress(self, *progress):
        """Take no notice."""


def package(frame) -> str | None:
    """Return the package of pexeso that a function is in."""
    name = frame.f_code.co_filename
    return name[len(SOURCES) + 1 :].partition("/")[0] if name.startswith(SOURCES) else None


def called(function) -> tuple[Counter, int]:
    """Count the functions of pexeso that a call enters, in all threads, and moves of packages."""
    counts: Counter = Counter()
    moves = []

    def note(frame, event, argument):
        if event != "call" or (entered := package(frame)) is None:
            return
        code, caller = frame.f_code, frame.f_back
        counts[f"{code.co_filename[len(SOURCES) + 1 :]}:{code.co_qualname}"] += 1
        while caller is not None and package(caller) is None:
            caller = caller.f_back
        if caller is not None and package(caller) != entered:
            moves.append((package(caller), entered))

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        function()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return counts, len(moves)


def test_a_warm_search_reads_no_manifest(small_index):
    find_joins = TOOLS["find_joins"].at(Desk.of(str(small_index)))
    values = ["Oslo", "Rome", "Madrid", "Vienna", "Bern", "Prague"]

    def search():
        answer = anyio.run(lambda: find_joins(Client(), values=values))
        assert not answer.is_error
        assert answer.structured_content["snapshot"] == "current"

    search()
    counts, n_moves = called(search)
    assert [name for name in counts if name.startswith("store/manifest.py:_file")] == []
    assert counts["store/manifest.py:FileEntry.__post_init__"] == 0
    assert counts.total() <= MAX_CALLS, counts.most_common(9)
    assert n_moves <= MAX_MOVES
