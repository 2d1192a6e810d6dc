"""`pexeso rules`: what there is, and what an index has."""

import json

from pexeso.lake.normalise.normaliser import VERSION
from pexeso.lake.normalise.rules import ALL_RULES, DEFAULT_RULES


def test_every_rule_is_listed_with_an_example(run):
    lines = run("rules").stdout.splitlines()
    assert [line.split()[:2] for line in lines[1:]] == [
        ["on" if name in DEFAULT_RULES else "off", name] for name in ALL_RULES
    ]
    assert lines[1].split(maxsplit=2)[2].split("  ")[0] == "S\u00e3o Paulo"


def test_the_rules_of_an_index_are_told(run, small_index):
    document = json.loads(run("rules", str(small_index), "--json").stdout)
    assert document["version"] == VERSION
    assert document["extra"] == {}
    assert [rule["name"] for rule in document["rules"] if rule["on"]] == list(DEFAULT_RULES)


def test_an_index_that_is_not_there(run):
    result = run("rules", "nothing")
    assert result.exit_code == 1
    assert "There is no index at 'nothing'" in result.stderr
