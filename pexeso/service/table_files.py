"""Arrow tables as files: CSV, Parquet or Feather, the same from every face."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from pexeso.errors import InputError
from pexeso.service.whole_files import require_free, written_whole

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
_NUMBER = re.compile(r"[+-]?[0-9]+([.,][0-9]+)*([eE][+-]?[0-9]+)?")


def without_formula(cell: Any) -> Any:
    """Put an apostrophe before a text that a spreadsheet would run as a formula.

    Plain numbers stay as they are.
    """
    is_formula = (
        isinstance(cell, str) and cell.startswith(FORMULA_STARTS) and not _NUMBER.fullmatch(cell)
    )
    return f"'{cell}" if is_formula else cell


def require_writable(
    path: str, *, overwrite: bool, option: str, formats: tuple[str, ...] = ()
) -> None:
    """Refuse a file, given by an option, that cannot be written.

    Its name has no ending of `formats`, or it is there and may not be replaced.
    """
    allowed = formats or tuple(_WRITERS)
    if not path.lower().endswith(allowed):
        *others, last = allowed
        listed = f"{', '.join(others)} or {last}" if others else last
        raise InputError(f"{option} must end in {listed}. Got {path!r} instead.")
    require_free(Path(path), overwrite=overwrite)


def write_table_file(
    table: pa.Table, path: str, *, overwrite: bool, escape_formulas: bool = False
) -> None:
    """Write a table to a file, whole or not at all, in the format that its name asks for.

    Lists become JSON texts in CSV. Other formats keep the types that the table has.
    """
    ending = next(ending for ending in _WRITERS if path.lower().endswith(ending))
    with written_whole(path, overwrite=overwrite) as temporary, temporary.open("wb") as stream:
        write_table(table, stream, ending, escape_formulas=escape_formulas)


def write_table(
    table: pa.Table, stream: BinaryIO, ending: str, *, escape_formulas: bool = False
) -> None:
    """Write a table to an open stream of bytes, in the format of a file that ends so."""
    _WRITERS[ending](table, stream, escape_formulas)


def csv_text(table: pa.Table, *, escape_formulas: bool = False) -> str:
    """Return a table as CSV."""
    return _for_csv(table, escape_formulas).to_csv(index=False)


def _for_csv(table: pa.Table, escape_formulas: bool) -> pd.DataFrame:
    import pandas as pd
    import pyarrow as pa

    from pexeso.lake.typed.text import as_text

    frame = table.to_pandas(types_mapper=_nullable)
    for index, field in enumerate(table.schema):
        if pa.types.is_nested(field.type):
            texts = [
                None if each is None else _json(each) for each in table.column(index).to_pylist()
            ]
            frame.isetitem(index, pd.Series(texts, dtype=object))
        elif pa.types.is_temporal(field.type):
            texts = [
                text for chunk in table.column(index).chunks for text in as_text(chunk).to_pylist()
            ]
            frame.isetitem(index, pd.Series(texts, dtype=object))
    return _without_formulas(frame) if escape_formulas else frame


def _nullable(kind: pa.DataType) -> pd.api.extensions.ExtensionDtype | None:
    """Return the pandas type of whole numbers and truth values, of which some may be missing."""
    import pandas as pd
    import pyarrow as pa

    if pa.types.is_integer(kind):
        return pd.UInt64Dtype() if pa.types.is_unsigned_integer(kind) else pd.Int64Dtype()
    return pd.BooleanDtype() if pa.types.is_boolean(kind) else None


def _without_formulas(frame: pd.DataFrame) -> pd.DataFrame:
    """Put an apostrophe before texts that a spreadsheet would run, names of columns among them."""
    import pandas as pd

    for position in range(frame.shape[1]):
        column = frame.iloc[:, position]
        if not pd.api.types.is_numeric_dtype(column):
            frame.isetitem(position, column.map(without_formula))
    return frame.set_axis([without_formula(name) for name in frame.columns], axis=1)


def _json(cells: object) -> str:
    return json.dumps(cells, ensure_ascii=False, default=str)


def _write_csv(table: pa.Table, stream: BinaryIO, escape_formulas: bool) -> None:
    stream.write(csv_text(table, escape_formulas=escape_formulas).encode())


def _write_parquet(table: pa.Table, stream: BinaryIO, escape_formulas: bool) -> None:
    import pyarrow.parquet as pq

    pq.write_table(table, stream)


def _write_feather(table: pa.Table, stream: BinaryIO, escape_formulas: bool) -> None:
    import pyarrow.feather as feather

    feather.write_feather(table, stream)


_WRITERS: dict[str, Callable[[pa.Table, BinaryIO, bool], None]] = {
    ".csv": _write_csv,
    ".parquet": _write_parquet,
    ".arrow": _write_feather,
    ".feather": _write_feather,
}
