"""Program that opens, searches and checks malicious indexes in bounded memory.

The indexes are tried one after the other. A line of JSON reports how each attempt ended.

python malicious_probe.py WHOLE_INDEX SUSPECT...
"""

import functools
import json
import os
import resource
import signal
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(Path(__file__).resolve().parent)]

from peak_memory import peak_bytes  # noqa: E402

from pexeso.build.diagnostics.info import check_index  # noqa: E402
from pexeso.errors import IndexCorruptError, PexesoError  # noqa: E402
from pexeso.index import Index, open_index  # noqa: E402
from pexeso.semantic.combined import search_combined  # noqa: E402

MEMORY_BYTES = 1 << 30
"""What the process may take beyond what it has after a search of a whole index."""

SECONDS = 30

OPENED: list[str] = []

_QUERY = ["Oslo", "rome", " MADRID ", None]
QUESTIONS: dict[str, Callable[[Index], object]] = {
    "search": lambda index: index.search(_QUERY, min_joinability=0.2).to_dict(explain=True),
    "best": lambda index: index.search(_QUERY, k=3).to_dict(explain=True),
    "exact": lambda index: index.search(_QUERY, exact=True, k=3).to_dict(),
    "explain": lambda index: index.explain(_QUERY, "cities.csv", "city").to_dict(),
    "overlap": lambda index: index.overlap(_QUERY, k=3).to_dict(explain=True),
    "contain": lambda index: index.contain(_QUERY, min_containment=0.1).to_dict(explain=True),
    "every way": lambda index: search_combined(index, _QUERY, k=3).to_dict(explain=True),
    "info": lambda index: index.info().to_dict(),
}


def watch(event: str, arguments: tuple) -> None:
    if event in ("open", "os.listdir", "os.scandir", "os.mkdir", "os.remove", "os.rename"):
        path = arguments[0]
        if isinstance(path, bytes | str):
            OPENED.append(os.fsdecode(path))
    elif event in ("os.system", "subprocess.Popen", "pickle.find_class", "exec", "socket.connect"):
        OPENED.append(f"({event})")


def ask(path: str) -> dict[str, str]:
    """Return how each question to an index ended:

    ``answer``, the name of an error of ours, or ``FOREIGN`` and what it was.
    """
    opened: list[Index] = []
    ended = {"check": attempt(lambda: require_whole(path))}
    refused = attempt(lambda: opened.append(open_index(path, device="cpu")))
    for name, question in QUESTIONS.items():
        ended[name] = attempt(functools.partial(question, opened[0])) if opened else refused
    ended["compiled"] = attempt(
        lambda: QUESTIONS["best"](open_index(path, device="cpu", kernel="compiled"))
    )
    return ended


def require_whole(path: str) -> None:
    kinds = [problem.kind for problem in check_index(path) if problem.is_failure]
    if kinds:
        raise IndexCorruptError(f"{kinds}")


def attempt(question: Callable[[], object]) -> str:
    signal.alarm(SECONDS)
    try:
        question()
    except PexesoError as error:
        return type(error).__name__
    except BaseException as error:
        return f"FOREIGN {error!r}"[:300]
    finally:
        signal.alarm(0)
    return "answer"


def main(whole: str, *suspects: str) -> None:
    warnings.simplefilter("ignore")
    before = ask(whole)  # brings everything that is brought once
    with open("/proc/self/statm", encoding="ascii") as file:
        used_bytes = int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (used_bytes + MEMORY_BYTES, used_bytes + MEMORY_BYTES))
    sys.addaudithook(watch)
    print(json.dumps({"path": whole, "ended": before}), flush=True)  # noqa: T201  what the caller reads
    for path in suspects:
        OPENED.clear()
        begun = time.monotonic()
        peak = peak_bytes()
        ended = ask(path)
        grown = peak_bytes() - peak
        outside = sorted({opened for opened in OPENED if not is_inside(opened, path)})
        report = {"path": path, "ended": ended, "outside": outside, "grown": grown}
        print(json.dumps({**report, "seconds": time.monotonic() - begun}), flush=True)  # noqa: T201


def is_inside(opened: str, index: str) -> bool:
    """Return whether a file may be opened.

    Allowed are files of the index, of Python and of the system's devices.
    """
    place = os.path.realpath(opened)
    program = (sys.prefix, sys.base_prefix, str(ROOT))
    folders = (os.path.realpath(index), *program, "/proc", "/sys", "/dev")
    return any(place == folder or place.startswith(f"{folder}/") for folder in folders)


if __name__ == "__main__":
    main(*sys.argv[1:])
