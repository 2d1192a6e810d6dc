"""What `setup.py` says where it cannot compile."""

import os
import sys
from pathlib import Path

from processes import ran

ROOT = Path(__file__).resolve().parent.parent.parent


def refused(folder: Path, *command: str, **variables: str) -> str:
    """Run Python in a folder, and return the only line of its refusal."""
    done = ran([sys.executable, *command], cwd=folder, variables={**variables})
    assert done.returncode == 1, done.stdout + done.stderr
    (line,) = done.stderr.splitlines()
    return line


def test_without_a_compiler_it_is_one_sentence(tmp_path):
    (tmp_path / "pexeso").mkdir()
    (tmp_path / "pexeso" / "loops.pyx").write_text("def one():\n    return 1\n", encoding="utf-8")
    nowhere = os.fspath(tmp_path / "c++")
    setup = os.fspath(ROOT / "setup.py")
    said = refused(tmp_path, setup, "-q", "build_ext", CXX=nowhere, CC=nowhere)
    assert said.startswith("pexeso is compiled where it is installed from source")
    assert said.endswith("CXX='python -m ziglang c++' pip install .")


def test_an_older_python_is_refused_before_anything_is_imported(tmp_path):
    program = "import runpy, sys; sys.version_info = (3, 10, 13); runpy.run_path(sys.argv[1])"
    said = refused(tmp_path, "-c", program, os.fspath(ROOT / "setup.py"))
    assert said.startswith("pexeso needs Python 3.11 or newer, and this is Python ")
