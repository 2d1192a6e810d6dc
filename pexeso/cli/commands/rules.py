"""``pexeso rules``: the rules by which values are normalised, and which of them an index has."""

from __future__ import annotations

import click

from pexeso.cli.options import takes
from pexeso.cli.output.output import MAX_NAME, output_options, table_lines, write_json
from pexeso.service.requests import RulesRequest
from pexeso.service.verbs import run


@click.command()
@click.argument("index", metavar="[INDEX]", required=False)
@output_options("json")
@takes(RulesRequest)
def rules(request: RulesRequest, form: str | None) -> None:
    """List the rules by which values are normalised.

    \b
    Example:
      pexeso rules
      pexeso rules lake.pexeso

    Tells which are on by default, or which INDEX was built with. Each stands with an example and
    what becomes of it; pexeso index and estimate switch them with --rule and --no-rule.

    In Python: pexeso.Normaliser().rules, pexeso.open_index(INDEX).normaliser.
    """  # noqa: D301  click reads \b
    from pexeso.lake.normalise.rules import RULES

    found = run(request)
    if form == "json":
        write_json(found.to_dict())
        return
    rows = [
        ("on" if rule.name in found.on else "off", rule.name, *rule.examples[0]) for rule in RULES
    ]
    for line in table_lines(("", "rule", "for example", "becomes"), rows, "<<<<", most=MAX_NAME):
        click.echo(line)
    if found.extra:
        click.echo(f"\nWords of its own: {len(found.extra):,} (--json lists them).")
