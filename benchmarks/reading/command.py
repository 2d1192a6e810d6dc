"""The command ``python -m benchmarks reading``."""

from __future__ import annotations

import json
import sys
import tempfile
import time
import warnings
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from benchmarks import report
from benchmarks.reading.pollock import PollockFile, pollock_files
from benchmarks.reading.readers import READERS, Reader
from benchmarks.reading.rules import hard_files
from benchmarks.reading.scoring import ReadTable, is_right
from pexeso.errors import InputError

Result = dict[str, Any]


@click.command("reading", context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--pollock",
    metavar="FOLDER",
    type=click.Path(path_type=Path),
    help="Pollock's repository, whose files are read in place of those made by rule.",
)
@click.option(
    "--step",
    default=20,
    show_default=True,
    type=click.IntRange(min=1),
    help="Of Pollock's files with one damaged row, each of so many.",
)
@click.option(
    "--readers", default=",".join(READERS), show_default=True, help="Those compared, with commas."
)
@click.option(
    "--group",
    "groups",
    multiple=True,
    metavar="NAME",
    help="Files of these groups, such as 'tuned'.  [default: all]",
)
@click.option("--seed", default=0, show_default=True, help="Of the tables that files are made of.")
@click.option("--wrong", is_flag=True, help="Name the files that pexeso reads otherwise.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON object.")
@click.option("--write", is_flag=True, help="Keep the result in benchmarks/results.")
def reading_command(
    pollock: Path | None,
    step: int,
    readers: str,
    groups: tuple[str, ...],
    seed: int,
    wrong: bool,
    as_json: bool,
    write: bool,
) -> None:
    """Read hard delimited files, and count those read as their truth says."""
    names = [name for name in readers.split(",") if name]
    unknown = [name for name in names if name not in READERS]
    try:
        if unknown:
            raise InputError(f"Readers are {', '.join(READERS)}. Got {unknown[0]!r} instead.")
        result = measure(names, pollock, step, groups, seed)
    except InputError as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(2)
    click.echo(json.dumps(result) if as_json else shown(result, wrong))
    if write:
        name = "reading.json" if pollock is None else "reading-pollock.json"
        report.write_result(report.RESULTS / name, result)


def measure(
    names: list[str], pollock: Path | None, step: int, groups: tuple[str, ...], seed: int
) -> Result:
    """Return for each group of files, and each reader, how many are read as their truth says."""
    counts: dict[str, dict[str, int]] = defaultdict(lambda: dict.fromkeys(["files", *names], 0))
    wrong: dict[str, list[str]] = {name: [] for name in names}
    seconds = dict.fromkeys(names, 0.0)
    with tempfile.TemporaryDirectory() as folder:
        for file in _files(Path(folder), pollock, step, seed):
            if groups and file.group not in groups:
                continue
            counts[file.group]["files"] += 1
            for name in names:
                start = time.process_time()
                table = _read(READERS[name], file.path)
                seconds[name] += time.process_time() - start
                if is_right(table, file.names, file.rows, file.n_wrong_allowed):
                    counts[file.group][name] += 1
                else:
                    wrong[name].append(f"{file.group}: {file.path.name}")
    return {
        "readers": names,
        "groups": counts,
        "wrong": wrong,
        "seconds": {name: round(spent, 2) for name, spent in seconds.items()},
        "seed": seed,
        "step": step,
    }


def shown(result: Result, wrong: bool) -> str:
    """Return the counts as a table, and where asked the files that pexeso reads otherwise."""
    names = result["readers"]
    lines = [f"{'':<20}{'files':>7}" + "".join(f"{name:>12}" for name in names)]
    for group, counts in result["groups"].items():
        lines.append(
            f"{group:<20}{counts['files']:>7}" + "".join(f"{counts[name]:>12}" for name in names)
        )
    lines.append(f"{'seconds':<27}" + "".join(f"{result['seconds'][name]:>12}" for name in names))
    if wrong:
        lines += result["wrong"].get("pexeso", [])
    return "\n".join(lines)


def _files(folder: Path, pollock: Path | None, step: int, seed: int) -> Iterator[PollockFile]:
    if pollock is not None:
        yield from pollock_files(pollock, step)
        return
    for file in hard_files(seed):
        path = folder / file.name
        path.write_bytes(file.written.data)
        names = None if file.written.names is None else list(file.written.names)
        yield PollockFile(path, file.group, names, [list(row) for row in file.written.rows])


def _read(reader: Reader, path: Path) -> ReadTable | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return reader(path)
    except Exception:  # whatever a reader raises, it has not read the file
        return None
