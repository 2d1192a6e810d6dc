"""Tables of experiments on speed, from their results.

Times are processor time of a query column, medians, where nothing else is said.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from pathlib import PurePath
from statistics import median
from typing import Any

from benchmarks.report import markdown_table

Result = Mapping[str, Any]

PUBLISHED = "published"
PAPER = {
    "swdc": ("12.8 s", "12.3", "56.7", "58.2"),
    "open": ("51.8 s", "3.4", "17.1", "17.8"),
    "lwdc": ("603 s", "11.3", "over 11.9", "over 11.9"),
}
"""Table VII at 6 % and 60 %: PEXESO, and PEXESO-H, EPT and cover tree in multiples of it."""


def duration(seconds: float) -> str:
    """Return seconds in two digits, three from a hundred on, in a unit that suits.

    Examples
    --------
    >>> [duration(seconds) for seconds in (61e-6, 0.00346, 0.0514, 0.18, 0.9949, 2.53, 174.4)]
    ['61 µs', '3.5 ms', '51 ms', '180 ms', '995 ms', '2.5 s', '174 s']
    """
    units = (("s", 1), ("ms", 1e-3), ("µs", 1e-6))
    unit, size = next((pair for pair in units if seconds >= 0.9995 * pair[1]), units[-1])
    number = seconds / size
    return f"{number:.0f} {unit}" if number >= 9.95 else f"{number:.1f} {unit}"


def counted(number: float) -> str:
    """Return a count in at most four digits.

    Examples
    --------
    >>> [counted(number) for number in (160, 1036, 32_400, 623_100, 3_062_148, 12.4e6)]
    ['160', '1,036', '32 k', '623 k', '3.1 M', '12 M']
    """
    if number < 9_995:
        return f"{number:,.0f}"
    number, unit = (number / 1e3, "k") if number < 999_500 else (number / 1e6, "M")
    return f"{number:.0f} {unit}" if number >= 9.95 else f"{number:.1f} {unit}"


def share(scale: float) -> str:
    """Return a share as a fraction.

    Examples
    --------
    >>> share(0.005), share(1.0)
    ('1/200', 'whole')
    """
    return "whole" if scale == 1 else f"1/{round(1 / scale):,}"


def lake_of(result: Result) -> str:
    """Return how a table calls the lake of a result: its name, and its share where it has one."""
    lake = result.get("lake") or result["lakes"][0]
    scale = lake.get("scale") or result.get("settings", {}).get("scale")
    return f"`{lake['name']}`" + (f" {share(scale)}" if scale else "")


_FIGURES: Mapping[str, Callable[[float], str]] = {
    "median_seconds": duration,
    "p90_seconds": duration,
    "median_processor_seconds": duration,
    "distances": counted,
    "bytes_read": counted,
    "index_bytes": counted,
    "build_seconds": duration,
    "recall": "{:.1%}".format,
    "precision": "{:.1%}".format,
}
"""What is printed of an algorithm, and how."""


def _figures(values: Result) -> list[str]:
    return [
        "-" if values[name] is None else shown(values[name]) for name, shown in _FIGURES.items()
    ]


def run_text(result: Result) -> str:
    """Return a run as text: a line an algorithm, times by size of the query column, the verdict."""
    ratios = result["ratios_to_pexeso"]
    rows = [
        [name, *_figures(values), f"{ratios[name]:.2f}" if name in ratios else ""]
        for name, values in result["algorithms"].items()
    ]
    manner = "in one batch" if result["batch"] else "one at a time"
    lines = [
        f"{lake_of(result)}: {result['queries']} query columns, {manner}",
        markdown_table([manner, *_FIGURES, "/ pexeso"], rows),
        *([_sizes([result])] if result["by_size"] else []),
        _verdict(result),
    ]
    return "\n\n".join(lines)


def sweep_text(result: Result) -> str:
    """Return a sweep as text: a line a point and algorithm, and the verdict."""
    over = result["declared"]["over"]
    rows = [
        ["" if row["value"] is None else f"{row['value']:g}", row["algorithm"], *_figures(row)]
        for row in result["rows"]
    ]
    table = markdown_table([over, "", *_FIGURES], rows)
    return "\n\n".join([result["declared"]["title"], table, _verdict(result)])


def _verdict(result: Result) -> str:
    if result["agree"]:
        return "All answers agree."
    return "\n".join(["ANSWERS DIFFER", *result["differences"][:10]])


def _grouped(rows: Sequence[Result], key: Callable[[Result], Hashable]) -> dict[Any, list[Result]]:
    groups: dict[Any, list[Result]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return groups


def _named(algorithm: str) -> str:
    return f"`{algorithm}`{' (default)' if algorithm == 'pexeso' else ''}"


_VARIED = {
    "max_distance": ("`max_distance`", "{:.0%}"),
    "min_joinability": ("`min_joinability`", "{:.0%}"),
    "columns": ("columns", "{:,}"),
    "rows": ("share of the rows", "{:.0%}"),
    "dimensions": ("dimensions", "{}"),
}


def _sweep(result: Result) -> str:
    """One line an algorithm, one column a value of what is varied."""
    over = result["declared"]["over"]
    label, form = _VARIED[over]
    points = {
        name: {
            row["columns" if over == "columns" else "value"]: row["median_processor_seconds"]
            for row in rows
        }
        for name, rows in _grouped(result["rows"], lambda row: row["algorithm"]).items()
    }
    values = list(next(iter(points.values())))
    return markdown_table(
        [f"{lake_of(result)}, by {label}", *(form.format(value) for value in values)],
        [
            [_named(name), *(duration(seconds[value]) for value in values)]
            for name, seconds in points.items()
        ],
    )


def _pivots(results: Sequence[Result]) -> str:
    """Table VI: pivots and levels, with the choice of the cost model."""
    lines = []
    for result in results:
        groups = _grouped(result["rows"], lambda row: row["arguments"]["n_pivots"])
        for n_pivots, group in groups.items():
            rows = {row["arguments"]["n_levels"]: row for row in group}
            chosen = rows.pop(None)
            seconds = {level: row["median_processor_seconds"] for level, row in rows.items()}
            best = min(seconds.values())
            cells = [
                f"**{duration(time)}**" if time == best else duration(time)
                for time in seconds.values()
            ]
            elapsed = chosen["median_processor_seconds"]
            model = f"{chosen['chosen']['n_levels']}: {duration(elapsed)}, {elapsed / best:.2f}x"
            lines.append([lake_of(result), str(n_pivots), *cells, model])
    return markdown_table(
        ["data set", "pivots", *(f"{level} levels" for level in seconds), "the cost model chooses"],
        lines,
    )


def _role(algorithm: str) -> str:
    return algorithm.split(":")[0] if PUBLISHED not in algorithm or "_h" in algorithm else PUBLISHED


def _against_paper(results: Sequence[Result]) -> str:
    """Table VII at 6 % and 60 % beside the paper's, in multiples of the published method."""
    columns: list[list[str]] = []
    for result in results:
        seconds = {
            _role(name): row["median_processor_seconds"]
            for name, row in result["algorithms"].items()
        }
        unit = seconds[PUBLISHED]
        cells = [duration(unit)] + [
            f"{seconds[role] / unit:.2f}" if role in seconds else "not run"
            for role in ("pexeso_h", "ept", "ball_tree", "pexeso")
        ]
        columns += [[*PAPER[result["data"]], ""], cells]
    names = [
        "published",
        "PEXESO-H, `pexeso_h`",
        "EPT, `ept`",
        "cover tree, `ball_tree`",
        "`pexeso`, the default",
    ]
    head = [
        text for result in results for text in (f"paper: {result['data'].upper()}", lake_of(result))
    ]
    return markdown_table(
        ["", *head],
        [[name, *(column[line] for column in columns)] for line, name in enumerate(names)],
    )


