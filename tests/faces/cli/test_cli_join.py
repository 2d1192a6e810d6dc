"""`pexeso join`: the user's table with the rows of a found one, written whole or not at all."""

import datetime
import os

import pandas as pd
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from pexeso.errors import OutputError
from pexeso.lake.containers import reader
from pexeso.store.io.temporary import written_whole

JOINED = """\
place,visits,match_value,match_distance,city,country,people
Oslo,3,Oslo,0.0,Oslo,Norway,717710
rome,1,Rome,0.0,Rome,Italy,2746984
 MADRID ,2,Madrid,0.0,Madrid,Spain,3332035
Xyzzyx,1,,,,,
,4,,,,,
"""


def test_csv_on_stdout(run, small_index, places):
    result = run("join", small_index, f"{places}:place", "cities.csv:city")
    assert result.stdout == JOINED
    assert result.stderr == (
        "Joined with cities.csv:city: 75.0 % of the values match (3 of 4), 3 of 5 rows joined; "
        "5 rows\n"
    )
    counted = ("--joinability-of", "rows")
    summary = run("join", small_index, f"{places}:place", "cities.csv:city", *counted).stderr
    assert summary == "Joined with cities.csv:city: 60.0 % of the rows match (3 of 5); 5 rows\n"


def test_two_files_are_joined_without_an_index(run, fail, small_lake, places, tmp_path):
    joined = run("join", f"{places}:place", f"{small_lake / 'cities.csv'}:city")
    assert joined.stdout == JOINED
    assert sorted(os.listdir(tmp_path)) == ["places.csv"]
    message = fail(2, "join", f"{places}:place", f"{small_lake / 'cities.csv'}:town")
    assert "There is no column 'town'" in message
    message = fail(2, "join", f"{places}:place", f"{small_lake / 'cities.csv'}:city", "--transform")
    assert "pexeso transform FILE:COLUMN FILE:COLUMN" in message
    for files in ((places, "nothing.csv"), ("nothing.csv", places), ("nothing.csv", "other.csv")):
        message = fail(1, "join", *(f"{file}:place" for file in files))
        assert "There is no file 'nothing.csv'" in message
    assert "There is no index at 'nothing'" in fail(1, "join", "nothing", f"{places}:place")


def test_two_files_are_each_parsed_once(run, small_lake, places, monkeypatch):
    parsed, parse = [], reader.parse_delimited

    def count(data, budget, *arguments, **options):
        parsed.append(os.path.basename(budget.shown))
        return parse(data, budget, *arguments, **options)

    monkeypatch.setattr(reader, "parse_delimited", count)
    for _ in range(2):
        parsed.clear()
        run("join", f"{places}:place", f"{small_lake / 'cities.csv'}:city")
        assert sorted(parsed) == ["cities.csv", "places.csv"]


def test_keys_and_codes_of_two_files_are_joined_without_an_index(run, write):
    left = write("left.csv", "fips,year\n01001,2020\n01003,2021\n")
    right = write("right.csv", "code,year,n\n1001,2020,a\n1003,2022,b\n")
    codes = run("join", f"{left}:fips", f"{right}:code")
    assert "2 of 2 would match" in codes.stderr
    assert "leading-zeros" in codes.stderr
    for distance in ("0", "0.1", None):
        words = () if distance is None else ("--max-distance", distance)
        by_rule = run("join", f"{left}:fips", f"{right}:code", "--rule", "leading-zeros", *words)
        assert "(2 of 2)" in by_rule.stderr, distance
    left.write_text("city,year\nOslo,2020\nRome,2021\n")
    right.write_text("place,year,n\nOSLO,2020.0,a\nRome,2022,b\n")
    keys = run("join", f"{left}:city,year", f"{right}:place,year", "--provenance", "none")
    assert [line.rpartition(",")[2] for line in keys.stdout.splitlines()] == ["n", "a", ""]


def test_the_best_is_never_the_table_itself(run, small_index, small_lake):
    result = run("join", small_index, f"{small_lake / 'cities.csv'}:city")
    assert "Joined with nested/companies.csv:place" in result.stderr


