"""Small markets drawn at random, with requests, for property tests of searches."""

import pyarrow as pa
from hypothesis import strategies as st

from benchmarks.dance_published.natural import natural_graph
from pexeso.acquisition.graph import JoinGraph
from pexeso.acquisition.plans import AcquisitionRequest, Terminal
from pexeso.acquisition.quality import Dependency
from pexeso.acquisition.tables import CodedColumns
from tests.acquisition.oracle import market_table


@st.composite
def markets(draw, max_tables: int = 4) -> JoinGraph:
    tables = []
    for i in range(draw(st.integers(2, max_tables))):
        keys = draw(st.sampled_from(["abc", "ab", "bc", "ac", "a", "b"]))
        n_rows = draw(st.integers(1, 6))
        cells = st.lists(st.sampled_from([0, 0, 1, 1, 2, None]), min_size=n_rows, max_size=n_rows)
        columns = {name: draw(cells) for name in [*keys, f"own{i}"]}
        rows = pa.table({name: pa.array(values, pa.int64()) for name, values in columns.items()})
        rules = [Dependency((name,), f"own{i}") for name in keys if draw(st.booleans())]
        numeric = [f"own{i}"] if draw(st.booleans()) else []
        tables.append(
            market_table(
                f"t{i}", rows, owned=draw(st.booleans()), numeric=numeric, dependencies=rules
            )
        )
    return natural_graph(tables, CodedColumns())


@st.composite
def requests(draw, graph: JoinGraph) -> AcquisitionRequest:
    columns = sorted({column for table in graph.tables.values() for column in table.columns})
    own = [column for column in columns if column.startswith("own")]
    chosen = draw(st.permutations(own))[:2]
    chosen += [
        column for column in draw(st.lists(st.sampled_from("abc"), max_size=1)) if column in columns
    ]
    n_have = draw(st.integers(0, 1))
    terminals = [Terminal.of(graph, column) for column in chosen]
    return AcquisitionRequest(
        tuple(terminals[:n_have]),
        tuple(terminals[n_have:]),
        budget=draw(st.sampled_from([2.0, 5.0, 1000.0])),
        max_informativeness=draw(st.sampled_from([0.5, 1.0, 1000.0])),
        min_quality=draw(st.sampled_from([0.0, 0.5, 0.9])),
        max_tables=draw(st.integers(2, 4)),
    )
