"""A table of the lake is a query as the index read it: the settings of the lake say how."""

from pexeso.faces.service.requests import ExplainRequest, JoinRequest, SearchRequest
from pexeso.faces.service.verbs import run

OTHER = "cities.csv:name"


def ask(kind, index, column="city", **fields):
    request = kind.of(index=str(index), query=f"sub/told.csv:{column}", from_lake=True, **fields)
    return run(request)


def test_a_search_finds_the_values_that_the_index_has(told_index):
    for method, share in (("semantic", "joinability"), ("containment", "containment")):
        result = ask(SearchRequest, told_index, exclude_self=True, method=method).results[0]
        assert [f"{match.table}:{match.column}" for match in result.matches] == [OTHER]
        assert getattr(result.matches[0], share) == 1


def test_a_column_without_a_name_is_counted_as_the_index_counts(told_index):
    assert ask(SearchRequest, told_index, "#0", exclude_self=True).results[0].matches


def test_matches_and_rows_are_those_of_the_table(told_index):
    assert ask(ExplainRequest, told_index, lake_column=OTHER).match.matched == 5
    joined = ask(JoinRequest, told_index, lake_column=OTHER).joined.table
    assert joined.column_names[:2] == ["city", "year"]
    assert joined["city"].to_pylist()[0] == "Århus"


def test_keys_are_searched_with(told_index):
    result = ask(SearchRequest, told_index, "city,year", exclude_self=True).results[0]
    assert [match.table for match in result.matches] == ["cities.csv"]


def test_what_a_request_says_of_reading_goes_first(told_index):
    result = ask(SearchRequest, told_index, "city", exclude_self=True, encoding="latin1").results[0]
    assert result.matches[0].joinability == 0.8, "Århus is read as something else"
