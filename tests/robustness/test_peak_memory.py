"""The memory of a process is its own: what the one that started it has does not count."""

import os
import subprocess
import sys

from peak_memory import peak_bytes


def test_a_child_does_not_begin_with_what_its_parent_has() -> None:
    held = b"x" * (300 << 20)
    program = (
        "import sys; sys.path.insert(0, sys.argv[1]); from peak_memory import peak_bytes; "
        "print(peak_bytes())"
    )
    command = [sys.executable, "-c", program, os.path.dirname(os.path.dirname(__file__))]
    peak = int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert 1 << 20 < peak < 100 << 20
    assert peak_bytes() > len(held)
    assert peak_bytes(os.getpid()) >= len(held)
