"""Figures in the documentation: which results they come from, and when these were measured.

A section that tells measured times or ratios names its results in a comment,
``<!-- figures: PATTERN ... -->``, patterns of files below ``benchmarks/results``. The line after it
says when and with which version they were measured. ``python -m benchmarks figures`` writes these
lines anew, and the tables of `benchmarks.result_tables`; ``renew`` does so at its end. A test holds
the figures against the results.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import click

from benchmarks.declared_results import declared_of
from benchmarks.freshness import RESULTS, date_of
from benchmarks.origin import ROOT
from benchmarks.report import read_result
from benchmarks.result_tables import written
from pexeso.errors import InputError

NO_ORIGIN = "before results named their code"

_NAMED = re.compile(r"^<!-- figures: (.+) -->\n(?:\*Measured.*\*\n)?", re.MULTILINE)
_WRITTEN = re.compile(
    r"^<!-- (?:measured|transform|table|results)\b.*?^<!-- end", re.DOTALL | re.MULTILINE
)
_LINKED = re.compile(r"\]\([./]*/benchmarks/results/([^)]+\.json)\)")
_FENCED = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
_FIGURE = re.compile(
    r"(?<![\w.])(?P<number>\d+(?:,\d{3})*(?:\.\d+)?|\.\d+)\s?"
    r"(?P<unit>ms|µs|s|seconds?|minutes?|hours?|x|times)\b(?!/)"
)
_SECONDS = {"ms": 1e-3, "µs": 1e-6, "s": 1, "second": 1, "minute": 60, "hour": 3600}
_SECONDS |= {f"{unit}s": _SECONDS[unit] for unit in ("second", "minute", "hour")}
_MICROSECONDS = re.compile(r"microseconds|(?:^|[._])us(?:[._]|$)")
_MILLISECONDS = re.compile(r"milliseconds|(?:^|[._])ms(?:[._]|$)")
_MINUTES = re.compile(r"(?:^|[._])minutes(?:[._]|$)")
_TIMES = re.compile(r"seconds|minutes|wall|processor|(?:^|[._])[mu]s(?:[._]|$)")
_RATIOS = ("ratio", "times", "over", "factor", "product")


@dataclass(frozen=True)
class Block:
    """A paragraph or a table that tells measured times or ratios.

    Attributes
    ----------
    heading : str
    text : str
    results : tuple of str
        Patterns of the results that its section names, in comments or as links.
    """

    heading: str
    text: str
    results: tuple[str, ...]


def pages(root: Path = ROOT) -> list[Path]:
    """Return the pages for users."""
    return [root / "README.md", *sorted((root / "docs").rglob("*.md"))]


def blocks(text: str) -> list[Block]:
    r"""Return the blocks of a page that tell times or ratios.

    Code, and what commands write into the page from results, is left out.

    Examples
    --------
    >>> page = "# A\n<!-- figures: a.json -->\n*Measured then.*\n\nTook 3 ms.\n\nWell.\n# B\n2x"
    >>> [(each.text, each.results) for each in blocks(page)]
    [('Took 3 ms.', ('a.json',)), ('2x', ())]
    """
    bare = _FENCED.sub("", _WRITTEN.sub("", text))
    figure_blocks = []
    for section in re.split(r"^(?=#+ )", bare, flags=re.MULTILINE):
        named = [pattern for match in _NAMED.finditer(section) for pattern in match[1].split()]
        named += _LINKED.findall(section)
        heading, _, rest = section.partition("\n")
        for block in re.split(r"\n\s*\n", _NAMED.sub("\n", rest)):
            if figures_of(block):
                figure_blocks.append(Block(heading, block.strip(), tuple(named)))
    return figure_blocks


def figures_of(text: str) -> list[tuple[str, str]]:
    r"""Return the times and ratios that a text tells, as numbers and units.

    Cells of a table below a heading that ends in ``, s`` are seconds, and so on.

    Examples
    --------
    >>> figures_of("The aim of 40 times; 1,904 µs (2.5x)")
    [('40', 'times'), ('1,904', 'µs'), ('2.5', 'x')]
    >>> figures_of("| a | build, s |\n|---|---|\n| 17 | 8.5 |")
    [('8.5', 's')]
    """
    figures = [(match["number"], match["unit"]) for match in _FIGURE.finditer(text)]
    rows = [line.strip("| ").split("|") for line in text.splitlines() if line.startswith("|")]
    for column, heading in enumerate(rows[0] if rows else []):
        if named := re.search(r", (ms|µs|s)$", heading.strip()):
            cells = [row[column].strip() for row in rows[2:] if column < len(row)]
            figures += [(cell, named[1]) for cell in cells if re.fullmatch(r"[\d,]*\.?\d+", cell)]
    return figures


def not_found(block: Block, results: Path = RESULTS) -> list[str]:
    """Return the figures of a block that none of its results has, rounded as they are shown."""
    paths = files_of(block.results, results)
    leaves = [leaf for path in paths for leaf in _quotable(path)]
    return [
        f"{number} {unit}"
        for number, unit in figures_of(block.text)
        if not any(_is_shown(number, unit, key, value) for key, value in leaves)
    ]


def _is_shown(number: str, unit: str, key: str, value: float) -> bool:
    shown = float(number.replace(",", ""))
    step = 10.0 ** -len(number.partition(".")[2])
    if unit in ("x", "times"):
        return any(word in key for word in _RATIOS) and _near(value, shown, step)
    if not _TIMES.search(key):
        return False
    units = ((_MICROSECONDS, 1e-6), (_MILLISECONDS, 1e-3), (_MINUTES, 60))
    scale = next((unit for name, unit in units if name.search(key)), 1)
    return _near(value * scale / _SECONDS[unit], shown, step)


def _near(value: float, shown: float, step: float) -> bool:
    return abs(value - shown) <= step * 0.5000001


def _quotable(path: Path) -> Iterator[tuple[str, float]]:
    """Yield the numbers of a result that a page may quote, with their paths."""
    declared = declared_of(path)
    patterns = (declared.figures if declared else ()) or ("*",)
    for key, value in _leaves(read_result(path)):
        if any(fnmatchcase(key, pattern) for pattern in patterns):
            yield key, value


def _leaves(tree: Any, key: str = "") -> Iterator[tuple[str, float]]:
    """Yield the numbers of a result with their paths."""
    if isinstance(tree, Mapping):
        for name, value in tree.items():
            yield from _leaves(value, f"{key}.{name}" if key else name)
    elif isinstance(tree, list):
        for value in tree:
            yield from _leaves(value, key)
    elif isinstance(tree, int | float) and not isinstance(tree, bool):
        yield key, tree


def files_of(patterns: Sequence[str], results: Path = RESULTS) -> list[Path]:
    """Return the results of patterns.

    Raises
    ------
    InputError
        A pattern names no result.
    """
    files: dict[Path, None] = {}
    for pattern in patterns:
        paths = sorted(results.glob(pattern))
        if not paths:
            raise InputError(
                f"A page names the results {pattern!r}; there are none below benchmarks/results."
            )
        files.update(dict.fromkeys(paths))
    return list(files)


def measured(results: Sequence[Mapping[str, Any]]) -> str:
    """Say when and with what results were measured.

    Examples
    --------
    >>> origin = {"version": "0.1.0", "code": "12ab", "date": "2026-12-02T10:00:00+00:00"}
    >>> measured([{"origin": origin}])
    '*Measured 2026-12-02 with pexeso 0.1.0 (code 12ab).*'
    >>> measured([{"origin": origin}, {"machine": {"date": "2026-11-30T10:00:00+00:00"}}])
    '*Measured 2026-11-30 to 2026-12-02, in part before results named their code.*'
    """
    dates = sorted({date for result in results if (date := date_of(result))})
    when = " to ".join(dict.fromkeys((dates[0], dates[-1]))) if dates else ""
    origins = [result.get("origin") for result in results]
    if not all(origins):
        part = "in part " if any(origins) else ""
        return f"*Measured {f'{when}, ' if when else ''}{part}{NO_ORIGIN}.*"
    versions = ", ".join(sorted({origin["version"] for origin in origins if origin}))
    codes = ", ".join(sorted({str(origin["code"]) for origin in origins if origin}))
    return f"*Measured {when} with pexeso {versions} (code {codes}).*"


def rendered(text: str, results: Path = RESULTS) -> str:
    """Return the text of a page with its tables, and the lines that say when it was measured."""

    def line(match: re.Match[str]) -> str:
        records = [read_result(path) or {} for path in files_of(match[1].split(), results)]
        return f"<!-- figures: {match[1]} -->\n{measured(records)}\n"

    return _NAMED.sub(line, written(text, results))


def write_pages(root: Path = ROOT, results: Path = RESULTS) -> list[Path]:
    """Write these lines and tables anew, and return the pages that have changed."""
    changed = []
    for page in pages(root):
        text = page.read_text(encoding="utf-8")
        new = rendered(text, results)
        if new != text:
            page.write_text(new, encoding="utf-8")
            changed.append(page)
    return changed


@click.command("figures")
def figures_command() -> None:
    """Write into the documentation when its figures were measured, and tables of results."""
    for page in write_pages():
        click.echo(page.relative_to(ROOT))
