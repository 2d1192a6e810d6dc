"""What a user says about a delimited text, in place of what would be found."""

from __future__ import annotations

import codecs
from dataclasses import dataclass, fields

from pexeso.errors import InputError

MAX_HEADER_ROWS = 20
MAX_SKIPPED_ROWS = 1_000_000

_DELIMITER_OF_NAME = {"tab": "\t", "\\t": "\t", "space": " "}
_NO_DELIMITERS = frozenset("\"'\r\n\0\ufeff")
_NOT_FOR_FILES = frozenset(
    {"idna", "punycode", "undefined", "unicode_escape", "raw_unicode_escape", "mbcs", "oem"}
)


@dataclass(frozen=True)
class ReadingOptions:
    r"""How to read a delimited text. None: the reader finds it.

    Formats without a delimiter (Parquet, JSON lines and others) take no notice of these options.

    Attributes
    ----------
    delimiter
        What separates cells, one character that is no letter, digit, quotation mark or line break;
        ``tab``, ``\t`` and ``space`` stand for theirs.
    encoding
        A text encoding that Python knows. It is stored under Python's own name for it.
    header
        Number of header rows, 0 to 20. The names of two or more rows are joined by a space
        ("Sales 2019"). With 0 the columns have no names, and are called ``#0``, ``#1`` and so on
        as all columns without names.
    skip_rows
        Number of lines before the header that are left out, 0 to 1,000,000. With 0 the text
        begins with its header.

    Raises
    ------
    InputError
        A value is not one of those allowed.

    Examples
    --------
    >>> ReadingOptions(delimiter="tab", encoding="latin1").to_dict()
    {'delimiter': '\t', 'encoding': 'iso8859-1'}
    """

    delimiter: str | None = None
    encoding: str | None = None
    header: int | None = None
    skip_rows: int | None = None

    def __post_init__(self) -> None:
        if self.delimiter is not None:
            object.__setattr__(self, "delimiter", _checked_delimiter(self.delimiter))
        if self.encoding is not None:
            object.__setattr__(self, "encoding", _checked_encoding(self.encoding))
        _check_count("header", "header rows", self.header, MAX_HEADER_ROWS)
        _check_count("skip_rows", "lines to leave out", self.skip_rows, MAX_SKIPPED_ROWS)

    def __repr__(self) -> str:
        arguments = ", ".join(f"{name}={value!r}" for name, value in self.to_dict().items())
        return f"ReadingOptions({arguments})"

    def __bool__(self) -> bool:
        """Return whether anything is set."""
        return bool(self.to_dict())

    def to_dict(self) -> dict[str, str | int]:
        """Return what is set, as plain JSON."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in values.items() if value is not None}

    def require_none(self, got: str) -> None:
        """Refuse what is set, as what is read is no file.

        Parameters
        ----------
        got : str
            What it is instead, for the message.

        Raises
        ------
        InputError
            Something is set.
        """
        if self:
            raise InputError(f"{', '.join(self.to_dict())} tell how a file is read. Got {got}.")


def _checked_delimiter(value: object) -> str:
    delimiter = _DELIMITER_OF_NAME.get(value, value) if isinstance(value, str) else value
    if (
        not isinstance(delimiter, str)
        or len(delimiter) != 1
        or delimiter.isalnum()
        or delimiter in _NO_DELIMITERS
        or "\ud800" <= delimiter <= "\udfff"
    ):
        raise InputError(
            "delimiter must be one character that is no letter, digit, quotation mark or line "
            f"break, or 'tab' or 'space'. Got {value!r}."
        )
    return delimiter


def _checked_encoding(value: object) -> str:
    if isinstance(value, str):
        try:
            encoding = codecs.lookup(value).name
            "".encode(encoding)  # refuses what makes bytes of bytes, such as base64
        except (LookupError, UnicodeError, ValueError):
            encoding = ""
        if encoding and encoding.replace("-", "_") not in _NOT_FOR_FILES:
            return encoding
    raise InputError(
        "encoding must be the name of a text encoding, such as utf-8, latin-1, cp1252 or utf-16. "
        f"Got {value!r}."
    )


def _check_count(name: str, what: str, value: object, limit: int) -> None:
    if value is None:
        return
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= limit:
        raise InputError(
            f"{name} must be a number of {what}, a whole number from 0 to {limit:,}. Got {value!r}."
        )


AS_FOUND = ReadingOptions()
"""The reader finds everything."""
