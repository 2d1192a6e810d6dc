"""Declared joins are compared with the tables of now, and recorded with what they make."""

import os
import random
import tempfile
import tomllib

import pytest

import pexeso
from pexeso.contracts import MAX_RECORDED, RELATIONS

CITIES = "name,country\nOslo,NO\nRome,IT\nLisbon,PT\n"
ORDERS = "id,city\n1,Oslo\n2,Rome\n3,Lisbonn\n4,Oslo\n5,\n"


@pytest.fixture(autouse=True)
def temporary_folder(tmp_path_factory, monkeypatch):
    folder = tmp_path_factory.mktemp("temporary")
    monkeypatch.setattr(tempfile, "tempdir", os.fspath(folder))
    yield
    assert os.listdir(folder) == []


@pytest.fixture
def contract(tmp_path):
    """Return a file that declares one join, next to its two tables."""
    (tmp_path / "orders.csv").write_text(ORDERS, encoding="utf-8")
    (tmp_path / "cities.csv").write_text(CITIES, encoding="utf-8")
    path = tmp_path / "joins.toml"
    declare(path)
    return path


def declare(path, **fields):
    """Write a file with one join."""
    entry = {"left": '"orders.csv:city"', "right": '"cities.csv:name"', **fields}
    lines = "".join(f"{name} = {value}\n" for name, value in entry.items())
    path.write_text(f"[[join]]\n{lines}", encoding="utf-8")


def broken_clauses(path) -> list[str]:
    return [clause for check in pexeso.verify(path).joins for clause in check.broken]


def test_what_a_join_makes_is_counted(contract):
    (check,) = pexeso.verify(contract).joins
    figures = check.figures
    assert (figures.matched, figures.total, figures.share) == (3, 3, 1.0)
    assert (figures.relation, figures.max_rows_per_value) == ("N:1", 1)
    assert (check.broken, check.unmatched) == ((), ())


@pytest.mark.parametrize(
    ("fields", "clauses"),
    [
        ({"min_share": 1.0, "relation": '"N:1"', "max_rows_per_value": 1}, []),
        ({"relation": '"N:M"'}, []),
        ({"relation": '"1:1"'}, ["the relation is N:1, and must be 1:1"]),
        ({"relation": '"1:N"'}, ["the relation is N:1, and must be 1:N"]),
        (
            {"max_distance": 0, "min_share": 0.9},
            ["66.7 % of the values match, and at least 90.0 % must"],
        ),
        ({"max_distance": 0, "min_share": 0.6}, []),
    ],
)
def test_each_bound_is_held_against_the_tables(contract, fields, clauses):
    declare(contract, **fields)
    assert broken_clauses(contract) == clauses


def test_relations_that_the_first_version_wrote_in_words_are_read(contract):
    declare(contract, relation='"one-to-one"')
    assert broken_clauses(contract) == ["the relation is N:1, and must be 1:1"]
    declare(contract, relation='"many-to-one"')
    (check,) = pexeso.verify(contract).joins
    assert (check.declared.relation, check.broken) == ("N:1", ())


def test_a_join_is_recorded_with_its_rules_and_checked_with_them(contract):
    contract.unlink()
    orders, cities = contract.with_name("orders.csv"), contract.with_name("cities.csv")
    orders.write_text("id,code\n1,501\n2,1001\n", encoding="utf-8")
    cities.write_text("fips,name\n00501,Holtsville\n01001,Agawam\n", encoding="utf-8")
    sides = f"{orders}:code", f"{cities}:fips"
    with pytest.raises(pexeso.InputError, match="nothing to record"):
        pexeso.record_join(contract, *sides)
    recorded = pexeso.record_join(contract, *sides, rules=["leading-zeros"])
    assert recorded.joins[0].figures.share == 1
    (entry,) = tomllib.loads(contract.read_text(encoding="utf-8"))["join"]
    assert entry["rules"] == ["leading-zeros"]
    assert pexeso.verify(contract).joins[0].figures.share == 1
    with pytest.raises(pexeso.InputError, match=r"A rule of .* must be one of"):
        pexeso.record_join(contract, *sides, rules=["zeros"])
    with pytest.raises(pexeso.InputError, match="pexeso index LAKE INDEX --rule company-forms"):
        pexeso.record_join(contract, *sides, rules=["company-forms"])


def test_a_value_of_too_many_rows_is_named(contract):
    with contract.with_name("cities.csv").open("a", encoding="utf-8") as stream:
        stream.write("Rome,US\nRome,FR\n")
    declare(contract, max_rows_per_value=2)
    assert broken_clauses(contract) == ["'Rome' joins 3 rows, and at most 2 may"]


