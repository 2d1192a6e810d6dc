"""Tests of pages: their documents are the command line's, and what goes wrong is said."""

import html
import io
import re
import shutil
import zipfile
from contextlib import contextmanager
from urllib.parse import quote

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from app_clients import CITIES, app_of, entered, said
from bare_indexes import without_parts
from click.testing import CliRunner
from pyarrow.csv import read_csv as csv_of

from pexeso.faces.cli.main import cli
from pexeso.index import build_index
from pexeso.joins import report
from pexeso.lake.choose import ColumnRules
from pexeso.options import METHODS

FEW_VALUES = ColumnRules(min_rows=1, min_distinct=2)
CAPITALS = "nested/capitals.tsv:Capital"
PATHS = (
    "/", "/lake", "/lake?text=cap", "/lake?page=2", "/lake/left-out", "/lake/table?name=cities.csv",
    "/lake/table?name=nested/companies.csv",
    "/graph", "/graph?run=1", "/graph?run=1&method=semantic&k=5", "/graph?run=1&text=none%20such",
)  # fmt: skip
OF_TABLE = (
    "", "/search?column=city", "/search?column=%230", "/search?column=%230&max_distance=0.1&k=2",
    "/search?column=%230&method=overlap", "/search?column=%230&method=containment",
    "/search?column=%230&method=transform", "/search?column=%230&method=all",
    "/search?column=%230&auto=1", "/search?column=%231&method=overlap",
    f"/match?column=%230&lake_column={CAPITALS}", f"/join?column=%230&lake_column={CAPITALS}",
    f"/join?column=%230&lake_column={CAPITALS}&how=inner&aggregate=first&values=all",
)  # fmt: skip
BY_RULE = tuple(
    f"/{page}?column=%230&lake_column={CAPITALS}&method=transform" for page in ("match", "join")
)
OF_LAKE = ("/redundancy?run=1", "/acquire?have=cities.csv:city&budget=20")


def as_json(path):
    path, mark, query = path.partition("?")
    return f"{'/index' if path == '/' else path}.json{mark}{query}"


@pytest.mark.parametrize("path", PATHS)
def test_each_page_has_a_document(client, path):
    page, document = client.get(path), client.get(as_json(path))
    assert (page.status_code, document.status_code) == (200, 200)
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert document.headers["content-type"] == "application/json"
    assert isinstance(document.json(), dict)


@pytest.mark.parametrize("advised", ["auto=1", "min_precision=0.999"])
def test_the_page_of_a_match_has_the_distance_that_was_chosen(client, advised):
    table = client.give("cities.csv", CITIES)
    address = f"search?column=%230&min_joinability=0.1&{advised}"
    answer = client.get(as_json(f"{table}/{address}")).json()
    page = client.get(f"{table}/{address}").text
    link = html.unescape(re.search(r'href="([^"]*/match\?[^"]*)"', page)[1])
    match = client.get(link.replace("/match?", "/match.json?")).json()
    assert match["options"]["max_distance"] == answer["options"]["max_distance"]
    assert match["matched"] == answer["results"][0]["matched"]


def test_the_page_of_a_match_calls_tables_by_the_names_that_people_gave_them(client):
    table = client.give("cities.csv", CITIES)
    said_of = {"semantic": "yours: cities.csv", "transform": "Capital of nested/capitals.tsv"}
    for way, sentence in said_of.items():
        page = client.get(f"{table}/match?column=%230&lake_column={CAPITALS}&method={way}").text
        words = html.unescape(re.sub("<[^>]*>", "", page))
        assert sentence in words
        assert "pexeso-serve-" not in words


@pytest.mark.parametrize("path", OF_TABLE)
def test_each_page_of_a_table_has_a_document(client, path):
    table = client.give("cities.csv", CITIES.replace("visits,city", "visits,country"))
    page, document = client.get(f"{table}{path}"), client.get(as_json(f"{table}{path}"))
    assert (page.status_code, document.status_code) == (200, 200), page.text
    assert page.text.count("<h1>") == 1
    assert isinstance(document.json(), dict)


