"""The inverted index in CSR form: values to columns, and columns to values.

The paper's posting list hangs on a leaf cell and names columns and their vectors there (section 5).
With the vectors in cell order a cell is a run of rows, so the columns of each row are all that is
needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch

from pexeso.engine.arrays import offsets_of
from pexeso.errors import IndexCorruptError

_ROWS_AT_ONCE = 1 << 20

_WAY_OUT = "'pexeso check' lists the damage; restore the index, or build it again."


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
        """Row sizes, int64 (n,); errors as for `sizes_of`."""
        return self._sizes(self.offsets[:-1], self.offsets[1:])

    def sizes_of(self, rows: torch.Tensor) -> torch.Tensor:
        """Sizes of some rows; does not read the others' offsets."""
        return self._sizes(self.offsets[rows], self.offsets[rows + 1])

    def require_sound(self, n_members: int) -> None:
        """Raise IndexCorruptError if a number leads out of the index.

        Every number is read. The check is for programs that do not check bounds themselves.

        Parameters
        ----------
        n_members : int
            Members must be less.

        Notes
        -----
        Beside what is there 32 MiB at most are held.
        """
        for begin in range(0, len(self), _ROWS_AT_ONCE):
            part = self.offsets[begin : begin + _ROWS_AT_ONCE + 1]
            self._sizes(part[:-1], part[1:])
        for part in torch.split(self.members, 4 * _ROWS_AT_ONCE) if len(self.members) else ():
            smallest, largest = (int(end) for end in part.aminmax())
            if smallest < 0 or largest >= n_members:
                raise IndexCorruptError(
                    "An inverted index in a partition has a member "
                    f"{smallest if smallest < 0 else largest}, where 0 to {n_members - 1} must be: "
                    f"{_WAY_OUT}"
                )

    def _sizes(self, first: torch.Tensor, last: torch.Tensor) -> torch.Tensor:
        if bool(((first < 0) | (last < first) | (last > len(self.members))).any()):
            raise IndexCorruptError(
                f"The offsets of an inverted index in a partition lead out of it: {_WAY_OUT}"
            )
        return last - first


def csr_from_pairs(rows: torch.Tensor, members: torch.Tensor, n_rows: int) -> Csr:
    """Build a CSR of the distinct (row, member) pairs, members ascending within a row.

    Parameters
    ----------
    rows, members : int64 (n,), not negative
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
