"""The order of rows, files, row groups, columns and tables changes nothing in the answer."""

import datetime as dt
import random
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from long_runs import long_but

from pexeso.lake.typed.parquet import parquet_rows
from pexeso.redundancy.containments import ContainmentOptions, containments_of
from pexeso.redundancy.lake_reading import lake_rows
from pexeso.redundancy.pieces import pieces_of, write_pieces
from tests.redundancy.row_contents import read_contents
from tests.redundancy.row_oracle import containment

NAN = float("nan")
KINDS = {
    "n": (pa.int64(), [0, 1, 2, None]),
    "x": (pa.float64(), [0.0, -0.0, NAN, 1.5, None]),
    "t": (pa.string(), ["", "a", "b", "é" * 40, None]),
    "d": (pa.decimal128(6, 2), [Decimal("1.50"), Decimal(2), None]),
    "at": (pa.timestamp("us", "UTC"), [dt.datetime(2020, 1, day, tzinfo=dt.UTC) for day in (1, 2)]),
    "l": (pa.list_(pa.int64()), [[], [1, 2], [2, 1], None]),
    "s": (pa.struct([("a", pa.int64()), ("b", pa.string())]), [{"a": 1, "b": "x"}, {"a": 2}, None]),
    "m": (pa.map_(pa.string(), pa.int64()), [[("k", 1), ("l", 2)], [("l", 2), ("k", 1)], []]),
}


def drawn_tables(draw):
    """Draw roots, and selections of their rows and columns."""
    tables = []
    for _ in range(3):
        names = draw.sample(list(KINDS), draw.randint(2, 5))
        n = draw.randint(4, 30)
        tables.append(
            {
                name: (KINDS[name][0], [draw.choice(KINDS[name][1]) for _ in range(n)])
                for name in names
            }
        )
    for _ in range(9):
        base = draw.choice(tables)
        n = len(next(iter(base.values()))[1])
        rows = draw.sample(range(n), draw.randint(0, n))
        names = draw.sample(list(base), draw.randint(1, len(base)))
        tables.append({name: (base[name][0], [base[name][1][r] for r in rows]) for name in names})
    return tables


def write_shuffled(draw, tables, folder):
    """Write tables as one to three files each, whose rows, columns and groups have any order."""
    order = list(range(len(tables)))
    draw.shuffle(order)
    for number in order:
        columns = list(tables[number].items())
        draw.shuffle(columns)
        n = len(columns[0][1][1])
        rows = draw.sample(range(n), n)
        n_files = draw.randint(1, 3)
        (folder / f"t{number}").mkdir(parents=True)
        for file in range(n_files):
            own = draw.sample(columns, len(columns))
            part = pa.table(
                {
                    name: pa.array([cells[row] for row in rows[file::n_files]], kind)
                    for name, (kind, cells) in own
                }
            )
            path = folder / f"t{number}" / f"part-{draw.random()}.parquet"
            pq.write_table(
                part, path, row_group_size=draw.randint(1, 9), use_dictionary=draw.random() < 0.5
            )


def answer(draw, lake, folder, **options):
    """Read the files in any order, without Spark, and return edges and what each stage left."""
    folder.mkdir()
    rows = []
    paths = sorted(lake.rglob("*.parquet"))
    draw.shuffle(paths)
    for number, path in enumerate(paths):
        file = path.relative_to(lake).as_posix()
        write_pieces(folder / f"{number}", pieces_of(file, parquet_rows(file, str(path))))
        result = {"file": file, "n_bytes": 1, "fingerprint": None, "reason": None, "notes": []}
        rows.append({**result, "paths": [str(folder / f"{number}")]})
    read = lake_rows(lake, "lake", rows)
    result = containments_of(None, read, ContainmentOptions(**options))
    edges = {(edge.parent, edge.child): edge.containment for edge in result.edges}
    counts = [(stage.name, stage.edges) for stage in result.stages]
    return edges, counts


@pytest.mark.parametrize(
    "options",
    long_but([{"min_containment": 0.6}], [{}, {"semantics": "bag"}, {"min_containment": 0.6}]),
    ids=str,
)
def test_no_order_changes_the_answer(tmp_path, options):
    draw, n_edges = random.Random(9), 0
    for number in range(4):
        tables = drawn_tables(draw)
        answers = []
        for turn in range(3):
            lake = tmp_path / f"{number}-{turn}"
            write_shuffled(draw, tables, lake)
            answers.append(answer(draw, lake, tmp_path / f"{number}-{turn}-pieces", **options))
            assert answers[-1] == answers[0]
            assert answers[-1][0] == containment(read_contents(lake), **options)
        n_edges += len(answers[0][0])
    assert n_edges > 20
