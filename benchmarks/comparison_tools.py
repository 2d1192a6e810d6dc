"""Fuzzy joins of two columns by one tool: a program that runs with the Python that has the tool.

``python comparison_tools.py TOOL FOLDER`` joins ``left.csv`` with ``right.csv`` in each folder of
FOLDER: for each row of the left, the nearest rows of the right and their score, higher for nearer
ones. It writes them to ``pairs.csv`` there, and to ``FOLDER/run.json`` the versions of the
packages, the processor seconds of each join, and the most memory of the process. Nothing but the
standard library is imported before the tool, so that the memory is its own.
"""

from __future__ import annotations

import csv
import importlib.metadata
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

Texts = list[str]
Pairs = Iterable[tuple[int, int, float]]
"""Row of the left, row of the right, and score."""


class Tool(NamedTuple):
    """How a tool joins, by which of its functions, the packages, and its own lowest score."""

    join: Callable[[Texts, Texts], Pairs]
    by: str
    packages: tuple[str, ...]
    default: float | None = None


def by_pexeso(left: Texts, right: Texts) -> Pairs:
    import pyarrow as pa

    import pexeso

    rows = [pa.array(range(len(texts))) for texts in (left, right)]
    # Wider than the default, so that a threshold can be chosen; what is nearest stays the same.
    joined = pexeso.fuzzy_join(
        pa.table({"text": left, "row": rows[0]}),
        pa.table({"text": right, "other": rows[1]}),
        "text",
        max_distance=0.6,
        how="inner",
        many_to_many=True,
    )
    columns = (joined[name].to_pylist() for name in ("row", "other", "match_distance"))
    return ((row, other, 1 - distance) for row, other, distance in zip(*columns, strict=True))


def by_string_grouper(left: Texts, right: Texts) -> Pairs:
    import pandas as pd
    from string_grouper import match_strings

    matches = match_strings(pd.Series(right), pd.Series(left), min_similarity=0.1, max_n_matches=5)
    names = ("right_index", "left_index", "similarity")
    return zip(*(matches[name].tolist() for name in names), strict=True)


def by_skrub(left: Texts, right: Texts) -> Pairs:
    import pandas as pd
    from skrub import fuzzy_join

    others = pd.DataFrame({"text": right, "other": range(len(right))})
    joined = fuzzy_join(
        pd.DataFrame({"text": left}), others, on="text", suffix="_other", add_match_info=True
    )
    distances = joined["skrub_Joiner_rescaled_distance"]
    return zip(range(len(left)), joined["other_other"], -distances, strict=True)


def by_splink(left: Texts, right: Texts) -> Pairs:
    import pandas as pd
    import splink.comparison_library as cl
    from splink import DuckDBAPI, Linker, SettingsCreator

    settings = SettingsCreator(
        link_type="link_only",
        comparisons=[cl.NameComparison("text")],
        # Below it all pairs are of the lowest level of the comparison.
        blocking_rules_to_generate_predictions=["jaro_winkler_similarity(l.text, r.text) >= 0.7"],
    )
    api = DuckDBAPI()
    sides = [
        api.register(pd.DataFrame({"unique_id": range(len(texts)), "text": texts}))
        for texts in (left, right)
    ]
    linker = Linker(sides, settings, log_level=None)
    linker.training.estimate_u_using_random_sampling(max_pairs=1e6, seed=1)
    predicted = linker.inference.predict().as_pandas_dataframe()
    names = ("unique_id_l", "unique_id_r", "match_weight")
    return zip(*(predicted[name].tolist() for name in names), strict=True)


def by_duckdb(left: Texts, right: Texts) -> Pairs:
    return _by_sql(left, right, "jaro_winkler_similarity(lower(l.text), lower(r.text))")


def by_rapidfuzz(scorer: str, left: Texts, right: Texts) -> Pairs:
    """Compare all pairs in DuckDB by a function of rapidfuzz."""
    import pyarrow as pa
    from rapidfuzz import fuzz, process, utils

    def score(texts: Any, others: Any) -> Any:
        pair = (side.to_pylist() for side in (texts, others))
        return pa.array(
            process.cpdist(
                *pair,
                scorer=getattr(fuzz, scorer),
                processor=utils.default_process,
                workers=-1,
            )
        )

    def prepare(connection: Any) -> None:
        connection.create_function("score", score, ["VARCHAR", "VARCHAR"], "FLOAT", type="arrow")

    return _by_sql(left, right, "score(l.text, r.text)", prepare)


def _by_sql(
    left: Texts, right: Texts, score: str, prepare: Callable[[Any], None] = lambda _: None
) -> Pairs:
    """Compare all pairs in DuckDB, and return the nearest."""
    import duckdb
    import pyarrow as pa

    with duckdb.connect() as connection:
        prepare(connection)
        for name, texts in (("l", left), ("r", right)):
            connection.register(name, pa.table({"row": range(len(texts)), "text": texts}))
        return connection.execute(
            f"SELECT l.row, r.row, {score} AS score FROM l, r "
            "QUALIFY rank() OVER (PARTITION BY l.row ORDER BY score DESC) = 1"
        ).fetchall()