def test_each_page_answers_on_when_the_index_has_been_deleted(small_index, tmp_path):
    index = shutil.copytree(small_index, tmp_path / "lake.pexeso")
    with app_of(index) as before, app_of(index) as after:
        answers = []
        for client in (before.enter(), after.enter()):
            table = client.give()
            file = client.pages.tables[table.rsplit("/", 1)[-1]].spec
            paths = [*PATHS, *OF_LAKE, *(f"{table}{path}" for path in (*OF_TABLE, *BY_RULE))]
            pages = [client.get(as_json(path)) for path in paths]
            answers.append(
                [(page.status_code, comparable(page.text, file, table)) for page in pages]
            )
            shutil.rmtree(index, ignore_errors=True)
            assert not index.exists()
        for path, *both in zip(paths, *answers, strict=True):
            assert both[0] == both[1], path


def test_the_file_of_one_table_stands_for_it_in_addresses(tmp_path):
    lake = tmp_path / "lake"
    lake.mkdir()
    with zipfile.ZipFile(lake / "one.zip", "w") as archive:
        archive.writestr("towns.csv", f"{CITIES}Paris,2,France\n")
    with app_of_lake(tmp_path) as client:
        whole, short = (
            client.get(f"/lake/table.json?name={quote(name)}")
            for name in ("one.zip/towns.csv", "one.zip")
        )
        assert (short.status_code, short.json()) == (200, whole.json())
        given = client.post("/tables", data={"lake_table": "one.zip"}, follow_redirects=False)
        match = f"{given.headers['location']}/match.json?column=%230&lake_column="
        for method in ("semantic", "transform"):
            whole, short = (
                client.get(f"{match}{quote(name)}:%230&method={method}")
                for name in ("one.zip/towns.csv", "one.zip")
            )
            assert (short.status_code, short.json()) == (200, whole.json())
        whole, short = (
            client.get(f"/acquire.json?have={quote(name)}:visits")
            for name in ("one.zip/towns.csv", "one.zip")
        )
        assert short.json() == whole.json()


@contextmanager
def app_of_lake(folder, **options):
    """Index the folder `lake` of a folder, and serve it."""
    path = folder / "lake.pexeso"
    build_index(folder / "lake", path, dimensions=64, model="hashing", **options)
    with entered(path) as client:
        yield client


def run(*arguments):
    result = CliRunner().invoke(cli, [*map(str, arguments), "--json"], prog_name="pexeso")
    assert result.exit_code == 0, result.output
    return result.stdout


def comparable(text, *paths):
    """Return a document without what two runs and two copies of a file may differ in."""
    for path in paths:
        text = text.replace(str(path), "FILE")
    return re.sub(r'"seconds": ({[^}]*}|[0-9.e-]+)', '"seconds": 0', text)


@pytest.mark.parametrize(
    ("query", "options"),
    [
        ("", []),
        ("&max_distance=0.123456789&min_joinability=0.25", ["--max-distance", "0.123456789",
                                                            "--min-joinability", "0.25"]),
        ("&k=1", ["-k", "1"]),
        ("&k=all&joinability_of=rows", ["-k", "all", "--joinability-of", "rows"]),
        ("&auto=1", ["--auto"]),
        ("&method=overlap", ["--method", "overlap"]),
        ("&method=containment&min_joinability=0.2", ["--method", "containment",
                                                     "--min-joinability", "0.2"]),
        ("&method=transform", ["--method", "transform"]),
        ("&method=all", ["--method", "all"]),
        ("&explain=1", ["--explain"]),
    ],
)  # fmt: skip
def test_a_search_answers_what_the_command_line_prints(client, write, query, options):
    page = client.give("cities.csv")
    own = client.pages.tables[page.rpartition("/")[2]].spec
    answer = client.get(f"{page}/search.json?column=%230{query}")
    assert answer.status_code == 200, answer.text
    path = write("cities.csv", CITIES)
    printed = run("search", client.pages.served.path, f"{path}:#0", *options)
    assert comparable(answer.text, own) == comparable(printed, path)
    assert answer.json()["results"] or "transform" in query


