"""Programs that tests run in a process of their own, to the end."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any


def ran(
    command: Sequence[Any], variables: Mapping[str, str] | None = None, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Run a command, with some variables of its environment set, and return how it ended."""
    if variables is not None:
        options["env"] = {**os.environ, **variables}
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)
