"""Fuzzing of documents that are acted on: statements, plans, programs, requests, and folders.

Each may come from somebody who means harm, and is refused in a sentence or does what it says.
"""

from __future__ import annotations

import contextlib
import io
import json
import random
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

TESTS = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TESTS), str(TESTS / "redundancy")]

from drawn_statements import ALLOWED, REFUSED, mutated, require_harmless  # noqa: E402
from planted_holdings import require_nothing_lost  # noqa: E402
from transform.random_programs import ROWS, random_programs  # noqa: E402

from pexeso.errors import PexesoError  # noqa: E402
from pexeso.faces.service.bases import (  # noqa: E402
    REQUESTS,
    Request,
    json_text,
)
from pexeso.faces.service.verbs import Service  # noqa: E402
from pexeso.redundancy.plan import Deletion, Plan, plan_from_json, plan_to_json, read_plan  # noqa: E402
from pexeso.redundancy.plan_actions import before_applying  # noqa: E402
from pexeso.redundancy.statements import checked_statement  # noqa: E402
from pexeso.transform.programs.applying import apply_program  # noqa: E402
from pexeso.transform.programs.renderings import (  # noqa: E402
    first_as_python,
    first_as_sql,
    in_words,
)
from pexeso.transform.programs.storing import (  # noqa: E402
    StoredProgram,
    program_from_json,
    program_from_text,
    program_to_json,
)

_ASKS = (
    "search", "overlap", "contain", "explain", "join", "join_sql", "info", "check", "rules", "keys",
    "tune", "transform", "browse",
)  # fmt: skip
"""Verbs that read, and need no Spark: the others are read as requests, and go no further."""

_COLUMNS = [pa.array([row[n] for row in ROWS], "string") for n in (0, 1)]
_SQLS = [*ALLOWED, *(sql for sql, _, _ in REFUSED if len(sql) < 300)]


