"""The program of ``make flip-test``: 500 flipped bytes in an index.

A check must find each of them, and no search may fail unexpectedly because of it.

    python tests/robustness/flip_run.py [--short] [--flips N] [--seed N] [--index PATH]

A small index is built and copied. In the copy one byte of one file is changed, half of the time any
byte alike, half of the time any file alike, so that small files get their share. Then `check` must
name the file; and opening, searching, explaining and summing up must each end in an error of ours
or in an answer. An answer may differ from that of the whole index only where the file has bytes
that an open does not read: such flips are counted, as found by `check` alone. Progress goes to
stderr, one summary line to stdout; the exit code is 1 where anything else happened.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import os
import shutil
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [path for path in (str(HERE.parent.parent), str(HERE)) if path not in sys.path]

from pexeso.build.diagnostics.info import check_index  # noqa: E402
from pexeso.errors import PexesoError  # noqa: E402
from pexeso.index import Index, open_index  # noqa: E402

FLIPS, SHORT_FLIPS = 500, 40
SEED = 20_250_101
SECONDS_A_FLIP = 60

REFUSED_AT_OPEN = "refused at open"
REFUSED_LATER = "refused when read"
SAME = "same answer"
OTHER = "other answer"

_QUERY = ["Oslo", "rome", " MADRID ", "Xyzzyx", "Vienna", None]
_SEARCHES: dict[str, Callable[[Index], Any]] = {
    "search": lambda index: index.search(_QUERY, min_joinability=0.2).to_dict(explain=True),
    "best": lambda index: index.search(_QUERY, k=2, max_distance=0.3).to_dict(explain=True),
    "exact": lambda index: index.search(_QUERY, exact=True, min_joinability=0.2).to_dict(
        explain=True
    ),
    "explain": lambda index: index.explain(_QUERY, "cities.csv", "city").to_dict(),
    "info": lambda index: index.info().to_dict(),
}


class HangError(BaseException):
    """A flip took too long."""


@dataclass(frozen=True)
class Flip:
    """One changed byte, and what came of it."""

    path: str
    position: int
    mask: int
    outcome: str
    failures: tuple[str, ...] = ()


class FlipTest:
    """Changes bytes of a copy of an index, one at a time, and puts each back.

    Parameters
    ----------
    index : Path
        A whole index; it is not touched.
    folder : Path
        Where the copy goes.
    """

    def __init__(self, index: Path, folder: Path) -> None:
        self.copy = folder / "copy.pexeso"
        shutil.copytree(index, self.copy)
        self.paths = sorted(
            path for path in self.copy.rglob("*") if path.is_file() and path.stat().st_size
        )
        self.sizes = np.array([path.stat().st_size for path in self.paths])
        problems = [problem for problem in check_index(self.copy) if problem.is_failure]
        if problems:
            raise ValueError(f"The index is damaged before anything was flipped: {problems}")
        self.expected = answers(open_index(self.copy, device="cpu"))

    def flips(self, n_flips: int, seed: int) -> list[tuple[Path, int, int]]:
        """Choose file, position and the bits to turn for each flip."""
        generator = np.random.default_rng(seed)
        by_byte = generator.choice(len(self.paths), n_flips, p=self.sizes / self.sizes.sum())
        by_file = generator.integers(len(self.paths), size=n_flips)
        which = np.where(np.arange(n_flips) % 2, by_byte, by_file)
        single = 1 << generator.integers(0, 8, n_flips)
        masks = np.where(
            generator.random(n_flips) < 0.5, single, generator.integers(1, 256, n_flips)
        )
        return [
            (self.paths[file], int(generator.integers(self.sizes[file])), int(mask))
            for file, mask in zip(which, masks, strict=True)
        ]

    def __call__(self, path: Path, position: int, mask: int) -> Flip:
        """Flip, look, and put the byte back."""
        name = path.relative_to(self.copy).as_posix()
        turn(path, position, mask)
        signal.signal(signal.SIGALRM, _stop)
        signal.alarm(SECONDS_A_FLIP)
        try:
            outcome, failures = self._look(name)
        except HangError:
            outcome, failures = "hang", (f"more than {SECONDS_A_FLIP} seconds",)
        finally:
            signal.alarm(0)
            turn(path, position, mask)
        return Flip(name, position, mask, outcome, failures)

    def _look(self, name: str) -> tuple[str, tuple[str, ...]]:
        failures = []
        try:
            named = [problem.path for problem in check_index(self.copy) if problem.is_failure]
            if name not in named:
                failures.append(f"check names {named}")
        except Exception as error:
            failures.append(f"check raised {error!r}")
        try:
            index = open_index(self.copy, device="cpu")
        except PexesoError:
            return REFUSED_AT_OPEN, tuple(failures)
        except Exception as error:
            return "crash", (*failures, f"open raised {error!r}")
        outcomes = set()
        for question, ask in _SEARCHES.items():
            try:
                outcomes.add(SAME if plain(ask(index)) == self.expected[question] else OTHER)
            except PexesoError:
                outcomes.add(REFUSED_LATER)
            except Exception as error:
                failures.append(f"{question} raised {error!r}")
        worst = next(
            (outcome for outcome in (OTHER, REFUSED_LATER, SAME) if outcome in outcomes), "crash"
        )
        return worst, tuple(failures)


def answers(index: Index) -> dict[str, str]:
    return {question: plain(ask(index)) for question, ask in _SEARCHES.items()}


def plain(answer: dict[str, Any]) -> str:
    """Write an answer without what differs from run to run."""
    return json.dumps(
        {name: value for name, value in answer.items() if name != "stats"}, sort_keys=True
    )


def turn(path: Path, position: int, mask: int) -> None:
    with open(path, "r+b") as file:
        file.seek(position)
        (byte,) = file.read(1)
        file.seek(position)
        file.write(bytes([byte ^ mask]))


def _stop(*_: object) -> None:
    raise HangError


def summary(flips: list[Flip]) -> str:
    """Say in one line how all flips ended."""
    counts = Counter(flip.outcome for flip in flips)
    failed = sum(bool(flip.failures) for flip in flips)
    refused = counts[REFUSED_AT_OPEN] + counts[REFUSED_LATER]
    return (
        f"{len(flips):,} flips, {failed} failures: all others found by check; "
        f"{counts[REFUSED_AT_OPEN]} refused at open, {counts[REFUSED_LATER]} when read, "
        f"{counts[SAME]} with the same answer, {counts[OTHER]} with another one "
        f"({len(flips) - refused - failed} told by check alone)"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description="Flip bytes of an index.")
    parser.add_argument(
        "--short", action="store_true", help=f"{SHORT_FLIPS} flips instead of {FLIPS}"
    )
    parser.add_argument("--flips", type=int)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--index", help="the index to copy; without it one is built")
    options = parser.parse_args()
    faulthandler.enable()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    n_flips = options.flips or (SHORT_FLIPS if options.short else FLIPS)
    with tempfile.TemporaryDirectory(prefix="pexeso-flip-") as folder:
        if options.index is None:
            from small_index import build_small_index

            options.index = build_small_index(Path(folder) / "small")
        test, flips = FlipTest(Path(options.index), Path(folder)), []
        for number, (path, position, mask) in enumerate(test.flips(n_flips, options.seed), 1):
            flips.append(test(path, position, mask))
            for failure in flips[-1].failures:
                print(  # noqa: T201
                    f"flip {number} of {flips[-1].path}, byte {position}: {failure}",
                    file=sys.stderr,
                )
            if number % 50 == 0:
                print(f"{number} of {n_flips} flips", file=sys.stderr, flush=True)  # noqa: T201
        print(summary(flips))  # noqa: T201
    return int(any(flip.failures for flip in flips))


if __name__ == "__main__":
    sys.exit(main())
