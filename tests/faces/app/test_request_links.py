"""Tests of URLs: what they ask is what the lines to copy ask, in a shell and in Python."""

import csv
import html
import io
import os
import re
import shlex
from types import SimpleNamespace

import msgspec
import pandas
import pytest
from app_clients import CITIES, entered
from click.testing import CliRunner
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from long_runs import examples

import pexeso
from pexeso.errors import InputError, PexesoError
from pexeso.faces.app import actions as join_pages
from pexeso.faces.app import search as search_pages
from pexeso.faces.app.page import QueryColumns, command_line, python_lines, query_fields, url
from pexeso.faces.app.tables import QueryTables
from pexeso.faces.cli import join as join_command
from pexeso.faces.cli import search as search_command
from pexeso.faces.cli.main import cli
from pexeso.faces.service.requests import ExplainRequest, JoinRequest, SearchRequest
from pexeso.joins.options import HOW, VALUES
from pexeso.lake.columns import find_column, label_columns
from pexeso.lake.containers.reader import read_table
from pexeso.results.query import split_spec

LAKE_COLUMN = "nested/capitals.tsv:Capital"
PAGES = SimpleNamespace(served=SimpleNamespace(path="lake of mine.pexeso"))


class Parsed(Exception):
    """Carries the request that a command was about to run."""


@pytest.fixture
def tables():
    with QueryTables(1 << 20) as kept:
        yield kept


@pytest.fixture
def parsed(monkeypatch):
    """Return a function that gives the request of a command line."""

    def stop(request):
        raise Parsed(request)

    for module in (search_command, join_command):
        monkeypatch.setattr(module, "run", stop)

    def parse(line):
        words = shlex.split(line)
        assert words[0] == "pexeso"
        result = CliRunner().invoke(cli, words[1:], standalone_mode=False)
        chain = result.exception
        while chain is not None and not isinstance(chain, Parsed):
            chain = chain.__cause__ or chain.__context__
        assert chain is not None, result.output
        return chain.args[0]

    return parse


numbers = st.floats(0, 1).map(str) | st.sampled_from(["0", "1", "0.1", "1e-3", "0.3000000001"])
PARAMETERS = {
    "max_distance": numbers,
    "min_joinability": st.floats(0.01, 1).map(str),
    "k": st.integers(1, 500).map(str) | st.just("all"),
    "exclude_self": st.sampled_from("01"),
    "auto": st.sampled_from("01"),
    "min_precision": st.floats(0.01, 1).map(str),
    "joinability_of": st.sampled_from(["values", "rows"]),
    "method": st.sampled_from(["semantic", "overlap", "containment", "transform", "all"]),
}
given_some = st.fixed_dictionaries({}, optional=PARAMETERS)
header = st.lists(
    st.sampled_from(["city", "a:b", "x,y", "x~", "#1", "", "-v", "--html", "it's", 'say "x"', "ü"])
    | st.text("ab:,~#-$`\\'\" é\u202e", min_size=1, max_size=6),
    min_size=1,
    max_size=4,
)


def table_of(tables, names, file):
    stream = io.StringIO()
    writer = csv.writer(stream)
    writer.writerow(["first", *names])
    writer.writerows([[f"f{n}", *(f"{n}v{at}" for at in range(len(names)))] for n in range(5)])
    return tables.add(file, [stream.getvalue().encode()])


def columns_of(table, names, position):
    return QueryColumns(table, (label_columns(names)[position],), f"#{position}")


@pytest.mark.parametrize("file", ["my cities.csv", "-x.csv", "it's; $(id).csv"])
def test_a_command_line_asks_what_the_page_asks(tables, parsed, file):
    @settings(max_examples=examples(60))
    @given(names=header, position=st.integers(0, 4), parameters=given_some)
    def check(names, position, parameters):
        table = table_of(tables, names, file)
        read = read_table(table.spec).names
        position = min(position, len(read) - 1)
        try:
            request = search_pages.read_search(PAGES, columns_of(table, read, position), parameters)
        except InputError:  # such as min_precision where thresholds are given
            assume(False)
        label = label_columns(read)[position]
        line = command_line(request, table, label, options=search_pages.OPTIONS)
        parsed_request = parsed(line)
        file_given, column_given = split_spec(parsed_request.query)
        assert os.path.normpath(file_given) == table.name
        assert find_column(read, column_given) == position
        assert msgspec.structs.replace(parsed_request, query=request.query) == request

    check()


