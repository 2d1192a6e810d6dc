"""Simulated life: rules drawn with a seed, and what later rows are joined with."""

import json

from click.testing import CliRunner

from benchmarks import report
from benchmarks.cli import main
from benchmarks.transform import life
from benchmarks.transform.life import KINDS, drawn_pairs
from benchmarks.transform.tables import life_table


def test_every_kind_of_rule_writes_one_key_for_each_row():
    for number, kind in enumerate(KINDS):
        pairs = [pair for pair, _ in zip(drawn_pairs(number, 1), range(200), strict=False)]
        assert len({key for _, key in pairs}) == 200, kind
        assert len({tuple(row.values()) for row, _ in pairs}) == 200, kind
        again = [pair for pair, _ in zip(drawn_pairs(number, 1), range(5), strict=False)]
        assert again == pairs[:5]
        assert "<" not in pairs[0][1]
        assert "{" not in pairs[0][1]


def test_the_result_has_the_shares_of_each_seed_and_number_of_rows(tmp_path, monkeypatch):
    monkeypatch.setattr(report, "RESULTS", tmp_path)
    monkeypatch.setattr(life, "N_RULES", 2)
    monkeypatch.setattr(life, "SIZES", (3, 30))
    arguments = ["transform", "life", "--rows", "20", "--seeds", "1,4", "--write"]
    done = CliRunner().invoke(main, arguments, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    result = json.loads((tmp_path / "transform" / "life.json").read_text())
    assert life_table(result) in done.output
    assert [(row["seed"], row["rows"]) for row in result["sizes"]] == [
        (1, 3),
        (1, 30),
        (4, 3),
        (4, 30),
    ]
    for shares in result["sizes"]:
        rules = [
            rule
            for rule in result["rules"]
            if (rule["seed"], rule["rows"]) == (shares["seed"], shares["rows"])
        ]
        assert [rule["later"] for rule in rules] == [20, 20]
        assert shares["alone"] == sum(rule["alone"] for rule in rules) / 40
        assert shares["wrong"] == sum(rule["wrong"] for rule in rules) / 40


def test_rows_joined_with_the_key_of_another_are_counted(monkeypatch):
    numbers = [f"{n * 7919 % 100_000:05}" for n in range(310)]
    pairs = [({"text": number}, f"n{number}") for number in numbers]
    # A later row whose own key is another's.
    pairs[40] = ({"text": numbers[40]}, "n-")
    pairs[41] = ({"text": numbers[41]}, f"n{numbers[40]}")
    monkeypatch.setattr(life, "_first_pairs", lambda number, seed, n: pairs)
    lived = life.lived(0, 30, n_later=100)
    assert (lived["wrong"], lived["alone"]) == (1, 1)
    assert lived["sample"] == [[numbers[40], f"n{numbers[40]}"]]