def test_other_documents_are_what_the_command_line_prints(client, write):
    page = client.give("cities.csv")
    own = client.pages.tables[page.rpartition("/")[2]].spec
    path = write("cities.csv", CITIES)
    index = client.pages.served.path
    explained = client.get(f"{page}/match.json?column=%230&lake_column={CAPITALS}").text
    printed = run("explain", index, f"{path}:#0", CAPITALS)
    assert comparable(explained, own) == comparable(printed, path)
    assert comparable(client.get("/index.json").text) == comparable(run("info", index))
    csv = client.get(f"{page}/joined.csv?column=%230&lake_column={CAPITALS}")
    assert csv.headers["content-disposition"].startswith("attachment; filename*=UTF-8''cities-")
    joined = CliRunner().invoke(cli, ["join", index, f"{path}:#0", CAPITALS])
    assert csv.text == joined.stdout


def test_a_join_is_written_as_sql(client):
    mine = "city,visits\nOSLO,3\nRome,5\nMadrid,7\nAtlantis,9\n"
    page = client.give("my cities.csv", mine)
    query = f"column=%230&lake_column={CAPITALS}"
    assert "Download SQL" in client.get(f"{page}/join?{query}").text
    answer = client.get(f"{page}/joined.sql?{query}")
    assert "my%20cities-joined.sql" in answer.headers["content-disposition"]
    with duckdb.connect() as connection:
        connection.register("my cities", csv_of(io.BytesIO(mine.encode())))
        rows = connection.sql(answer.text).to_arrow_table()
    joined = csv_of(io.BytesIO(client.get(f"{page}/joined.csv?{query}").content))
    assert rows.num_rows == joined.num_rows
    for more in ("&aggregate=count", "&method=transform"):
        assert "Download SQL" not in client.get(f"{page}/join?{query}{more}").text
        refused = client.get(f"{page}/joined.sql?{query}{more}")
        assert refused.status_code == 400


def test_a_preview_shows_the_numbers_of_a_file_unrounded(client):
    stream = io.BytesIO()
    pq.write_table(pa.table({"city": ["Rome", "Oslo"], "paid": [8664.51, 12345678.25]}), stream)
    page = client.give("cities.parquet", stream.getvalue())
    shown = client.get(f"{page}/join?column=%230&lake_column={CAPITALS}").text
    assert ">8664.51<" in shown
    assert ">12345678.25<" in shown
    assert "<td>0</td>" in shown  # the distance of a match


def test_a_column_of_text_is_suggested_before_one_of_dates(client):
    rows = "".join(f"2024-01-{day:02},{'Rome' if day % 2 else 'Oslo'}\n" for day in range(1, 9))
    page = client.get(client.give("visits.csv", f"day,city\n{rows}")).text
    (suggested,) = re.findall(r"<tr>(?:(?!</tr>).)*suggested.*?</tr>", page)
    assert ">city<" in suggested


def test_texts_that_are_stored_as_bytes_are_shown_as_texts(client):
    stream = io.BytesIO()
    pq.write_table(pa.table({"city": [b"Rome", b"Oslo"], "note": [b"\xc3\xa9<", b"x"]}), stream)
    page = client.give("cities.parquet", stream.getvalue())
    query = f"column=%230&lake_column={CAPITALS}"
    shown = html.unescape(client.get(f"{page}/join?{query}").text)
    assert "é<" in shown
    assert "b'" not in shown
    assert "Rome,é<,ROME," in client.get(f"{page}/joined.csv?{query}").text


