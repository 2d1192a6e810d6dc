"""Program that searches a store in a process of its own and reports its anonymous memory.

The peak during the search is reported. Mapped files are not part of it.

``python memory_worker.py FOLDER BUDGET QUERY_VALUES MAX_DISTANCE`` prints one JSON object.
"""

import json
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [path for path in (str(ROOT), str(ROOT / "tests")) if path not in sys.path]

import numpy as np  # noqa: E402
from searching_stores import SmallStore, query_of, scan_of  # noqa: E402

from pexeso.engine.options import PartitionLayoutOptions  # noqa: E402
from pexeso.options import SearchOptions  # noqa: E402
from pexeso.semantic.executor import search_store  # noqa: E402
from pexeso.store.arrays import open_array  # noqa: E402

OPTIONS = PartitionLayoutOptions(map="projection", n_axes=8)


class FilesStore(SmallStore):
    """The files that `SmallLake.store` wrote, and nothing of them in memory."""

    def __init__(self, folder: Path) -> None:
        numbers = sorted(int(path.name) for path in folder.iterdir())
        parts = []
        for number in numbers:
            arrays = {path.stem: open_array(path) for path in (folder / str(number)).glob("*.npy")}
            ids = arrays["column_ids"].tolist()
            parts.append(
                {
                    "arrays": arrays,
                    "tables": [f"t{column_id:04}" for column_id in ids],
                    "labels": ["c"] * len(ids),
                }
            )
        super().__init__(parts)
        self.path = folder


def anonymous_bytes() -> int:
    """Memory of this process that is no file's."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon"))


def main(folder: str, budget: str, n_values: str, max_distance: str) -> None:
    store = FilesStore(Path(folder))
    scan = scan_of(store, OPTIONS, memory_budget=int(budget) or None)
    stored = store.partition(0)["vectors"]
    rows = np.random.default_rng(2).normal(size=(int(n_values), stored.shape[1]))
    vectors = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    vectors[:400] = stored[: len(vectors[:400])]
    query = query_of(vectors, [1] * len(vectors), [str(number) for number in range(len(vectors))])
    options = SearchOptions(max_distance=float(max_distance), min_joinability=1e-9)
    search_store(
        scan, [query_of(vectors[:4], [1] * 4)], [options]
    )  # whatever is loaded at first use
    before, done, peak = anonymous_bytes(), threading.Event(), [0]

    def watch() -> None:
        while not done.wait(0.002):
            peak[0] = max(peak[0], anonymous_bytes() - before)

    watcher = threading.Thread(target=watch)
    watcher.start()
    started = time.perf_counter()
    [(hits, stats)] = search_store(scan, [query], [options])
    seconds = time.perf_counter() - started
    done.set()
    watcher.join()
    report = {
        "peak": peak[0],
        "columns": len(hits),
        "candidates": stats.candidates,
        "seconds": round(seconds, 2),
    }
    matched = max((hit.matched for hit in hits), default=0)
    sys.stdout.write(json.dumps({**report, "matched": matched}) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
