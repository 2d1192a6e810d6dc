"""A task that makes a partition holds little more than what it writes, and nothing twice."""

import os
import subprocess
import sys
from pathlib import Path

from peak_memory import peak_bytes

from pexeso.build.workers import _ENVIRONMENT

N_VALUES = 600_000
MAX_BYTES_A_VALUE = 250


def make(folder: Path, n_values: int) -> int:
    """Make a partition of one column whose values are distinct; return how much the peak rose."""
    import numpy as np
    import pyarrow as pa

    from embed.lexical import create
    from pexeso.build.parts.base import Placed
    from pexeso.runtime.exchange import BucketWriter
    from pexeso.semantic.part.write import COLUMNS, POSTINGS, write_sparse_partition

    words = [f"{first}{last}" for first in "bdfgklmn" for last in ("ara", "elo", "inu", "oti")]
    numbers = np.random.default_rng(0).permutation(n_values)
    digits = numbers[:, None] >> np.arange(0, 20, 5) & 31
    values = [" ".join(map(words.__getitem__, row)) for row in digits.tolist()]
    rows = pa.table([np.zeros(n_values, np.int64), values, values], schema=POSTINGS)
    column = pa.table([[0], ["a"], ["b"]], schema=COLUMNS)
    for name, laid in (("postings", rows), ("columns", column)):
        with BucketWriter(folder / name / "part.arrow", 1, laid.schema) as writer:
            writer.add(laid, np.zeros(len(laid), np.int64))
    del values, rows, numbers, digits
    for name in ("model", "made"):
        (folder / name).mkdir()
    create().save(folder / "model")
    pa.default_memory_pool().release_unused()
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    before = peak_bytes()
    write_sparse_partition(
        Placed(folder, (0,), 1), 0, folder / "made", embedder_folder=folder / "model"
    )
    return peak_bytes() - before


def test_a_partition_takes_memory_for_what_it_holds(tmp_path):
    environment = {
        **os.environ,
        **_ENVIRONMENT,
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }
    command = [sys.executable, __file__, str(tmp_path)]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    assert 0 < int(done.stdout) < MAX_BYTES_A_VALUE * N_VALUES


if __name__ == "__main__":
    small = Path(sys.argv[1], "small")
    small.mkdir()
    make(small, 1000)  # what is loaded on first use is loaded now
    sys.stdout.write(str(make(Path(sys.argv[1]), N_VALUES)))
