"""An index without its parts for equal values, derived from one that has them.

A separate build would take much longer.
"""

import shutil
from dataclasses import replace
from pathlib import Path

from pexeso.store.manifest import MANIFEST, Manifest


def without_parts(index: Path, copy: Path) -> Path:
    """Copy an index as though it had been built for semantic search alone."""
    shutil.copytree(index, copy)
    manifest = Manifest.from_bytes((copy / MANIFEST).read_bytes())
    gone = {name: () for name in ("token_sets", "row_keys") if name in manifest.parts}
    for entry in (entry for name in gone for entry in manifest.parts[name]):
        shutil.rmtree(copy / entry.folder)
    manifest = replace(
        manifest,
        parts={**manifest.parts, **gone},
        options={**manifest.options, "parts": []},
    )
    (copy / MANIFEST).write_bytes(manifest.to_bytes())
    return copy
