r"""Programs as SQL, for DuckDB and for Spark.

An expression has one condition for all operators, behind which nothing has to be checked: a text
has a second part where it contains the separator, and more where it gets shorter by that many
separators when they are taken out.

The texts are those of `Program.of`, but for letters that one side does not know yet. Measured over
all of Unicode, with Python 3.11 (Unicode 14), DuckDB 2.0 and Spark 4.3 on Java 17:

- Spark, small letters and capitals: 55 letters that have a counterpart since Unicode 16, among them
  those of Garay (U+10D50 to U+10D85); Python leaves them as they are.
- Title case, which asks what is a letter: DuckDB also knows letters of Unicode 15, and Java 17 only
  those of Unicode 13; so Spark leaves Vithkuqi (U+10570 to U+105BC) and four Latin letters as they
  are, and a word that has such a letter inside counts as two.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Literal, NamedTuple

from pexeso.errors import InputError
from pexeso.transform.programs.program import Constant, Extract, Operator, Program, Split

Dialect = Literal["duckdb", "spark"]


def as_sql(program: Program, names: Sequence[str], dialect: Dialect) -> str:
    """Return an SQL expression that is what a program writes, and NULL where it does not apply.

    Examples
    --------
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
    """Return an SQL expression that is what the first program writes that applies, or NULL.

    Examples
    --------
    >>> print(first_as_sql([Program((Extract(1),)), Program((Extract(0),))], ["a", "b"], "spark"))
    coalesce(`b`, `a`)
    """
    texts = [as_sql(program, names, dialect) for program in programs]
    return texts[0] if len(texts) == 1 else f"coalesce({', '.join(texts)})"


class _Dialect(NamedTuple):
    """What databases spell differently, each a function of a text or of an expression."""

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
        lambda name: '"' + name.replace('"', '""') + '"',
        _duckdb_literal,
        _duckdb_parts,
        lambda text: f"lower({text})",
        _duckdb_upper,
        _duckdb_title,
    ),
    "spark": _Dialect(
        _spark_name, _spark_literal, _spark_parts, _spark_lower, _spark_upper, _spark_title
    ),
}
