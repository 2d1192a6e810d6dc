"""Write an Arrow table to a file, in the format that its name asks for, or as CSV on stdout."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from pexeso.cli.output.output import escapes_formulas, without_formula, write_data
from pexeso.errors import InputError
from pexeso.io.whole_files import require_free, written_whole

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


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


def write_table(table: pa.Table, path: str | None, *, overwrite: bool) -> None:
    """Write a table to a file, whole or not at all; without a path as CSV on stdout.

    Lists become JSON texts in CSV. Other formats keep the types that the table has.
    """
    if path is None:
        write_data(_for_csv(table).to_csv(index=False))
        return
    write = next(writer for ending, writer in _WRITERS.items() if path.lower().endswith(ending))
    with written_whole(path, overwrite=overwrite) as temporary:
        write(table, temporary)


def _for_csv(table: pa.Table) -> pd.DataFrame:
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
    return _without_formulas(frame) if escapes_formulas() else frame


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


def _write_csv(table: pa.Table, path: Path) -> None:
    _for_csv(table).to_csv(path, index=False)


def _write_parquet(table: pa.Table, path: Path) -> None:
    import pyarrow.parquet as pq

    pq.write_table(table, path)


def _write_feather(table: pa.Table, path: Path) -> None:
    import pyarrow.feather as feather

    feather.write_feather(table, path)


_WRITERS: dict[str, Callable[[pa.Table, Path], None]] = {
    ".csv": _write_csv,
    ".parquet": _write_parquet,
    ".arrow": _write_feather,
    ".feather": _write_feather,
}
