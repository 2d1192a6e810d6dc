"""Completion by the shell: bash completes, and what answers it loads nothing heavy."""

import os
import shutil
import sys
from pathlib import Path

import pytest
from processes import ran

PEXESO = Path(sys.executable).with_name("pexeso")

ANSWER = "from pexeso.faces.cli.process import run; run()"
WITHIN_BASH = """
eval "$(_PEXESO_COMPLETE=bash_source pexeso)"
complete -p pexeso
compopt() { echo "compopt $1 $2"; }  # which bash allows only while it completes
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_pexeso_completion pexeso
printf '%s\\n' "${COMPREPLY[@]}"
"""


def completed(*words: str) -> list[str]:
    """Return what bash completes a line to; the last word is the one that is begun."""
    done = ran(
        ["bash", "-c", WITHIN_BASH, "bash", *words],
        variables={"PATH": f"{PEXESO.parent}:{os.environ['PATH']}"},
    )
    assert (done.returncode, done.stderr) == (0, "")
    setup, *completions = done.stdout.split("\n")
    assert setup.startswith("complete -o nosort -F _pexeso_completion pexeso")
    return [completion for completion in completions if completion]


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not on this machine")
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("pexeso", "sea"), ["search"]),
        (("pexeso", "search", "a", "b", "--method", "t"), ["transform"]),
        *(
            pytest.param(*line, marks=pytest.mark.long)
            for line in (
                (("pexeso", "search", "--method"), ["--method"]),
                (("pexeso", "search", "--ex"), ["--exclude-self", "--explain"]),
                (("pexeso", "search", "la"), ["compopt -o default"]),
                (("pexeso", "search", "a", "my"), ["compopt -o default"]),
            )
        ),
    ],
    ids=" ".join,
)
def test_bash_completes(words, expected):
    assert completed(*words) == expected


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_shell_gets_its_script(shell):
    done = ran([sys.executable, "-c", ANSWER], variables={"_PEXESO_COMPLETE": f"{shell}_source"})
    assert (done.returncode, done.stderr) == (0, "")
    assert f"_PEXESO_COMPLETE={shell}_complete" in done.stdout


def test_what_answers_a_shell_loads_nothing_heavy():
    line = {"COMP_WORDS": "pexeso search --m", "COMP_CWORD": "2"}
    done = ran(
        [sys.executable, "-X", "importtime", "-c", ANSWER],
        variables={**line, "_PEXESO_COMPLETE": "bash_complete"},
    )
    assert "plain,--method" in done.stdout.splitlines()
    loaded = {row.rpartition("|")[2].strip() for row in done.stderr.splitlines()}
    heavy = {"torch", "pyspark", "pandas", "numba", "sklearn", "scipy", "fasttext", "faiss"}
    assert loaded & heavy == set()
    assert "pexeso.faces.cli.main" in loaded
