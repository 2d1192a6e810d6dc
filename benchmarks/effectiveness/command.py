"""The command ``python -m benchmarks.effectiveness``."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import click

from benchmarks.effectiveness.measuring import Result, chosen_methods, measure
from benchmarks.effectiveness.methods import METHODS, MODELS, SENTENCE, Workshop
from benchmarks.effectiveness.report import tables_of
from benchmarks.effectiveness.sets import DATA, TruthSet, lake_with_truth, shared_set
from benchmarks.report import RESULTS, write_result
from pexeso.errors import InputError, PexesoError

ALL = "all"

_FOLDER = click.Path(file_okay=False, path_type=Path)
_THERE = click.Path(exists=True, file_okay=False, path_type=Path)
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@dataclass(frozen=True)
class _Options:
    """The options."""

    data: str | None
    lake: Path | None
    truth: Path | None
    methods: str | None
    model: str
    index: Path | None
    indexes: Path | None
    sentence_model: str | None
    as_json: bool
    write: bool

    def check(self) -> None:
        """Refuse options that do not go together."""
        paths = (self.lake, self.truth)
        if (None in paths) if self.data is None else (paths != (None, None)):
            raise InputError("Give --data, or both --lake and --truth.")
        if self.index is not None and (self.data == ALL or self.indexes is not None):
            raise InputError(
                "--index is the index of one data set. Give --indexes, a folder of indexes, for "
                "more."
            )
        if self.indexes is not None and self.data is None:
            raise InputError(
                "--indexes has indexes by the names of data sets. Give --index for a lake of "
                "your own."
            )
        if self.write and self.data is None:
            raise InputError("--write keeps results of the shared data sets. Give --data.")
        chosen_methods(self.methods)

    def names(self) -> tuple[str, ...]:
        """Return the data sets, one of which may be a lake of the user's own."""
        return DATA if self.data == ALL else (self.data or str(self.lake),)


@click.command("effectiveness", context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--data", type=click.Choice((*DATA, ALL)), help="A shared data set with truth, or all of them."
)
@click.option("--lake", type=_THERE, help="Any lake of tables, with --truth.")
@click.option(
    "--truth",
    type=_FILE,
    help="Its joinable pairs, with the columns of the shared join_pairs.tsv.gz.",
)
@click.option(
    "--methods",
    help=f"Some of {', '.join(METHODS)}, with commas; without it all, {SENTENCE} if it has a "
    "model.",
)
@click.option(
    "--model",
    default=MODELS,
    show_default=True,
    help="Models of pexeso's index, where one is built; 'pexeso' is the first of them.",
)
@click.option(
    "--index",
    type=_THERE,
    help="An index of the lake that is there; without it one is built and thrown away.",
)
@click.option(
    "--indexes",
    type=_FOLDER,
    help="Folder in which indexes are kept as NAME.pexeso, and used where they are there.",
)
@click.option(
    "--sentence-model", help="A sentence-transformers model, by path or name, to compare with."
)
@click.option("--json", "as_json", is_flag=True, help="Print plain data instead of tables.")
@click.option("--write", is_flag=True, help="Keep results in benchmarks/results/effectiveness.")
def main(**options: object) -> None:
    """Measure which joinable columns and values are found, against the alternatives."""
    request = _Options(**options)
    try:
        request.check()
        results = [_run(name, request) for name in request.names()]
    except PexesoError as error:
        raise click.ClickException(str(error)) from error
    if request.as_json:
        sets = {result["data"]: result for result in results}
        click.echo(
            json.dumps({"data": ALL, "sets": sets} if request.data == ALL else results[0], indent=1)
        )
    else:
        headed = [f"## {result['data']}\n\n{tables_of(result)}" for result in results]
        click.echo("\n\n".join(headed) if request.data == ALL else tables_of(results[0]))


def _run(name: str, request: _Options) -> Result:
    with _opened(name, request) as (truth, folder):
        path = request.index
        if request.indexes is not None:
            folder = request.indexes
            folder.mkdir(parents=True, exist_ok=True)
            index_folder = folder / f"{name}.pexeso"
            path = index_folder if index_folder.is_dir() else None
        shop = Workshop(
            truth.texts,
            truth.lake,
            folder,
            request.model,
            path,
            request.sentence_model,
            name=Path(name).name,
        )
        result = measure(
            truth, shop, chosen_methods(request.methods), lambda text: click.echo(text, err=True)
        )
    if request.write:
        result = write_result(RESULTS / "effectiveness" / f"{name}.json", result)
    return result


@contextmanager
def _opened(name: str, request: _Options) -> Iterator[tuple[TruthSet, Path]]:
    """Read a data set, with its unpacked tables and index in a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="pexeso-effectiveness-") as folder:
        work_folder = Path(folder)
        if request.lake is not None and request.truth is not None:
            yield lake_with_truth(request.lake, request.truth), work_folder
        else:
            yield shared_set(name, work_folder), work_folder


if __name__ == "__main__":
    sys.exit(main())
