"""Tests of the exact output of the commands for exact-value search.

These are `pexeso search --method overlap`, `containment` and `all`, and `pexeso add-part`.
"""

import csv
import io
import json
import shutil

import pytest
from bare_indexes import without_parts
from click.testing import CliRunner

from pexeso.faces.cli.main import cli
from pexeso.faces.cli.output.report import EQUAL, write_results
from pexeso.index import open_index
from pexeso.sets.search.results import TokenMatch, TokenSearchResult
from pexeso.sets.search.searches import FIELDS

pytestmark = pytest.mark.spark

TABLE = """\
containment  overlap  values  table                 column  brings
     75.0 %      3/4       8  cities.csv            city    country, people
     50.0 %      2/4       5  nested/companies.csv  place   name, +2 more
"""

EXPLAINED = """\
containment  overlap  values  table                 column  brings
     75.0 %      3/4       8  cities.csv            city    country, people
    Dublin
    Madrid
    and 1 more value (--pairs all)

     50.0 %      2/4       5  nested/companies.csv  place   name, +2 more
    Madrid
    Oslo
"""

CITY_BESIDE = {"copies": [], "brings": ["country", "people"]}
PLACE_BESIDE = {"copies": [], "brings": ["name", "#2", "#3"]}

EVERY_WAY = """\
 share    semantic  equal values  table                 column   brings
75.0 %  3/4 values    3/4 values  cities.csv            city     country, people
50.0 %  2/4 values    2/4 values  nested/companies.csv  place    name, +2 more
50.0 %  2/4 values                nested/capitals.tsv   Capital  Seat since
"""

NUMBERS = """\
containment  overlap  values  table        column  brings
     75.0 %      3/4       5  numbers.csv  id      amount
"""


@pytest.fixture
def towns(tmp_path):
    """Write a user table of towns and numbers of the lake, and one of each that it lacks."""
    path = tmp_path / "towns.csv"
    path.write_text("town,number\nOslo,1\nMadrid,2.0\nDublin,3\nXyzzyx,77\n", encoding="utf-8")
    return path


def added(part, source, folder):
    """Copy an index, and add a part to it."""
    index = shutil.copytree(source, folder / "lake.pexeso")
    return index, CliRunner().invoke(
        cli, ["add-part", str(index), part, "--json"], prog_name="pexeso"
    )


@pytest.fixture(scope="module")
def bare(small_index, tmp_path_factory):
    """Copy the small index without its parts for exact-value search.

    The copy is as if it had been built without them.
    """
    return without_parts(small_index, tmp_path_factory.mktemp("bare") / "lake.pexeso")


@pytest.fixture(scope="module")
def built(bare, spark, tmp_path_factory):
    """Add the overlap part to that index by the command; return the index and the output."""
    return added("overlap", bare, tmp_path_factory.mktemp("overlap"))


@pytest.fixture(scope="module")
def built_both(built, tmp_path_factory):
    """Add the containment part to that index by the command; return the index and the output."""
    return added("containment", built[0], tmp_path_factory.mktemp("containment"))


@pytest.fixture
def index(built):
    return built[0]


@pytest.fixture
def both(built_both):
    return built_both[0]


def test_the_part_is_added_and_told(built, run):
    index, done = built
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout) == {
        "generation": 2,
        "committed": True,
        "parts": ["overlap"],
        "columns": 11,
        "tokens": 61,
        "pairs": 66,
        "left_out": 0,
    }
    assert done.stderr.startswith(
        "Added: the index has overlap now (11 columns with 66 values); generation 2, "
    )
    again = run("add-part", index, "overlap")
    assert (again.exit_code, again.stdout) == (0, "")
    assert again.stderr.startswith(
        "There was nothing to add: the index has overlap (11 columns with 66 values); "
    )
    assert json.loads(run("add-part", index, "overlap", "--json").stdout)["committed"] is False


def test_a_table_for_people(run, index, towns):
    result = run("search", "--method", "overlap", index, f"{towns}:town")
    assert (result.exit_code, result.stdout) == (0, TABLE)
    assert result.stderr.startswith("2 columns in ")
    assert result.stderr.endswith(" ms\n")


