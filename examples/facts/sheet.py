"""A table of facts and a file of the demo lake that shows one."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

Row = tuple[str, ...]


@dataclass(frozen=True)
class Facts:
    """A table of facts: column names and rows of text cells.

    Parameters
    ----------
    names : tuple of str
        Column names, all different.
    rows : tuple of rows
        Each row has one cell for each name; an empty cell is an empty string.
    """

    names: Row
    rows: tuple[Row, ...]

    def column(self, name: str) -> list[str]:
        """Return the cells of one column, from the first row to the last."""
        position = self.names.index(name)
        return [row[position] for row in self.rows]

    def select(
        self, **columns: str | Callable[[str], str] | tuple[str, Callable[[str], str]]
    ) -> "Facts":
        r"""Return a table of some columns, renamed and rewritten.

        Parameters
        ----------
        **columns
            For each column of the new table, in order: the name of a column here, or such a name
            and a function that rewrites one cell.

        Examples
        --------
        >>> parse("name|age\nAda|36").select(Person=("name", str.upper)).rows
        (('ADA',),)
        """
        cells = []
        for source in columns.values():
            name, rewrite = (source, str) if isinstance(source, str) else source
            cells.append([rewrite(cell) for cell in self.column(name)])
        return Facts(tuple(columns), tuple(zip(*cells, strict=True)))

    def where(self, name: str, accepted: Callable[[str], bool]) -> "Facts":
        """Return the rows whose cell in the column `name` is accepted."""
        position = self.names.index(name)
        return Facts(self.names, tuple(row for row in self.rows if accepted(row[position])))

    def titled(self, *names: str) -> "Facts":
        """Return the same rows under other column names.

        Names may contain spaces, repeat or be empty.
        """
        if len(names) != len(self.names):
            raise ValueError(
                f"The table has {len(self.names)} columns, got {len(names)} names: {names}."
            )
        return Facts(names, self.rows)


@dataclass(frozen=True)
class Sheet:
    """One file of the lake.

    Parameters
    ----------
    path : str
        POSIX path relative to the lake, or to `examples/` for a table of the user.
    facts : Facts
        What the file shows.
    kind : {'text', 'json', 'parquet'}
        Delimited text, JSON lines or Parquet. A text whose path ends in ``.gz`` is compressed.
    delimiter, encoding, newline : str
        How a text is written; the others ignore them.
    """

    path: str
    facts: Facts
    kind: Literal["text", "json", "parquet"] = "text"
    delimiter: str = ","
    encoding: str = "utf-8"
    newline: str = "\n"


def parse(text: str) -> Facts:
    r"""Read a block of lines with cells between bars, the first line holding the names.

    Examples
    --------
    >>> parse("name|born\nAda Lovelace|1815").rows
    (('Ada Lovelace', '1815'),)
    """
    names, *rows = [tuple(line.split("|")) for line in text.strip("\n").split("\n")]
    for row in rows:
        if len(row) != len(names):
            raise ValueError(
                f"A row of facts needs {len(names)} cells, got {len(row)}: {'|'.join(row)!r}."
            )
    return Facts(names, tuple(rows))


def rewrite_every(step: int, rewrite: Callable[[str], str], first: int = 0) -> Callable[[str], str]:
    """Return a function that rewrites every `step`-th cell from cell number `first` on.

    The function keeps the other cells.

    It counts its calls, so it serves one column of one table.
    """
    calls = 0

    def rewrite_some(cell: str) -> str:
        nonlocal calls
        chosen = calls % step == first
        calls += 1
        return rewrite(cell) if chosen else cell

    return rewrite_some


def chain(*rewrites: Callable[[str], str]) -> Callable[[str], str]:
    """Return a function that applies `rewrites` one after the other."""

    def rewrite_all(cell: str) -> str:
        for rewrite in rewrites:
            cell = rewrite(cell)
        return cell

    return rewrite_all
