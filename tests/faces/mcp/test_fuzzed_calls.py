"""Calls of random arguments end in an answer or a sentence, and read nothing outside the lake.

The long run, which tells what it counted::

    PEXESO_FUZZED_CALLS=10000 make test JOBS=0 ARGS="-s tests/faces/mcp/test_fuzzed_calls.py"
"""

import gc
import json
import os
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import anyio
from drawn_arguments import arguments_of
from long_runs import EVERYTHING
from mcp.client.client import Client
from write_tools import FILE

from pexeso.faces.mcp.answers import DEFAULT_TOKENS, count_tokens
from pexeso.faces.mcp.server import make_server

N_CALLS = int(os.environ.get("PEXESO_FUZZED_CALLS", "300" if EVERYTHING else "80"))
CLIENTS = 4
SECRET = "the secret of another folder"

_NEVER = ("Traceback", "not foreseen", "root:")
"""What no answer has: a stack trace, an error of the program itself, a file of the system."""


class Opened:
    """What Python opens or lists while calls run; Arrow's own readers open unseen."""

    def __init__(self):
        self.paths, self._listens = set(), False
        sys.addaudithook(self._hear)

    def _hear(self, event, given):
        reads = self._listens and event in ("open", "os.listdir", "os.scandir")
        if reads and isinstance(given[0], str | bytes | os.PathLike):
            self.paths.add(os.path.realpath(os.fsdecode(given[0])))

    def __enter__(self):
        self._listens = True
        return self

    def __exit__(self, *error):
        self._listens = False

    def outside(self, *folders):
        """Return what lies in none of some folders."""
        roots = [Path(folder).resolve() for folder in folders]
        return sorted(path for path in self.paths if not any(map(Path(path).is_relative_to, roots)))


def budget(arguments):
    """Return the tokens that the answer to a call may have."""
    given = arguments.get("max_tokens", DEFAULT_TOKENS)
    return DEFAULT_TOKENS if given is None else int(given)


def test_random_calls(desk, hostile_lake, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    secret = desk.allow_read[0].parent / "secret.csv"
    secret.write_text(f"a\n{SECRET}\n")
    tools = json.loads(FILE.read_text(encoding="utf-8"))["tools"]
    draw = random.Random(20)
    drawn = [draw.choice(tools) for _ in range(N_CALLS)]
    calls = iter([(tool["name"], arguments_of(tool["inputSchema"], draw)) for tool in drawn])
    counts, sentences, seconds = Counter(), Counter(), []
    wrong: list[str] = []
    outside = sorted(desk.allow_write.parent.iterdir())

    async def ask():
        async with Client(make_server(desk)) as client:
            for name, arguments in calls:
                begun = time.perf_counter()
                result = await client.call_tool(name, arguments)
                seconds.append(time.perf_counter() - begun)
                text = result.content[0].text
                where = f"{name} {str(arguments)[:300]}: {text[:300]}"
                hidden = [word for word in (*_NEVER, SECRET) if word in text]
                wrong.extend(f"{where} ({word})" for word in hidden)
                counts["error" if result.is_error else "answer", name] += 1
                if result.is_error:
                    sentences[" ".join(text.split()[:5])[:50]] += 1
                    wrong.extend([where] if len(text) > 1000 or "\n" in text else [])
                elif count_tokens(result.structured_content) > budget(arguments):
                    wrong.append(f"{where} (too long)")

    async def ask_all():
        async with anyio.create_task_group() as group:
            for _ in range(CLIENTS):
                group.start_soon(ask)

    gc.collect()  # indexes of other tests, which look at their folders as they go
    with Opened() as opened:
        anyio.run(ask_all)
    for path in desk.allow_write.iterdir():
        path.unlink()  # of the allowed folder, which other tests look into
    errors = sum(number for (kind, _), number in counts.items() if kind == "error")
    lines = [f"{N_CALLS} calls, {errors} errors; the longest took {max(seconds):.1f} s"]
    for counted in (counts, sentences):
        lines += [f"{number:6} {what}" for what, number in counted.most_common()]
    sys.stdout.write("\n".join(lines) + "\n")
    assert not wrong
    assert sorted(desk.allow_write.parent.iterdir()) == outside
    assert len(seconds) == N_CALLS
    program = (*filter(None, sys.path), sys.prefix, sys.base_prefix)  # imports look there
    index = (desk.served.path, desk.served.index.store.links.path)
    lent = (hostile_lake, *index, desk.allow_read[0], desk.allow_write, tmp_path)
    assert opened.paths
    assert not opened.outside(*program, *lent, "/proc", "/sys", "/dev")
    assert errors > N_CALLS // 10
    assert N_CALLS - errors > N_CALLS // 5
