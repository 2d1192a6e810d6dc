"""What the Python processes that run Spark's tasks do besides the tasks."""

import gc
import sys

_n_frozen_modules = 0


def freeze_imports() -> None:
    """Spare this worker the search for garbage among all that it has imported.

    A worker of Spark looks for garbage after each task, and with torch imported that takes longer
    than most tasks of a small lake. Whatever is alive once a task has imported something is left
    out of the search from then on; later garbage is found as before.
    """
    global _n_frozen_modules
    if len(sys.modules) > _n_frozen_modules:
        _n_frozen_modules = len(sys.modules)
        gc.collect()  # first, or garbage of this task would stay for good
        gc.freeze()