@pytest.mark.parametrize("seed", range(4))
def test_relations_are_those_of_all_pairs_of_rows(contract, seed):
    draw = random.Random(seed)
    names = ["Oslo", "Rome", "Madrid", "Lima", "Paris", "Bonn"][: 3 + seed]
    sides = {}
    for file, column in (("orders.csv", "city"), ("cities.csv", "name")):
        n_rows = draw.choice([len(names), len(names), 2 * len(names)])
        sides[file] = draw.sample(names, len(names)) + draw.choices(names, k=n_rows - len(names))
        rows = "".join(f"{value},x\n" for value in sides[file])
        contract.with_name(file).write_text(f"{column},more\n{rows}", encoding="utf-8")
    left, right = sides["orders.csv"], sides["cities.csv"]
    ends = ["1" if max(map(side.count, names)) == 1 else "N" for side in (left, right)]
    figures = pexeso.verify(contract).joins[0].figures
    assert figures.relation == ":".join(ends).replace("N:N", "N:M")
    assert figures.max_rows_per_value == max(map(right.count, names))
    assert RELATIONS[0] == "1:1"


def test_a_recorded_join_holds_and_then_says_what_changed(contract):
    contract.unlink()
    with contract.with_name("orders.csv").open("a", encoding="utf-8") as stream:
        stream.write("6,Xyzzy\n")
    folder = contract.parent
    recorded = pexeso.record_join(contract, f"{folder}/orders.csv:city", f"{folder}/cities.csv")
    assert repr(recorded) == "JoinChecks(1 join, 0 broken)"
    assert tomllib.loads(contract.read_text(encoding="utf-8")) == {
        "join": [
            {
                "left": "orders.csv:city",
                "right": "cities.csv:name",
                "min_share": 0.75,
                "relation": "N:1",
                "max_rows_per_value": 1,
                "share": 0.75,
                "unmatched": ["Xyzzy"],
            }
        ]
    }
    assert pexeso.verify(contract).broken == ()
    contract.with_name("cities.csv").write_text("name,country\nOslo,NO\n", encoding="utf-8")
    (check,) = pexeso.verify(contract).broken
    assert check.change().startswith("matched 75.0 % -> 25.0 % (1 of 4 values)")
    assert check.missing() == "2 values newly without a match: 'Rome', 'Lisbonn'"
    assert check.to_dict()["new_unmatched"] == ["Rome", "Lisbonn"]


def test_joins_are_added_behind_those_that_are_there(contract):
    before = "# ours\n\n" + contract.read_text(encoding="utf-8")
    contract.write_text(before, encoding="utf-8")
    folder = contract.parent
    with pytest.raises(pexeso.InputError, match=r"declares orders.csv:city -> cities.csv:name"):
        pexeso.record_join(contract, f"{folder}/orders.csv:city", f"{folder}/cities.csv:name")
    pexeso.record_join(contract, f"{folder}/cities.csv:name", f"{folder}/orders.csv:city")
    assert contract.read_text(encoding="utf-8").startswith(before)
    assert [check.declared.left for check in pexeso.verify(contract).joins] == [
        "orders.csv:city",
        "cities.csv:name",
    ]


def test_odd_texts_come_back_from_the_file(contract):
    odd = ['"a"', "b\\c", "d\x7fe", "ünï", "f ]] [[join]]", "g = 1"]
    cells = "".join("{},x\n".format('"' + value.replace('"', '""') + '"') for value in odd)
    contract.with_name("orders.csv").write_text(f"city,more\nOslo,x\n{cells}", encoding="utf-8")
    contract.unlink()
    folder = contract.parent
    options = {"max_distance": 0}
    pexeso.record_join(
        contract, f"{folder}/orders.csv:city", f"{folder}/cities.csv:name", **options
    )
    (join,) = tomllib.loads(contract.read_text(encoding="utf-8"))["join"]
    assert join["unmatched"] == odd
    assert pexeso.verify(contract).joins[0].unmatched == ()


def test_many_values_without_a_match_are_not_kept(contract):
    rows = "".join(f"{name},x\n" for name in ["Oslo", *(f"q{n}w" for n in range(MAX_RECORDED + 1))])
    contract.with_name("orders.csv").write_text(f"city,more\n{rows}", encoding="utf-8")
    contract.unlink()
    folder = contract.parent
    pexeso.record_join(contract, f"{folder}/orders.csv:city", f"{folder}/cities.csv:name")
    (check,) = pexeso.verify(contract).joins
    assert check.declared.unmatched is None
    assert check.missing().startswith(
        f"{MAX_RECORDED + 1} values without a match: 'q0w', 'q1w', 'q2w' ..."
    )


def test_aliases_and_rules_are_those_of_a_join(contract):
    contract.with_name("cities.csv").write_text("name,n\nOslo,1\nRoma,2\n", encoding="utf-8")
    contract.with_name("orders.csv").write_text("city,n\nOslo,1\nUrbs,2\n", encoding="utf-8")
    contract.with_name("aliases.csv").write_text("alias,value\nUrbs,Roma\n", encoding="utf-8")
    assert pexeso.verify(contract).joins[0].figures.matched == 1
    declare(contract, aliases='"aliases.csv"')
    assert pexeso.verify(contract).joins[0].figures.matched == 2
    contract.with_name("cities.csv").write_text("name,n\n01001,1\n01003,2\n", encoding="utf-8")
    contract.with_name("orders.csv").write_text("city,n\n1001,1\n01003,2\n", encoding="utf-8")
    declare(contract)
    before = pexeso.verify(contract).joins[0].figures.matched
    declare(contract, rules='["leading-zeros"]')
    assert (before, pexeso.verify(contract).joins[0].figures.matched) == (1, 2)


