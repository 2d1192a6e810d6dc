"""`pexeso join` and `pexeso explain` by keys of several columns."""

import pytest

from pexeso.index import build_index

GAMES = (
    "year,city,nation,opened\n1900,Paris,France,May\n1924,Paris,France,July\n1924,Lyon,France,-\n\
1952,Helsinki,Finland,July\n1960,Rome,Italy,August\n1900,paris,FRANCE,June\n"
)
MINE = 'when,where,n\n1900,PARIS,1\n1924, paris ,2\n1952,Paris,3\n,Rome,4\n1960,"Rome, Italy",5\n'


@pytest.fixture(scope="module")
def key_index(tmp_path_factory):
    """Index two tables that hold the same years and cities, with the part for composite keys."""
    lake = tmp_path_factory.mktemp("games") / "lake"
    lake.mkdir()
    (lake / "games.csv").write_text(GAMES, encoding="utf-8")
    (lake / "cities.csv").write_text("city,nation\nParis,France\nRome,Italy\n", encoding="utf-8")
    path = lake.parent / "lake.pexeso"
    return build_index(lake, path, model="hashing", dimensions=64, parts=["composite"]).path


@pytest.fixture
def mine(write):
    """Write a table of yours; return ``FILE:when,where``."""
    path = write("mine.csv", MINE)
    return f"{path}:when,where"


JOINED = """\
when,where,n,match_value,match_distance,year,city,nation,opened
1900,PARIS,1,"1900,Paris",0.0,1900,Paris,France,May
1900,PARIS,1,"1900,paris",0.0,1900,paris,FRANCE,June
1924, paris ,2,"1924,Paris",0.0,1924,Paris,France,July
1952,Paris,3,,,,,,
,Rome,4,,,,,,
1960,"Rome, Italy",5,,,,,,
"""
REPORT = (
    "Joined with games.csv:year,city: 50.0 % of the keys match (2 of 4), 2 of 5 rows joined; "
    "6 rows, 1.5 for each row that matches\n"
    "1 key of your table is joined with several rows, such as '1900,PARIS': '1900,Paris'.\n"
)


@pytest.mark.parametrize(
    "named", [["games.csv:year,city"], ["games.csv:#0, #1"], ["games.csv"], []]
)
def test_rows_whose_keys_are_equal_are_joined(run, key_index, mine, named):
    result = run("join", key_index, mine, *named)
    assert (result.stdout, result.stderr) == (JOINED, REPORT)


def test_the_best_table_is_never_the_table_itself(run, key_index, tmp_path):
    lake = key_index.parent / "lake"
    result = run("join", key_index, f"{lake / 'games.csv'}:city,nation")
    assert result.stderr.startswith("Joined with cities.csv:city,nation: 50.0 % of the keys")


def test_a_column_with_a_comma_in_its_name_is_one_column(run, small_index, write):
    path = write("odd.csv", '"town, state",n\nOslo,1\nRome,2\n')
    result = run("join", small_index, f"{path}:town, state", "cities.csv:city")
    assert "of the values match (2 of 2)" in result.stderr
    result = run("explain", small_index, f'{path}:"town, state",n', "cities.csv:city,country")
    assert result.stdout.startswith("0.0 % of the keys match (0 of 2): town, state, n with city, c")


@pytest.mark.parametrize(
    ("code", "arguments", "words"),
    [
        (2, ["join", "games.csv:year,city,nation"], "Got 2 of your columns (when, where) and 3"),
        (2, ["join", "cities.csv"], "No row of 'cities.csv' has a whole key of your table"),
        (
            2,
            ["join", "games.csv", "--max-distance", "0.2", "--model", "x"],
            "no use for --max-distance, --model: leave them out",
        ),
        (
            2,
            ["explain", "games.csv", "--auto"],
            "The explanation of a composite key has no use for --auto: leave it",
        ),
        (2, ["explain", "games.csv", "--csv"], "--csv shows pairs of similar values"),
        (2, ["explain", "games.csv", "--html", "why.html"], "--html shows pairs of similar values"),
    ],
)
def test_what_cannot_be_had_is_refused_in_a_sentence(fail, key_index, mine, code, arguments, words):
    command, named, *options = arguments
    said = fail(code, command, key_index, mine, named, *options)
    assert words in said


def test_a_query_that_makes_no_key_is_refused(fail, key_index, mine, write):
    file = mine.rpartition(":")[0]
    assert "Got 'when' twice" in fail(2, "join", key_index, f"{file}:when,when", "games.csv")
    assert "There is no column 'wen'" in fail(2, "join", key_index, f"{file}:wen,where")
    assert "Got when~" in fail(2, "join", key_index, f"{file}:when~,where", "games.csv")
    empty = write("empty.csv", "a,b\n,x\ny,\n")
    said = fail(2, "join", key_index, f"{empty}:a,b")
    assert "No table of the lake has a row with a whole key of" in said


def test_an_index_without_the_part_joins_tables_that_are_named(run, fail, small_index, write):
    path = write("mine.csv", "town,land\nOslo,Norway\n")
    result = run("join", small_index, f"{path}:town,land", "cities.csv")
    assert result.stdout.splitlines()[1] == 'Oslo,Norway,"Oslo,Norway",0.0,Oslo,Norway,717710'
    assert "composite" in fail(2, "join", small_index, f"{path}:town,land")
