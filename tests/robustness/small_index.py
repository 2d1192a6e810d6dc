"""The small lake of the tests and an index of it, for commands that run outside of pytest."""

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [path for path in (str(ROOT), str(ROOT / "tests")) if path not in sys.path]


def build_small_index(folder: Path) -> Path:
    """Write and index the small lake with an untrained model, and return the index folder.

    The model needs no training.
    """
    from conftest import SMALL_LAKE

    from pexeso.index import build_index

    for name, text in SMALL_LAKE.items():
        path = folder / "lake" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    options = {"model": "hashing", "dimensions": 64, "parts": ["bands"]}
    return build_index(folder / "lake", folder / "lake.pexeso", **options).path
