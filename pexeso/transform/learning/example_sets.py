"""Sets of examples that programs are learned from: likely pairs of rows, drawn a few at a time.

Source: E. Zhu, Search and Join Algorithms for Tables in Data Lakes, PhD thesis, University of
Toronto, 2019, sections 4.2 and 4.3 (``LearnTransform``). The suffix arrays of the two columns there
are one order of all suffixes here, by which a single pass finds, for each suffix of a source value,
its longest prefix that some target value holds (the best q of the source) and the numbers of values
on either side that hold it (n and m there).
"""

from __future__ import annotations

import random
import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, isqrt
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.engine.lists import offsets_of, ranges
from pexeso.runtime.compiled import compiled
from pexeso.transform.learning.examples_to_program import (
    PieceStart,
    Row,
    date_words,
    least_pieces,
    letters_held,
    letters_of,
    n_pieces,
    piece_starts,
)
from pexeso.transform.programs.conversions import lower
from pexeso.transform.texts import MAX_LEARNED, TextColumn, TextTable, sample_texts

loops = compiled("pexeso.transform.loops")

# Bound on the probability that chance explains what is joined.
MAX_LUCK = 1e-6

# Pairs of a set, from which a program is learned (b of the source).
N_EXAMPLES = 3

# The most telling pairs of two columns, of which examples are drawn (k). Where columns are sampled,
# no more than joining pairs are expected, and at most 40.
_N_PAIRS = 400

# Pieces of which the keys of a set consist at least (`least_pieces`), above which it is not learned
# from: no program of fewer operators writes them. Of 1,891 sets of the shared cases that a program
# was learned from, all had at most 5, and of 23,000 others a tenth.
_MAX_PIECES = 6


# Characters of a suffix that are compared; what follows orders by place.
MAX_PREFIX = 64


