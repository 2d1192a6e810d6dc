"""The command that measures how fast values are embedded.

It is compared with a Python loop of fastText's own `get_sentence_vector`.
"""

from __future__ import annotations

import hashlib
import json
import logging
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch

from benchmarks.datasets.tables import (
    WEB_LAKES,
    Sources,
    demo_sources,
    number_columns,
    read_postings,
    web_sources,
    write_training_text,
)
from benchmarks.machine import describe_machine, pin_threads
from benchmarks.report import RESULTS, markdown_table, write_result
from benchmarks.timing import measure_in_turn
from embed import fasttext
from embed.corpus import count_corpus
from embed.lexical import hashing
from embed.words import split_words
from pexeso.errors import InputError, LakeError, PexesoError
from pexeso.lake.choose import ColumnRules
from pexeso.lake.normalise.normaliser import Normaliser

LAKES = {**{name: (name,) for name in WEB_LAKES}, "web": WEB_LAKES, "demo": ()}
"""Names on the command line, and the real lakes that each is made of."""

HASHING, TRAINED, LOOP = "hashing", "fasttext", "get_sentence_vector"

_log = logging.getLogger("benchmarks")


@dataclass
class Way:
    """A way to embed values; what `benchmarks.timing` needs of an algorithm.

    Attributes
    ----------
    embed : callable
        From the values, as an Arrow array and as a list, to their vectors, of which all of a loop's
        but the last may have been dropped.
    dimensions : int
        Length of the vectors.
    """

    embed: Callable[[pa.Array, list[str]], np.ndarray]
    dimensions: int
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    work: dict[str, float] = field(default_factory=dict)


@click.command("embedding")
@click.option("--data", default="wikitables", show_default=True, help=f"Lake: {', '.join(LAKES)}.")
@click.option("--values", type=int, help="Embed the first so many distinct values.  [default: all]")
@click.option("--repeats", default=7, show_default=True, help="Timed repeats of each way.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON object.")
def embedding_command(data: str, values: int | None, repeats: int, as_json: bool) -> None:
    """Embed the distinct values of a lake on one thread, with each model in turn.

    A loop of fastText's own takes its turn too.

    Exit status: 0, 2 when the run cannot be made.
    """
    logging.basicConfig(format="%(message)s", level=logging.WARNING, stream=sys.stderr)
    _log.setLevel(logging.INFO)
    try:
        result = run_embedding(data, values, repeats)
    except PexesoError as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(2)
    size = "all" if values is None else str(values)
    write_result(RESULTS / "embedding" / f"{data}_v{size}_r{repeats}.json", result)
    click.echo(json.dumps(result) if as_json else page_table(result))
    if result["skipped"]:
        click.echo(f"Not measured: {result['skipped']}", err=True)


def run_embedding(data: str, n_values: int | None, repeats: int) -> dict[str, Any]:
    """Measure."""
    for name, number in (("values", n_values), ("repeats", repeats)):
        if number is not None and number < 1:
            raise InputError(f"{name} must be at least 1. Got {number} instead.")
    pin_threads(1)
    machine = describe_machine(torch.device("cpu"))
    with tempfile.TemporaryDirectory(prefix="pexeso-benchmark-") as folder:
        corpus = Path(folder) / "corpus.txt"
        _log.info("reading %s", data)
        values = _read(_sources(data), corpus)[:n_values]
        if not len(values):
            raise LakeError(f"No column of {data} can be a join key.")
        with _ways(corpus, Path(folder)) as (ways, skipped):
            # Once before the clock: what is compiled and looked up once is ready then.
            texts = values.to_pylist()
            before = {name: _digest(way.embed(values, texts)) for name, way in ways.items()}

            def check(name: str, number: int, vectors: np.ndarray) -> None:
                if _digest(vectors) != before[name]:
                    raise LakeError(f"{name} gave other vectors for the same values.")

            _log.info("embedding %d values, %d times each way", len(values), repeats)
            measured = measure_in_turn(
                ways, [(values, texts)], repeats, check, lambda way, question: way.embed(*question)
            )
    words = split_words(values)
    seconds = {name: measurement.processor_seconds[0] for name, measurement in measured.items()}
    loops = [name for name in seconds if name.startswith(LOOP)]
    return {
        "data": data,
        "values": len(values),
        "distinct_words": len(words.words),
        "words": len(words.word_ids),
        "repeats": repeats,
        "ways": {
            name: {
                "dimensions": ways[name].dimensions,
                "values_per_second": _middle(len(values) / seconds[name]),
                "wall_values_per_second": _middle(len(values) / measured[name].seconds[0]),
                "times": {loop: _middle(seconds[loop] / seconds[name]) for loop in loops},
            }
            for name in ways
        },
        "skipped": skipped,
        "machine": machine,
    }


