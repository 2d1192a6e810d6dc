"""Small tensor helpers that every part of the engine uses: CSR rows and ranges."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np
import torch


def as_tensor(array: np.ndarray, device: torch.device | str = "cpu") -> torch.Tensor:
    """Return a tensor over `array`, without a copy on the CPU.

    Index arrays are memory-mapped read-only; torch warns about such memory because it could be
    written through the tensor. The engine never writes to its inputs.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
        return torch.from_numpy(np.asarray(array)).to(device)


def offsets_of(sizes: torch.Tensor) -> torch.Tensor:
    """Return the CSR offsets of rows of the given sizes: int64 (n + 1,).

    Parameters
    ----------
    sizes : int64 (n,)
    """
    offsets = torch.zeros(len(sizes) + 1, dtype=torch.int64, device=sizes.device)
    torch.cumsum(sizes, 0, out=offsets[1:])
    return offsets


def expand_ranges(starts: torch.Tensor, sizes: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """List the members of every range, range by range.

    Parameters
    ----------
    starts, sizes : int64 (n,)
        Range i holds ``starts[i], ..., starts[i] + sizes[i] - 1``.

    Returns
    -------
    owner : int64 (sizes.sum(),)
        The range each member belongs to.
    member : int64 (sizes.sum(),)
    """
    owner = torch.repeat_interleave(torch.arange(len(sizes), device=sizes.device), sizes)
    first = offsets_of(sizes)[:-1]
    member = torch.arange(len(owner), device=sizes.device) - first[owner] + starts[owner]
    return owner, member


def expand_ranges_in_chunks(
    starts: torch.Tensor, sizes: torch.Tensor, chunk: int
) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Do as `expand_ranges`, at most `chunk` members at a time; a long range is cut."""
    offsets = offsets_of(sizes)
    total = int(offsets[-1])
    if 0 < total <= chunk:
        yield expand_ranges(starts, sizes)
        return
    for begin in range(0, total, chunk):
        position = torch.arange(begin, min(begin + chunk, total), device=sizes.device)
        owner = torch.searchsorted(offsets, position, right=True) - 1
        yield owner, position - offsets[owner] + starts[owner]


def run_lengths(sizes: torch.Tensor, limit: int) -> list[int]:
    """Split items into consecutive runs whose sizes sum to at most `limit` plus one item more.

    Parameters
    ----------
    sizes : int64 (n,)
    limit : int
        At least 1.

    Returns
    -------
    list of int
        How many items each run has.
    """
    before = torch.cumsum(sizes, 0) - sizes
    _, lengths = torch.unique_consecutive(
        torch.div(before, limit, rounding_mode="floor"), return_counts=True
    )
    return lengths.tolist()


def any_in_rows(flags: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
    """Return for every CSR row whether any of its flags is set: bool (n,).

    Parameters
    ----------
    flags : bool (offsets[-1],)
    offsets : int64 (n + 1,)
    """
    running = torch.zeros(len(flags) + 1, dtype=torch.int64, device=flags.device)
    torch.cumsum(flags, 0, dtype=torch.int64, out=running[1:])
    return running[offsets[1:]] > running[offsets[:-1]]
