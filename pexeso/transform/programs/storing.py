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
from typing import Any, NamedTuple, NoReturn, get_args

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
    document = _Place(value, "the document")
    facts = document.members()
    form, version = (facts.get(name, _Place(None, name)).value for name in ("format", "version"))
    if form != FORMAT:
        raise InputError(
            f"format of the document is {_shown(form)}, not {FORMAT!r}; pass a file that `pexeso "
            "transform --save` wrote"
        )
    if type(version) is not int or version != VERSION:
        raise InputError(
            f"version of the document is {_shown(version)}, but this pexeso reads {VERSION}; learn "
            "the program again, or use the pexeso that wrote it"
        )
    facts = document.members("format", "version", "columns", "programs", "patterns", "metadata")
    names = tuple(name.text() for name in facts["columns"].entries(0, MAX_COLUMNS))
    programs = facts["programs"].entries(1, MAX_PROGRAMS)
    patterns = facts["patterns"].entries(0, len(programs))
    return StoredProgram(
        tuple(
            Program(tuple(_operator(one, len(names)) for one in program.entries(0, MAX_OPERATORS)))
            for program in programs
        ),
        names,
        _metadata(facts["metadata"]),
        tuple(_patterns(entry, len(names)) for entry in patterns),
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


def _operator(place: _Place, n_columns: int) -> Operator:
    if isinstance(place.value, dict) and "text" in place.value:
        return Constant(place.members("text")["text"].text())
    entry = place.members(*_EXTRACT_FIELDS)
    converted = entry["conversion"].text()
    if converted:
        conversion(converted)
    length = entry["length"]
    return Extract(
        entry["column"].integer(0, n_columns - 1),
        tuple(map(_split, entry["splits"].entries(0, MAX_SPLITS))),
        entry["start"].integer(-MAX_POSITION, MAX_POSITION),
        None if length.value is None else length.integer(1, MAX_POSITION),
        entry["casing"].one_of(get_args(Casing)),
        tuple(map(_replacement, entry["replacements"].entries(0, MAX_REPLACEMENTS))),
        entry["shorter"].flag(),
        converted,
    )


def _split(place: _Place) -> Split:
    entry = place.members("separator", "part", "span")
    return Split(
        entry["separator"].text(1),
        entry["part"].integer(-MAX_POSITION, MAX_POSITION),
        entry["span"].one_of(get_args(Span)),
    )


def _replacement(place: _Place) -> tuple[str, str]:
    old, new = place.entries(2, 2)
    return old.text(1), new.text()


def _pattern_to_json(pattern: Pattern) -> dict[str, Any]:
    shapes = [
        [[run.kind, run.text, *([run.same_as] * (run.same_as >= 0))] for run in shape]
        for shape in pattern.shapes
    ]
    return {"open": pattern.open, "shapes": shapes}


def _patterns(place: _Place, n_columns: int) -> dict[int, Pattern]:
    patterns = {}
    for name, entry in place.members().items():
        if not re.fullmatch("[0-9]{1,6}", name) or int(name) >= n_columns:
            _refuse(f"a field of {place.where}", "the number of a column", name)
        patterns[int(name)] = _pattern(_Place(entry.value, f"{place.where}[{name}]"))
    return patterns


def _pattern(place: _Place) -> Pattern:
    entry = place.members("open", "shapes")
    shapes = [shape.entries(0, MAX_CHARACTERS) for shape in entry["shapes"].entries(0, MAX_SHAPES)]
    return Pattern(
        tuple(tuple(_run(run, at) for at, run in enumerate(shape)) for shape in shapes),
        entry["open"].flag(),
    )


def _run(place: _Place, number: int) -> Run:
    kind, text, *same_as = place.entries(2, 3)
    return Run(
        kind.one_of(("letters", "digits", "signs")),
        text.text(),
        *(one.integer(0, number - 1) for one in same_as),
    )


def _metadata(place: _Place) -> dict[str, str | int | float | bool | None]:
    value = place.value
    if not isinstance(value, dict) or len(value) > MAX_METADATA:
        _refuse("metadata", f"an object of at most {MAX_METADATA} entries", value)
    for n, (name, entry) in enumerate(value.items()):
        _Place(name, f"name {n + 1} of metadata").text()
        inner = _Place(entry, f"metadata[{name[:50]!a}]")
        if isinstance(entry, str):
            inner.text()
        elif type(entry) is int:
            inner.integer(-(1 << 63), (1 << 63) - 1)
        elif not (entry is None or isinstance(entry, bool) or _is_finite(entry)):
            _refuse(inner.where, "a text, a number, true, false or null", entry)
    return dict(value)


def _is_finite(value: object) -> bool:
    return isinstance(value, float) and abs(value) < float("inf")


class _Place(NamedTuple):
    """A value of a document and where it is, held against what is allowed there."""

    value: Any
    where: str

    def members(self, *fields: str) -> dict[str, _Place]:
        """Return the members of an object that has these fields and no others, or any."""
        if not isinstance(self.value, dict):
            _refuse(self.where, "an object", self.value)
        for name in self.value if fields else ():
            if name not in fields:
                _refuse(f"a field of {self.where}", f"one of {', '.join(fields)}", name)
        for name in fields:
            if name not in self.value:
                raise InputError(f"{self.where} has no field {name!r}, which it must have")
        prefix = "" if self.where == "the document" else f"{self.where}."
        return {name: _Place(member, f"{prefix}{name}") for name, member in self.value.items()}

    def entries(self, fewest: int, limit: int) -> list[_Place]:
        if not isinstance(self.value, list):
            _refuse(self.where, "a list", self.value)
        n = len(self.value)
        if not fewest <= n <= limit:
            raise InputError(f"{self.where} has {n:,} entries; {fewest} to {limit:,} are allowed")
        return [_Place(entry, f"{self.where}[{at}]") for at, entry in enumerate(self.value)]

    def integer(self, lowest: int, highest: int) -> int:
        if type(self.value) is not int or not lowest <= self.value <= highest:
            _refuse(self.where, f"a whole number from {lowest} to {highest}", self.value)
        return self.value

    def one_of(self, allowed: tuple[str, ...]) -> Any:
        if not isinstance(self.value, str) or self.value not in allowed:
            _refuse(self.where, f"one of {', '.join(allowed)}", self.value)
        return self.value

    def flag(self) -> bool:
        if not isinstance(self.value, bool):
            _refuse(self.where, "true or false", self.value)
        return self.value

    def text(self, fewest: int = 0) -> str:
        value = self.value
        if not isinstance(value, str):
            _refuse(self.where, "a text", value)
        if not fewest <= len(value) <= MAX_CHARACTERS:
            raise InputError(
                f"{self.where} has {len(value):,} characters; {fewest} to {MAX_CHARACTERS:,} are "
                "allowed"
            )
        if any("\ud800" <= character <= "\udfff" for character in value):
            _refuse(self.where, "a text without single surrogates", value)
        return value


def _refuse(where: str, allowed: str, value: object) -> NoReturn:
    raise InputError(f"{where} is {_shown(value)}, but must be {allowed}")


def _shown(value: object) -> str:
    if isinstance(value, dict | list):
        return f"{'a list' if isinstance(value, list) else 'an object'} of {len(value):,} entries"
    if type(value) is int and value.bit_length() > 100:
        return "a number of more than 30 digits"
    return ascii(value[:100] if isinstance(value, str) else value)[:100]
