"""The dictionary: from the text of a token to its number in the global order.

Texts are kept sorted, and found by a binary search that takes the same step for all tokens of a query at once: log2(n) takes of an Arrow
array that may be memory-mapped, and nothing to load or to build when an index is opened.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.store.texts import take_texts

UNKNOWN = -1


@dataclass(frozen=True)
class Dictionary:
    """Texts and the numbers of their tokens.

    Attributes
    ----------
    texts : pa.LargeStringArray (n,)
        Distinct, ascending by code point.
    numbers : int32 or int64 (n,)
        The token's place in the global order.
    """

    texts: pa.LargeStringArray
    numbers: np.ndarray

    def __len__(self) -> int:
        return len(self.texts)

    def find(self, tokens: pa.Array) -> np.ndarray:
        """Give the numbers of tokens.

        Parameters
        ----------
        tokens : pa.StringArray or pa.LargeStringArray (q,)
            Without nulls.

        Returns
        -------
        int64 (q,)
            `UNKNOWN` where the dictionary has no such token.

        Raises
        ------
        IndexCorruptError
            A text that is looked at leads out of its file.

        Examples
        --------
        >>> dictionary = Dictionary(pa.array(["lima", "oslo"], pa.large_string()), np.array([5, 3]))
        >>> dictionary.find(pa.array(["oslo", "rome"])).tolist()
        [3, -1]
        """
        wanted = tokens.cast(pa.large_string())
        numbers = np.full(len(wanted), UNKNOWN, np.int64)
        if not len(self.texts) or not len(wanted):
            return numbers
        # Invariant: texts before `low` are less than what is wanted, those from `high` on are not.
        low, high = np.zeros(len(wanted), np.int64), np.full(len(wanted), len(self.texts))
        for _ in range(len(self.texts).bit_length()):
            middle = np.minimum((low + high) // 2, len(self.texts) - 1)
            less = pc.less(take_texts(self.texts, middle), wanted).to_numpy(zero_copy_only=False)
            open_still = low < high
            low = np.where(open_still & less, middle + 1, low)
            high = np.where(open_still & ~less, middle, high)
        place = np.minimum(low, len(self.texts) - 1)
        found = pc.equal(take_texts(self.texts, place), wanted).to_numpy(zero_copy_only=False)
        numbers[found] = self.numbers[place[found]]
        return numbers