def _distances(results: Sequence[Result]) -> str:
    """Figure 6: distances computed by distance, and bytes of the index."""
    lines, values = [], []
    for result in results:
        points = _grouped(result["rows"], lambda row: row["algorithm"])
        values = [row["value"] for row in result["rows"] if row["algorithm"] == "pexeso"]
        lines += [
            [
                lake_of(result),
                _named(name),
                *(counted(row["distances"]) for row in rows),
                f"{rows[0]['index_bytes'] / 1e6:,.0f} MB",
            ]
            for name, rows in points.items()
        ]
    return markdown_table(["data set", "", *(f"{value:.0%}" for value in values), "index"], lines)


def _sizes(results: Sequence[Result]) -> str:
    """By the clock, by the number of query values; of the same query columns of one lake."""
    spans = ["{:,} to {:,}".format(*group["values"]) for group in results[0]["by_size"]]
    return markdown_table(
        [f"{lake_of(results[0])}, by query values", *spans],
        [
            [_named(name), *(duration(size["median_seconds"][name]) for size in result["by_size"])]
            for result in results
            for name in result["algorithms"]
        ],
    )


def _pivot_choice(results: Sequence[Result]) -> str:
    """Figure 7a: pivots by principal axes and at random, by seeds."""
    lines = []
    for result in results:
        groups = _grouped(
            [row["arguments"] | row for row in result["rows"]],
            lambda row: (row["n_pivots"], row["pivot_choice"]),
        )
        lines += [
            [
                lake_of(result),
                str(n_pivots),
                "principal axes" if choice == "pca" else choice,
                ", ".join(counted(row["distances"]) for row in rows),
                ", ".join(duration(row["median_processor_seconds"]) for row in rows),
            ]
            for (n_pivots, choice), rows in groups.items()
        ]
    return markdown_table(["data set", "pivots", "chosen", "distances, three seeds", "time"], lines)


