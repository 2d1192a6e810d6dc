"""Results as tables and as notebooks and terminals show them."""

from html.parser import HTMLParser

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import pexeso
from pexeso.acquisition.results import AcquisitionPlan, PlanTable
from pexeso.joins.enrichment.feature_selection import FeatureChoice
from pexeso.joins.tables import Joined
from pexeso.lake.frames.tables import Tabular
from pexeso.redundancy.plan import Deletion, Plan
from pexeso.runtime.formatting import MAX_ROWS, html_table

CITIES = ["Oslo", "rome", "MADRID", "Xyzzyx"]
MINE = pd.DataFrame({"place": CITIES, "n": range(4)})
HOSTILE = '<script>alert("1")</script><img src=x onerror=alert(1)>'
TAGS = {"table", "caption", "thead", "tbody", "tr", "th", "td"}


class Reader(HTMLParser):
    """Keeps the tags, the attributes and the text of a page."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.attributes, self.text = [], [], ""
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data):
        self.text += data + " "


@pytest.fixture(scope="module")
def index(small_index):
    return pexeso.open_index(small_index, device="cpu")


@pytest.fixture(scope="module")
def matches(index):
    return index.search(CITIES, min_joinability=0.2)


@pytest.fixture(scope="module")
def results(index, matches):
    return {
        "search": matches,
        "nothing": index.search(["qqqq"], max_distance=0),
        "overlap": index.overlap(["Oslo", "Rome"]),
        "containment": index.contain(["Oslo", "Rome"]),
        "transform": index.search(["Oslo", "Rome"], method="transform"),
        "combined": index.search(["Oslo", "Rome"], method="all"),
        "match": matches[0],
        "explanation": index.explain(CITIES, "cities.csv", "city"),
        "enrichment": pexeso.enrich(index, MINE, "place"),
    }


KINDS = (
    "search", "nothing", "overlap", "containment", "transform", "combined", "match", "explanation",
    "enrichment",
)  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_every_result_is_a_table_of_each_library(results, kind):
    result = results[kind]
    rows = [{name: row.get(name) for name in result.fields} for row in result.rows()]
    arrow, polars, pandas = result.to_arrow(), result.to_polars(), result.to_pandas()
    assert arrow.to_pylist() == rows
    assert polars.to_dicts() == rows
    assert list(pandas.columns) == list(polars.columns) == arrow.column_names
    assert len(pandas) == len(rows)
    assert isinstance(pandas, pd.DataFrame)
    assert isinstance(polars, pl.DataFrame)


@pytest.mark.parametrize("kind", KINDS)
def test_types_do_not_depend_on_the_rows(results, kind):
    """A field whose type follows from its values would have none where no value is."""
    assert [
        field for field in results[kind].to_arrow().schema if pa.types.is_null(field.type)
    ] == []
    assert set(results[kind].fields) <= set(results[kind]._field_types())


@pytest.mark.parametrize("kind", KINDS)
def test_every_result_is_shown_in_a_few_lines(results, kind):
    result = results[kind]
    assert len(repr(result)) < 400
    assert repr(result).count("\n") < 4
    reader = Reader(result._repr_html_())
    assert set(reader.tags) <= TAGS
    assert reader.attributes == []
    assert reader.tags.count("tr") <= MAX_ROWS + 1


def test_what_a_search_result_says(results, matches):
    assert repr(matches) == (
        "SearchResult(3 columns: cities.csv:city (75.0 %), nested/capitals.tsv:Capital (75.0 %), "
        "nested/companies.csv:place (75.0 %))"
    )
    assert repr(results["nothing"]) == "SearchResult(no column found)"
    text = Reader(matches._repr_html_()).text
    assert "3 columns found" in text
    assert "cities.csv city 75.0 % 3 4" in text


def test_what_is_more_is_counted(index):
    matches = index.search(CITIES, k=1, min_joinability=0.2)
    assert repr(matches).startswith("SearchResult(1 column of 3: ")
    assert "1 column of 3 found" in Reader(matches._repr_html_()).text


def test_what_an_explanation_says(results):
    explained = results["explanation"]
    assert repr(explained) == (
        "Explanation(cities.csv:city, 3 of 4 values match (75.0 %), 1 text without a match)"
    )
    rows = explained.to_arrow().to_pylist()
    assert [row["query"] for row in rows] == CITIES
    assert [row["kind"] for row in rows] == ["exact", "spelling", "spelling", None]
    assert [row["reason"] for row in rows[:3]] == [None] * 3
    assert rows[3]["reason"] in ("too far", "unknown")


def test_the_rows_of_a_match_are_its_pairs(matches):
    assert [(row["query"], row["kind"]) for row in matches[0].rows()] == [
        (pair.query, pair.kind) for pair in matches[0].pairs()
    ]


def test_shares_of_an_enrichment_are_shown_as_percentages(results):
    (first, *_) = results["enrichment"].columns
    assert (
        f"{first.joinability:.1%}".replace("%", " %")
        in Reader(results["enrichment"]._repr_html_()).text
    )


def test_an_index_is_shown_with_what_it_holds(index):
    text = Reader(index._repr_html_()).text
    assert str(index.path)[:20] in text
    assert str(index.lake) not in text
    assert "containment" in text
    assert len(index._repr_html_()) < 2000


@pytest.mark.parametrize(
    ("mine", "kind"),
    [(MINE, "pandas"), (pa.Table.from_pandas(MINE), "arrow"), (pl.DataFrame(MINE), "polars")],
    ids=["pandas", "arrow", "polars"],
)
def test_a_join_gives_the_kind_that_it_got(matches, mine, kind):
    wanted = matches[0].join_with_report(pa.Table.from_pandas(MINE), "place")
    joined = matches[0].join_with_report(mine, "place")
    assert type(joined.table) is type(mine)
    assert joined.to_arrow().to_pydict() == wanted.table.to_pydict()
    assert joined.to_polars().to_dicts() == wanted.table.to_pylist()
    assert list(joined.to_pandas().columns) == wanted.table.column_names
    assert joined.report.to_dict() == wanted.report.to_dict()
    assert repr(joined) == f"Joined(4 rows, {wanted.table.num_columns} columns, {kind})"
    reader = Reader(joined._repr_html_())
    assert set(reader.tags) == TAGS
    assert "Xyzzyx 3" in reader.text
    for to in ("pandas", "arrow", "polars"):
        other = matches[0].join(mine, "place", to=to)
        assert type(other).__module__.partition(".")[0] == to.replace("arrow", "pyarrow")


def test_other_tables_are_joined_as_those_they_are_like(matches):
    wanted = matches[0].join(pl.DataFrame(MINE), "place")
    assert matches[0].join(pl.LazyFrame(MINE), "place").equals(wanted)
    joined = matches[0].join(MINE.to_dict("list"), "place", how="inner")
    assert isinstance(joined, pa.Table)
    assert joined["place"].to_pylist() == CITIES[:3]


def test_enrichment_gives_the_kind_that_it_got(index):
    wanted = pexeso.enrich(index, pa.Table.from_pandas(MINE), "place")
    assert wanted.columns
    for mine in (pl.DataFrame(MINE), pl.LazyFrame(MINE), MINE):
        enriched = pexeso.enrich(index, mine, "place")
        assert enriched.to_dict() == wanted.to_dict()
        table = enriched.table
        if mine is MINE:
            assert isinstance(table, pd.DataFrame)
        else:
            assert isinstance(table, pl.DataFrame)
            assert table.to_dict(as_series=False) == wanted.table.to_pydict()


def test_keys_and_learned_joins_take_tables_of_any_kind():
    table = {"country": ["fr", "fr", "it", "it", "it"], "year": [2001, 2002, 2001, 2002, 2003]}
    wanted = pexeso.find_keys(pa.table(table)).to_dict()
    for other in (table, pl.DataFrame(table), pl.LazyFrame(table), pd.DataFrame(table)):
        assert pexeso.find_keys(other).to_dict() == wanted
    source, target = {"a": ["x-1", "y-2", "z-3"]}, {"b": ["X 1", "Y 2", "Z 3"]}
    learned = pexeso.learn_transformation(source, target)
    again = pexeso.learn_transformation(pl.DataFrame(source), pl.DataFrame(target))
    assert again.to_dict() == learned.to_dict()
    assert len(repr(again)) < 400


def test_a_join_on_spark_is_shown_without_a_job(matches, spark):
    joined = matches[0].join_with_report(spark.createDataFrame(MINE), "place")
    n_columns = len(joined.table.columns)
    assert repr(joined) == f"Joined({n_columns} columns, spark)"
    assert Reader(joined._repr_html_()).tags.count("tr") == n_columns + 1
    assert sorted(joined.to_pandas()["place"]) == sorted(CITIES)


def test_cells_and_names_are_escaped_and_cut():
    page = html_table(HOSTILE, [HOSTILE], [[HOSTILE], ["x" * 10_000], [[HOSTILE] * 9]])
    reader = Reader(page)
    assert set(reader.tags) == TAGS
    assert reader.attributes == []
    assert len(page) < 2_000
    joined = Joined(pl.DataFrame({HOSTILE: [HOSTILE]}), lambda: None)
    assert set(Reader(joined._repr_html_()).tags) == TAGS


def test_large_tables_are_cut():
    wide = pd.DataFrame([range(1000)] * 1000)
    page = Joined(wide, lambda: None)._repr_html_()
    reader = Reader(page)
    assert reader.tags.count("tr") == MAX_ROWS + 1
    assert len(page) < 20_000
    assert "1,000 rows, 1,000 columns" in reader.text


def test_how_cells_are_shown():
    cells = [None, float("nan"), 0.123456, 12345, True, "a", ["b", None], list("abcdefg")]
    page = html_table("", ["x"] * len(cells), [cells])
    shown = [cell.partition("</td>")[0] for cell in page.split("<td>")[1:]]
    assert shown == ["", "", "0.1235", "12,345", "True", "a", "b, ", "a, b, c, d, e and 2 more"]


def test_rows_must_be_told():
    with pytest.raises(NotImplementedError):
        Tabular().rows()


def chosen_features(kept=("a", "b")):
    importances = {name: 1 / len(kept) for name in kept}
    others = (("c",), {"d": "a text"}) if kept else ((), {})
    return FeatureChoice("y", "regression", 9, kept, importances, *others, {"r2": 0}, {"r2": 1})


def bought(*tables):
    return AcquisitionPlan(tables, (), (), (("a", "x"),), (), 3.0, 0.5, 1.0, 0.0, 9, True, 0.0)


def can_go(*tables):
    gone = [Deletion(n, "a.csv", "SELECT", 9, 3, 1.5, None, ("b",), "", "", True) for n in tables]
    return Plan("lake", "", {}, 1.0, 2.0, True, 0.0, tuple(gone), ("a.csv",))


ANSWERS = {
    "keys": (
        pexeso.find_keys({"a": list("vwxyz"), "b": list("11111")}),
        [{"key": "a", "kind": "unique", "uniqueness": 1.0, "distinct": 5, "repeated": 0,
          "missing": 0, "columns": ["a"]}],
    ),
    "no keys": (pexeso.find_keys({"a": list("11111")}), []),
    "features": (
        chosen_features(),
        [{"column": "a", "status": "kept", "importance": 0.5, "reason": None},
         {"column": "b", "status": "kept", "importance": 0.5, "reason": None},
         {"column": "c", "status": "eliminated", "importance": None, "reason": None},
         {"column": "d", "status": "no feature", "importance": None, "reason": "a text"}],
    ),
    "no features": (chosen_features(()), []),
    "purchases": (
        bought(PlanTable("a.csv", ("x", "y"), "SELECT x, y", 2.5)),
        [{"table": "a.csv", "columns": ["x", "y"], "price": 2.5, "sql": "SELECT x, y"}],
    ),
    "no purchases": (bought(), []),
    "deletions": (
        can_go("b.csv"),
        [{"table": "b.csv", "parent": "a.csv", "bytes": 9, "rows": 3, "saving": 1.5,
          "seconds": None, "verified": True, "derived": ["b"], "sql": "SELECT"}],
    ),
    "no deletions": (can_go(), []),
}  # fmt: skip


@pytest.mark.parametrize("kind", ANSWERS)
def test_an_answer_of_several_rows_is_a_table_of_each_library(kind):
    answer, rows = ANSWERS[kind]
    assert answer.to_arrow().to_pylist() == answer.to_polars().to_dicts() == rows
    assert list(answer.to_pandas().columns) == answer.to_arrow().column_names
    assert len(answer.to_pandas()) == len(rows)


@pytest.mark.parametrize("kind", ["keys", "features", "purchases", "deletions"])
def test_the_types_of_an_answer_do_not_depend_on_its_rows(kind):
    some, none = ANSWERS[kind][0].to_arrow().schema, ANSWERS[f"no {kind}"][0].to_arrow().schema
    assert some == none
    assert [field for field in some if pa.types.is_null(field.type)] == []
