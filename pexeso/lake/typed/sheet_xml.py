"""What the XML of an .xlsx sheet says, and the library that reads its cells does not.

Whole numbers in a format such as ``00000`` or ``###-####`` are codes: a person sees zeros in front
and signs between, and other files hold them so. And a program that calculates
nothing keeps no values of formulas. All this is looked for in the bytes, in one go.
"""

from __future__ import annotations

import posixpath
import re
import zipfile
import zlib
from collections.abc import Callable
from typing import NamedTuple
from xml.etree import ElementTree

_WORKBOOK, _STYLES = "xl/workbook.xml", "xl/styles.xml"
_NOT_FOUND = (
    *(zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, OSError, EOFError),
    *(ElementTree.ParseError, ValueError, KeyError, StopIteration),
)
# Between its digits a format may have signs, escaped characters and quoted texts; colours and room
# for signs show nothing. Of a format for small numbers the next section is for all others.
_PART = re.compile(
    r'([0#])|[_*].|\[(?:[a-z]+|\$-[0-9a-f]+)\]|\\(.)|"([^"]*)"|([-+() ])', re.IGNORECASE | re.DOTALL
)
_SECTIONS = re.compile(r'(?:"[^"]*"|\\.|[^;"\\])+', re.DOTALL)
_LIMIT = re.compile(r"\[<(=?)([0-9]{1,15})\]")
_MIN_ZEROS = 2

_FORMULA = re.compile(
    rb"<(?:\w+:)?c\b([^<>]*)>\s*<(?:\w+:)?f\b[^<>]*(?:/>|>[^<]*</(?:\w+:)?f>)\s*"
    rb"(?:<(?:\w+:)?v\s*/>|<(?:\w+:)?v\s*></(?:\w+:)?v>)?\s*</(?:\w+:)?c>"
)
_HAS_FORMULA = re.compile(rb"<(?:\w+:)?f\b")
_PLACE = re.compile(rb"\sr\s*=\s*[\"']([A-Z]{1,3})([0-9]{1,7})[\"']")
_IS_TEXT = re.compile(rb"\st\s*=\s*[\"']str[\"']")


class CodeFormat(NamedTuple):
    """A format of codes, of ``0`` and ``#`` for digits, and another one from a limit on."""

    parts: tuple[tuple[bool, str], ...]  # whether it is a digit
    limit: int | None = None
    otherwise: CodeFormat | None = None

    def text(self, value: object) -> str | None:
        """Return what a person sees of a number; None where the format does not go for it."""
        if not isinstance(value, int | float) or isinstance(value, bool) or value < 0:
            return None
        if value != value // 1:
            return None
        if self.limit is not None and value >= self.limit:
            return self.otherwise and self.otherwise.text(value)
        digits, shown = list(str(int(value))), []
        n_left = sum(is_digit for is_digit, _ in self.parts)
        for is_digit, text in reversed(self.parts):
            n_left -= is_digit
            if not is_digit:
                shown.append(text)
            elif not n_left:
                shown.append("".join(digits) or text.strip("#"))
            else:
                shown.append(digits.pop() if digits else text.strip("#"))
        return "".join(reversed(shown))


class SheetXml(NamedTuple):
    """Formats of codes by row and column, from 0 on, and how many formulas have no value."""

    formats: dict[tuple[int, int], CodeFormat]
    n_without_value: int


def sheet_xml(path: str, name: str) -> SheetXml:
    """Look into a sheet of a file; nothing is found in one of another make."""
    try:
        with zipfile.ZipFile(path) as archive:
            data = archive.read(_member(archive, name))
            styles = _code_styles(archive.read(_STYLES)) if _STYLES in archive.namelist() else {}
    except _NOT_FOUND:
        return SheetXml({}, 0)
    n_without, formats = 0, {}
    if _HAS_FORMULA.search(data):
        n_without = sum(1 for cell in _FORMULA.finditer(data) if not _IS_TEXT.search(cell[1]))
    numbers = "|".join(map(str, styles)).encode()
    cells = re.compile(rb"<(?:\w+:)?c\b([^<>]*\ss\s*=\s*[\"'](%s)[\"'][^<>]*)>" % numbers)
    for cell in cells.finditer(data) if styles else ():
        if place := _PLACE.search(cell[1]):
            formats[int(place[2]) - 1, _column(place[1])] = styles[int(cell[2])]
    return SheetXml(formats, n_without)


def _column(letters: bytes) -> int:
    number = 0
    for letter in letters:
        number = 26 * number + letter - 64
    return number - 1


def _member(archive: zipfile.ZipFile, name: str) -> str:
    """Return the member of an archive that holds a sheet."""
    is_named = _with_name("sheet")
    sheet = next(
        element
        for element in ElementTree.fromstring(archive.read(_WORKBOOK)).iter()
        if is_named(element) and element.get("name") == name
    )
    key = next(value for key, value in sheet.attrib.items() if key.endswith("}id"))
    relations = ElementTree.fromstring(archive.read("xl/_rels/workbook.xml.rels"))
    target = next(one.get("Target", "") for one in relations if one.get("Id") == key)
    return posixpath.normpath(posixpath.join("/xl", target)).lstrip("/")


def _with_name(name: str) -> Callable[[ElementTree.Element], bool]:
    return lambda element: element.tag.rpartition("}")[2] == name


def _code_styles(data: bytes) -> dict[int, CodeFormat]:
    """Return the numbers of the styles of cells whose format is one of codes."""
    root = ElementTree.fromstring(data)
    formats = {
        element.get("numFmtId"): code_format(element.get("formatCode", ""))
        for element in filter(_with_name("numFmt"), root.iter())
    }
    styles: dict[int, CodeFormat] = {}
    for cells in filter(_with_name("cellXfs"), root.iter()):
        for number, style in enumerate(filter(_with_name("xf"), cells)):
            if (shown := formats.get(style.get("numFmtId"))) is not None:
                styles[number] = shown
    return styles


def code_format(text: str) -> CodeFormat | None:
    r"""Return the format of a code; None for formats of amounts, dates and texts.

    >>> code_format("00000").text(501), code_format(r"000\-00").text(123456)
    ('00501', '1234-56')
    >>> code_format("0.00"), code_format("#,##0"), code_format("mm-yy"), code_format("0")
    (None, None, None, None)
    """
    limit = _LIMIT.match(text)
    first, *rest = _SECTIONS.findall(text, limit.end() if limit else 0) or [""]
    code = _section(first)
    if code is None or limit is None:
        return code
    otherwise = _section(rest[0]) if rest else None
    return code._replace(limit=int(limit[2]) + bool(limit[1]), otherwise=otherwise)


def _section(text: str) -> CodeFormat | None:
    parts: list[tuple[bool, str]] = []
    end = 0
    while end < len(text):
        match = _PART.match(text, end)
        if match is None:
            return None
        end = match.end()
        shown = next((part for part in match.groups() if part is not None), "")
        parts += [(match[1] is not None, shown)] if shown else []
    digits = "".join(text for is_digit, text in parts if is_digit)
    is_code = digits.count("0") >= _MIN_ZEROS if "#" not in digits else (False, "-") in parts
    return CodeFormat(tuple(parts)) if len(digits) >= _MIN_ZEROS and is_code else None
