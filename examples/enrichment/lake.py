"""The lakes of the experiment, and the index.

The lake is the real ones next to the repository combined into one, or the demo lake.
"""

from __future__ import annotations

import tarfile
from pathlib import Path

import pexeso

ROOT = Path(__file__).resolve().parent.parent.parent
SHARED = ROOT.parent / "shared" / "data"
DEMO = ROOT / "examples" / "lake"
SETS = ("fivethirtyeight", "pudding", "countries", "wikitables")

REPEATED = ("march-madness-predictions", "womens-world-cup-predictions")
"""Two hundred tables of the same teams, one for each day of a forecast.

They would fill every answer.
"""


def unpack_lake(folder: Path) -> Path:
    """Unpack the real lakes below a folder, once; give the folder of the lake.

    Raises
    ------
    pexeso.LakeError
        They are not on this machine.
    """
    lake = folder / "lake"
    if lake.is_dir():
        return lake
    missing = [name for name in SETS if not (SHARED / name / "tables.tar.gz").is_file()]
    if missing:
        raise pexeso.LakeError(
            f"The real lakes {', '.join(missing)} are not on this machine ({SHARED}); --tasks "
            "demo needs none of them."
        )
    partial = folder / "lake.partial"
    for name in SETS:
        with tarfile.open(SHARED / name / "tables.tar.gz") as archive:
            members = [
                member for member in archive if not member.name.split("/")[-1].startswith(REPEATED)
            ]
            archive.extractall(partial, members=members, filter="data")
    return partial.rename(lake)


def open_or_build(lake: Path, path: Path) -> pexeso.Index:
    """Open the index at `path`; where there is none, build it with the default options."""
    if not path.exists():
        pexeso.build_index(lake, path)
    # Compiled loops from the start pay where a task asks one large question of a large lake.
    return pexeso.open_index(path, kernel="auto" if lake == DEMO else "compiled")
