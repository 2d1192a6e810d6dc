"""The ways in which a table is written badly: each makes a file of a plain table.

The rules stand in two halves, written at the same time. Those of `TUNED` were for looking at while
the reader was made; those of `HELD_OUT` were first run when all of the former were read.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from benchmarks.reading.tables import PlainTable, plain_tables

Rule = Callable[[PlainTable], "Written | None"]
Rows = Sequence[Sequence[str]]


@dataclass(frozen=True)
class Written:
    """A file's bytes and its truth: names (None: it has none) and rows, and its extension."""

    data: bytes
    names: tuple[str, ...] | None
    rows: tuple[tuple[str, ...], ...]
    extension: str = ".csv"


@dataclass(frozen=True)
class HardFile:
    """One file of the benchmark."""

    name: str
    group: str
    written: Written


def hard_files(seed: int = 0) -> list[HardFile]:
    """Make a file of every table by every rule that fits it, those of both halves."""
    return [
        HardFile(f"{rule}-{table.label}{content.extension}", group, content)
        for group, rules in (("tuned", TUNED), ("held out", HELD_OUT))
        for rule, write in rules.items()
        for table in plain_tables(seed)
        if (content := write(table)) is not None
    ]


def text_of(rows: Rows, **options: object) -> str:
    """Write rows as the standard library does."""
    out = io.StringIO()
    csv.writer(out, **{"lineterminator": "\n", **options}).writerows(rows)  # type: ignore[arg-type]
    return out.getvalue()


def _all(table: PlainTable) -> list[tuple[str, ...]]:
    return [table.names, *table.rows]


def _made(
    table: PlainTable, text: str, encoding: str = "utf-8", extension: str = ".csv"
) -> Written:
    return Written(text.encode(encoding), table.names, table.rows, extension)


def _separated(delimiter: str, extension: str = ".csv") -> Rule:
    return lambda table: _made(table, text_of(_all(table), delimiter=delimiter), "utf-8", extension)


def _between(above: str = "", below: str = "", **options: object) -> Rule:
    return lambda table: _made(table, above + text_of(_all(table), **options) + below)


def _encoded(encoding: str, **options: object) -> Rule:
    def write(table: PlainTable) -> Written | None:
        text = text_of(_all(table), **options)
        if text.isascii() and encoding.startswith("cp"):
            return None  # no other file than without this rule
        try:
            return _made(table, text, encoding)
        except UnicodeEncodeError:
            return None

    return write


def _padded_title(*cells: str, blank: bool = True) -> Rule:
    def write(table: PlainTable) -> Written | None:
        width = len(table.names)
        if width <= len(cells):
            return None
        title = [*cells, *([""] * (width - len(cells)))]
        return _made(table, text_of([title, *([[""] * width] * blank), *_all(table)]))

    return write


def _without_header(**options: object) -> Rule:
    def write(table: PlainTable) -> Written | None:
        if table.label == "words":  # nothing tells a row of words from their names
            return None
        return Written(text_of(table.rows, **options).encode(), None, table.rows)

    return write


def _grouped(repeat: bool, first: str = "") -> Rule:
    """Return a rule for a header of two rows: groups of two columns, and what is in them."""

    def write(table: PlainTable) -> Written | None:
        if table.label not in ("wide", "sensors", "cities", "small"):
            return None
        numbers = [
            i for i in range(1, len(table.names)) if table.rows[0][i].replace(".", "").isdigit()
        ]
        n_groups = 3
        groups = ["Sales", "Staff", "Costs"][:n_groups]
        names = [table.names[0]] + [f"{group} {year}" for group in groups for year in (2019, 2020)]
        rows = tuple(
            (row[0], *(row[numbers[i % len(numbers)]] for i in range(2 * n_groups)))
            for row in table.rows
        )
        upper = [
            first or "",
            *(cell for group in groups for cell in (group, group if repeat else "")),
        ]
        lower = ["" if first else table.names[0], *(["2019", "2020"] * n_groups)]
        if first:
            names[0] = first
        return Written(text_of([upper, lower, *rows]).encode(), tuple(names), rows)

    return write


