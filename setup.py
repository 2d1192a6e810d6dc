"""The compiled loops: every `.pyx` file of the packages, built once for each kind of processor.

`pexeso.runtime.compiled` picks one of them when it is imported. PEXESO_CHECKED=1 adds a build whose
indices are checked, for the tests; PEXESO_COMPILE=0 takes the loops that were compiled in place.
"""

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

if sys.version_info < (3, 11):  # noqa: UP036 - pip asks for it only after a build
    sys.exit(
        f"pexeso needs Python 3.11 or newer, and this is Python {platform.python_version()}: name "
        "another, as in python3.12 -m pip install ..."
    )

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py

FAST = {"boundscheck": False, "wraparound": False, "initializedcheck": False, "nonecheck": False}
CHECKED = {"boundscheck": True, "wraparound": False, "initializedcheck": True, "nonecheck": True}
COMMON = {"language_level": "3", "cdivision": True, "show_performance_hints": False}

# What decides a match is strict IEEE 754 arithmetic. Sums may be taken in another order in modules
# named `loose_*` alone, whose bounds carry a tolerance.
STRICT = ("-O3", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-std=c++17", "-g0")
LOOSE = ("-fassociative-math", "-fno-signed-zeros", "-freciprocal-math", "-ffinite-math-only")
MSVC = ("/O2", "/fp:strict", "/std:c++17")

BUILDS = {"portable": ((), (), FAST)}
if platform.machine().lower() in ("x86_64", "amd64"):
    BUILDS["avx2"] = (("-mavx2", "-mbmi2", "-mpopcnt"), ("/arch:AVX2",), FAST)
if os.environ.get("PEXESO_CHECKED") == "1":
    BUILDS["checked"] = (("-O1", "-D_GLIBCXX_ASSERTIONS"), (), CHECKED)


class Build(build_ext):
    """Compile with the flags that the compiler of this machine knows."""

    def build_extensions(self) -> None:
        """Build all of them, or say in a sentence what is missing."""
        command = getattr(self.compiler, "compiler_so_cxx", None) or [sys.executable]
        if shutil.which(command[0]) is None:
            sys.exit(
                f"pexeso is compiled where it is installed from source, and there is no compiler "
                f"{command[0]!r}: install one (Debian: apt install g++), or take zig from PyPI: "
                "pip install ziglang, then "
                "CXX='python -m ziglang c++' pip install ."
            )
        super().build_extensions()

    def build_extension(self, ext: Extension) -> None:
        """Build an extension."""
        build, is_loose = ext.name.rpartition("_")[2], "loose" in ext.name.rpartition(".")[2]
        gcc, msvc, _ = BUILDS[build]
        if self.compiler.compiler_type == "msvc":
            ext.extra_compile_args = [*MSVC, *msvc]
        else:
            ext.extra_compile_args = [*STRICT, *(LOOSE if is_loose else ()), *gcc]
            ext.extra_link_args = ["-s"] if sys.platform == "linux" else []
        super().build_extension(ext)


class BuildWithCommit(build_py):
    """Write the commit of a checkout next to the modules, for `pexeso --version`."""

    def run(self) -> None:
        """Copy the modules."""
        super().run()
        if self.editable_mode or not Path(".git").exists() or shutil.which("git") is None:
            return
        done = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True)
        if done.returncode == 0:
            Path(self.build_lib, "pexeso", "commit.txt").write_text(done.stdout, encoding="utf-8")


def extensions() -> list[Extension]:
    """Translate the sources, each build into a folder of its own."""
    sources = sorted(path for root in ("embed", "pexeso") for path in Path(root).rglob("*.pyx"))
    made = []
    for build, (_, _, directives) in BUILDS.items():
        made += cythonize(
            [
                Extension(
                    ".".join((*path.parts[:-1], f"{path.stem}_{build}")),
                    [str(path)],
                    language="c++",
                )
                for path in sources
            ],
            build_dir=f"build/{build}",
            compiler_directives={**COMMON, **directives},
            nthreads=os.cpu_count() or 1,
            quiet=True,
        )
    return made


setup(
    ext_modules=[] if os.environ.get("PEXESO_COMPILE") == "0" else extensions(),
    cmdclass={"build_ext": Build, "build_py": BuildWithCommit},
    options={"build_ext": {"parallel": os.cpu_count() or 1}},
)
