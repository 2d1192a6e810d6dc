"""``pexeso tune``: thresholds from labelled pairs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from pexeso.faces.cli.options import (
    command,
    complete_path,
    index_argument,
    reading_option,
    takes,
)
from pexeso.faces.cli.output.advice import thresholds
from pexeso.faces.cli.output.output import output_options, write_json
from pexeso.faces.service.requests import TuneRequest
from pexeso.faces.service.verbs import run

if TYPE_CHECKING:
    from pexeso.semantic.thresholds.advice import Advice


@command()
@index_argument
@click.argument("labels", metavar="LABELS.csv", shell_complete=complete_path)
@reading_option(of="LABELS.csv")
@output_options("json")
@takes(TuneRequest)
def tune(request: TuneRequest, form: str | None) -> None:
    """Choose thresholds from pairs that you have labelled.

    \b
    Example:
      pexeso tune lake.pexeso labels.csv
      pexeso tune lake.pexeso labels.csv --min-precision 0.95

    \b
    LABELS.csv has pairs of values, which choose the distance:
      query_value,lake_value,same
      "CURIE, Marie",Marie Curie,yes
      "CURIE, Marie",Pierre Curie,no
    \b
    or pairs of columns, which choose the share of values too:
      query_column,lake_column,same
      people.csv:company,business/firms.csv:name,yes
      people.csv:company,geo/cities.csv:city,no

    Some answers must be yes and some no; pairs that are hard to decide help most. Where the pairs
    leave a choice, it is what pexeso search --auto would choose, so a handful is enough; the result
    says how certain it is.

    In Python: pexeso.open_index(INDEX).tune(labels).
    """  # noqa: D301  click reads \b
    advice = run(request)
    if form == "json":
        write_json(advice.to_dict())
    else:
        click.echo("\n".join(advice_lines(advice)))


def advice_lines(advice: Advice) -> list[str]:
    """Lay out advice for people: the options to use, and the reason.

    Examples
    --------
    >>> from pexeso.semantic.thresholds.advice import Advice
    >>> advice_lines(Advice(0.34, 0.5, "on 24 pairs it is best."))
    ['--max-distance 0.34 --min-joinability 0.5', 'On 24 pairs it is best.']
    """
    return [
        thresholds(advice.max_distance, advice.min_joinability),
        advice.why[:1].upper() + advice.why[1:],
    ]
