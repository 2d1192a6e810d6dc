"""What became of each file between two listings, as plain rules say it."""

import errno
import os
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pexeso.build.changes import judged
from pexeso.build.source import LISTING_SCHEMA
from pexeso.lake.containers.formats import READERS
from pexeso.lake.containers.reader import TablesInTurn

SCHEMA = pa.schema(
    [
        *LISTING_SCHEMA,
        *((name, pa.string()) for name in ("reason", "old_version", "old_fingerprint")),
        ("old_reason", pa.string()),
        *((name, pa.int64()) for name in ("old_n_bytes", "old_modified")),
        *((name, pa.bool_()) for name in ("there", "known", "is_closed", "in_closed")),
    ]
)
FORMAT, STALE = list(READERS)[:2]
maybe = st.sampled_from([None, 1, 2])
text = st.sampled_from([None, "a", "b"])
listed = st.fixed_dictionaries(
    {
        "there": st.just(True),
        "format": st.sampled_from([FORMAT, STALE]),
        "n_bytes": maybe,
        "modified": maybe,
        "version": text,
    }
)
skipped = st.fixed_dictionaries(
    {
        "there": st.just(True),
        "reason": st.sampled_from(["no table", "a link"]),
        "is_closed": st.booleans(),
    }
)
known = st.fixed_dictionaries(
    {
        "known": st.just(True),
        "old_n_bytes": maybe,
        "old_modified": maybe,
        "old_version": text,
        "old_fingerprint": text,
        "old_reason": st.sampled_from([None, None, "no table"]),
        "in_closed": st.sampled_from([None, False, True]),
    }
)
pairs = st.one_of(
    listed,
    skipped,
    known,
    st.builds(lambda one, other: one | other, st.one_of(listed, skipped), known),
)


def expected(row, compare):
    """Return what became of a file, for files that are not there to be compared."""
    was_table = row.get("known") and not row["old_reason"]
    if not row.get("there"):
        if row["in_closed"]:
            return "closed" if was_table else None
        return "gone" if was_table else "forgotten"
    if row.get("reason"):
        if not row.get("known"):
            return "skipped"
        if was_table:
            return "closed" if row["is_closed"] else "no table"
        return None if row["old_reason"] == row["reason"] else "other reason"
    if not row.get("known"):
        return "new"
    if row["format"] == STALE:
        return "reread"
    same_size = row["n_bytes"] is not None and row["n_bytes"] == row["old_n_bytes"]
    same_time = row["modified"] is not None and row["modified"] == row["old_modified"]
    same = same_size and same_time and row["version"] == row["old_version"]
    if same and not (compare == "content" and row["old_fingerprint"] is not None):
        return "unchanged"
    return "changed"  # where the content is asked, the file is not there


@given(st.lists(pairs, max_size=20), st.sampled_from(["modified", "content"]))
def test_files_are_judged_as_plain_rules_say(rows, compare):
    rows = [{"table": f"t{n}", "path": f"/nowhere/t{n}", **row} for n, row in enumerate(rows)]
    batch = pa.RecordBatch.from_pylist(rows, schema=SCHEMA)
    files = pa.Table.from_batches(
        judged(
            iter([batch]),
            root=Path("/nowhere"),
            compare=compare,
            stale_formats=[STALE],
            max_bytes=2,
        )
    )
    wanted = {row["table"]: change for row in rows if (change := expected(row, compare))}
    assert dict(zip(files["table"].to_pylist(), files["change"].to_pylist(), strict=True)) == wanted


@pytest.mark.parametrize("compare", ["modified", "content"])
def test_files_of_another_time_are_compared_by_what_is_in_them(tmp_path, compare):
    rows = []
    for n in range(6):
        path = tmp_path / f"{n}.csv"
        path.write_text(f"city\nOslo {n}\n", encoding="utf-8")
        rows.append(
            {
                "table": path.name,
                "path": str(path),
                "format": FORMAT,
                "n_bytes": 12,
                "modified": n % 2,
                "there": True,
                "known": True,
                "old_n_bytes": 12,
                "old_modified": 0,
                "old_fingerprint": "other" if n < 3 else TablesInTurn().fingerprint(path, None),
            }
        )
    batch = pa.RecordBatch.from_pylist(rows, schema=SCHEMA)
    [files] = judged(iter([batch]), root=tmp_path, compare=compare, stale_formats=[], max_bytes=99)
    changed = {0, 1, 2} if compare == "content" else {1}
    assert files["table"].to_pylist() == [row["table"] for row in rows]
    assert files["change"].to_pylist() == [
        "changed" if n in changed else "unchanged" for n in range(6)
    ]


@pytest.mark.parametrize("compare", ["modified", "content"])
def test_files_that_could_not_be_opened_are_read_once_they_can_be(tmp_path, compare):
    for name in ("opens.csv", "too large.csv", "understood by nobody.csv"):
        (tmp_path / name).write_text("city\nOslo\n", encoding="utf-8")
    rows = [
        {
            "table": name,
            "path": str(tmp_path / name),
            "format": FORMAT,
            "n_bytes": n_bytes,
            "modified": 1,
            "there": True,
            "known": True,
            "old_n_bytes": n_bytes,
            "old_modified": 1,
            "old_reason": "it was not read",
            "old_fingerprint": fingerprint,
        }
        for name, n_bytes, fingerprint in (
            ("closed still.csv", 10, None),
            ("opens.csv", 10, None),
            ("too large.csv", 100, None),
            ("understood by nobody.csv", 10, TablesInTurn().fingerprint(tmp_path / "opens.csv")),
        )
    ]
    batch = pa.RecordBatch.from_pylist(rows, schema=SCHEMA)
    [files] = judged(iter([batch]), root=tmp_path, compare=compare, stale_formats=[], max_bytes=99)
    assert files["change"].to_pylist() == ["unchanged", "changed", "unchanged", "unchanged"]


@pytest.mark.parametrize("compare", ["modified", "content"])
def test_files_that_changed_and_cannot_be_opened_are_closed(tmp_path, monkeypatch, compare):
    def refuse(path, *given, **named):
        if Path(path).name in ("grown.csv", "touched.csv", "stale.csv", "left out.csv"):
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return opened(path, *given, **named)

    fixed = {"there": True, "known": True, "format": FORMAT, "modified": 2, "old_modified": 1}
    rows = []
    for name, more in {
        "grown.csv": {"n_bytes": 30},
        "touched.csv": {},
        "stale.csv": {"format": STALE},
        "left out.csv": {"n_bytes": 30, "old_reason": "it was not read"},
        "open.csv": {"n_bytes": 30},
    }.items():
        path = tmp_path / name
        path.write_text("city\nOslo\n", encoding="utf-8")
        same = {"n_bytes": 10, "old_n_bytes": 10, "old_fingerprint": "other"}
        rows.append({"table": name, "path": str(path), **fixed, **same, **more})
    batch = pa.RecordBatch.from_pylist(rows, schema=SCHEMA)
    opened = os.open
    monkeypatch.setattr(os, "open", refuse)
    [files] = judged(
        iter([batch]), root=tmp_path, compare=compare, stale_formats=[STALE], max_bytes=99
    )
    changes = dict(zip(files["table"].to_pylist(), files["change"].to_pylist(), strict=True))
    assert changes == {
        "grown.csv": "closed",
        "touched.csv": "closed",
        "stale.csv": "closed",
        "left out.csv": "changed",
        "open.csv": "changed",
    }
