"""Programs in the words of people, who count from 1, as Python and as SQL of DuckDB and Spark."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Literal, NamedTuple

from pexeso.errors import InputError
from pexeso.transform.programs.conversions import conversion, lower, quoted
from pexeso.transform.programs.program import (
    Casing,
    Constant,
    Extract,
    Operator,
    Program,
    Split,
    capital,
    title,
    upper,
)

_CASINGS: dict[Casing, str] = {
    "none": "",
    "lower": ", in small letters",
    "upper": ", in capitals",
    "title": ", with a capital for each word",
}


def in_words(program: Program, names: Sequence[str]) -> str:
    """Return what a program writes, in plain English on one line.

    >>> comma = Split(", ", 1), Split(", ", 0)
    >>> program = Program(
    ...     (Extract(0, comma[:1]), Constant(" "), Extract(0, comma[1:], length=1, casing="upper"))
    ... )
    >>> print(in_words(program, ["Name"]))
    part 2 of "Name" split at ", ", then a space, then the first character of part 1 of "Name" split at ", ", in capitals
    """  # noqa: E501  what is printed is one line
    named = program.named_columns(names)
    return ", then ".join(_words(step, named) for step in program.operators) or "an empty text"


def steps_of_row(
    program: Program, row: Sequence[str | None], names: Sequence[str]
) -> list[tuple[str, str | None]]:
    named = program.named_columns(names)
    return [(_words(step, named), step.of(row)) for step in program.operators]


def _words(operator: Operator, named: dict[int, str]) -> str:
    if isinstance(operator, Constant):
        return "a space" if operator.text == " " else quoted(operator.text)
    text = quoted(named[operator.column])
    for number, split in enumerate(operator.splits):
        text = f"({text})" if number else text
        text = f"{_parts(split)} of {text} split at {quoted(split.separator)}"
    if operator.replacements:
        text += " with " + " and ".join(
            f"{quoted(old)} replaced by {quoted(new)}" if new else f"{quoted(old)} left out"
            for old, new in operator.replacements
        )
        text = f"({text})" if operator.start or operator.length or operator.conversion else text
    if operator.conversion:
        converted = conversion(operator.conversion)
        text = converted.fill(converted.words, text)
        text = f"({text})" if operator.start or operator.length else text
    return _characters(operator, text) + _CASINGS[operator.casing]


def _parts(split: Split) -> str:
    part = split.part
    if split.span == "one":
        return _place("part", part)
    if part == (-1 if split.span == "to" else 0):
        return "all parts"
    if split.span == "to":
        if part >= 0:
            return f"the first {_counted(part + 1, 'part')}"
        return f"all but the last {_counted(-part - 1, 'part')}"
    if part > 0:
        return f"all but the first {_counted(part, 'part')}"
    return f"the last {_counted(-part, 'part')}"


def _place(noun: str, position: int) -> str:
    if position == -1:
        return f"the last {noun}"
    return f"{noun} {position + 1}" if position >= 0 else f"{noun} {-position} from the end"


def _characters(extract: Extract, text: str) -> str:
    start, length = extract.start, extract.length
    # One character or none is one where there is any.
    fewer = ", or as many as there are" if extract.shorter and length != 1 else ""
    if length is None and start >= 0:
        return f"{text} from character {start + 1} on" if start else text
    if length is None or (start < 0 and extract.stop is None and extract.min_length):
        return f"the last {_counted(-start, 'character')} of {text}"
    if start == 0:
        return f"the first {_counted(length, 'character')} of {text}{fewer}"
    if length == 1:
        return f"{_place('character', start)} of {text}"
    if start > 0:
        return f"characters {start + 1} to {start + length} of {text}{fewer}"
    return f"{length} characters of {text}, beginning with {_place('character', start)}"


def _counted(number: int, noun: str) -> str:
    return noun if number == 1 else f"{number} {noun}s"


# What a casing needs, in the order in which it can be defined.
_HELPERS = {
    "none": (),
    "lower": (lower,),
    "upper": (capital, upper),
    "title": (lower, capital, upper, title),
}


def as_python(program: Program, names: Sequence[str]) -> str:
    """Return the source of `transform(row)`, of the standard library, which may return None."""
    cells = {
        column: ("cell" if len(program.columns) == 1 else f"cell_{number}", name)
        for number, (column, name) in enumerate(program.named_columns(names).items(), 1)
    }
    body = _Body({column: variable for column, (variable, _) in cells.items()})
    for variable, name in cells.values():
        body.lines.append(f"{variable} = row[{name!r}]")
        body.leave_if(f"{variable} is None")
    pieces = [body.written(operator) for operator in program.operators]
    lines = [
        "def transform(row: dict[str, str | None]) -> str | None:",
        f"# {in_words(program, names)}",
        *body.lines,
        f"return {' + '.join(pieces) or repr('')}",
    ]
    return _header([program]) + "\n    ".join(lines) + "\n"


def first_as_python(programs: Sequence[Program], names: Sequence[str]) -> str:
    """Return the source of a function that writes what the first program writes that applies."""
    if len(programs) == 1:
        return as_python(programs[0], names)
    functions = []
    for number, program in enumerate(programs, 1):
        source = as_python(program, names)[len(_header([program])) :]
        functions.append(source.replace("def transform(", f"def transform_{number}(", 1))
    called = ", ".join(f"transform_{number}" for number in range(1, len(programs) + 1))
    functions.append(
        "def transform(row: dict[str, str | None]) -> str | None:\n"
        f"    texts = (each(row) for each in ({called}))\n"
        "    return next((text for text in texts if text is not None), None)\n"
    )
    return _header(programs) + "\n\n".join(functions)


def _header(programs: Sequence[Program]) -> str:
    extracts = [
        operator
        for program in programs
        for operator in program.operators
        if isinstance(operator, Extract)
    ]
    named = [conversion(extract.conversion) for extract in extracts if extract.conversion]
    needed = {helper for extract in extracts for helper in _HELPERS[extract.casing]}
    imports = {line: None for one in named for line in one.imports}
    if title in needed:
        imports["from itertools import groupby"] = None
    parts = ["\n".join(sorted(imports, key=str.split)) + "\n"] if imports else []
    helpers = [helper for helper in _HELPERS["title"] if helper in needed]
    for helper in dict.fromkeys([*helpers, *(helper for one in named for helper in one.helpers)]):
        parts.append(inspect.getsource(helper))
    return "".join(f"{part}\n\n" for part in parts)


class _Body:
    """Statements of the function, but the last; what is used twice has a name."""

    def __init__(self, cells: dict[int, str]) -> None:
        self.cells = cells
        self.lines: list[str] = []
        self.variables: dict[str, str] = {}

    def leave_if(self, condition: str) -> None:
        lines = [f"if {condition}:", "    return None"]
        if lines[0] not in self.lines:
            self.lines += lines

    def written(self, operator: Operator) -> str:
        if isinstance(operator, Constant):
            return repr(operator.text)
        text = self.cells[operator.column]
        for split in operator.splits:
            text = self.part(text, split)
        for old, new in operator.replacements:
            text += f".replace({old!r}, {new!r})"
        if operator.conversion:
            converted = conversion(operator.conversion)
            text = self.variable("converted", converted.fill(converted.python, text))
            self.leave_if(f"{text} is None")
        if operator.min_length is None:
            self.leave_if(f"True:  # no text has {operator.length} characters there")
        elif operator.min_length:
            text = self.named(text)
            self.leave_if(f"len({text}) < {operator.min_length}")
        if operator.start or operator.length is not None:
            text = f"{text}[{operator.start or ''}:{operator.stop or ''}]"
        return text if operator.casing == "none" else f"{operator.casing}({text})"

    def part(self, text: str, split: Split) -> str:
        parts = self.variable("parts", f"{text}.split({split.separator!r})")
        self.leave_if(f"len({parts}) < {split.min_parts}")
        if split.span == "one":
            return f"{parts}[{split.part}]"
        # Behind the last one, a stop of 0 would be the beginning.
        bounds = f":{split.part + 1 or ''}" if split.span == "to" else f"{split.part}:"
        return f"{split.separator!r}.join({parts}[{bounds}])"

    def named(self, text: str) -> str:
        return self.variable("text", text) if "(" in text else text

    def variable(self, noun: str, expression: str) -> str:
        if expression not in self.variables:
            self.variables[expression] = f"{noun}_{len(self.variables) + 1}"
            self.lines.append(f"{self.variables[expression]} = {expression}")
        return self.variables[expression]


# An expression has one condition for all operators, behind which nothing has to be checked: a
# text has a second part where it contains the separator, and more where it gets shorter by that
# many separators when they are taken out.
#
# The texts are those of `Program.of`, but for letters that one side does not know yet. Measured
# over all of Unicode, with Python 3.11 (Unicode 14), DuckDB 2.0 and Spark 4.3 on Java 17:
#
# - Spark, small letters and capitals: 55 letters that have a counterpart since Unicode 16, among
#   them those of Garay (U+10D50 to U+10D85); Python leaves them as they are.
# - Title case, which asks what is a letter: DuckDB also knows letters of Unicode 15, and Java 17
#   only those of Unicode 13; so Spark leaves Vithkuqi (U+10570 to U+105BC) and four Latin letters
#   as they are, and a word that has such a letter inside counts as two.

Dialect = Literal["duckdb", "spark"]


def as_sql(program: Program, names: Sequence[str], dialect: Dialect) -> str:
    """Return an SQL expression that is what a program writes, and NULL where it does not apply.

    >>> program = Program((Extract(0, (Split(", ", 1),)), Constant(" "), Extract(1)))
    >>> print(as_sql(program, ["Name", "Title"], "duckdb"))
    CASE WHEN contains("Name", ', ')
    THEN split_part("Name", ', ', 2) || ' ' || "Title" END
    """
    if dialect not in _DIALECTS:
        raise InputError(f"dialect is {dialect!r}; it must be one of {', '.join(_DIALECTS)}")
    named = program.named_columns(names)
    for name in named.values():
        if "\x00" in name:
            raise InputError(
                f"the column {name!r} has a NUL character in its name, which SQL cannot spell; "
                "rename the column"
            )
    return _Writer(named, _DIALECTS[dialect]).expression(program)


def first_as_sql(programs: Sequence[Program], names: Sequence[str], dialect: Dialect) -> str:
    """Return an SQL expression that is what the first program writes that applies, or NULL."""
    texts = [as_sql(program, names, dialect) for program in programs]
    return texts[0] if len(texts) == 1 else f"coalesce({', '.join(texts)})"


class _Dialect(NamedTuple):
    is_duckdb: bool
    name: Callable[[str], str]
    literal: Callable[[str], str]
    parts: Callable[[str, Split], str]
    lower: Callable[[str], str]
    upper: Callable[[str], str]
    title: Callable[[str], str]


class _Writer:
    """Expressions of operators, and the conditions under which they mean what they should."""

    def __init__(self, named: dict[int, str], dialect: _Dialect) -> None:
        self.named, self.dialect = named, dialect
        self.conditions: list[str] = []

    def expression(self, program: Program) -> str:
        pieces = " || ".join(map(self.written, program.operators)) or "''"
        conditions = "\n  AND ".join(dict.fromkeys(self.conditions))
        return f"CASE WHEN {conditions}\nTHEN {pieces} END" if conditions else pieces

    def written(self, operator: Operator) -> str:
        if isinstance(operator, Constant):
            return self.dialect.literal(operator.text)
        text = self.dialect.name(self.named[operator.column])
        for split in operator.splits:
            text = self.part(text, split)
        for old, new in operator.replacements:
            text = f"replace({text}, {self.dialect.literal(old)}, {self.dialect.literal(new)})"
        if operator.conversion:
            converted = conversion(operator.conversion)
            template = converted.duckdb if self.dialect.is_duckdb else converted.spark
            text = converted.fill(template, text)
        text = self.substring(text, operator)
        return text if operator.casing == "none" else getattr(self.dialect, operator.casing)(text)

    def part(self, text: str, split: Split) -> str:
        separator = self.dialect.literal(split.separator)
        if split.min_parts == 2:
            self.conditions.append(f"contains({text}, {separator})")
        else:
            n_characters = (split.min_parts - 1) * len(split.separator)
            self.conditions.append(
                f"length({text}) - length(replace({text}, {separator}, '')) >= {n_characters}"
            )
        if split.part == {"to": -1, "from": 0}.get(split.span):
            return text
        if split.span == "one" or split.part == {"to": 0, "from": -1}[split.span]:
            return f"split_part({text}, {separator}, {split.part + (split.part >= 0)})"
        return self.dialect.parts(text, split)

    def substring(self, text: str, extract: Extract) -> str:
        if extract.min_length is None:
            self.conditions.append("FALSE")
        elif extract.min_length:
            self.conditions.append(f"length({text}) >= {extract.min_length}")
        start = extract.start + (extract.start >= 0)
        if extract.length is None:
            return text if start == 1 else f"substring({text}, {start})"
        return f"substring({text}, {start}, {extract.length})"


def _duckdb_literal(text: str) -> str:
    """Return a literal; it has no escapes and no NUL, so what cannot be seen is a number."""
    pieces = []
    for printable, run in groupby(text, str.isprintable):
        if printable:
            pieces.append("'" + "".join(run).replace("'", "''") + "'")
        else:
            pieces += [f"chr({ord(character)})" for character in run]
    return " || ".join(pieces) or "''"


def _duckdb_parts(text: str, split: Split) -> str:
    position = split.part + (split.part >= 0)
    bounds = f"[:{position}]" if split.span == "to" else f"[{position}:]"
    separator = _duckdb_literal(split.separator)
    return f"array_to_string(string_split({text}, {separator}){bounds}, {separator})"


def _duckdb_upper(text: str) -> str:
    return f"upper(replace({text}, 'ß', 'SS'))"


def _duckdb_title(text: str) -> str:
    first = _duckdb_upper("run[1]")
    return (
        rf"array_to_string(list_transform(regexp_extract_all({text}, '\p{{L}}+|\P{{L}}+'), "
        rf"lambda run: CASE WHEN regexp_matches(run, '^\p{{L}}') "
        f"THEN {first} || lower(run[2:]) ELSE run END), '')"
    )


def _spark_name(name: str) -> str:
    spelled = "`" + name.replace("`", "``") + "`"
    # Spark replaces variables everywhere in a statement, names included.
    return f"identifier({_spark_literal(spelled)})" if "${" in name else spelled


def _spark_literal(text: str) -> str:
    spelled = "".join(
        character if character.isprintable() else _spark_escape(character)
        for character in text.replace("\\", "\\\\").replace("'", "\\'")
    )
    return "'" + spelled.replace("${", _spark_escape("$") + "{") + "'"


def _spark_parts(text: str, split: Split) -> str:
    separator, part = _spark_literal(split.separator), split.part
    pattern = _spark_literal(re.sub(r"([\\.\[\]{}()*+?^$|])", r"\\\1", split.separator))
    if split.span == "from" and part > 0:
        return f"get(split({text}, {pattern}, {part + 1}), {part})"
    if split.span == "from" or part >= 0:
        first, number = (1, part + 1) if part >= 0 else (part, -part)
        all_parts = f"split({text}, {pattern}, -1)"
        return f"array_join(slice({all_parts}, {first}, {number}), {separator})"
    # Those that are left out end the text.
    if part == -2:
        left_out = f"split_part({text}, {separator}, -1)"
    else:
        left_out = _spark_parts(text, Split(split.separator, part + 1, "from"))
    return f"left({text}, length({text}) - length({left_out}) - {len(split.separator)})"


def _spark_escape(character: str) -> str:
    point = ord(character)
    return f"\\u{point:04x}" if point < 0x10000 else f"\\U{point:08x}"


def _spark_lower(text: str) -> str:
    return f"lower(translate({text}, 'İΣ', 'i\N{GREEK SMALL LETTER SIGMA}'))"


def _spark_capital(text: str) -> str:
    """Return the capital of a letter that is not ``ß``: Spark has two of some, as Python has."""
    return (
        f"CASE WHEN length(upper({text})) = 1 THEN upper({text}) "
        f"WHEN length(initcap({text})) = 1 THEN initcap({text}) ELSE {text} END"
    )


def _spark_upper(text: str) -> str:
    return (
        f"array_join(transform(split(replace({text}, 'ß', 'SS'), ''), "
        f"letter -> {_spark_capital('letter')}), '')"
    )


def _spark_title(text: str) -> str:
    first = "replace(left(run, 1), 'ß', 'SS')"
    return (
        rf"array_join(transform(regexp_extract_all({text}, '\\p{{L}}+|\\P{{L}}+', 0), "
        rf"run -> CASE WHEN run RLIKE '^\\p{{L}}' "
        f"THEN {_spark_capital(first)} || {_spark_lower('substring(run, 2)')} ELSE run END), '')"
    )


_DIALECTS = {
    "duckdb": _Dialect(
        True,
        lambda name: '"' + name.replace('"', '""') + '"',
        _duckdb_literal,
        _duckdb_parts,
        lambda text: f"lower({text})",
        _duckdb_upper,
        _duckdb_title,
    ),
    "spark": _Dialect(
        False, _spark_name, _spark_literal, _spark_parts, _spark_lower, _spark_upper, _spark_title
    ),
}
