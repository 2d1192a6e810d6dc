"""Token sets of benchmarks: what is read of tables, and what is drawn."""

import numpy as np
import pyarrow as pa
import pytest

from benchmarks.token_sets import (
    PRIVATE,
    folder_sets,
    lake_sets,
    power_law_sets,
    texts_of,
    token_pairs,
)
from pexeso.errors import InputError


def sets_of(lake):
    return [
        lake.tokens[begin:end]
        for begin, end in zip(lake.offsets[:-1], lake.offsets[1:], strict=True)
    ]


def test_columns_of_text_dates_and_numbers_are_sets(tmp_path):
    rows = [
        "city,year,price,same,gap",
        *(f"c{i % 4},200{i}-01-01,{i}.0,x,{i if i < 4 else ''}" for i in range(6)),
    ]
    (tmp_path / "a.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    (tmp_path / "short.csv").write_text("city\nOslo\nRome\n", encoding="utf-8")
    lake = folder_sets(tmp_path)
    assert lake.names == ["a.csv:city", "a.csv:year", "a.csv:price"]
    assert lake.offsets.tolist() == [0, 4, 10, 16]
    assert lake.tokens[:4].to_pylist() == ["c0", "c1", "c2", "c3"]
    assert lake.tokens[10:].to_pylist() == ["0", "1", "2", "3", "4", "5"]


def test_a_real_lake_has_the_sets_that_it_has(shared_lakes):
    lake = lake_sets("pudding")
    assert len(lake.names) == len(lake.offsets) - 1 > 300
    assert (np.diff(lake.offsets) >= 1).all()
    assert lake.offsets[-1] == len(lake.tokens) == len(lake.set_ids)


def test_a_drawn_lake_follows_its_laws():
    lake = power_law_sets(5000, 30, seed=4)
    sizes = np.diff(lake.offsets)
    assert len(lake) == 5000
    assert 1 <= sizes.min() < sizes.max() <= 3000
    # Shape 0.9: of the sizes over 20, those over 80 are 4**-0.9.
    assert (sizes > 80).sum() / (sizes > 20).sum() == pytest.approx(4**-0.9, rel=0.15)
    private = lake.tokens >= 10**9
    assert len(np.unique(lake.tokens[private])) == private.sum()
    assert private.mean() == pytest.approx(PRIVATE, abs=0.05)
    assert all((np.diff(one) > 0).all() for one in sets_of(lake))
    counts = np.sort(np.bincount(lake.tokens[~private]))[::-1]
    assert 0.05 < counts[0] / 5000 < 0.6
    assert counts[1000] < counts[0] / 20


def test_sets_share_prefixes_and_so_do_queries():
    lake = power_law_sets(3000, 40, seed=5)
    sets = sets_of(lake)
    best = np.array(
        [
            max(len(np.intersect1d(query, one)) for one in sets) / len(query)
            for query in lake.queries[:20]
        ]
    )
    assert (best > 0.6).sum() >= 3
    assert all(10 <= len(query) <= 1000 and (query < 10**9).all() for query in lake.queries)


def test_a_draw_is_its_seed_and_goes_on_over_blocks():
    one, other = (
        power_law_sets(70_000, 3, seed=6, largest=20),
        power_law_sets(70_000, 3, seed=6, largest=20),
    )
    assert np.array_equal(one.tokens, other.tokens)
    assert len(one) == 70_000
    assert (np.diff(one.offsets) >= 1).all()
    assert len(np.unique(one.tokens[one.tokens >= 10**9])) == (one.tokens >= 10**9).sum()
    assert not np.array_equal(one.tokens, power_law_sets(70_000, 3, seed=7, largest=20).tokens)


def test_tokens_have_texts_and_too_many_queries_are_refused():
    lake = power_law_sets(100, 2)
    assert texts_of(np.array([5, 10**9], np.int32)).to_pylist() == ["5", "1000000000"]
    assert len(lake.texts) == len(lake.set_ids) == len(lake.tokens)
    with pytest.raises(InputError, match="ask for fewer"):
        power_law_sets(100, 50, sizes=(900, 1000))


def test_pairs_are_distinct_within_a_column():
    ids, texts = token_pairs(
        [(3, pa.array(["a", "a ", None])), (1, pa.array([1.0, 1])), (2, pa.array([], pa.string()))]
    )
    assert ids.tolist() == [3, 1]
    assert texts.to_pylist() == ["a", "1"]
    assert len(token_pairs([])[1]) == 0
