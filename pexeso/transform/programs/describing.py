"""Programs in the words of people, who count from 1."""

from __future__ import annotations

from collections.abc import Sequence

from pexeso.transform.programs.program import Casing, Constant, Extract, Operator, Program, Split

_CASINGS: dict[Casing, str] = {
    "none": "",
    "lower": ", in small letters",
    "upper": ", in capitals",
    "title": ", with a capital for each word",
}


def in_words(program: Program, names: Sequence[str]) -> str:
    """Return what a program writes, in plain English on one line.

    Examples
    --------
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
    """Return what each operator of a program is in words, and the text that it wrote for a row.

    Returns
    -------
    list of (str, str or None)
        None where the operator does not apply to the row.
    """
    named = program.named_columns(names)
    return [(_words(step, named), step.of(row)) for step in program.operators]


def quoted(text: str) -> str:
    r"""Return a text in double quotes, with an escape for each character that cannot be seen.

    >>> print(quoted('say "no\u202f"'))
    "say \"no\u202f\""
    """
    return '"' + "".join(map(_shown, text)) + '"'


def _shown(character: str) -> str:
    if character in '"\\':
        return "\\" + character
    if character.isprintable():
        return character
    return character.encode("unicode_escape").decode()


def _words(operator: Operator, named: dict[int, str]) -> str:
    if isinstance(operator, Constant):
        return "a space" if operator.text == " " else quoted(operator.text)
    text = quoted(named[operator.column])
    for number, split in enumerate(operator.splits):
        text = _part(split, f"({text})" if number else text)
    if operator.replacements:
        text += " with " + " and ".join(_replaced(*pair) for pair in operator.replacements)
        text = f"({text})" if operator.start or operator.length else text
    return _characters(operator, text) + _CASINGS[operator.casing]


def _replaced(old: str, new: str) -> str:
    return f"{quoted(old)} replaced by {quoted(new)}" if new else f"{quoted(old)} left out"


def _part(split: Split, text: str) -> str:
    return f"{_parts(split)} of {text} split at {quoted(split.separator)}"


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
