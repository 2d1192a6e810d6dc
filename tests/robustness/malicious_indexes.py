"""Malicious indexes: copies of a whole one with some files replaced.

The manifest has the right checksums of everything in the index.
"""

import hashlib
import io
import json
import os
import shutil
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
from fuzz_strategies import npy_file
from fuzz_targets import resealed

PARTITION = "partitions/00000"
_STRING = pa.string()
SECRET = "secret.npy"
"""A file next to the index, which no manifest may lead to."""

Change = Callable[[dict], None]


def copy_with(
    index: Path,
    copy: Path,
    files: dict[str, bytes] | None = None,
    change: Change | None = None,
    *,
    seal: bool = True,
) -> Path:
    """Copy an index with some files replaced and its manifest changed.

    The manifest has the sizes and checksums of the replaced files.

    Parameters
    ----------
    files
        Path below the index to the bytes to put there.
    change
        Takes the manifest as a dictionary, after the entries of `files` were set.
    seal
        Give the manifest the right checksum of itself.
    """
    shutil.copytree(index, copy, copy_function=os.link)  # the model is large, and stays as it is
    document = json.loads((index / "manifest.json").read_bytes())
    for path, data in (files or {}).items():
        (copy / path).unlink(missing_ok=True)
        (copy / path).write_bytes(data)
        entry_of(document, path).update(
            n_bytes=len(data), checksum=hashlib.blake2b(data, digest_size=16).hexdigest()
        )
    if change is not None:
        change(document)
    data = json.dumps(document).encode()
    (copy / "manifest.json").unlink()
    (copy / "manifest.json").write_bytes((resealed(data) or data) if seal else data)
    return copy


def folders_of(document: dict) -> list[dict]:
    catalogs = document.get("catalogs") or [document["catalog"]]
    return [
        *catalogs,
        document["embedder"],
        *document["parts"]["semantic"],
        *document["parts"]["token_sets"],
    ]


def entry_of(document: dict, path: str) -> dict:
    """Return the entry of a file; a new one where the manifest has none."""
    for folder in folders_of(document):
        if path.startswith(f"{folder['folder']}/"):
            name = path.removeprefix(f"{folder['folder']}/")
            for entry in folder["files"]:
                if entry["path"] == name:
                    return entry
            folder["files"] = sorted(
                [*folder["files"], {"path": name}], key=lambda entry: entry["path"]
            )
            return next(entry for entry in folder["files"] if entry["path"] == name)
    raise KeyError(path)


def put(*keys: object, value: object) -> Change:
    """Make a change of the manifest that sets one value."""

    def change(document: dict) -> None:
        holder = document
        for key in keys[:-1]:
            holder = holder[key]
        holder[keys[-1]] = value

    return change


def remove(*keys: object) -> Change:
    def change(document: dict) -> None:
        holder = document
        for key in keys[:-1]:
            holder = holder[key]
        del holder[keys[-1]]

    return change


def file_named(path: object, **entry: object) -> Change:
    """Make a change that puts another file into the first partition."""

    def change(document: dict) -> None:
        files = document["parts"]["semantic"][0]["files"]
        files.append({"path": path, "n_bytes": 12, "checksum": "0" * 32, **entry})
        files.sort(key=lambda file: str(file["path"]))

    return change


NESTED = b"[" * 200_000

