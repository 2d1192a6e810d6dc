"""What arrays come to when they are written out, against what Python's objects of them hold."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from pexeso.errors import TableReadError
from pexeso.lake.containers.reader import open_named, read_table
from pexeso.lake.typed.text import total_bytes, written_bytes


def size(value: object) -> int:
    if isinstance(value, dict):
        return sum(map(size, value.values()))
    if isinstance(value, list | tuple):
        return sum(map(size, value))
    if isinstance(value, str | bytes):
        return len(value)
    return 0 if value is None else 1


TEXTS = pa.array(["a", "bcd", "", "efghi"])
VIEW = pa.ListViewArray.from_arrays(pa.array([0, 1, 0]), pa.array([4, 2, 0]), TEXTS)
ARRAYS = {
    "dictionary": TEXTS.take(pa.array([1, 1, None, 3])).dictionary_encode(),
    "lists": pa.array([["a", "bcd"], [], ["efghi"]]),
    "large lists": pa.array([["a", "bcd"], [], ["efghi"]], pa.large_list(pa.string())),
    "fixed lists": pa.array([["a", "bcd"], ["", "x"]], pa.list_(pa.string(), 2)),
    "views of lists": VIEW,
    "views of views": pa.ListViewArray.from_arrays(pa.array([0, 0]), pa.array([3, 3]), VIEW),
    "views of texts": pa.array(["a", "bcd" * 20, "", "efghi"], pa.string_view()),
    "objects": pa.array([{"x": "abc", "y": {"z": "d"}}, {"x": "", "y": {"z": "efg"}}]),
    "maps": pa.array([[("k", "v"), ("l", "w")], []], pa.map_(pa.string(), pa.string())).cast(
        pa.map_(pa.string(), pa.string())
    ),
    "runs": pa.RunEndEncodedArray.from_arrays(pa.array([2, 5, 6, 9], pa.int32()), TEXTS),
    "dictionary of lists": pa.DictionaryArray.from_arrays(
        pa.array([0, 1, 1, 0]), pa.array([["a", "bcd"], ["efghi"]])
    ),
}


@pytest.mark.parametrize("kind", ARRAYS)
def test_each_value_counts_what_it_holds(kind: str) -> None:
    values = ARRAYS[kind]
    for array in (values, values.slice(1), values.slice(0, 1), values.slice(1, 0)):
        wanted = [size(value) for value in array.to_pylist()]
        if kind == "maps":
            assert len(written_bytes(array)) == len(wanted)
            continue
        assert written_bytes(array).tolist() == wanted
        assert total_bytes(array) == sum(wanted)


def write(path: Path, values: pa.Array) -> None:
    batch = pa.record_batch([values], names=["a"])
    with pa.ipc.new_file(path, batch.schema) as writer:
        writer.write_batch(batch)


def bombs() -> dict[str, pa.Array]:
    n_rows = 50_000
    texts = pa.array(["x" * 1000] * 64)
    zeros, sizes = np.zeros(n_rows, np.int32), np.full(n_rows, 64, np.int32)
    long = pa.array(["z" * 100_000])
    return {
        "views": pa.ListViewArray.from_arrays(pa.array(zeros), pa.array(sizes), texts),
        "runs": pa.RunEndEncodedArray.from_arrays(pa.array([n_rows], pa.int32()), long),
    }


@pytest.mark.parametrize("kind", ["views", "runs"])
def test_values_that_are_said_often_are_refused_before_they_are_written(
    tmp_path: Path, kind: str
) -> None:
    path = tmp_path / "a.arrow"
    write(path, bombs()[kind])
    assert path.stat().st_size < 1_000_000
    with pytest.raises(TableReadError, match=r"unpacks to more than 1,073,741,824 bytes"):
        read_table(path)
    with pytest.raises(TableReadError, match=r"unpacks to more than 1,073,741,824 bytes"):
        list(open_named(path).rows())
