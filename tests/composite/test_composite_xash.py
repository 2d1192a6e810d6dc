"""XASH against golden vectors and against the same hash in plain Python."""

import numpy as np
import pyarrow as pa
import pytest
from composite_oracle import as_integers, xash
from hypothesis import given
from hypothesis import strategies as st

from pexeso.composite.row_keys import Xash
from pexeso.errors import InputError
from pexeso.registry import FILTER_BITS as BITS

FOX = "the quick brown fox jumps over the lazy dog"
GOLDEN = """
muhammad    00800000000020040000000010000000 00800000004020040008000010000000
lee         00040000000000200004000000000000 same
us          00020000000000000000000004200000 same
uk          00020000000000000004000000200000 same
germany     00400000002008200000000000000000 00400000002008200004400000000000
a           00010000000080000000000000000000 same
0           00012000000000000000000000000000 same
aaaa        00080000000800000000000000000000 same
new_york    00800000000010000100000000000200 00800000000010000102100000000200
2021_01_05  02000080000000000000000000000820 02000080000000000000000000000928
mississippi 04000000000000040080100000000000 04000000000000040080101000000000
17x         00008000000000000000000008000000 same
120x        00010000000000000000000000080000 same
fox         01000000000000000000000000000640 01000800000000000000000000000642
"""
NAMED = {"17x": "x" * 17, "120x": "x" * 120, "fox": FOX}
ROWS = [
    (NAMED.get(value, value.replace("_", " ")), four, four if six == "same" else six)
    for value, four, six in (line.split() for line in GOLDEN.strip().splitlines())
]
TEXTS = st.lists(
    st.text(max_size=40)
    | st.text("abcz019 ", max_size=150)
    | st.text("aéßя東\U0001d518𐍈٣²-.\u0301\U0001f600\U0003ffff", max_size=12),
    max_size=20,
)
HASHES = st.builds(
    Xash,
    st.sampled_from(BITS),
    st.integers(2, 9),
)


def hexadecimal(texts, **parameters):
    hashes = Xash(**parameters).hashes(pa.array(texts))
    return ["".join(f"{word:016x}" for word in words) for words in hashes.tolist()]


def places(text, **parameters):
    """Return the places of the bits of a hash, from 1 on the left."""
    digits = hexadecimal([text], **parameters)[0]
    bits = f"{int(digits, 16):0{len(digits) * 4}b}"
    return [place for place, bit in enumerate(bits, 1) if bit == "1"]


@pytest.mark.parametrize(("column", "parameters"), [(1, {"ones": 4}), (2, {})])
def test_golden_vectors(column, parameters):
    assert len(ROWS) == 14
    assert hexadecimal([row[0] for row in ROWS], **parameters) == [row[column] for row in ROWS]


def test_golden_vectors_of_other_sizes():
    assert hexadecimal(["muhammad"], bits=64) == ["0000200488404000"]
    assert hexadecimal(["muhammad"], bits=256) == [
        "0000004000000000000000200004000020000000800000000001000000000000"
    ]
    assert places("muhammad", bits=256) == [26, 91, 110, 131, 161, 208]
    assert places("muhammad", bits=512) == [23, 162, 205, 249, 316, 417]


def test_characters_outside_the_alphabet():
    texts = ["münchen", "москва", "東京"]
    assert hexadecimal(texts) == [
        "00400000000102010008000008000000",
        "00200000010820000000000000000041",
        "00020000000004000000000200000000",
    ]
    assert places("3.14") == [13, 19, 23, 28]
    assert places("-5") == [15, 33]


def test_areas_of_eight_places():
    """With three areas, places 1 to 8 of a text lie in areas 1, 1, 2, 2, 2, 3, 3, 3."""
    segment = 17 + 10 * 3  # that of "a", behind the length and the digits
    areas = []
    for place in range(8):
        (bit,) = places("." * place + "a" + "." * (7 - place))[1:]
        areas.append(bit + 8 - segment)
    assert areas == [1, 1, 2, 2, 2, 3, 3, 3]


@given(TEXTS, HASHES)
def test_hashes_are_those_of_plain_python(texts, hashing):
    hashes = hashing.hashes(pa.array(texts, pa.string()))
    assert hashes.dtype == np.uint64
    assert hashes.shape == (len(texts), hashing.bits // 64)
    expected = [xash(text, hashing.bits, hashing.ones) for text in texts]
    assert as_integers(hashes) == expected
    large = pa.array(["before", *texts], pa.large_string())[1:]
    assert as_integers(hashing.hashes(large)) == expected


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"bits": 100}, "bits of XASH must be one of 64, 128, 256, 512. Got 100"),
        ({"ones": 1}, "must be an integer from 2 on. Got 1"),
        ({"ones": True}, "must be an integer from 2 on. Got True"),
    ],
)
def test_wrong_parameters_are_refused(parameters, message):
    with pytest.raises(InputError, match=message):
        Xash(**parameters)
