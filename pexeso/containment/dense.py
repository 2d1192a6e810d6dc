"""The same candidates without tables: every signature compared with the query's, by tensor operations on any device."""

from __future__ import annotations

import numpy as np
import torch

from pexeso.errors import DeviceError

_VALUES_AT_ONCE = 1 << 26


def dense_hits(
    signatures: torch.Tensor, query: np.ndarray, ranges: np.ndarray, settings: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Find the sets that agree with the query in a whole band, as `bands.band_hits` does.

    Time O(s m); at most 64 MiB beside the signatures.

    Parameters
    ----------
    signatures : torch.Tensor int32 (s, m)
        The bits of uint32; on any device.
    query : uint32 (m,)
    ranges : int64 (p, 3)
    settings : int64 (p, 2)

    Returns
    -------
    (int64 (c,), int64 (c,))
        Rows ascending, and in how many bands each agrees.

    Examples
    --------
    >>> stored = torch.tensor([[1, 2, 3, 4], [1, 2, 0, 0], [9, 2, 3, 9]], dtype=torch.int32)
    >>> dense_hits(stored, np.array([1, 2, 3, 4], np.uint32), np.array([[0, 3, 0]]), np.array([[2, 2]]))
    (array([0, 1]), array([2, 1]))
    """
    wanted = torch.from_numpy(np.array(query).view(np.int32)).to(signatures.device)
    at_once = max(1, _VALUES_AT_ONCE // signatures.shape[1])
    found, hits = [], []
    for (_, end, least), (bands, rows) in zip(ranges.tolist(), settings.tolist(), strict=True):
        for begin in range(least, end, at_once):
            part = signatures[begin : min(begin + at_once, end), : bands * rows]
            agree = (part == wanted[: bands * rows]).view(len(part), bands, rows).all(2).sum(1)
            some = agree.nonzero().squeeze(1)
            found.append((some + begin).cpu().numpy())
            hits.append(agree[some].cpu().numpy())
    if not found:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    rows_found = np.concatenate(found)
    order = np.argsort(rows_found)
    return rows_found[order], np.concatenate(hits)[order]


def on_device(signatures: np.ndarray, device: str) -> torch.Tensor:
    """Copy signatures uint32 (s, m) to a device, as int32.

    Raises
    ------
    DeviceError
        There is no such device, or its memory does not suffice.
    """
    try:
        return torch.from_numpy(np.array(signatures).view(np.int32)).to(device)
    except (RuntimeError, AssertionError) as error:
        raise DeviceError(
            f"Signatures of {signatures.nbytes:,} bytes cannot be put on the device {device!r}: {str(error).splitlines()[0]}"
        ) from error
