"""Lakes of which it is known which tables hold which: a worked one, and one of easy mistakes."""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Sequence
from decimal import Decimal
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pc_csv
import pyarrow.parquet as pq

WORKED_PARENTS = {
    "A1": ("D1", "F1", "F2", "F3", "R"),
    "C1": ("D1", "F1", "F2", "F3", "R"),
    "D1": ("F1", "F2", "F3", "R"),
    "R": ("D1", "F1", "F2", "F3"),
    "F1": ("F3",),
    "N1": ("F3",),
}
"""Of the worked lake: which tables hold which, 20 pairs."""

WORKED_EDGES = {(parent, child) for parent, held in WORKED_PARENTS.items() for child in held}


def worked_tables() -> dict[str, pa.Table]:
    """Return the ten tables of the worked lake by name."""
    ids = list(range(1, 101))
    notes = [None if row_id % 10 == 0 else f"n{row_id % 3}" for row_id in ids]
    root = _rows(ids, [row_id % 5 for row_id in ids], [10.0 * row_id for row_id in ids], notes)
    added = list(range(1, 21))
    more = _rows(
        added,
        [(row_id + 1) % 5 for row_id in added],
        [10.0 * (101 - row_id) for row_id in added],
        [None] * 20,
    )
    number, value = root["id"], root["val"]
    group = root.filter(pc.equal(root["grp"], 2))
    inner = pc.and_(pc.greater_equal(number, 2), pc.less_equal(number, 99))
    noisy = pc.if_else(inner, pc.add(value, 1.0), value)
    doubled = pc.add(pc.multiply(value, 2.0), pc.cast(number, pa.float64()))
    return {
        "R": root,
        "F1": group,
        "F2": root.filter(pc.less_equal(number, 30)).select(["id", "val"]),
        "F3": group.filter(pc.less_equal(group["id"], 50)).select(["id", "grp"]),
        "C1": root.append_column("val2", doubled),
        "N1": root.set_column(2, "val", noisy),
        "N2": root.set_column(0, "id", pc.add(number, 1000)),
        "A1": pa.concat_tables([root, more]),
        "D1": root.take(pa.array(range(99, -1, -1))),
        "X1": pa.table({"other": pa.array(range(5), pa.int64())}),
    }


def _rows(
    ids: list[int], groups: list[int], values: list[float], notes: list[str | None]
) -> pa.Table:
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "grp": pa.array(groups, pa.int64()),
            "val": pa.array(values, pa.float64()),
            "note": pa.array(notes, pa.string()),
        }
    )


