"""What a column holds, as far as keys are concerned."""

import pyarrow as pa
import pytest

from pexeso.composite.candidate_keys import RARELY, KeyKind, column_kinds

TEXTS = pa.array(["a", "b", "c", "d"])


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["Oslo", "Rome", "Oslo", None], "TEXT"),
        (["2001-03-04", "2001-03-05", "2001-04-01", None], "TEXT"),
        (["1999", "2001", "2001", "2050"], "TEXT"),
        (["1999.0", "2001.0", None, "2005.0"], "TEXT"),
        (["50123", "99001", "13377", "50124"], "WHOLE"),
        (["3", "1", "2", "2"], "WHOLE"),
        (["2", "3", "4", "5"], "WHOLE"),
        (["1", "2", "3", "4"], "ROW_NUMBER"),
        ([" 0", "1", "2", "3 "], "ROW_NUMBER"),
        (["1", "2", "3", None], "WHOLE"),
        (["12", "81000", "3400", "7"], "SPREAD"),
        (["-3", "2", "1", "0"], "DECIMAL"),
        (["1,200", "12", "3", "4"], "DECIMAL"),
        (["0.5", "1.0", "1.5", "2.0"], "DECIMAL"),
        (["$7", "$8", "$9", "$10"], "DECIMAL"),
        (["99999999999999999999", "1", "2", "3"], "WHOLE"),
        ([" ".join("abcdefghijklm")] * 4, "FREE_TEXT"),
        ([None, " ", None, None], "EMPTY"),
    ],
)
def test_kinds(values, kind):
    assert column_kinds([TEXTS, pa.array(values, pa.string())])[1] is KeyKind[kind]


def test_spread_whole_numbers_of_the_first_column_are_taken_for_codes():
    numbers = pa.array(["12", "81000", "3400", "7"])
    assert column_kinds([numbers, numbers]) == [KeyKind.WHOLE, KeyKind.SPREAD]


def test_kinds_that_are_rarely_keys_come_last_and_are_named():
    rarely = [kind for kind in KeyKind if kind in RARELY]
    assert [kind.name for kind in rarely] == [
        "ROW_NUMBER", "SPREAD", "DECIMAL", "FREE_TEXT", "EMPTY",
    ]  # fmt: skip
    assert {kind.rank for kind in rarely} == {2}
    assert sorted(KeyKind, key=lambda kind: kind.rank)[:2] == [KeyKind.TEXT, KeyKind.WHOLE]