def sorted_suffixes(texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Sort suffixes of texts by `MAX_PREFIX` characters; return what each shares with the last."""
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    letters = np.frombuffer("".join(texts).encode("utf-32-le", "surrogatepass"), np.uint32)
    size = len(letters)
    if not size:
        return np.empty(0, np.int32), np.empty(0, np.int32)
    ends = np.repeat(np.cumsum(lengths), lengths)
    left = np.minimum(ends - np.arange(size), MAX_PREFIX)
    known, codes = np.unique(letters, return_inverse=True)
    codes = codes + 1  # 0 comes after the end
    width = len(known).bit_length()
    together = min(63 // width, MAX_PREFIX)
    keys = np.zeros(size, np.int64)
    for step in range(min(together, size)):
        keys <<= width
        keys[: size - step] |= np.where(left[: size - step] > step, codes[step:], 0)
    order, ranks = _ranked(keys)
    while together < MAX_PREFIX and ranks[order[-1]] < size - 1:
        following = np.zeros(size, np.int64)
        following[: max(size - together, 0)] = ranks[together:] + 1
        following[left <= together] = 0
        order, ranks = _ranked(ranks * (size + 1) + following)
        together *= 2
    values = np.repeat(np.arange(len(texts), dtype=np.int32), lengths)
    return values[order], loops.shared_with_last(codes, left, order)


def _ranked(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    order = np.argsort(keys, kind="stable")
    ranks = np.empty(len(keys), np.int64)
    inside = keys[order]
    ranks[order] = np.cumsum(np.concatenate([[0], inside[1:] != inside[:-1]]))
    return order, ranks


@dataclass(frozen=True, slots=True)
class SharedPrefixes:
    """The longest prefix of each source suffix that a target value holds."""

    # int32 (p,): numbers of the texts that the suffixes belong to, in the order of the suffixes
    sources: np.ndarray
    lengths: np.ndarray  # int32 (p,): characters of the prefix, at least 1
    # int32 (p,): source texts and target texts that hold it
    n_sources: np.ndarray
    n_targets: np.ndarray
    # int64 (p,): range of places in `members`, both inside, of all suffixes that begin with it
    first: np.ndarray
    last: np.ndarray
    members: np.ndarray  # int32 (k,): texts of the suffixes of both sides, in order


class ColumnSuffixes:
    """The suffixes of the texts of columns; those of two are found without the others."""

    def __init__(self, columns: Sequence[Sequence[str]]) -> None:
        sizes = list(map(len, columns))
        self._starts = offsets_of(np.array(sizes, np.int64))
        self._values, self._shared = sorted_suffixes([text for texts in columns for text in texts])
        owners = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)[self._values]
        ends = np.cumsum(np.bincount(owners, minlength=len(sizes)))
        self._positions = np.split(np.argsort(owners, kind="stable"), ends[:-1])
        steps = np.arange(0, len(self._shared), loops.STEP)
        self._minima = np.minimum.reduceat(self._shared, steps) if len(steps) else self._shared

    def shared_prefixes(self, source: int, target: int) -> tuple[SharedPrefixes, np.ndarray]:
        """Find the longest prefix of source suffixes (side 1) that a target (side 2) holds."""
        starts, sizes = self._starts[[source, target]], np.diff(self._starts)[[source, target]]
        sides = np.repeat(np.array([1, 2], np.int8), sizes)
        both = (self._positions[source], self._positions[target])
        first = np.repeat(starts - np.array([0, sizes[0]]), list(map(len, both)))
        positions = np.concatenate(both)
        order = np.argsort(positions, kind="stable")  # two ascending runs
        members = (self._values[positions] - first)[order].astype(np.int32)
        shared = loops.least_between(self._shared, self._minima, positions[order])
        is_source = sides[members] == 1
        sources = offsets_of(is_source)
        node, length, first, last, twice = loops.holding_nodes(members, shared, sides, sources)
        chosen = np.flatnonzero(is_source & (length[node] > 0))
        node = node[chosen]
        first, last = first[node], last[node]
        n_sources = sources[last + 1] - sources[first]
        prefixes = SharedPrefixes(
            members[chosen],
            length[node],
            n_sources - twice[0, node],
            last + 1 - first - n_sources - twice[1, node],
            first,
            last,
            members,
        )
        return prefixes, sides


@dataclass(frozen=True, slots=True)
class FindingOptions:
    """How a program is looked for, and what it must join."""

    n_sets: int = 16  # Sets of examples that are drawn for two columns at least (r)
    # For all columns together (L), unless that is less than one for two columns each
    max_sets: int = 256
    # What learning may take: see `pexeso.transform.learning.examples_to_program.Effort`
    max_effort: int = 50_000_000
    min_keys: int = 3  # That a program must hit, inclusive
    # Of the smaller side's distinct values that it must hit, inclusive, 0 to 1
    min_share: float = 0.15
    # Bound on the probability that letters drawn at random hit as many keys, inclusive: see
    # `pexeso.transform.learning.chance`
    max_luck: float = MAX_LUCK
    seed: int = 0  # Of samples and sets
    # Whether the columns were named; of others the days of one year are those of another
    named: bool = True


# Pairs that samples must have (kappa / (1 - delta) of the source, with kappa 4 and delta .8).
_MIN_PAIRS = 20


def sample_sizes(
    n_source: int, n_target: int, *, participation: float = 0.01
) -> tuple[int, int, float]:
    """Return the sizes of the smallest samples in which enough rows have their partner.

    With these sizes, or with whole tables where these are too small, at least 20 pairs are
    expected, and at most 4 come with a probability of at most .0017. The sizes are the smallest
    whole numbers in sum that promise it, found without rounding; the pairs expected come third.
    """
    share = Fraction(str(float(participation)))
    # The number of pairs is the product of the two sizes times share / n_source.
    product = _MIN_PAIRS * n_source / share
    target = min(isqrt(ceil(product) - 1) + 1, n_target) if product else 0
    source = min(ceil(product / target), n_source) if target else 0
    target = min(ceil(product / source), n_target) if source else 0
    pairs = Fraction(source * target, n_source) * share if n_source else Fraction(0)
    return source, target, float(pairs)


# Characters of a shared piece (the q of the source), the next where nothing is found with one.
MIN_LENGTHS = (3, 2, 1)

# Pairs of values that share a piece, above which the piece says nothing (a score below .01).
MAX_HOLDERS = 100

# Pairs that are made of the rarest and longest pieces first; more are left out, ties kept.
MAX_ENTRIES = 200_000


def find_row_pairs(
    prefixes: SharedPrefixes, sides: np.ndarray, *, min_length: int = MIN_LENGTHS[0]
) -> np.recarray:
    """Pair values by the rarest pieces of text that they share, the most telling pairs first.

    Of each source value the pieces count that the fewest pairs of values share. All pairs of the
    holders of such a piece are found. They are sorted by the number of holders, n times m of the
    source, then by the length of the piece, the longest first, then by the numbers of the texts.
    Where several values hold the rarest pieces, pairs that share more of them come before those
    with longer ones.
    """
    holders = prefixes.n_sources.astype(np.int64) * prefixes.n_targets
    selected = np.flatnonzero((prefixes.lengths >= min_length) & (holders <= MAX_HOLDERS))
    fewest = np.full(len(sides), MAX_HOLDERS + 1, np.int64)
    np.minimum.at(fewest, prefixes.sources[selected], holders[selected])
    selected = selected[holders[selected] == fewest[prefixes.sources[selected]]]
    # One suffix for each piece: several begin with it, of one value or of many.
    pieces = np.stack([prefixes.first[selected], prefixes.lengths[selected]], axis=1)
    selected = selected[np.unique(pieces, axis=0, return_index=True)[1]]
    selected = _most_telling(selected, holders, prefixes.lengths)

    first, last = prefixes.first[selected], prefixes.last[selected]
    inside = prefixes.members[ranges(first, last + 1 - first)]
    piece = np.repeat(np.arange(len(selected)), last + 1 - first)
    is_source = sides[inside] == 1
    sources, source_at = _distinct_by_piece(inside[is_source], piece[is_source], len(selected))
    targets, target_at = _distinct_by_piece(inside[~is_source], piece[~is_source], len(selected))
    n_sources, n_targets = np.diff(source_at), np.diff(target_at)
    count = n_sources * n_targets
    piece = np.repeat(np.arange(len(selected)), count)
    position = np.arange(len(piece)) - np.repeat(np.cumsum(count) - count, count)
    left = sources[source_at[piece] + position // n_targets[piece]]
    right = targets[target_at[piece] + position % n_targets[piece]]
    return _sorted_once(left, right, holders[selected][piece], prefixes.lengths[selected][piece])


def _most_telling(selected: np.ndarray, holders: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    rank = holders[selected] * (int(lengths.max(initial=0)) + 1) - lengths[selected]
    order = np.argsort(rank, kind="stable")
    entries = np.cumsum(holders[selected][order])
    if not len(order) or entries[-1] <= MAX_ENTRIES:
        return selected
    worst = rank[order[np.searchsorted(entries, MAX_ENTRIES)]]
    return selected[rank <= worst]


def _distinct_by_piece(
    texts: np.ndarray, pieces: np.ndarray, n_pieces: int
) -> tuple[np.ndarray, np.ndarray]:
    both = np.unique(np.stack([pieces, texts], axis=1), axis=0)
    return both[:, 1], np.searchsorted(both[:, 0], np.arange(n_pieces + 1))


_PAIR_FIELDS = "sources,targets,holders,lengths"


def _sorted_once(
    sources: np.ndarray, targets: np.ndarray, holders: np.ndarray, lengths: np.ndarray
) -> np.recarray:
    order = np.lexsort((-lengths.astype(np.int64), holders, targets, sources))
    sources, targets, holders = sources[order], targets[order], holders[order]
    new = np.ones(len(order), bool)
    new[1:] = (sources[1:] != sources[:-1]) | (targets[1:] != targets[:-1])
    first = np.flatnonzero(new)
    pieces = np.diff(np.append(first, len(order)))
    sources, targets, holders = sources[first], targets[first], holders[first]
    lengths = lengths[order][first].astype(np.int64)
    # A piece that is unique means more the longer it is, however many there are.
    more = np.where(holders > 1, pieces, 0)
    order = np.lexsort((targets, sources, -lengths, -more, holders))
    columns = [array[order].astype(np.int32) for array in (sources, targets, holders, lengths)]
    return np.rec.fromarrays(columns, names=_PAIR_FIELDS)


# Characters of the median value of a column above which it is free text, and not a key.
MAX_MEDIAN_LENGTH = 200

# Likely pairs of rows by which a program is checked.
_CHECKED = 100

# Values of a column up to which all are looked at, more than the bounds on samples ask for.
_WHOLE = 20_000

# Pairs of all columns whose keys are taken to pieces, but `_N_PAIRS` for two columns each.
_MAX_PAIRS = 2000

# Pairs of all columns whose keys are distinguished by where their pieces begin, but `_N_PAIRS`
# for two columns each.
_MAX_PAIRS_BY_STARTS = 20_000

# Groups of such pairs of two columns, and sets of either size that are drawn for each.
_MAX_STARTS, _SETS_OF_STARTS = 6, 2

# Rows and keys that are compared by the words they share, and keys that hold such a word.
_MAX_ROWS_BY_WORDS = 400
_MAX_KEYS_BY_WORDS = 2000
_MAX_KEYS_OF_WORD = 200

# Pairs of a set of these, which are surer than others.
_SIZES_BY_WORDS = (6, N_EXAMPLES)


@dataclass(frozen=True, slots=True)
class ExampleGroup:
    """Likely pairs of the rows of two columns, and the values there that were looked at."""

    source: int
    target: int
    pairs: np.recarray
    values: np.ndarray
    keys: list[str]

    @property
    def rank(self) -> tuple[float, float, int, int]:
        score, length = np.mean(1 / self.pairs.holders), np.mean(self.pairs.lengths)
        return -float(score), -float(length), self.source, self.target

    def take(self, positions: Any) -> ExampleGroup:
        return replace(self, pairs=self.pairs[positions])

    def rows_and_keys(self, source: TextTable) -> Pairs:
        values = self.values[self.pairs.sources]
        rows = source.rows(source.columns[self.source].first_rows[values])
        return rows, [self.keys[number] for number in self.pairs.targets.tolist()]


Pairs = tuple[list[Row], list[str]]


def example_sets(
    source: TextTable, targets: Sequence[TextColumn], min_length: int, options: FindingOptions
) -> Iterator[tuple[ExampleGroup, Pairs, Pairs]]:
    """Yield sets of examples of the best groups first, with more pairs to check a program by."""
    groups, limit = _groups(source, targets, min_length, options)
    max_pairs = max(_N_PAIRS, _MAX_PAIRS // max(1, len(groups)))
    n_sets = max(options.n_sets, options.max_sets // max(1, len(groups)))
    for group in groups:
        likely = _some(group, max_pairs, limit, options)
        rows, keys = likely.rows_and_keys(source)
        order = _fewest_pieces_first(likely.pairs, rows, keys, options.seed)[:limit]
        pairs = [rows[at] for at in order], [keys[at] for at in order]
        yield from _sets_of(likely.take(order), *pairs, n_sets, options)


def example_sets_by_starts(
    source: TextTable, targets: Sequence[TextColumn], min_length: int, options: FindingOptions
) -> Iterator[tuple[ExampleGroup, Pairs, Pairs]]:
    """Yield sets of pairs of samples whose keys take their pieces from the same places of the rows.

    Where no piece is rare, such as the years of a million dates, few of the likely pairs join: of
    two dates of one year one in 365. Those that do agree in where the pieces of their keys begin.
    Of columns that are looked at as a whole there are none.
    """
    if not _sizes(source, targets)[-1]:
        return
    groups, _ = _groups(source, targets, min_length, options)
    max_pairs = max(_N_PAIRS, _MAX_PAIRS_BY_STARTS // max(1, len(groups)))
    for whole_group in groups:
        group = whole_group.take(slice(max_pairs))
        rows, keys = group.rows_and_keys(source)
        alike: dict[tuple[PieceStart, ...], list[int]] = defaultdict(list)
        for position, (row, key) in enumerate(zip(rows, keys, strict=True)):
            alike[piece_starts(row, key)].append(position)
        enough = [starts for starts in alike if len(alike[starts]) >= 2 * N_EXAMPLES]
        enough.sort(key=lambda starts: (len(starts), -len(alike[starts]), starts))
        for starts in enough[:_MAX_STARTS]:
            order = alike[starts]
            pairs = [rows[position] for position in order], [keys[position] for position in order]
            yield from _sets_of(group.take(order), *pairs, _SETS_OF_STARTS, options)


def example_sets_by_words(
    source: TextTable, targets: Sequence[TextColumn], options: FindingOptions
) -> Iterator[tuple[ExampleGroup, Pairs, Pairs]]:
    """Yield sets of rows and the one key that shares most words with each.

    No hour, minute or second shows which of many times a row belongs to, all together do; and so it
    is with the parts of dates. At most 400 rows and 2,000 keys are compared, by words that at most
    200 of the keys hold.
    """
    blank = pa.scalar("\0", pa.large_string())
    cells_of_rows = [pc.fill_null(column.cells, "") for column in source.columns]
    texts = pc.binary_join_element_wise(*cells_of_rows, blank)
    short = np.flatnonzero(pc.utf8_length(texts).to_numpy(zero_copy_only=False) <= MAX_LEARNED)
    some_texts = texts.take(pa.array(short))
    rows = short[sample_texts(some_texts, _MAX_ROWS_BY_WORDS, 2 * options.seed)]
    cells = source.rows(rows)
    for number, column in enumerate(targets):
        some = _looked_at(column, _MAX_KEYS_BY_WORDS, 2 * options.seed + 1)
        keys = column.values.take(pa.array(some)).to_pylist()
        holding: dict[str, list[int]] = defaultdict(list)
        for position, key in enumerate(keys):
            for word in set(date_words(key)):
                holding[word].append(position)
        pairs = []
        for row, texts in enumerate(cells):
            words = {word for text in texts if text for word in date_words(text)}
            shared = Counter(
                position
                for word in sorted(words)
                if len(holding.get(word, ())) <= _MAX_KEYS_OF_WORD
                for position in holding.get(word, ())
            )
            best = shared.most_common(2)
            if best and best[0][1] > 1 and (len(best) == 1 or best[1][1] < best[0][1]):
                pairs.append((row, best[0][0], best[0][1]))
        # Not in the order of rows, where neighbours have much in common that is not the rule's.
        random.Random(options.seed).shuffle(pairs)
        pairs.sort(key=lambda pair: -pair[2])
        if pairs:
            at = np.array(pairs, np.int32)
            ones = np.ones(len(at), np.int32)
            columns = [at[:, 0], at[:, 1], ones, at[:, 2]]
            row_pairs = np.rec.fromarrays(columns, names=_PAIR_FIELDS)
            group = ExampleGroup(0, number, row_pairs, rows, keys)
            likely = [cells[row] for row, _, _ in pairs], [keys[key] for _, key, _ in pairs]
            yield from _sets_of(group, *likely, options.n_sets, options, _SIZES_BY_WORDS)


def _sets_of(
    group: ExampleGroup,
    rows: list[Row],
    keys: list[str],
    n_sets: int,
    options: FindingOptions,
    sizes: Sequence[int] = (N_EXAMPLES, 2),
) -> Iterator[tuple[ExampleGroup, Pairs, Pairs]]:
    checks = rows[:_CHECKED], keys[:_CHECKED]
    sets = list(_drawn_sets(group, [_form(key) for key in keys], n_sets, options, sizes))
    held = [(letters_of(key), letters_held(row)) for row, key in zip(rows, keys, strict=True)]
    counts = [
        max(n_pieces(*held[at], [held[other][0] for other in one], _MAX_PIECES) for at in one)
        for one in sets
    ]
    for number in np.argsort(counts, kind="stable").tolist():
        if counts[number] <= _MAX_PIECES:
            examples = [rows[at] for at in sets[number]], [keys[at] for at in sets[number]]
            yield group, examples, checks


def _drawn_sets(
    group: ExampleGroup,
    forms: Sequence[str],
    n_sets: int,
    options: FindingOptions,
    sizes: Sequence[int],
) -> Iterator[tuple[int, ...]]:
    """Yield sets of pairs without a value twice; every other one of keys of one form."""
    drawn = random.Random(f"{options.seed} {group.source} {group.target}")
    sources, targets = group.pairs.sources.tolist(), group.pairs.targets.tolist()
    alike: dict[str, list[int]] = defaultdict(list)
    for position, form in enumerate(forms):
        alike[form].append(position)
    seen: set[tuple[int, ...]] = set()
    for size in sizes:
        for number in range(n_sets):
            # The first sets are of the most telling pairs, which a sample has few of.
            among: Sequence[int] = range(min(len(group.pairs), 2 * size + 4 * number))
            if number % 2:
                same = alike[forms[drawn.choice(among)]]
                among = same[: bisect_left(same, len(among))]
            # More than needed, since some share a value.
            positions = drawn.sample(among, min(len(among), 4 * size))
            chosen = _chosen(sources, targets, positions, size)
            if len(chosen) == size and chosen not in seen:
                seen.add(chosen)
                yield chosen


def _form(text: str) -> str:
    """Return a text with one letter for each run of letters, and one digit for one of digits."""
    return re.sub(r"[^\W\d_]+", "a", re.sub(r"\d+", "0", text))


def _chosen(
    sources: list[int], targets: list[int], positions: list[int], size: int
) -> tuple[int, ...]:
    chosen: list[int] = []
    used: tuple[set[int], set[int]] = set(), set()
    for position in positions:
        if sources[position] not in used[0] and targets[position] not in used[1]:
            chosen.append(position)
            used[0].add(sources[position])
            used[1].add(targets[position])
            if len(chosen) == size:
                break
    return tuple(sorted(chosen))


def _groups(
    source: TextTable, targets: Sequence[TextColumn], min_length: int, options: FindingOptions
) -> tuple[list[ExampleGroup], int]:
    """Find the most telling pairs of each two columns, the best columns first, and their limit."""
    n_source, n_target, expected_pairs, is_sampled = _sizes(source, targets)
    limit = max(2 * N_EXAMPLES, min(40, int(expected_pairs))) if is_sampled else _N_PAIRS
    columns, n_left = [*source.columns, *targets], len(source.columns)
    numbers = [
        _looked_at(column, size, 2 * options.seed + side)
        for side, size, some in ((0, n_source, source.columns), (1, n_target, targets))
        for column in some
    ]
    texts = [
        column.values.take(pa.array(chosen)).to_pylist()
        for column, chosen in zip(columns, numbers, strict=True)
    ]
    suffixes = ColumnSuffixes([[lower(text) for text in values] for values in texts])
    groups = []
    for one in range(n_left):
        for other in range(n_left, len(columns)):
            prefixes, sides = suffixes.shared_prefixes(one, other)
            pairs = find_row_pairs(prefixes, sides, min_length=min_length)
            if len(pairs):
                pairs.targets -= len(numbers[one])
                groups.append(ExampleGroup(one, other - n_left, pairs, numbers[one], texts[other]))
    return sorted(groups, key=lambda group: group.rank), limit


def _sizes(source: TextTable, targets: Sequence[TextColumn]) -> tuple[int, int, float, bool]:
    """Return how many values of each side are looked at, the pairs expected, if it is a sample."""
    n_sources, n_targets = (
        max((len(column.values) for column in columns), default=0)
        for columns in (source.columns, targets)
    )
    n_source, n_target, expected_pairs = sample_sizes(n_sources, n_targets)
    n_source = max(n_source, min(n_sources, _WHOLE))
    n_target = max(n_target, min(n_targets, _WHOLE))
    return n_source, n_target, expected_pairs, n_source < n_sources or n_target < n_targets


def _some(group: ExampleGroup, max_pairs: int, limit: int, options: FindingOptions) -> ExampleGroup:
    """Return the pairs that are looked at more closely, those of fewest holders.

    Of whole columns any of these, since the longest pieces belong to keys of one length. In samples
    most values lack their partner, and only the longest pieces mean anything.
    """
    n_pairs = len(group.pairs)
    if limit < _N_PAIRS or n_pairs <= max_pairs:
        return group.take(slice(max_pairs))
    order = np.array(random.Random(options.seed).sample(range(n_pairs), n_pairs))
    chosen = order[np.argsort(group.pairs.holders[order], kind="stable")][:max_pairs]
    return group.take(np.sort(chosen))


def _fewest_pieces_first(
    pairs: np.recarray, rows: Sequence[Row], keys: Sequence[str], seed: int
) -> list[int]:
    """Order pairs of as few holders by how long the pieces are that their keys consist of.

    A rare piece alone means less: with many rows some share a long one by chance. Pairs whose
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


def _looked_at(column: TextColumn, size: int, seed: int) -> np.ndarray:
    lengths = pc.utf8_length(column.values).to_numpy(zero_copy_only=False)
    if not len(lengths) or np.median(lengths) > MAX_MEDIAN_LENGTH:
        return np.empty(0, np.int64)
    usable = np.flatnonzero(lengths <= MAX_LEARNED)
    if len(usable) <= size:
        return usable
    texts = column.values.take(pa.array(usable))
    return usable[sample_texts(texts, size, seed)]
