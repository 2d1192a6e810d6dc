"""Tests of the corpus: it depends on lake and seed alone, is bounded, and groups its lines."""

import itertools
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from embed import corpus
from embed.corpus import count_corpus, write_corpus
from pexeso.errors import EmbedderError, OutputError


def batches(pairs: list[tuple[int, str]], cuts: list[int]) -> list[pa.RecordBatch]:
    """Return (group, value) pairs as batches, cut at the given places."""
    bounds = [0, *sorted(cuts), len(pairs)]
    pieces = [pairs[start:stop] for start, stop in itertools.pairwise(bounds)]
    schema = pa.schema({"group": pa.int32(), "value": pa.string()})
    return [
        pa.record_batch(
            {"group": [group for group, _ in piece], "value": [value for _, value in piece]}, schema
        )
        for piece in pieces
    ]


def lake(n_groups: int, n_values: int) -> list[tuple[int, str]]:
    """Return groups whose values name their group: `g3v0 word`."""
    return [
        (group, f"g{group}v{value} word") for group in range(n_groups) for value in range(n_values)
    ]


@given(
    cuts=st.lists(st.integers(0, 60), max_size=4),
    order=st.permutations(range(60)),
    tokens=st.integers(1, 140),
)
def test_the_corpus_does_not_depend_on_how_its_values_arrive(
    tmp_path_factory, cuts, order, tokens
) -> None:
    folder = tmp_path_factory.mktemp("corpora")
    pairs = lake(5, 12)
    options = {"values_per_line": 4, "max_tokens": tokens}
    write_corpus(batches(pairs, []), folder / "one", **options)
    write_corpus(batches([pairs[place] for place in order], cuts), folder / "two", **options)
    assert (folder / "one").read_bytes() == (folder / "two").read_bytes()
    assert count_corpus(folder / "one").n_tokens == min(tokens // 2 * 2, 120)


def test_lines_hold_values_of_one_group_and_all_values_come_once(tmp_path: Path) -> None:
    pairs = lake(7, 10)
    n_lines = write_corpus(batches(pairs, [3, 40]), tmp_path / "corpus", values_per_line=4)
    lines = (tmp_path / "corpus").read_text().splitlines()
    assert n_lines == len(lines) == 7 * 3
    words = [word for line in lines for word in line.split() if word != "word"]
    assert sorted(words) == sorted(value.split()[0] for _, value in pairs)
    assert all(len({word[:2] for word in line.split() if word != "word"}) == 1 for line in lines)
    assert words != sorted(words), "lines must be shuffled"


def test_one_value_a_line_with_its_white_space_made_single(tmp_path: Path) -> None:
    pairs = [(0, " new\u00a0york  city "), (1, ""), (2, "   "), (3, "東京")]
    write_corpus(batches(pairs, []), tmp_path / "corpus", values_per_line=1)
    assert sorted((tmp_path / "corpus").read_text().splitlines()) == ["new york city", "東京"]


def test_nulls_and_no_values_give_an_empty_corpus(tmp_path: Path) -> None:
    null = pa.record_batch(
        {"group": pa.array([1], pa.int32()), "value": pa.array([None], pa.string())}
    )
    assert write_corpus([null], tmp_path / "corpus") == 0
    assert write_corpus([], tmp_path / "corpus") == 0
    assert (tmp_path / "corpus").read_bytes() == b""


def test_the_sample_is_even_and_changes_with_the_seed(tmp_path: Path) -> None:
    pairs = lake(20, 500)
    written = []
    for seed in (0, 1):
        write_corpus(
            batches(pairs, list(range(0, 10_000, 700))),
            tmp_path / "corpus",
            values_per_line=1,
            max_tokens=2_000,
            seed=seed,
        )
        written.append(sorted((tmp_path / "corpus").read_text().splitlines()))
    assert written[0] != written[1]
    assert [len(lines) for lines in written] == [1000, 1000]
    shares = np.bincount([int(line.split("v")[0][1:]) for line in written[0]], minlength=20)
    # Binomial with mean 50 and deviation 6.7.
    assert shares.min() > 22
    assert shares.max() < 78


def test_the_sample_in_memory_stays_within_its_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []
    original = corpus._Sample.add

    def watch(self, groups, values) -> None:
        original(self, groups, values)
        seen.append(sum(piece.num_rows for piece in self._pieces))

    monkeypatch.setattr(corpus._Sample, "add", watch)
    write_corpus(
        batches(lake(10, 400), list(range(0, 4000, 100))),
        tmp_path / "corpus",
        values_per_line=1,
        max_tokens=400,
    )
    assert max(seen) <= 400 * 1.25 / 2 + 100, "1.25 times 200 values of two words, and one batch"


def test_hand_counted_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "corpus").write_text("a b a\nc  a\nlast")
    for size in (1, 3, 1 << 20):
        monkeypatch.setattr(corpus, "_READ_BYTES", size)
        counts = count_corpus(tmp_path / "corpus")
        assert (counts.n_lines, counts.n_tokens, counts.n_words) == (2, 6, 4), (
            f"blocks of {size} bytes"
        )
        assert counts.words_by_count.tolist() == [0, 3, 0, 1]
    assert [counts.least_count(limit) for limit in (4, 3, 1)] == [1, 2, 2]
    assert counts.least_count(0) == 3


def test_wrong_paths_are_refused(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="cannot be written: No such file"):
        write_corpus([], tmp_path / "absent" / "corpus")
    with pytest.raises(EmbedderError, match="cannot be read: Is a directory"):
        count_corpus(tmp_path)