def test_the_values_that_both_have_and_how_many_more(run, index, towns):
    assert (
        run(
            "search", "--method", "overlap", index, f"{towns}:town", "--explain", "--pairs", 2
        ).stdout
        == EXPLAINED
    )
    shown = run(
        "search",
        "--method",
        "overlap",
        index,
        f"{towns}:town",
        "--explain",
        "--pairs",
        "all",
        "-k",
        1,
    ).stdout.splitlines()
    values = ["    Dublin", "    Madrid", "    Oslo"]
    assert shown[2:] == [*values, "", "and 1 more column (-k 2, or -k all)"]


def test_json_has_three_fields_a_column_and_the_shared_values_when_asked(run, index, towns):
    document = json.loads(
        run("search", "--method", "overlap", index, f"{towns}:town", "--json").stdout
    )
    assert list(document) == ["query", "options", "results", "n_more", "stats"]
    city = {"table": "cities.csv", "column": "city", "overlap": 3, **CITY_BESIDE}
    place = {"table": "nested/companies.csv", "column": "place", "overlap": 2, **PLACE_BESIDE}
    assert document["results"] == [city, place]
    assert document["query"] == {"file": str(towns), "column": "town", "rows": 4, "values": 4}
    assert document["options"] == {"k": 20, "exclude_table": None}
    explained = json.loads(
        run(
            "search", "--method", "overlap", index, f"{towns}:town", "-k", 1, "--explain", "--json"
        ).stdout
    )
    assert explained["results"] == [{**city, "shared": ["Dublin", "Madrid", "Oslo"]}]


def test_json_lines_and_csv(run, index, towns):
    lines = run(
        "search", "--method", "overlap", index, f"{towns}:town", "--jsonl"
    ).stdout.splitlines()
    assert [json.loads(line) for line in lines] == [
        {"table": "cities.csv", "column": "city", "overlap": 3, **CITY_BESIDE},
        {"table": "nested/companies.csv", "column": "place", "overlap": 2, **PLACE_BESIDE},
    ]
    assert run(
        "search", "--method", "overlap", index, f"{towns}:town", "-k", 1, "--csv"
    ).stdout == ("table,column,overlap,n_copies,brings\ncities.csv,city,3,0,country; people\n")
    rows = list(
        csv.reader(
            io.StringIO(
                run(
                    "search",
                    "--method",
                    "overlap",
                    index,
                    f"{towns}:town",
                    "-k",
                    1,
                    "--explain",
                    "--csv",
                ).stdout
            )
        )
    )
    assert rows[0] == ["table", "column", "overlap", "n_copies", "brings", "value"]
    assert [row[5] for row in rows[1:]] == ["Dublin", "Madrid", "Oslo"]


def test_numbers_join_by_equal_text_and_a_column_can_be_named_by_its_position(run, index, towns):
    assert run("search", "--method", "overlap", index, f"{towns}:#1").stdout == NUMBERS
    assert run("search", "--method", "overlap", index, f"{towns}:number").stdout == NUMBERS


def test_every_column_means_those_of_numbers_too(run, index, towns):
    lines = run(
        "search", "--method", "overlap", index, towns, "--all-columns", "--json"
    ).stdout.splitlines()
    answers = {answer["query"]["column"]: answer["results"] for answer in map(json.loads, lines)}
    assert [len(results) for results in answers.values()] == [2, 1]
    assert list(answers) == ["town", "number"]
    table = run("search", "--method", "overlap", index, towns, "--all-columns", "-k", 1)
    assert [line for line in table.stdout.splitlines() if line and "  " not in line] == [
        "town",
        "and 1 more column (-k 2, or -k all)",
        "number",
    ]
    assert [line.partition(" in ")[0] for line in table.stderr.splitlines()] == [
        "town: 1 of 2 columns",
        "number: 1 column",
        "2 searches",
    ]
    rows = run(
        "search", "--method", "overlap", index, towns, "--all-columns", "--csv"
    ).stdout.splitlines()
    assert rows == [
        "query_column,table,column,overlap,n_copies,brings",
        "town,cities.csv,city,3,0,country; people",
        "town,nested/companies.csv,place,2,0,name; #2; #3",
        "number,numbers.csv,id,3,0,amount",
    ]
    rows = run(
        "search", "--method", "overlap", index, towns, "--all-columns", "--jsonl"
    ).stdout.splitlines()
    assert [json.loads(row)["query_column"] for row in rows] == ["town", "town", "number"]


def test_a_table_of_the_lake_leaves_itself_out(run, index, small_lake):
    spec = f"{small_lake / 'cities.csv'}:city"
    rows = run("search", "--method", "overlap", index, spec, "--csv").stdout.splitlines()
    assert rows[1] == "cities.csv,city,8,0,country; people"
    assert run(
        "search", "--method", "overlap", index, spec, "--exclude-self", "--csv"
    ).stdout.splitlines() == [
        "table,column,overlap,n_copies,brings",
        "nested/companies.csv,place,5,0,name; #2; #3",
    ]