def test_formulas_of_a_joined_file_are_escaped_where_that_is_asked_for(client, write):
    text = "city,note\nRome,=1+1\nOslo,-5\nMadrid,@x\n"
    page = client.give("cities.csv", text)
    path = write("cities.csv", text)
    query = f"column=%230&lake_column={CAPITALS}"
    words = ["join", client.pages.served.path, f"{path}:#0", CAPITALS]
    for more, option in (("", []), ("&escape_formulas=1", ["--escape-formulas"])):
        shown = client.get(f"{page}/join?{query}{more}").text
        link = html.unescape(re.search(r'href="([^"]*/joined\.csv[^"]*)"', shown)[1])
        assert client.get(link).text == CliRunner().invoke(cli, [*words, *option]).stdout
        assert ("--escape-formulas" in shown) == bool(option)
    assert ",'=1+1," in client.get(link).text
    for way in ("join", "joined.csv"):
        answer = client.get(f"{page}/{way}?{query}&escape_formulas=yes")
        assert answer.status_code == 400
        assert "escape_formulas must be 1 or 0" in said(answer)


TOWNS = ("Oslo", "Rome", "Madrid", "Vienna", "Lisbon", "Dublin", "Helsinki", "Athens")


@pytest.mark.parametrize(
    ("text", "lake_column", "more", "box"),
    [
        ("city\nRome\nRome\nOslo\n", CAPITALS, "", "many_to_many"),
        ("city\nRome\nRome\nOslo\n", CAPITALS, "&method=transform", "many_to_many"),
        (
            "shop\n" + "".join(f"{town}-{n:03}\n" for town in TOWNS for n in range(4)),
            "cities.csv:city",
            "&method=transform",
            "many_to_one",
        ),
    ],
    ids=["similar", "rule", "collapsing rule"],
)
def test_a_join_that_is_refused_is_allowed_by_a_box(
    client, write, monkeypatch, text, lake_column, more, box
):
    if box == "many_to_many":
        monkeypatch.setattr(report, "MAX_GROWTH", 0)
        monkeypatch.setattr(report, "MAX_ROWS", 2)
    page = client.give("mine.csv", text)
    path = write("mine.csv", text)
    query = f"column=%230&lake_column={lake_column}{more}"
    for way in ("join", "join.json", "joined.csv"):
        refused = client.get(f"{page}/{way}?{query}")
        assert refused.status_code == 400
        assert box in refused.text
    form = client.get(f"{page}/join?{query}").text
    assert f'type="checkbox" name="{box}" value="1">' in form
    shown = html.unescape(client.get(f"{page}/join?{query}&{box}=1").text)
    assert f'type="checkbox" name="{box}" value="1" checked>' in shown
    option = f"--{box.replace('_', '-')}"
    assert option in shown
    link = re.search(r'href="([^"]*/joined\.csv[^"]*)"', shown)[1]
    words = ["join", client.pages.served.path, f"{path}:#0", lake_column, option]
    words += ["--transform"] if more else []
    printed = CliRunner().invoke(cli, words)
    assert client.get(link).text == printed.stdout != ""
    assert ('name="many_to_one"' in shown) == bool(more)


@pytest.mark.parametrize(
    ("query", "options"),
    [
        ("", []),
        ("?run=1&min_joinability=0.9&k=1", ["--min-joinability", "0.9", "-k", "1"]),
        ("?method=semantic&max_distance=0.2", ["--method", "semantic", "--max-distance", "0.2"]),
    ],
)
def test_the_join_graph_is_what_the_command_line_prints(client, query, options):
    printed = run("graph", client.pages.served.path, *options)
    assert client.get(f"/graph.json{query}").text == printed
    table = CliRunner().invoke(cli, ["graph", client.pages.served.path, *options, "--csv"]).stdout
    rows = client.get(f"/graph.csv{query}").text.splitlines()
    assert len(rows) == len(table.splitlines())