MANIFESTS: dict[str, Change] = {
    "a file above": file_named(f"../../{SECRET}"),
    "a file above, by a way round": file_named(f"a/../../../{SECRET}"),
    "an absolute file": file_named("/etc/passwd"),
    "a file with NUL": file_named("a\0b"),
    "a file with a backslash": file_named("..\\..\\secret"),
    "a file without a name": file_named(""),
    "a file that is the folder": file_named("."),
    "a file of many names": file_named("a/" * 100_000 + "a"),
    "half of a letter": file_named("\ud800"),
    "a name that is a number": file_named(7),
    "a file of all bytes": file_named("huge.npy", n_bytes=2**62),
    "a file of more bytes than there are": file_named("huge.npy", n_bytes=10**400),
    "a file of less than no bytes": file_named("less.npy", n_bytes=-1),
    "a file of true bytes": file_named("true.npy", n_bytes=True),
    "a partition above": put("parts", "semantic", 0, "folder", value="../other"),
    "an absolute partition": put("parts", "semantic", 0, "folder", value="/tmp"),
    "a partition of another place": put(
        "parts", "semantic", 0, "folder", value="partitions/../embedder"
    ),
    "a partition twice": lambda document: document["parts"]["semantic"].append(
        document["parts"]["semantic"][0]
    ),
    "an embedder above": put("embedder", "folder", value="embedder/../.."),
    "no partitions but a number": put("parts", "semantic", value=7),
    "no files": put("parts", "semantic", 0, "files", value=[]),
    "files that are texts": put("parts", "semantic", 0, "files", value=["vectors.npy"]),
    "no options": put("options", value={}),
    "no options of partitions": remove("options", "grid"),
    "options that are a list": put("options", "grid", value=[1]),
    "an option that is none": put("options", "grid", "explode", value=1),
    "a metric that is none": put("options", "grid", "metric", value="none"),
    "a metric that is a number": put("options", "grid", "metric", value=5),
    "more axes than there are": put("options", "grid", "n_axes", value=10**9),
    "axes that are a text": put("options", "grid", "n_axes", value="seven"),
    "no normaliser": remove("options", "normaliser"),
    "a normaliser that is a number": put("options", "normaliser", value=5),
    "a normaliser that is empty": put("options", "normaliser", value="{}"),
    "a normaliser nested too deep": put("options", "normaliser", value=NESTED.decode()),
    "no fingerprints": put("fingerprints", value={}),
    "fingerprints that are numbers": put("fingerprints", "embedder", value=5),
    "another fingerprint": put("fingerprints", "embedder", value="0" * 64),
    "no facts": put("facts", value={}),
    "facts that are texts": put("facts", "values", value="many"),
    "no lake": remove("facts", "lake"),
    "facts that are no Unicode": put("facts", "x", value="\ud800"),
    "parts that are no Unicode": put("parts", value="\ud800"),
    "another layout": put("options", "layout", value=2**70),
    "a layout that is a list": put("options", "layout", value=[2]),
    "a version that is a text": put("format_version", value="2"),
    "a version of tomorrow": put("format_version", value=99),
    "parts that are a list": put("parts", value=[]),
    "a part whose name leads away": put("parts", "../other", value=[]),
    "token sets above": put("parts", "token_sets", 0, "folder", value="../other"),
    "token sets that are a partition": lambda document: document["parts"]["token_sets"].append(
        document["parts"]["semantic"][0]
    ),
    "columns deleted that fall": put("deleted_columns", value=[[5, 1]]),
    "columns deleted that are texts": put("deleted_columns", value=["a"]),
    "more columns deleted than there are numbers": put("deleted_columns", value=[[0, 2**80]]),
}
"""Changes of the manifest, each of which must be refused."""


def saved(array: np.ndarray) -> bytes:
    sink = io.BytesIO()
    np.lib.format.write_array(sink, array, version=(1, 0), allow_pickle=False)
    return sink.getvalue()


def header(dtype: str, shape: str, data: bytes = b"") -> bytes:
    return npy_file(f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}", data)


def texts(
    offsets: list[int], data: bytes, kind: pa.DataType = _STRING, name: str = "text"
) -> bytes:
    """An Arrow file of texts at any offsets."""
    width = np.int32 if kind == pa.string() else np.int64
    buffers = [None, pa.py_buffer(np.array(offsets, width)), pa.py_buffer(data)]
    array = pa.Array.from_buffers(kind, len(offsets) - 1, buffers)
    return arrow(array, name)


