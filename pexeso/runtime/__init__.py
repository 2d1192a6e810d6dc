"""Compiled loops, scratch buffers, formatting, logs and progress: what all other packages use."""

import os

# Where colorama is installed, numba has it write an escape to a terminal when the process ends.
os.environ.setdefault("NUMBA_DISABLE_ERROR_MESSAGE_HIGHLIGHTING", "1")