def test_the_list_of_joins_leads_to_why_two_columns_of_the_lake_join(client):
    edges = client.get("/graph.json").json()["edges"]
    links = re.findall(r'href="(/graph/match[^"]*)">why', client.get("/graph?run=1").text)
    assert len(links) == len(edges) == 2
    for link in links:
        answer = client.get(html.unescape(link))
        assert answer.status_code == 200
        assert answer.url.path.endswith("/match")
        assert "have in common" in answer.text
    n_kept = len(client.pages.tables._files)
    client.get(html.unescape(links[0]))
    assert len(client.pages.tables._files) == n_kept


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet", "mmd", "graphml", "html"])
def test_a_join_graph_can_be_downloaded(client, kind):
    answer = client.get(f"/graph.{kind}?min_joinability=0.3")
    assert answer.status_code == 200
    assert answer.headers["content-disposition"] == f'attachment; filename="joins.{kind}"'
    assert answer.content


def test_of_a_larger_graph_the_strongest_joins_are_shown_and_all_counted(client, monkeypatch):
    monkeypatch.setattr("pexeso.faces.app.graph.LISTED", 1)
    n_edges = len(client.get("/graph.json").json()["edges"])
    text = client.get("/graph?run=1").text
    assert len(re.findall(r'"/graph/match\?[^"]*">why', text)) == 1
    assert f"<b>{n_edges}</b> joins" in text
    assert f"{n_edges - 1} more join" in text


def test_two_columns_of_one_name_are_told_apart_by_position(client):
    page = client.give()
    listed = client.get(f"{page}.json").json()["columns"]
    assert [column["column"] for column in listed] == ["#0", "visits", "#2"]
    answer = client.get(f"{page}/search?column=city")
    assert answer.status_code == 400
    assert "2 columns are named 'city'" in said(answer)
    assert "#0, #2" in said(answer)
    assert client.get(f"{page}/search?column=%232").status_code == 200
    first = client.get(f"{page}/search.json?column=%230").json()
    assert client.get(f"{page}/search.json?column=").json()["query"] == first["query"]


@pytest.fixture
def moved_lake(small_lake):
    away = small_lake.with_name("moved away")
    small_lake.rename(away)
    yield
    away.rename(small_lake)


def test_of_a_lake_that_moved_searches_answer_and_joins_say_what_is_missing(client, moved_lake):
    page = client.give()
    results = client.get(f"{page}/search.json?column=%230").json()["results"]
    assert results
    assert client.get(f"{page}/match?column=%230&lake_column={CAPITALS}").status_code == 200
    for way in ("join", "joined.csv", "join.json"):
        answer = client.get(f"{page}/{way}?column=%230&lake_column={CAPITALS}")
        assert answer.status_code == 400
        assert "capitals.tsv" in answer.text
    table = client.get("/lake/table?name=nested/capitals.tsv")
    assert table.status_code == 200
    assert "no join with this table is possible now" in table.text
    answer = client.post("/tables", data={"lake_table": "cities.csv"})
    assert answer.status_code == 400
    assert "cities.csv" in said(answer)


def test_nothing_found_says_what_was_nearest(client):
    page = client.give("odd.csv", "word\nxyzzyx\nqwrtpl\nOslo\nzzkkzz\nqqqqqq\n")
    text = client.get(f"{page}/search?column=word&min_joinability=1").text
    assert "No column of the lake was found." in text
    assert "Near misses" in text
    link = re.search(r'<a href="([^"]*)">search for', text)[1]
    assert "No column of the lake was found." not in client.get(html.unescape(link)).text


@pytest.mark.parametrize(
    ("values", "kind"), [(("71", "93", "88"), "numbers"), (("1871-02-03", "1872-05-04"), "dates")]
)
def test_values_that_match_where_they_are_equal_are_not_looked_for_further_away(
    client, values, kind
):
    page = client.give("odd.csv", "\n".join(["n", *values, ""]))
    text = client.get(f"{page}/search?column=n").text
    assert "No column of the lake was found." in text
    assert f"the values are {kind}" in text
    assert "larger distance" not in text.lower()
    assert "<i>most equal values</i>" in text