@settings(max_examples=examples(60))
@given(
    parameters=st.fixed_dictionaries(
        {},
        optional={
            "max_distance": numbers,
            "joinability_of": PARAMETERS["joinability_of"],
            "values": st.sampled_from(VALUES),
            "how": st.sampled_from(HOW),
            "aggregate": st.sampled_from(join_pages.AGGREGATIONS),
            "suffix": st.text("ab _-'\"$", min_size=1, max_size=5),
        },
    )
)
def test_a_command_line_joins_as_the_page_joins(parameters):
    def stop(request):
        raise Parsed(request)

    with QueryTables(1 << 20) as tables, pytest.MonkeyPatch.context() as patched:
        patched.setattr(join_command, "run", stop)
        table = tables.add("a.csv", [b"x,y\n1,2\n"])
        parameters = {"lake_column": LAKE_COLUMN, **parameters}
        request = join_pages.read_join(PAGES, columns_of(table, ["x", "y"], 1), parameters)
        line = command_line(request, table, "y", LAKE_COLUMN, options=join_pages.COMMAND)
        result = CliRunner().invoke(cli, shlex.split(line)[1:], standalone_mode=False)
        chain = result.exception
        while not isinstance(chain, Parsed):
            assert chain is not None, result.output
            chain = chain.__cause__ or chain.__context__
        parsed_request = chain.args[0]
        if isinstance(parsed_request.aggregate, str):
            parsed_request = msgspec.structs.replace(
                parsed_request, aggregate={"*": parsed_request.aggregate}
            )
        assert msgspec.structs.replace(parsed_request, query=request.query) == request


def test_a_command_line_explains_what_the_page_explains(tables, parsed):
    table = tables.add("a.csv", [b"x,y\n1,2\n"])
    request = ExplainRequest.of(
        index="i", query=f"{table.spec}:#1", lake_column=LAKE_COLUMN, max_distance=0.123456789
    )
    line = command_line(request, table, "y", LAKE_COLUMN, options=search_pages.OF_DISTANCE)
    assert msgspec.structs.replace(parsed(line), query=request.query) == request


@settings(max_examples=examples(200))
@given(
    kind=st.sampled_from([SearchRequest, JoinRequest, ExplainRequest]),
    given_=st.dictionaries(
        st.sampled_from([*PARAMETERS, "values", "how", "query", "index", "rerank", "header"])
        | st.text(max_size=5),
        st.text(max_size=8) | st.sampled_from(["nan", "inf", "-1", "1e999", "9" * 5000, "\u0663"]),
    ),
)
def test_whatever_stands_in_an_url_is_read_or_refused_in_a_sentence(kind, given_):
    needed = {"index": "i", "query": "q"}
    if kind is not SearchRequest:
        needed["lake_column"] = "a:b"
    said = "read"
    try:
        kind.of(**needed | query_fields(kind, given_))
    except PexesoError as error:
        said = str(error)
    assert 0 < len(said) < 1000


@given(st.dictionaries(st.text(), st.text() | st.booleans() | st.none() | st.floats(0, 1)))
def test_an_url_holds_what_was_put_into_it(parameters):
    from urllib.parse import parse_qsl, urlsplit

    try:
        made = url("/a", parameters)
    except UnicodeEncodeError:
        assume(False)
    assert re.fullmatch(r"/a(\?[\w.%&=+*~-]*)?", made, re.ASCII)
    read = dict(parse_qsl(urlsplit(made).query, keep_blank_values=True, strict_parsing=False))
    shown = {True: "1", False: "0"}
    assert read == {
        name: shown[value] if isinstance(value, bool) else str(value)
        for name, value in parameters.items()
        if value is not None
    }


