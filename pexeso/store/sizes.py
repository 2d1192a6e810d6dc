"""Byte counts as people read them."""

_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB")


def format_bytes(n_bytes: int) -> str:
    """Write a number of bytes with one decimal in the largest unit that keeps it at 1 or more.

    Parameters
    ----------
    n_bytes
        Number of bytes, 0 or more.
    """
    if n_bytes < 1024:
        return f"{n_bytes} byte" if n_bytes == 1 else f"{n_bytes} bytes"
    step = min((n_bytes.bit_length() - 1) // 10, len(_UNITS) - 1)
    return f"{n_bytes / 1024**step:.1f} {_UNITS[step]}"