def write_table(
    folder: Path,
    name: str,
    table: pa.Table,
    *,
    file_format: str = "parquet",
    n_files: int = 1,
) -> Path:
    """Write a table as one file, or as a folder of files, and return which."""
    path = folder / (name if n_files > 1 else f"{name}.{file_format}")
    (path if n_files > 1 else folder).mkdir(parents=True, exist_ok=True)
    bounds = [table.num_rows * part // n_files for part in range(n_files + 1)]
    for part, (begin, end) in enumerate(pairwise(bounds)):
        file = path / f"part-{part}.{file_format}" if n_files > 1 else path
        rows = table.slice(begin, end - begin)
        if file_format == "parquet":
            pq.write_table(rows, file)
        else:
            pc_csv.write_csv(rows, file)
    return path


def rewrite_as_csv(folder: Path) -> None:
    """Write the Parquet files of a lake as CSV files in their place."""
    for path in sorted(folder.glob("*.parquet")):
        pc_csv.write_csv(pq.read_table(path), path.with_suffix(".csv"))
        path.unlink()


def worked_lake(folder: Path, *, file_format: str = "parquet", n_files: int = 1) -> None:
    for name, table in worked_tables().items():
        write_table(folder, name, table, file_format=file_format, n_files=n_files)


def messy_lake(folder: Path) -> set[tuple[str, str]]:
    """Write tables that differ in what is easily confused, and return which hold which."""
    lake = _Lake(folder)
    _duplicates(lake)
    _typed_values(lake)
    _moments(lake)
    _nested(lake)
    _empty(lake)
    _formats(lake)
    _names(lake)
    return lake.edges


class _Lake:
    """Tables written so far, and pairs of which the first holds the second."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.edges: set[tuple[str, str]] = set()

    def write(self, name: str, columns: dict[str, pa.Array] | pa.Table, **options: str) -> str:
        table = columns if isinstance(columns, pa.Table) else pa.table(columns)
        return write_table(self.folder, name, table, **options).name

    def text(self, name: str, text: str) -> str:
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / name).write_bytes(text.encode())
        return name

    def equal(self, *names: str) -> None:
        self.edges |= {(one, other) for one in names for other in names if one != other}

    def holds(self, parent: str, *children: str) -> None:
        self.edges |= {(parent, child) for child in children}


def _duplicates(lake: _Lake) -> None:
    whole = pa.table({"d_id": [1, 2, 3, 4], "d_name": ["a", None, "c", "a"], "d_no": [7, 7, 8, 8]})
    names = [
        lake.write("copy-1", whole),
        lake.write("copy-2", whole),
        lake.write("copy-rows", whole.take([2, 0, 3, 1])),
        lake.write("copy-columns", whole.select(["d_no", "d_id", "d_name"])),
        lake.write("copy-repeated", pa.concat_tables([whole, whole.slice(0, 2)])),
    ]
    lake.equal(*names)
    part = lake.write("projection", whole.select(["d_name", "d_no"]))
    once = lake.write("projection-distinct", whole.select(["d_no"]).slice(1, 2))
    row = lake.write("one-null-row", whole.slice(1, 1))
    for name in names:
        lake.holds(name, part, once, row)
    lake.holds(part, once)


def _typed_values(lake: _Lake) -> None:
    def one(name: str, values: list[object], kind: pa.DataType) -> str:
        return lake.write(name, {"t_value": pa.array(values, kind)})

    lake.equal(
        one("one-int32", [1], pa.int32()),
        one("one-int64", [1], pa.int64()),
        one("one-decimal", [Decimal("1.00")], pa.decimal128(10, 2)),
        one("one-decimal-wide", [Decimal("1.0000")], pa.decimal256(50, 4)),
    )
    lake.equal(one("one-double", [1.0], pa.float64()), one("one-float", [1.0], pa.float32()))
    one("one-true", [True], pa.bool_())
    one("one-binary", [b"1"], pa.binary())
    one("tenth-float", [0.1], pa.float32())
    one("tenth-double", [0.1], pa.float64())
    one("large-double", [2.0**53], pa.float64())
    one("large-int", [2**53 + 1], pa.int64())
    lake.equal(
        one("one-text", ["1"], pa.string()),
        one("one-large-text", ["1"], pa.large_string()),
        lake.write("one-category", {"t_value": pa.array(["1"]).dictionary_encode()}),
    )
    one("seven-text", ["007"], pa.string())
    lake.equal(
        one("nan-zero", [math.nan, -0.0, None], pa.float64()),
        one("zero-nan", [None, 0.0, math.nan], pa.float64()),
        one("nan-zero-float", [None, -0.0, math.nan], pa.float32()),
    )
    for parent in ("nan-zero", "zero-nan", "nan-zero-float"):
        lake.holds(f"{parent}.parquet", "nan-alone.parquet")
    one("nan-alone", [math.nan], pa.float64())


def _moments(lake: _Lake) -> None:
    at = datetime.datetime(2020, 1, 1)
    utc = at.replace(tzinfo=datetime.UTC)

    def one(name: str, values: list[object], kind: pa.DataType) -> str:
        return lake.write(name, {"m_at": pa.array(values, kind)})

    # Parquet has no seconds: Arrow writes them as milliseconds.
    lake.equal(*(one(f"moment-{unit}", [at], pa.timestamp(unit)) for unit in ("s", "ms", "ns")))
    lake.equal(
        one("moment-utc", [utc], pa.timestamp("us", "UTC")),
        one("moment-tokyo", [utc], pa.timestamp("ms", "Asia/Tokyo")),
    )
    later = pa.array([1_577_836_800_000_000_001], pa.int64()).cast(pa.timestamp("ns"))
    lake.write("moment-nanosecond-later", {"m_at": later})
    lake.equal(
        one("date-32", [at.date(), None], pa.date32()),
        one("date-64", [None, at.date()], pa.date64()),
    )
    one("moment-text", ["2020-01-01 00:00:00"], pa.string())
    one("time-of-day", [datetime.time(0)], pa.time64("us"))


def _nested(lake: _Lake) -> None:
    person = pa.struct([("name", pa.string()), ("zip", pa.struct([("code", pa.int32())]))])
    item = pa.list_(pa.struct([("sku", pa.string()), ("n", pa.int64())]))
    whole = pa.table(
        {
            "n_person": pa.array(
                [{"name": "a", "zip": {"code": 1}}, {"name": None, "zip": None}, None], person
            ),
            "n_items": pa.array([[{"sku": "x", "n": 1}, None], [], None], item),
            "n_tags": pa.array([["p", None], [], None], pa.list_(pa.string())),
            "n_map": pa.array([[("k", 1), ("j", 2)], [], None], pa.map_(pa.string(), pa.int64())),
        }
    )
    entries = [[("j", 2), ("k", 1)], [], None]
    other_order = whole.set_column(3, "n_map", pa.array(entries, whole.schema.field(3).type))
    large = whole.set_column(
        2, "n_tags", pa.array([["p", None], [], None], pa.large_list(pa.string()))
    )
    names = [
        lake.write("nested", whole),
        lake.write("nested-map-order", other_order),
        lake.write("nested-large", large),
    ]
    lake.equal(*names)
    fields = {"n_person": pa.array([{"name": "a"}], pa.struct([("name", pa.string())]))}
    narrow = [
        lake.write("nested-field", fields),
        lake.write("nested-rows", whole.slice(1, 2)),
        lake.write("nested-tags", whole.select(["n_tags"])),
    ]
    for name in names:
        lake.holds(name, *narrow)
    lake.write("nested-tags-swapped", {"n_tags": pa.array([[None, "p"]], pa.list_(pa.string()))})
    # The elements of a list and a column of the same name are not the same.
    lake.write("flat-tags", {"n_tags": ["p"]})
    # A name with a dot is no path.
    lake.write("dotted", {"n_person.name": ["a"]})


def _empty(lake: _Lake) -> None:
    columns = {"e_id": pa.array([], pa.int64()), "e_text": pa.array([], pa.string())}
    lake.equal(lake.write("empty", columns), lake.write("empty-too", columns))
    full = lake.write("empty-no-more", {"e_id": [1], "e_text": ["a"], "e_more": [None]})
    lake.holds(full, "empty.parquet", "empty-too.parquet")
    # Of another type, so not comparable even without a row.
    lake.write("empty-double", {"e_id": pa.array([], pa.float64())})


def _formats(lake: _Lake) -> None:
    names, ids, words = ["f_id", "f_word"], [1, 2, 3], ["a", None, "é,\n"]
    lake.write("format", {"f_id": ids, "f_word": words})
    _write_json_lines(lake.folder / "format.jsonl", names, [ids, words])
    _write_json_lines(lake.folder / "format-rows.ndjson", names[::-1], [words[:2], ids[:2]])
    lake.holds("format.jsonl", "format-rows.ndjson")
    lake.text("format.csv", 'f_id,f_word\n1,a\n2,\n3,"é,\n"\n')
    lake.text("format-quoted.csv", '"f_word","f_id"\r\n"","2"\r\n"a","1"\r\n')
    lake.holds("format.csv", "format-quoted.csv")
    lake.text("format-padded.csv", "f_id,f_word\n01,a\n1, a\n")


def _names(lake: _Lake) -> None:
    lake.equal(
        lake.write("case-lower", {"c_id": [1], "c_name": ["a"]}),
        lake.write("case-upper", {"C_ID": [1], "C_Name": ["a"]}),
    )
    # Names of one table that differ in case alone stay as they are; those of the others are folded,
    # so that both others are compared with "c_id", whichever case they are written in.
    both = lake.write("case-both", {"c_id": [1], "C_ID": [2], "c_name": ["a"]})
    lake.holds(both, "case-lower.parquet", "case-upper.parquet")
    repeated = pa.Table.from_arrays([pa.array([1]), pa.array([1])], names=["c_id", "c_id"])
    lake.write("repeated", repeated)
    lake.text("repeated.csv", "f_id,f_id\n1,1\n")
    lake.write("no-columns", pa.table({}))


def _write_json_lines(
    path: Path, names: Sequence[str], columns: Sequence[Sequence[object]]
) -> None:
    """Write columns of plain values as JSON lines; what is None has no key."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for row in zip(*columns, strict=True):
            cells = {name: cell for name, cell in zip(names, row, strict=True) if cell is not None}
            file.write(json.dumps(cells, ensure_ascii=False) + "\n")