@pytest.fixture
def typed(tmp_path):
    """Write a file of yours whose columns have types."""
    path = tmp_path / "typed.parquet"
    table = pa.table(
        {
            "place": ["Oslo", "rome", None],
            "n": [1, None, 2**60 + 1],
            "day": [datetime.date(2020, 1, 2), None, None],
            "is": [True, None, False],
            "list": [[1], None, [2]],
            "when": [datetime.datetime(2020, 1, 2, 3), None, None],
            "time": pa.array([1, None, 2], pa.time64("ns")),
        }
    )
    pq.write_table(table, path)
    return path


def test_the_types_of_a_file_of_yours_are_kept(run, small_index, typed, tmp_path):
    output = tmp_path / "joined.parquet"
    run("join", small_index, f"{typed}:place", "cities.csv:city", "-o", output)
    mine, joined = pq.read_table(typed), pq.read_table(output)
    assert joined.select(mine.column_names).equals(mine)
    assert joined["country"].to_pylist() == ["Norway", "Italy", None]
    csv = run("join", small_index, f"{typed}:place", "cities.csv:city", "--provenance", "value")
    assert csv.stdout.splitlines()[:3] == [
        "place,n,day,is,list,when,time,match_value,city,country,people",
        "Oslo,1,2020-01-02,True,[1],2020-01-02 03:00:00,00:00:00.000000001,Oslo,Oslo,Norway,717710",
        "rome,,,,,,,Rome,Rome,Italy,2746984",
    ]


def test_a_file_of_yours_is_joined_by_the_texts_that_were_searched_with(run, tmp_path):
    lake = tmp_path / "lake"
    lake.mkdir()
    whens = [datetime.datetime(2020, 1, day, 3, 4) for day in range(1, 8)]
    names = ["a", "b", "c", "d", "e", "f", "g"]
    pq.write_table(pa.table({"at": whens, "name": names}), lake / "events.parquet")
    mine = tmp_path / "mine.parquet"
    pq.write_table(pa.table({"when": whens[:2], "n": [1, 2]}), mine)
    run("index", lake, tmp_path / "lake.pexeso")
    output = run("join", tmp_path / "lake.pexeso", f"{mine}:when", "events.parquet:at").stdout
    assert [line.rpartition(",")[2] for line in output.splitlines()] == ["name", "a", "b"]


def test_a_column_that_was_renamed_since_is_told(run, fail, tmp_path, places):
    lake, index = tmp_path / "lake", tmp_path / "lake.pexeso"
    lake.mkdir()
    cities = lake / "cities.csv"
    cells = "n\nOslo,1\nRome,2\nMadrid,3\nBern,4\nLisbon,5\nVienna,6\n"
    cities.write_text(f"city,{cells}")
    run("index", lake, index)
    cities.write_text(f"town,{cells}")
    message = fail(2, "join", index, f"{places}:place", "cities.csv:city")
    assert "'cities.csv' has changed since it was indexed, so bring the index up to date" in message
    assert "There is no column 'city'" in message
    cities.unlink()
    message = fail(1, "join", index, f"{places}:place", "cities.csv:city")
    assert "'cities.csv' is no longer in the lake" in message
    assert "bring the index up to date (pexeso append)" in message


def test_a_name_of_two_lines_is_reported_in_one(run, tmp_path, write, places):
    lake = write("lake/new\nline.csv", "city\nOslo\nRome\nMadrid\nBern\nLisbon\n").parent
    run("index", lake, tmp_path / "lake.pexeso")
    said = run("join", tmp_path / "lake.pexeso", f"{places}:place", "new\nline.csv:city").stderr
    assert said.startswith("Joined with new\\nline.csv:city: ")


def test_a_column_below_any_threshold_can_be_joined(run, small_index, write):
    path = write("one.csv", "place\nBern\nA\nB\nC\nD\nE\n")
    result = run("join", small_index, f"{path}:place", "nested/capitals.tsv:Capital")
    assert result.stdout.splitlines()[1] == "Bern,BERN,0.0,BERN,1848"
    assert "16.7 % of the values match (1 of 6)" in result.stderr


