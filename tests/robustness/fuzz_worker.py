"""Program that runs one fuzz target in a process of its own.

The inputs come from hypothesis or atheris. The findings are reported as one line of JSON.

    python fuzz_worker.py {hypothesis|atheris} TARGET N_INPUTS SEED FOLDER [INDEX]

Inputs that end in anything but an error of ours are kept in FOLDER/findings. FOLDER/now holds the
input being tried, so that one that kills or hangs the process can be told by whoever waits for it.
"""

import json
import os
import resource
import shutil
import signal
import sys
import tempfile
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

SECONDS_AN_INPUT = 20
BYTES_AN_INPUT = 1 << 30
BYTES_OF_ADDRESSES = 8 << 30
"""More than the program itself maps, in this process: what asks for more gets none."""
MAX_FINDINGS = 40
ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(Path(__file__).resolve().parent)]

from peak_memory import peak_bytes  # noqa: E402
from sandbox import Sandbox  # noqa: E402

INSTRUMENTED = ["pexeso.lake", "pexeso.results.query", "pexeso.store", "pexeso.options"]


class HangError(BaseException):
    """An input took too long; no Exception, so that nothing swallows it."""


class TookTooMuchError(AssertionError):
    """An input took more memory than any may."""


def readable_of(index: str | None) -> list[Path]:
    """Return an index and its lake, which a trial may read."""
    return [Path(index).resolve().parent] if index else []


class Trial:
    """Tries inputs one after the other and keeps count of how they end."""

    def __init__(
        self, name: str, folder: Path, index: str | None, *, moves_in: bool = False
    ) -> None:
        from fuzz_targets import INDEX, TARGETS, WITH_INDEX, allowed

        self.run, self.allowed = TARGETS[name].run, allowed
        self.folder = folder
        self.sandbox = Sandbox(Path(tempfile.mkdtemp(dir=folder)), readable_of(index))
        self.place = self.sandbox.folder
        self.now = open(folder / "now", "w+b", buffering=0)  # noqa: SIM115  as long as the process
        self.n_inputs = self.n_refused = self.peak_bytes = 0
        self.findings: dict[str, str] = {}
        self.clean = name in (*WITH_INDEX, "holding")
        self._index = (INDEX, index)
        self._make_place()
        if moves_in:
            self.sandbox.move_in()
        if self.clean:
            # What is loaded and opened once is no input's time, and no memory of one.
            with suppress(Exception):
                self.run(b"", self.place)

    def _make_place(self) -> None:
        shutil.rmtree(self.place, ignore_errors=True)
        self.place.mkdir()
        name, index = self._index
        if index and self.clean:
            (self.place / name).symlink_to(Path(index).resolve())

    def __call__(self, data: bytes) -> None:
        self.n_inputs += 1
        self.now.seek(0)
        self.now.truncate()
        self.now.write(data)
        if self.clean:
            self._make_place()
        try:
            with self._bounded_memory(), self.sandbox.watched():
                self.run(data, self.place)
        except Exception as error:
            if self.allowed(error):
                self.n_refused += 1
            else:
                self._keep(error, data)
        except HangError as error:
            self._keep(error, data)

    @contextmanager
    def _bounded_memory(self) -> Iterator[None]:
        """Require that the resident memory does not grow by more than an input may take."""
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak begins anew
        before = peak_bytes()
        try:
            yield
        finally:
            peak = peak_bytes()
            self.peak_bytes = max(self.peak_bytes, peak)
        if peak - before > BYTES_AN_INPUT:
            raise TookTooMuchError(f"{peak - before:,} bytes")

    def _keep(self, error: BaseException, data: bytes) -> None:
        frames = [
            frame
            for frame in traceback.extract_tb(error.__traceback__)
            if "/site-packages/" not in frame.filename
        ]
        last = frames[-1] if frames else None
        key = (
            f"{type(error).__name__} {Path(last.filename).name}:{last.lineno}"
            if last
            else type(error).__name__
        )
        if key in self.findings or len(self.findings) >= MAX_FINDINGS:
            return
        self.findings[key] = f"{error!r}"[:300]
        findings = self.folder / "findings"
        findings.mkdir(exist_ok=True)
        (findings / f"{len(self.findings):03d}").write_bytes(data)
        (findings / f"{len(self.findings):03d}.txt").write_text(
            "".join(traceback.format_exception(error))[-6000:], errors="replace"
        )

    def summary(self) -> dict[str, object]:
        counts = {"inputs": self.n_inputs, "refused": self.n_refused}
        return {**counts, "findings": self.findings, "peak_bytes": self.peak_bytes}


def by_hypothesis(trial: Trial, name: str, n_inputs: int, seed: int) -> None:
    from fuzz_strategies import seeds_of, strategy_of
    from hypothesis import HealthCheck, Phase, Verbosity, given, settings
    from hypothesis import seed as seeded

    def stop(*_: object) -> None:
        raise HangError(f"more than {SECONDS_AN_INPUT} seconds")

    signal.signal(signal.SIGALRM, stop)
    for data in seeds_of(name)[:n_inputs]:
        trial(data)

    @seeded(seed)
    @settings(
        max_examples=max(1, n_inputs - trial.n_inputs),
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
        verbosity=Verbosity.quiet,
    )
    @given(strategy_of(name))
    def attempt(data: bytes) -> None:
        if trial.n_inputs >= n_inputs:
            return
        signal.setitimer(signal.ITIMER_REAL, SECONDS_AN_INPUT)
        try:
            trial(data)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)

    attempt()


def by_atheris(trial: Trial, name: str, n_inputs: int, seed: int) -> None:
    import atheris
    from fuzz_strategies import seeds_of

    corpus = trial.folder / "corpus"
    corpus.mkdir(exist_ok=True)
    for number, data in enumerate(seeds_of(name)):
        (corpus / f"{number:03d}").write_bytes(data)
    # Memory is watched by whoever started this process: atheris takes what that one once had for
    # ours.
    options = {"runs": n_inputs, "seed": seed + 1, "rss_limit_mb": 0, "timeout": SECONDS_AN_INPUT}
    options |= {
        "max_len": 4096,
        "artifact_prefix": f"{trial.folder}/killed-",
        "verbosity": 0,
        "print_final_stats": 0,
    }

    def attempt(data: bytes) -> None:
        trial(data)
        if trial.n_inputs >= n_inputs:
            tell(trial)

    atheris.Setup(
        [sys.argv[0], *(f"-{key}={value}" for key, value in options.items()), str(corpus)], attempt
    )
    atheris.Fuzz()


def tell(trial: Trial) -> None:
    """Write the summary and end; atheris ends the process by itself, and without a word."""
    print(json.dumps(trial.summary()), flush=True)  # noqa: T201  what the caller reads
    shutil.rmtree(trial.place, ignore_errors=True)
    os._exit(0)


def main(engine: str, name: str, n_inputs: str, seed: str, folder: str, index: str = "") -> None:
    warnings.simplefilter("ignore")  # as the command line does
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (BYTES_OF_ADDRESSES, hard))
    if engine == "atheris":
        import atheris

        with atheris.instrument_imports(include=INSTRUMENTED, enable_loader_override=False):
            trial = Trial(name, Path(folder), index or None, moves_in=True)
        by_atheris(trial, name, int(n_inputs), int(seed))
    else:
        trial = Trial(name, Path(folder), index or None, moves_in=True)
        by_hypothesis(trial, name, int(n_inputs), int(seed))
    tell(trial)


if __name__ == "__main__":
    main(*sys.argv[1:])
