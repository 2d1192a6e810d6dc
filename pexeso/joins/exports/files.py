"""Edges in files: JSON lines, CSV and Parquet, drawings, and properties of catalogs."""

from __future__ import annotations

import json
import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from html import escape
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.errors import InputError, OutputError, failing_as
from pexeso.options import DEFAULT_MIN_JOINABILITY
from pexeso.runtime.formatting import either, percent, shown
from pexeso.store.io.temporary import require_free, written_whole

# One row an edge: the share of the distinct values of the left column that match in the right.
EDGES = pa.schema(
    [
        *((name, pa.large_string()) for name in ("left_table", "left_column")),
        *((name, pa.large_string()) for name in ("right_table", "right_column")),
        ("joinability", pa.float64()),  # matched / total
        *((name, pa.int64()) for name in ("matched", "total", "right_total")),
        ("right_unique", pa.bool_()),  # known: no two rows have the same right value
        *((name, pa.int64()) for name in ("left_copies", "right_copies")),
    ]
)

_UNNAMED = re.compile(r"#\d+")


class Edges(Protocol):
    @property
    def options(self) -> dict[str, Any]: ...
    @property
    def n_columns(self) -> int: ...
    @property
    def n_cut(self) -> int: ...

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the edges, of `EDGES`, those of a left column one after the other."""
        ...


def named_rows(edges: Edges) -> Iterator[dict[str, Any]]:
    """Yield the edges between columns that have a name, for tools that know columns by names."""
    for batch in edges.batches():
        for row in batch.to_pylist():
            names = (row["left_column"], row["right_column"])
            if not any(_UNNAMED.fullmatch(name) for name in names):
                yield row


_ORDER = [
    *((name, "descending") for name in ("joinability", "matched")),
    *((name, "ascending") for name in EDGES.names[:4]),
]


def strongest(batches: Iterable[pa.RecordBatch], limit: int) -> tuple[pa.Table, int]:
    """Return the strongest edges, and how many there are; it holds few more than it returns."""
    best, n_edges = EDGES.empty_table(), 0
    for batch in batches:
        n_edges += batch.num_rows
        best = pa.concat_tables([best, pa.Table.from_batches([batch])])
        best = best.sort_by(_ORDER).slice(0, limit).combine_chunks()
    return best, n_edges


Piece = str | pa.Array


def written(values: pa.Array, write: Callable[[object], str]) -> pa.Array:
    """Return a text for each value; `write` is called once for each distinct one."""
    encoded = values.dictionary_encode()
    texts = [write(value) for value in encoded.dictionary.to_pylist()]
    return pa.array(texts, pa.large_string()).take(encoded.indices)


def joined(pieces: Iterable[Piece]) -> pa.Array:
    """Return a text for each edge: pieces one after the other, texts the same for all."""
    kind = pa.large_string()
    texts = [
        pa.scalar(piece, kind) if isinstance(piece, str) else piece.cast(kind) for piece in pieces
    ]
    return pc.binary_join_element_wise(*texts, pa.scalar("", kind))


# What tables of the lake are called elsewhere, where nothing else is given.
NAMESPACE = "lake"


@dataclass(frozen=True)
class ExportFormat:
    """A format of files of edges; `lines` gives them, of a namespace, for all but tables."""

    name: str
    suffix: str
    lines: Callable[[Edges, str], Iterable[Iterable[str]]] | None = None
    file: str | None = None
    min_joinability: float = DEFAULT_MIN_JOINABILITY
    equal_values: bool = False
    levels: tuple[str, ...] = ()

    def write(self, edges: Edges, path: Path, namespace: str) -> None:
        if self.lines is not None:
            with path.open("w", encoding="utf-8", newline="\n") as stream:
                for some in self.lines(edges, namespace):
                    stream.writelines(f"{line}\n" for line in some)
            return
        import pyarrow.csv as csv
        import pyarrow.parquet as pq

        writer = csv.CSVWriter if self.suffix == ".csv" else pq.ParquetWriter
        with writer(path, EDGES) as table:
            for batch in edges.batches():
                table.write_batch(batch)


def namespace_parts(namespace: str) -> list[str]:
    """Return the names that a namespace is made of; none if it is not well formed.

    Examples
    --------
    >>> namespace_parts('files."a.b".lake'), namespace_parts("files..lake")
    (['files', '"a.b"', 'lake'], [])
    """
    part = r'(?:"[^"]+"|[^".]+)'
    return re.findall(part, namespace) if re.fullmatch(rf"{part}(\.{part})*", namespace) else []


# Edges as properties of dbt: `relationships` tests of columns, with what was measured.
#
# The tables of the lake are the tables of one source. A column whose values are all in another
# (or a given share of them, with a smaller joinability) gets a test. Its severity is `warn`:
# values were compared without regard to case, accents and the like, and dbt compares them
# unchanged. The arguments of tests are under `arguments`, as dbt reads them from version 1.10.5
# on.
#
# The file is JSON, which is YAML as well. Names are quoted three times over: for YAML, for Jinja,
# which dbt renders names with, and in SQL, by the double quotes of the standard.

FILE = "lake_joins.yml"

# What begins a block, and line breaks, which Jinja makes alike or drops at the end.
_JINJA = re.compile(r"[{\r\n]+[%#]?")
# What YAML takes for a line break, or cannot hold, though JSON can.
_NO_YAML = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


def _dbt_lines(edges: Edges, source: str) -> Iterator[Iterable[str]]:
    quoting = {"identifier": True}
    yield [
        '{"version": 2, "sources": [',
        f'{{"name": {yaml(in_jinja(source))}, "quoting": {yaml(quoting)},',
    ]
    yield ['"tables": [']
    before, children, parents = "", set(), set()
    for table, of_table in groupby(named_rows(edges), itemgetter("left_table")):
        columns = []
        for name, of_column in groupby(of_table, itemgetter("left_column")):
            tests = list(of_column)
            parents.update(row["right_table"] for row in tests)
            columns.append(_column(name, tests, source))
        children.add(table)
        yield [f"{before}{yaml({'name': in_jinja(table), 'columns': columns})}"]
        before = ","
    # dbt refuses a test whose parent it does not know.
    for table in sorted(parents - children):
        yield [f"{before}{yaml({'name': in_jinja(table)})}"]
    yield ["]}]}"]


def _column(name: str, rows: list[dict[str, Any]], source: str) -> dict[str, Any]:
    return {
        "name": in_jinja(name),
        "quote": True,
        "description": in_jinja(_description(rows)),
        "data_tests": [{"relationships": _test(row, source)} for row in rows],
    }


def _description(rows: list[dict[str, Any]]) -> str:
    sentences = []
    for row in rows:
        is_whole = row["matched"] == row["total"]
        share = "All" if is_whole else f"{percent(row['joinability'])} of"
        unique = ", which is unique" if row["right_unique"] else ""
        column = f"{row['right_table']}:{row['right_column']}"
        sentences.append(f"{share} {row['total']:,} distinct values are in {column}{unique}.")
    return " ".join(sentences)


def _test(row: dict[str, Any], source: str) -> dict[str, Any]:
    meta = {name: row[name] for name in ("joinability", "matched", "total")}
    table = json.dumps(row["right_table"], ensure_ascii=False)
    column = row["right_column"].replace('"', '""')
    return {
        "arguments": {
            "to": f"source({json.dumps(source)}, {table})",
            "field": in_jinja(f'"{column}"'),
        },
        "config": {"severity": "warn", "meta": {**meta, "parent_is_unique": row["right_unique"]}},
    }


def in_jinja(text: str) -> str:
    return _JINJA.sub(lambda match: f"{{{{ {match[0]!r} }}}}", text)


def yaml(value: Any) -> str:
    """Return a value as JSON on one line that YAML readers take as it is."""
    text = json.dumps(value, ensure_ascii=False)
    return _NO_YAML.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


DBT = ExportFormat("dbt", ".yml", _dbt_lines, file=FILE, min_joinability=1.0, equal_values=True)


# What OpenMetadata's own ingestion writes for what names must not have.
_RESERVED = {'"': "__reserved__quote__", "::": "__reserved__colon__", ">": "__reserved__arrow__"}

_HELD = re.compile("[^\n\r\x85\u2028\u2029]{1,256}")
_NAMES = ("left_table", "left_column", "right_table", "right_column")


def _openmetadata_lines(edges: Edges, namespace: str) -> Iterator[list[str]]:
    today = datetime.now(UTC).date().isoformat()
    rows = (
        row
        for row in named_rows(edges)
        if all(_HELD.fullmatch(local_name(row[name])) for name in _NAMES)
    )
    for table, of_table in groupby(rows, itemgetter("left_table")):
        columns = [
            {
                "columnName": local_name(name),
                "joinedWith": [
                    {
                        "fullyQualifiedName": qualified(
                            namespace, row["right_table"], row["right_column"]
                        ),
                        "joinCount": row["matched"],
                    }
                    for row in of_column
                ],
            }
            for name, of_column in groupby(of_table, itemgetter("left_column"))
        ]
        joins = {"startDate": today, "dayCount": 1, "columnJoins": columns}
        line = {"table": qualified(namespace, table), "joins": joins}
        yield [json.dumps(line, ensure_ascii=False)]


def local_name(name: str) -> str:
    for text, instead in _RESERVED.items():
        name = name.replace(text, instead)
    return name


def qualified(namespace: str, *names: str) -> str:
    """Return a fully qualified name; names with a dot are quoted."""
    local = [local_name(name) for name in names]
    return ".".join([namespace, *(f'"{name}"' if "." in name else name for name in local)])


OPENMETADATA = ExportFormat(
    "openmetadata", ".jsonl", _openmetadata_lines, levels=("SERVICE", "DATABASE", "SCHEMA")
)


def json_lines(batch: pa.RecordBatch) -> pa.Array:
    pieces: list[Piece] = []
    for at, field in enumerate(EDGES):
        pieces.append(f"{', ' if at else '{'}{json.dumps(field.name)}: ")
        pieces.append(written(batch.column(at), partial(json.dumps, ensure_ascii=False)))
    return joined([*pieces, "}"])


JSONL = ExportFormat(
    "jsonl",
    ".jsonl",
    lambda edges, _: (json_lines(batch).to_pylist() for batch in edges.batches()),
)
CSV = ExportFormat("csv", ".csv")
PARQUET = ExportFormat("parquet", ".parquet")


_NODE_KEYS = {"table": "string", "column": "string", "copies": "long"}
_EDGE_KEYS = {
    "joinability": "double",
    "matched": "long",
    "total": "long",
    "right_total": "long",
    "right_unique": "boolean",
}
_NO_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def _graphml_lines(edges: Edges, _namespace: str) -> Iterator[Iterable[str]]:
    yield [
        '<?xml version="1.0" encoding="UTF-8"?>',
        '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">',
        *(_key(name, "node", kind) for name, kind in _NODE_KEYS.items()),
        *(_key(name, "edge", kind) for name, kind in _EDGE_KEYS.items()),
        '<graph id="joins" edgedefault="directed">',
    ]
    known: dict[tuple[str, str], int] = {}
    for batch in edges.batches():
        new: list[str] = []
        ends = [_numbered(batch, side, known, new) for side in ("left", "right")]
        yield new
        yield _edges(batch, *ends).to_pylist()
    yield ["</graph>", "</graphml>"]


def _key(name: str, domain: str, kind: str) -> str:
    return f'<key id="{name}" for="{domain}" attr.name="{name}" attr.type="{kind}"/>'


def _numbered(
    batch: pa.RecordBatch, side: str, known: dict[tuple[str, str], int], new: list[str]
) -> pa.Array:
    """Return the numbers of the columns at one end, and add the lines of new ones."""
    names = [f"{side}_{field}" for field in ("table", "column", "copies")]
    rows = pa.Table.from_batches([batch]).select(names)
    at = pa.array(np.arange(rows.num_rows))
    distinct = rows.append_column("at", at).group_by(names, use_threads=False)
    groups = distinct.aggregate([("at", "list")])
    numbers = np.empty(rows.num_rows, np.int64)
    for table, column, copies, positions in zip(
        *(groups[name].to_pylist() for name in names), groups["at_list"], strict=True
    ):
        if (table, column) not in known:
            known[table, column] = len(known)
            values = zip(_NODE_KEYS, (_xml_text(table), _xml_text(column), copies), strict=True)
            data = "".join(f'<data key="{name}">{value}</data>' for name, value in values)
            new.append(f'<node id="n{known[table, column]}">{data}</node>')
        numbers[positions.values.to_numpy()] = known[table, column]
    return pa.array(numbers)


def _edges(batch: pa.RecordBatch, left: pa.Array, right: pa.Array) -> pa.Array:
    pieces = ['<edge source="n', left, '" target="n', right, '">']
    for name in _EDGE_KEYS:
        values = written(batch.column(name), lambda value: str(value).lower())
        pieces += [f'<data key="{name}">', values, "</data>"]
    return joined([*pieces, "</edge>"])


def _xml_text(value: str) -> str:
    # XML readers turn a carriage return into a new line, unless it is written by its number.
    return escape(_NO_XML.sub("\ufffd", value), quote=False).replace("\r", "&#13;")


GRAPHML = ExportFormat("graphml", ".graphml", _graphml_lines)


# Lines that Mermaid draws unless its setting `maxEdges` says otherwise.
MAX_EDGES = 500

_PLAIN = re.compile(r"[^\w .,/-]")

Column = tuple[str, str]


def mermaid_lines(edges: Edges) -> Iterator[str]:
    best, n_edges = strongest(edges.batches(), MAX_EDGES)
    rows = best.sort_by([(name, "ascending") for name in EDGES.names[:4]]).to_pylist()
    yield "flowchart LR"
    if n_edges > len(rows):
        yield f"%% {n_edges - len(rows)} more edges, of smaller joinability or fewer values"
    columns = sorted({end for row in rows for end in _ends(row)})
    numbers = {column: f"c{number}" for number, column in enumerate(columns)}
    by_table: dict[str, list[Column]] = defaultdict(list)
    for column in columns:
        by_table[column[0]].append(column)
    for number, (table, members) in enumerate(by_table.items()):
        if len(members) == 1:
            column = members[0]
            names = f"{_mermaid_text(table)}<br/>{_mermaid_text(column[1])}"
            yield f'  {numbers[column]}["{names}"]'
            continue
        yield f'  subgraph t{number}["{_mermaid_text(table)}"]'
        for column in members:
            yield f'    {numbers[column]}["{_mermaid_text(column[1])}"]'
        yield "  end"
    yield from _arrows(rows, numbers)


def _arrows(rows: list[dict[str, Any]], numbers: dict[Column, str]) -> Iterator[str]:
    by_ends = {_ends(row): percent(row["joinability"]) for row in rows}
    for (left, right), share in by_ends.items():
        back = by_ends.get((right, left))
        if back is None:
            yield f'  {numbers[left]} -->|"{share}"| {numbers[right]}'
        elif left < right:
            both = share if share == back else f"{share} / {back}"
            yield f'  {numbers[left]} <-->|"{both}"| {numbers[right]}'


def _ends(row: dict[str, Any]) -> tuple[Column, Column]:
    left, right = ((row[f"{side}_table"], row[f"{side}_column"]) for side in ("left", "right"))
    return left, right


def _mermaid_text(text: str) -> str:
    """Return a text as Mermaid reads it between quotes.

    What may mean something to Mermaid, HTML or Markdown is written by its number. Letters and
    digits of all scripts stay as they are.
    """
    return _PLAIN.sub(lambda match: f"#{ord(match[0])};", text) or " "


MERMAID = ExportFormat("mermaid", ".mmd", lambda edges, _: [mermaid_lines(edges)])


# Options of a graph, and what the map of the lake calls them.
_MAP_FACTS = {
    "method": "method",
    "min_joinability": "share of values at least",
    "max_distance": "distance at most",
    "k": "joins of a column at most",
}


def _map_lines(edges: Edges, namespace: str) -> Iterator[Iterable[str]]:
    from pexeso.results.pages.lake_map import EDGES_READ, lake_map, map_page

    best, n_edges = strongest(edges.batches(), EDGES_READ)
    options = {_MAP_FACTS.get(name): fact for name, fact in edges.options.items()}
    facts = {label: fact for label, fact in options.items() if label and fact is not None}
    if edges.options.get("fold_copies"):
        facts["copies"] = "folded"
    facts |= {"columns": edges.n_columns, "joins": n_edges, "columns with more joins": edges.n_cut}
    yield [map_page(lake_map(best), facts)]


MAP = ExportFormat("map", ".html", _map_lines)

# Formats by the ending of a file name.
OF_FILES = {
    file_format.suffix: file_format for file_format in (JSONL, CSV, PARQUET, MERMAID, GRAPHML, MAP)
}

# Formats for other tools, by name.
FORMATS = {
    export_format.name: export_format for export_format in (DBT, OPENMETADATA, MERMAID, GRAPHML)
}


def format_of_file(path: str) -> ExportFormat:
    export_format = OF_FILES.get(Path(path).suffix.lower())
    if export_format is None:
        raise InputError(f"A file of a join graph must end in {either(OF_FILES)}. Got {path!r}.")
    return export_format


def format_named(name: str) -> ExportFormat:
    if name not in FORMATS:
        raise InputError(f"format must be one of {', '.join(FORMATS)}. Got {shown(name)} instead.")
    return FORMATS[name]


def write_export(
    form: ExportFormat,
    edges: Edges,
    path: str | os.PathLike[str],
    *,
    namespace: str = NAMESPACE,
    overwrite: bool = False,
) -> Path:
    target = target_of(form, path, overwrite=overwrite)
    folders = [] if form.file is None else _make_folder(target.parent)
    try:
        with written_whole(target, overwrite=overwrite) as temporary:
            form.write(edges, temporary, namespace)
    except BaseException:
        with suppress(OSError):  # somebody else has put something into it
            for folder in folders:
                folder.rmdir()
        raise
    return target


def _make_folder(folder: Path) -> list[Path]:
    """Make a folder that may be there, and return those that were made, the innermost first."""
    absent = [path for path in (folder, *folder.parents) if not os.path.exists(path)]
    with failing_as(OutputError, f"The folder '{folder}' cannot be made"):
        folder.mkdir(parents=True, exist_ok=True)
    return absent


def target_of(form: ExportFormat, path: str | os.PathLike[str], *, overwrite: bool) -> Path:
    """Return the file that edges go to; refuse one that exists, or is in no folder."""
    target = Path(path) if form.file is None else Path(path) / form.file
    if form.file is None or os.path.lexists(target):  # a folder that is absent is made
        require_free(target, overwrite=overwrite)
    return target