def page_table(result: Mapping[str, Any]) -> str:
    """Return values embedded a second of processor time, and multiples of each loop, as a table."""
    loops = [name for name in result["ways"] if name.startswith(LOOP)]
    heads = [f"`{result['data']}`: way, and dimensions", "values a second"]
    return markdown_table(
        [*heads, *(f"against `{name}`" for name in loops)],
        [
            [
                f"`{name}`"
                if name.startswith((TRAINED, LOOP))
                else f"`{name} {ways['dimensions']}`",
                f"{ways['values_per_second']['median']:,.0f}",
                *(f"{ways['times'][loop]['median']:.1f}x" for loop in loops),
            ]
            for name, ways in result["ways"].items()
        ],
    )


def _digest(vectors: np.ndarray) -> bytes:
    return hashlib.blake2b(np.ascontiguousarray(vectors).view(np.uint8).data).digest()


def _middle(numbers: np.ndarray) -> dict[str, float]:
    return {
        "median": float(np.median(numbers)),
        "least": float(numbers.min()),
        "most": float(numbers.max()),
    }


def _sources(data: str) -> Sources:
    if data not in LAKES:
        raise InputError(f"Lakes are {', '.join(LAKES)}. Got {data!r} instead.")
    return web_sources(LAKES[data]) if LAKES[data] else demo_sources()


def _read(sources: Sources, corpus: Path) -> pa.Array:
    """Return the distinct values of the lake in order, and write the training text of models.

    The order is that in which the values come.
    """
    with sources.open() as folders:
        postings = read_postings(folders, ColumnRules(), Normaliser())
    encoded = pc.dictionary_encode(postings["value"].combine_chunks())
    write_training_text(number_columns(postings)[0], encoded, corpus, seed=0)
    return encoded.dictionary


@contextmanager
def _ways(corpus: Path, folder: Path) -> Iterator[tuple[dict[str, Way], str | None]]:
    """Make all ways; where fastText is not installed `hashing` alone, and why."""
    model = hashing.create(corpus=corpus)
    ways = {HASHING: Way(lambda values, _: model.embed(values), model.dimensions)}
    try:
        from fasttext import load_model, train_unsupervised
    except ImportError:
        yield ways, "fastText; the package fasttext-numpy2 is not installed."
        return
    counts = count_corpus(corpus)
    for dimensions in (fasttext.TrainingOptions().dimensions, model.dimensions):
        options = fasttext.TrainingOptions(dimensions=dimensions)
        _log.info("training fastText, %d dimensions", dimensions)
        # One pass: the time of a vector hangs on how large the tables are, not on what was learnt.
        trained = train_unsupervised(
            str(corpus),
            model="skipgram",
            loss="ns",
            thread=fasttext.THREADS,
            verbose=0,
            epoch=1,
            bucket=options.buckets(counts),
            minCount=counts.least_count(options.max_words),
            dim=dimensions,
            minn=options.min_n,
            maxn=options.max_n,
        )
        path = folder / f"{dimensions}.bin"
        trained.save_model(str(path))
        ours = fasttext.load_binary(path)
        ways[f"{TRAINED} {dimensions}"] = Way(
            lambda values, _, ours=ours: ours.embed(values), dimensions
        )
        ways[f"{LOOP} {dimensions}"] = Way(
            _loop_of(load_model(str(path)).get_sentence_vector), dimensions
        )
        path.unlink()
    yield ways, None


def _loop_of(
    get_sentence_vector: Callable[[str], np.ndarray],
) -> Callable[[pa.Array, list[str]], np.ndarray]:
    """Return the loop at its best: the values are Python strings already, and no vector is kept."""

    def embed(_: pa.Array, texts: list[str]) -> np.ndarray:
        vector = np.zeros(0)
        for text in texts:
            vector = get_sentence_vector(text)
        return vector

    return embed
