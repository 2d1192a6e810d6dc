"""``pexeso verify``: what it prints, and the exit codes that a pipeline goes by."""

import json

import pytest


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cities.csv").write_text("name,n\nOslo,1\nRome,2\nLima,3\n", encoding="utf-8")
    (tmp_path / "orders.csv").write_text("city,n\nOslo,1\nRome,2\nRome,3\n", encoding="utf-8")
    return tmp_path


def test_a_join_is_recorded_checked_and_broken(run, folder):
    recorded = run("verify", "joins.toml", "orders.csv:city", "cities.csv:name")
    line = "orders.csv:city -> cities.csv:name: matched 100.0 % (2 of 2 values), N:1"
    assert recorded.stdout == f"ok      {line}, up to 1 row a value\n"
    assert recorded.stderr == "Recorded in 'joins.toml'.\n"
    checked = run("verify", "joins.toml")
    assert (checked.stdout, checked.stderr) == (recorded.stdout, "")
    (folder / "cities.csv").write_text("name,n\nOslo,1\nOslo,2\nLima,3\n", encoding="utf-8")
    broken = run("verify", "joins.toml", code=1)
    assert broken.stdout.splitlines() == [
        "broken  orders.csv:city -> cities.csv:name: matched 100.0 % -> 50.0 % (1 of 2 values), "
        "1:N, up to 2 rows a value",
        "        50.0 % of the values match, and at least 100.0 % must",
        "        the relation is 1:N, and must be N:1",
        "        'Oslo' joins 2 rows, and at most 1 may",
        "        1 value newly without a match: 'Rome'",
    ]
    assert broken.stderr == "Error: 1 of 1 join broken.\n"
    document = json.loads(run("verify", "joins.toml", "--json", code=1).stdout)
    assert (document["ok"], document["joins"][0]["now"]["matched"]) == (False, 1)


def test_the_rules_of_a_join_are_recorded(run, folder):
    (folder / "zips.csv").write_text("zip,town\n00501,Holtsville\n01001,Agawam\n", encoding="utf-8")
    (folder / "shops.csv").write_text("zip,n\n501,1\n1001,2\n", encoding="utf-8")
    sides = ("shops.csv:zip", "zips.csv:zip")
    recorded = run("verify", "joins.toml", *sides, "--rule", "leading-zeros")
    assert "matched 100.0 % (2 of 2 values), 1:1" in recorded.stdout
    assert 'rules = ["leading-zeros"]' in (folder / "joins.toml").read_text(encoding="utf-8")
    run("verify", "joins.toml")


def test_wrong_input_is_another_exit_code(fail, folder):
    assert "cannot be read" in fail(2, "verify", "joins.toml")
    (folder / "joins.toml").write_text("[[join]]\nleft = 3\n", encoding="utf-8")
    assert "does not declare joins" in fail(2, "verify", "joins.toml")
    assert "has two columns" in fail(2, "verify", "new.toml", "orders.csv:city")
    for name, value in (("--max-distance", "0.1"), ("--rule", "leading-zeros")):
        message = fail(2, "verify", "joins.toml", name, value)
        assert f"{name} is for a join that is added" in message


def test_names_cannot_move_the_cursor(run, folder):
    (folder / "orders.csv").write_text("city,n\n\x1b[2Jx,1\nRome,2\n", encoding="utf-8")
    entry = '[[join]]\nleft = "orders.csv:city"\nright = "cities.csv:name"\nmin_share = 1\n'
    (folder / "joins.toml").write_text(entry, encoding="utf-8")
    assert "\x1b" not in run("verify", "joins.toml", code=1).output