def by_goldenmatch(left: Texts, right: Texts) -> Pairs:
    import goldenmatch as gm
    import pyarrow as pa

    key = gm.MatchkeyField(
        field="text", scorer="ensemble", weight=1.0, transforms=["lowercase", "strip"]
    )
    passes = [
        gm.BlockingKeyConfig(fields=["text"], transforms=["lowercase", transform])
        for transform in ("substring:0:3", "first_token", "last_token", "soundex")
    ]
    config = gm.GoldenMatchConfig(
        matchkeys=[gm.MatchkeyConfig(name="text", type="weighted", threshold=0.3, fields=[key])],
        blocking=gm.BlockingConfig(strategy="multi_pass", passes=passes),
    )
    sides = [
        pa.table({"row": [str(row) for row in range(len(texts))], "text": texts})
        for texts in (left, right)
    ]
    matched = gm.match_df(*sides, config=config).matched
    if matched is None:
        return []
    names = ("target_row", "ref_row", "__match_score__")
    rows, others, scores = (matched[name].to_pylist() for name in names)
    return zip(map(int, rows), map(int, others), scores, strict=True)


def by_dex(left: Texts, right: Texts) -> Pairs:
    """Join by equal values where dex infers that the two columns are a join."""
    import duckdb
    import pyarrow as pa

    program = shutil.which("dex", path=str(Path(sys.executable).parent))
    if program is None:
        raise ModuleNotFoundError("No program named 'dex'")
    with tempfile.TemporaryDirectory(prefix="pexeso-dex-") as folder:
        path = Path(folder, "lake.duckdb")
        with duckdb.connect(str(path)) as connection:
            for name, texts in (("mine", left), ("theirs", right)):
                table = pa.table({"row": range(len(texts)), "text": texts})
                connection.register("given_table", table)
                connection.execute(f"CREATE TABLE {name} AS SELECT * FROM given_table")
        where = ["--connector", "duckdb", "--path", str(path), "--repo-root", folder]
        done = subprocess.run(
            [program, *where, "explore", "relationships", "--infer-by-overlap"],
            capture_output=True,
            check=True,
            cwd=folder,
        )
    inferred = json.loads(done.stdout)["data"]["relationships"]
    if not any(
        relation["from_columns"] == relation["to_columns"] == ["text"] for relation in inferred
    ):
        return []
    rows: dict[str, list[int]] = {}
    for other, text in enumerate(right):
        rows.setdefault(text, []).append(other)
    return [(row, other, 1.0) for row, text in enumerate(left) for other in rows.get(text, ())]


TOOLS = {
    "pexeso": Tool(by_pexeso, "fuzzy_join", ("pexeso",), 0.6),
    "string_grouper": Tool(
        by_string_grouper, "match_strings", ("string_grouper", "sp-matmul-rs"), 0.8
    ),
    "skrub": Tool(by_skrub, "fuzzy_join", ("skrub",), -1e9),
    "splink": Tool(by_splink, "NameComparison", ("splink", "duckdb")),
    "duckdb": Tool(by_duckdb, "Jaro-Winkler", ("duckdb",)),
    **{
        f"duckdb+rapidfuzz {scorer}": Tool(
            partial(by_rapidfuzz, scorer), scorer, ("duckdb", "rapidfuzz")
        )
        for scorer in ("WRatio", "token_set_ratio")
    },
    "goldenmatch": Tool(by_goldenmatch, "ensemble", ("goldenmatch",), 0.85),
    "dex": Tool(by_dex, "inferred joins", ("exmergo-dex-core", "duckdb"), 1.0),
}


def read_texts(path: Path) -> Texts:
    with path.open(encoding="utf-8", newline="") as stream:
        return [row[0] for row in csv.reader(stream)]


def write_rows(path: Path, rows: Iterable[Iterable[Any]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows(rows)


def main(name: str, folder: Path) -> None:
    """Join all pairs of files with one tool."""
    tool, seconds = TOOLS[name], []
    tool.join(
        ["Oslo", "Lisbon", "Madrid"], ["Oslo", "Lisboa", "Rome"]
    )  # imports and compiled loops
    for path in sorted(folder.glob("*/left.csv")):
        left, right = read_texts(path), read_texts(path.with_name("right.csv"))
        start = sum(os.times()[:4])  # of this process and of those that it waited for
        pairs = list(tool.join(left, right))
        seconds.append(sum(os.times()[:4]) - start)
        write_rows(path.with_name("pairs.csv"), pairs)
    run = {
        "versions": {package: _version(package) for package in tool.packages},
        "seconds": seconds,
        "peak_bytes": _peak_bytes(),
    }
    (folder / "run.json").write_text(json.dumps(run), encoding="utf-8")


def _peak_bytes() -> int:
    """Return the most memory of this process, or of one that it started."""
    # What getrusage tells of this process counts the one that started it too.
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    own = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))
    return max(own, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss) * 1024


def _version(package: str) -> str:
    if package == "pexeso":  # of the checkout, which need not be installed
        import pexeso

        return pexeso.__version__
    return importlib.metadata.version(package)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
