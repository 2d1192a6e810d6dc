"""The dictionary: from the text of a token to its number in the global order.

Texts are kept sorted, and found by a binary search that takes the same step for all tokens of a
query at once: log2(n) takes of an Arrow array that may be memory-mapped, and nothing to build when
an index is opened. From a disk each of these takes would wait for pages that only it uses. So every
`STRIDE`-th text, its head, stands in a file of its own too, which is read as a whole once: the
search among the heads leaves each token a stretch of neighbouring texts, and the pages of all
stretches are asked for together, as a B-tree of two levels would have it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.runtime.jit import loops_pay
from pexeso.sets.overlap.index.paging import MappedRuns
from pexeso.store.texts import take_texts

UNKNOWN = -1
STRIDE = 128
"""Texts between two heads: those of a stretch, their offsets and their numbers lie on one or two
pages each."""

_LETTERS = 256
"""Bytes asked for behind a stretch, so that the text after it, which may be the one wanted, is
mostly there too."""

_WORK_OF_A_TEXT = 64
"""What a look-up by Arrow's steps costs for each text, in entries of posting lists
(`pexeso.runtime.jit`)."""


@dataclass(frozen=True)
class Heads:
    """Every `STRIDE`-th text of a dictionary, the first one first.

    Attributes
    ----------
    texts : pa.LargeStringArray (h,)
    positions : int64 (h + 1,)
        Where each begins among the letters of all texts, and where these end.
    pages : MappedRuns
        Of what is read behind the heads: ``texts``, the bytes of the file of all texts, and
        ``numbers``.
    offsets_at, letters_at : int
        Bytes of that file before the offsets of all texts, and before their letters.
    """

    texts: pa.LargeStringArray
    positions: np.ndarray
    pages: MappedRuns = field(default_factory=lambda: MappedRuns({}), compare=False)
    offsets_at: int = 0
    letters_at: int = 0

    def want(self, stretches: np.ndarray) -> None:
        """Request the pages of stretches, the texts from one head to the next, all together.

        The pages hold offsets, letters and numbers of the texts.

        Parameters
        ----------
        stretches : int64 (q,)
            Numbers of heads.
        """
        if not self.pages.requests_pages:
            return
        stretches = np.unique(stretches)
        rows = STRIDE * stretches
        self.pages.want("numbers", rows, rows + STRIDE + 1)
        offsets, letters = self.offsets_at + 8 * rows, self.letters_at + self.positions[stretches]
        begins = np.concatenate([offsets, letters])
        ends = np.concatenate(
            [offsets + 8 * (STRIDE + 2), self.letters_at + self.positions[stretches + 1] + _LETTERS]
        )
        self.pages.want("texts", begins, ends)


@dataclass(frozen=True)
class Dictionary:
    """Texts and the numbers of their tokens.

    Attributes
    ----------
    texts : pa.LargeStringArray (n,)
        Distinct, ascending by code point.
    numbers : int32 or int64 (n,)
        The token's place in the global order.
    heads : Heads or None
        Where texts and numbers are mapped files.
    """

    texts: pa.LargeStringArray
    numbers: np.ndarray
    heads: Heads | None = None

    def __len__(self) -> int:
        return len(self.texts)

    def find(self, tokens: pa.Array) -> np.ndarray:
        """Return the numbers of tokens.

        Parameters
        ----------
        tokens : pa.StringArray or pa.LargeStringArray (q,)
            Without nulls.

        Returns
        -------
        int64 (q,)
            `UNKNOWN` where the dictionary has no such token.
        """
        wanted_texts = tokens.cast(pa.large_string())
        numbers = np.full(len(wanted_texts), UNKNOWN, np.int64)
        if not len(self.texts) or not len(wanted_texts):
            return numbers
        if not self._waits_for_pages() and loops_pay(_WORK_OF_A_TEXT * len(wanted_texts)):
            from pexeso.sets.overlap.loops import find_texts

            positions = find_texts(self.texts, wanted_texts)
            known = positions >= 0
            numbers[known] = self.numbers[positions[known]]
            return numbers
        position = np.minimum(
            _first_not_less(self.texts, wanted_texts, *self._stretches(wanted_texts)),
            len(self.texts) - 1,
        )
        equal = pc.equal(take_texts(self.texts, position), wanted_texts).to_numpy(
            zero_copy_only=False
        )
        numbers[equal] = self.numbers[position[equal]]
        return numbers

    def _waits_for_pages(self) -> bool:
        """Begin a look-up, and return whether pages of the files are to be requested.

        They are requested if some were missing recently.
        """
        if self.heads is None:
            return False
        self.heads.pages.restart()
        return self.heads.pages.requests_pages

    def _stretches(self, wanted_texts: pa.LargeStringArray) -> tuple[np.ndarray, np.ndarray]:
        """Return the bounds of the rows that may hold each text.

        Without heads these are all rows. Otherwise the head limits them, and their pages are
        requested.
        """
        low, high = (
            np.zeros(len(wanted_texts), np.int64),
            np.full(len(wanted_texts), len(self.texts)),
        )
        if self.heads is None:
            return low, high
        after = _first_not_less(
            self.heads.texts, wanted_texts, low, np.full(len(wanted_texts), len(self.heads.texts))
        )
        stretches = np.maximum(after - 1, 0)
        self.heads.want(stretches)
        return STRIDE * stretches, np.minimum(STRIDE * after, high)


def heads_of(texts: pa.LargeStringArray) -> Heads:
    """Take the heads of texts that are in memory."""
    _, offsets, _ = texts.buffers()
    positions = (
        np.frombuffer(offsets, np.int64)[texts.offset :][: len(texts) + 1]
        if len(texts)
        else np.zeros(1, np.int64)
    )
    rows = np.arange(0, len(texts), STRIDE)
    return Heads(
        texts.take(pa.array(rows)), np.append(positions[rows], positions[-1]) - positions[0]
    )


def _first_not_less(
    texts: pa.LargeStringArray, wanted_texts: pa.LargeStringArray, low: np.ndarray, high: np.ndarray
) -> np.ndarray:
    """Find the first row whose text is not less than the wanted text, by bisection.

    The search covers rows `low` to `high`, and returns `high` if there is no such row.
    """
    # Invariant: texts before `low` are less than what is wanted, those from `high` on are not.
    for _ in range(int((high - low).max()).bit_length()):
        middle = np.minimum((low + high) // 2, len(texts) - 1)
        less = pc.less(take_texts(texts, middle), wanted_texts).to_numpy(zero_copy_only=False)
        open_still = low < high
        low, high = (
            np.where(open_still & less, middle + 1, low),
            np.where(open_still & ~less, middle, high),
        )
    return low
