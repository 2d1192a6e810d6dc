"""Safe stdout and stderr streams of the command line.

No text from a lake or an argument can control the terminal that shows it.

A cell, a file's name or an argument may hold escape sequences, which a terminal obeys. Messages
(stderr) never have control characters: they are written as escapes. Data (stdout) has them as they
are, byte for byte, unless the stream is a terminal.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import re
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

import click

from pexeso.errors import OutputError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


# Control characters but line feed and tab, line separators, lone surrogates, marks that turn the
# direction of writing.
_CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\u202a-\u202e\u2066-\u2069]"
)


def without_control_characters(text: str) -> str:
    """Write control characters as escapes; line feeds and tabs stay."""
    return _CONTROL.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


_ERROR = "Error:"

# Replaces the escape character of our own colours until a `SafeStream` writes them.
#
# It is another one in every process, so that no text of a lake can hold it.
_MARK = f"\ue000{secrets.token_hex(8)}"


def wants_colours(stream: TextIO) -> bool:
    """Return whether a stream shows colours: a terminal that has them, or ``FORCE_COLOR``.

    ``NO_COLOR`` comes first. Each counts where it is set and not empty.
    """
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def styled(text: str, *, err: bool = False, **style: Any) -> str:
    """Return a text with a style of `click.style`, or as it is where no colours are shown.

    Control characters in it are escaped. To be measured before it is styled.
    """
    if not getattr(sys.stderr if err else sys.stdout, "coloured", False):
        return text
    return click.style(without_control_characters(text), **style).replace("\x1b", _MARK)


class SafeStream:
    """Text stream that writes to another stream, with control characters escaped if `escapes`."""

    # No attribute `buffer`: what is written must come through here.
    def __init__(
        self, stream: TextIO, *, escapes: bool, is_data: bool, coloured: bool = False
    ) -> None:
        self._stream, self._escapes, self._is_data = stream, escapes, is_data
        self.coloured = coloured

    @property
    def encoding(self) -> str:
        return self._stream.encoding

    @property
    def errors(self) -> str | None:
        return self._stream.errors

    @property
    def closed(self) -> bool:
        return self._stream.closed

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return self._stream.isatty()

    def fileno(self) -> int:
        return self._stream.fileno()

    def write(self, text: str) -> int:
        """Write a text, escaping control characters where the stream does.

        A carriage return at the start stays in messages, since progress bars are drawn with it.
        """
        if not isinstance(text, str):
            raise TypeError(f"A text stream takes texts. Got {type(text).__name__}.")
        if not text:
            return 0  # click tries streams out with nothing, and passes over errors
        shown = text
        if self._escapes:
            start = 1 if not self._is_data and text.startswith("\r") else 0
            shown = text[:start] + without_control_characters(text[start:])
        if self.coloured:
            if not self._is_data and shown.startswith(_ERROR):  # click's own errors too
                shown = click.style(_ERROR, fg="red", bold=True) + shown.removeprefix(_ERROR)
            shown = shown.replace(_MARK, "\x1b")
        with self._failures():
            self._stream.write(shown)
        return len(text)

    def flush(self) -> None:
        with self._failures():
            self._stream.flush()

    @contextmanager
    def _failures(self) -> Iterator[None]:
        try:
            yield
        except BrokenPipeError:
            self._drop()
            raise
        except OSError as error:
            self._drop()
            if self._is_data and error.errno == errno.EBADF:
                raise OutputError(
                    "Standard output is closed. Write to a file or into a pipe, or to /dev/null."
                ) from error
            if self._is_data:
                raise OutputError(
                    f"Standard output cannot be written: {error.strerror or error}. Make room, "
                    "or write elsewhere; "
                    "what was written so far is cut off."
                ) from error

    def _drop(self) -> None:
        """Discard what is still buffered, over which the end of the process would fail again."""
        with contextlib.suppress(OSError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._stream.fileno())
            os.close(nowhere)


class _AtOnce(io.BufferedWriter):
    """Writer that passes all that it is given on at once, however little the system takes."""

    def write(self, data: ReadableBuffer, /) -> int:
        n_bytes = super().write(data)
        self.flush()
        return n_bytes


@contextmanager
def whole_streams() -> Iterator[None]:
    """Put streams that write all or fail in the place of stdout and stderr that do neither.

    With ``PYTHONUNBUFFERED`` Python writes to the system directly, and takes a write of which the
    system took a part, as on a disk that fills up, for done. Where the process was started without
    a stream, it has None in its place.
    """
    # The second of each is what the protocol for agents writes to.
    names = ("stdout", "__stdout__", "stderr", "__stderr__")
    before = {name: getattr(sys, name) for name in names}
    whole = {name: _whole(stream) for name, stream in before.items()}
    for name, stream in whole.items():
        setattr(sys, name, stream)
    try:
        yield
    finally:
        for name, stream in before.items():
            setattr(sys, name, stream)
            if whole[name] is not stream:
                with contextlib.suppress(OSError):
                    whole[name].close()


def _whole(stream: TextIO | None) -> TextIO:
    if stream is None:
        # Opened for reading, so that each write fails; and a file of ours, which would be given the
        # number of the closed stream otherwise, does not get what libraries write to that number.
        return open(os.open(os.devnull, os.O_RDONLY), "w", encoding="utf-8")
    if not isinstance(getattr(stream, "buffer", None), io.RawIOBase):
        return stream
    raw = io.FileIO(stream.fileno(), "w", closefd=False)
    return io.TextIOWrapper(
        _AtOnce(raw), encoding=stream.encoding, errors=stream.errors, write_through=True
    )


@contextmanager
def safe_streams() -> Iterator[None]:
    """Put a `SafeStream` before stdout and stderr of this process for the duration of the block."""
    stdout, stderr = sys.stdout, sys.stderr
    sys.stdout = SafeStream(
        stdout, escapes=stdout.isatty(), is_data=True, coloured=wants_colours(stdout)
    )
    sys.stderr = SafeStream(stderr, escapes=True, is_data=False, coloured=wants_colours(stderr))
    try:
        yield
    finally:
        sys.stdout, sys.stderr = stdout, stderr
