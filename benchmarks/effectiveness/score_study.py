"""The command ``python -m benchmarks.effectiveness.score_study``.

It compares measures of two columns by how they order and cut what a search finds, and models that
are learned from several of them on all data sets but the one that is scored.
"""

from __future__ import annotations

import datetime as dt
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from benchmarks.effectiveness.page import write_page
from benchmarks.effectiveness.score.asked_lake import SETS, asked_lake
from benchmarks.effectiveness.score.figures import Ranked, difference, reliability
from benchmarks.effectiveness.score.models import FEATURES, learn
from benchmarks.effectiveness.score.pairs import Pairs, found_pairs, measures
from benchmarks.effectiveness.score.tables import MEAN, STUDY, tables
from benchmarks.effectiveness.searched import index_for
from benchmarks.effectiveness.sets import SHARED
from benchmarks.effectiveness.stored import RESULTS
from benchmarks.report import write_result
from pexeso.errors import InputError, PexesoError
from pexeso.index import open_index

MODEL, SHIPPED = "lexical", "similarity"
FIGURES = ("map", "recall_95")


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--sets", help="Some of the data sets, with commas.  [default: all]")
@click.option(
    "--indexes",
    type=click.Path(file_okay=False, path_type=Path),
    help="Keep the indexes in this folder, and use those that are there.",
)
@click.option(
    "--strict", is_flag=True, help="Take pairs with nearly enough equal texts for wrong ones."
)
@click.option("--json", "as_json", is_flag=True, help="Print plain data instead of tables.")
@click.option(
    "--write",
    is_flag=True,
    help="Keep the result in benchmarks/results/effectiveness/score-study.json and on the page.",
)
def main(sets: str | None, indexes: Path | None, strict: bool, as_json: bool, write: bool) -> None:
    """Compare measures and models that order what a search finds."""
    try:
        names = [name.strip() for name in sets.split(",")] if sets else list(SETS)
        if unknown := [name for name in names if name not in SETS]:
            raise InputError(f"The data sets are {', '.join(SETS)}. Got {unknown[0]!r}.")
        if write and (strict or names != list(SETS)):
            raise InputError("--write keeps what all data sets say: leave --sets and --strict out.")
        result = run(names, indexes, strict=strict)
    except PexesoError as error:
        raise click.ClickException(str(error)) from error
    if write:
        write_result(RESULTS / f"{STUDY}.json", result)
        write_page()
    click.echo(json.dumps(result, indent=1) if as_json else tables(result))


def run(
    names: Sequence[str],
    indexes: Path | None = None,
    shared: Path = SHARED,
    *,
    strict: bool = False,
) -> dict[str, Any]:
    """Measure on data sets, each held out of what is learned for it; see `compared`."""
    pairs = {}
    with tempfile.TemporaryDirectory(prefix="pexeso-score-study-") as folder:
        for name in names:
            set_folder = Path(folder) / name
            set_folder.mkdir()
            data_set = asked_lake(name, set_folder, shared, strict=strict)
            path = (indexes or set_folder) / f"{name}.pexeso"
            path.parent.mkdir(parents=True, exist_ok=True)
            index = open_index(path) if path.exists() else index_for(data_set.lake, path, MODEL)
            pairs[name] = found_pairs(data_set, index)
            click.echo(f"{name}: {len(pairs[name].right):,} pairs", err=True)
    return {"data": STUDY, "measured": dt.date.today().isoformat(), **compared(pairs)}


def compared(pairs: Mapping[str, Pairs]) -> dict[str, Any]:
    """Compare measures and models on pairs of columns of several data sets.

    Returns
    -------
    dict
        ``counts`` of each data set; ``measures`` and ``models``: name -> data set, or ``mean`` over
        them -> figures (`Ranked.figures`; of models also ``reliability``, of probabilities learned
        on the other sets); ``best``, the single measure that is best on each data set in hindsight,
        for each of `FIGURES`; ``behind``: for the similarity and each model the 95 % interval of
        the difference to that measure; and ``holds``, whether no interval lies wholly below 0.
    """
    single = {name: measures(set_pairs) for name, set_pairs in pairs.items()}
    ranked: dict[str, dict[str, Ranked]] = {
        measure: {name: Ranked(pairs[name], single[name][measure]) for name in pairs}
        for measure in next(iter(single.values()))
    }
    learned: dict[str, dict[str, Ranked]] = {model: {} for model in FEATURES}
    for held_out in pairs:
        others = [(single[name], pairs[name].right) for name in pairs if name != held_out]
        for model in FEATURES if others else ():
            scores = learn(model, others)(single[held_out])
            learned[model][held_out] = Ranked(pairs[held_out], scores)
    figures: dict[str, dict[str, dict[str, Any]]] = {
        method: _with_mean({name: scored.figures() for name, scored in rankings.items()})
        for method, rankings in {**ranked, **learned}.items()
    }
    best = {
        name: {
            figure: max(ranked, key=lambda measure: figures[measure][name][figure])
            for figure in FIGURES
        }
        for name in pairs
    }
    for model, rankings in learned.items():
        for name, scored in rankings.items():
            figures[model][name]["reliability"] = reliability(scored.scores, pairs[name].right)
    judged = {SHIPPED: ranked[SHIPPED], **learned}
    behind = {
        method: {
            name: {
                figure: difference(scored, ranked[best[name][figure]][name])[figure]
                for figure in FIGURES
            }
            for name, scored in rankings.items()
        }
        for method, rankings in judged.items()
    }
    return {
        "counts": {name: _counts(set_pairs) for name, set_pairs in pairs.items()},
        "measures": {name: figures[name] for name in ranked},
        "models": {name: figures[name] for name in learned},
        "best": best,
        "behind": behind,
        "holds": {
            method: all(high >= 0 for intervals in sets.values() for _, high in intervals.values())
            for method, sets in behind.items()
        },
    }


def _with_mean(figures: dict[str, dict[str, float]]) -> dict[str, dict[str, float]]:
    means = {
        figure: round(sum(values[figure] for values in figures.values()) / len(figures), 4)
        for figure in next(iter(figures.values()), {})
    }
    return {**figures, MEAN: means}


def _counts(pairs: Pairs) -> dict[str, int]:
    return {
        "query_columns": len(pairs.n_right),
        "with_a_right_column": int((pairs.n_right > 0).sum()),
        "pairs": len(pairs.right),
        "right_pairs": int(pairs.right.sum()),
        "right_pairs_there_are": int(pairs.n_right.sum()),
    }


if __name__ == "__main__":
    sys.exit(main())