@pytest.mark.parametrize("gone", ["orders.csv", "cities.csv"])
def test_a_table_that_is_gone_breaks_its_join_alone(contract, gone):
    contract.write_text(
        contract.read_text(encoding="utf-8")
        + '[[join]]\nleft = "more.csv:city"\nright = "more.csv:city"\n',
        encoding="utf-8",
    )
    contract.with_name("more.csv").write_text(ORDERS, encoding="utf-8")
    contract.with_name(gone).unlink()
    checks = pexeso.verify(contract)
    assert [bool(check.broken) for check in checks.joins] == [True, False]
    assert gone in checks.joins[0].broken[0]
    assert checks.joins[0].change() == "no join"
    assert "<td>no join</td>" in checks._repr_html_()


def test_a_column_that_is_gone_or_empty_breaks_its_join(contract):
    contract.with_name("orders.csv").write_text("id,town\n1,Oslo\n", encoding="utf-8")
    (clause,) = broken_clauses(contract)
    assert "'city'" in clause
    contract.with_name("orders.csv").write_text(ORDERS, encoding="utf-8")
    contract.with_name("cities.csv").write_text("name,country\n,NO\n,IT\n", encoding="utf-8")
    (clause,) = broken_clauses(contract)
    assert "no values" in clause


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "declares no join"),
        ("[[join]", "cannot be read"),
        ("join = 3", "does not declare joins as it must"),
        ('[[join]]\nleft = "orders.csv:city"', "`right`"),
        ('[[join]]\nleft = "orders.csv:city"\nright = "cities.csv:name"\nmin = 1', "`min`"),
        (
            '[[join]]\nleft = "orders.csv:city"\nright = "cities.csv:name"\nmin_share = 95',
            "min_share",
        ),
        ('[[join]]\nleft = "orders.csv"\nright = "cities.csv:name"', "FILE:COLUMN"),
        (
            '[[join]]\nleft = "orders.csv:city"\nright = "cities.csv:name"\nrules = ["none"]',
            "must be one of",
        ),
        ('[[join]]\nleft = "../a.csv:city"\nright = "cities.csv:name"', "must lie in its folder"),
        ('[[join]]\nleft = "/etc/passwd:x"\nright = "cities.csv:name"', "must lie in its folder"),
        ('[[join]]\nleft = "s3://a/b.csv:x"\nright = "cities.csv:name"', "must lie in its folder"),
        (
            '[[join]]\nleft = "orders.csv:city"\nright = "cities.csv:name"\naliases = "../a.csv"',
            "must lie in its folder",
        ),
    ],
)
def test_a_file_that_is_not_as_it_must_be_is_refused(contract, text, sentence):
    contract.write_text(text, encoding="utf-8")
    with pytest.raises(pexeso.InputError, match=sentence) as caught:
        pexeso.verify(contract)
    assert str(contract) in str(caught.value)


@pytest.mark.parametrize(
    "left", ["a\\u0000.csv:x", ".:x", "cities.csv/b:x", "x" * 5000 + ":y", "cities.csv:\\u001b[2J"]
)
def test_names_of_nothing_break_their_join(contract, left):
    declare(contract, left=f'"{left}"')
    assert len(broken_clauses(contract)) == 1


def test_bytes_that_are_no_text_are_refused(contract):
    contract.write_bytes(b"\xff\xfe")
    with pytest.raises(pexeso.InputError, match="cannot be read"):
        pexeso.verify(contract)


def test_links_are_not_followed(contract, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside")
    (outside / "orders.csv").write_text(ORDERS, encoding="utf-8")
    contract.with_name("linked.csv").symlink_to(outside / "orders.csv")
    contract.with_name("linked").symlink_to(outside)
    for left in ("linked.csv:city", "linked/orders.csv:city"):
        declare(contract, left=f'"{left}"')
        with pytest.raises(pexeso.InputError, match="links are not followed"):
            pexeso.verify(contract)


def test_what_cannot_be_recorded_is_refused_and_nothing_is_written(contract):
    contract.unlink()
    folder = contract.parent
    with pytest.raises(pexeso.InputError, match=r"No value of cities.csv:country matches"):
        pexeso.record_join(contract, f"{folder}/cities.csv:country", f"{folder}/orders.csv:id")
    with pytest.raises(pexeso.InputError, match="must lie in its folder"):
        pexeso.record_join(folder / "sub" / "joins.toml", f"{folder}/orders.csv:city", "x.csv:a")
    assert not contract.exists()
