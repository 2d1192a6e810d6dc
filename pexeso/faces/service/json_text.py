"""JSON as every face writes it: the outer object, and the lists in it, one entry a line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from pexeso.store.io.plain_json import json_line, plain_json

if TYPE_CHECKING:
    import pyarrow as pa


def plain_cells(column: pa.ChunkedArray) -> list[Any]:
    """Return the cells of a table as plain JSON.

    Numbers, truth values, texts, lists and objects stay; of other types there are the texts that
    CSV has. An interval is a list of its months, days and nanoseconds.
    """
    from pexeso.lake.frames.writing import texts_of_values

    texts = texts_of_values(column)
    return [plain_json(cell) for cell in column.to_pylist()] if texts is None else texts


def json_text(document: Any) -> str:
    """Return a document with its outer members, and the entries of lists in it, one a line.

    Examples
    --------
    >>> print(json_text({"verb": "search", "results": [{"table": "a.csv"}]}))
    {
      "verb": "search",
      "results": [
        {"table": "a.csv"}
      ]
    }
    """
    if not isinstance(document, dict):
        return json_line(document)
    members = []
    for name, value in document.items():
        text = json_line(value)
        if isinstance(value, list) and value:
            entries = ",\n".join(f"    {json_line(entry)}" for entry in value)
            text = f"[\n{entries}\n  ]"
        members.append(f"  {json_line(name)}: {text}")
    return "{\n" + ",\n".join(members) + "\n}"


def json_pieces(document: dict[str, Any], name: str, rows: Iterable[Any]) -> Iterator[str]:
    r"""Yield what `json_text` returns, with a line feed, and in it, last, a list of any length.

    Examples
    --------
    >>> "".join(json_pieces({"a": 1}, "rows", [2])) == json_text({"a": 1, "rows": [2]}) + "\n"
    True
    """
    yield json_text({**document, name: []}).removesuffix("]\n}")
    between = "\n"
    for row in rows:
        yield f"{between}    {json_line(row)}"
        between = ",\n"
    yield "]\n}\n" if between == "\n" else "\n  ]\n}\n"
