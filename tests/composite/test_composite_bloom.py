"""Bloom filters against published hashes and against the same filter in plain Python."""

import pyarrow as pa
import pytest
from composite_oracle import as_integers, bloom, murmur3
from hypothesis import given
from hypothesis import strategies as st

from pexeso.composite.row_keys import Bloom, hashes_for
from pexeso.errors import InputError


@pytest.mark.parametrize(
    ("text", "seed", "expected"),
    [
        ("", 1, 0x514E28B7),
        ("hello", 0, 0x248BFA47),
        ("hello, world", 0, 0x149BBB7F),
        ("The quick brown fox jumps over the lazy dog", 0, 0x2E4FF723),
        ("The quick brown fox jumps over the lazy dog", 0x9747B28C, 0x2FA826CD),
    ],
)
def test_published_values_of_the_hash(text, seed, expected):
    assert murmur3(text.encode(), seed) == expected


@given(
    st.lists(st.text(max_size=20), max_size=20),
    st.sampled_from([64, 128, 256, 512]),
    st.integers(1, 40),
)
def test_bits_are_those_of_plain_python(texts, bits, n_hashes):
    hashes = Bloom(bits, n_hashes).hashes(pa.array(texts, pa.string()))
    assert as_integers(hashes) == [bloom(text, bits, n_hashes) for text in texts]


@pytest.mark.parametrize(
    ("bits", "web", "open_data"), [(128, 17.74, 3.41), (256, 35.49, 6.8), (512, 70.98, 13.7)]
)
def test_the_number_of_hashes_of_the_paper(bits, web, open_data):
    assert hashes_for(bits, 5) == round(web)
    assert hashes_for(bits, 26) == round(open_data)


def test_the_number_of_hashes_is_at_least_one():
    assert hashes_for(128, 1000) == 1


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"bits": 96}, "must be one of 64, 128, 256, 512. Got 96"),
        ({"n_hashes": 0}, "must be an integer from 1 on. Got 0"),
        ({"n_hashes": 1.5}, "must be an integer from 1 on. Got 1.5"),
    ],
)
def test_wrong_parameters_are_refused(parameters, message):
    with pytest.raises(InputError, match=message):
        Bloom(**parameters)
