"""How much memory a lake takes on a device, and the largest scale at which it fits."""

from __future__ import annotations

import os
from pathlib import Path

import torch

from benchmarks.datasets.calibrated import CalibratedModel
from benchmarks.memory import number_in

SHARES = (1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01)
"""Of the scale asked for, tried in turn."""

POSTINGS_A_VALUE = 1.45
VALUES_OF_COLUMNS = 4 * POSTINGS_A_VALUE + 1
"""Bytes a value that the values of each column take, in int32, and their offsets.

A kernel that does all of a search by itself reads none of them.
"""

RESERVE_BYTES = 5 << 30
"""What searches, batches and single pieces of brute force need beside the lake."""


def bytes_a_value(dimensions: int, n_coordinates: int) -> float:
    """Return the bytes that a value takes on the device when the lake is built.

    Its vector in float32, ``4 d``; one byte a mapped coordinate; two float32 corners a coordinate
    for 64 values, and a fifteenth more for the coarser levels; the offset of its columns in int64,
    8; and its columns in int32.
    """
    padded = n_coordinates + -n_coordinates % 8
    return 4 * dimensions + padded + 2 * 4 * padded / 64 * 16 / 15 + 8 + 4 * POSTINGS_A_VALUE


def building_bytes(dimensions: int, n_coordinates: int, n_values: int) -> float:
    """Return the most memory that building one partition needs, in bytes.

    The other partitions and the vectors of its own are not included.

    Ordering rows takes ``4 P + 64`` bytes each and postings 70 each, one after the other; each with
    half a GiB for pieces (`benchmarks.gpu.building.build_from_pieces`). The partition's own vectors
    are made after that.
    """
    return max(
        0.0, max(4 * n_coordinates + 64, 70 * POSTINGS_A_VALUE) - 4 * dimensions
    ) * n_values + (1 << 29)


def free_bytes(device: torch.device) -> int:
    """Return the memory that is free, on the device or on the host."""
    if device.type == "cuda":
        # Of what the allocator keeps for later, pieces that are in use in part are not free.
        torch.cuda.empty_cache()
        return torch.cuda.mem_get_info(device)[0]
    try:
        return number_in(Path("/proc/meminfo"), "MemAvailable") * 1024
    except OSError:  # no Linux: what is free now, without what the system could give back
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES")


def fitting_scale(
    model: CalibratedModel,
    scale: float,
    n_coordinates: int,
    partition_values: int,
    free: int,
    *,
    values_of_columns: bool = False,
) -> float | None:
    """Return the largest scale at which a lake fits, or None where none does."""
    for share in SHARES:
        n_values = round(model.n_values * scale * share)
        value_bytes = bytes_a_value(model.dimensions, n_coordinates) + (
            VALUES_OF_COLUMNS if values_of_columns else 0
        )
        held = n_values * value_bytes
        building = building_bytes(model.dimensions, n_coordinates, min(n_values, partition_values))
        if held + building + RESERVE_BYTES <= free:
            return scale * share
    return None
