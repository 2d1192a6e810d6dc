"""Values as keyed hashes: equal ones are found, and nobody reads them without the key.

A hash is BLAKE2b with a key, 128 bits as 32 hexadecimal digits. It takes the place of a token where
an index is written and where it is searched; so what counts, shares and orders is the same as of
texts. The key comes from the environment, and no index holds it.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from pexeso.errors import InputError
from pexeso.lake.catalog import SCHEMA
from pexeso.lake.left_out import grouped

# The variable that holds the key, or ``@`` and the path of a file with it.
KEY = "PEXESO_KEY"
MIN_KEY_BYTES, MAX_KEY_BYTES = 16, 1 << 16

# Why a column is not found by similar values.
REASON = "it is hashed, and found by equal values alone"


def value_key() -> bytes:
    """Return the key of this process, 64 bytes; it is not shown in any message."""
    given = os.environ.get(KEY, "")
    secret = given.encode("utf-8", "surrogateescape")
    if given.startswith("@"):
        try:
            with open(given[1:], "rb") as file:
                secret = file.read(MAX_KEY_BYTES + 1).strip()
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or "it is no path"
            raise InputError(f"The file that {KEY} names cannot be read: {reason}.") from None
    if not MIN_KEY_BYTES <= len(secret) <= MAX_KEY_BYTES:
        raise InputError(
            f"Hashed values need a key: set {KEY} to it, or to @FILE, a file with it. It has "
            f"{MIN_KEY_BYTES} to {MAX_KEY_BYTES:,} bytes, chosen at random. Got {len(secret):,}."
        )
    return hashlib.blake2b(secret, person=b"pexeso values").digest()


def key_check(key: bytes) -> str:
    """Return what an index holds to know its key by."""
    return hashlib.blake2b(b"pexeso", key=key, digest_size=16, person=b"key check").hexdigest()


def require_key(check: str) -> bytes:
    """Return the key of this process; raise InputError unless an index was written with it."""
    key = value_key()
    if key_check(key) != check:
        raise InputError(f"The index was written with another key than that of {KEY}.")
    return key


def hashed_texts(texts: pa.Array, key: bytes) -> pa.LargeStringArray:
    """Return the hash of each text; nulls stay."""
    encoded = texts.cast(pa.large_string()).dictionary_encode()
    # A loop of Python: 0.6 microseconds a text, where the same rounds in numpy take longer.
    hashes = [
        hashlib.blake2b(text, key=key, digest_size=16).hexdigest()
        for text in encoded.dictionary.cast(pa.large_binary()).to_pylist()
    ]
    return pa.array(hashes, pa.large_string()).take(encoded.indices)


def hashed_records(batches: Iterator[pa.RecordBatch], key: bytes) -> Iterator[pa.RecordBatch]:
    """Replace tokens among the records of a lake by hashes, and leave out what shows other values.

    That are values themselves, notes, and what reasons say of one file in particular.
    """
    columns = {name: SCHEMA.get_field_index(name) for name in ("value", "notes", "reason")}
    for batch in batches:
        batch = batch.filter(pc.is_in(batch["record"], value_set=pa.array(_KEPT)))
        if batch["reason"].null_count < len(batch):
            batch = batch.set_column(columns["reason"], SCHEMA.field("reason"), _reasons(batch))
        is_kept_column = pc.and_(pc.equal(batch["record"], "column"), batch["reason"].is_null())
        reason = pc.if_else(is_kept_column, REASON, batch["reason"])
        is_token = pc.equal(batch["record"], "token")
        tokens = pc.if_else(is_token, batch["value"], pa.scalar(None, pa.string()))
        value = hashed_texts(tokens, key).cast(pa.string())
        arrays = batch.columns
        for name, array in (("value", value), ("reason", reason)):
            arrays[columns[name]] = array
        arrays[columns["notes"]] = pc.if_else(
            batch["notes"].is_valid(), pa.array([[]] * len(batch), batch["notes"].type), None
        )
        yield pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


_KEPT = ["table", "column", "set", "token"]


def _reasons(batch: pa.RecordBatch) -> pa.Array:
    """Return reasons without what they say of one file in particular."""
    pairs = zip(batch["table"].to_pylist(), batch["reason"].to_pylist(), strict=True)
    reasons = [text and grouped(text, table).head.written() for table, text in pairs]
    return pa.array(reasons, pa.string())
