"""What opening an index takes beside its store: whether this version can search it; a device."""

from __future__ import annotations

import logging
import warnings
from functools import cache
from typing import TYPE_CHECKING

from pexeso.build.parts.metadata import require_contents, stored_normaliser
from pexeso.engine.vector_space import READ_LAYOUTS
from pexeso.errors import DeviceError, IndexVersionError, InputError
from pexeso.lake.normalise.normaliser import VERSION as NORMALISER_VERSION
from pexeso.lake.normalise.normaliser import Normaliser
from pexeso.options import DEVICES
from pexeso.store.local.reader import Store

if TYPE_CHECKING:
    import torch

_log = logging.getLogger("pexeso.index")


def require_searchable(store: Store) -> None:
    """Raise an error if this version cannot search the index.

    Reasons are another layout, another normaliser, or a manifest without the required entries.
    """
    _require_layout(store)
    require_contents(store.manifest)
    normaliser_of(store)


def choose_device(name: str) -> torch.device:
    """Find the device of that name, such as ``auto``, ``cpu`` or ``cuda:1``."""
    import torch

    if not isinstance(name, str):
        raise InputError(
            f"The device must be one of {', '.join(DEVICES)} or cuda:NUMBER. Got {name!r} instead."
        )
    if name == "auto":
        n_devices, reason = _cuda_devices()
        if n_devices:
            return torch.device("cuda")
        _tell_of_the_cpu(reason)
        return torch.device("cpu")
    kind, _, number = name.partition(":")
    if kind not in DEVICES or (number and (kind != "cuda" or not number.isdigit())):
        raise InputError(
            f"The device must be one of {', '.join(DEVICES)} or cuda:NUMBER. Got {name!r} instead."
        )
    if kind == "cuda":
        n_devices, reason = _cuda_devices()
        if int(number or 0) >= n_devices:
            raise DeviceError(
                f"The device {name} cannot be used: {reason}. Use the device auto or cpu, or "
                "mend the driver."
                if reason
                else f"There is no device {name}: torch sees {n_devices} CUDA devices. "
                "Use the device auto or cpu, or install a torch with CUDA."
            )
    return torch.device(name)


def _cuda_devices() -> tuple[int, str]:
    """Return how many CUDA devices there are, and what is wrong with their driver, or ''."""
    import torch

    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            n_devices = torch.cuda.device_count() if torch.cuda.is_available() else 0
    except (RuntimeError, OSError) as error:
        return 0, _driver_says(str(error))
    return n_devices, "" if n_devices or not caught else _driver_says(str(caught[-1].message))


def _driver_says(text: str) -> str:
    return f"the CUDA driver does not work ({text.strip().partition(chr(10))[0].rstrip('.')})"


@cache
def _tell_of_the_cpu(reason: str) -> None:
    """Log once in a process that `auto` found no CUDA device, or why it can use none."""
    if reason:
        _log.warning("Searches run on the CPU: %s.", reason)
    else:
        _log.info("No CUDA device was found, so searches run on the CPU.")


def _require_layout(store: Store) -> None:
    """Refuse an index whose partitions were laid out by another version."""
    layout = store.manifest.options.get("layout", 1)
    if layout not in READ_LAYOUTS:
        raise IndexVersionError(
            f"The index '{store.path}' was written by {store.manifest.written_by} with "
            f"partitions of layout {layout}, and this version "
            f"reads layout {' and '.join(map(str, READ_LAYOUTS))}. Build it again with this "
            "version, or search it with the one that wrote it."
        )


def normaliser_of(store: Store) -> Normaliser:
    """Return the normaliser that an index was built with."""
    try:
        normaliser = stored_normaliser(store)
        same = normaliser.fingerprint == store.manifest.fingerprints["normaliser"]
    except InputError:
        same = False
    if not same:
        raise IndexVersionError(
            f"The index '{store.path}' was written by {store.manifest.written_by} with other "
            "rules for normalising values than this version's "
            f"(version {NORMALISER_VERSION}). Build it again with this version, or search it "
            "with the one that wrote it."
        )
    return normaliser
