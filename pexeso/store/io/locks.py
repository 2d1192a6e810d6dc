"""Locks between processes of one machine.

A lock ends with the process that holds it. Not every file system supports locks.
"""

import fcntl

SHARED, EXCLUSIVE = fcntl.LOCK_SH, fcntl.LOCK_EX


def lock(descriptor: int, kind: int, *, wait: bool = False) -> bool | None:
    """Lock an open file or folder until its descriptor is closed.

    Returns
    -------
    bool or None
        False where another has it and this one does not wait, None where this file system has no
        locks.
    """
    try:
        fcntl.flock(descriptor, kind if wait else kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True
