"""Fuzzing of the server of agents: bytes are the lines of a client, each of which is answered."""

from __future__ import annotations

import functools
import json
import logging
import sys
from pathlib import Path

import anyio
from hypothesis import strategies as st

TESTS = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TESTS / "faces" / "mcp")]

from answered_lines import BEGIN, answered, request  # noqa: E402
from drawn_arguments import arguments_of  # noqa: E402
from fuzz_documents import Bytes  # noqa: E402
from sandbox import MARKER  # noqa: E402

from pexeso.faces.mcp.tool_call import Desk  # noqa: E402
from pexeso.faces.service.verbs import ServedIndex  # noqa: E402

TOOLS = json.loads((TESTS / "faces" / "mcp" / "tools.json").read_text(encoding="utf-8"))["tools"]
_NEVER = ("Traceback", "not foreseen", "root:", MARKER)
_MOST_LINES = 8


@functools.cache
def served_index(index: Path) -> ServedIndex:
    """Return an index that is served, one a process."""
    return ServedIndex(str(index))


def try_lines(data: bytes, index: Path) -> None:
    """Send lines, and require answers without what none may have; the desk lends one folder."""
    folder = index.parent / "lent"
    folder.mkdir(exist_ok=True)
    (folder / "mine.csv").write_text("town,n\nOslo,1\nROME,2\nXyzzyx,3\n", encoding="utf-8")
    desk = Desk(served_index(index.resolve()), [folder.resolve()], folder.resolve())
    lines = data.decode("utf-8", "replace").split("\n")[:_MOST_LINES]
    lines = [line for line in lines if '"end"' not in line]
    raised = _Raised()
    logging.getLogger().addHandler(raised)
    try:
        every_line = [*map(json.dumps, BEGIN), *lines, request("end", "ping")]
        answers = anyio.run(answered, desk, every_line)
    finally:
        logging.getLogger().removeHandler(raised)
    text = json.dumps(answers, ensure_ascii=False)
    wrong = [word for word in _NEVER if word in text] + raised.messages
    if wrong := [*wrong, *filter(_is_no_sentence, answers)]:
        raise AssertionError(f"{wrong} in {text[-400:]}")


def _is_no_sentence(answer: dict) -> bool:
    """Return whether a call ended in an error that is not told in a sentence."""
    result = answer.get("result", {})
    said = result["content"][0]["text"] if result.get("isError") else ""
    return len(said) > 1000 or "\n" in said


class _Raised(logging.Handler):
    """Hears traces that go to the log."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info:
            self.messages.append(f"{record.getMessage()}: {record.exc_info[1]!r}")


def _call(data: bytes) -> bytes:
    draw = Bytes(data)
    tool = draw.choice(TOOLS)
    arguments = arguments_of(tool["inputSchema"], draw)
    line = request(draw.randrange(9), "tools/call", name=tool["name"], arguments=arguments)
    return line.encode("utf-8", "surrogatepass")


CALLS = st.binary(min_size=8, max_size=120).map(_call)
OTHERS = st.sampled_from(
    [
        request(1, "ping"),
        request(2, "tools/list"),
        request(3, "prompts/get", name="a\u202e", arguments={"b": "c"}),
        request(4, "resources/read", uri="file:///etc/passwd"),
        request(5, "completion/complete", ref={}),
        request(
            6, "tools/call", name="find_joins", arguments={"file": "../beside/secret.csv:city"}
        ),
        request(7, "tools/call", name="write_join", arguments={"output": "../x.csv"}),
        '{"jsonrpc":"2.0","id":1.5,"method":"ping"}',
        "[" * 5000,
        "null",
        "",
    ]
).map(str.encode)


def broken(line: bytes) -> st.SearchStrategy[bytes]:
    """Return a strategy of a line with a piece cut out and another put in."""
    pieces = st.sampled_from((b"", b'"', b"{", b"}", b"[", b",", b"null", b"1e999", b"\\u0000"))
    return st.builds(
        lambda at, length, piece: line[:at] + piece + line[at + length :],
        st.integers(0, len(line)),
        st.integers(0, 3),
        pieces,
    )


LINES = st.lists(CALLS | CALLS | OTHERS | OTHERS.flatmap(broken), min_size=1, max_size=4).map(
    b"\n".join
)
SEEDS = tuple(_call(bytes([number]) + bytes(40)) for number in range(0, 250, 25))
