"""Jobs: pages and indexes that are made in threads, how far they are, and a way to end them."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from contextvars import ContextVar
from threading import Event, Lock, Thread
from typing import Any

from pexeso.errors import InputError, PexesoError
from pexeso.runtime.progress import reported_steps

# Seconds that a browser waits for a page before it is shown how far the page is.
PATIENCE = 2.0

# Seconds for which a page that took longer is kept, for all who wait for it.
KEPT_SECONDS = 10.0

# Jobs that run at a time: more are refused.
MAX_RUNNING = 32

# Seconds in which the jobs of a server that ends are left to end themselves.
END_SECONDS = 5.0

_current: ContextVar[Job | None] = ContextVar("job", default=None)


class UnknownJobError(PexesoError):
    """There is no job of this id."""


class Cancelled(KeyboardInterrupt):
    """Raised within a job that is to end, wherever it reports progress: as Ctrl-C, it ends all."""


class Job(Thread):
    """Work in a thread.

    It has stages, 0 where it has none, and steps of the stage that is under way, `n_done` of
    `total`, 0 where they are not known. `address` is the page that shows what it makes,
    `is_awaited` whether someone was told to come again for it, and `is_outdated` whether something
    has changed since it began, so that who comes again has it made anew.
    """

    def __init__(self, address: str, work: Callable[[], Any], title: str, stages: int) -> None:
        super().__init__(target=self._run, args=(work,), daemon=True)
        self.id, self.address, self.title = secrets.token_urlsafe(9), address, title
        self.n_all_stages = stages
        self.stage: str | None = None
        self.n_stages = self.n_done = self.total = 0
        self.ended, self.is_awaited, self.is_outdated = Event(), False, False
        self._counts, self._cancelled = False, Event()
        self._began, self._ended_at = time.monotonic(), 0.0
        self._result: Any = None
        self._error: BaseException | None = None

    def _run(self, work: Callable[[], Any]) -> None:
        _current.set(self)
        try:
            with reported_steps(self._step):
                self._result = work()
        except BaseException as error:  # raised again for those who wait for the page
            self._error = None if isinstance(error, Cancelled) else error
        finally:
            self._ended_at = time.monotonic()
            self.ended.set()

    def _check(self) -> None:
        if self._cancelled.is_set():
            raise Cancelled

    def _begin(self, stage: str) -> None:
        self._check()
        self.stage, self.n_done, self.total, self._counts = stage, 0, 0, False
        self.n_stages += 1

    def _count(self, n_done: int, total: int) -> None:
        self._check()
        self.n_done, self.total, self._counts = n_done, total, True

    def _step(self, n_done: int, total: int) -> None:
        """Take the steps of a search; they are part of one of those that the work counts."""
        self._check()
        if not self._counts:
            self.n_done, self.total = n_done, total

    @property
    def seconds(self) -> int:
        return int(time.monotonic() - self._began)

    @property
    def is_cancelled(self) -> bool:
        return self._cancelled.is_set()

    @property
    def is_kept(self) -> bool:
        """Whether it runs, or has ended just now and someone will come for it."""
        age = time.monotonic() - self._ended_at
        return not self.ended.is_set() or (self.is_awaited and age < KEPT_SECONDS)

    def cancel(self) -> None:
        self._cancelled.set()

    def result(self) -> Any:
        """Return what the work returned, or raise what it raised."""
        if self._error is not None:
            raise self._error
        return self._result


def report_stage(stage: str) -> None:
    """Report which part of its work a job begins, where this thread works for one."""
    if (job := _current.get()) is not None:
        job._begin(stage)


def report_count(n_done: int, total: int) -> None:
    """Report how many steps of all a job has done, where this thread works for one."""
    if (job := _current.get()) is not None:
        job._count(n_done, total)


class Jobs:
    """The jobs of a server."""

    def __init__(self) -> None:
        self._jobs: dict[str, Job] = {}
        self._lock = Lock()

    def __enter__(self) -> Jobs:
        return self

    def __exit__(self, *exception: object) -> None:
        for job in self._jobs.values():
            job.cancel()
        end = time.monotonic() + END_SECONDS
        for job in self._jobs.values():
            job.join(max(0.0, end - time.monotonic()))

    def __getitem__(self, job_id: str) -> Job:
        with self._lock:
            if (job := self._jobs.get(job_id)) is None:
                raise UnknownJobError("This work has ended: open its page again.")
            return job

    def joined(
        self, address: str, work: Callable[[], Any], title: str = "Searching", stages: int = 0
    ) -> Job:
        """Return the job that makes a page: the one under way, or a new one."""
        with self._lock:
            self._jobs = {job_id: job for job_id, job in self._jobs.items() if job.is_kept}
            for job in self._jobs.values():
                if job.address == address and not (job.is_cancelled or job.is_outdated):
                    return job
            if sum(not job.ended.is_set() for job in self._jobs.values()) >= MAX_RUNNING:
                raise InputError(
                    f"{MAX_RUNNING} pages are being made, which is the limit: wait until one is "
                    "there, or cancel one."
                )
            job = Job(address, work, title, stages)
            self._jobs[job.id] = job
        job.start()
        return job

    def forget(self) -> None:
        """Show no page that was begun before something changed."""
        with self._lock:
            for job in self._jobs.values():
                job.is_outdated = True
