"""Token sets of benchmarks: what is read of tables, and what is drawn."""

import numpy as np
import pyarrow as pa

from benchmarks.token_sets import folder_sets, power_law_lake, token_pairs, token_sets


def test_columns_of_text_dates_and_numbers_are_sets(tmp_path):
    rows = [
        "city,year,price,same,gap",
        *(f"c{i % 4},200{i}-01-01,{i}.0,x,{i if i < 4 else ''}" for i in range(6)),
    ]
    (tmp_path / "a.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    (tmp_path / "short.csv").write_text("city\nOslo\nRome\n", encoding="utf-8")
    lake = folder_sets(tmp_path)
    assert (lake.n_sets, lake.offsets.tolist()) == (3, [0, 4, 10, 16])
    assert lake.tokens[:4].to_pylist() == ["c0", "c1", "c2", "c3"]
    assert lake.tokens[10:].to_pylist() == ["0", "1", "2", "3", "4", "5"]


def test_a_real_lake_has_the_sets_that_it_has(shared_lakes):
    lake = token_sets("pudding")
    assert lake.n_sets > 300
    assert (np.diff(lake.offsets) >= 1).all()
    assert lake.offsets[-1] == len(lake.tokens) == len(lake.set_ids)


def test_pairs_are_distinct_within_a_column():
    ids, texts = token_pairs(
        [(3, pa.array(["a", "a ", None])), (1, pa.array([1.0, 1])), (2, pa.array([], pa.string()))]
    )
    assert ids.tolist() == [3, 1]
    assert texts.to_pylist() == ["a", "1"]
    assert len(token_pairs([])[1]) == 0


def test_a_drawn_lake_has_the_sizes_and_the_shared_parts_it_says():
    offsets, tokens = power_law_lake(3000, largest=500, seed=1)
    sizes = np.diff(offsets)
    assert len(sizes) == 3000
    assert sizes.min() >= 1
    assert sizes.max() <= 500
    sets = [set(part.tolist()) for part in np.split(tokens, offsets[1:-1])]
    assert [len(one) for one in sets] == sizes.tolist()
    _, counts = np.unique(tokens, return_counts=True)
    # Tokens that are in one set alone, and a few that are in a large part of all.
    assert (counts == 1).mean() > 0.5
    assert counts.max() > 300
    again = power_law_lake(3000, largest=500, seed=1)
    assert (again[1] == tokens).all()
    assert token_sets("200", seed=1).offsets.tolist() == power_law_lake(200, seed=1)[0].tolist()
