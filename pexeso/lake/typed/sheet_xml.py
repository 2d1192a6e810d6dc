"""What the XML of an .xlsx sheet says, and the library that reads its cells does not.

Whole numbers in a format of zeros, such as ``00000`` or ``000-00-0000``, are codes: a person sees
zeros in front and signs between, and other files hold them so. And a program that calculates
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
# Between the zeros a format may have signs, escaped characters and quoted texts; colours and room
# for signs show nothing.
_PART = re.compile(
    r'(0)|[_*].|\[(?:[a-z]+|\$-[0-9a-f]+)\]|\\(.)|"([^"]*)"|([-+() ])', re.IGNORECASE | re.DOTALL
)
_MIN_ZEROS = 2

_FORMULA = re.compile(
    rb"<(?:\w+:)?c\b([^<>]*)>\s*<(?:\w+:)?f\b[^<>]*(?:/>|>[^<]*</(?:\w+:)?f>)\s*"
    rb"(?:<(?:\w+:)?v\s*/>|<(?:\w+:)?v\s*></(?:\w+:)?v>)?\s*</(?:\w+:)?c>"
)
_HAS_FORMULA = re.compile(rb"<(?:\w+:)?f\b")
_PLACE = re.compile(rb"\sr\s*=\s*[\"']([A-Z]{1,3})([0-9]{1,7})[\"']")
_IS_TEXT = re.compile(rb"\st\s*=\s*[\"']str[\"']")


class CodeFormat(NamedTuple):
    """A format of zeros: for each of them, and what stands between, a text; None for a digit."""

    parts: tuple[str | None, ...]

    def text(self, value: object) -> str | None:
        """Return what a person sees of a number; None where the format does not go for it."""
        if not isinstance(value, int | float) or isinstance(value, bool) or value < 0:
            return None
        if value != value // 1:
            return None
        digits = f"{int(value):0{self.parts.count(None)}}"
        n_more = len(digits) - self.parts.count(None)
        shown, left = [], iter(digits[n_more:])
        for part in self.parts:
            if part is None and n_more:
                shown.append(digits[:n_more])
                n_more = 0
            shown.append(next(left) if part is None else part)
        return "".join(shown)


class SheetXml(NamedTuple):
    """Formats of zeros by row and column, from 0 on, and how many formulas have no value."""

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
    """Return the numbers of the styles of cells whose format is one of zeros."""
    root = ElementTree.fromstring(data)
    formats = {
        element.get("numFmtId"): code_format(element.get("formatCode", ""))
        for element in filter(_with_name("numFmt"), root.iter())
    }
    styles: dict[int, CodeFormat] = {}
    for cells in filter(_with_name("cellXfs"), root.iter()):
        for number, style in enumerate(filter(_with_name("xf"), cells)):
            if (found := formats.get(style.get("numFmtId"))) is not None:
                styles[number] = found
    return styles


def code_format(text: str) -> CodeFormat | None:
    r"""Return the format of a code; None for formats of amounts, dates and texts.

    >>> code_format("00000").text(501), code_format(r"000\-00").text(123456)
    ('00501', '1234-56')
    >>> code_format("0.00"), code_format("#,##0"), code_format("mm-yy"), code_format("0")
    (None, None, None, None)
    """
    section = re.match(r'(?:"[^"]*"|\\.|[^;"\\])*', text, re.DOTALL)
    text = section[0] if section else ""
    parts: list[str | None] = []
    end = 0
    while end < len(text):
        match = _PART.match(text, end)
        if match is None:
            return None
        end = match.end()
        shown = next((part for part in match.groups()[1:] if part is not None), "")
        parts += [None] if match[1] else [shown] if shown else []
    return CodeFormat(tuple(parts)) if parts.count(None) >= _MIN_ZEROS else None
