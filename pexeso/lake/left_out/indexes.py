"""Folders of a lake that are indexes, which are left out of it."""

from __future__ import annotations

import json
from pathlib import Path

from pexeso.store.io.location import Location

INDEX_EXTENSION = ".pexeso"
"""Folders whose names end so are indexes."""

MANIFEST_NAME = "manifest.json"
_MANIFEST_KEYS = {"format_version", "fingerprints", "checksum"}
"""Those of a manifest in every version of the format."""

_MAX_MANIFEST_BYTES = 64 << 20


def is_index(folder: Path) -> bool:
    """Return whether a folder of this machine is an index, by its name or its manifest.

    Examples
    --------
    >>> is_index(Path("lake.pexeso")), is_index(Path("no/such/lake"))
    (True, False)
    """
    if folder.name.lower().endswith(INDEX_EXTENSION):
        return True
    manifest = folder / MANIFEST_NAME
    try:
        if not manifest.is_file() or manifest.stat().st_size > _MAX_MANIFEST_BYTES:
            return False
        return _is_manifest(manifest.read_bytes())
    except OSError:
        return False


def has_index_manifest(folder: Location) -> bool:
    """Return whether the file named like a manifest in a folder elsewhere is one of an index."""
    manifest = folder.joined(MANIFEST_NAME)
    entry = manifest.look()
    return (
        entry is not None
        and 0 < entry.n_bytes <= _MAX_MANIFEST_BYTES
        and _is_manifest(manifest.read())
    )


def _is_manifest(data: bytes) -> bool:
    try:
        content = json.loads(data)
    except (ValueError, RecursionError):
        return False
    return isinstance(content, dict) and content.keys() >= _MANIFEST_KEYS
