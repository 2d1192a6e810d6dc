"""From what a build took to what one of a billion columns takes: products of measured constants."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Result = dict[str, Any]

GROWS_WITH = {
    "list": "tables",
    "read": "tables",
    "catalog": "columns",
    "train": "values",
    "embed": "values",
    "partition": "pairs",
    "index": "values",
}
"""What a stage is taken to grow with; a stage that is not here takes what it takes."""

OF_PAIRS = ("column_values_members", "value_columns_members")
"""Files of a partition with an entry for each pair of column and value; others are of values."""

A_BILLION = {
    "columns": 1_000_000_000,
    "tables": 100_000_000,
    "pairs": 30_000_000_000,
    "values": 12_300_000_000,
}
"""The lake of docs/how-to/size-a-cluster.md: 30 values a column, and as many distinct ones, counted
in each partition, as `lwdc` has (602 million in 48.9 million columns)."""

WORKERS, CORES = 40, 16


def constants_of(large: Mapping[str, Any], small: Mapping[str, Any] | None = None) -> Result:
    """Return what one more table, column, value or pair takes.

    Parameters
    ----------
    large : mapping
        ``stages``: by stage, ``processor_seconds`` and of these ``driver_processor_seconds``.
        ``counts``: ``tables``, ``columns``, ``pairs``, and ``values``: distinct ones, each counted
        in every partition that holds it. ``index_bytes``: by kind of file, as
        `benchmarks.cluster.running.kind_of_file` names it. ``scratch_bytes``: the most that the
        build kept beside the index.
    small : mapping, optional
        The same of a smaller lake. What differs between them counts, so that what any build takes
        does not; without it that is spread over the lake.

    Returns
    -------
    dict
        ``seconds``: by stage, processor seconds ``each`` of what it is ``of``, and of these those
        of the ``driver``. ``bytes``: of the index ``per_value``, ``per_pair`` and ``per_column``
        (its catalog), and of the scratch ``scratch_per_pair``.

    Examples
    --------
    >>> one = {
    ...     "stages": {"read": {"processor_seconds": 6.0, "driver_processor_seconds": 1.5}},
    ...     "counts": {"tables": 3, "columns": 10, "values": 20, "pairs": 40},
    ...     "index_bytes": {"partitions/texts.arrow": 100, "catalog/columns.parquet": 50},
    ...     "scratch_bytes": 400,
    ... }
    >>> constants_of(one)["seconds"]
    {'read': {'of': 'tables', 'each': 2.0, 'driver': 0.5}}
    >>> constants_of(one)["bytes"]["per_value"]
    5.0
    """
    more = {name: number - _of(small, "counts", name) for name, number in large["counts"].items()}
    seconds = {}
    for name, stage in large["stages"].items():
        if name in GROWS_WITH:
            before = {} if small is None else small["stages"].get(name, {})
            cost, driver = (
                max(0.0, stage[key] - before.get(key, 0.0)) / more[GROWS_WITH[name]]
                for key in ("processor_seconds", "driver_processor_seconds")
            )
            seconds[name] = {"of": GROWS_WITH[name], "each": cost, "driver": min(cost, driver)}
    sizes = {
        name: size - _of(small, "index_bytes", name) for name, size in large["index_bytes"].items()
    }
    parts = {name: size for name, size in sizes.items() if name.startswith("partitions/")}
    of_pairs = sum(size for name, size in parts.items() if _stem(name) in OF_PAIRS)
    catalog = sum(size for name, size in sizes.items() if name.startswith("catalog/"))
    scratch = large["scratch_bytes"] - (0 if small is None else small["scratch_bytes"])
    return {
        "seconds": seconds,
        "bytes": {
            "per_value": (sum(parts.values()) - of_pairs) / more["values"],
            "per_pair": of_pairs / more["pairs"],
            "per_column": catalog / more["columns"],
            "scratch_per_pair": max(0, scratch) / more["pairs"],
        },
    }


def _of(small: Mapping[str, Any] | None, group: str, name: str) -> int:
    return 0 if small is None else small[group].get(name, 0)


def _stem(name: str) -> str:
    return name.rpartition("/")[2].partition(".")[0]


def scaled(
    constants: Mapping[str, Any],
    counts: Mapping[str, int] = A_BILLION,
    workers: int = WORKERS,
    cores: int = CORES,
) -> Result:
    """Return what a build of another size takes, if every stage grows as `GROWS_WITH` says.

    ``minutes`` of a stage are those of the tasks on all cores; ``driver_minutes`` those of the
    driver, which works alone: at most, since a part of them does not grow with the lake.

    Examples
    --------
    >>> seconds = {"read": {"of": "tables", "each": 0.5, "driver": 0.25}}
    >>> sizes = dict.fromkeys(["per_value", "per_pair", "per_column", "scratch_per_pair"], 10)
    >>> counts = {"columns": 100, "tables": 480, "values": 300, "pairs": 900}
    >>> found = scaled({"seconds": seconds, "bytes": sizes}, counts, workers=2, cores=1)
    >>> found["stages"]["read"]
    {'core_seconds': 240.0, 'minutes': 1.0, 'driver_minutes': 2.0}
    >>> found["index_bytes"], found["scratch_bytes"]
    (13000, 9000)
    """
    stages = {}
    for name, cost in constants["seconds"].items():
        number = counts[cost["of"]]
        tasks = (cost["each"] - cost["driver"]) * number
        stages[name] = {
            "core_seconds": round(cost["each"] * number, 1),
            "minutes": round(tasks / (workers * cores) / 60, 2),
            "driver_minutes": round(cost["driver"] * number / 60, 2),
        }
    sizes = constants["bytes"]
    return {
        "assumed": {**counts, "workers": workers, "cores": workers * cores},
        "stages": stages,
        "core_seconds": round(sum(stage["core_seconds"] for stage in stages.values()), 1),
        "minutes_of_tasks": round(sum(stage["minutes"] for stage in stages.values()), 2),
        "minutes_of_driver": round(sum(stage["driver_minutes"] for stage in stages.values()), 2),
        "index_bytes": round(
            sizes["per_value"] * counts["values"]
            + sizes["per_pair"] * counts["pairs"]
            + sizes["per_column"] * counts["columns"]
        ),
        "scratch_bytes": round(sizes["scratch_per_pair"] * counts["pairs"]),
    }
