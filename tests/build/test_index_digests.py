"""The arrays of an index of the demo lake with every part are those that were recorded.

A change that is meant to leave the format and the answers as they are leaves these digests as they
are. Where a change of the format is meant, write the file again, with the reason in the commit:

    python -m tests.build.test_index_digests
"""

import hashlib
import json
from pathlib import Path

import numpy as np
import pyarrow as pa

import pexeso

LAKE = Path(pexeso.__file__).parent / "demo" / "lake"
GOLDEN = Path(__file__).with_name("index_digests.json")
PARTS = ("overlap", "containment", "composite", "redundancy")
# Products of matrices are summed in another order on another processor.
ROUNDED = ("vectors.npy", "axes.npy", "boxes.npy", "box_starts.npy", "block_codes.npy")


def digest(path: Path) -> str:
    """Return the digest of the values in a file, whatever the library that wrote it."""
    if path.suffix == ".npy":
        array = np.load(path, allow_pickle=False)
        text = f"{array.dtype.str} {array.shape} ".encode() + np.ascontiguousarray(array).tobytes()
    else:
        with pa.OSFile(str(path)) as file:
            table = pa.ipc.open_file(file).read_all()
        text = json.dumps([str(table.schema.remove_metadata()), table.to_pydict()]).encode()
    return hashlib.sha256(text).hexdigest()[:16]


def index_digests(folder: Path) -> dict[str, str]:
    paths = sorted([*folder.rglob("*.npy"), *folder.rglob("*.arrow")])
    names = {path: path.relative_to(folder).as_posix() for path in paths}
    return {names[path]: digest(path) for path in paths if path.name not in ROUNDED}


def build(folder: Path) -> dict[str, str]:
    path = folder / "demo.pexeso"
    pexeso.build_index(LAKE, path, model="lexical,hashing", parts=PARTS)
    return index_digests(path)


def test_arrays_of_an_index_are_those_recorded(tmp_path):
    assert build(tmp_path) == json.loads(GOLDEN.read_text(encoding="utf-8"))


if __name__ == "__main__":
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as name:
        text = json.dumps(build(Path(name)), indent=1, sort_keys=True)
    GOLDEN.write_text(text + "\n", encoding="utf-8")
