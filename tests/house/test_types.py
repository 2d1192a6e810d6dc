"""The public surface is typed: mypy and basedpyright find nothing, and see what users get."""

import sys
import tomllib
from pathlib import Path

import pytest
from long_runs import long_but
from processes import ran

import pexeso

ROOT = Path(__file__).resolve().parent.parent.parent
TOOLS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
CHECKED = TOOLS["mypy"]["files"]
USER = ROOT / "tests" / "house" / "typed_user.py"
CHECKERS = ("mypy", "basedpyright")


def check(checker: str, *paths: str | Path) -> tuple[int, str]:
    """Run a checker over some files."""
    done = ran([Path(sys.executable).with_name(checker), *paths], cwd=ROOT)
    return done.returncode, done.stdout + done.stderr


def test_both_check_the_same_files_and_these_are_there():
    assert TOOLS["basedpyright"]["include"] == CHECKED
    assert [path for path in CHECKED if not (ROOT / path).exists()] == []
    assert str(USER.relative_to(ROOT)) in CHECKED


def test_the_home_of_every_public_name_is_checked():
    homes = {f"{home.replace('.', '/')}.py" for home in pexeso._HOME_OF.values()}
    folders = tuple(f"{path}/" for path in CHECKED if not path.endswith(".py"))
    assert {home for home in homes if not home.startswith(folders)} <= set(CHECKED)


@pytest.mark.slow
@pytest.mark.parametrize("checker", long_but(["basedpyright"], CHECKERS))
def test_the_public_surface_has_no_wrong_type_and_what_a_user_gets_is_seen(checker, write):
    right = "assert_type(result[0], pexeso.Match)"
    text = USER.read_text(encoding="utf-8")
    assert text.count(right) == 1
    wrong = write("wrong_user.py", text.replace(right, "assert_type(result[0], str)"))
    code, said = check(checker, *CHECKED, wrong)
    [error] = [line for line in said.splitlines() if "error:" in line]
    assert code == 1
    assert "wrong_user.py" in error
    assert "Match" in said


@pytest.mark.parametrize("package", ["embed", "partition", "pexeso"])
def test_type_checkers_are_told_that_there_are_types(package):
    assert (ROOT / package / "py.typed").read_bytes() == b""
