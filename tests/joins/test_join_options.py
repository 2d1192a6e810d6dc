"""Options of a join and names of its columns: what is allowed, and what is said otherwise."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from pexeso.errors import InputError
from pexeso.joins.options import JoinOptions, join_options
from pexeso.joins.tables import choose_names


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"values": "best"}, "values must be one of nearest, one-to-one, all. Got 'best' instead."),
        ({"how": "outer"}, "how must be one of left, inner. Got 'outer' instead."),
        ({"aggregate": "median"}, "aggregate must be one of first, list, distinct, count, mean, "
                                  "sum, min, max. Got 'median' instead."),
        ({"aggregate": {"n": "avg"}}, "The way to aggregate 'n' must be one of first, list, "
                                      "distinct, count, mean, sum, min, max. Got 'avg' instead."),
        ({"aggregate": ["n"]}, "or a dictionary from columns to these. Got ['n'] instead."),
        ({"suffix": ""}, "suffix must be a text that is not empty, such as '_lake'. Got '' "
                         "instead."),
        ({"provenance": "value"}, "provenance must be a sequence out of table, column, value, "
                                  "distance, such as ('value', 'distance'). Got 'value'"),
        ({"provenance": ["score"]}, "Each of provenance must be one of table, column, value, "
                                    "distance. Got 'score' instead."),
        ({"vlaues": "all"}, "Join options are values, how, aggregate, suffix, provenance, "
                            "many_to_many. Got vlaues."),
    ],
)  # fmt: skip
def test_what_is_not_allowed_is_said(given, said):
    with pytest.raises(InputError) as caught:
        join_options(given)
    assert said in str(caught.value)


@pytest.mark.parametrize("wrong", [np.array(["a", "b"]), pd.DataFrame({"a": [1]}), pl.Series([1])])
@pytest.mark.parametrize("option", ["values", "how", "aggregate", "suffix", "provenance"])
def test_what_has_no_truth_value_is_refused_as_any_other(option, wrong):
    for given in ({option: wrong}, {"aggregate": {"n": wrong}}, {"provenance": [wrong]}):
        with pytest.raises(InputError, match=r" must be .*\. Got (array|shape| ).*"):
            join_options(given)


def test_ways_by_name_by_position_and_for_the_others():
    names = ["city", "year", "n"]
    assert JoinOptions().ways(names) is None
    assert JoinOptions(aggregate="list").ways(names) == ["list"] * 3
    assert JoinOptions(aggregate={"#2": "sum", "*": "count"}).ways(names) == [
        "count",
        "count",
        "sum",
    ]
    with pytest.raises(
        InputError, match="aggregate names the column 'n' twice, by name and by position"
    ):
        JoinOptions(aggregate={"#2": "sum", "n": "count"}).ways(names)


def names_of(mine, labels, **options):
    chosen = choose_names(mine, labels, "a.csv", JoinOptions(**options))
    return list(chosen.provenance.values()), chosen.found_columns


def test_names_that_are_free_stay():
    assert names_of(["city"], ["name", "n"]) == (["match_value", "match_distance"], ["name", "n"])


def test_a_name_that_is_taken_gets_the_table_or_the_suffix():
    assert names_of(["city"], ["city", "n"])[1] == ["a.csv:city", "n"]
    assert names_of(["city"], ["city", "n"], suffix="_lake")[1] == ["city_lake", "n"]
    assert names_of(["city", "a.csv:city"], ["city"])[1] == ["a.csv:city_2"]
    assert names_of(["city"], ["city", "a.csv:city"])[1] == ["a.csv:city_2", "a.csv:city"]


def test_a_suffix_that_does_not_help_is_refused():
    with pytest.raises(
        InputError,
        match=r"With the suffix '_x' these names are taken as well: city_x\. Choose another suffix",
    ):
        names_of(["city", "city_x"], ["city"], suffix="_x")
    with pytest.raises(InputError, match="these names are taken as well: city_x"):
        names_of(["city"], ["city", "city_x"], suffix="_x")


def test_columns_of_yours_are_never_replaced():
    chosen = choose_names(["city", "match_value"], ["n"], "a.csv", JoinOptions())
    assert list(chosen.provenance.values()) == ["match_value_2", "match_distance_2"]
    assert chosen.note == (
        "match_value is a column of your table and stays as it is; what the join adds is called "
        "match_value_2, match_distance_2."
    )
    again = choose_names(
        ["match_value", "match_distance", "match_value_2"], [], "a.csv", JoinOptions()
    )
    assert list(again.provenance.values()) == ["match_value_3", "match_distance_3"]


def test_a_column_of_the_lake_called_like_provenance_gets_out_of_the_way():
    assert names_of(["city"], ["match_value"])[1] == ["a.csv:match_value"]
    assert names_of(["city"], ["match_value"], provenance=())[1] == ["match_value"]


def test_names_that_differ_in_case_are_the_same_to_spark():
    chosen = choose_names(["City", "MATCH_VALUE"], ["city"], "a.csv", JoinOptions(), fold_case=True)
    assert (chosen.found_columns, list(chosen.provenance.values())) == (
        ["a.csv:city"],
        ["match_value_2", "match_distance_2"],
    )


def test_found_columns_that_spark_takes_for_one_get_two_names():
    labels = ["Code", "code", "CODE", "year"]
    plain = choose_names(["city"], labels, "a.csv", JoinOptions())
    assert plain.found_columns == labels
    folded = choose_names(["city"], labels, "a.csv", JoinOptions(), fold_case=True)
    assert folded.found_columns == ["Code", "a.csv:code", "a.csv:CODE_2", "year"]
    with pytest.raises(InputError, match="code_x"):
        choose_names(["city", "code_x"], labels, "a.csv", JoinOptions(suffix="_x"), fold_case=True)
