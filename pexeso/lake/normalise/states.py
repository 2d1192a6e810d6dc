"""Codes of states of the USA, written out where they end an address."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.lake.normalise.abbreviations import packaged
from pexeso.lake.normalise.characters import Bytes
from pexeso.lake.normalise.folding import only_where

_STATE = r"(?i)^(?P<before>.*?(?P<word>[^\s,]*)),\s?(?P<code>[a-z][a-z])(?P<behind>(?: [0-9]{5}(?:-[0-9]{4})?)?\)?)$"


def with_states(texts: pa.StringArray) -> pa.StringArray:
    """Write out the code of a state behind the last comma, with a zip code or a closing parenthesis behind it or nothing.

    Dots tell a degree from a state ("Kessler, M.D."), and a street before the comma a direction ("701 Maryland Avenue, NE").

    Parameters
    ----------
    texts
        Length n, without nulls and without white space around them.

    Returns
    -------
    pa.StringArray
        Length n.

    Examples
    --------
    >>> with_states(pa.array(["Austin, TX 78701", "HS (Chicago, IL)", "Kessler, M.D.", "5 Main Ave., NE"])).to_pylist()
    ['Austin, texas 78701', 'HS (Chicago, illinois)', 'Kessler, M.D.', '5 Main Ave., NE']
    """
    return only_where(texts, pa.array(_may_end_with_code(Bytes(texts))), _written_out)


def _may_end_with_code(found: Bytes) -> np.ndarray:
    """Return which texts end with a comma and two bytes, a parenthesis closed behind them, or with something like a zip code."""
    from_end = [found.at(-place) for place in range(1, 7)]
    comma, space = ord(","), ord(" ")
    at_end = (from_end[2] == comma) | ((from_end[2] == space) & (from_end[3] == comma))
    within = (from_end[0] == ord(")")) & ((from_end[3] == comma) | ((from_end[3] == space) & (from_end[4] == comma)))
    is_code = (from_end[0] >= ord("0")) & (from_end[0] <= ord("9"))
    return at_end | within | (is_code & ((from_end[5] == space) | (from_end[4] == ord("-"))))


def _written_out(texts: pa.StringArray) -> pa.StringArray:
    found = pc.extract_regex(texts, _STATE)
    if found.null_count == len(found):
        return texts
    before, word, code, behind = (pc.struct_field(found, [place]) for place in range(4))
    states = packaged()["states"]
    entry = pc.index_in(pc.ascii_lower(code), pa.array(list(states)))
    behind_street = pc.is_in(pc.utf8_rtrim(pc.ascii_lower(word), "."), pa.array(packaged()["street_words"]))
    is_state = pc.and_(entry.is_valid(), pc.invert(pc.fill_null(behind_street, False)))
    named = pc.binary_join_element_wise(before, pa.array(list(states.values())).take(entry), ", ")
    return pc.if_else(is_state, pc.binary_join_element_wise(named, behind, ""), texts)
