"""Parsing of documentation pages, and comparison of shown output with real output.

The blocks, commands, links and headings of a page are read.
"""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

ANY_LINES = "..."
"""On a line of its own: any number of lines, none included."""

_FENCE = re.compile(r"^(```+)\s*([^`]*)$")
_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)(?:\s+\"[^\"]*\")?\)")
_CODE_SPAN = re.compile(r"`[^`]+`")
_HEADING = re.compile(r"^(#+)\s+(.*?)\s*$")

# What differs with each run and each machine, and what stands for it.
_ANY = (
    (re.compile(r"in [\d.,]+ ms \([^)]*\)"), "in # ms (#)"),
    (re.compile(r"\bin [\d.,]+ ms$"), "in # ms"),
    (re.compile(r"\bin [\d.,]+ s\b"), "in # s"),
    (re.compile(r"\b(\w+) [\d.,]+ s(?=,| \()"), r"\1 # s"),  # stages
    (re.compile(r", [\d.,]+ s\.$"), ", # s."),
    (re.compile(r'"seconds": \{[^}]*\}'), '"seconds": {#}'),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00"), "#time#"),
)
_PADDING = re.compile(r" {2,}")
_NEAR = re.compile(r"(?<![\d.])(?:0\.\d+|\d+\.\d(?= [kMG]B\b)|\d{1,3}(?:,\d{3}){2,}(?=$))(?!\.?\d)")


@dataclass(frozen=True)
class Block:
    """A fenced block: the words after the fence, the line of the fence, and the lines inside.

    Lines are counted from 1.
    """

    words: tuple[str, ...]
    line: int
    lines: tuple[str, ...]

    @property
    def kind(self) -> str:
        """The language, empty where none is given."""
        return self.words[0] if self.words else ""

    @property
    def file(self) -> str | None:
        """The file that the block is to be written to: ``file=NAME`` behind the language."""
        return self._word("file=")

    @property
    def shows(self) -> str | None:
        """The file whose text the block is: ``shows=NAME`` behind the language."""
        return self._word("shows=")

    def _word(self, start: str) -> str | None:
        return next(
            (word.removeprefix(start) for word in self.words if word.startswith(start)), None
        )


@dataclass(frozen=True)
class Step:
    """A command of a console block, its line counted from 1, and the lines shown below it."""

    command: str
    line: int
    shown: tuple[str, ...]

    @property
    def arguments(self) -> list[str]:
        """The words of the command, without redirections at its end."""
        words = shlex.split(self.command)
        return words[: len(words) - 2 * len(self._redirections)]

    @property
    def redirected_to(self) -> str | None:
        """The file behind a ``>`` at the end."""
        return self._redirections.get(">")

    @property
    def redirected_from(self) -> str | None:
        """The file behind a ``<`` at the end."""
        return self._redirections.get("<")

    @property
    def _redirections(self) -> dict[str, str]:
        words, files = shlex.split(self.command), {}
        while len(words) > 2 and words[-2] in ("<", ">"):
            *words, sign, file = words
            files[sign] = file
        return files

    @property
    def fails(self) -> bool:
        """Whether an error is shown: then the command must not succeed."""
        return any(line.startswith("Error: ") for line in self.shown)


def blocks(text: str) -> list[Block]:
    """Return the fenced blocks of a page, in order."""
    page_blocks: list[Block] = []
    fence: str | None = None
    for number, line in enumerate(text.splitlines(), 1):
        match = _FENCE.match(line)
        if fence is None and match:
            fence, start, words, inside = match.group(1), number, tuple(match.group(2).split()), []
        elif fence is not None and line.rstrip() == fence:
            page_blocks.append(Block(words, start, tuple(inside)))
            fence = None
        elif fence is not None:
            inside.append(line)
    if fence is not None:
        raise ValueError(f"the block that starts in line {start} has no end")
    return page_blocks


