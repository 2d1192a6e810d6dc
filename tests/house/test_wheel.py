"""The wheel: our three packages, their data, and nothing else; and that what it installs works."""

import os
import platform
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest
from long_runs import EVERYTHING
from processes import ran

from pexeso import __version__

ROOT = Path(__file__).resolve().parent.parent.parent
PACKAGES = ("embed", "partition", "pexeso")
SOURCES_OF_LOOPS = (".pyx", ".pxi", ".pxd", ".so")


def without_stale_loops(folder: str, names: list[str]) -> set[str]:
    """Name what was compiled for tests, and of sources that are gone."""
    _, _, package = folder.partition("lib.")
    stems = {path.stem for path in ROOT.joinpath(*Path(package).parts[1:]).glob("*.pyx")}
    return {
        name
        for name in names
        if "checked" in name
        or (name.endswith(".so") and name.split(".")[0].rpartition("_")[0] not in stems)
    }


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    """Build the wheel from a copy of the project and return its path.

    A copy is used because building leaves folders in the source tree. Loops are compiled with the
    long tests alone; what was compiled already is copied too, but not the build for tests, which no
    wheel has.
    """
    source, out = tmp_path_factory.mktemp("source") / "project", tmp_path_factory.mktemp("wheel")
    source.mkdir()
    for package in PACKAGES:
        shutil.copytree(
            ROOT / package, source / package, ignore=shutil.ignore_patterns("__pycache__", "*.so")
        )
    if EVERYTHING and (ROOT / "build").is_dir():
        shutil.copytree(ROOT / "build", source / "build", ignore=without_stale_loops)
    for folder in ("tests", "benchmarks", "examples"):
        (source / folder).mkdir()
        (source / folder / "__init__.py").touch()  # a package that must not be taken
    for name in ("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", out, source]
    environment = {**os.environ, "PEXESO_COMPILE": str(int(EVERYTHING))}
    done = ran(command, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = out.iterdir()
    tag = f"cp{sys.version_info.major}{sys.version_info.minor}"
    tags = f"{tag}-{tag}-" if EVERYTHING else "py3-none-any"
    assert wheel.name.startswith(f"pexeso-{__version__}-{tags}")
    return wheel


@pytest.fixture(scope="module")
def wheel(built) -> list[str]:
    """Return the names of the files in the wheel."""
    with zipfile.ZipFile(built) as archive:
        return archive.namelist()


@pytest.fixture(scope="module")
def installed(built, tmp_path_factory) -> Path:
    """Install the wheel into an environment of its own and return the folder of its programs.

    The packages that it needs are those of this environment, by a line in a .pth file. Such a line
    adds the folder alone: an editable pexeso in it is not seen.
    """
    environment = tmp_path_factory.mktemp("installed") / "environment"
    venv.create(environment, with_pip=False)
    programs = environment / "bin"
    pip = [sys.executable, "-m", "pip", "--python", programs / "python", "install", "--quiet"]
    done = ran([*pip, "--no-deps", "--no-index", "--disable-pip-version-check", built])
    assert done.returncode == 0, done.stdout + done.stderr
    (packages,) = environment.glob("lib/python*/site-packages")
    ours = sysconfig.get_paths()["purelib"]
    (packages / "dependencies.pth").write_text(f"{ours}\n", encoding="utf-8")
    return programs


def run_installed(folder: Path, *command: object) -> str:
    """Run a command outside the checkout, without our variables, and return its output."""
    ours = ("PYTHONPATH", "PEXESO_LOOPS")
    environment = {name: value for name, value in os.environ.items() if name not in ours}
    done = ran(
        list(map(str, command)),
        cwd=folder,
        env=environment | {"COLUMNS": "100", "PYTHONUTF8": "1"},
        stdin=subprocess.DEVNULL,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_top_level_names_are_ours_alone(wheel):
    assert {name.partition("/")[0] for name in wheel} == {
        *PACKAGES,
        f"pexeso-{__version__}.dist-info",
    }


def test_every_module_and_every_data_file_is_in_it(wheel):
    files = {
        path.relative_to(ROOT)
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    ours = {path.as_posix() for path in files if path.suffix not in SOURCES_OF_LOOPS}
    builds = {
        path.with_name(f"{path.stem}_{build}{sysconfig.get_config_var('EXT_SUFFIX')}").as_posix()
        for path in files
        if path.suffix == ".pyx"
        for build in builds_of_a_wheel()
    }
    expected = ours | builds if EVERYTHING else ours
    assert {name for name in wheel if ".dist-info/" not in name} == expected


def builds_of_a_wheel() -> list[str]:
    is_x86 = platform.machine().lower() in ("x86_64", "amd64")
    return ["portable", "avx2"] if is_x86 else ["portable"]


def test_the_licence_comes_along(wheel):
    assert f"pexeso-{__version__}.dist-info/licenses/LICENSE" in wheel


@pytest.mark.long
def test_what_is_installed_is_the_wheel_and_the_demo_works(installed, tmp_path):
    where = "import pexeso; print(pexeso.__file__)"
    module = Path(run_installed(tmp_path, installed / "python", "-c", where).strip())
    assert module.is_relative_to(installed.parent)
    version = run_installed(tmp_path, installed / "pexeso", "--version")
    assert version.splitlines()[0] == f"pexeso {__version__}"
    shown = run_installed(tmp_path, installed / "pexeso", "demo")
    lake = module.parent / "demo" / "lake"
    assert f"$ pexeso index {lake} " in shown
    assert "business/founding_years.csv" in shown
    assert "science/birthdays.tsv" in shown
    assert list(tmp_path.iterdir()) == []
