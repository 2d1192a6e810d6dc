"""Why entries of a folder are not looked at: their names, and where their links lead."""

from __future__ import annotations

import os
from pathlib import Path


def reason_by_name(name: str) -> str | None:
    """Return why an entry is not taken for its name; None where it is."""
    if not _is_valid_text(name):
        return "its name is not valid UTF-8; rename it"
    return "hidden: its name starts with a dot" if name.startswith(".") else None


def reason_link_not_followed(entry: os.DirEntry[str], resolved_root: Path) -> str | None:
    """Return why a symbolic link is not followed; None where it is."""
    try:
        target = Path(entry.path).resolve(strict=True)
    except (OSError, RuntimeError):
        return "a symbolic link whose target does not exist"
    if not target.is_relative_to(resolved_root):
        return "a symbolic link that leaves the lake"
    if target.is_dir():
        return "a symbolic link to a folder of the lake, which is read in its own place"
    return None


def _is_valid_text(name: str) -> bool:
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
