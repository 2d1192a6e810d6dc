"""The log, as JSON lines or for people, progress bars, and how much of both is shown in Python.

Bars are those of `tqdm.auto`: a widget in a notebook that can show one, else text on stderr.
"""

from __future__ import annotations

import io
import json
import logging
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import wraps
from inspect import signature
from typing import Any, Literal, ParamSpec, TextIO, TypeVar

LOGGER = logging.getLogger("pexeso")

_FIELDS = "fields"


def log_event(event: str, **fields: Any) -> None:
    """Log an event, such as the start of a stage."""
    LOGGER.info(event, extra={_FIELDS: fields})


def event_line(event: str, moment: float, fields: dict[str, Any]) -> str:
    """Write an event as JSON on one line."""
    shown = (
        datetime.fromtimestamp(moment, UTC)
        .isoformat(timespec="milliseconds")
        .replace("+00:00", "Z")
    )
    text = json.dumps({"time": shown, "event": event, **fields}, ensure_ascii=False, default=str)
    # Halves of letters, which a lake's names may hold, cannot be written as UTF-8.
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


class JsonFormatter(logging.Formatter):
    """Formatter of the records of `log_event`.

    Any other record becomes an event ``log`` with its logger, level and message.
    """

    def format(self, record: logging.LogRecord) -> str:
        fields = getattr(record, _FIELDS, None)
        if fields is not None:
            return event_line(record.getMessage(), record.created, fields)
        message = {
            "logger": record.name,
            "level": record.levelname.lower(),
            "message": record.getMessage(),
        }
        if record.exc_info:
            message["error"] = self.formatException(record.exc_info)
        return event_line("log", record.created, message)


class TextFormatter(logging.Formatter):
    """Formatter of the same records for people: the event with its fields, or the message."""

    def format(self, record: logging.LogRecord) -> str:
        fields = getattr(record, _FIELDS, None) or {}
        details = ", ".join(f"{name}={value}" for name, value in fields.items())
        return f"{record.name}: {super().format(record)}{f' ({details})' if details else ''}"


class MessageLines(io.TextIOBase):
    """A text stream that writes its lines to another stream as JSON events.

    Each line is an event ``message``, or ``error``.
    """

    encoding: str = "utf-8"
    errors: str | None = "backslashreplace"

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._line = ""
        self.encoding = getattr(stream, "encoding", None) or self.encoding
        self.errors = getattr(stream, "errors", None) or self.errors

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return False  # a terminal would get a progress bar

    def write(self, text: str) -> int:
        """Write every line that is complete."""
        *complete, self._line = (self._line + text).split("\n")
        for line in complete:
            self._write_line(line)
        return len(text)

    def flush(self) -> None:
        self._stream.flush()

    def close(self) -> None:
        """Write what is left of the last line; the stream behind stays open."""
        if not self.closed:
            self._write_line(self._line)
            self._line = ""
        super().close()

    def _write_line(self, line: str) -> None:
        text = line.strip()
        if not text:
            return
        event, message = (
            ("error", text.removeprefix("Error: "))
            if text.startswith("Error: ")
            else ("message", text)
        )
        moment = datetime.now(UTC).timestamp()
        self._stream.write(f"{event_line(event, moment, {'message': message})}\n")
        self._stream.flush()


