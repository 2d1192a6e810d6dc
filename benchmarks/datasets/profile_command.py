"""The command ``python -m benchmarks profile``, which measures how hard a data set is to search.

The figures of the real lake are shown beside it.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import click

from pexeso.errors import PexesoError

if TYPE_CHECKING:
    from benchmarks.datasets.profile import LakeProfile

_WRONG_INPUT = 2


@click.command("profile")
@click.option(
    "--data",
    default="web",
    show_default=True,
    help="Data set: web, demo, random, swdc, open or lwdc.",
)
@click.option(
    "--scale", default=1.0, show_default=True, help="Of a calibrated data set, in (0, 1]."
)
@click.option("--seed", default=0, show_default=True, help="Of the data set and of all draws.")
@click.option(
    "--model",
    default="fasttext",
    show_default=True,
    help="fasttext (trained on the lake) or hashing.",
)
@click.option(
    "--dimensions", default=100, show_default=True, help="Of the vectors of web, demo and random."
)
@click.option("--columns", default=1000, show_default=True, help="Query columns to draw.")
@click.option(
    "--joined",
    default=0,
    show_default=True,
    help="Query columns to count joinable columns of, by brute force.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def profile_command(
    data: str,
    scale: float,
    seed: int,
    model: str,
    dimensions: int,
    columns: int,
    joined: int,
    as_json: bool,
) -> None:
    """Measure rates of matches, duplicates and survival under maps.

    Exit status: 0, or 2 when there is no such lake.
    """
    from benchmarks.datasets import data_set
    from benchmarks.datasets.profile import profile_lake

    try:
        source = data_set(data, model=model, dimensions=dimensions, seed=seed, scale=scale)
        profile = profile_lake(source.load(), n_columns=columns, n_joined=joined, seed=seed)
    except PexesoError as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(_WRONG_INPUT)
    click.echo(json.dumps(profile.to_dict()) if as_json else profile_table(profile))


def profile_table(profile: LakeProfile) -> str:
    """Return a profile as aligned text, each rate beside the reference and their ratio."""
    from benchmarks.datasets.reference import WEB_JOINABLE_SHARE, WEB_NEARER, WEB_RATES

    lines = [
        f"{profile.name}: {profile.values:,} values of {profile.dimensions} dimensions, "
        f"{profile.columns:,} columns, "
        f"{profile.postings:,} postings, fingerprint {profile.fingerprint}",
        f"pairs of {profile.query_values:,} query values and {profile.lake_values:,} lake values",
        "",
        f"{'':<22}{'here':>12}{'web':>12}{'ratio':>8}",
    ]
    rows = [(name, rate, WEB_RATES[name]) for name, rate in profile.rates.items()]
    rows += [
        (f"nearer than {edge:g}", share, WEB_NEARER[edge]) for edge, share in profile.nearer.items()
    ]
    if profile.joinable_share is not None:
        rows.append(("joinable_share", profile.joinable_share, WEB_JOINABLE_SHARE))
    lines += [
        f"{name:<22}{rate:>12.3g}{target:>12.3g}{rate / target:>8.2f}"
        for name, rate, target in rows
    ]
    lines += ["", "values of a column, by quantile: " + _sizes(profile)]
    return "\n".join(lines)


def _sizes(profile: LakeProfile) -> str:
    return ", ".join(f"{quantile:g}: {size:,}" for quantile, size in profile.sizes.items())
