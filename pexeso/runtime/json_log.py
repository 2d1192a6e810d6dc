"""What happens, as JSON lines: one object for each event, with its time."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, TextIO

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
        """Return one line."""
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
        """Return one line."""
        fields = getattr(record, _FIELDS, None) or {}
        details = ", ".join(f"{name}={value}" for name, value in fields.items())
        return f"{record.name}: {super().format(record)}{f' ({details})' if details else ''}"


class MessageLines(io.TextIOBase):
    """A text stream that writes its lines to another stream as JSON events.

    Each line is an event ``message``, or ``error``.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._line = ""

    @property
    def encoding(self) -> str:
        """Of the stream behind."""
        return getattr(self._stream, "encoding", None) or "utf-8"

    @property
    def errors(self) -> str:
        """Of the stream behind."""
        return getattr(self._stream, "errors", None) or "backslashreplace"

    def writable(self) -> bool:
        """Say that it can be written to."""
        return True

    def isatty(self) -> bool:
        """Say that nobody looks, so that no progress bar is drawn."""
        return False

    def write(self, text: str) -> int:
        """Write every line that is complete."""
        *complete, self._line = (self._line + text).split("\n")
        for line in complete:
            self._write_line(line)
        return len(text)

    def flush(self) -> None:
        """Pass on what is complete."""
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
