"""Sets of examples that programs are learned from: likely pairs of rows, drawn a few at a time.

Source: E. Zhu, Search and Join Algorithms for Tables in Data Lakes, PhD thesis, University of
Toronto, 2019, sections 4.2 and 4.3 (``LearnTransform``).
"""

from __future__ import annotations

import random
import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.transform.learning.examples_to_program import Row
from pexeso.transform.learning.least_pieces import PieceStart, least_pieces, piece_starts
from pexeso.transform.learning.options import FindingOptions
from pexeso.transform.learning.row_pairs import RowPairs, find_row_pairs
from pexeso.transform.learning.sampling import SampleSizes, sample_sizes, sample_texts
from pexeso.transform.learning.suffixes import SuffixesOfColumns, sorted_suffixes
from pexeso.transform.programs.program import lower
from pexeso.transform.texts import MAX_LEARNED, TextColumn, TextTable

MAX_MEDIAN_LENGTH = 200
"""Characters of the median value of a column above which it is free text, and not a key."""

_CHECKED = 100
"""Likely pairs of rows by which a program is checked."""

_WHOLE = 20_000
"""Values of a column up to which all are looked at, more than the bounds on samples ask for."""

_MAX_PAIRS = 2000
"""Of all columns together whose keys are taken to pieces, but `n_pairs` for two columns each."""

_MAX_PAIRS_BY_STARTS = 20_000
"""Of all columns together whose keys are told apart by where their pieces begin, but `n_pairs` for
two columns each."""

_MAX_STARTS, _SETS_OF_STARTS = 6, 2
"""Of two columns, and sets of either size that are drawn for each."""

_MAX_ROWS_BY_WORDS = 400
_MAX_KEYS_BY_WORDS = 2000
_MAX_KEYS_OF_WORD = 200
"""Of rows and keys that are compared by the words they share, and keys that hold such a word."""


@dataclass(frozen=True, slots=True)
class ExampleGroup:
    """Pairs of rows of two columns."""

    source: int
    target: int
    pairs: RowPairs
    limit: int

    @property
    def rank(self) -> tuple[float, float]:
        """Mean score and mean length, the best first."""
        return (
            -float(np.mean(1 / self.pairs.holders)),
            -float(np.mean(self.pairs.lengths)),
        )


Pairs = tuple[list[Row], list[str]]


