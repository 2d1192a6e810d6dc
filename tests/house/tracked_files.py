"""The files that git knows of, for tests that read all of them."""

from pathlib import Path

import pytest
from processes import ran

ROOT = Path(__file__).resolve().parent.parent.parent


def tracked_files(*patterns: str) -> list[Path]:
    """Return those of the project, or of some patterns; skip the test where this is no checkout."""
    done = ran(["git", "ls-files", "-z", *patterns], cwd=ROOT)
    if done.returncode != 0:
        pytest.skip("not a git checkout, so there is no list of tracked files")
    return [ROOT / name for name in done.stdout.split("\0") if name and (ROOT / name).is_file()]
