"""Names, texts and files as SQL writes them."""

from __future__ import annotations

from itertools import groupby

from pexeso.errors import InputError
from pexeso.runtime.formatting import is_hidden, shown

YOURS, LAKES = "your_table", "lake_table"
"""What the two tables of a join are called where no names are given."""

_OF_TEXT = "read_csv({}, header = true, all_varchar = true)"


def quoted(name: str) -> str:
    """Write a name for SQL.

    Examples
    --------
    >>> print(quoted('a "b" c'))
    "a ""b"" c"
    """
    if not isinstance(name, str):
        raise InputError(
            f"SQL names a table or column by a text, such as 'your_table'. Got {shown(name)}: to "
            "join a table in memory, give it to join()."
        )
    if any(map(is_hidden, name)):
        raise InputError(
            f"{shown(name)} has characters that are not seen, which SQL cannot name plainly: "
            "rename it, or join without SQL."
        )
    return '"' + name.replace('"', '""') + '"'


def literal(text: str | None) -> str:
    """Write a text for SQL; characters that are not seen by their numbers.

    Examples
    --------
    >>> literal("O'Neill"), literal(None)
    ("'O''Neill'", 'NULL')
    >>> print(literal("a\u200b"))
    'a' || chr(8203)
    """
    if text is None:
        return "NULL"
    parts: list[str] = []
    for hidden, letters in groupby(text, is_hidden):
        if hidden:
            parts += [f"chr({ord(letter)})" for letter in letters]
        else:
            parts.append("'" + "".join(letters).replace("'", "''") + "'")
    return " || ".join(parts) or "''"


def reader_of(file: str | None) -> str | None:
    """Return what reads a file in DuckDB, or None where its name does not tell that it can.

    Examples
    --------
    >>> reader_of("cities.parquet"), reader_of("cities.xlsx")
    ("read_parquet('cities.parquet')", None)
    """
    if file is None or any(letter in file for letter in "*?["):  # patterns, to DuckDB
        return None
    if file.lower().endswith(".parquet"):
        return f"read_parquet({literal(file)})"
    return _OF_TEXT.format(literal(file)) if file.lower().endswith((".csv", ".tsv")) else None
