"""Loops that were compiled when pexeso was built, in the build that suits the processor."""

from __future__ import annotations

import os
from functools import cache
from importlib import import_module
from types import ModuleType

from pexeso.errors import PexesoError

# `portable` runs on every processor of its kind, and all give the same answers; `checked` is for
# tests, and there only where it was asked for when pexeso was built.
BUILDS = ("portable", "avx2", "checked")


def compiled(name: str) -> ModuleType:
    """Return a compiled module: `embed.loops` stands for `embed.loops_avx2` and the like."""
    build = build_of_processor()
    try:
        return import_module(f"{name}_{build}")
    except ModuleNotFoundError as error:
        raise PexesoError(
            f"the {build} build of the compiled loops {name!r} is missing: install a C++ compiler "
            "(Debian: g++, or `pip install ziglang`), then install pexeso again"
        ) from error


@cache
def build_of_processor() -> str:
    """Return the build that this process uses; the variable PEXESO_LOOPS names another."""
    asked_for = os.environ.get("PEXESO_LOOPS", "")
    if asked_for:
        if asked_for not in BUILDS:
            raise PexesoError(
                f"PEXESO_LOOPS is {asked_for!r}; it must be one of {', '.join(BUILDS)}, or unset"
            )
        return asked_for
    from numpy._core._multiarray_umath import __cpu_features__ as features

    # NumPy's own choice, so that NPY_DISABLE_CPU_FEATURES holds for pexeso as well. Newer versions
    # of it choose by X86_V3, which is AVX2 with BMI2 and others.
    has_avx2 = features.get("AVX2") and features.get("BMI2", True)
    return "avx2" if features.get("X86_V3", has_avx2) else "portable"