def test_more_columns_than_there_are_is_no_mistake_and_none_is(run, fail, index, towns):
    assert run("search", "--method", "overlap", index, f"{towns}:town", "-k", 10**9).stdout == TABLE
    said = fail(2, "search", "--method", "overlap", index, f"{towns}:town", "-k", 0)
    assert "'0' is neither 'all' nor a whole number of at least 1." in said


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (",\n,\n", "The query column has no value: there is nothing to look for.\n"),
        ("", "The query column has no value: there is nothing to look for.\n"),
        (
            "Xyzzyx,1\noslo,1\n",
            "No column has any of the 2 values. pexeso search looks for other spellings too.\n",
        ),
        (
            "Xyzzyx,1\n",
            "No column has the one value. pexeso search looks for other spellings too.\n",
        ),
    ],
)
def test_a_query_that_finds_nothing_says_why(run, index, tmp_path, rows, said):
    path = tmp_path / "query.csv"
    path.write_text(f"town,n\n{rows}", encoding="utf-8")
    result = run("search", "--method", "overlap", index, f"{path}:town")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr.startswith(said)
    assert (
        json.loads(run("search", "--method", "overlap", index, f"{path}:town", "--json").stdout)[
            "results"
        ]
        == []
    )
    table = run("search", "--method", "overlap", index, f"{path}:town", "--csv").stdout
    assert table == "table,column,overlap,n_copies,brings\n"


def test_one_value_is_a_query(run, index, tmp_path):
    path = tmp_path / "one.csv"
    path.write_text("town\nMadrid\n", encoding="utf-8")
    assert run("search", "--method", "overlap", index, path, "--csv").stdout.splitlines()[1:] == [
        "cities.csv,city,1,0,country; people",
        "nested/companies.csv,place,1,0,name; #2; #3",
    ]


def test_a_value_cannot_forge_what_a_terminal_shows(run, index, tmp_path):
    path = tmp_path / "evil.csv"
    path.write_text('"to\x1b[31mwn"\nOslo\nMadrid\n', encoding="utf-8")
    result = run("search", "--method", "overlap", index, path, "--all-columns")
    assert "\x1b" not in result.output


@pytest.mark.parametrize("part", ["overlap", "containment"])
def test_an_index_without_the_part_says_how_to_add_it(fail, bare, towns, part):
    said = fail(2, "search", "--method", part, bare, f"{towns}:town")
    assert said.startswith(
        f"Error: The index '{bare}' has no part for searches by {part} of equal texts. "
    )
    assert f"Add it with 'pexeso add-part {bare} {part}', or " in said
    assert f"'pexeso index LAKE INDEX --include {part}'" in said


@pytest.mark.parametrize("command", ["search", "add-part"])
def test_no_index_is_one_sentence(fail, tmp_path, towns, command):
    words = [f"{towns}:town", "--method", "overlap"] if command == "search" else ["overlap"]
    said = fail(1, command, tmp_path / "none", *words)
    assert (
        said
        == f"Error: There is no index at '{tmp_path / 'none'}': no such folder. Build one with "
        "'pexeso index'.\n"
    )


def test_a_column_or_an_option_that_is_not_there(fail, index, towns):
    assert "There is no column 'city'." in fail(
        2, "search", "--method", "overlap", index, f"{towns}:city"
    )
    assert "--all-columns takes a file alone." in fail(
        2, "search", "--method", "overlap", index, f"{towns}:town", "--all-columns"
    )
    assert "neither 'all' nor a whole number" in fail(
        2, "search", "--method", "overlap", index, f"{towns}:town", "--pairs", 0
    )
    said = fail(2, "search", "--method", "overlap", index)
    assert "Usage: pexeso search [OPTIONS] INDEX FILE:COLUMN" in said
    assert "Missing argument 'FILE:COLUMN'." in said


def test_a_part_that_is_none_is_told_before_any_work(fail, small_lake, tmp_path):
    said = fail(2, "index", small_lake, tmp_path / "out", "--include", "meaning")
    assert (
        "The parts that an index can have are overlap, containment, bands, composite, "
        "redundancy. Got 'meaning'." in said
    )


