"""``pexeso rules``: the rules by which values are normalised, and which of them an index has."""

from __future__ import annotations

from typing import Any

import click

from pexeso.cli.output.output import MAX_NAME, output_options, table_lines, write_json


@click.command()
@click.argument("index", metavar="[INDEX]", required=False)
@output_options("json")
def rules(index: str | None, form: str | None) -> None:
    """List the rules by which values are normalised.

    \b
    Example:
      pexeso rules
      pexeso rules lake.pexeso

    Tells which are on by default, or which INDEX was built with. Each stands with an example and what becomes of it;
    pexeso index and estimate switch them with --rule and --no-rule.

    In Python: pexeso.Normaliser().rules, pexeso.open_index(INDEX).normaliser.
    """  # noqa: D301  click reads \b
    from pexeso.lake.normalise.normaliser import VERSION
    from pexeso.lake.normalise.rules import DEFAULT_RULES, RULES

    names, extra = (DEFAULT_RULES, {}) if index is None else _of_index(index)
    if form == "json":
        described = [
            {"name": rule.name, "on": rule.name in names, "default": rule.is_default, "does": rule.does}
            for rule in RULES
        ]
        write_json({"version": VERSION, "rules": described, "extra": dict(extra)})
        return
    rows = [("on" if rule.name in names else "off", rule.name, *rule.examples[0]) for rule in RULES]
    for line in table_lines(("", "rule", "for example", "becomes"), rows, "<<<<", most=MAX_NAME):
        click.echo(line)
    if extra:
        click.echo(f"\nWords of its own: {len(extra):,} (--json lists them).")


def _of_index(path: str) -> tuple[tuple[str, ...], Any]:
    from pexeso.parts.metadata import require_contents
    from pexeso.search.opening import normaliser_of
    from pexeso.store.opening import open_store_anywhere

    store = open_store_anywhere(path)
    require_contents(store.manifest)
    normaliser = normaliser_of(store)
    return normaliser.rules, normaliser.extra
