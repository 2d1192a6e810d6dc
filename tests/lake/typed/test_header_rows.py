"""Where a table stands in a grid of cells, by examples that a person would read the same way."""

import datetime

import pytest

from pexeso.lake.typed.spreadsheets import find_table

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


def test_the_header_is_that_of_a_text_with_the_same_cells() -> None:
    body = [["Oslo", 1, 2, 3, 4], ["Bod\u00f8", 5, 6, 7, 8], ["Moss", 4, 7, 3, 1]]
    head = ["city", "low", "high", "low", "high"]
    units = find_table([head, [_] * 5, [_, "[kg]", "[kg]", "[m]", "[m]"], *body])
    assert (units.names[1:3], units.first) == (["low [kg]", "high [kg]"], 3)
    assert units.notes == ["the header has 2 rows: their names were joined"]
    titles = [["Table 12411"], ["Towns"], ["Numbers"], ["of people"]]
    titles = [[*title, _, _, _, _] for title in titles]
    days = find_table([*titles, [_, "low", "high", "1.1.2019", "1.1.2020"], *body])
    assert (days.first, days.names[1]) == (5, "low")
    mail = [["ann@x.org", "Ann"], ["bo@x.org", "Bo"], ["cy@x.org", "Cy"], ["di@x.org", "Di"]]
    assert find_table(mail).first == 0
    codes = [
        ["0500US01001", "Autauga", 58],
        ["0500US01003", "Baldwin", 231],
        ["0500US01005", "B", 2],
    ]
    census = [["GEO_ID", "NAME", "S0101_C01"], ["Geography", "Area Name", "Total"]]
    assert find_table([*census, *codes]).first == 2


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


GROUPS = [["city", "Men", _, "Women", _], [_, 2019, 2020, 2019, 2020]]
OF_GROUPS = [["Oslo", 1, 2, 3, 4], ["Bodø", 5, 6, 7, 8]]


@pytest.mark.parametrize("n_rows", [2, 12])
@pytest.mark.parametrize("merged", [[], [(0, 0, 1, 0), (0, 1, 0, 2), (0, 3, 0, 4)]])
@pytest.mark.parametrize("above", [0, 2])
def test_years_below_groups_are_names(n_rows, merged, above) -> None:
    title = [["Table 1", _, _, _, _], [_] * 5][:above]
    merged = [(top + above, left, bottom + above, right) for top, left, bottom, right in merged]
    place = find_table([*title, *GROUPS, *(OF_GROUPS * 6)[:n_rows]], merged)
    assert place.names == ["city", "Men 2019", "Men 2020", "Women 2019", "Women 2020"]
    assert (place.first, place.end) == (above + 2, above + 2 + n_rows)


@pytest.mark.parametrize(
    "header", [["city", 2020, "x"], ["city", 2015, 2010], ["city", "n", 1999.0]]
)
def test_years_are_names_in_any_order_and_alone(header) -> None:
    place = find_table([header, *BODY])
    assert (place.names, place.first) == (
        [f"{name:g}" if type(name) is float else str(name) for name in header],
        1,
    )


def test_years_over_years_are_data() -> None:
    rows = [["Oslo", 1924], ["Bodø", 1816], ["Moss", 1720]]
    assert find_table(rows).first == 0


@pytest.mark.parametrize(
    "above",
    [
        [["Created:", datetime.date(2020, 1, 1), _], ["Author:", "Ann", _], [_, _, _]],
        [["Created:", datetime.date(2020, 1, 1), _], ["Author:", "Ann", _]],
        [["Year", 2020, _], ["Unit", "persons", _], [_, _, _], [_, _, _]],
    ],
)
def test_facts_above_the_header_are_not_of_the_table(above) -> None:
    place = find_table([*above, HEADER, *BODY])
    assert (place.names, place.first) == (HEADER, len(above) + 1)


def test_a_header_with_gaps_stays_the_header() -> None:
    body = [["Oslo", 7, "a", 12, 30], ["Bodø", 9, "b", 2, 31], ["Moss", 4, "c", 22, 3]]
    place = find_table([["city", _, "kind", _, "n"], *body])
    assert (place.names, place.first) == (["city", "", "kind", "", "n"], 1)
