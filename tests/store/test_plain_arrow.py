import io

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pexeso.store.arrays import is_plain


def file_of(array: pa.Array, n_batches: int = 1, **options: object) -> bytes:
    sink = io.BytesIO()
    schema = pa.schema([("text", array.type)])
    with pa.ipc.new_file(sink, schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        for _ in range(n_batches):
            writer.write_batch(pa.record_batch([array], schema=schema))
    return sink.getvalue()


TEXTS = pa.array(["oslo", None, "lima"] * 50)


@pytest.mark.parametrize(
    "array", [TEXTS, pa.array([], pa.string()), TEXTS.cast(pa.large_string()), pa.array([1, 2])]
)
def test_a_batch_as_it_is_is_plain(array: pa.Array) -> None:
    assert is_plain(io.BytesIO(file_of(array)))
    assert is_plain(io.BytesIO(file_of(array, metadata_version=pa.ipc.MetadataVersion.V4)))


@pytest.mark.parametrize("compression", ["zstd", "lz4"])
def test_a_compressed_batch_is_not(compression: str) -> None:
    assert not is_plain(io.BytesIO(file_of(TEXTS, compression=compression)))


@pytest.mark.parametrize("n_batches", [0, 2])
def test_another_number_of_batches_is_not(n_batches: int) -> None:
    assert not is_plain(io.BytesIO(file_of(TEXTS, n_batches)))


@given(st.binary(max_size=200), st.booleans())
def test_bytes_that_are_no_arrow_file_are_not(data: bytes, framed: bool) -> None:
    length = len(data).to_bytes(4, "little")
    assert not is_plain(io.BytesIO(b"ARROW1\0\0" + data + length + b"ARROW1" if framed else data))


def test_what_is_called_plain_takes_no_memory_to_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that files accepted as plain take no memory to open.

    Each byte of a compressed file is changed in turn. What is accepted is no longer unpacked by
    Arrow, or is no file to it.
    """
    whole = file_of(pa.array(["\0" * 1_000_000]), compression="zstd")
    generator = np.random.default_rng(4)
    for place in range(len(whole)):
        changed = bytearray(whole)
        changed[place] ^= int(generator.integers(1, 256))
        if not is_plain(io.BytesIO(bytes(changed))):
            continue
        before = pa.total_allocated_bytes()
        try:
            batch = pa.ipc.open_file(pa.py_buffer(bytes(changed))).get_batch(0)
        except (pa.ArrowException, OSError, ValueError):
            continue
        assert pa.total_allocated_bytes() - before < 100_000
        del batch
