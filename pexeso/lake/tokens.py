"""Tokens: the one form of a cell in which two cells are equal or not, for exact-value joins.

Semantic search normalises values, so that "Main St." meets "main street". A join by equal values
must not: "A1" and "a1" may be two keys. So little is done here, and the same to texts and numbers,
since one table's 1 is another's "1" and a third's 1.0:

==========================================  ========================================================
cell                                        token
==========================================  ========================================================
text                                        Unicode form NFC, white space at both ends dropped;
                                            case kept
text that is an integer with a point        the integer: ``"1.0"`` and ``"1.00"`` are ``"1"``;
                                            ``"1.10"`` stays, as versions do
``"01"``, ``"+1"``, ``"1e3"``, ``"01.0"``   as they stand: zeros of an id mean something
integer                                     its digits: ``1`` is ``"1"``; a zero has no sign
float that is an integer below 2**53        as that integer: ``1.0`` is ``"1"``
other float                                 the shortest text that reads back as the same number:
                                            ``12345678901.5``, and ``1e+16`` where it is large
decimal                                     as its text would be: ``1.00`` is ``"1"``
truth value, date, time                     ``"true"``, ``"2020-03-05"``, ``"14:30:00"``: a second
                                            has a fraction only where it is not zero
null, NaN, nothing but white space          no token
text for a gap: `pexeso.lake.cells.missing`       no token
==========================================  ========================================================
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.errors import InputError
from pexeso.lake.cells.counted_cells import CountedCells
from pexeso.lake.cells.missing import present
from pexeso.lake.typed.value_texts import value_texts
from pexeso.runtime.formatting import first_line

_WHOLE = r"^(-?(?:0|[1-9][0-9]*))\.0+$"


def tokens_of(
    values: pa.Array | pa.ChunkedArray, columns: np.ndarray | None = None
) -> pa.LargeStringArray:
    """Return the token of each cell.

    Parameters
    ----------
    columns : int64 (n,), optional
        The column of each value; by default all are of one column.

    Notes
    -----
    Arrow's kernels throughout, in time linear in the letters.

    Examples
    --------
    >>> tokens_of(pa.array([" 1 ", "1.0", "01", "N/A", "", None])).to_pylist()
    ['1', '1', '01', None, None, None]
    >>> tokens_of(pa.array([1.0, 1.5, float("nan")])).to_pylist()
    ['1', '1.5', None]
    """
    if isinstance(values, pa.ChunkedArray):
        values = pa.concat_arrays(values.chunks) if values.num_chunks else pa.array([], values.type)
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    texts = pc.utf8_normalize(texts_of_cells(values), form="NFC")
    texts = pc.utf8_trim_whitespace(texts)
    texts = pc.replace_substring_regex(texts, _WHOLE, r"\1")
    texts = pc.if_else(pc.equal(texts, "-0"), "0", texts)
    return present(texts, columns)


def distinct_tokens(values: pa.Array | pa.ChunkedArray) -> pa.LargeStringArray:
    """Return the distinct tokens of a column, in the order in which they first stand there.

    Examples
    --------
    >>> distinct_tokens(pa.array(["b", "a", None, " b"])).to_pylist()
    ['b', 'a']
    """
    return pc.unique(tokens_of(values)).drop_null()


def distinct_tokens_of(columns: Sequence[pa.StringArray]) -> list[pa.LargeStringArray]:
    """Return the distinct tokens of each of several columns of texts, as `distinct_tokens` does.

    Examples
    --------
    >>> [each.to_pylist() for each in distinct_tokens_of([pa.array(["b", " b"]), pa.array(["b"])])]
    [['b'], ['b']]
    """
    cells = CountedCells.joined(
        [
            pa.StructArray.from_arrays([column, np.ones(len(column), np.int64)], ["values", "n"])
            for column in columns
        ]
    )
    tokens = tokens_of(cells.texts, cells.columns)
    tally, _ = cells.replaced(tokens, tokens.is_valid().to_numpy(zero_copy_only=False))
    return [of_column for (of_column,) in tally.slices(tally.texts)]


def texts_of_cells(values: pa.Array) -> pa.LargeStringArray:
    """Return cells as texts, those of `pexeso.lake.typed.value_texts.value_texts`."""
    try:
        return value_texts(values)
    except pa.ArrowException as error:
        raise InputError(
            "Tokens are made of texts, numbers, truth values, dates and times. Got "
            f"{values.type}, which has no text "
            f"({first_line(error)}): leave the column out, or turn it into texts first."
        ) from error