def test_a_method_that_the_index_has_no_part_for_is_told_and_cannot_be_chosen(
    small_index, tmp_path
):
    with entered(without_parts(small_index, tmp_path / "bare.pexeso")) as client:
        page = client.give()
        for method in ("overlap", "containment"):
            answer = client.get(f"{page}/search?column=%230&method={method}")
            assert answer.status_code == 400
            assert "has no part for" in said(answer)
        text = client.get(f"{page}/search?column=%230").text
        assert re.findall(r'<option value="(\w+)"[^>]* disabled', text) == [
            "overlap", "containment",
        ]  # fmt: skip


def test_of_a_whole_index_every_method_can_be_chosen(client):
    assert " disabled" not in client.get(f"{client.give()}/search?column=%230").text


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("/lake/table?name=none.csv", "none.csv"),
        ("/lake/table?name=../conftest.py", "conftest.py"),
        ("/lake?page=x", "page must be a whole number"),
        ("/lake?page=0", "page must be a whole number"),
        ("/graph?method=odd", "method must be one of overlap, semantic"),
        ("/graph?run=1&k=0", "k must be"),
        ("/graph?run=1&min_joinability=0", "min_joinability must be a number"),
        ("/graph?run=1&method=overlap&max_distance=0.1", "for values alike"),
        ("/tables/none-0/search?column=x", "no longer here"),
    ],
)
def test_what_cannot_be_shown_is_said(client, path, sentence):
    page, document = client.get(path), client.get(as_json(path))
    assert page.status_code == document.status_code
    assert page.status_code in (400, 404)
    assert sentence in said(page)
    assert sentence in document.json()["error"]


@pytest.mark.parametrize(
    "query",
    [
        "", "column=none", "column=%2399", "column=%230&max_distance=x", "column=%230&k=0",
        "column=%230&max_distance=nan", "column=%230&max_distance=-1", "column=%230&k=1e9",
        "column=%230&min_joinability=2", "column=%230&method=x", "column=%230&min_precision=9",
        "column=%230&auto=1&max_distance=0.1", "column=%230&exclude_self=yes",
        f"column=%230&k={10**30}", "column=%00", "column=%ff",
    ],
)  # fmt: skip
def test_wrong_parameters_are_answered_in_a_sentence(client, query):
    page = client.give()
    answer = client.get(f"{page}/search?{query}")
    assert answer.status_code in (200, 400)
    if answer.status_code == 400:
        assert len(said(answer)) > 20


def test_a_match_by_an_unknown_method_is_refused_as_its_search_is(client):
    of_match = f"{client.give()}/match?column=%230&lake_column=cities.csv:city"
    for method in METHODS:
        assert client.get(f"{of_match}&method={method}").status_code == 200
    answer = client.get(f"{of_match}&method=overlpa")
    assert answer.status_code == 400
    assert said(answer) == f"method must be one of {', '.join(METHODS)}. Got 'overlpa' instead."


def test_errors_are_escaped(client):
    hostile = "<script>alert(1)</script>"
    page = client.give()
    for path in (
        f"/lake/table?name={quote(hostile)}",
        f"/lake?page={quote(hostile)}",
        f"/lake?text={quote(hostile)}",
        f"{page}/search?column={quote(hostile)}",
        f"{page}/search?column=%230&method={quote(hostile)}",
        f"{page}/match?column=%230&lake_column={quote(hostile)}:x",
        f"/{quote(hostile)}",
    ):
        answer = client.get(path)
        assert "<script>alert" not in answer.text
        assert answer.headers["content-type"].startswith("text/html")