@pytest.fixture
def given_file(tmp_path):
    def write(name):
        frame = pandas.read_csv(io.StringIO(CITIES.replace("visits,city", "visits,country")))
        path = tmp_path / name
        writers = {
            ".tsv": lambda: frame.to_csv(path, sep="\t", index=False),
            ".csv": lambda: frame.to_csv(path, sep=";", index=False),
            ".parquet": lambda: frame.to_parquet(path),
            ".xlsx": lambda: frame.to_excel(path, index=False),
            ".gz": lambda: frame.to_csv(path, index=False),
        }
        writers[path.suffix]()
        return path

    return write


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.parquet", "a.xlsx", "it's.csv.gz"])
@pytest.mark.parametrize(
    "query_string", ["", "&max_distance=0.2&min_joinability=0.4", "&method=all"]
)
def test_the_python_lines_run_and_find_the_same(
    small_index, given_file, tmp_path, monkeypatch, name, query_string
):
    path = given_file(name)
    with entered(small_index) as client:
        page = client.give(name, path.read_bytes())
        answer = client.get(f"{page}/search.json?column=city{query_string}").json()
        table = client.pages.tables[page.rpartition("/")[2]]
        parameters = dict(pair.split("=") for pair in query_string.split("&") if pair)
        request = search_pages.read_search(client.pages, city_of(table), parameters)
        lines = python_lines(request, table, "city", options=search_pages.OPTIONS)
    monkeypatch.chdir(tmp_path)
    assert answer["results"]
    assert run_lines(lines) == [(match["table"], match["column"]) for match in answer["results"]]


@pytest.mark.parametrize(
    "options", ["", "&values=all&how=inner&aggregate=count", "&max_distance=0"]
)
def test_the_python_lines_of_a_join_run_and_make_the_same_table(
    small_index, given_file, tmp_path, monkeypatch, options
):
    path = given_file("a.csv")
    with entered(small_index) as client:
        page = client.give("a.csv", path.read_bytes())
        query = f"column=%230&lake_column=nested/capitals.tsv:Capital{options}"
        text = html.unescape(client.get(f"{page}/join?{query}").text)
        lines = re.search(r"<pre[^>]*>(import pandas.*?)</pre>", text, re.DOTALL)[1]
        downloaded = client.get(f"{page}/joined.csv?{query}").text
    monkeypatch.chdir(tmp_path)
    scope = {}
    exec(compile(lines, "lines", "exec"), scope)
    joined = scope["joined"].fillna("").astype(str).values.tolist()
    assert joined == list(csv.reader(io.StringIO(downloaded)))[1:] != []


def city_of(table):
    names = read_table(table.spec).names
    return columns_of(table, names, names.index("city"))


def run_lines(lines):
    """Run lines of Python as a program would."""
    scope = {}
    exec(compile(lines, "lines", "exec"), scope)
    return [(match.table, match.column) for match in scope["found"]]


def test_the_python_lines_of_a_table_of_the_lake_leave_it_out(small_index):
    with entered(small_index) as client:
        page = client.post("/tables", data={"lake_table": "cities.csv"}).url.path
        table = client.pages.tables[page.rpartition("/")[2]]
        request = search_pages.read_search(client.pages, city_of(table), {})
        assert request.exclude_self
        matches = client.get(f"{page}/search.json?column=city").json()["results"]
        lines = python_lines(request, table, "city", options=search_pages.OPTIONS)
    assert matches
    assert run_lines(lines) == [(match["table"], match["column"]) for match in matches]


def test_a_position_and_what_pandas_cannot_read_alone_are_told(tables):
    both = io.BytesIO()
    import zipfile

    with zipfile.ZipFile(both, "w") as archive:
        archive.writestr("a.csv", "x,x\n1,2\n")
    table = tables.add("a.zip", [both.getvalue()])
    request = SearchRequest.of(index="i", query=f"{table.spec}:#1")
    lines = python_lines(request, table, "#1", options=())
    assert "table = ...  #" in lines
    assert "index.search(table, on=1)" in lines
    compile(lines, "lines", "exec")
    assert pexeso.open_index
