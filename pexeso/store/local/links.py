"""Links to the files of a snapshot, which can be read when the index is gone.

A name is given to each file in a folder that is this process's own: no byte is copied. An index
that is deleted then loses its names, and what was opened of it stays whole.
"""

import os
import tempfile
import weakref
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

from pexeso.store.io.temporary import temporary_folder

_PREFIX = "pexeso-open-"


class Links:
    """A folder of links, removed with the object."""

    def __init__(self, root: Path, relative_paths: Iterable[str], prefix: str, parent: Path):
        with ExitStack() as stack:
            self.path = stack.enter_context(temporary_folder(prefix, root=parent))
            for name in relative_paths:
                linked = self.path / name
                linked.parent.mkdir(parents=True, exist_ok=True)
                os.link(root / name, linked, follow_symlinks=False)
            self._remove = weakref.finalize(self, stack.pop_all().close)

    def release(self) -> None:
        """Remove the folder; once is enough, and the end of the object does it too."""
        self._remove()


def link_files(root: Path, relative_paths: Iterable[str]) -> Links | None:
    """Link files of an index, in the folder for temporary files or beside the index.

    Returns
    -------
    Links or None
        None where the file system has no hard links, or none may be made.
    """
    names = list(relative_paths)
    for parent, prefix in _places(root):
        with suppress(OSError):  # another file system, or one without hard links
            return Links(root, names, prefix, parent)
    return None


def _places(root: Path) -> Iterator[tuple[Path, str]]:
    yield Path(tempfile.gettempdir()), _PREFIX
    beside = root.resolve()
    yield beside.parent, f".{beside.name}.{_PREFIX}"
