"""Edges as properties of dbt: `relationships` tests of columns, with what was measured.

The tables of the lake are the tables of one source. A column whose values are all in another (or a
given share of them, with a smaller joinability) gets a test. Its severity is `warn`: values were
compared without regard to case, accents and the like, and dbt compares them as they stand.
The arguments of tests stand under `arguments`, as dbt reads them from version 1.10.5 on.

The file is JSON, which is YAML as well. Names are quoted three times over: for YAML, for Jinja,
which dbt renders names with, and in SQL, by the double quotes of the standard.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from pexeso.joins.exports.edges import Edges, named_rows
from pexeso.joins.exports.formats import ExportFormat, Naming
from pexeso.joins.exports.lines import write_lines
from pexeso.runtime.formatting import percent

FILE = "lake_joins.yml"

# What begins a block, and line breaks, which Jinja makes alike or drops at the end.
_JINJA = re.compile(r"[{\r\n]+[%#]?")
# What YAML takes for a line break, or cannot hold, though JSON can.
_NO_YAML = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


def write_dbt(edges: Edges, path: Path, naming: Naming) -> None:
    """Write a source with its tables, those alone that have a test or are the parent of one."""
    write_lines(path, _lines(edges, naming.namespace))


def _lines(edges: Edges, source: str) -> Iterator[Iterable[str]]:
    quoting = {"identifier": True}
    yield ['{"version": 2, "sources": [', f'{{"name": {_text(source)}, "quoting": {yaml(quoting)},']
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
    sentences = [
        f"{_share(row)} {row['total']:,} distinct values are in "
        f"{row['right_table']}:{row['right_column']}"
        f"{', which is unique' if row['right_unique'] else ''}."
        for row in rows
    ]
    return " ".join(sentences)


def _share(row: dict[str, Any]) -> str:
    return "All" if row["matched"] == row["total"] else f"{percent(row['joinability'])} of"


def _test(row: dict[str, Any], source: str) -> dict[str, Any]:
    table, column = row["right_table"], row["right_column"]
    meta = {name: row[name] for name in ("joinability", "matched", "total")}
    return {
        "arguments": {
            "to": f"source({json.dumps(source)}, {_in_expression(table)})",
            "field": in_jinja('"' + column.replace('"', '""') + '"'),
        },
        "config": {
            "severity": "warn",
            "meta": {**meta, "parent_is_unique": row["right_unique"]},
        },
    }


def _in_expression(name: str) -> str:
    return json.dumps(name, ensure_ascii=False)


def in_jinja(text: str) -> str:
    """Return a template that renders to a text.

    Examples
    --------
    >>> in_jinja("{{ x }}")
    "{{ '{{' }} x }}"
    """
    return _JINJA.sub(lambda match: f"{{{{ {match[0]!r} }}}}", text)


def yaml(value: Any) -> str:
    """Return a value as JSON on one line that YAML readers take as it is."""
    text = json.dumps(value, ensure_ascii=False)
    return _NO_YAML.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _text(text: str) -> str:
    return yaml(in_jinja(text))


DBT = ExportFormat("dbt", ".yml", write_dbt, file=FILE, min_joinability=1.0, equal_values=True)