def test_all_ways_in_one_list_that_says_which(run, index, towns):
    result = run(
        "search", index, f"{towns}:town", "--method", "all", "--max-distance", 0.1, "-k", 9
    )
    assert (result.exit_code, result.stdout) == (0, EVERY_WAY)
    assert result.stderr == "3 columns\n"


def test_all_ways_as_documents(run, index, towns):
    command = ("search", index, f"{towns}:town", "--method", "all", "--max-distance", 0.1, "-k", 9)
    document = json.loads(run(*command, "--json").stdout)
    by_key = {(match["table"], match["column"]): match for match in document["results"]}
    assert by_key["cities.csv", "city"] == {
        "table": "cities.csv",
        "column": "city",
        "share": 0.75,
        "found_by": ["meaning", "overlap"],
        "joinability": 0.75,
        "matched": 3,
        "total": 4,
        "joinability_of": "values",
        "overlap": 3,
        "containment": 0.75,
        "transformed": None,
        "program": None,
        **CITY_BESIDE,
    }
    assert by_key["nested/capitals.tsv", "Capital"]["overlap"] is None
    ways = {"meaning", "overlap", "transform"}
    assert set(document["stats"]) == set(document["options"]) == ways
    explained = json.loads(run(*command, "--explain", "--json").stdout)["results"][0]
    assert explained["pairs"][0] == ["Oslo", "Oslo", 0.0, "exact"]
    assert explained["shared"] == ["Dublin", "Madrid", "Oslo"]
    rows = list(csv.DictReader(io.StringIO(run(*command, "--csv").stdout)))
    assert [row["found_by"] for row in rows] == ["meaning overlap", "meaning overlap", "meaning"]
    assert len(run(*command, "--jsonl").stdout.splitlines()) == 3
    every = run(
        "search", index, towns, "--method", "all", "--all-columns", "-k", 1, "--csv"
    ).stdout.splitlines()
    assert [row.partition(",")[0] for row in every] == ["query_column", "town", "number"]


def test_all_ways_explained(run, index, towns):
    command = ("search", index, "--method", "all", "--explain", "--pairs", 1)
    shown = run(*command, f"{towns}:town", "--max-distance", 0.1, "-k", 1).stdout.splitlines()
    assert shown[2:4] == ["    Oslo  =  Oslo  0.000  exact", "    and 2 more pairs (--pairs all)"]
    shown = run(*command, f"{towns}:number", "--max-distance", 0, "-k", 1).stdout.splitlines()
    assert shown[2:4] == ["    1", "    and 2 more values (--pairs all)"]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            ["overlap", "--max-distance", 0.1],
            "--method overlap compares equal texts and has no use for --max-distance",
        ),
        (["overlap", "--min-joinability", 0.5], "has no use for --min-joinability: leave it out."),
        (
            ["overlap", "--auto", "--joinability-of", "rows"],
            "has no use for --auto, --joinability-of: leave them out.",
        ),
        (
            ["containment", "--device", "cuda"],
            "--method containment compares equal texts and has no use for --device",
        ),
        (["all", "--html", "page.html"], "--html shows what semantic search finds"),
        (["overlap", "--no-rerank"], "--rerank and --no-rerank order what semantic search finds"),
        (["all", "--rerank"], "--rerank and --no-rerank order what semantic search finds"),
        (
            ["all", "--explain", "--csv"],
            "--method all writes one row a column as CSV: leave --explain out",
        ),
        (["nearness"], "'nearness' is not one of 'semantic', 'overlap', 'containment', "),
    ],
)
def test_options_that_a_way_has_no_use_for(fail, index, towns, given, words):
    assert words in fail(2, "search", index, f"{towns}:town", "--method", *given)


def test_no_column_in_any_way(run, index, tmp_path):
    path = tmp_path / "query.csv"
    path.write_text("code\n~~~~\n", encoding="utf-8")
    result = run("search", index, f"{path}:code", "--method", "all", "--max-distance", 0)
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr.startswith("No column was found in any way. ")


def test_containment_is_made_of_the_sets_that_are_there(built_both, run, small_lake):
    both, done = built_both
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["parts"] == ["overlap", "containment"]
    assert done.stderr.startswith(
        "Added: the index has overlap and containment now (11 columns with 66 values); "
    )
    again = run("add-part", both, "containment")
    assert again.stderr.startswith(
        "There was nothing to add: the index has overlap and containment (11 columns "
    )
    assert run("add-part", both, "overlap").stderr.startswith("There was nothing to add: ")


