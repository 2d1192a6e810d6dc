"""Programs that tests run in a process of their own, to the end."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any


def ran(
    command: Sequence[Any], variables: Mapping[str, str] | None = None, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Run a command, with some variables of its environment set, and return how it ended."""
    if variables is not None:
        options["env"] = {**os.environ, **variables}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.run(command, **{**pipes, "text": True, "check": False, **options})


def ran_pexeso(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run the command line in a process of its own."""
    return ran([sys.executable, "-m", "pexeso", *map(str, arguments)], **options)