def example_sets(
    source: TextTable, targets: Sequence[TextColumn], min_length: int, options: FindingOptions
) -> Iterator[tuple[ExampleGroup, Pairs, Pairs]]:
    """Yield sets of examples of the best groups first, with more pairs to check a program by.

    Of a group first those whose keys consist of few pieces of the rows.
    """
    groups, left, right = _groups(source, targets, min_length, options)
    max_pairs = max(options.n_pairs, _MAX_PAIRS // max(1, len(groups)))
    n_sets = max(options.n_sets, options.max_sets // max(1, len(groups)))
    for group in sorted(groups, key=lambda group: (*group.rank, group.source, group.target)):
        column = source.columns[group.source]
        group = replace(group, pairs=_some(group, max_pairs, options))
        values = np.array(left[group.source], np.int64)[group.pairs.sources]
        rows = source.rows(column.first_rows[values])
        keys = [right[group.target][number] for number in group.pairs.targets.tolist()]
        order = _fewest_pieces_first(group.pairs, rows, keys, options.seed)[: group.limit]
        group = replace(group, pairs=_at(group.pairs, order))
        yield from _sets_of(
            group, [rows[at] for at in order], [keys[at] for at in order], n_sets, options
        )


def example_sets_by_starts(
    source: TextTable, targets: Sequence[TextColumn], min_length: int, options: FindingOptions
) -> Iterator[tuple[ExampleGroup, Pairs, Pairs]]:
    """Yield sets of pairs of samples whose keys take their pieces from the same places of the rows.

    Where no piece is rare, such as the years of a million dates, few of the likely pairs join: of
    two dates of one year one in 365. Those that do agree in where the pieces of their keys begin.
    Of columns that are looked at as a whole there are none.
    """
    if not _is_sampled(source, targets, options):
        return
    groups, left, right = _groups(source, targets, min_length, options)
    max_pairs = max(options.n_pairs, _MAX_PAIRS_BY_STARTS // max(1, len(groups)))
    for group in sorted(groups, key=lambda group: (*group.rank, group.source, group.target)):
        pairs = _at(group.pairs, slice(max_pairs))
        values = np.array(left[group.source], np.int64)[pairs.sources]
        rows = source.rows(source.columns[group.source].first_rows[values])
        keys = [right[group.target][number] for number in pairs.targets.tolist()]
        alike: dict[tuple[PieceStart, ...], list[int]] = defaultdict(list)
        for position, (row, key) in enumerate(zip(rows, keys, strict=True)):
            alike[piece_starts(row, key)].append(position)
        enough = [starts for starts in alike if len(alike[starts]) >= 2 * options.n_examples]
        enough.sort(key=lambda starts: (len(starts), -len(alike[starts]), starts))
        for starts in enough[:_MAX_STARTS]:
            order = alike[starts]
            yield from _sets_of(
                replace(group, pairs=_at(pairs, order)),
                [rows[position] for position in order],
                [keys[position] for position in order],
                _SETS_OF_STARTS,
                options,
            )


def example_sets_by_words(
    source: TextTable, targets: Sequence[TextColumn], options: FindingOptions
) -> Iterator[tuple[ExampleGroup, Pairs, Pairs]]:
    """Yield sets of rows and the one key that shares most words with each.

    No hour, minute or second tells which of many times a row belongs to, all together do; and so it
    is with the parts of dates. At most 400 rows and 2,000 keys are compared, by words that at most
    200 of the keys hold.
    """
    texts = _rows_as_texts(source)
    short = np.flatnonzero(pc.utf8_length(texts).to_numpy(zero_copy_only=False) <= MAX_LEARNED)
    some_texts = texts.take(pa.array(short))
    rows = short[sample_texts(some_texts, _MAX_ROWS_BY_WORDS, 2 * options.seed)]
    cells = source.rows(rows)
    for number, column in enumerate(targets):
        some = _looked_at(column, _MAX_KEYS_BY_WORDS, 2 * options.seed + 1)
        keys = column.values.take(pa.array(some, pa.int64())).to_pylist()
        holding: dict[str, list[int]] = defaultdict(list)
        for position, key in enumerate(keys):
            for word in set(_words(key)):
                holding[word].append(position)
        pairs = []
        for row, texts in enumerate(cells):
            words = {word for text in texts if text for word in _words(text)}
            shared = Counter(
                position
                for word in sorted(words)
                if len(holding.get(word, ())) <= _MAX_KEYS_OF_WORD
                for position in holding.get(word, ())
            )
            best = shared.most_common(2)
            if best and best[0][1] > 1 and (len(best) == 1 or best[1][1] < best[0][1]):
                pairs.append((row, best[0][0], best[0][1]))
        pairs.sort(key=lambda pair: (-pair[2], pair[0]))
        if pairs:
            at = np.array(pairs, np.int32)
            row_pairs = RowPairs(at[:, 0], at[:, 1], np.ones(len(at), np.int32), at[:, 2])
            group = ExampleGroup(0, number, row_pairs, len(row_pairs))
            likely = [cells[row] for row, _, _ in pairs], [keys[key] for _, key, _ in pairs]
            yield from _sets_of(group, *likely, options.n_sets, options)


def _rows_as_texts(table: TextTable) -> pa.Array:
    blank = pa.scalar("\0", pa.large_string())
    cells = [pc.fill_null(column.cells, "") for column in table.columns]
    return pc.binary_join_element_wise(*cells, blank)


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", lower(text))


def _sets_of(
    group: ExampleGroup,
    rows: list[Row],
    keys: list[str],
    n_sets: int,
    options: FindingOptions,
) -> Iterator[tuple[ExampleGroup, Pairs, Pairs]]:
    checks = rows[:_CHECKED], keys[:_CHECKED]
    drawn = _drawn_sets(group, [_form(key) for key in keys], n_sets, options)
    sets = [([rows[at] for at in one], [keys[at] for at in one]) for one in drawn]
    n_pieces = [max(least_pieces(*examples)) for examples in sets]
    for number in np.argsort(n_pieces, kind="stable").tolist():
        if n_pieces[number] <= options.max_pieces:
            yield group, sets[number], checks


def _drawn_sets(
    group: ExampleGroup, forms: Sequence[str], n_sets: int, options: FindingOptions
) -> Iterator[tuple[int, ...]]:
    """Yield sets of pairs without a value twice, of the best and then of as many as allowed.

    Every other set is of keys that have one form, as few formats of a column are alike by chance.
    """
    drawn = random.Random(f"{options.seed} {group.source} {group.target}")
    alike: dict[str, list[int]] = defaultdict(list)
    for position, form in enumerate(forms):
        alike[form].append(position)
    seen: set[tuple[int, ...]] = set()
    for size in (options.n_examples, 2):
        for number in range(n_sets):
            # The first sets are of the most telling pairs, which a sample has few of.
            among: Sequence[int] = range(min(len(group.pairs), 2 * size + 4 * number))
            if number % 2:
                same = alike[forms[drawn.choice(among)]]
                among = same[: bisect_left(same, len(among))]
            # More than needed, since some share a value.
            positions = drawn.sample(among, min(len(among), 4 * size))
            chosen = _chosen(group.pairs, positions, size)
            if len(chosen) == size and chosen not in seen:
                seen.add(chosen)
                yield chosen


def _form(text: str) -> str:
    """Return a text with one letter for each run of letters, and one digit for one of digits."""
    return re.sub(r"[^\W\d_]+", "a", re.sub(r"\d+", "0", text))


def _chosen(pairs: RowPairs, positions: list[int], size: int) -> tuple[int, ...]:
    chosen: list[int] = []
    sources: set[int] = set()
    targets: set[int] = set()
    for position in positions:
        source, target = int(pairs.sources[position]), int(pairs.targets[position])
        if source not in sources and target not in targets:
            chosen.append(position)
            sources.add(source)
            targets.add(target)
            if len(chosen) == size:
                break
    return tuple(sorted(chosen))


def _groups(
    source: TextTable, targets: Sequence[TextColumn], min_length: int, options: FindingOptions
) -> tuple[list[ExampleGroup], list[list[int]], list[list[str]]]:
    """Find the most telling pairs of each two columns.

    Returns
    -------
    groups : list of ExampleGroup
        Whose numbers are places in the lists that follow.
    left : list of lists of int
        For each source column, numbers of the values that were looked at.
    right : list of lists of str
        For each target column, the values that were looked at.
    """
    sizes = _sizes(source, targets, options)
    limit = options.n_pairs
    if _is_sampled(source, targets, options):
        limit = max(2 * options.n_examples, min(40, int(sizes.expected_pairs)))
    left = [_looked_at(column, sizes.n_source, 2 * options.seed) for column in source.columns]
    numbers = [_looked_at(column, sizes.n_target, 2 * options.seed + 1) for column in targets]
    columns = [*source.columns, *targets]
    texts = [
        column.values.take(pa.array(chosen, pa.int64())).to_pylist()
        for column, chosen in zip(columns, [*left, *numbers], strict=True)
    ]
    at = np.concatenate([[0], np.cumsum([len(values) for values in texts])])
    order = sorted_suffixes([lower(text) for values in texts for text in values])
    suffixes = SuffixesOfColumns(order, at)
    groups = []
    for one in range(len(source.columns)):
        for number in range(len(targets)):
            prefixes, sides = suffixes.shared_prefixes(one, len(source.columns) + number)
            pairs = find_row_pairs(prefixes, sides, min_length=min_length)
            if len(pairs):
                pairs = replace(pairs, targets=pairs.targets - len(left[one]))
                groups.append(ExampleGroup(one, number, pairs, limit))
    return groups, left, texts[len(source.columns) :]


def _sizes(
    source: TextTable, targets: Sequence[TextColumn], options: FindingOptions
) -> SampleSizes:
    """Return how many values of a source and of a target column are looked at."""
    n_sources, n_targets = _most_values(source.columns), _most_values(targets)
    sizes = sample_sizes(n_sources, n_targets, participation=options.participation)
    return replace(
        sizes,
        n_source=max(sizes.n_source, min(n_sources, _WHOLE)),
        n_target=max(sizes.n_target, min(n_targets, _WHOLE)),
    )


def _is_sampled(source: TextTable, targets: Sequence[TextColumn], options: FindingOptions) -> bool:
    sizes = _sizes(source, targets, options)
    whole = sizes.n_source >= _most_values(source.columns)
    return not (whole and sizes.n_target >= _most_values(targets))


def _most_values(columns: Sequence[TextColumn]) -> int:
    return max((len(column.values) for column in columns), default=0)


def _at(pairs: RowPairs, positions: Any) -> RowPairs:
    return RowPairs(
        pairs.sources[positions],
        pairs.targets[positions],
        pairs.holders[positions],
        pairs.lengths[positions],
    )


def _some(group: ExampleGroup, max_pairs: int, options: FindingOptions) -> RowPairs:
    """Return the pairs that are looked at more closely, those of fewest holders.

    Of whole columns any of these, since the longest pieces belong to keys of one length. In samples
    most values lack their partner, and only the longest pieces tell.
    """
    pairs = group.pairs
    if group.limit < options.n_pairs or len(pairs) <= max_pairs:
        return _at(pairs, slice(max_pairs))
    order = np.array(random.Random(options.seed).sample(range(len(pairs)), len(pairs)))
    chosen = order[np.argsort(pairs.holders[order], kind="stable")][:max_pairs]
    return _at(pairs, np.sort(chosen))


def _fewest_pieces_first(
    pairs: RowPairs, rows: Sequence[Row], keys: Sequence[str], seed: int
) -> list[int]:
    """Order pairs of as few holders by how long the pieces are that their keys consist of.

    A rare piece alone tells less: with many rows some share a long one by chance. Pairs whose
    pieces are about as long are drawn, since keys of one length suit programs of fixed lengths.
    """
    lengths = [
        (len(key) // (1 + least_pieces([row], [key], constants=False)[0])).bit_length()
        for row, key in zip(rows, keys, strict=True)
    ]
    holders = pairs.holders.tolist()
    order = list(range(len(keys)))
    random.Random(seed).shuffle(order)
    return sorted(order, key=lambda position: (holders[position], -lengths[position]))


def _looked_at(column: TextColumn, size: int, seed: int) -> list[int]:
    """Return numbers of values: of all that can be learned from, or of a sample."""
    lengths = pc.utf8_length(column.values).to_numpy(zero_copy_only=False)
    if not len(lengths) or np.median(lengths) > MAX_MEDIAN_LENGTH:
        return []
    usable = np.flatnonzero(lengths <= MAX_LEARNED)
    if len(usable) <= size:
        return usable.tolist()
    texts = column.values.take(pa.array(usable))
    return usable[sample_texts(texts, size, seed)].tolist()
