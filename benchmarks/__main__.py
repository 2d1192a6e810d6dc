"""Start the command line: ``python -m benchmarks``."""

import os

# Read when torch starts: a lake may fill a GPU nearly whole, and segments of fixed size would leave
# gaps.
os.environ.setdefault("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True")

from benchmarks.cli import main

if __name__ == "__main__":
    main()
