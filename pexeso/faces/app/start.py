"""The app before it has an index: it takes files, and is the app of their index once it is made."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from pexeso.build.job import stage_names
from pexeso.errors import InputError, PexesoError
from pexeso.faces.app.jobs import Job, Jobs, report_stage
from pexeso.faces.app.page import Page, job_page
from pexeso.faces.app.tables import safe_name
from pexeso.index import build_index
from pexeso.lake.choose import ColumnRules
from pexeso.runtime.formatting import many

if TYPE_CHECKING:
    from starlette.requests import Request

    from pexeso.faces.app.page import Pages

MAX_FILES = 2_000
RULES = ColumnRules(min_rows=1, min_distinct=2)  # who gives two small files wants them joined


class Start:
    """Files of one lake, and their index, in a folder that the caller removes."""

    def __init__(self, folder: Path) -> None:
        self._files, self.index = folder / "files", folder / "index.pexeso"
        self._lake: str | None = None
        self.job: Job | None = None
        self._lock = Lock()
        self.is_done = False
        self.problem: str | None = None

    @property
    def is_building(self) -> bool:
        return self.job is not None and not self.job.ended.is_set()

    def build(
        self, jobs: Jobs, files: Iterable[tuple[str, Iterable[bytes]]], lake: str | None = None
    ) -> None:
        """Begin to index a lake, or else files, pairs of a name and pieces, which are kept.

        The lake is any folder or address that this process may read, as in ``pexeso index``: the
        guard lets in only who started it, on this machine, with the session of its link.
        """
        with self._lock:
            if self.is_building or self.is_done:
                raise InputError("Files are indexed already: stop the app to index others.")
            shutil.rmtree(self._files, ignore_errors=True)
            self._lake = lake
            if lake is None:
                self._keep(files)
            self.problem = None
            title = f"Indexing {lake or many(len([*self._files.iterdir()]), 'file')}"
            self.job = jobs.joined("/lake", self._build, title, len(stage_names()))

    def _keep(self, files: Iterable[tuple[str, Iterable[bytes]]]) -> None:
        self._files.mkdir()
        for name, pieces in files:
            with self._free(safe_name(name)).open("xb") as stream:
                stream.writelines(pieces)
        if not any(self._files.iterdir()):
            raise InputError("Choose files or a folder: there is nothing to index.")

    def _free(self, name: str) -> Path:
        """Return a path for a file, with a number in front of its name where that is taken."""
        path, number = self._files / name, 1
        while path.exists():
            number += 1
            path = self._files / f"{number} {name}"
        return path

    def _build(self) -> None:
        try:
            options: dict[str, Any] = {"overwrite": True, "progress": report_stage}
            if self._lake is None:
                build_index(self._files, self.index, rules=RULES, **options)
            else:
                build_index(os.path.expanduser(self._lake), self.index, **options)
            self.is_done = True
        except (PexesoError, OSError) as error:
            self.problem = str(error).replace(f"'{self._files}'", "what you gave")
        finally:
            if not self.is_done:
                shutil.rmtree(self._files, ignore_errors=True)

    def document(self) -> dict[str, Any]:
        files = sorted(path.name for path in self._files.iterdir()) if self._files.exists() else []
        return {
            "is_building": self.is_building,
            "is_done": self.is_done,
            "problem": self.problem,
            "files": files,
            "lake": self._lake,
            "stage": self.job and self.job.stage,
            "n_stages_begun": self.job.n_stages if self.job else 0,
            "n_stages": len(stage_names()),
        }


def start_page(pages: Pages, request: Request) -> Page:
    """Return the page that asks for files, or says how far their index is."""
    document = pages.start.document() if pages.start is not None else {}
    shown = {**document, "max_bytes": pages.tables.max_bytes}
    start = Page("start.html", shown, lambda: document)
    if pages.start is None or pages.start.job is None or not document["is_building"]:
        return start
    return replace(job_page(pages, pages.start.job), document=start.document)
