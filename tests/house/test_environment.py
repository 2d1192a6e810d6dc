"""`environment.yml` and `constraints.txt` keep in step with `pyproject.toml`."""

import re
import tomllib
from itertools import chain
from pathlib import Path

import yaml
from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).resolve().parent.parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

# Packages that go by another name in conda.
CONDA_NAMES = {
    "build": "python-build",
    "duckdb": "python-duckdb",
    "faiss-cpu": "faiss-gpu",
    "torch": "pytorch",
}


EDITABLE = "-e ."
"""What installs pexeso itself."""


def declared(extras):
    lists = [
        PROJECT["dependencies"],
        *(PROJECT["optional-dependencies"][extra] for extra in extras),
    ]
    return {
        requirement.name: requirement
        for requirement in map(Requirement, chain.from_iterable(lists))
        if requirement.name != PROJECT["name"]  # extras that are made of others
    }


def conda_entries():
    """The entries of `environment.yml`: those for conda, and those for pip."""
    entries = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))["dependencies"]
    from_pip = [line for entry in entries if isinstance(entry, dict) for line in entry["pip"]]
    return [entry for entry in entries if isinstance(entry, str)], from_pip


def conda_requirements():
    from_conda, from_pip = conda_entries()
    requirements = [Requirement(line) for line in [*from_conda, *from_pip] if line != EDITABLE]
    return {requirement.name: requirement for requirement in requirements}


def constraints():
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def test_every_dependency_is_in_the_conda_environment_with_the_same_bounds():
    conda = {name: str(requirement.specifier) for name, requirement in conda_requirements().items()}
    everything = declared(PROJECT["optional-dependencies"])
    wanted = {CONDA_NAMES.get(name, name): str(one.specifier) for name, one in everything.items()}
    wanted["python"] = str(Requirement("python" + PROJECT["requires-python"]).specifier)
    wanted["pip"] = ""  # what installs the entries under `pip:`
    assert conda == wanted


def test_the_conda_environment_installs_pexeso_after_what_it_needs():
    from_conda, from_pip = conda_entries()
    assert "pip" in from_conda
    assert from_pip[-1] == EDITABLE


def test_the_conda_environment_says_first_how_it_was_checked():
    first = (ROOT / "environment.yml").read_text(encoding="utf-8").splitlines()[0]
    assert first.startswith("#")
    assert "in step with pyproject.toml by a test" in first
    assert "never solved by conda" in first


def test_constraints_are_plain_exact_versions_in_order():
    lines = constraints()
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[0-9][0-9A-Za-z.]*", line) for line in lines), lines
    names = [line.partition("==")[0].lower() for line in lines]
    assert len(set(names)) == len(names)
    assert names == sorted(names)


def test_every_installed_dependency_has_a_version_that_pyproject_allows():
    pinned = dict(line.lower().split("==") for line in constraints())
    wanted = declared(["dev", "gpu"])
    assert sorted(wanted.keys() - pinned.keys()) == []
    assert [
        name for name, one in wanted.items() if Version(pinned[name]) not in one.specifier
    ] == []


def test_requirements_install_the_constraints_the_pinned_torch_and_the_development_extra():
    text = (ROOT / "requirements.txt").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    torch = next(line for line in constraints() if line.startswith("torch=="))
    assert lines == ["-c constraints.txt", torch, "-e .[dev]"]
