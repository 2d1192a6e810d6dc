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
MAX_CALLS = 780
"""Calls of functions of pexeso for six values."""


class Client:
    async def report_progress(self, *progress):
        """Take no notice."""


def called(function) -> Counter:
    """Count the functions of pexeso that a call enters, in all threads."""
    counts: Counter = Counter()

    def note(frame, event, argument):
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(SOURCES):
            counts[f"{code.co_filename[len(SOURCES) + 1 :]}:{code.co_qualname}"] += 1

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        function()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return counts


def test_a_warm_search_reads_no_manifest(small_index):
    find_joins = TOOLS["find_joins"].at(Desk.of(str(small_index)))
    values = ["Oslo", "Rome", "Madrid", "Vienna", "Bern", "Prague"]

    def search():
        answer = anyio.run(lambda: find_joins(Client(), values=values))
        assert not answer.is_error
        assert answer.structured_content["snapshot"] == "current"

    search()
    counts = called(search)
    assert [name for name in counts if name.startswith("store/manifest.py:_file")] == []
    assert counts["store/manifest.py:FileEntry.__post_init__"] == 0
    assert counts.total() <= MAX_CALLS, counts.most_common(9)
