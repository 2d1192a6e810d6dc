"""What the tests of the examples share."""

import sys
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parent.parent.parent / "examples"

# The examples are no part of the installed packages.
if str(EXAMPLES) not in sys.path:
    sys.path.append(str(EXAMPLES))