def test_an_error_of_ours_is_told_without_a_trace(small_index, monkeypatch):
    def broken(*_):
        raise ValueError("secret inside")

    with entered(small_index, raise_server_exceptions=False) as client:
        monkeypatch.setattr("pexeso.index.Index.info", broken)
        answer, document = client.get("/"), client.get("/index.json")
    for response in (answer, document):
        assert response.status_code == 500
        assert "secret inside" not in response.text
    assert "error of pexeso" in said(answer)
    assert "error of pexeso" in document.json()["error"]


def test_a_part_of_the_page_is_answered_to_its_script(client):
    page = client.give()
    path = f"{page}/search?column=%230"
    whole = client.get(path)
    part = client.get(f"{path}&why=1", headers={"hx-request": "true"})
    assert part.text.startswith("<section")
    assert part.text in whole.text
    assert part.headers["vary"] == "HX-Request"


def test_a_pasted_table_is_read_as_it_was_copied(client):
    for text, names in (("a\tb\nOslo\t1\n", ["a", "b"]), ("a,b\nOslo,1\n", ["a", "b"])):
        page = client.post("/tables", data={"text": text}).url.path
        assert [
            column["column"] for column in client.get(f"{page}.json").json()["columns"]
        ] == names


@pytest.mark.parametrize("form", [{}, {"text": " \n"}, {"lake_table": "../x"}, {"file": "x"}])
def test_a_form_that_gives_no_table_is_told(client, form):
    answer = client.post("/tables", data=form)
    assert answer.status_code == 400
    assert said(answer)


def test_forms_of_many_fields_or_that_are_none_are_refused(client):
    many = client.post("/tables", content=b"a=1&" * 10_000, headers={
        "content-type": "application/x-www-form-urlencoded"})  # fmt: skip
    files = [("file", (f"{n}.csv", b"a\n1\n")) for n in range(3)]
    odd = {"content-type": "multipart/form-data"}
    cut = {"content-type": "multipart/form-data; boundary=b"}
    for answer in (
        many,
        client.post("/tables", files=files),
        client.post("/tables", content=b"x", headers=odd),
        client.post("/tables", content=b"\xff", headers={"content-type": b"text/\xff"}),
        client.post("/tables", content=b"--b", headers=cut),
    ):
        assert answer.status_code == 400


def test_the_name_of_a_download_puts_nothing_into_its_head(client):
    page = client.give('a"\r\nSet-Cookie: x=1;é.csv')
    answer = client.get(f"{page}/joined.csv?column=%230&lake_column={CAPITALS}")
    assert answer.status_code == 200
    assert "set-cookie" not in answer.headers
    header = answer.headers["content-disposition"]
    assert re.fullmatch(r"attachment; filename\*=UTF-8''[\w.%~()!*'-]+", header, re.ASCII)


def test_while_a_slider_moves_the_list_comes_first_and_why_when_it_rests(client):
    page = client.give()
    address = f"{page}/search?column=%230&max_distance=0.3"
    script = {"HX-Request": "true"}
    whole, first = client.get(address).text, client.get(address, headers=script).text
    later = html.unescape(re.search(r'hx-get="([^"]*why=1[^"]*)"', first)[1])
    second = client.get(later, headers=script).text
    assert "<html" not in first + second
    assert ('<rect class="fill-exact"' in first, '<rect class="fill-exact"' in second) == (
        False,
        True,
    )
    assert '<rect class="fill-matched"' in first
    assert "why=1" not in whole + second

    def names(text):
        return re.findall(r'<h2 id="result-\d+"><a href="([^"]*)"', text)

    assert names(first) == names(second) == names(whole) != []


def test_a_lake_column_may_be_named_by_its_position(client):
    page = client.give()
    by_name = client.get(f"{page}/match?column=%230&lake_column=cities.csv:city").text
    by_position = client.get(f"{page}/match?column=%230&lake_column=cities.csv:%230").text
    for text in (by_name, by_position):
        assert "similar values" in text
        assert "Why #0 joins with" in re.sub("<[^>]*>", "", text)
    wrong = client.get(f"{page}/match?column=%230&lake_column=cities.csv:%2399")
    assert wrong.status_code == 400
    assert "99" in said(wrong)


