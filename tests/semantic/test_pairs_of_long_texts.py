"""Pairs of columns whose texts are more than offsets of 32 bits reach; the bound is small here."""

from pathlib import Path

import pytest

from pexeso import build_index

TITLES = [f"On the {word} of very long titles of reports" for word in ("use", "uses", "abuse")]


def explained(index) -> list:
    (match,) = index.search(TITLES * 3, max_distance=0.65, min_joinability=0.1)
    joined = match.join({"title": TITLES}, on="title")
    return [match.pairs(), match.kinds(), match.word_contributions(3), len(joined)]


def test_pairs_are_the_same_with_wide_offsets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = tmp_path / "lake"
    lake.mkdir()
    rows = [f"{title}.,{number}" for number, title in enumerate(TITLES * 2)]
    (lake / "a.csv").write_text("\n".join(["title,n", *rows]))
    aliases = tmp_path / "aliases.csv"
    aliases.write_text(f"alias,value\n{TITLES[0]},{TITLES[1]}\n")
    for options in ({}, {"aliases": aliases}):
        index = build_index(lake, tmp_path / "lake.pexeso", overwrite=bool(options), **options)
        plain = explained(index)
        assert len(plain[0]) >= 3
        with monkeypatch.context() as patched:
            patched.setattr("pexeso.store.io.wide_offsets.MAX_BYTES", 10)
            assert explained(index) == plain
