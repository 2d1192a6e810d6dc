"""The inverted index in CSR form: values to columns, and columns to values.

The paper's posting list hangs on a leaf cell and names columns and their vectors there (section 5). With the vectors in cell order a cell
is a run of rows, so the columns of each row are all that is needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch

from pexeso.engine.arrays import offsets_of


@dataclass(frozen=True)
class Csr:
    """Rows of column numbers: row i is ``members[offsets[i]:offsets[i + 1]]``.

    Attributes
    ----------
    offsets : int64 (n + 1,)
    members : int32 (offsets[-1],)
    """

    offsets: torch.Tensor
    members: torch.Tensor

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @cached_property
    def sizes(self) -> torch.Tensor:
        """Row sizes, int64 (n,)."""
        return self.offsets[1:] - self.offsets[:-1]

    def sizes_of(self, rows: torch.Tensor) -> torch.Tensor:
        """Sizes of some rows; does not read the others' offsets."""
        return self.offsets[rows + 1] - self.offsets[rows]


def csr_from_pairs(rows: torch.Tensor, members: torch.Tensor, n_rows: int) -> Csr:
    """Build a CSR of the distinct (row, member) pairs, members ascending within a row.

    Parameters
    ----------
    rows, members : int64 (n,), not negative
    n_rows : int

    Examples
    --------
    >>> csr = csr_from_pairs(torch.tensor([1, 0, 1, 1]), torch.tensor([7, 5, 2, 7]), 3)
    >>> csr.offsets.tolist(), csr.members.tolist()
    ([0, 1, 3, 3], [5, 2, 7])
    """
    width = int(members.max()) + 1 if len(members) else 1
    keys = torch.unique(rows * width + members)
    kept_rows = torch.div(keys, width, rounding_mode="floor")
    sizes = torch.bincount(kept_rows, minlength=n_rows)
    return Csr(offsets_of(sizes), (keys - kept_rows * width).int())


def transpose(csr: Csr, n_columns: int) -> Csr:
    """Swap rows and members."""
    rows = torch.repeat_interleave(torch.arange(len(csr), device=csr.offsets.device), csr.sizes)
    return csr_from_pairs(csr.members.long(), rows, n_columns)