def test_names_that_repeat_are_replaced_by_positions(run, small_index, write):
    path = write("twice.csv", "place,n,n\nOslo,1,2\n")
    result = run("join", small_index, f"{path}:place", "cities.csv:city")
    assert result.stdout.splitlines()[0].startswith("place,#1,#2,match_value")


def test_a_file_that_is_there_is_replaced_only_when_asked(
    run, fail, small_index, places, tmp_path, write
):
    output = write("joined.csv", "precious")
    said = fail(1, "join", small_index, f"{places}:place", "cities.csv:city", "-o", output)
    assert (
        said == f"Error: '{output}' is there already. Replace it by --overwrite (in Python "
        "overwrite=True), or choose another name.\n"
    )
    assert output.read_text(encoding="utf-8") == "precious"
    command = ("join", small_index, f"{places}:place", "cities.csv:city", "-o", output)
    result = run(*command, "--overwrite")
    assert result.stdout == ""
    assert result.stderr.endswith(f"5 rows, in '{output}'\n")
    assert output.read_text(encoding="utf-8") == JOINED
    assert sorted(os.listdir(tmp_path)) == ["joined.csv", "places.csv"]


def test_no_column_to_join_with(fail, small_index, write):
    path = write("strange.csv", "word\nqqqqqqqq\nwwwwwwww\n")
    said = fail(2, "join", small_index, f"{path}:word", "--max-distance", 0)
    assert (
        said
        == "Error: No column of the lake has a value within distance 0 of 'word'. Try a larger "
        "--max-distance.\n"
    )


def test_a_column_without_values_has_none_to_join_with(fail, small_index, write):
    path = write("blank.csv", "word,n\n,1\n,2\n")
    said = fail(2, "join", small_index, f"{path}:word")
    assert said == "Error: 'word' has no value that a column of the lake could match.\n"


@pytest.fixture
def repeated(write):
    """Write a table with two values that are one place, and one of them twice."""
    path = write("repeated.csv", "place,city\nOslo,a\nOSLO,b\nRome,c\nNowhere,d\n")
    return f"{path}:place"


def test_every_option_is_passed_on(run, small_index, repeated):
    options = ["--type", "inner", "--values", "all", "--max-distance", 1, "--suffix", "_lake"]
    options += ["--aggregate", "people=sum", "--aggregate", "list"]
    options += ["--provenance", "table, column"]
    result = run("join", small_index, repeated, "cities.csv:city", *options)
    header, *rows = result.stdout.splitlines()
    assert header == "place,city,match_table,match_column,city_lake,country,people"
    assert rows[0].startswith('Oslo,a,cities.csv,city,"[""Oslo"", ""')
    assert [row.rpartition(",")[2] for row in rows] == ["11289139.0"] * 4  # of all eight cities
    assert "; 4 rows" in result.stderr


def test_one_to_one_and_what_the_join_had_to_decide(run, small_index, tmp_path, write):
    conflicts = tmp_path / "conflicts.csv"
    path = write("two.csv", "place,match_value\nOslo,1\nOslo Oslo,2\n")
    spec, lake = f"{path}:place", "cities.csv:city"
    result = run(
        "join", small_index, spec, lake, "--values", "one-to-one", "--conflicts", conflicts
    )
    assert [line.split(",")[2] for line in result.stdout.splitlines()] == [
        "match_value_2",
        "Oslo",
        "",
    ]
    messages = result.stderr.splitlines()
    assert messages == [
        "Joined with cities.csv:city: 100.0 % of the values match (2 of 2), 1 of 2 rows joined; 2 "
        "rows",
        "Note: match_value is a column of your table and stays as it is; what the join adds is "
        "called match_value_2, match_distance_2.",
        "1 lake value is wanted by several values of your table, such as 'Oslo': 'Oslo', 'Oslo "
        "Oslo'.",
        "1 value of your table has matches, all taken by others, such as 'Oslo Oslo': 'Oslo'.",
        f"Every conflict, one row for each value that takes part, is in '{conflicts}'.",
    ]
    assert conflicts.read_text(encoding="utf-8").splitlines() == [
        "kind,query_value,lake_value,column,cell,distance,count",
        "shared,Oslo,Oslo,,,0.0,",
        "shared,Oslo Oslo,Oslo,,,0.0,",
        "unpaired,Oslo Oslo,Oslo,,,0.0,",
    ]


