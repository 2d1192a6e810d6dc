"""Which build of the compiled loops a process uses."""

import os
import sys

import pytest
from processes import ran


def build(**variables: str) -> str:
    environment = {name: text for name, text in os.environ.items() if name != "PEXESO_LOOPS"}
    program = "from pexeso.runtime.compiled import build_of_processor; print(build_of_processor())"
    done = ran([sys.executable, "-c", program], env=environment | variables)
    return done.stdout.strip() or done.stderr.splitlines()[-1]


def test_a_processor_without_avx2_gets_the_portable_build():
    usual = build()
    assert usual in ("avx2", "portable")
    hidden = build(NPY_DISABLE_CPU_FEATURES="X86_V3 AVX2")
    assert hidden == "portable"


@pytest.mark.parametrize("name", ["portable", "avx2"])
def test_a_build_can_be_named(name):
    assert build(PEXESO_LOOPS=name) == name


def test_a_build_that_there_is_not_is_refused():
    said = build(PEXESO_LOOPS="fast")
    assert said.endswith("it must be one of portable, avx2, checked, or unset")
