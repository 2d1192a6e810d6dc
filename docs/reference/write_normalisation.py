"""Writer of docs/reference/normalisation.md from the rules of the normaliser.

Run it as ``python docs/reference/write_normalisation.py``.

A test compares the page with what this program gives, so that the page cannot fall behind.
"""

from __future__ import annotations

import textwrap
from pathlib import Path

from pexeso.lake.normalise.normaliser import VERSION
from pexeso.lake.normalise.rules import RULES, NamedRule

PAGE = Path(__file__).with_name("normalisation.md")
WIDTH = 100

_HEAD = f"""\
# How values are normalised

Rules normalise every value before it is compared, in the lake and in your query. Each rule has a
name and can be switched on or off. An index stores the rules that it was built with, and applies
them to every query. Each example is tested: it shows a value and its form with that rule and the
default rules, or two values that a rule keeps apart. The rules that tell values apart change no
form, and are kept by the default model alone. Equal values are compared by the readings alone.

The rules have version {VERSION}; an index of another version is refused.
Normalisation is idempotent, with one exception: marks around dates and periods are removed first.
`FY2019*` becomes `fy2019`, and `fy2019` becomes `fiscal year 2019`. Only dates depend on the rest
of their column.
"""

_READINGS = """\
## Readings of equal values

Overlap, containment, composite keys, joins by them and the graph of a lake compare cells that are
read by these rules. Equal cells are found whatever a column is read as. A rule that is off does
nothing either, once on, in a column that holds two values which it would make one.
"""


def page() -> str:
    """Return the text of the page."""
    forms = [rule for rule in RULES if not rule.tells_apart and not rule.is_reading]
    sections = [
        _HEAD,
        _section("On by default", [rule for rule in forms if rule.is_default]),
        _section("Off by default", [rule for rule in forms if not rule.is_default]),
        _section("What tells values apart", [rule for rule in RULES if rule.tells_apart]),
        _READINGS,
        *(_entry(rule) for rule in RULES if rule.is_reading and rule.is_default),
        "Off by default, since they could make two values of a column one:\n",
        *(_entry(rule) for rule in RULES if rule.is_reading and not rule.is_default),
    ]
    return "\n".join(sections)


def _section(title: str, rules: list[NamedRule]) -> str:
    return "\n".join([f"## {title}", "", *(_entry(rule) for rule in rules)])


def _entry(rule: NamedRule) -> str:
    rows = [f"| {_code(value)} | {_code(form)} |" for value, form in rule.examples]
    return "\n".join(
        [
            f"### {rule.name}",
            "",
            textwrap.fill(
                f"The rule {rule.does} {rule.reason}",
                WIDTH,
                break_long_words=False,
                break_on_hyphens=False,
            ),
            "",
            "| value | is not |" if rule.tells_apart else "| value | form |",
            "|---|---|",
            *rows,
            "",
        ]
    )


def _code(text: str) -> str:
    return f"`{text}`"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
