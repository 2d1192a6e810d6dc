"""Check of the machine: what pexeso needs, what it could use, and how to get what is missing.

Nothing heavy is started: packages are imported, Java is asked for its version, Spark stays off.
"""

import importlib
import importlib.metadata
import importlib.util
import platform
import shutil
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pexeso.build.spark.java import find_java
from pexeso.errors import SparkError
from pexeso.runtime.extras import installation
from pexeso.runtime.system import available_memory, available_processors

MIN_PYTHON, END_PYTHON = (3, 11), (3, 15)
LOW_DISK_BYTES = 2 * 10**9
LOW_MEMORY_BYTES = 4 * 10**9

_REINSTALL = "Install pexeso again in this environment: pip install pexeso."


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    name: str
    ok: bool | None
    detail: str
    way_out: str = ""


def diagnose(folder: Path | str = ".") -> list[Finding]:
    """Look at everything that building and searching an index depends on."""
    return [
        _python(),
        _package("pyarrow", "pyarrow"),
        _of_extra("torch", "torch"),
        _cuda(),
        _of_extra("pyspark", "pyspark"),
        _java(),
        _trainer(),
        _optional("sentence-transformers", "sentence_transformers"),
        _optional("s3fs", "s3fs"),
        Finding("cores", True, str(available_processors())),
        _memory(),
        _disk(Path(folder)),
    ]


def _python() -> Finding:
    ok = MIN_PYTHON <= sys.version_info[:2] < END_PYTHON
    detail = f"{platform.python_version()} ({sys.executable})"
    return Finding("Python", ok, detail, "" if ok else "Use Python 3.11 to 3.14.")


def _version(distribution: str) -> str:
    with suppress(importlib.metadata.PackageNotFoundError):
        return importlib.metadata.version(distribution)
    return "of unknown version"


def _package(name: str, module: str, *, distribution: str | None = None) -> Finding:
    try:
        importlib.import_module(module)  # being listed as installed does not mean that it loads
    except Exception as error:  # a package that is half there may raise anything
        return Finding(name, False, f"cannot be imported: {_one_line(error)}", _REINSTALL)
    return Finding(name, True, _version(distribution or module))


def _of_extra(name: str, module: str, *, distribution: str | None = None) -> Finding:
    """Look at a package of an extra: it may be missing, but not be broken."""
    if not _is_installed(module):
        return _absent(name, module)
    return _package(name, module, distribution=distribution)


def _trainer() -> Finding:
    """Look at the package that trains fastText models: one of two."""
    if not _is_installed("fasttext") and _is_installed("gensim"):
        return _package("fastText", "gensim")
    return _of_extra("fastText", "fasttext", distribution="fasttext-numpy2")


def _is_installed(module: str) -> bool:
    return module in sys.modules or importlib.util.find_spec(module) is not None


def _absent(name: str, module: str) -> Finding:
    return Finding(name, None, "not installed (optional)", f"To use it: {installation(module)}.")


def _optional(distribution: str, module: str) -> Finding:
    """Look for a package that takes many seconds to import."""
    if importlib.util.find_spec(module) is None:
        return _absent(distribution, module)
    return Finding(distribution, True, _version(distribution))


def _cuda() -> Finding:
    try:
        torch = importlib.import_module("torch")
    except Exception:  # `_package` says why
        return Finding("CUDA", None, "not known without torch", "Searches run on the CPU.")
    if not torch.cuda.is_available():
        built_for = torch.version.cuda
        detail = (
            "no CUDA device"
            if built_for
            else "no CUDA device (this torch is built for the CPU alone)"
        )
        return Finding(
            "CUDA",
            None,
            detail,
            "Searches run on the CPU. For a GPU install a torch built for CUDA.",
        )
    devices = [torch.cuda.get_device_properties(i) for i in range(torch.cuda.device_count())]
    listed = ", ".join(
        f"cuda:{i} {one.name} {_size(one.total_memory)}" for i, one in enumerate(devices)
    )
    return Finding("CUDA", True, listed)


def _java() -> Finding:
    try:
        java = find_java()
    except SparkError as error:
        problem, _, way_out = str(error).partition(". ")
        needed = False if importlib.util.find_spec("pyspark") else None
        return Finding("Java", needed, problem, way_out)
    return Finding("Java", True, f"{java.version} ({java.command}, from {java.origin})")


def _memory() -> Finding:
    available = available_memory()
    if available is None:
        return Finding(
            "memory", None, "not known on this system", "Have 4 GB free for indexing larger lakes."
        )
    ok = True if available >= LOW_MEMORY_BYTES else None
    way_out = (
        ""
        if ok
        else "Indexing larger lakes runs a task on each core, as far as memory goes: free some."
    )
    return Finding("memory", ok, f"{_size(available)} available", way_out)


def _disk(folder: Path) -> Finding:
    try:
        free = shutil.disk_usage(folder).free
    except OSError as error:
        return Finding(
            "disk",
            False,
            f"{folder}: {_one_line(error)}",
            "Name a folder that exists and can be read.",
        )
    ok = True if free >= LOW_DISK_BYTES else None
    return Finding(
        "disk",
        ok,
        f"{_size(free)} free in {folder.resolve()}",
        "" if ok else "Free some space, or index elsewhere.",
    )


def _size(n_bytes: int) -> str:
    return f"{n_bytes / 10**9:.1f} GB"


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())