def _units(table: PlainTable) -> Written | None:
    numbers = [i for i, cell in enumerate(table.rows[0]) if re.fullmatch(r"[0-9.]+", cell)]
    if len(numbers) < 2:
        return None
    units = ["kg" if i in numbers else "" for i in range(len(table.names))]
    names = tuple(f"{name} {unit}".strip() for name, unit in zip(table.names, units, strict=True))
    return Written(text_of([table.names, units, *table.rows]).encode(), names, table.rows)


def _decimal_comma(delimiter: str) -> Rule:
    def write(table: PlainTable) -> Written | None:
        rows = tuple(
            tuple(
                cell.replace(".", ",") if re.fullmatch(r"[0-9]+\.[0-9]+", cell) else cell
                for cell in row
            )
            for row in table.rows
        )
        if rows == table.rows:
            return None
        return Written(
            text_of([table.names, *rows], delimiter=delimiter).encode(), table.names, rows
        )

    return write


def _embedded(newline: str, terminator: str = "\n") -> Rule:
    def write(table: PlainTable) -> Written | None:
        rows = tuple(
            (f"{row[0]}{newline}second line", *row[1:]) if i % 3 == 0 else row
            for i, row in enumerate(table.rows)
        )
        text = text_of([table.names, *rows], lineterminator=terminator)
        return Written(text.encode(), table.names, rows)

    return write


def _ragged(table: PlainTable) -> Written | None:
    """Leave the empty cells at the ends of a few rows away."""
    if len(table.names) < 3:
        return None
    lines, rows = [text_of([table.names])], []
    for i, row in enumerate(table.rows):
        is_short = i in (2, 5)
        rows.append((*row[:-1], "") if is_short else row)
        lines.append(text_of([row[:-1] if is_short else row]))
    return Written("".join(lines).encode(), table.names, tuple(rows))


def _mixed_line_ends(table: PlainTable) -> Written:
    lines = text_of(_all(table)).splitlines()
    ends = ["\r\n", "\n", "\r\n", "\r"]
    return _made(table, "".join(line + ends[i % 4] for i, line in enumerate(lines)))


def _spaced(table: PlainTable) -> Written:
    """Put a space after each delimiter, also before quotation marks."""
    lines = [", ".join(_quoted(cell) for cell in row) for row in _all(table)]
    return _made(table, "\n".join(lines) + "\n")


def _quoted(cell: str) -> str:
    return '"' + cell.replace('"', '""') + '"' if any(c in cell for c in ',"; ') else cell


def _padded_tabs(table: PlainTable) -> Written:
    lines = ["\t".join(cell.ljust(18) for cell in row) for row in _all(table)]
    return _made(table, "\n".join(line.rstrip(" ") for line in lines) + "\n", extension=".tsv")


def _trailing_delimiters(table: PlainTable) -> Written:
    width = len(table.names)
    rows = (*table.rows, *([("",) * width] * 4))
    return Written(text_of([table.names, *rows]).encode(), table.names, rows)


def _open_quote(table: PlainTable) -> Written | None:
    """Begin one cell with a quotation mark that is never closed; nothing else is quoted."""
    if any(c in cell for row in table.rows for cell in row for c in ',"'):
        return None
    rows = tuple((f'"{row[0]}', *row[1:]) if i == 4 else row for i, row in enumerate(table.rows))
    lines = [",".join(row) for row in [table.names, *rows]]
    return Written(("\n".join(lines) + "\n").encode(), table.names, rows)


def _notes_in_columns(table: PlainTable) -> Written:
    blank = [[""] * len(table.names)] * 2
    note = ["Source: Office of Statistics, own work", *([""] * (len(table.names) - 1))]
    return _made(table, text_of([*_all(table), *blank, note]))


