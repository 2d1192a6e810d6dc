"""Readers of delimited files: pexeso, and those that it is compared with."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from benchmarks.reading.scoring import ReadTable

Reader = Callable[[Path], ReadTable]


def read_pexeso(path: Path) -> ReadTable:
    """Read with pexeso, without any option."""
    from pexeso.lake.containers.reader import read_table

    table = read_table(path)
    columns = [[cell or "" for cell in column.to_pylist()] for column in table.columns]
    return table.names, [list(row) for row in zip(*columns, strict=True)]


def read_duckdb(path: Path) -> ReadTable:
    """Read with DuckDB: what `sniff_csv` finds, every cell as text."""
    import duckdb

    with duckdb.connect() as connection:
        connection.execute("SET threads = 1")
        sniffed = connection.execute(
            "SELECT Delimiter, Quote, Escape, SkipRows, HasHeader, Comment, "
            "[c.name FOR c IN Columns] FROM sniff_csv(?)",
            [str(path)],
        ).fetchone()
        assert sniffed is not None
        delimiter, quote, escape, n_skipped, has_header, comment, names = sniffed
        columns = {name: "VARCHAR" for name in names}
        rows = connection.execute(
            f"SELECT * FROM read_csv(?, auto_detect=false, delim={_text(delimiter)}, "
            f"quote={_text(quote)}, escape={_text(escape)}, comment={_text(comment)}, "
            f"skip={int(n_skipped)}, header={bool(has_header)}, columns={columns!r}, "
            "null_padding=true, strict_mode=false, parallel=false)",
            [str(path)],
        ).fetchall()
    return list(names), [[cell or "" for cell in row] for row in rows]


def _text(value: str | None) -> str:
    shown = "" if value in (None, "(empty)") else str(value)
    return "'" + shown.replace("'", "''") + "'"


def read_pandas(path: Path) -> ReadTable:
    """Read with pandas, which asks the standard library's `csv.Sniffer` for the separator."""
    import pandas as pd

    frame = pd.read_csv(
        path, sep=None, engine="python", dtype=str, keep_default_na=False, index_col=False
    )
    return [str(name) for name in frame.columns], frame.fillna("").astype(str).values.tolist()


def read_clevercsv(path: Path) -> ReadTable:
    """Read with clevercsv alone; its first row is the header."""
    import clevercsv

    header, *rows = clevercsv.read_table(os.fspath(path))
    return header, rows


READERS: dict[str, Reader] = {
    "pexeso": read_pexeso,
    "duckdb": read_duckdb,
    "pandas": read_pandas,
    "clevercsv": read_clevercsv,
}
