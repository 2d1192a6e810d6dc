"""Tests of the exact output of the commands for exact-value search."""

import json
import shutil

import pytest
from bare_indexes import without_parts
from click.testing import CliRunner

from pexeso.faces.cli.main import cli
from pexeso.faces.cli.report import EQUAL, write_results
from pexeso.index import open_index
from pexeso.sets.results import TokenMatch, TokenSearchResult
from pexeso.sets.shard_searches import CONTAINMENT_FIELDS

NUMBERS = """\
containment  overlap  values  table        column  brings
     75.0 %      3/4       5  numbers.csv  id      amount
"""


@pytest.fixture
def towns(write):
    """Write a user table of towns and numbers of the lake, and one of each that it lacks."""
    return write("towns.csv", "town,number\nOslo,1\nMadrid,2.0\nDublin,3\nXyzzyx,77\n")


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
def built(bare, tmp_path_factory):
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
    assert again.stdout == ""
    assert again.stderr.startswith(
        "There was nothing to add: the index has overlap (11 columns with 66 values); "
    )
    assert json.loads(run("add-part", index, "overlap", "--json").stdout)["committed"] is False


def test_numbers_join_by_equal_text_and_a_column_can_be_named_by_its_position(run, index, towns):
    assert run("search", "--method", "overlap", index, f"{towns}:#1").stdout == NUMBERS
    assert run("search", "--method", "overlap", index, f"{towns}:number").stdout == NUMBERS


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
def test_a_query_that_finds_nothing_says_why(run, index, write, rows, said):
    path = write("query.csv", f"town,n\n{rows}")
    result = run("search", "--method", "overlap", index, f"{path}:town")
    assert result.stdout == ""
    assert result.stderr.startswith(said)
    assert (
        json.loads(run("search", "--method", "overlap", index, f"{path}:town", "--json").stdout)[
            "results"
        ]
        == []
    )
    table = run("search", "--method", "overlap", index, f"{path}:town", "--csv").stdout
    assert table == "table,column,overlap,n_copies,brings\n"


def test_a_value_cannot_forge_what_a_terminal_shows(run, index, write):
    path = write("evil.csv", '"to\x1b[31mwn"\nOslo\nMadrid\n')
    result = run("search", "--method", "overlap", index, path, "--all-columns")
    assert "\x1b" not in result.output


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["all", "--html", "page.html"], "--html shows results of semantic search"),
        (["overlap", "--no-rerank"], "--rerank and --no-rerank order results of semantic search"),
        (["all", "--rerank"], "--rerank and --no-rerank order results of semantic search"),
        (
            ["all", "--explain", "--csv"],
            "--method all writes one CSV row a column: leave out --explain",
        ),
        (["nearness"], "'nearness' is not one of 'semantic', 'overlap', 'containment', "),
    ],
)
def test_options_that_a_way_has_no_use_for(fail, index, towns, given, words):
    assert words in fail(2, "search", index, f"{towns}:town", "--method", *given)


def test_no_column_in_any_way(run, index, write):
    path = write("query.csv", "code\n~~~~\n")
    result = run("search", index, f"{path}:code", "--method", "all", "--max-distance", 0)
    assert result.stdout == ""
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
    query = {"file": None, "column": None, "rows": 9, "values": 9}
    options = {"min_containment": 0.7}
    result = TokenSearchResult(query, options, (match,), CONTAINMENT_FIELDS, {"seconds": 0.001})
    write_results(EQUAL, [result], "table", 0, explain=False, name_queries=False)
    assert capsys.readouterr().out.splitlines()[1].split() == ["~81.2", "%", "1,234", "a.csv", "id"]
    measures = {"table": "a.csv", "column": "id", "containment": 0.812, "estimated": True}
    sizes = {"rows_per_value": None, "is_small_domain": False}
    assert result.to_dict()["results"] == [{**measures, "brings": [], **sizes}]


def test_containment_that_finds_nothing_says_why(run, fail, both, write, towns):
    result = run("search", "--method", "containment", both, f"{towns}:town", "--min-joinability", 1)
    assert result.stdout == ""
    assert result.stderr.startswith(
        "No column has 100.0 % of the 4 values. Try a smaller --min-joinability, or "
    )
    path = write("empty.csv", "town,n\n,\n")
    assert (
        "has no value: there is nothing to look for."
        in run("search", "--method", "containment", both, f"{path}:town").stderr
    )
    assert "neither 'all' nor a whole number of at least 1" in fail(
        2, "search", "--method", "containment", both, f"{towns}:town", "-k", 0
    )


def test_info_tells_of_columns_that_were_deleted(run, both, tmp_path):
    index = shutil.copytree(both, tmp_path / "lake.pexeso")
    run("delete", index, "cities.csv")
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
    run("delete", index, "cities.csv")
    assert values(index).count("at most") == 2
    assert open_index(index).info().counts_are_bounds
