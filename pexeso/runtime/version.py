"""What runs here: the version, the commit that it was built from, and the extras with versions."""

from __future__ import annotations

import platform
import re
from collections.abc import Iterator
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from pexeso import __version__
from pexeso.runtime.extras import EXTRAS

_PACKAGE = Path(__file__).resolve().parents[1]
# Written where a wheel is built from a checkout; see setup.py.
_COMMIT_FILE = _PACKAGE / "commit.txt"
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_LETTERS = 12
# Distributions that are not named as what is imported of them.
_OTHER_NAMES = {"sklearn": "scikit-learn", "faiss": "faiss-cpu", "fasttext": "fasttext-numpy2"}


def commit() -> str | None:
    """Return the commit of the sources, shortened, of a wheel or a checkout; None if not known."""
    with suppress(OSError, ValueError):
        for text in (_text(_COMMIT_FILE), _head(_PACKAGE.parent / ".git")):
            if text is not None and _COMMIT.fullmatch(text):
                return text[:_LETTERS]
    return None


def _text(path: Path) -> str | None:
    return path.read_text(encoding="utf-8").strip() if path.is_file() else None


def _head(git: Path) -> str | None:
    """Return the commit that a checkout is at, as its files have it."""
    if (link := _text(git)) is not None:  # of a further working tree
        git = git.parent / link.removeprefix("gitdir: ")
    head = _text(git / "HEAD")
    if head is None or not head.startswith("ref: "):
        return head
    name = head.removeprefix("ref: ")
    shared = git / (_text(git / "commondir") or "")
    for folder in (git, shared):
        if (written := _text(folder / name)) is not None:
            return written
    lines = (_text(shared / "packed-refs") or "").splitlines()
    return next((line.split()[0] for line in lines if line.endswith(f" {name}")), None)


def version_text() -> str:
    """Return version and commit on a line, then Python, and each extra with its packages."""
    known = commit()
    first = f"pexeso {__version__}" + (f" (commit {known})" if known else "")
    python = f"Python {platform.python_version()} on {platform.system()} {platform.machine()}"
    return "\n".join([first, python, *_extras()])


def _extras() -> Iterator[str]:
    by_extra: dict[str, list[str]] = {}
    for package, extra in EXTRAS.items():
        name = _OTHER_NAMES.get(package, package.replace("_", "-"))
        with suppress(PackageNotFoundError):
            package_version = f"{name} {version(name)}"
            by_extra.setdefault(extra, []).append(package_version)
    for extra in sorted(by_extra):
        yield f"{extra}: {', '.join(by_extra[extra])}"
