"""``python -m benchmarks.gpu``."""

import os
import sys

# Read when torch starts: a lake fills the device nearly whole, and segments of fixed size would
# leave gaps.
os.environ.setdefault("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True")

from benchmarks.gpu.command import main

sys.exit(main())
