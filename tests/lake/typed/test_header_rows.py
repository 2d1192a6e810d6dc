"""Where a table stands in a grid of cells, by examples that a person would read the same way."""

import datetime

import pytest

from pexeso.lake.typed.header_rows import find_table

_ = None
BODY = [["Oslo", 1, 2.5], ["Bodø", 3, 4.5], ["Moss", 5, 6.5]]
HEADER = ["city", "n", "x"]
YEARS = ["country", 2000, 2001]
DAYS = ["country", datetime.date(2020, 1, 1), datetime.date(2020, 2, 1)]


@pytest.mark.parametrize(
    ("rows", "names", "first", "end"),
    [
        ([HEADER, *BODY], HEADER, 1, 4),
        ([["Title", _, _], [_, _, _], HEADER, *BODY], HEADER, 3, 6),
        ([["Author", "Bob", _], [_, _, _], HEADER, *BODY], HEADER, 3, 6),
        ([["Title", _, _], ["Subtitle", _, _], HEADER, *BODY], HEADER, 3, 6),
        ([HEADER, *BODY, [_, _, _], ["as of May", _, _], ["by us", _, _]], HEADER, 1, 4),
        ([HEADER, *BODY, ["Source: us", _, _]], HEADER, 1, 4),
        ([HEADER, *BODY, ["Bergen", _, _]], HEADER, 1, 5),
        ([HEADER, [_, _, _], *BODY], HEADER, 1, 5),
        ([[_, "n", "x"], *BODY], ["", "n", "x"], 1, 4),
        (
            [["city", "size", "age"], ["", "km²", "years"], *BODY],
            ["city", "size km²", "age years"], 2, 5,
        ),
        (
            [["city", "2020", ""], ["", "low", "high"], *BODY],
            ["city", "2020 low", "2020 high"], 2, 5,
        ),
        ([YEARS, *BODY], ["country", "2000", "2001"], 1, 4),
        ([DAYS, *BODY], ["country", "2020-01-01", "2020-02-01"], 1, 4),
        (BODY, ["", "", ""], 0, 3),
        ([["name"], ["Bob"], ["Eve"]], ["name"], 1, 3),
        ([["city", "n", "x"], ["Oslo", "n/a", "-"], *BODY], HEADER, 1, 5),
        ([["a\nb ", "n", "x"], *BODY], ["a b", "n", "x"], 1, 4),
    ],
)  # fmt: skip
def test_the_header_and_the_rows(rows, names, first, end) -> None:
    place = find_table(rows)
    assert (place.names, place.first, place.end) == (names, first, end)


def test_groups_above_the_header_go_before_its_names() -> None:
    rows = [["city", "2020", _, "2021", _], [_, "low", "high", "low", "high"]]
    body = [["Oslo", 1, 2, 3, 4], ["Bodø", 5, 6, 7, 8]]
    names = ["city", "2020 low", "2020 high", "2021 low", "2021 high"]
    assert find_table(rows + body).names == names
    merged = [(0, 0, 1, 0), (0, 1, 0, 2), (0, 3, 0, 4)]
    assert find_table(rows + body, merged).names == names
    titled = find_table([["All of it", _, _, _, _], rows[1], *body], [(0, 0, 0, 4)])
    assert titled.names == ["", "low", "high", "low", "high"]


def test_columns_without_a_cell_are_left_out() -> None:
    place = find_table([[_, "a", _, "b"], [_, 1, " ", 2]])
    assert (place.names, place.columns) == (["a", "b"], [1, 3])


def test_a_grid_without_a_cell_has_no_table() -> None:
    assert find_table([[_, " "], ["", _]]) is None
    assert find_table([]) is None


@pytest.mark.parametrize(
    ("last", "n_kept"),
    [
        (["Notebook", "Pen", "Pencil", "Eraser", "Stapler"], 5),
        (["Source code", "Key", "Contact"], 3),
        (["*NSYNC", "© sign"], 2),
        (["Rome", "Notes: by hand", "Source: us"], 1),
        (["* preliminary"], 1),
        (["Rome", _, "* preliminary", "by hand"], 1),
        (["Rome", "* Those of the north are estimates."], 1),
        (["Rome", "1) Those of the north are estimates."], 1),
    ],
)
def test_names_that_begin_like_notes_are_rows(last, n_kept) -> None:
    rows = [HEADER, *BODY, *([name, _, _] for name in last)]
    assert find_table(rows).end == 4 + n_kept


def test_a_note_is_no_note_where_rows_above_begin_alike() -> None:
    body = [["Note: a", 1, 2.5], ["Note: b", 3, 4.5], ["Note: c", 5, 6.5]]
    assert find_table([HEADER, *body, ["Note: d", _, _]]).end == 5
    assert find_table([HEADER, *body, ["Source: d", _, _]]).end == 4