def test_columns_that_contain_a_share(run, both, towns):
    result = run("search", "--method", "containment", both, f"{towns}:town")
    assert (result.exit_code, result.stdout.splitlines()[1:]) == (
        0,
        ["     75.0 %      3/4       8  cities.csv  city    country, people"],
    )
    assert result.stderr.startswith("1 column in ")
    assert (
        run(
            "search", "--method", "containment", both, f"{towns}:town", "--min-joinability", 0.5
        ).stdout
        == TABLE
    )
    assert (
        run(
            "search", "--method", "containment", both, f"{towns}:#1", "--min-joinability", 0.75
        ).stdout
        == NUMBERS
    )
    explained = run(
        "search",
        "--method",
        "containment",
        both,
        f"{towns}:town",
        "--min-joinability",
        0.5,
        "--explain",
        "--pairs",
        2,
    )
    assert explained.stdout == EXPLAINED


def test_containment_as_documents(run, both, towns):
    city = {"table": "cities.csv", "column": "city", "containment": 0.75, "estimated": False}
    city |= CITY_BESIDE
    place = {
        "table": "nested/companies.csv",
        "column": "place",
        "containment": 0.5,
        "estimated": False,
        **PLACE_BESIDE,
    }
    command = ("search", "--method", "containment", both, f"{towns}:town", "--min-joinability", 0.5)
    document = json.loads(run(*command, "--json").stdout)
    assert document["results"] == [city, place]
    assert document["options"] == {
        "min_containment": 0.5,
        "verify": True,
        "k": 20,
        "exclude_table": None,
    }
    assert json.loads(run(*command, "-k", 1, "--json").stdout)["results"] == [city]
    assert [json.loads(line) for line in run(*command, "--jsonl").stdout.splitlines()] == [
        city,
        place,
    ]
    explained = json.loads(run(*command, "-k", 1, "--explain", "--json").stdout)["results"]
    assert explained == [{**city, "shared": ["Dublin", "Madrid", "Oslo"]}]
    assert run(*command, "--csv").stdout.splitlines() == [
        "table,column,containment,estimated,n_copies,brings",
        "cities.csv,city,0.75,False,0,country; people",
        "nested/companies.csv,place,0.5,False,0,name; #2; #3",
    ]
    rows = run(*command, "-k", 1, "--explain", "--csv").stdout.splitlines()
    assert [row.rpartition(",")[2] for row in rows] == ["value", "Dublin", "Madrid", "Oslo"]


def test_small_sets_are_counted_also_where_nothing_need_be(both):
    index = open_index(both, device="cpu")
    values = ["Oslo", "Madrid", "Dublin", "Xyzzyx"]
    results = [
        index.contain(values, min_containment=0.5, verify=verify).to_dict()["results"]
        for verify in (True, False)
    ]
    assert len(results[0]) == 2
    assert results[0] == results[1]


def test_an_estimate_is_marked_as_one(capsys):
    match = TokenMatch("a.csv", "id", None, 0.812, 1234, (None, 0), lambda: ["7"])
    query, options = (
        {"file": None, "column": None, "rows": 9, "values": 9},
        {"min_containment": 0.7},
    )
    result = TokenSearchResult(query, options, (match,), FIELDS, {"seconds": 0.001})
    write_results(EQUAL, [result], "table", 0, explain=False, name_queries=False)
    assert capsys.readouterr().out.splitlines()[1].split() == ["~81.2", "%", "1,234", "a.csv", "id"]
    assert result.to_dict()["results"] == [
        {"table": "a.csv", "column": "id", "containment": 0.812, "estimated": True, "brings": []}
    ]


def test_containment_leaves_its_own_table_out_and_takes_every_column(run, both, small_lake, towns):
    spec = f"{small_lake / 'cities.csv'}:city"
    command = ("search", "--method", "containment", both, spec, "--min-joinability", 0.5, "--csv")
    assert len(run(*command).stdout.splitlines()) == 3
    assert run(*command, "--exclude-self").stdout.splitlines()[1:] == [
        "nested/companies.csv,place,0.625,False,0,name; #2; #3"
    ]
    rows = run(
        "search", "--method", "containment", both, towns, "--all-columns", "--csv"
    ).stdout.splitlines()
    assert [row.partition(",")[0] for row in rows] == ["query_column", "town", "number"]