def steps(block: Block) -> list[Step]:
    """Split a console block into commands and what is shown below each."""
    commands: list[Step] = []
    for number, line in enumerate(block.lines, block.line + 1):
        if line.startswith("$ "):
            commands.append(Step(line[2:].strip(), number, ()))
        elif not commands:
            raise ValueError(f"line {number}: a console block must start with a command, '$ ...'")
        else:
            last = commands[-1]
            commands[-1] = Step(last.command, last.line, (*last.shown, line))
    return commands


def prose(text: str) -> str:
    """Return a page without its fenced blocks; lines keep their numbers."""
    lines = text.splitlines()
    for block in blocks(text):
        lines[block.line - 1 : block.line + len(block.lines) + 1] = [""] * (len(block.lines) + 2)
    return "\n".join(lines)


def links(text: str) -> list[str]:
    """Return the targets of the links and pictures of a page that lie in the project."""
    targets = _LINK.findall(_CODE_SPAN.sub("", prose(text)))
    return [target for target in targets if not re.match(r"[a-z]+:", target)]


def headings(text: str) -> list[str]:
    """Return the texts of the headings of a page."""
    matches = (_HEADING.match(line) for line in prose(text).splitlines())
    return [match.group(2) for match in matches if match]


def anchors(text: str) -> set[str]:
    """Return the names by which links reach the headings of a page."""
    plain = (
        re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings(text)
    )
    return set(plain)


def make_targets(text: str) -> set[str]:
    """Return the targets of make that a page names, in blocks and in code spans."""
    in_blocks = (line.removeprefix("$ ") for block in blocks(text) for line in block.lines)
    in_spans = (span.strip("`") for span in _CODE_SPAN.findall(prose(text)))
    commands = (text for text in (*in_blocks, *in_spans) if re.match(r"make\s+[a-z]", text))
    return {word for command in commands for word in _target_words(command)}


def _target_words(command: str) -> Iterator[str]:
    for word in shlex.split(command, comments=True)[1:]:
        if re.fullmatch(r"[a-z]+", word):
            yield word


def same_output(shown: list[str], real: list[str]) -> bool:
    """Return whether what was printed is what a page shows.

    Blank lines at the end do not count; `ANY_LINES` stands for any lines; see `same_line` for one
    line.
    """
    shown, real = _without_end(shown), _without_end(real)
    # reached[j]: the lines shown so far can be the first j real ones.
    reached = [True] + [False] * len(real)
    for line in shown:
        if line == ANY_LINES:
            first = reached.index(True) if True in reached else len(reached)
            reached = [place >= first for place in range(len(reached))]
        else:
            reached = [False] + [
                before and same_line(line, other)
                for before, other in zip(reached[:-1], real, strict=True)
            ]
    return reached[-1]


def same_line(shown: str, real: str) -> bool:
    """Return whether two lines are equal but for times and last digits.

    Any time equals any other. The last digit of fractions and sizes may be off by at most one.

    A fraction shown as 0 must be 0. Of two or more blanks the number does not count: how wide a
    column is depends on lines that may not be shown.
    """
    shown, real = (_PADDING.sub("  ", line.rstrip()) for line in (shown, real))
    for pattern, name in _ANY:
        shown, real = pattern.sub(name, shown), pattern.sub(name, real)
    if _NEAR.split(shown) != _NEAR.split(real):
        return False
    return all(map(_near, _NEAR.findall(shown), _NEAR.findall(real)))


def _near(shown: str, real: str) -> bool:
    if "," in shown:  # bytes at the end of a row: documents of a partition say how long it took
        return abs(int(shown.replace(",", "")) - int(real.replace(",", ""))) < 1000
    if float(shown) == 0:
        return float(real) == 0
    last_digit = 10.0 ** -len(shown.partition(".")[2])
    return abs(float(shown) - float(real)) <= max(1.001 * last_digit, 1e-9)


def _without_end(lines: list[str]) -> list[str]:
    last = max((place for place, line in enumerate(lines, 1) if line.strip()), default=0)
    return lines[:last]