@contextmanager
def logging_to(stream: TextIO) -> Iterator[None]:
    """Write all that this package logs, from the level INFO on, to a stream as JSON lines."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter())
    level, propagate = LOGGER.level, LOGGER.propagate
    LOGGER.addHandler(handler)
    LOGGER.setLevel(logging.INFO)
    LOGGER.propagate = False
    try:
        yield
    finally:
        LOGGER.removeHandler(handler)
        LOGGER.setLevel(level)
        LOGGER.propagate = propagate


Given = ParamSpec("Given")
Result = TypeVar("Result")
Verbosity = Literal["quiet", "normal", "verbose"]

# Called with how much is done, and how much there is.
CountedProgress = Callable[[int, int], None]

# Called with the name of each stage as it starts.
StageProgress = Callable[[str], None]

_LEVELS = {"quiet": logging.ERROR, "normal": logging.NOTSET, "verbose": logging.INFO}
_HANDLER = logging.StreamHandler()
_HANDLER.setFormatter(TextFormatter())
_shows_bars = False


def set_verbosity(verbosity: Verbosity) -> None:
    """Set how much pexeso reports while it works: progress bars, and the level of its log.

    It holds for this process until it is set again, and changes no answer.

    Parameters
    ----------
    verbosity : {"quiet", "normal", "verbose"}
        ``"normal"``, as it is without a call: no bars; the logger ``pexeso`` has no level of its
        own, so that warnings are shown, unless your program configures logging otherwise.
        ``"quiet"``: errors alone are logged. ``"verbose"``: builds, updates, checks and searches
        for redundant tables show a bar unless they are given `progress`, and what happens is logged
        from the level INFO on, to stderr unless your program has handlers.

    Raises
    ------
    InputError
        It is none of these.

    Examples
    --------
    >>> set_verbosity("quiet")
    >>> set_verbosity("normal")
    """
    global _shows_bars
    from pexeso.runtime.checks import require_choice  # brings numpy

    require_choice("verbosity", verbosity, tuple(_LEVELS))
    _shows_bars = verbosity == "verbose"
    LOGGER.removeHandler(_HANDLER)
    LOGGER.setLevel(_LEVELS[verbosity])
    if verbosity == "verbose" and not LOGGER.hasHandlers():
        LOGGER.addHandler(_HANDLER)


@contextmanager
def bar(**shown: Any) -> Iterator[Any]:
    """Yield a progress bar of `tqdm.auto`, which is gone at the end."""
    with warnings.catch_warnings():
        # In a notebook without ipywidgets tqdm warns as it is imported, and shows text.
        warnings.filterwarnings("ignore", message="IProgress not found")
        from tqdm.auto import tqdm
    with tqdm(leave=False, **shown) as progress_bar:
        yield progress_bar


@contextmanager
def counted_bar(title: str, **unit: Any) -> Iterator[CountedProgress]:
    """Show a bar for work that reports how much is done and how much there is."""
    with bar(desc=title, **unit) as progress_bar:

        def report(n_finished: int, total: int) -> None:
            progress_bar.total = total
            progress_bar.update(n_finished - progress_bar.n)

        yield report


@dataclass
class _Steps:
    report: CountedProgress
    n_done: int = 0
    total: int = 0


_steps: ContextVar[_Steps | None] = ContextVar("steps", default=None)


@contextmanager
def reported_steps(report: CountedProgress | None) -> Iterator[None]:
    """Report how far the searches of this thread are inside the block, unless `report` is None."""
    token = _steps.set(None if report is None else _Steps(report))
    try:
        yield
    finally:
        _steps.reset(token)


def begin_steps(total: int) -> None:
    if (steps := _steps.get()) is not None:
        steps.n_done, steps.total = 0, total


def advance(n_steps: int, *, to: int | None = None) -> None:
    """Report that so many more steps are done, or as many as `to`."""
    steps = _steps.get()
    if steps is not None and steps.total and (n_steps or to is not None):
        steps.n_done = min(steps.n_done + n_steps if to is None else to, steps.total)
        steps.report(steps.n_done, steps.total)


def checkpoint() -> None:
    """Report the steps that are done again: whoever follows them may end the work by raising."""
    if (steps := _steps.get()) is not None:
        steps.report(steps.n_done, steps.total)


@contextmanager
def stage_bar(stages: Sequence[str]) -> Iterator[StageProgress]:
    """Show which of some stages is under way."""
    shown = "{desc:<12}{bar:20} {n_fmt}/{total_fmt} {elapsed}"
    with bar(total=len(stages), bar_format=shown) as progress_bar:

        def report(stage: str) -> None:
            progress_bar.set_description_str(stage, refresh=False)
            if stage in stages:  # others take the bar no further
                progress_bar.n = stages.index(stage)
            progress_bar.refresh()

        yield report


def with_bar(
    make_bar: Callable[[], AbstractContextManager[Callable[..., None]]],
) -> Callable[[Callable[Given, Result]], Callable[Given, Result]]:
    """Let a function show a bar where these are asked for and it is given no `progress`."""

    def decorate(work: Callable[Given, Result]) -> Callable[Given, Result]:
        parameters = signature(work)

        @wraps(work)
        def shown(*positional: Given.args, **options: Given.kwargs) -> Result:
            arguments = parameters.bind_partial(*positional, **options).arguments
            if not _shows_bars or arguments.get("progress") is not None:
                return work(*positional, **options)
            with make_bar() as report:
                options["progress"] = report
                return work(*positional, **options)

        return shown

    return decorate