@pytest.mark.parametrize("share", [0, -0.5, 1.01, "nan"])
def test_a_share_must_lie_above_zero_and_at_most_at_one(fail, both, towns, share):
    said = fail(
        2, "search", "--method", "containment", both, f"{towns}:town", "--min-joinability", share
    )
    assert f"--min-joinability must be a number in (0, 1]. Got {float(share)} instead." in said


def test_containment_that_finds_nothing_says_why(run, fail, both, tmp_path, towns):
    result = run("search", "--method", "containment", both, f"{towns}:town", "--min-joinability", 1)
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr.startswith(
        "No column has 100.0 % of the 4 values. Try a smaller --min-joinability, or "
    )
    path = tmp_path / "empty.csv"
    path.write_text("town,n\n,\n", encoding="utf-8")
    assert (
        "has no value: there is nothing to look for."
        in run("search", "--method", "containment", both, f"{path}:town").stderr
    )
    assert "neither 'all' nor a whole number of at least 1" in fail(
        2, "search", "--method", "containment", both, f"{towns}:town", "-k", 0
    )


def test_search_by_containment_and_by_all_with_both_parts(run, both, towns):
    command = ("search", both, f"{towns}:town", "--method")
    assert run(*command, "containment", "--min-joinability", 0.5).stdout == TABLE
    assert run(*command, "containment", "-k", 1, "--csv").stdout.splitlines()[1:] == [
        "cities.csv,city,0.75,False,0,country; people"
    ]
    document = json.loads(run(*command, "all", "--max-distance", 0.1, "-k", 9, "--json").stdout)
    ways = {"meaning", "overlap", "containment", "transform"}
    assert set(document["stats"]) == set(document["options"]) == ways
    assert document["options"]["containment"]["min_containment"] == 1.0
    assert run(*command, "all", "--max-distance", 0.1, "-k", 9).stdout == EVERY_WAY
    rows = run(
        *command, "all", "--max-distance", 0.1, "--min-joinability", 0.6, "--csv"
    ).stdout.splitlines()
    assert rows[1].split(",")[:4] == ["cities.csv", "city", "0.75", "meaning overlap containment"]


def test_info_tells_of_the_parts(run, both, bare):
    lines = run("info", both).stdout.splitlines()
    [line] = [line for line in lines if line.startswith("equal text")]
    assert line.startswith(
        "equal text  overlap and containment: 11 columns, 66 (column, value) pairs, in 1 shard ("
    )
    names, facts = [line.split() for line in lines if line.split()[:1] in (["shard"], ["0"])][-2:]
    assert names == ["shard", "columns", "tokens", "pairs", "deleted", "bytes"]
    assert facts[:5] == ["0", "11", "61", "66", "0"]
    document = json.loads(run("info", both, "--json").stdout)
    entry = open_index(both).store.manifest.parts["token_sets"][0]
    assert document["parts"] == ["overlap", "containment"]
    assert document["token_sets"] == [
        {"columns": 11, "tokens": 61, "pairs": 66, "deleted": 0, "bytes": entry.n_bytes}
    ]
    without = json.loads(run("info", bare, "--json").stdout)
    assert (without["parts"], without["token_sets"]) == ([], [])
    assert "equal text" not in run("info", bare).stdout


def test_info_tells_of_columns_that_were_deleted(run, both, tmp_path):
    index = shutil.copytree(both, tmp_path / "lake.pexeso")
    assert run("delete", index, "cities.csv").exit_code == 0
    assert (
        "overlap and containment: 11 columns, 3 of them deleted, 66 (column, value) pairs"
        in run("info", index).stdout
    )
    assert json.loads(run("info", index, "--json").stdout)["token_sets"][0]["deleted"] == 3


def test_info_tells_counts_that_updates_made_bounds(run, both, tmp_path):
    def values(index):
        lines = run("info", index).stdout.splitlines()
        return next(line for line in lines if line.startswith("values"))

    index = shutil.copytree(both, tmp_path / "lake.pexeso")
    assert "at most" not in values(index)
    assert not open_index(index).info().counts_are_bounds
    assert run("delete", index, "cities.csv").exit_code == 0
    assert values(index).count("at most") == 2
    assert open_index(index).info().counts_are_bounds


@pytest.mark.parametrize(
    ("parts", "fixture"), [(("overlap",), "index"), (("overlap", "containment"), "both")]
)
def test_the_whole_index_is_checked(run, request, parts, fixture):
    index = request.getfixturevalue(fixture)
    assert run("check", index).exit_code == 0
    assert open_index(index).parts == parts
