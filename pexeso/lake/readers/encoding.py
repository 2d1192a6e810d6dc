"""Detection of the character encoding of delimited text and of JSON.

The byte order mark is tried first, then UTF-8, then a guess that is always reported.
"""

import codecs
import json
import re
from dataclasses import dataclass

from pexeso.lake.readers.alphabets import encoding_of_letters

_MARKS = (
    # UTF-32 before UTF-16: the mark of one starts with that of the other.
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)

_CANDIDATES = [
    *(
        "cp1252",
        "cp1250",
        "cp1251",
        "cp1253",
        "cp1254",
        "cp1255",
        "cp1256",
        "cp1257",
        "iso8859_2",
        "koi8_r",
    ),
    *("cp437", "cp850", "mac_roman"),
    *("cp932", "euc_jp", "gb18030", "big5", "cp949"),
]
_MOST_LIKELY = "cp1252"
_EVIDENCE_BYTES = 16 << 10
_BLOCK_BYTES = 1 << 20
_HALF_LINE_BYTES = 512
_WRONG_BYTES = "not all valid {}: wrong bytes became the replacement character"
_MULTI_BYTE_CHARACTER = re.compile(
    rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}"
)
_CONTROL = re.compile(rb"\xc2[\x80-\x9f]")
_NO_MARK = re.compile(
    rb"\xc2[\x81\x83\x86-\x90\x98\x9a-\x9f]|\xc3[\x80-\xbf]\xc2[\x80-\x9f]|[A-Za-z]\xc2[\x91\x93]"
)
_HIGH_BYTE = re.compile(rb"[\x80-\xff]")


@dataclass(frozen=True)
class Encoding:
    """A Python codec name, its treatment of invalid bytes, and a note if it is a guess."""

    name: str
    note: str | None = None


def detect_encoding(data: bytes) -> Encoding | None:
    r"""Return in which encoding a text is, None where the bytes are no text.

    A byte order mark decides. Without one, text that is UTF-8 throughout is UTF-8; text that is
    mostly UTF-8 (more multi-byte characters than stray bytes) is UTF-8 with replacement characters.
    Other text is guessed from the lines that hold non-ASCII bytes (at most 16 KiB of them): by
    whether the letters are those of one alphabet, else by charset-normalizer. Several single-byte
    encodings often fit equally well, and then Windows-1252, by far the most frequent in files, is
    taken.
    """
    for mark, name in _MARKS:
        if data.startswith(mark):
            return Encoding(name, _wrong_bytes(data, name))
    if 0 in data:
        return _wide_without_mark(data)
    if _is_valid(data, "utf-8"):
        return Encoding("utf-8")
    evidence = _evidence(data)
    n_characters = len(_MULTI_BYTE_CHARACTER.findall(evidence))
    n_stray = len(_HIGH_BYTE.findall(_MULTI_BYTE_CHARACTER.sub(b"", evidence)))
    if n_characters > n_stray:
        return Encoding("utf-8", _WRONG_BYTES.format("UTF-8"))
    name = _guess(evidence)
    return Encoding(name, f"not UTF-8: read as {name}, a guess")


def detect_json_encoding(data: bytes) -> Encoding:
    r"""Return in which encoding a JSON text is.

    JSON begins with ASCII, so that the place of NUL bytes tells UTF-16 and UTF-32. All else should
    be UTF-8; where it is not, it is taken for what delimited text would be.

    Examples
    --------
    >>> detect_json_encoding("[1]".encode("utf-16-le")).name
    'utf-16-le'
    >>> detect_json_encoding('{"name": "café"}'.encode("latin-1"))
    Encoding(name='cp1252', note='not UTF-8: read as cp1252, a guess')
    """
    name = json.detect_encoding(data)
    encoding = detect_encoding(data) if name.startswith("utf-8") else None
    return Encoding(name, _wrong_bytes(data, name)) if encoding is None else encoding


def with_marks(data: bytes) -> bytes:
    r"""Return a UTF-8 text with the marks of Windows-1252 in place of controls, or as it is.

    There are such controls where Windows-1252 was once taken for Latin-1: U+0092 for an apostrophe.
    A text with other controls, or with them where no mark can be (after ``â``, or an opening
    quotation mark after a letter), was damaged in another way, and stays as it is.

    Examples
    --------
    >>> with_marks("Land\x92s End".encode()).decode()
    'Land’s End'
    >>> with_marks("Skarsg\x8crd".encode()).decode()
    'Skarsg\x8crd'
    """
    if data.isascii() or not _CONTROL.search(data) or _NO_MARK.search(data):
        return data
    return _CONTROL.sub(lambda match: match[0][1:].decode("cp1252").encode(), data)


def _wrong_bytes(data: bytes, name: str) -> str | None:
    """Return the note about bytes that are wrong in an encoding, None where all are right."""
    if _is_valid(data, name):
        return None
    return _WRONG_BYTES.format(name.upper().removesuffix("-SIG"))


def _is_valid(data: bytes, name: str) -> bool:
    if name == "utf-8" and data.isascii():
        return True
    decoder = codecs.getincrementaldecoder(name)()
    view = memoryview(data)
    try:
        for start in range(0, len(view), _BLOCK_BYTES):
            decoder.decode(view[start : start + _BLOCK_BYTES])
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def _wide_without_mark(data: bytes) -> Encoding | None:
    """Detect UTF-16 without a byte order mark, which has NUL in every second byte.

    This holds for mostly ASCII text. Any other file with NUL bytes is not text.
    """
    sample = data[: _BLOCK_BYTES & ~1]
    half = len(sample) // 2
    for name, high, low in (
        ("utf-16-le", sample[1::2], sample[0::2]),
        ("utf-16-be", sample[0::2], sample[1::2]),
    ):
        if half and high.count(0) > 0.6 * half and low.count(0) == 0:
            return Encoding(name, f"no byte order mark: read as {name}, a guess")
    return None


def _evidence(data: bytes) -> bytes:
    """Return lines that hold non-ASCII bytes.

    Long lines are cut to the surroundings of the first such byte.
    """
    lines: list[bytes] = []
    n_bytes = end = 0
    while n_bytes < _EVIDENCE_BYTES and (match := _HIGH_BYTE.search(data, end)):
        position = match.start()
        line_start = data.rfind(b"\n", max(end, position - _HALF_LINE_BYTES), position) + 1
        start = line_start or max(end, position - _HALF_LINE_BYTES)
        line_end = data.find(b"\n", position, position + _HALF_LINE_BYTES)
        end = line_end if line_end >= 0 else position + _HALF_LINE_BYTES
        lines.append(data[start:end])
        n_bytes += len(lines[-1])
    return b"\n".join(lines)


def _guess(evidence: bytes) -> str:
    if (encoding := encoding_of_letters(evidence)) is not None:
        return encoding
    from charset_normalizer import from_bytes  # few files need it

    matches = from_bytes(evidence, cp_isolation=_CANDIDATES, enable_fallback=False)
    best = matches.best()
    if best is None:
        return _MOST_LIKELY
    likely = any(
        m.encoding == _MOST_LIKELY or _MOST_LIKELY in m.could_be_from_charset
        for m in matches
        if _ties(m, best)
    )
    return _MOST_LIKELY if likely else best.encoding


def _ties(match: object, best: object) -> bool:
    return match.chaos <= best.chaos and match.coherence >= best.coherence  # type: ignore[attr-defined]
