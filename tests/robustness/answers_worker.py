"""Answers of a part of the demo lake, as JSON with every bit of every float.

`test_same_answers` runs this file under different kernels of the processor.
"""

import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch

TESTS = Path(__file__).resolve().parent.parent
sys.path[:0] = [path for path in (str(TESTS.parent), str(TESTS)) if path not in sys.path]

from searching_stores import SmallLake, scan_of  # noqa: E402  (the path comes first)

from embed.registry import create_embedder  # noqa: E402
from pexeso.engine.options import PartitionLayoutOptions  # noqa: E402
from pexeso.engine.stats import SearchStats  # noqa: E402
from pexeso.lake.choose import ColumnRules  # noqa: E402
from pexeso.lake.files import find_tables  # noqa: E402
from pexeso.lake.normalise.normaliser import Normaliser  # noqa: E402
from pexeso.lake.records import lake_records  # noqa: E402
from pexeso.options import SearchOptions  # noqa: E402
from pexeso.results.query import QueryColumn  # noqa: E402
from pexeso.semantic.encoded_query import EncodedQuery  # noqa: E402
from pexeso.semantic.executor import search_store  # noqa: E402
from pexeso.semantic.similarity import by_similarity  # noqa: E402
from pexeso.semantic.thresholds.advisor import Advisor  # noqa: E402

DEMO_LAKE = TESTS.parent / "examples" / "lake"
FOLDERS = ("science", "business")
OPTIONS = PartitionLayoutOptions(map="projection", n_axes=15)
USUAL = 0.35


def demo_columns(folders: Sequence[str] = FOLDERS) -> dict[tuple[str, str], list[str]]:
    """Read the values of the columns of some folders of the demo lake, by table and position."""
    columns: dict[tuple[str, str], list[str]] = {}
    for file in find_tables(DEMO_LAKE)[0]:
        if file.table.split("/")[0] in folders:
            for batch in lake_records([file], ColumnRules(), Normaliser()):
                for row in batch.filter(pc.equal(batch["record"], "value")).to_pylist():
                    columns.setdefault((row["table"], f"{row['position']:02}"), []).append(
                        row["value"]
                    )
    return columns


def demo_lake() -> tuple[SmallLake, list[str]]:
    """Embed these columns; give the lake and its distinct values, one for each of its vectors."""
    columns = demo_columns()
    names = sorted(columns)
    values = sorted({value for column in columns.values() for value in column})
    with tempfile.TemporaryDirectory() as folder:
        corpus = Path(folder) / "corpus.txt"
        corpus.write_text(
            "\n".join(value for name in names for value in columns[name]), encoding="utf-8"
        )
        embedder = create_embedder("hashing", corpus=corpus)
    place = {value: number for number, value in enumerate(values)}
    rows = [sorted({place[value] for value in columns[name]}) for name in names]
    return SmallLake(embedder.embed(pa.array(values)), rows, names, [0] * len(rows)), values


def answers(lake: SmallLake, values: Sequence[str]) -> dict[str, object]:
    """Advise, search, rank and pair on the lake as it is laid out here."""
    scan = scan_of(lake.store(OPTIONS), OPTIONS)
    advisor = Advisor(scan, USUAL)
    results: dict[str, object] = {
        "vectors": lake.vectors.tobytes().hex()[:4096],
        "median": advisor.learnt.median,
        "unrelated": [float(distances[0]) for distances in advisor.learnt.unrelated],
        "advice": [advisor.columns(precision).to_dict() for precision in (0.8, 0.9, 0.95, 0.99)],
    }
    long = sorted(range(len(lake.columns)), key=lambda column: -len(lake.columns[column]))[:4]
    for column in long:
        texts = pa.array([values[row] for row in lake.columns[column]])
        vectors = torch.from_numpy(np.ascontiguousarray(lake.vectors[list(lake.columns[column])]))
        ones = torch.ones(len(texts), dtype=torch.int64)
        query = EncodedQuery(
            QueryColumn(texts), texts, pa.array(range(len(texts)), pa.int64()), vectors, ones
        )
        distance = advisor.columns().max_distance
        [(hits, _)] = search_store(
            scan, [query], [SearchOptions(max_distance=distance, min_joinability=0.05)]
        )
        order, similarities = by_similarity(scan, query, hits, USUAL, SearchStats())
        results[f"column {column}"] = {
            "hits": [(hit.table, hit.label, hit.matched) for hit in hits],
            "order": [(hit.table, hit.label) for hit in order],
            "similarities": similarities,
            "pairs": [advisor.pair(query, hit).to_dict() for hit in hits[:5]],
        }
    return results


if __name__ == "__main__":
    sys.stdout.write(json.dumps(answers(*demo_lake()), sort_keys=True))
