"""The most memory that a process has had, as the system counts it.

Not what `resource.getrusage` tells: a child begins there with what its parent had when it was
started, so that a large parent hides what a child takes, or makes it look large.
"""

import os
from pathlib import Path


def peak_bytes(process_id: int | None = None) -> int:
    """Read the highest resident size of a process that runs; of this one by default."""
    lines = (
        Path(f"/proc/{process_id or os.getpid()}/status").read_text(encoding="ascii").splitlines()
    )
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))
