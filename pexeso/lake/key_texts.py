"""The form in which cells of composite keys are equal or not: ``strict-v2``.

Search by values alike normalises more, overlap search less: a key of several columns is mostly made
of names, years and codes, which tables write with other capitals and spaces. So texts go through
the Unicode form NFKC, their case is folded, runs of white space become one space, and those at both
ends go. A cell that stands for a missing value has no form (`pexeso.lake.cells.missing`). ``1`` and
``1.0`` are two values.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from pexeso.lake.cells.missing import present
from pexeso.lake.normalise.folding import only_where
from pexeso.lake.tokens import texts_of_cells

NAME = "strict-v2"
"""What an index says of the form. Any change that gives some cell another one needs a new name."""

_SPACES = (
    r"[\t-\r\x1c-\x20\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}"
    r"\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}]+"
)
"""White space as Python's ``str.split`` has it."""


def key_texts(values: pa.Array | pa.ChunkedArray) -> pa.LargeStringArray:
    """Return the form of each cell in which it is compared with others.

    Parameters
    ----------
    values : Arrow array (n,)
        Texts, numbers, truth values, dates or times; dictionary-encoded ones too. Numbers that are
        whole are written without a point.

    Notes
    -----
    MATE's published program keeps ASCII letters only and drops common words; nothing is dropped
    here, so that ``-5`` and ``5`` are two values. Time is linear in the letters; repeated cells
    are best given dictionary-encoded, as distinct texts are worked on once.

    Examples
    --------
    >>> key_texts(pa.array([" New  York", "Straße", "N/A", "1.0", " ", None])).to_pylist()
    ['new york', 'strasse', None, '1.0', None, None]
    >>> key_texts(pa.array([2009.0, None])).to_pylist()
    ['2009', None]
    """
    if isinstance(values, pa.ChunkedArray):
        values = pa.concat_arrays(values.chunks) if values.num_chunks else pa.array([], values.type)
    if not pa.types.is_dictionary(values.type):
        values = texts_of_cells(values).dictionary_encode()
    texts = present(texts_of_cells(values.dictionary))
    return key_forms(pa.DictionaryArray.from_arrays(values.indices, texts))


def key_forms(values: pa.Array) -> pa.LargeStringArray:
    """Return the forms of texts as `key_texts` does, whatever stands for a missing value.

    For texts of several columns together, of which one alone cannot tell whether it is missing.
    """
    if not pa.types.is_dictionary(values.type):
        values = values.cast(pa.large_string()).dictionary_encode()
    texts = values.dictionary
    known = texts.filter(texts.is_valid())
    folded = only_where(pc.ascii_lower(known), pc.invert(pc.string_is_ascii(known)), _fold)
    folded = pc.ascii_trim(pc.replace_substring_regex(folded, _SPACES, " "), " ")
    folded = pc.if_else(pc.equal(folded, ""), pa.scalar(None, pa.large_string()), folded)
    if len(known) < len(texts):
        folded = pc.replace_with_mask(texts, texts.is_valid(), folded)
    return folded.take(values.indices)


def _fold(texts: pa.LargeStringArray) -> pa.LargeStringArray:
    """Apply NFKC and fold the case, as ``str.casefold`` does, of all texts in one go."""
    texts = pc.replace_substring_regex(pc.utf8_normalize(texts, form="NFKC"), _SPACES, " ")
    # No text has a line feed now, so that all of them fold as one.
    return pa.array("\n".join(texts.to_pylist()).casefold().split("\n"), pa.large_string())
