"""Small random markets for tests of searches."""

import numpy as np
import pyarrow as pa

from benchmarks.dance_published.natural import natural_graph
from pexeso.acquisition.graph import JoinGraph, edges_of
from pexeso.acquisition.plans import AcquisitionRequest, Terminal
from pexeso.acquisition.quality import Dependency
from pexeso.acquisition.tables import CodedColumns, MarketTable
from tests.acquisition.oracle import market_table


def random_market(
    seed: int, *, natural: bool = True, n_tables: int = 4, n_rows: int = 8
) -> tuple[JoinGraph, AcquisitionRequest]:
    """Return a market of tables that share some columns, and a request within it."""
    draw = np.random.default_rng(seed)
    tables = [_table(draw, number, n_rows) for number in range(n_tables)]
    mine = _table(draw, n_tables, n_rows, owned=True)
    coded = CodedColumns()
    if natural:
        graph = natural_graph([*tables, mine], coded)
    else:
        every = {table.name: table for table in [*tables, mine]}
        pairs = {}
        for one in sorted(every):
            for other in sorted(every):
                if one < other and draw.random() < 0.7:
                    pairs[one, other] = [
                        (
                            str(draw.choice(every[one].columns)),
                            str(draw.choice(every[other].columns)),
                        )
                        for _ in range(draw.integers(1, 3))
                    ]
        graph = JoinGraph.of(every.values(), edges_of(every, pairs, coded))
    have = (Terminal.of(graph, str(draw.choice(mine.columns)), mine.name),)
    if draw.random() < 0.2:
        have = ()
    want = []
    for _ in range(2 if not have or draw.random() < 0.4 else 1):
        table = tables[draw.integers(n_tables)]
        column = str(draw.choice(table.columns))
        named = draw.random() < 0.5
        want.append(Terminal.of(graph, column, table.name if named else None))
    want = tuple(dict.fromkeys(terminal for terminal in want if terminal not in have))
    if len(want) < 2 and not have:
        want = (*want, Terminal.of(graph, mine.columns[0], mine.name))
    want = tuple(dict.fromkeys(want))
    if len(want) < 2:
        have = have or (Terminal.of(graph, mine.columns[-1], mine.name),)
        want = tuple(terminal for terminal in want if terminal not in have) or (
            Terminal.of(graph, tables[0].columns[0], tables[0].name),
        )
    request = AcquisitionRequest(
        have,
        want,
        budget=float(draw.choice([np.inf, 8.0, 4.0])),
        max_informativeness=float(draw.choice([np.inf, 1.0, 0.4])),
        min_quality=float(draw.choice([0.0, 0.4, 0.8])),
        max_tables=int(draw.integers(2, 5)),
    )
    return graph, request


def _table(draw: np.random.Generator, number: int, n_rows: int, owned: bool = False) -> MarketTable:
    names = sorted(draw.choice(list("abcde"), size=draw.integers(1, 4), replace=False).tolist())
    names += [f"own{number}"]
    columns = {}
    for name in names:
        cells = draw.integers(0, draw.integers(2, 5), size=draw.integers(1, n_rows)).tolist()
        columns[name] = [None if draw.random() < 0.1 else cell for cell in cells]
    length = max(map(len, columns.values()))
    rows = pa.table(
        {name: pa.array((cells * length)[:length], pa.int64()) for name, cells in columns.items()}
    )
    dependencies = [
        Dependency((names[0],), names[-1]),
        *([Dependency((names[0], names[1]), names[2])] if len(names) > 2 else []),
        *([Dependency((names[1],), names[0])] if len(names) > 2 else []),
    ]
    numeric = [name for name in names if name.startswith("own") and draw.random() < 0.5]
    return market_table(f"t{number}", rows, owned=owned, numeric=numeric, dependencies=dependencies)
