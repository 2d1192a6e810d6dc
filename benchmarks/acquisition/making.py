"""Markets are made and told about: sizes, prices, dependencies and paths of queries."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pc_csv
import pyarrow.parquet as pq

from benchmarks.acquisition.market import TABLES_FOLDER, About, shortest_path, write_market


def measured_market(
    about: About,
    tables: Iterable[tuple[str, pa.Table]],
    *,
    folder: Path | None,
    size: Mapping[str, float],
    seed: int = 0,
    file_format: str = "parquet",
) -> dict[str, Any]:
    """Write a market and return what it is like."""
    with tempfile.TemporaryDirectory(prefix="pexeso-benchmark-") as temporary:
        market_folder = (Path(temporary) if folder is None else folder) / about.name
        market_folder.mkdir(parents=True, exist_ok=True)
        begin = time.perf_counter()
        table_facts = write_market(
            market_folder, about, tables, options={"seed": seed, **size}, file_format=file_format
        )
        seconds = time.perf_counter() - begin
        schemas = {name: _columns(market_folder, name, file_format) for name in table_facts}
    return {
        "market": about.name,
        "seconds": seconds,
        "tables": {
            name: {
                **facts,
                "dependencies": len(about.dependencies[name]),
                "damaged": name in about.damaged,
            }
            for name, facts in table_facts.items()
        },
        "queries": {
            query.name: {
                "source": list(query.source),
                "target": list(query.target),
                "path": list(query.path),
                "shortest": list(shortest_path(schemas, query.source[0], query.target[0])),
            }
            for query in about.queries
        },
    }


def _columns(folder: Path, name: str, file_format: str) -> list[str]:
    path = folder / TABLES_FOLDER / f"{name}.{file_format}"
    if file_format == "csv":
        with pc_csv.open_csv(path) as reader:
            return reader.schema.names
    return pq.read_schema(path).names
