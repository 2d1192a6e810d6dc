"""Operators that explain a piece of every example's key: where they begin and how far they reach.

Source: E. Zhu, Search and Join Algorithms for Tables in Data Lakes, PhD thesis, University of
Toronto, 2019, section 4.3 (the logical operators and their order). An example is a row of the
source and the key that a program should write for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from pexeso.runtime.jit import loop
from pexeso.transform.program import Casing, Constant, Extract, Operator, Span, Split, lower, upper

CASINGS: tuple[Casing, ...] = ("none", "lower", "upper", "title")
"""In the order in which operators prefer them."""

MAX_LETTERS = 6000
"""Of all parts of cells together from which operators are made, for all examples."""

MAX_STEPS = 4
"""Splits and replacements of an operator."""

NO_LETTER = 0
"""Stands for a letter whose other case is not one letter: it equals nothing."""


@dataclass(frozen=True, slots=True)
class Examples:
    """What some rows hold and the keys wanted for them, as letters.

    Attributes
    ----------
    keys : tuple of str (b,)
    extractors : tuple of Extract
        All of a part of a cell, with distinct texts, those with fewer splits first.
    plain, small, large : uint32 (c,)
        Letters of their texts, as they are and in both cases.
    is_letter : bool (c,)
    at, size : int32 (e, b)
        Where each text begins, and its characters.
    goal, goal_at : uint32 (g,), int32 (b + 1,)
        Letters of the keys.
    lines : int32 (l, 4)
        Extractor, casing, 1 where the start counts from the end, and start: in the order in which
        operators are preferred that write the same number of letters.
    groups : int64 (MAX_STEPS + 2,)
        Where the lines of extractors with no split or replacement begin, with one, and so on.
    extended : bool
    """

    keys: tuple[str, ...]
    extractors: tuple[Extract, ...]
    plain: np.ndarray
    small: np.ndarray
    large: np.ndarray
    is_letter: np.ndarray
    at: np.ndarray
    size: np.ndarray
    goal: np.ndarray
    goal_at: np.ndarray
    lines: np.ndarray
    groups: np.ndarray
    extended: bool


@dataclass(frozen=True, slots=True)
class Candidate:
    """An operator and the places of what it writes in the keys of the examples.

    Attributes
    ----------
    operator : Constant or Extract
    places, lengths : tuple of int (b,)
        First occurrence in each key's range, and the characters of it.
    """

    operator: Operator
    places: tuple[int, ...]
    lengths: tuple[int, ...]


def examples_of(
    rows: Sequence[Sequence[str | None]],
    keys: Sequence[str],
    *,
    any_separator: bool = False,
    extended: bool = True,
) -> Examples:
    """Prepare examples.

    Parts of cells are made with ever more steps until they have more than `MAX_LETTERS` letters.

    Parameters
    ----------
    rows : sequence of rows (b,)
    keys : sequence of str (b,)
    any_separator : bool
        Take every text of one or two characters as a separator, and every longer one that all cells
        share, not only those of one or two signs; but split once alone.
    extended : bool
        Use what extends the published operators.
    """
    parts = _Parts()
    for column in range(len(rows[0])):
        cells = tuple(row[column] for row in rows)
        texts = tuple(cell for cell in cells if cell)
        if len(texts) == len(cells):
            parts.add(texts, Extract(column))
    whole = list(parts.found.items())
    once = parts.deeper(whole, _splits, any_separator, extended)
    replaced = list(keys) if extended else []
    others = parts.deeper(whole, _replacements, replaced)
    if not any_separator:
        parts.deeper(once, _splits, any_separator, extended)
    others += parts.deeper(once, _replacements, replaced)
    parts.deeper(others, _replacements, replaced)
    ordered = sorted(parts.found.items(), key=lambda each: _n_steps(each[1]))
    return _as_letters(tuple(keys), ordered, extended)


def _n_steps(extract: Extract) -> int:
    return len(extract.splits) + len(extract.replacements)


_Found = list[tuple[tuple[str, ...], Extract]]


@dataclass(slots=True)
class _Parts:
    """Parts of cells by their texts, the simplest for each."""

    found: dict[tuple[str, ...], Extract] = field(default_factory=dict)
    letters: int = 0

    def add(self, texts: tuple[str, ...], extract: Extract) -> bool:
        """Add a part, and return whether its texts are new and there is room."""
        if texts in self.found or (self.found and self.letters > MAX_LETTERS):
            return False
        self.found[texts] = extract
        self.letters += sum(map(len, texts))
        return True

    def deeper(self, begun: _Found, step: Callable[..., Any], *options: Any) -> _Found:
        """Add what one step more gives."""
        new = []
        for texts, extract in begun:
            if self.letters > MAX_LETTERS:
                break
            for change, made in step(texts, *options):
                [(name, each)] = change.items()
                longer = replace(extract, **{name: (*getattr(extract, name), each)})
                if self.add(made, longer):
                    new.append((made, longer))
        return new


def _splits(
    texts: tuple[str, ...], any_separator: bool, extended: bool
) -> Iterator[tuple[dict[str, Any], tuple[str, ...]]]:
    """Yield the splits that apply to all texts, with the parts they give, none of them empty."""
    for separator in _separators(texts, any_separator):
        parts = [text.split(separator) for text in texts]
        fewest = min(map(len, parts))
        if fewest < 2:
            continue
        for span, part in _spans(fewest, extended):
            if span == "one":
                taken = tuple(each[part] for each in parts)
            elif span == "to":
                taken = tuple(separator.join(each[: part % len(each) + 1]) for each in parts)
            else:
                taken = tuple(separator.join(each[part % len(each) :]) for each in parts)
            if all(taken):
                yield {"splits": Split(separator, part, span)}, taken


def _spans(fewest: int, extended: bool) -> Iterator[tuple[Span, int]]:
    yield from (("one", part) for part in range(fewest))
    if extended:
        yield from (("one", part) for part in range(-1, -fewest - 1, -1))
        yield from (("to", part) for part in range(-2, -fewest - 1, -1))
        yield from (("from", part) for part in range(1, fewest))
        yield from (("to", part) for part in range(1, fewest - 1))
        yield from (("from", part) for part in range(-2, -fewest, -1))


def _separators(texts: tuple[str, ...], any_separator: bool) -> list[str]:
    shortest = min(texts, key=len)
    short = {shortest[at : at + size] for size in (1, 2) for at in range(len(shortest))}
    if not any_separator:
        short = {each for each in short if not any(letter.isalnum() for letter in each)}
        return sorted(short, key=lambda each: (len(each), each))
    return [
        *sorted(_shared_by_all(texts), key=lambda each: (-len(each), each)),
        *sorted(short, key=lambda each: (len(each), each)),
    ]


def _shared_by_all(texts: tuple[str, ...]) -> set[str]:
    """Return the longest pieces from each place of the first text that all others hold."""
    first, *others = texts
    found = set()
    for begin in range(len(first)):
        end = begin + 2
        while end < len(first) and all(first[begin : end + 1] in other for other in others):
            end += 1
        if end > begin + 2:
            found.add(first[begin:end])
    return found


def _replacements(
    texts: tuple[str, ...], keys: Sequence[str]
) -> Iterator[tuple[dict[str, Any], tuple[str, ...]]]:
    """Yield signs of some texts that may give way to signs of the keys or to nothing."""
    if not keys:
        return
    signs = sorted({letter for text in texts for letter in text if not letter.isalnum()})
    wanted = ["", *sorted({letter for key in keys for letter in key if not letter.isalnum()})]
    for old in signs:
        for new in wanted:
            made = tuple(text.replace(old, new) for text in texts)
            if all(made):
                yield {"replacements": (old, new)}, made


def _as_letters(keys: tuple[str, ...], found: _Found, extended: bool) -> Examples:
    texts = [text for group, _ in found for text in group]
    plain = "".join(texts)
    sizes = np.fromiter(map(len, texts), np.int32, len(texts))
    at = (np.cumsum(sizes) - sizes).astype(np.int32).reshape(len(found), len(keys))
    size = sizes.reshape(len(found), len(keys))
    extractors = tuple(extract for _, extract in found)
    lines, groups = _lines(extractors, size)
    return Examples(
        keys,
        extractors,
        _letters(plain),
        _letters(plain.translate(_SMALL)),
        _letters(plain.translate(_LARGE)),
        np.fromiter(map(str.isalpha, plain), bool, len(plain)),
        at,
        size,
        _letters("".join(keys)),
        np.concatenate([[0], np.cumsum([len(key) for key in keys])]).astype(np.int32),
        lines,
        groups,
        extended,
    )


class _Cased(dict[int, int]):
    """Letters in a casing, for `str.translate`; filled as they are asked for."""

    def __init__(self, case: Callable[[str], str]) -> None:
        super().__init__()
        self.case = case

    def __missing__(self, point: int) -> int:
        made = self.case(chr(point))
        self[point] = ord(made) if len(made) == 1 else NO_LETTER
        return self[point]


_SMALL, _LARGE = _Cased(lower), _Cased(upper)


def _letters(text: str) -> np.ndarray:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)


def _lines(extractors: Sequence[Extract], size: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    shortest = size.min(axis=1, initial=1 << 30) if size.size else np.zeros(0, np.int32)
    uneven = (size != size[:, :1]).any(axis=1)
    n_steps = np.array([_n_steps(each) for each in extractors], np.int64)
    per = shortest.astype(np.int64) * (1 + uneven) * len(CASINGS)
    extractor = np.repeat(np.arange(len(extractors)), per)
    place = np.arange(len(extractor)) - np.repeat(np.cumsum(per) - per, per)
    casing = place % len(CASINGS)
    place //= len(CASINGS)
    backward = place >= shortest[extractor]
    start = np.where(backward, place - shortest[extractor], place)
    order = np.lexsort((extractor, casing, start, backward, n_steps[extractor]))
    lines = np.stack([extractor, casing, backward, start], axis=1)[order].astype(np.int32)
    groups = np.searchsorted(n_steps[lines[:, 0]], np.arange(MAX_STEPS + 2))
    return lines, groups


def candidates(
    examples: Examples, low: Sequence[int], high: Sequence[int], width: int
) -> list[Candidate]:
    """Return the operators that write a piece of every key's range, the best first.

    Best is who writes most letters in all keys together; then who writes different letters for
    different examples; then fewer splits, all to the end before a fixed length, a start counted
    from the front, a small start, letters as they are. Of operators that write the same, the first
    by this order stands for all, or a constant.

    Parameters
    ----------
    examples : Examples
    low, high : sequence of int (b,)
        Range of each key that is left to be written; none is empty.
    width : int
        At most so many operators.
    """
    lines, lengths, places, sizes = _best(
        examples.plain,
        examples.small,
        examples.large,
        examples.is_letter,
        examples.at,
        examples.size,
        examples.goal,
        examples.goal_at,
        np.array(low, np.int32),
        np.array(high, np.int32),
        examples.lines,
        examples.groups,
        examples.extended,
        width,
    )
    found = []
    for line, length, place, size in zip(
        lines.tolist(), lengths.tolist(), places.tolist(), sizes.tolist(), strict=True
    ):
        operator: Operator
        if line < 0:
            operator = Constant(examples.keys[0][place[0] : place[0] + size[0]])
        else:
            extractor, casing, backward, start = examples.lines[line].tolist()
            operator = replace(
                examples.extractors[extractor],
                start=-1 - start if backward else start,
                length=length if length >= 0 else None,
                shorter=length >= 0 and examples.extended and not backward,
                casing=CASINGS[casing],
            )
        found.append(Candidate(operator, tuple(place), tuple(size)))
    return found


@loop
def _reach(
    plain: Any,
    small: Any,
    large: Any,
    is_letter: Any,
    at: Any,
    size: Any,
    goal: Any,
    low: Any,
    high: Any,
    reach: Any,
) -> None:
    """For each letter of a text, the letters from it on that stand somewhere in the goal.

    By casing; in title case a text that begins at the letter.
    """
    wide = high - low + 1
    one = np.zeros((4, wide), np.int32)  # letters that agree from a place of the goal on
    for letter in range(at + size - 1, at - 1, -1):
        inside = letter > at and is_letter[letter - 1]
        raw, less, more = plain[letter], small[letter], large[letter]
        tail = raw
        head = raw
        if is_letter[letter]:
            head = more
            tail = less if inside else more
        r0 = r1 = r2 = r3 = 0
        for place in range(wide - 1):
            wanted = goal[low + place]
            following = one[3, place + 1]
            if wanted == head:
                r3 = max(r3, following + 1)
            one[3, place] = following + 1 if wanted == tail else 0
            one[0, place] = one[0, place + 1] + 1 if wanted == raw else 0
            one[1, place] = one[1, place + 1] + 1 if wanted == less else 0
            one[2, place] = one[2, place + 1] + 1 if wanted == more else 0
            r0 = max(r0, one[0, place])
            r1 = max(r1, one[1, place])
            r2 = max(r2, one[2, place])
        reach[0, letter] = r0
        reach[1, letter] = r1
        reach[2, letter] = r2
        reach[3, letter] = r3


@loop
def _written(
    plain: Any, small: Any, large: Any, is_letter: Any, casing: Any, begin: Any, place: Any
) -> Any:
    """Return the letter that a text which begins somewhere has at a place."""
    if casing == 0 or (casing == 3 and not is_letter[place]):
        return plain[place]
    if casing == 1:
        return small[place]
    if casing == 2 or place == begin or not is_letter[place - 1]:
        return large[place]
    return small[place]


@loop
def _best(
    plain: Any,
    small: Any,
    large: Any,
    is_letter: Any,
    at: Any,
    size: Any,
    goal: Any,
    goal_at: Any,
    low: Any,
    high: Any,
    lines: Any,
    groups: Any,
    extended: Any,
    width: Any,
) -> Any:
    n_examples = len(low)
    reach = np.zeros((4, len(plain)), np.int32)
    for extractor in range(len(at)):
        for example in range(n_examples):
            _reach(
                plain,
                small,
                large,
                is_letter,
                at[extractor, example],
                size[extractor, example],
                goal,
                goal_at[example] + low[example],
                goal_at[example] + high[example],
                reach,
            )
    fixed = np.zeros(len(lines), np.int32)  # the longest length
    to_end = np.zeros(len(lines), np.int32)  # letters in all keys, or 0
    most = 0
    for line in range(len(lines)):
        extractor, casing, backward, start = lines[line]
        longest = 0
        for example in range(n_examples):
            longest = max(longest, size[extractor, example])
        total = 0
        none = False
        for example in range(n_examples):
            length = size[extractor, example]
            begin = length - 1 - start if backward else start
            got = reach[casing, at[extractor, example] + begin]
            none = none or got == 0
            if got == length - begin:
                total += got
                if not extended or backward:
                    longest = min(longest, got)
            else:
                longest = min(longest, got)
                total = -(1 << 30)
        if none:
            continue
        if total > 0:
            to_end[line] = total
            most = max(most, total)
        fixed[line] = longest
        total = 0
        for example in range(n_examples):
            left = size[extractor, example] - (0 if backward else start)
            total += min(longest, left)
        most = max(most, total)

    first_goal = high[0] - low[0]
    common = np.zeros(first_goal, np.int32)  # of the first key from a place on, in all keys
    for place in range(first_goal):
        common[place] = first_goal - place
    for example in range(1, n_examples):
        wide = high[example] - low[example] + 1
        row = np.zeros(wide, np.int32)
        for place in range(first_goal - 1, -1, -1):
            longest = 0
            wanted = goal[goal_at[0] + low[0] + place]
            for other in range(wide - 1):
                same = goal[goal_at[example] + low[example] + other] == wanted
                row[other] = row[other + 1] + 1 if same else 0
                longest = max(longest, row[other])
            common[place] = min(common[place], longest)
    for place in range(first_goal):
        most = max(most, common[place] * n_examples)

    found_line = np.full(width, -1, np.int64)
    found_length = np.full(width, -1, np.int64)
    places = np.zeros((width, n_examples), np.int64)
    sizes = np.zeros((width, n_examples), np.int64)
    piece = np.empty(len(goal), np.uint32)
    n_found = 0
    for letters in range(most, n_examples - 1, -1):
        level = n_found
        for group in range(len(groups) - 1):
            for ends in (True, False):
                for line in range(groups[group], groups[group + 1]):
                    if n_found == width:
                        break
                    extractor, casing, backward, start = lines[line]
                    most_of_each = 0
                    if ends:
                        if to_end[line] != letters:
                            continue
                    else:
                        if fixed[line] * n_examples < letters:
                            continue
                        most_of_each = _length_for(
                            letters, fixed[line], size[extractor], 0 if backward else start
                        )
                        if most_of_each < 0:
                            continue
                    for example in range(n_examples):
                        whole = size[extractor, example]
                        begin = whole - 1 - start if backward else start
                        length = whole - begin
                        if not ends:
                            length = min(length, most_of_each)
                        begin += at[extractor, example]
                        for letter in range(length):
                            piece[letter] = _written(
                                plain, small, large, is_letter, casing, begin, begin + letter
                            )
                        places[n_found, example] = _place_of(
                            piece,
                            length,
                            goal,
                            goal_at[example] + low[example],
                            goal_at[example] + high[example],
                        )
                        places[n_found, example] -= goal_at[example]
                        sizes[n_found, example] = length
                    if _same_for_all(goal, goal_at, places[n_found], sizes[n_found]):
                        continue  # a constant
                    if _is_new(places, sizes, level, n_found):
                        found_line[n_found] = line
                        found_length[n_found] = -1 if ends else most_of_each
                        n_found += 1
        if letters % n_examples == 0:
            length = letters // n_examples
            for place in range(first_goal):
                if n_found == width:
                    break
                if common[place] < length:
                    continue
                begin = goal_at[0] + low[0] + place
                for letter in range(length):
                    piece[letter] = goal[begin + letter]
                for example in range(n_examples):
                    places[n_found, example] = _place_of(
                        piece,
                        length,
                        goal,
                        goal_at[example] + low[example],
                        goal_at[example] + high[example],
                    )
                    places[n_found, example] -= goal_at[example]
                    sizes[n_found, example] = length
                if _is_new(places, sizes, level, n_found):
                    found_line[n_found] = -1
                    n_found += 1
        if n_found == width:
            break
    return found_line[:n_found], found_length[:n_found], places[:n_found], sizes[:n_found]


@loop
def _length_for(letters: Any, longest: Any, sizes: Any, start: Any) -> Any:
    """Return the length with which pieces that may be shorter have so many letters, or -1."""
    length = (letters + len(sizes) - 1) // len(sizes)
    while length <= longest:
        total = 0
        for example in range(len(sizes)):
            total += min(length, sizes[example] - start)
        if total == letters:
            return length
        if total > letters:
            return -1
        length += 1
    return -1


@loop
def _place_of(piece: Any, length: Any, goal: Any, low: Any, high: Any) -> Any:
    for place in range(low, high - length + 1):
        same = 0
        while same < length and goal[place + same] == piece[same]:
            same += 1
        if same == length:
            return place
    return -1


@loop
def _same_for_all(goal: Any, goal_at: Any, places: Any, sizes: Any) -> Any:
    for example in range(1, len(places)):
        if sizes[example] != sizes[0]:
            return False
        for letter in range(sizes[0]):
            one = goal[goal_at[0] + places[0] + letter]
            if one != goal[goal_at[example] + places[example] + letter]:
                return False
    return True


@loop
def _is_new(places: Any, sizes: Any, first: Any, number: Any) -> Any:
    """Return whether an operator writes other letters than those of its level before it."""
    for other in range(first, number):
        same = True
        for example in range(places.shape[1]):
            if (
                places[other, example] != places[number, example]
                or sizes[other, example] != sizes[number, example]
            ):
                same = False
                break
        if same:
            return False
    return True
