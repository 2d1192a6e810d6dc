"""Operators that explain a piece of every example's key: where they begin and how far they reach.

Source: E. Zhu, Search and Join Algorithms for Tables in Data Lakes, PhD thesis, University of
Toronto, 2019, section 4.3 (the order of the logical operators).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pexeso.runtime.jit import loop
from pexeso.transform.learning.example_parts import CASINGS, Examples
from pexeso.transform.programs.program import Constant, Extract, Operator


@dataclass(frozen=True, slots=True)
class Candidate:
    """An operator and the places of what it writes in the keys of the examples."""

    operator: Operator
    places: tuple[int, ...]
    lengths: tuple[int, ...]


def candidates(
    examples: Examples, low: Sequence[int], high: Sequence[int], width: int
) -> list[Candidate]:
    """Return the operators that write a piece of every key's range, the best first.

    Best is who writes most letters in all keys together; then who writes different letters for
    different examples; then fewer splits, all to the end before a fixed length, a start counted
    from the front, a small start, letters as they are. Of operators that write the same, the first
    by this order stands for all, or a constant.
    """
    lines, lengths, positions, sizes = _best(
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
    choices = []
    for line, length, places, size in zip(
        lines.tolist(), lengths.tolist(), positions.tolist(), sizes.tolist(), strict=True
    ):
        operator: Operator
        if line < 0:
            operator = Constant(examples.keys[0][places[0] : places[0] + size[0]])
        else:
            extractor, casing, backward, start = examples.lines[line].tolist()
            column, splits, replacements = examples.extractors[extractor]
            operator = Extract(
                column,
                splits,
                start=-1 - start if backward else start,
                length=length if length >= 0 else None,
                casing=CASINGS[casing],
                replacements=replacements,
                shorter=length >= 0 and examples.extended and not backward,
            )
        choices.append(Candidate(operator, tuple(places), tuple(size)))
    return choices


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
    wide = high - low
    before = np.zeros((4, wide + 1), np.int32)  # letters that agree from a place of the goal on
    after = np.zeros((4, wide + 1), np.int32)
    goal_letters = goal[low:high]
    for letter in range(at + size - 1, at - 1, -1):
        inside = letter > at and is_letter[letter - 1]
        head = large[letter] if is_letter[letter] else plain[letter]
        tail = head
        if is_letter[letter] and inside:
            tail = small[letter]
        reach[0, letter] = _agreeing(before[0], after[0], goal_letters, plain[letter])
        reach[1, letter] = _agreeing(before[1], after[1], goal_letters, small[letter])
        reach[2, letter] = _agreeing(before[2], after[2], goal_letters, large[letter])
        reach[3, letter] = _agreeing(before[3], after[3], goal_letters, head)
        if tail != head:
            _agreeing(before[3], after[3], goal_letters, tail)
        before, after = after, before


@loop
def _agreeing(before: Any, after: Any, goal: Any, letter: Any) -> Any:
    """Count on what agrees from each place on, and return the most."""
    longest = 0
    for position in range(len(goal)):
        count = before[position + 1] + 1 if goal[position] == letter else 0
        after[position] = count
        longest = max(longest, count)
    return longest


@loop
def _written(
    plain: Any, small: Any, large: Any, is_letter: Any, casing: Any, begin: Any, position: Any
) -> Any:
    """Return the letter that a text which begins somewhere has at a place."""
    if casing == 0 or (casing == 3 and not is_letter[position]):
        return plain[position]
    if casing == 1:
        return small[position]
    if casing == 2 or position == begin or not is_letter[position - 1]:
        return large[position]
    return small[position]


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
    max_letters = 0
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
            n_letters = reach[casing, at[extractor, example] + begin]
            none = none or n_letters == 0
            if n_letters == length - begin:
                total += n_letters
                if not extended or backward:
                    longest = min(longest, n_letters)
            else:
                longest = min(longest, n_letters)
                total = -(1 << 30)
        if none:
            continue
        if total > 0:
            to_end[line] = total
            max_letters = max(max_letters, total)
        fixed[line] = longest
        total = 0
        for example in range(n_examples):
            left = size[extractor, example] - (0 if backward else start)
            total += min(longest, left)
        max_letters = max(max_letters, total)

    first_goal = high[0] - low[0]
    common = np.zeros(first_goal, np.int32)  # of the first key from a place on, in all keys
    for position in range(first_goal):
        common[position] = first_goal - position
    for example in range(1, n_examples):
        wide = high[example] - low[example] + 1
        row = np.zeros(wide, np.int32)
        for position in range(first_goal - 1, -1, -1):
            longest = 0
            goal_letter = goal[goal_at[0] + low[0] + position]
            for other in range(wide - 1):
                same = goal[goal_at[example] + low[example] + other] == goal_letter
                row[other] = row[other + 1] + 1 if same else 0
                longest = max(longest, row[other])
            common[position] = min(common[position], longest)
    for position in range(first_goal):
        max_letters = max(max_letters, common[position] * n_examples)

    found_line = np.full(width, -1, np.int64)
    found_length = np.full(width, -1, np.int64)
    positions = np.zeros((width, n_examples), np.int64)
    sizes = np.zeros((width, n_examples), np.int64)
    piece = np.empty(len(goal), np.uint32)
    n_found = 0
    for letters in range(max_letters, n_examples - 1, -1):
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
                        positions[n_found, example] = _place_of(
                            piece,
                            length,
                            goal,
                            goal_at[example] + low[example],
                            goal_at[example] + high[example],
                        )
                        positions[n_found, example] -= goal_at[example]
                        sizes[n_found, example] = length
                    if _same_for_all(goal, goal_at, positions[n_found], sizes[n_found]):
                        continue  # a constant
                    if _is_new(positions, sizes, level, n_found):
                        found_line[n_found] = line
                        found_length[n_found] = -1 if ends else most_of_each
                        n_found += 1
        if letters % n_examples == 0:
            length = letters // n_examples
            for position in range(first_goal):
                if n_found == width:
                    break
                if common[position] < length:
                    continue
                begin = goal_at[0] + low[0] + position
                for letter in range(length):
                    piece[letter] = goal[begin + letter]
                for example in range(n_examples):
                    positions[n_found, example] = _place_of(
                        piece,
                        length,
                        goal,
                        goal_at[example] + low[example],
                        goal_at[example] + high[example],
                    )
                    positions[n_found, example] -= goal_at[example]
                    sizes[n_found, example] = length
                if _is_new(positions, sizes, level, n_found):
                    found_line[n_found] = -1
                    n_found += 1
        if n_found == width:
            break
    return found_line[:n_found], found_length[:n_found], positions[:n_found], sizes[:n_found]


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
    for position in range(low, high - length + 1):
        same = 0
        while same < length and goal[position + same] == piece[same]:
            same += 1
        if same == length:
            return position
    return -1


@loop
def _same_for_all(goal: Any, goal_at: Any, positions: Any, sizes: Any) -> Any:
    for example in range(1, len(positions)):
        if sizes[example] != sizes[0]:
            return False
        for letter in range(sizes[0]):
            one = goal[goal_at[0] + positions[0] + letter]
            if one != goal[goal_at[example] + positions[example] + letter]:
                return False
    return True


@loop
def _is_new(positions: Any, sizes: Any, first: Any, number: Any) -> Any:
    """Return whether an operator writes other letters than those of its level before it."""
    for other in range(first, number):
        same = True
        for example in range(positions.shape[1]):
            if (
                positions[other, example] != positions[number, example]
                or sizes[other, example] != sizes[number, example]
            ):
                same = False
                break
        if same:
            return False
    return True