def arrow(array: pa.Array, name: str = "text", **options: object) -> bytes:
    sink = io.BytesIO()
    schema = pa.schema([(name, array.type)])
    with pa.ipc.new_file(sink, schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_batch(pa.record_batch([array], schema=schema))
    return sink.getvalue()


def lying_lengths(data: bytes) -> bytes:
    """Replace every 64-bit length in an Arrow file by almost 2**31."""
    changed = bytearray(data)
    for place in range(8, len(data) - 8, 8):
        (number,) = struct.unpack_from("<q", data, place)
        if 0 < number < 4096:
            struct.pack_into("<q", changed, place, 2**31 - 8)
    return bytes(changed)


def partition_files(index: Path) -> dict[str, dict[str, bytes]]:
    """Return, for each kind of attack, the files of the partition to replace.

    Each attack must be refused when the index is opened, searched or checked.
    """

    def array(name: str) -> np.ndarray:
        return np.load(index / PARTITION / f"{name}.npy")

    def at(name: str, data: bytes) -> dict[str, bytes]:
        return {f"{PARTITION}/{name}": data}

    def put_in(name: str, place: int, value: int) -> dict[str, bytes]:
        changed = array(name)
        changed.flat[place] = value
        return at(f"{name}.npy", saved(changed))

    def listed(name: str) -> list[str]:
        return (
            pa.ipc.open_file(str(index / PARTITION / f"{name}.arrow"))
            .read_all()["text"]
            .to_pylist()
        )

    n_values = len(listed("values"))
    n_columns = len(listed("tables"))
    n_texts = len(listed("texts"))
    vectors = array("vectors")
    # Arrow looks at the first and the last offset by itself.
    wild = {
        name: [*([0, 2**30, *[-(2**30), 2**30] * n][:n]), 2]
        for name, n in (("tables", n_columns), ("texts", n_texts))
    }
    return {
        "a shape beyond all files": at("vectors.npy", header("<f4", f"({2**62}, 64)")),
        "a shape that overflows": at(
            "vectors.npy", header("<f4", f"({2**32}, {2**32}, {2**32})", b"\0" * 16)
        ),
        "a shape below zero": at("vectors.npy", header("<f4", "(-1, 64)")),
        "a shape of many axes": at("vectors.npy", header("<f4", "(" + "1," * 500 + ")", b"\0" * 4)),
        "a header nested too deep": at("vectors.npy", npy_file("(" * 3000)),
        "a header that never ends": at("vectors.npy", b"\x93NUMPY\x01\x00\xff\xff" + b" " * 100),
        "pickled objects": at("vectors.npy", header("|O", "(1,)", b"cos\nsystem\n(S'true'\ntR.")),
        "a header of the second version": at("vectors.npy", b"\x93NUMPY\x02\x00" + b"\xff" * 20),
        "an empty file": at("vectors.npy", b""),
        "vectors of another type": at("vectors.npy", saved(vectors.astype(np.float64))),
        "vectors of one dimension": at("vectors.npy", saved(vectors[:, :1].copy())),
        "fewer vectors": at("vectors.npy", saved(vectors[:-1].copy())),
        "vectors that are not finite": put_in("vectors", 5, np.nan),
        "axes of another shape": at("axes.npy", saved(np.zeros((1000, 64)))),
        "levels that lead away": put_in("box_starts", -1, 2**40),
        "levels below zero": put_in("box_starts", 0, -5),
        "no boxes": at("boxes.npy", saved(array("boxes")[:0])),
        "offsets below zero": put_in("value_columns_offsets", 1, -(2**40)),
        "offsets that lead away": put_in("value_columns_offsets", 3, 2**62),
        "columns below zero": put_in("value_columns_members", 0, -5),
        "columns that are not there": {**put_in("value_columns_members", 0, 2**31 - 1)},
        "values that are not there": put_in("column_values_members", 0, 2**31 - 1),
        "offsets of columns that lead away": put_in("column_values_offsets", 1, 2**62),
        "texts that are not there": put_in("posting_texts", 0, 2**31 - 1),
        "texts below zero": put_in("posting_texts", 0, -1),
        "fewer ids": at("column_ids.npy", saved(array("column_ids")[:1])),
        "names at offsets that lead away": at("tables.arrow", texts(wild["tables"], b"ab")),
        "labels that are no UTF-8": at(
            "labels.arrow", texts(list(range(n_columns + 1)), b"\xff" * n_columns)
        ),
        "texts at offsets that lead away": at("texts.arrow", texts(wild["texts"], b"ab")),
        "values that are missing": at(
            "values.arrow", arrow(pa.array([None] * n_values, pa.string()))
        ),
        "fewer names": at("tables.arrow", arrow(pa.array(["x"]))),
        "names that are numbers": at("tables.arrow", arrow(pa.array([1] * n_columns))),
        "lengths that lie": at(
            "values.arrow", lying_lengths((index / PARTITION / "values.arrow").read_bytes())
        ),
        "a bomb of texts": at("values.arrow", arrow(pa.array(["\0" * 10**8]), compression="zstd")),
        "no Arrow file": at("values.arrow", b"ARROW1\0\0" + b"\xff" * 64 + b"ARROW1"),
        "a document nested too deep": at("meta.json", NESTED),
        "a document of many bytes": at("meta.json", b"[" + b"0," * (1 << 23) + b"0]"),
        "a document that is none": at("meta.json", b"NaN"),
    }


def token_files(index: Path) -> dict[str, dict[str, bytes]]:
    """As `partition_files`, of the token sets."""
    [entry] = json.loads((index / "manifest.json").read_bytes())["parts"]["token_sets"]
    folder = index / entry["folder"]

    def at(name: str, data: bytes) -> dict[str, bytes]:
        return {f"{entry['folder']}/{name}": data}

    def put_in(name: str, place: int, value: int) -> dict[str, bytes]:
        changed = np.load(folder / f"{name}.npy")
        # As wide as the numbers are: a small index has narrow ones.
        low, high = np.iinfo(changed.dtype).min, np.iinfo(changed.dtype).max
        changed.flat[place] = min(max(value, low), high) if low or value > 0 else high - 1
        return at(f"{name}.npy", saved(changed))

    def described(**fields: object) -> dict[str, bytes]:
        document = json.loads((folder / "containment.json").read_bytes())
        return at("containment.json", json.dumps({**document, **fields}).encode())

    texts_of = pa.ipc.open_file(str(folder / "texts.arrow")).read_all()["text"]
    wild = [0, 2**30, *[-(2**30), 2**30] * len(texts_of)][: len(texts_of)]
    return {
        "lists that lead away": put_in("token_offsets", 1, 2**62),
        "lists below zero": put_in("token_offsets", 2, -(2**40)),
        "sets of lists that are not there": put_in("list_sets", 0, 2**31 - 1),
        "sets of lists below zero": put_in("list_sets", -1, -7),
        "places that are not there": put_in("list_places", 0, 2**31 - 1),
        "sets that lead away": put_in("set_offsets", 1, 2**62),
        "tokens that are not there": put_in("set_tokens", 0, 2**31 - 1),
        "tokens below zero": put_in("set_tokens", 0, -1),
        "token numbers that are not there": {**put_in("text_numbers", 0, 2**31 - 1)},
        "token numbers below zero": put_in("text_numbers", 3, -5),
        "groups that fall": put_in("groups", -1, -(2**40)),
        "ids that are not there": put_in("ids", 0, 2**40),
        "tokens at offsets that lead away": at(
            "texts.arrow", texts([*wild, 2], b"ab", pa.large_string())
        ),
        "fewer labels of token sets": at("labels.arrow", arrow(pa.array(["x"]))),
        "fewer tables of token sets": at("tables.arrow", arrow(pa.array(["x"]))),
        "fewer positions": at("positions.npy", saved(np.zeros(1, np.int32))),
        "rows of tables that are not there": put_in("containment_table_sets", 0, 2**31 - 1),
        "rows of tables below zero": put_in("containment_table_sets", 5, -5),
        "partitions of sizes that lead away": put_in("containment_starts", -1, 2**40),
        "sets of signatures that are not there": put_in("containment_sets", 0, 2**40),
        "sizes that fall": put_in("containment_sizes", 0, 2**40),
        "signatures of another shape": at(
            "containment_signatures.npy", saved(np.zeros((3, 3), np.int32))
        ),
        "signatures of pickled objects": at(
            "containment_signatures.npy", header("|O", "(1,)", b"cos\nsystem\n(S'true'\ntR.")
        ),
        "signatures that are nested too deep": at("containment.json", NESTED),
        "signatures of absurd options": described(options={"permutations": 2**40}),
        "signatures of another version": described(version=99),
        "signatures without options": described(options=None),
    }


def other_files(index: Path) -> dict[str, dict[str, bytes]]:
    """As `partition_files`, of the model and the catalog."""
    description = json.loads((index / "embedder/embedder.json").read_bytes())

    def described(**fields: object) -> dict[str, bytes]:
        return {"embedder/embedder.json": json.dumps({**description, **fields}).encode()}

    catalog = [f"catalog/{path.name}" for path in sorted((index / "catalog").glob("*.parquet"))]
    return {
        "a model of absolute files": described(
            files={"/etc/passwd": {"bytes": os.stat("/etc/passwd").st_size}}
        ),
        "a model of files above": described(files={f"../../{SECRET}": {"bytes": 12}}),
        "a model of a file with NUL": described(files={"a\0": {"bytes": 12}}),
        "a model of another kind": described(kind="../../evil"),
        "a model without options": described(options={}),
        "a model that is a list": {"embedder/embedder.json": b"[]"},
        "a model nested too deep": {"embedder/embedder.json": NESTED},
        "a model of huge rows": {"embedder/signs.npy": header("|u1", f"({2**40}, 8)", b"\0" * 64)},
        "a model of pickled rows": {
            "embedder/signs.npy": header("|O", "(1,)", b"cos\nsystem\n(S'true'\ntR.")
        },
        "a model of wild words": {
            "embedder/words.arrow": texts([0, 2**40, -5, 2], b"ab", pa.large_string(), "word")
        },
        "a catalog that is none": {path: b"PAR1" + b"\xff" * 100 + b"PAR1" for path in catalog},
        "an empty catalog": dict.fromkeys(catalog, b""),
    }
