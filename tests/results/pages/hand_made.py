"""Results made by hand, with evidence that needs no index."""

from __future__ import annotations

from collections import Counter
from html.parser import HTMLParser

import numpy as np

from pexeso.engine.stats import SearchStats
from pexeso.options import SearchOptions
from pexeso.results.match_kinds import KINDS, KindCounts
from pexeso.results.matches import Explanation, Match, Pair, SearchResult, Unmatched
from pexeso.semantic.row_preview import Half, JoinedRow, SideBySide
from pexeso.semantic.word_contributions import ContributingWord, WordContributions

HOSTILE = '<script>window.hit = 1</script><img src=x onerror="window.hit = 1">\'&amp;</td></style>'


class Reader(HTMLParser):
    """Collects tags, attributes and texts, and checks that tags are closed in order."""

    VOID = ("input", "meta")

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags, self.attributes, self.texts, self._open = [], [], [], []
        self.feed(page)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag, attrs):
        self.handle_startendtag(tag, attrs)
        if tag not in self.VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        if self._open[-1:] != ["style"]:
            self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())


class Details:
    """Stands for `pexeso.joins.match_details.MatchDetails`: the same pairs for every column."""

    def __init__(self, pairs: list[Pair], word: str, n_unmatched: int) -> None:
        self._pairs, self._word, self._n_unmatched = pairs, word, n_unmatched
        self.wanted: list[int] = []

    def find(self, places):
        self.wanted += places

    def table(self, place):
        return self._pairs

    def lake_values(self, place):
        return 40, len({pair.value for pair in self._pairs})

    def pairs(self, place, limit=None):
        return self._pairs[:limit]

    def weakest(self, place, limit):
        return sorted(self._pairs, key=lambda pair: -pair.distance)[:limit]

    def curve(self, place):
        distances = np.array([pair.distance for pair in self._pairs])
        return distances, np.arange(1, len(distances) + 1)

    def kinds(self, place):
        counts = Counter({kind: 0 for kind in KINDS}) + Counter(pair.kind for pair in self._pairs)
        return KindCounts(*({kind: counts[kind] for kind in KINDS} for _ in range(2)))

    def word_contributions(self, place, n):
        words = (
            ContributingWord(self._word, self._word, 0.5, 2),
            ContributingWord(None, self._word, 0.25, 1),
        )
        return WordContributions(words[:n], 9, 2, 3)

    def forms(self, place, limit):
        return {self._word: self._word}

    def unmatched(self, place, limit):
        every = [Unmatched(self._word, reason) for reason in ("unknown", "empty")]
        every += [Unmatched(self._word, "too far", self._word, 0.5)] * (self._n_unmatched - 2)
        return tuple(every[:limit])

    def n_unmatched(self, place):
        return self._n_unmatched

    def two_tables(self):
        return self

    def show(self, table, column, pairs, *, n_rows, n_columns):
        names = tuple(f"{self._word} {place}" for place in range(n_columns))
        half = Half(names, n_columns + 3, f"A note about {self._word}")
        cells = (self._word, None, *("some value",) * (n_columns - 2))
        rows = tuple(JoinedRow(cells, cells, pair) for pair in pairs[:n_rows])
        return SideBySide(half, half, rows, len(pairs))


def result(
    text: str = "Oslo",
    *,
    n_found: int = 3,
    n_pairs: int = 30,
    n_unmatched: int = 5,
    n_similar: int | None = None,
    **options,
) -> SearchResult:
    """Return a search result in which every text contains the given one.

    With `n_similar` the result is re-ranked, and that number of columns have a similarity.
    """
    pairs = [
        Pair(f"{text} {place}", f"{place} {text}", place / 1000, text, KINDS[place % len(KINDS)])
        for place in range(n_pairs)
    ]
    details, total = Details(pairs, text, n_unmatched), n_pairs + n_unmatched
    matches = tuple(
        Match(
            f"{text}/{place}.csv",
            text,
            n_pairs / total,
            n_pairs,
            total,
            place,
            details,
            place,
            0.875 if place < (n_similar or 0) else None,
        )
        for place in range(n_found)
    )
    query = {
        "file": f"{text}.csv",
        "column": text,
        "rows": total,
        "distinct": total,
        "empty": 1,
        "unknown": 1,
    }
    return SearchResult(
        query, SearchOptions(**options), matches, SearchStats(), n_similar is not None
    )


def explanation(text: str = "Oslo", **sizes: int) -> Explanation:
    """Make an explanation of the same."""
    answer = result(text, n_found=1, **sizes)
    return Explanation(answer.query, answer.options, answer.matches[0])


def require_only_texts(page, notebook):
    """Require that hostile names are texts of a page, and of its short form in a notebook."""
    reader = Reader(page)
    assert not {"script", "img", "link", "iframe"} & set(reader.tags)
    assert [name for name, _ in reader.attributes if name.startswith("on")] == []
    assert "<script>window.hit = 1</script>" in reader.text
    assert "default-src 'none'" in page
    assert not {"script", "img"} & set(Reader(notebook).tags)
    assert "<script>window.hit = 1</script>" in Reader(notebook).text
