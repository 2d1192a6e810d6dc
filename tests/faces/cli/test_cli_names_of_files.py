"""A file that holds one table is named by its own name: in commands, in Python, in requests."""

import io
import zipfile

import openpyxl
import pytest

import pexeso
from pexeso.errors import InputError
from pexeso.faces.service import verbs
from pexeso.faces.service.lake import BrowseRequest
from pexeso.faces.service.requests import SearchRequest

CITIES = ["Oslo", "Rome", "Madrid", "Vienna", "Lisbon", "Dublin"]
RIVERS = ["Glomma", "Tiber", "Manzanares", "Danube", "Tagus", "Liffey"]


def book(*sheets):
    made = openpyxl.Workbook()
    made.remove(made.active)
    for name in sheets:
        sheet = made.create_sheet(name)
        for row in [("city", "river"), *zip(CITIES, RIVERS, strict=True)]:
            sheet.append(row)
    saved = io.BytesIO()
    made.save(saved)
    return saved.getvalue()


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files") / "lake"
    folder.mkdir()
    (folder / "one.xlsx").write_bytes(book("One"))
    (folder / "two.xlsx").write_bytes(book("A", "B"))
    with zipfile.ZipFile(folder / "z.zip", "w") as file:
        rows = "".join(f"{city},{city[::-1]}\n" for city in CITIES)
        file.writestr(zipfile.ZipInfo("./deep//m.csv"), f"city,back\n{rows}")
    return folder


@pytest.fixture(scope="module")
def index(lake, tmp_path_factory):
    path = tmp_path_factory.mktemp("files_index") / "lake.pexeso"
    return pexeso.build_index(
        lake, path, model="hashing", dimensions=32, parts=["overlap", "composite"]
    )


@pytest.fixture
def query(tmp_path):
    path = tmp_path / "q.csv"
    rows = "".join(f"{city},{river},1\n" for city, river in zip(CITIES, RIVERS, strict=True))
    path.write_text(f"c,r,n\n{rows}", encoding="utf-8")
    return path


def test_commands_take_the_name_of_a_file(run, fail, index, lake, query):
    for command, *columns in (("join",), ("explain", "--json"), ("join", "--transform")):
        named = [
            run(command, index.path, f"{query}:c", f"{name}:city", *columns)
            for name in ("one.xlsx#One", "one.xlsx")
        ]
        assert command == "explain" or named[1].stdout == named[0].stdout != ""
    run("join", index.path, f"{query}:c,r", "one.xlsx:city,river")
    archive = run("join", index.path, f"{query}:c", "z.zip:city")
    assert "olsO" in archive.stdout
    assert "holds 2 tables; name one of them: 'two.xlsx#A', 'two.xlsx#B'." in fail(
        2, "join", index.path, f"{query}:c", "two.xlsx:city"
    )
    assert "'gone.xlsx'" in fail(2, "join", index.path, f"{query}:c", "gone.xlsx:city")


def test_members_of_archives_are_joined_whatever_they_were_packed_as(run, index, query):
    joined = run("join", index.path, f"{query}:c", "z.zip/deep/m.csv:city")
    assert "olsO" in joined.stdout


def test_python_and_the_service_take_the_name_of_a_file(index, query):
    assert index.explain(CITIES, "one.xlsx", "city").match.table == "one.xlsx#One"
    pair = index.explain_composite(f"{query}:c,r", None, "one.xlsx")
    assert pair.to_dict()["table"] == "one.xlsx#One"
    with pytest.raises(InputError, match="holds 2 tables; name one of them"):
        index.explain(CITIES, "two.xlsx", "city")
    path = str(index.path)
    listing = verbs.run(BrowseRequest.of(index=path, table="one.xlsx")).to_dict()
    assert [row["table"] for row in listing["items"]] == ["one.xlsx#One"]
    of_lake = verbs.run(SearchRequest.of(index=path, query="one.xlsx:city", from_lake=True))
    assert of_lake.results[0].query["file"].endswith("one.xlsx#One")


@pytest.mark.parametrize("method", ["semantic", "overlap"])
def test_a_query_of_a_file_of_the_lake_does_not_find_its_own_table(index, lake, method):
    options = {"index": str(index.path), "exclude_self": True, "k": 9, "fold_copies": False}
    request = SearchRequest.of(query=f"{lake / 'one.xlsx'}:city", method=method, **options)
    (matches,) = verbs.run(request).results
    tables = {match.table for match in matches}
    assert tables == {"two.xlsx#A", "two.xlsx#B", "z.zip/deep/m.csv"}


def test_acquisition_takes_the_name_of_a_file(index, query):
    excluded = index.acquire(f"{query}:c", "z.zip:back", exclude_tables=["one.xlsx"])
    assert excluded.options["exclude_tables"] == ["one.xlsx#One"]
    assert excluded.query["want"] == ["z.zip/deep/m.csv:back"]


def test_enrichment_takes_the_name_of_a_file(index):
    options = {"on": "city", "max_distance": 0.02, "max_tables": 9}
    without = pexeso.enrich(index, {"city": CITIES}, exclude_tables=["one.xlsx"], **options)
    tables = {table.table for table in without.tables}
    assert "z.zip/deep/m.csv" in tables
    assert "one.xlsx#One" not in tables
    with pytest.raises(InputError, match=r"exclude_tables: 'two\.xlsx' holds 2 tables"):
        pexeso.enrich(index, {"city": CITIES}, exclude_tables=["two.xlsx"], **options)


def test_a_table_is_deleted_by_the_name_of_its_file(fail, run, index):
    assert "'two.xlsx'" in fail(2, "delete", index.path, "two.xlsx")
    run("delete", index.path, "one.xlsx")
    left = pexeso.open_index(index.path).catalog.tables(["table"])["table"].to_pylist()
    assert sorted(left) == ["two.xlsx#A", "two.xlsx#B", "z.zip/deep/m.csv"]
