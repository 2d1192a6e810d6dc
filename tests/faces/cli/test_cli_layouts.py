"""Tests of every stored layout through the command line: all give the same answers."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from layouts import LAYOUTS, drop_pages, laid_out
from long_runs import long_but
from processes import ran

from pexeso.build.diagnostics.info import check_index
from pexeso.index import build_index, open_index

SEARCH = ("search", "{index}", "{query}", "--min-joinability", "0.12", "--no-rerank", "--json")
PROGRAM = """
import sys
from pexeso.faces.cli.main import cli
from pexeso.store import arrays as paging

real, seen = paging.FaultWatch.missing, []
paging.FaultWatch.missing = lambda self: seen.append(real(self)) or seen[-1]
cli(sys.argv[1:], prog_name="pexeso", standalone_mode=False)
print(any(seen), file=sys.stderr)
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    """A lake of twenty columns in two partitions, to be laid out in other ways."""
    folder = tmp_path_factory.mktemp("layouts")
    rng = np.random.default_rng(0)
    words = np.array(["".join(rng.choice(list("abcdefghiklmnorstu"), 9)) for _ in range(3000)])
    (folder / "lake").mkdir()
    for number in range(20):
        rows = rng.choice(len(words), 400, replace=False)
        (folder / "lake" / f"t{number:02}.csv").write_text(
            "\n".join(["word", *words[rows]]), encoding="utf-8"
        )
    (folder / "query.csv").write_text("\n".join(["word", *words[:900:3]]), encoding="utf-8")
    return build_index(
        folder / "lake", folder / "auto.pexeso", model="hashing", dimensions=256, n_partitions=2
    ).path


def columns_of(output: str) -> list[tuple[str, str, int]]:
    return [(hit["table"], hit["column"], hit["matched"]) for hit in json.loads(output)["results"]]


def arguments(index: Path) -> list[str]:
    query = index.parent / "query.csv"
    return [part.format(index=index, query=f"{query}:word") for part in SEARCH]


@pytest.mark.parametrize("layout", long_but(["pivots-grid"], LAYOUTS))
def test_a_layout_gives_the_same_answers_cold_and_warm(built, layout, run):
    index = laid_out(built, built.parent / f"{layout}.pexeso", LAYOUTS[layout])
    assert [problem for problem in check_index(index) if problem.is_failure] == []
    query = (index.parent / "query.csv").read_text(encoding="utf-8").split()[1:]
    options = {"min_joinability": 0.12, "rerank": False, "exact": True}
    result = open_index(index, device="cpu").search(query, **options)
    exact = [(match.table, match.column, match.matched) for match in result]
    assert exact
    assert columns_of(run(*arguments(index)).stdout) == exact
    drop_pages(index)
    done = ran(
        [sys.executable, "-c", PROGRAM, *arguments(index)], variables={"OMP_NUM_THREADS": "1"}
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert columns_of(done.stdout) == exact
    if done.stderr.split()[-1] != "True":
        pytest.skip("this file system keeps its files in memory, so that no page was missing")