def _partitions(results: Sequence[Result]) -> str:
    """Figure 7b: groups of columns, by the clock, in multiples of Jensen-Shannon."""
    lines = [
        [
            lake_of(result),
            str(result["settings"]["partitions"]),
            method,
            f"{result['summary'][method]['ratio_to_jensen-shannon']:.2f}",
            f"{result['summary'][method]['median_bytes_read'] / 1e6:,.0f} MB",
            f"{index['bytes'] / 1e6:,.0f} MB",
        ]
        for result in results
        for method, index in result["indexes"].items()
    ]
    head = ["data set", "partitions", "grouped by", "time against Jensen-Shannon", "looked at"]
    return markdown_table([*head, "index"], lines)


def _approximate(results: Sequence[Result]) -> str:
    """Figure 8: approximate rivals beside exact search."""
    lines = [
        [
            lake_of(result),
            _named(name),
            duration(row["median_processor_seconds"]),
            f"{row['recall']:.1%}",
            f"{row['precision']:.1%}",
            duration(row["build_seconds"]),
        ]
        for result in results
        for name, row in result["algorithms"].items()
    ]
    return markdown_table(
        ["data set", "", "time", "columns found", "of those right", "build, by the clock"], lines
    )


def _out_of_core(results: Sequence[Result]) -> str:
    """Growth of a lake that is searched from the disk, by the clock."""
    lines = []
    for result in results:
        lake, figures = result["lake"], result["summary"]["jensen-shannon"]
        rows, dimensions = result["settings"]["rows"], result["settings"].get("dimensions")
        what = "" if rows == 1 else f", {rows:.0%} of the rows"
        what += "" if dimensions is None else f", {dimensions} dimensions"
        lines.append(
            [
                f"{lake['columns']:,}{what}",
                f"{lake['values']:,}",
                duration(figures["median_seconds"]),
                f"{figures['median_bytes_read'] / 1e6:.1f} MB, "
                f"{figures['median_share_of_vector_bytes']:.1%}",
                duration(result["summary"]["in memory"]["median_seconds"]),
            ]
        )
    return markdown_table(
        ["columns", "values", "mapped", "looked at, of the vectors", "in memory"], lines
    )


def _filters(result: Result) -> str:
    """Return an ablation: each set of filters, what it leaves, and its time against all."""
    rows = result["rows"]
    every = rows[0]["arguments"]["lemmas"]
    unit = rows[0]["median_processor_seconds"]
    lines = []
    for row in rows:
        used = row["arguments"]["lemmas"]
        off = [lemma for lemma in every if lemma not in used]
        name = f"{', '.join(used)} alone" if len(used) < len(off) else f"without {', '.join(off)}"
        name = "all" if not off else name if used else "none"
        seconds = row["median_processor_seconds"]
        counts = [f"{row[counter]:,.0f}" for counter in ("distances", "vectors_touched")]
        lines.append([name, *counts, duration(seconds), f"{seconds / unit:.2f}x"])
    head = [f"{lake_of(result)}: filters", "distances", "vectors looked at", "time", "against all"]
    return markdown_table(head, lines)


