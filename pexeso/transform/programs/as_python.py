"""Programs as Python, for people who want to run them without this package."""

from __future__ import annotations

import inspect
from collections.abc import Sequence

from pexeso.transform.programs.describing import in_words
from pexeso.transform.programs.program import (
    Casing,
    Constant,
    Extract,
    Operator,
    Program,
    Split,
    capital,
    lower,
    title,
    upper,
)

_HELPERS = {
    "none": (),
    "lower": (lower,),
    "upper": (capital, upper),
    "title": (lower, capital, upper, title),
}
"""What a casing needs, in the order in which it can be defined."""


def as_python(program: Program, names: Sequence[str]) -> str:
    """Return the source of a function `transform(row)` that writes what a program writes.

    It needs nothing but Python's standard library. Its row is a mapping from the name of a column
    to a text or None; it returns None where the program does not apply.

    Examples
    --------
    >>> program = Program((Extract(0, (Split(", ", 1),), start=-4, length=2), Constant("-")))
    >>> print(as_python(program, ["Name", "Title"]))
    def transform(row: dict[str, str | None]) -> str | None:
        # 2 characters of part 2 of "Name" split at ", ", beginning with character 4 from the end, then "-"
        cell = row['Name']
        if cell is None:
            return None
        parts_1 = cell.split(', ')
        if len(parts_1) < 2:
            return None
        if len(parts_1[1]) < 4:
            return None
        return parts_1[1][-4:-2] + '-'
    <BLANKLINE>
    """  # noqa: E501  what is printed is one line
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
    """Return the source of a function `transform(row)` that writes what the first program writes.

    The first of those that apply to the row; it returns None where none does. See `as_python`.

    Examples
    --------
    >>> initial = Program((Extract(0, length=1, shorter=True),))
    >>> source = first_as_python([Program((Extract(1),)), initial], ["Name", "Mail"])
    >>> print(source[source.index("def transform(") :])
    def transform(row: dict[str, str | None]) -> str | None:
        texts = (each(row) for each in (transform_1, transform_2))
        return next((text for text in texts if text is not None), None)
    <BLANKLINE>
    """
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
    """Return the functions that the casings of programs need."""
    operators = [operator for program in programs for operator in program.operators]
    casings: set[Casing] = {extract.casing for extract in operators if isinstance(extract, Extract)}
    needed = {helper for casing in casings for helper in _HELPERS[casing]}
    parts = ["from itertools import groupby\n"] if title in needed else []
    parts += [inspect.getsource(helper) for helper in _HELPERS["title"] if helper in needed]
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
        """Return the expression of an operator, after the statements that it needs."""
        if isinstance(operator, Constant):
            return repr(operator.text)
        text = self.cells[operator.column]
        for split in operator.splits:
            text = self.part(text, split)
        for old, new in operator.replacements:
            text += f".replace({old!r}, {new!r})"
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
        """Return an expression that is short enough to be written twice."""
        return self.variable("text", text) if "(" in text else text

    def variable(self, noun: str, expression: str) -> str:
        if expression not in self.variables:
            self.variables[expression] = f"{noun}_{len(self.variables) + 1}"
            self.lines.append(f"{self.variables[expression]} = {expression}")
        return self.variables[expression]
