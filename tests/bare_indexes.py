"""An index without its parts for exact-value search, derived from one that has them.

A separate build would take much longer.
"""

import shutil
from dataclasses import replace
from pathlib import Path

from pexeso.store.manifest import Manifest
from pexeso.store.paths import MANIFEST


def without_parts(index: Path, copy: Path) -> Path:
    """Copy an index as though it had been built without parts for equal text."""
    shutil.copytree(index, copy)
    manifest = Manifest.from_bytes((copy / MANIFEST).read_bytes())
    for entry in manifest.parts["token_sets"]:
        shutil.rmtree(copy / entry.folder)
    manifest = replace(
        manifest,
        parts={**manifest.parts, "token_sets": ()},
        options={**manifest.options, "parts": []},
    )
    (copy / MANIFEST).write_bytes(manifest.to_bytes())
    return copy