_OVERLAP = ("MergeList", "ProbeSet", "JOSIE, published", "JOSIE", "planner")
_QUERY, _RIVAL = "(10, 1000)", "SetSimilaritySearch"


def _overlap_studies(results: Sequence[Result]) -> Iterator[tuple[list[str], Result]]:
    """Yield the name and the number of sets of each lake, and the figures of each method."""
    for result in results:
        for lake, study in result.items():
            if isinstance(study, Mapping) and _QUERY in study:
                name = "power law" if lake.isdigit() else f"`{lake}`"
                yield [name, f"{study['sets']:,}"], study[_QUERY].get("k=10", {})


def _overlap(results: Sequence[Result]) -> str:
    """JOSIE beside merging lists and probing sets: the ten largest overlaps."""
    lines = [
        [
            *lake,
            method,
            duration(methods[method]["median_ms"] / 1e3),
            f"{methods[method]['lists']:.0f}",
            f"{methods[method]['sets']:.0f}",
            f"{methods[method]['n_bytes'] / 1e3:,.0f} kB",
        ]
        for lake, methods in _overlap_studies(results)
        for method in _OVERLAP
        if method in methods
    ]
    head = ["lake", "sets", "method", "time, by the clock", "lists read", "sets read", "bytes read"]
    return markdown_table(head, lines)


def _set_similarity(results: Sequence[Result]) -> str:
    """Return the time of SetSimilaritySearch over that of counting by compiled loops, quartiles."""
    lines = [
        [*lake, "{1:.1f} ({0:.1f} to {2:.1f})".format(*methods[_RIVAL]["times_merge_list"])]
        for lake, methods in _overlap_studies(results)
        if _RIVAL in methods
    ]
    return markdown_table(["lake", "columns", "it takes, times pexeso"], lines)


_BANDS = ("0.5", "0.6", "0.7", "0.8", "0.9", "1.0")


def _containment(results: Sequence[Result]) -> str:
    """LSH Ensemble: what signatures name, before it is counted, by threshold."""
    head = ["lake", "sets", "of the candidates by bands", *_BANDS]
    lines = []
    for result in results:
        bands = {limit: result[limit]["bands"] for limit in _BANDS if limit in result}
        for name, key in (("found, of all", "recall"), ("right", "precision_of_candidates")):
            cells = [f"{bands[limit][key]:.1%}" if limit in bands else "" for limit in _BANDS]
            lake = "power law" if result["data"] == "power" else f"`{result['data']}`"
            lines.append([lake, f"{result['sets']:,}", name, *cells])
    return markdown_table(head, lines)


def _rivals(results: Sequence[Result]) -> str:
    """Return the speed of pexeso and rivals, by the clock, with how many times longer they take."""
    names = list(dict.fromkeys(name for result in results for name in result["algorithms"]))
    lines = []
    for result in results:
        cells = []
        for name in names:
            figures = result["algorithms"].get(name)
            ratio = result["ratios_to_pexeso"].get(name)
            cells.append("" if figures is None else duration(figures["median_seconds"]))
            cells[-1] += "" if ratio is None else f" ({ratio:.0f}x)"
        batch = "one at a time" if result["batch"] is None else "in a batch, each"
        lines.append([lake_of(result), batch, *cells])
    return markdown_table(["data set", "query columns", *map(_named, names)], lines)


def _from_disk(results: Sequence[Result]) -> str:
    """Return searches of a lake on disk, by the clock, with pages in memory and without."""
    lines = []
    for result in results:
        warm, cold = result["summary"]["jensen-shannon"], result["summary"]["cold"]
        read = warm["median_bytes_read"], cold["median_disk_bytes"]
        lines.append(
            [
                lake_of(result),
                f"{result['lake']['values']:,}",
                duration(warm["median_seconds"]),
                f"{read[0] / 1e6:,.0f} MB, {warm['median_share_of_vector_bytes']:.2%}",
                duration(cold["median_seconds"]),
                f"{read[1] / 1e6:,.0f} MB, {cold['median_share_of_vector_bytes']:.2%}",
                f"{result['own_peak_bytes'] / 1e6:,.0f} MB",
            ]
        )
    head = ["data set", "values", "pages in memory", "looked at, of the vectors"]
    head += ["nothing in memory", "read from disk, of the vectors", "own memory"]
    return markdown_table(head, lines)


