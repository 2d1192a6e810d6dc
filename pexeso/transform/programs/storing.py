"""Programs as JSON, and what is refused of a file that claims to hold some.

The document, of version 2::

    {"format": "pexeso transformation", "version": 2, "columns": ["Name", "Title"],
     "programs": [[{"column": 0, "splits": [{"separator": ", ", "part": 1, "span": "one"}],
                    "start": 0, "length": null, "casing": "none",
                    "replacements": [[".", ""]], "shorter": false,
                    "conversion": ""}, {"text": " "}]],
     "patterns": [{"0": {"open": false, "shapes": [[["letters", ""], ["signs", ", "],
                                                    ["letters", ""]]]}}],
     "metadata": {"direction": "forward", "coverage": 0.98}}
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, NoReturn, get_args

from pexeso.errors import InputError
from pexeso.transform import MAX_PROGRAMS
from pexeso.transform.programs.conversions import conversion
from pexeso.transform.programs.patterns import MAX_ROWS, Pattern, Run
from pexeso.transform.programs.program import (
    MAX_OPERATORS,
    Casing,
    Constant,
    Extract,
    Operator,
    Program,
    Span,
    Split,
)

FORMAT = "pexeso transformation"
VERSION = 2

MAX_COLUMNS = 10_000
MAX_SPLITS = 2
MAX_REPLACEMENTS = 2
# Characters of each text: a constant, a separator, the name of a column, an entry of the metadata.
MAX_CHARACTERS = 10_000

# The largest part, start or length: databases can count as far.
MAX_POSITION = 1_000_000_000

MAX_METADATA = 100
MAX_SHAPES = MAX_ROWS
# Characters of a document that is read.
MAX_DOCUMENT = 1 << 24

_EXTRACT_FIELDS = tuple(part.name for part in fields(Extract))

Metadata = Mapping[str, str | int | float | bool | None]


@dataclass(frozen=True)
class StoredProgram:
    """Programs with what is needed to use them later."""

    # At most `MAX_PROGRAMS`: each is for the rows whose texts by those before found no partner
    programs: tuple[Program, ...]
    columns: tuple[str, ...]  # Of the rows, in the order that the programs count them
    # Anything else, such as the direction, the coverage, or the target's column; kept as it is
    metadata: Metadata = field(default_factory=dict)
    # Of each program, by the column that it reads: what its cells must look like. Or of none
    patterns: tuple[Mapping[int, Pattern], ...] = ()


def program_to_json(stored: StoredProgram) -> dict[str, Any]:
    document = {
        "format": FORMAT,
        "version": VERSION,
        "columns": list(stored.columns),
        "programs": json.loads(
            json.dumps([list(map(asdict, program.operators)) for program in stored.programs])
        ),
        "patterns": [
            {str(column): _pattern_to_json(pattern) for column, pattern in patterns.items()}
            for patterns in stored.patterns
        ],
        "metadata": dict(stored.metadata),
    }
    program_from_json(document)
    return document


def program_from_json(value: object) -> StoredProgram:
    document = _object(value, "the document", ())
    if document.get("format") != FORMAT:
        raise InputError(
            f"format of the document is {_shown(document.get('format'))}, not {FORMAT!r}; pass a "
            "file that `pexeso transform --save` wrote"
        )
    version = document.get("version")
    if type(version) is not int or version != VERSION:
        raise InputError(
            f"version of the document is {_shown(version)}, but this pexeso reads {VERSION}; learn "
            "the program again, or use the pexeso that wrote it"
        )
    document = _object(
        document,
        "the document",
        ("format", "version", "columns", "programs", "patterns", "metadata"),
    )
    columns = _list(document["columns"], "columns", 0, MAX_COLUMNS)
    names = tuple(_text(name, f"columns[{n}]", 0) for n, name in enumerate(columns))
    programs = _list(document["programs"], "programs", 1, MAX_PROGRAMS)
    patterns = _list(document["patterns"], "patterns", 0, len(programs))
    return StoredProgram(
        tuple(_program(entry, f"programs[{n}]", len(names)) for n, entry in enumerate(programs)),
        names,
        _metadata(document["metadata"]),
        tuple(_patterns(entry, f"patterns[{n}]", len(names)) for n, entry in enumerate(patterns)),
    )


def program_from_text(text: str) -> StoredProgram:
    if len(text) > MAX_DOCUMENT:
        raise InputError(
            f"the document has {len(text):,} characters, but programs have at most "
            f"{MAX_DOCUMENT:,}; pass a file that `pexeso transform --save` wrote"
        )
    try:
        value = json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"the document is not JSON ({str(error)[:100]}); pass a file that `pexeso transform "
            "--save` wrote"
        ) from None
    return program_from_json(value)


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is no number")


def _program(value: object, where: str, n_columns: int) -> Program:
    operators = _list(value, where, 0, MAX_OPERATORS)
    return Program(
        tuple(_operator(entry, f"{where}[{n}]", n_columns) for n, entry in enumerate(operators))
    )


def _operator(value: object, where: str, n_columns: int) -> Operator:
    if isinstance(value, dict) and "text" in value:
        return Constant(_text(_object(value, where, ("text",))["text"], f"{where}.text", 0))
    entry = _object(value, where, _EXTRACT_FIELDS)
    splits = _list(entry["splits"], f"{where}.splits", 0, MAX_SPLITS)
    replacements = _list(entry["replacements"], f"{where}.replacements", 0, MAX_REPLACEMENTS)
    length, shorter = entry["length"], entry["shorter"]
    converted = _text(entry["conversion"], f"{where}.conversion", 0)
    if converted:
        conversion(converted)
    if not isinstance(shorter, bool):
        _refuse(f"{where}.shorter", "true or false", shorter)
    return Extract(
        _integer(entry["column"], f"{where}.column", 0, n_columns - 1),
        tuple(_split(split, f"{where}.splits[{n}]") for n, split in enumerate(splits)),
        _integer(entry["start"], f"{where}.start", -MAX_POSITION, MAX_POSITION),
        None if length is None else _integer(length, f"{where}.length", 1, MAX_POSITION),
        _one_of(entry["casing"], f"{where}.casing", get_args(Casing)),
        tuple(
            _replacement(pair, f"{where}.replacements[{n}]") for n, pair in enumerate(replacements)
        ),
        shorter,
        converted,
    )


def _pattern_to_json(pattern: Pattern) -> dict[str, Any]:
    shapes = [
        [[run.kind, run.text, *([run.same_as] * (run.same_as >= 0))] for run in shape]
        for shape in pattern.shapes
    ]
    return {"open": pattern.open, "shapes": shapes}


def _patterns(value: object, where: str, n_columns: int) -> dict[int, Pattern]:
    patterns = {}
    for name, entry in _object(value, where, ()).items():
        if not re.fullmatch("[0-9]{1,6}", name) or int(name) >= n_columns:
            _refuse(f"a field of {where}", "the number of a column", name)
        patterns[int(name)] = _pattern(entry, f"{where}[{name}]")
    return patterns


def _pattern(value: object, where: str) -> Pattern:
    entry = _object(value, where, ("open", "shapes"))
    if not isinstance(entry["open"], bool):
        _refuse(f"{where}.open", "true or false", entry["open"])
    shapes = _list(entry["shapes"], f"{where}.shapes", 0, MAX_SHAPES)
    return Pattern(
        tuple(
            tuple(
                _run(run, f"{where}.shapes[{n}][{at}]", at)
                for at, run in enumerate(_list(shape, f"{where}.shapes[{n}]", 0, MAX_CHARACTERS))
            )
            for n, shape in enumerate(shapes)
        ),
        entry["open"],
    )


def _run(value: object, where: str, number: int) -> Run:
    kind, text, *same_as = _list(value, where, 2, 3)
    return Run(
        _one_of(kind, f"{where}[0]", ("letters", "digits", "signs")),
        _text(text, f"{where}[1]", 0),
        *(_integer(one, f"{where}[2]", 0, number - 1) for one in same_as),
    )


def _replacement(value: object, where: str) -> tuple[str, str]:
    old, new = _list(value, where, 2, 2)
    return _text(old, f"{where}[0]", 1), _text(new, f"{where}[1]", 0)


def _split(value: object, where: str) -> Split:
    entry = _object(value, where, ("separator", "part", "span"))
    return Split(
        _text(entry["separator"], f"{where}.separator", 1),
        _integer(entry["part"], f"{where}.part", -MAX_POSITION, MAX_POSITION),
        _one_of(entry["span"], f"{where}.span", get_args(Span)),
    )


def _metadata(value: object) -> dict[str, str | int | float | bool | None]:
    if not isinstance(value, dict) or len(value) > MAX_METADATA:
        _refuse("metadata", f"an object of at most {MAX_METADATA} entries", value)
    for n, (name, entry) in enumerate(value.items()):
        _text(name, f"name {n + 1} of metadata", 0)
        where = f"metadata[{name[:50]!a}]"
        if isinstance(entry, str):
            _text(entry, where, 0)
        elif type(entry) is int:
            _integer(entry, where, -(1 << 63), (1 << 63) - 1)
        elif not (entry is None or isinstance(entry, bool) or _is_finite(entry)):
            _refuse(where, "a text, a number, true, false or null", entry)
    return dict(value)


def _is_finite(value: object) -> bool:
    return isinstance(value, float) and abs(value) < float("inf")


def _object(value: object, where: str, fields: tuple[str, ...]) -> dict[str, Any]:
    """Return an object that has these fields and no others; any where none are passed."""
    if not isinstance(value, dict):
        _refuse(where, "an object", value)
    if fields:
        for name in value:
            if name not in fields:
                _refuse(f"a field of {where}", f"one of {', '.join(fields)}", name)
        for name in fields:
            if name not in value:
                raise InputError(f"{where} has no field {name!r}, which it must have")
    return value


def _list(value: object, where: str, fewest: int, limit: int) -> list[Any]:
    if not isinstance(value, list):
        _refuse(where, "a list", value)
    if not fewest <= len(value) <= limit:
        raise InputError(f"{where} has {len(value):,} entries; {fewest} to {limit:,} are allowed")
    return value


def _integer(value: object, where: str, lowest: int, highest: int) -> int:
    if type(value) is not int or not lowest <= value <= highest:
        _refuse(where, f"a whole number from {lowest} to {highest}", value)
    return value


def _one_of(value: object, where: str, allowed: tuple[str, ...]) -> Any:
    if not isinstance(value, str) or value not in allowed:
        _refuse(where, f"one of {', '.join(allowed)}", value)
    return value


def _text(value: object, where: str, fewest: int) -> str:
    if not isinstance(value, str):
        _refuse(where, "a text", value)
    if not fewest <= len(value) <= MAX_CHARACTERS:
        raise InputError(
            f"{where} has {len(value):,} characters; {fewest} to {MAX_CHARACTERS:,} are allowed"
        )
    if any("\ud800" <= character <= "\udfff" for character in value):
        _refuse(where, "a text without single surrogates", value)
    return value


def _refuse(where: str, allowed: str, value: object) -> NoReturn:
    raise InputError(f"{where} is {_shown(value)}, but must be {allowed}")


def _shown(value: object) -> str:
    if isinstance(value, dict | list):
        return f"{'a list' if isinstance(value, list) else 'an object'} of {len(value):,} entries"
    if type(value) is int and value.bit_length() > 100:
        return "a number of more than 30 digits"
    return ascii(value[:100] if isinstance(value, str) else value)[:100]