def test_a_join_without_conflicts_and_one_without_rows(run, small_index, tmp_path, write):
    conflicts = tmp_path / "conflicts.csv"
    path = write("none.csv", "place\n")
    result = run("join", small_index, f"{path}:place", "cities.csv:city", "--conflicts", conflicts)
    assert result.stdout == "place,match_value,match_distance,city,country,people\n"
    assert result.stderr.endswith(f"There was no conflict: '{conflicts}' has only a header.\n")
    assert conflicts.read_text(encoding="utf-8").count("\n") == 1


@pytest.mark.parametrize("ending", ["parquet", "arrow", "feather"])
def test_files_of_arrow_keep_lists_and_numbers(run, small_index, repeated, tmp_path, ending):
    output = tmp_path / f"joined.{ending}"
    options = ("--aggregate", "country=list", "--aggregate", "people=count", "-o", output)
    run("join", small_index, repeated, "cities.csv:city", *options)
    table = pq.read_table(output) if ending == "parquet" else feather.read_table(output)
    assert table["country"].to_pylist() == [["Norway"], ["Norway"], ["Italy"], None]
    assert table["people"].to_pylist() == [1, 1, 1, None]
    assert [table.schema.field(name).type for name in ("match_distance", "people")] == [
        pa.float64(),
        pa.int64(),
    ]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--aggregate", "people=median"], "--aggregate takes COLUMN=WAY or WAY, a way of first, "
                                           "list, distinct, count, mean, sum, min, max. Got "
                                           "'people=med"),
        (["--aggregate", "a=sum", "--aggregate", "a=max"], "--aggregate was given twice for 'a': "
                                                           "sum and max."),
        (["--aggregate", "sum", "--aggregate", "max"], "--aggregate was given twice for all "
                                                       "other columns: sum and max."),
        (["--aggregate", "poeple=sum"], "There is no column 'poeple' (did you mean 'people'?)."),
        (["--conflicts", "conflicts.json"], "--conflicts must end in .csv. Got 'conflicts.json' "
                                            "instead."),
        (["-o", "same.csv", "--conflicts", "./same.csv"], "OUT and --conflicts name the same "
                                                          "file: 'same.csv'. Give each its own."),
    ],
)  # fmt: skip
def test_a_wrong_option_is_told_in_a_sentence(fail, small_index, places, arguments, words):
    assert words in fail(2, "join", small_index, f"{places}:place", "cities.csv:city", *arguments)


def test_an_interrupted_write_leaves_nothing_and_replaces_nothing(tmp_path, write):
    target = write("out.csv", "before")

    def stopped():
        with written_whole(target, overwrite=True) as temporary:
            temporary.write_text("half", encoding="utf-8")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped()
    assert os.listdir(tmp_path) == ["out.csv"]
    assert target.read_text(encoding="utf-8") == "before"


def test_a_full_disk_is_one_sentence(tmp_path):
    with (
        pytest.raises(OutputError, match=r"out\.csv' cannot be written: No space left on device"),
        written_whole(tmp_path / "out.csv", overwrite=False),
    ):
        raise OSError(28, "No space left on device")
    assert os.listdir(tmp_path) == []


def test_a_new_file_has_the_rights_that_new_files_have(tmp_path):
    plain = tmp_path / "plain"
    plain.touch()
    with written_whole(tmp_path / "out.csv", overwrite=False) as temporary:
        pd.DataFrame({"a": [1]}).to_csv(temporary, index=False)
    assert (tmp_path / "out.csv").stat().st_mode == plain.stat().st_mode
