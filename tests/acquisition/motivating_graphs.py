"""Join graphs of the tables of the paper's introduction, and requests for age and disease."""

from collections.abc import Mapping, Sequence

from benchmarks.dance_published.natural import natural_graph
from pexeso.acquisition.graph import JoinGraph
from pexeso.acquisition.plans import AcquisitionRequest, Terminal
from pexeso.acquisition.quality import Dependency
from pexeso.acquisition.tables import CodedColumns
from tests.acquisition.motivating_tables import TABLES
from tests.acquisition.oracle import market_table

RULES = [Dependency(("Gender",), "Disease"), Dependency(("Race",), "Disease")]
"""Dependencies of D3 that plans on D3 and D4 are measured by."""


def graph_of(
    *names: str,
    owned: Sequence[str] = (),
    dependencies: Mapping[str, Sequence[Dependency]] | None = None,
) -> JoinGraph:
    tables = [
        market_table(
            name,
            TABLES[name],
            owned=name in owned,
            dependencies=(dependencies or {}).get(name, ()),
        )
        for name in names
    ]
    return natural_graph(tables, CodedColumns())


def age_and_disease(
    graph: JoinGraph, age: str | None, disease: str | None = None, **bounds: float
) -> AcquisitionRequest:
    return AcquisitionRequest(
        (Terminal.of(graph, "Age", age),), (Terminal.of(graph, "Disease", disease),), **bounds
    )