def _year_names(table: PlainTable) -> Written | None:
    if table.label != "wide":
        return None
    names = (table.names[0], *map(str, range(2010, 2010 + len(table.names) - 1)))
    return Written(text_of([names, *table.rows]).encode(), names, table.rows)


def _commented_names(table: PlainTable) -> Written | None:
    """Write the header itself as a comment, above rows with numbers."""
    if table.label == "words":
        return None
    names = (f"# {table.names[0]}", *table.names[1:])
    return Written(text_of([names, *table.rows]).encode(), names, table.rows)


def _combined(table: PlainTable) -> Written:
    text = text_of(_all(table), delimiter=";", lineterminator="\r\n")
    above, below = "Überblick über die Daten\r\n\r\n", "\r\nQuelle: Statistisches Amt\r\n"
    return Written(
        (above + text + below).encode("cp1252", "replace"), table.names, _cp1252(table.rows)
    )


def _cp1252(rows: Rows) -> tuple[tuple[str, ...], ...]:
    return tuple(
        tuple(cell.encode("cp1252", "replace").decode("cp1252") for cell in row) for row in rows
    )


_METADATA = "Report,Quarterly figures\nCreated,2021-03-04\n\n"

TUNED: dict[str, Rule] = {
    "comma": _separated(","),
    "hash": _separated("#"),
    "caret": _separated("^"),
    "semicolon": _separated(";"),
    "tab-in-csv": _separated("\t"),
    "sep-line": _between("sep=;\n", delimiter=";"),
    "hash-comments": _between("# made by hand\n# do not edit, please\n"),
    "title": _between("Figures of the year\n\n"),
    "padded-title": _padded_title("Figures of the year, first edition"),
    "no-header": _without_header(),
    "groups": _grouped(repeat=False),
    "units": _units,
    "source-below": _between(below="\nSource: Office of Statistics\n"),
    "starred-note": _between(below="* preliminary\n"),
    "single-quotes": _between(quotechar="'", quoting=csv.QUOTE_ALL),
    "backslash": _between(quoting=csv.QUOTE_ALL, doublequote=False, escapechar="\\"),
    "latin-1": _encoded("cp1252"),
    "utf-16": _encoded("utf-16", delimiter="\t"),
    "decimal-comma": _decimal_comma(";"),
    "newlines": _embedded("\n"),
    "ragged": _ragged,
    "mixed-line-ends": _mixed_line_ends,
}

HELD_OUT: dict[str, Rule] = {
    "tilde": _separated("~"),
    "pipe": _separated("|"),
    "colon": _separated(":"),
    "sep-line-quoted": _between('"sep=|"\r\n', delimiter="|", lineterminator="\r\n"),
    "slash-comments": _between("// first\n//\n// third, with a comma\n", delimiter=";"),
    "percent-comments": _between("% exported\n\n% version 2\n\n"),
    "long-preamble": _between(
        "Annual report\nOffice of Statistics, Oslo\n\nAll figures final.\n\n"
    ),
    "metadata": _padded_title("Created", "2021-03-04"),
    "no-header-semicolon": _without_header(delimiter=";", quoting=csv.QUOTE_ALL),
    "groups-repeated": _grouped(repeat=True, first="Place"),
    "notes-below": _between(
        below="\nNotes:\n(1) Figures are rounded.\n(2) See the annex, page 4.\n"
    ),
    "note-in-columns": _notes_in_columns,
    "spaces-after": _spaced,
    "cr-only": _between(lineterminator="\r"),
    "utf-8-mark": _encoded("utf-8-sig", delimiter=";"),
    "cp1250": _encoded("cp1250"),
    "utf-16-be-no-mark": _encoded("utf-16-be"),
    "decimal-comma-tab": _decimal_comma("\t"),
    "newlines-crlf": _embedded("\r\n", "\r\n"),
    "padded-tabs": _padded_tabs,
    "open-quote": _open_quote,
    "year-names": _year_names,
    "commented-names": _commented_names,
    "combined": _combined,
    "empty-rows-below": _trailing_delimiters,
}