def test_names_of_the_lake_are_offered_to_a_field(client):
    def offered(query):
        answer = client.get(f"/lake/names?{query}")
        assert answer.status_code == 200
        return re.findall(r'value="([^"]*)"', answer.text)

    catalog = client.pages.served.index.catalog
    tables = sorted(row["table"] for row in catalog.tables().to_pylist() if not row["reason"])
    columns = sorted(f"{row['table']}:{row['label']}" for row in catalog.columns().to_pylist())
    assert offered("of=table&text=CITIES") == [one for one in tables if "cities" in one][:50] != []
    wanted = [one for one in columns if "cities" in one]
    assert offered("of=column&have=cities")[:50] == wanted[:50] != []
    document = client.get("/lake/names.json?of=column&have=").json()
    assert document == {"total": len(columns), "names": columns[:50]}
    assert client.get("/lake/names?of=rows").status_code == 400


def test_a_card_says_what_a_join_would_do_and_brings(client):
    page = client.get(f"{client.give()}/search?column=%230&k=all").text
    card = re.search(r'<article aria-labelledby="result-1">.*?</article>', page, re.DOTALL)[0]
    words = " ".join(re.sub("<[^>]*>", "", html.unescape(card)).split())
    assert words.startswith("cities.csv : city")
    assert "rows to rows 1:1" in words
    assert "Brings country" in words
    samples = html.unescape(re.search(r'class="brings" hx-get="([^"]*)"', card)[1])
    part = client.get(samples, headers={"HX-Request": "true"})
    assert re.search(r'<b><bdi>country</bdi></b> <bdi class="cell">\w+</bdi>', part.text)
    assert "hx-get" not in part.text
    document = client.get(samples.replace("/samples", "/samples.json")).json()
    assert len(document["samples"]["country"]) == 3


def test_a_card_says_that_several_values_join_one(client):
    page = client.give("mine.csv", "city\nOslo\nMadrid\nMadrids\nRome\nVienna\n")
    shown = client.get(f"{page}/search?column=%230&k=all&max_distance=0.6").text
    cards = [
        " ".join(re.sub("<[^>]*>", "", html.unescape(card)).split())
        for card in re.findall(r'<article aria-labelledby="result-.*?</article>', shown, re.DOTALL)
    ]
    [card] = [card for card in cards if card.startswith("cities.csv : city")]
    assert "5 of 5" in card
    assert "rows to rows N:1" in card


def test_a_table_that_is_large_or_gone_has_no_samples(tmp_path, write, monkeypatch):
    flags = write("lake/flags.csv", "city,is_port\nOslo,yes\nRome,no\nMadrid,no\nVienna,no\n")
    with app_of_lake(tmp_path, rules=FEW_VALUES) as client:
        address = "/lake/samples?name=flags.csv&column=city"
        assert '<bdi class="cell">yes</bdi>' in client.get(address).text
        monkeypatch.setattr("pexeso.faces.app.lake.SAMPLED_BYTES", 20)
        large = client.get(address)
        assert "No sample values: " in large.text
        assert "20 bytes" in large.text
        monkeypatch.undo()
        flags.unlink()
        gone = client.get(address)
        assert (gone.status_code, "is_port" in gone.text, "cell" in gone.text) == (200, True, False)


def test_a_column_of_few_values_is_warned_of(tmp_path, write):
    write("lake/flags.csv", "city,is_port\nA,yes\nB,no\nC,yes\nD,no\nE,yes\nF,no\n")
    with app_of_lake(tmp_path, rules=FEW_VALUES) as client:
        table = client.give("mine.csv", "port\nyes\nno\nmaybe\n")
        page = client.get(f"{table}/search?column=%230&min_joinability=0.1").text
    assert "This column has few distinct values, so rows match by chance." in page
    assert "<b>1:N, 3 rows for each row</b>" in page
