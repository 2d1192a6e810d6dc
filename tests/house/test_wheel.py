"""The wheel: our three packages, their data, and nothing else."""

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from pexeso import __version__

ROOT = Path(__file__).resolve().parent.parent.parent
PACKAGES = ("embed", "partition", "pexeso")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> list[str]:
    """Build the wheel from a copy of the project and return the names of its files.

    A copy is used because building leaves folders in the source tree.
    """
    source, out = tmp_path_factory.mktemp("source") / "project", tmp_path_factory.mktemp("wheel")
    source.mkdir()
    for package in PACKAGES:
        shutil.copytree(
            ROOT / package, source / package, ignore=shutil.ignore_patterns("__pycache__")
        )
    for folder in ("tests", "benchmarks", "examples"):
        (source / folder).mkdir()
        (source / folder / "__init__.py").touch()  # a package that must not be taken
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", out, source]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = out.iterdir()
    assert built.name == f"pexeso-{__version__}-py3-none-any.whl"
    with zipfile.ZipFile(built) as archive:
        return archive.namelist()


def test_the_top_level_names_are_ours_alone(wheel):
    assert {name.partition("/")[0] for name in wheel} == {
        *PACKAGES,
        f"pexeso-{__version__}.dist-info",
    }


def test_every_module_and_every_data_file_is_in_it(wheel):
    ours = {
        path.relative_to(ROOT).as_posix()
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert {name for name in wheel if ".dist-info/" not in name} == ours


def test_the_licence_comes_along(wheel):
    assert f"pexeso-{__version__}.dist-info/licenses/LICENSE" in wheel