class Bytes(random.Random):
    """Chance as some bytes say, and zeros after them: the same bytes are the same choices."""

    def __new__(cls, data: bytes) -> Bytes:
        return super().__new__(cls)

    def __init__(self, data: bytes) -> None:
        super().__init__(0)
        self._data = io.BytesIO(data)

    def getrandbits(self, n_bits: int) -> int:
        n_bytes = -(-n_bits // 8)
        chosen = int.from_bytes(self._data.read(n_bytes).ljust(n_bytes, b"\0"), "little")
        return chosen >> (8 * n_bytes - n_bits)

    def random(self) -> float:
        return self.getrandbits(32) / (1 << 32)


def try_statement(data: bytes, folder: Path) -> None:
    written = checked_statement(data.decode("utf-8", "surrogateescape"), "t")
    require_harmless(written)
    if checked_statement(written, "t") != written:
        raise AssertionError(f"a statement is written in two ways: {written}")


def try_plan(data: bytes, folder: Path) -> None:
    path = folder / "plan.json"
    path.write_bytes(data)
    plan = read_plan(path)
    if plan_from_json(plan_to_json(plan)) != plan:
        raise AssertionError("a plan is another one as it is read again")
    for item in plan.delete:
        require_harmless(checked_statement(item.sql, item.parent), item.parent)
    before_applying(replace(plan, lake=str(folder)))


def try_program(data: bytes, folder: Path) -> None:
    """Read programs, and hold what they write for all rows against what they write for each."""
    stored = program_from_text(data.decode("utf-8", "surrogateescape"))
    if program_from_json(program_to_json(stored)) != stored:
        raise AssertionError("programs are other ones as they are read again")
    names = (*stored.columns[:2], "a", "b")[:2]
    for program in stored.programs:
        with contextlib.suppress(PexesoError):
            if apply_program(program, _COLUMNS).to_pylist() != [program.of(row) for row in ROWS]:
                raise AssertionError("a row alone gives another text")
        with contextlib.suppress(PexesoError):
            in_words(program, names)
    with contextlib.suppress(PexesoError):
        compile(first_as_python(stored.programs, names), "program", "exec")
    for dialect in ("spark", "duckdb"):
        with contextlib.suppress(PexesoError):
            first_as_sql(stored.programs, names, dialect)


def try_request(data: bytes, folder: Path) -> None:
    """Read a request, and answer it where it asks no more than to read files that it names.

    These are files that whoever asks may read: no text leads out of the folder.
    """
    text = data.decode("utf-8", "surrogateescape").replace("..", "__").replace("/", "_")
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        return
    request = Request.from_dict(values)
    if Request.from_dict({"verb": request.verb, **request.to_dict()}) != request:
        raise AssertionError("a request is another one as it is read again")
    if request.verb not in _ASKS:
        return
    (folder / "t.csv").write_text("city,n\nOslo,1\nRome,2\nBern,3\nKiel,4\nLima,5\n")
    with contextlib.chdir(folder):
        answer = Service().run(request).to_dict()
    require_json(answer)


def require_json(answer: Any) -> None:
    text = json_text(answer)
    json.loads(text)
    if "Traceback (most recent" in text:
        raise AssertionError(f"a trace: {text[:300]}")


def try_holding(data: bytes, folder: Path) -> None:
    place = folder / f"place-{len(list(folder.iterdir()))}"
    place.mkdir()
    require_nothing_lost(Bytes(data), place)


def plan_document() -> dict[str, Any]:
    items = tuple(
        Deletion(
            *(name, "all.csv", "SELECT `a` FROM `all.csv` WHERE `b` = 1", 10, 2, 1.5, seconds),
            *(("other.csv",), "0" * 32, "1" * 32, True),
        )
        for name, seconds in (("a/part.csv", None), ("b.parquet", 0.25))
    )
    times = "2026-01-01T00:00:00+00:00"
    plan = Plan(
        *("/lake", times, {"accesses": 1, "of": {"a": 2.5}}, 1.0, 2.0, True, None, items),
        ("all.csv", "other.csv"),
    )
    return plan_to_json(plan)


def program_documents() -> list[dict[str, Any]]:
    chosen = random_programs(8, 5)
    metadata = {"direction": "source to target", "coverage": 0.98, "n": 3, "none": None}
    pairs = [chosen[at : at + 2] for at in range(0, 8, 2)]
    return [program_to_json(StoredProgram(tuple(pair), ("k", "l"), metadata)) for pair in pairs]


def request_documents() -> list[dict[str, Any]]:
    query = {"index": "lake.pexeso", "query": "t.csv:city"}
    both = {**query, "lake_column": "cities.csv:city"}
    return [
        {"verb": "search", **query, "max_distance": 0.3, "k": 3, "explain": True},
        {"verb": "search", **query, "method": "all", "column_kinds": None},
        {"verb": "search", "index": "lake.pexeso", "query": ["Oslo", "Rome", None, 3]},
        {"verb": "search", **query, "method": "overlap", "k": 2},
        {"verb": "search", **query, "method": "containment", "min_joinability": 0.5},
        {"verb": "explain", **both, "max_distance": 0.2},
        {"verb": "join", **both, "how": "left", "aggregate": "first"},
        {"verb": "join_sql", **both},
        {"verb": "info", "index": "lake.pexeso"},
        {"verb": "keys", "file": "t.csv"},
        {"verb": "tune", **query},
        {"verb": "transform", "source": "t.csv:city", "target": "t.csv:city"},
        {"verb": "browse", "index": "lake.pexeso"},
        *({"verb": verb, "index": "lake.pexeso"} for verb in sorted(REQUESTS)),
    ]


_WORDS = (
    "", "#0", "t.csv", "t.csv:city", "t.csv:no", "cities.csv:city", "nested/capitals.tsv:Capital",
    "../secret.csv:city", "/etc/passwd", "s3://bucket/x", "\0", "\ud800", "all", "auto", "semantic",
    "overlap", "left", "inner", "sum", "x" * 20_000, "=1+1", "`", "SELECT 1", "java_method('a')",
)  # fmt: skip
_NUMBERS = (-1, 0, 1, 2, 0.3, 1.0, 1e308, 10**30, -(2**63), True, False, None, 1_000_000_000)


def bend(draw: st.DrawFn, document: Any, n_changes: int, values: Any, names: Any) -> bytes:
    """Replace, remove, double or put in some values of a document; return it as JSON."""
    for _ in range(n_changes):
        holder: Any = document
        while True:
            keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
            if not keys:
                break
            key = draw(st.sampled_from(keys))
            inner = holder[key]
            if isinstance(inner, dict | list) and draw(st.integers(0, 3)):
                holder = inner
                continue
            change = draw(st.integers(0, 5))
            if change == 0:
                del holder[key]
            elif change == 1 and isinstance(holder, list):
                holder.extend([inner] * draw(st.sampled_from((1, 1, 40))))
            elif change == 2 and isinstance(holder, dict):
                holder[draw(names)] = draw(st.just(inner) | values)
            elif change == 3:
                holder[key] = draw(st.sampled_from(([], {}, [[]], [inner])))
            else:
                holder[key] = draw(values)
            break
    return json.dumps(document).encode()


@st.composite
def bent_documents(draw: st.DrawFn, documents: list[dict[str, Any]]) -> bytes:
    """JSON documents with some values replaced, removed, doubled, or put in."""
    document = json.loads(json.dumps(draw(st.sampled_from(documents))))
    values = st.sampled_from(_WORDS) | st.sampled_from(_NUMBERS) | st.text(max_size=8)
    fields = [name for kind in REQUESTS.values() for name in kind.__struct_fields__]
    names = st.sampled_from(fields) | st.text(max_size=5)
    return bend(draw, document, draw(st.integers(0, 4)), values, names)


DOCUMENTS = {
    "plan": [plan_document()],
    "program": program_documents(),
    "request": request_documents(),
}
SEEDS = {
    **{
        name: tuple(json.dumps(document).encode() for document in documents)
        for name, documents in DOCUMENTS.items()
    },
    "statement": tuple(sql.encode("utf-8", "surrogateescape") for sql in _SQLS),
    "holding": tuple(random.Random(number).randbytes(64) for number in range(4)),
}


def _statement(data: bytes) -> bytes:
    return mutated(Bytes(data), _SQLS).encode("utf-8", "surrogateescape")


STRATEGIES = {
    **{name: bent_documents(documents) for name, documents in DOCUMENTS.items()},
    "statement": st.binary(min_size=4, max_size=48).map(_statement),
    "holding": st.binary(min_size=24, max_size=64),
}
