"""Texts that are too many for offsets of 32 bits, with a small bound in the place of 2 GiB."""

import pyarrow as pa
import pytest

from pexeso.store.io import wide_offsets
from pexeso.store.io.wide_offsets import take_wide


@pytest.mark.parametrize("kind", [pa.string(), pa.binary()])
def test_offsets_become_wide_where_rows_repeat(monkeypatch, kind) -> None:
    monkeypatch.setattr(wide_offsets, "MAX_BYTES", 30)
    texts = pa.array(["x" * 10, "y", None], kind)
    few, many = pa.array([0, 1, 2, 0]), pa.array([0, 0, 0, None, 1])
    assert take_wide(texts, few).type == kind
    assert take_wide(texts, many).type != kind
    assert take_wide(texts, many).to_pylist() == texts.take(many).to_pylist()
    assert take_wide(pa.array([1, 2]), pa.array([1] * 100)).type == pa.int64()
