"""What tells values apart, however alike their words are: marks, which are numbers of 64 bits.

A mark says of a value that it has one thing of some group, such as the number 11 or the word
"north". Two values are apart

- if each has a mark that the other lacks, and both of these are of one group, or
- if one has a strict mark that the other lacks, and they are not of the same letters; of the group
  `EDGE` only if the other lacks its member in all groups.

The distance of values that are apart is 1, the largest. Values of the same words in another order,
or in other numbers, have the distance `TURNED`; and values of the same letters in other words
("walmart", "wal mart") have that of their words or `REGROUPED`, whichever is less. Where one of two
values is of another script than Latin and the other is not, the distance of their words is
multiplied with one of `SAME_SOUNDS` if they sound the same, else with one of `SAME_CONSONANTS` if
their consonants do: that of the number of these, since long names that sound alike are rarely two.
Marks of `LETTERS_GROUP` tell nothing apart: values that have one in common, short words that differ
in a letter, have the distance of their words or `ONE_LETTER`, whichever is less. All this is part
of the definition of the distance. Whoever finds candidates by words finds enough of them if those
of the same letters, of the same consonants, and with a mark of letters in common are added.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pexeso.engine.lists import offsets_of, take_lists
from pexeso.runtime.compiled import compiled

loops = compiled("pexeso.engine.sparse.loops")

TURNED: float = loops.TURNED
REGROUPED: float = loops.REGROUPED
ONE_LETTER: float = loops.ONE_LETTER
SAME_SOUNDS: tuple[float, ...] = loops.SAME_SOUNDS
SAME_CONSONANTS: tuple[float, ...] = loops.SAME_CONSONANTS
STRICT_GROUPS: int = loops.STRICT_GROUPS  # groups from here on are strict
EDGE: int = loops.EDGE
LETTERS_GROUP: int = loops.LETTERS_GROUP
BITS_OF_MEMBER: int = loops.BITS_OF_MEMBER


def marks_in_group(group: int | np.ndarray, hashes: np.ndarray) -> np.ndarray:
    """Return marks of groups, 1 to 127, from hashes of their members, uint64 (n,): int64."""
    members = hashes >> np.uint64(64 - BITS_OF_MEMBER)
    groups = np.asarray(group).astype(np.uint64) << np.uint64(BITS_OF_MEMBER)
    return (members | groups).view(np.int64)


@dataclass(frozen=True)
class Marks:
    """The marks of n values.

    Attributes
    ----------
    forms : numpy.ndarray of shape (n,), int64
        Hashes of whole values, words in their order.
    letters : numpy.ndarray of shape (n,), int64
        Hashes of whole values without the spaces between words; 0 where they are not known.
    sounds : numpy.ndarray of shape (n,), int64
        What they sound like, see `embed.spelling.sounds_of`; 0 where it is not known.
    offsets : numpy.ndarray of shape (n + 1,), int64
    members : numpy.ndarray, int64
        The marks of value i are ``members[offsets[i]:offsets[i + 1]]``, ascending, each once.
    """

    forms: np.ndarray
    letters: np.ndarray
    sounds: np.ndarray
    offsets: np.ndarray
    members: np.ndarray

    @classmethod
    def none(cls, n_values: int) -> Marks:
        """Return the marks of values that nothing but their words tells apart."""
        unknown, offsets = np.zeros(n_values, np.int64), np.zeros(n_values + 1, np.int64)
        return cls(unknown, unknown, unknown, offsets, np.zeros(0, np.int64))

    def __len__(self) -> int:
        return len(self.forms)

    def take(self, rows: np.ndarray) -> Marks:
        whole = (array[rows] for array in (self.forms, self.letters, self.sounds))
        return Marks(*whole, *take_lists(self.offsets, self.members, rows))

    def of_letters(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the marks of letters, int64, and the value that has each."""
        # Those of the last group come last of all numbers.
        some = np.flatnonzero(self.members >= LETTERS_GROUP << BITS_OF_MEMBER)
        return self.members[some], np.searchsorted(self.offsets, some, "right") - 1

    @classmethod
    def concatenate(cls, parts: Sequence[Marks]) -> Marks:
        """Put the marks of several sets of values one after the other."""
        sizes = np.concatenate([np.diff(part.offsets) for part in parts])
        return cls(
            np.concatenate([part.forms for part in parts]),
            np.concatenate([part.letters for part in parts]),
            np.concatenate([part.sounds for part in parts]),
            offsets_of(sizes),
            np.concatenate([part.members[part.offsets[0] : part.offsets[-1]] for part in parts]),
        )