def _datasketch(results: Sequence[Result]) -> str:
    """Return containment search beside datasketch, at the thresholds that both were asked for."""
    lines = []
    for result in results:
        for limit in _BANDS:
            both = result["datasketch"].get(limit)
            if both is None:
                continue
            ours, theirs = both["pexeso"], both["datasketch"]
            lines.append(
                [
                    "power law" if result["data"] == "power" else f"`{result['data']}`",
                    f"{result['sets']:,}",
                    limit,
                    f"{both['its_threshold']:g}",
                    duration(ours["median_seconds"]),
                    duration(theirs["median_seconds"]),
                    f"{theirs['times_the_first']['median']:.1f}",
                    f"{theirs['recall']:.3f}",
                    f"{theirs['precision']:.4f}",
                ]
            )
    head = ["lake", "sets", "threshold", "its own", "pexeso", "datasketch", "times pexeso"]
    return markdown_table([*head, "its recall", "its precision"], lines)


_FILTERS = ("SCR", "xash-128", "xash-512", "bloom-128", "MCR")
_MADE_UP = {
    "tpch": "TPC-H",
    "power-law": "power law",
    "containment": "versions of files (`containment`)",
}
_WAYS = ("none", "xash", "bloom", "intersection", "auto")


def _keys(results: Sequence[Result]) -> str:
    """MATE: rows that a filter lets through and that do not hold the key, and times of queries."""
    lines = []
    for result in results:
        lake = PurePath(result["file"]).stem
        for columns in ("2", "3"):
            figures = result[f"{columns} columns"]
            lines.append(
                [
                    _MADE_UP.get(lake, f"`{lake}`"),
                    columns,
                    *(counted(figures["filters"][name]["false_positives"]) for name in _FILTERS),
                    *(duration(figures["choice"][way]["median_ms"] / 1e3) for way in _WAYS),
                ]
            )
    head = ["lake", "key columns", "no filter", *_FILTERS[1:4], "intersected"]
    return markdown_table([*head, *(f"median: {way}" for way in _WAYS)], lines)


def _redundancy(results: Sequence[Result]) -> str:
    """R2D2: contained tables, by the clock beyond the start of Spark."""
    lines = []
    for result in results:
        lake = PurePath(result["file"]).stem
        searches = [result[way] for way in ("exact", "plan", "published")]
        lines.append(
            [
                "derived" if lake.startswith("derived") else _MADE_UP.get(lake, f"`{lake}`"),
                f"{result['tables']:,}",
                f"{result['bytes'] / 1e6:,.0f}",
                f"{result['contained']:,}",
                *(f"{search['median_seconds']:.1f}" for search in searches),
                f"{searches[-1]['precision']:.0%}",
            ]
        )
    head = ["lake", "tables", "MB", "contained pairs", "exact, s", "plan, s", "published, s"]
    return markdown_table([*head, "published precision"], lines)


def _plans(result: Result) -> str:
    """Seconds to the proof that no plan of deletions is better, by tables and graph."""
    groups = _grouped(result["solver"], lambda row: row["tables"])
    names = {"versions": "versions of files"}
    graphs = [row["graph"] for row in next(iter(groups.values()))]
    return markdown_table(
        ["tables", *(names.get(graph, graph) for graph in graphs)],
        [
            [f"{tables:,}", *(f"{median(row['seconds']):.2f}" for row in rows)]
            for tables, rows in groups.items()
        ],
    )


KINDS: Mapping[str, Callable[[Sequence[Result]], str]] = {
    "against-paper": _against_paper,
    "approximate": _approximate,
    "containment": _containment,
    "datasketch": _datasketch,
    "distances": _distances,
    "from-disk": _from_disk,
    "keys": _keys,
    "out-of-core": _out_of_core,
    "overlap": _overlap,
    "partitions": _partitions,
    "pivot-choice": _pivot_choice,
    "pivots": _pivots,
    "redundancy": _redundancy,
    "rivals": _rivals,
    "set-similarity": _set_similarity,
    "sizes": _sizes,
}
KINDS_OF_ONE: Mapping[str, Callable[[Result], str]] = {
    "filters": _filters,
    "plans": _plans,
    "sweep": _sweep,
}
