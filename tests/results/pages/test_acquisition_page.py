"""Tests of the page of plans of purchases: its texts, drawings and bounds; names are only texts."""

import io
from itertools import combinations

import pytest
from hand_made import HOSTILE, require_only_texts
from test_redundancy_page import Reader

from pexeso.acquisition.results import AcquisitionPlan, AcquisitionResult, PlanJoin, PlanTable
from pexeso.results.pages.acquisition import (
    BOX_WIDTH,
    CHART_HEIGHT,
    CHART_WIDTH,
    MAX_COLUMNS,
    MAX_PLANS,
    MAX_STATEMENT,
    acquisition_page,
    path_drawing,
    price_chart,
)


def plan_of(
    name="", *, price=4.0, correlation=0.5, gap=0.0, branches=1, n_columns=1, sql="", chance=None
):
    """Return a plan with a chain of two tables and as many branches at the first as are wanted."""
    yours, first = f"yours{name}", f"zips{name}.csv"
    others = [f"states{name}{at}.csv" for at in range(branches)]
    key, state, smog = f"zip{name}", f"state{name}", f"smog{name}"
    joins = [PlanJoin(yours, (key,), first, (key,), 0.25, 4, 3, 1)]
    joins += [PlanJoin(first, (state,), other, (f"of {state}",), 0.5, 2, 2, 5) for other in others]
    columns = tuple(f"{state}{at}" for at in range(n_columns))
    tables = [PlanTable(first, (*columns, key), sql or f"SELECT {name}1", price / 2)]
    tables += [PlanTable(other, (smog, state), f"SELECT {name}2", price / 2) for other in others]
    return AcquisitionPlan(
        tuple(tables),
        (PlanTable(yours, ("sick", key), "", 0.0),),
        tuple(joins),
        ((yours, "sick"),),
        ((others[0], smog),),
        price,
        correlation,
        0.75,
        0.75,
        1234,
        gap == 0,
        gap,
        (f"Careful {name}.",),
        uncertainty=2.0,
        chance=chance,
    )


def result_of(*plans, prices="entropy", **more):
    query = {"file": None, "table": "yours", "have": ["sick"], "rows": 9, "want": ["smog"]}
    options = {
        "budget": 10.0,
        "min_quality": 0.5,
        "max_informativeness": 2.0,
        "prices": prices,
        "sample_rate": None,
    }
    stats = {"tables": 5, "joins": 7, "plans_formed": 1200, "plans_measured": 30, "stopped": ""}
    stats["notes"] = ["A table is left out."]
    return AcquisitionResult(
        {**query, **more.pop("query", {})},
        {**options, **more.pop("options", {})},
        plans,
        stats={**stats, "seconds": 1.5, **more.pop("stats", {})},
        **more,
    )


def test_a_page_says_what_plans_cost_and_tell():
    result = result_of(
        plan_of(sql='SELECT "state0", "zip" FROM "zips.csv"'),
        plan_of(price=2.5, correlation=0.25, gap=0.12),
        plan_of(price=1, correlation=0.125, gap=1.0),
    )
    text = Reader(result.to_html()).text
    assert "Columns that explain sick" in text
    assert "Columns of the lake that explain most of sick in yours : smog ." in text
    assert "The best plan explains 25.0 % of it for a price of 4 ." in text
    assert "budget 10 quality at least 50.0 % weights of joins at most 2 in sum" in text
    assert "5 tables, 7 that can be joined in pairs 1,200 plans formed, 30 measured" in text
    assert "Plan 2 12.5 % 0.25 2.5 75.0 % within 12.0 % of the best zips.csv , states0.csv" in text
    assert "Proved best : no plan within the bounds that costs no more" in text
    assert "Within 12.0 % of the best : no plan" in text
    assert "Not proved : another plan may explain more." in text
    assert "weights of joins 0.750 1,234 joined rows" in text
    assert "yours:zip = zips.csv:zip 4 common keys, N:1" in text
    assert "2 common keys, N:M: keys repeat in both tables (up to 2 and 5 rows)" in text
    assert 'SELECT "state0", "zip" FROM "zips.csv"; -- price 2' in text
    assert "Careful ." in text
    assert "Notes A table is left out." in text
    assert "25.0 % explained, 0.5 bits for a price of 4" in text
    assert "by chance" not in text
    assert "Highest correlation first. None is beaten by another" in text
    assert "stopped early" not in text


def test_a_free_lake_has_no_prices():
    text = Reader(result_of(plan_of(price=0), plan_of(price=0), prices="free").to_html()).text
    assert "-- price" not in text
    assert "Plan 1 25.0 % 0.5 free 75.0 %" in text
    assert "Correlation over price" not in text
    assert "of the lake" in text


def test_without_a_plan_the_page_says_why():
    result = result_of(
        reason="No plan costs so little.", best_seen={"price": 12.5, "quality": 0.25}
    )
    text = Reader(result.to_html()).text
    assert "No plan No plan costs so little." in text
    assert "The least price of a plan that keeps all other bounds: 12.5" in text
    assert "The highest quality of a plan that keeps all other bounds: 0.25" in text
    assert "Plan 1" not in text


def test_any_wanted_column_is_named_with_its_plan():
    plans = plan_of(chance=0.125), plan_of(chance=0.125, gap=1.0)
    result = result_of(*plans, query={"want": None}, stats={"columns": 250})
    text = Reader(result.to_html()).text
    assert "Plan 1: smog of states0.csv" in text
    assert "explain most of sick in yours . The first plan explains 25.0 % of it" in text
    assert "250 columns and 30 plans measured" in text
    assert "Plan 1 25.0 % 6.2 % 0.5 4 75.0 % best of all plans for this column" in text
    assert "25.0 % explained, 0.5 bits, 6.2 % by chance for a price of 4" in text
    assert "Best of all plans for this column ." in text
    assert "Best of the plans tried for this column : another may explain more." in text
    assert "What explains most beyond chance comes first" in text
    none = result_of(plan_of(), query={"have": [], "table": None})
    assert "Ways to get smog" in Reader(none.to_html()).text


def test_what_ended_the_search_and_samples_are_told():
    result = result_of(plan_of(), options={"sample_rate": 0.25}, stats={"stopped": "max_seconds"})
    text = Reader(result.to_html()).text
    assert "stopped early by max_seconds" in text
    assert "estimated from 25.0 % of the keys" in text


def test_plans_beyond_the_bound_are_counted():
    plans = [plan_of(price=at + 1) for at in range(MAX_PLANS + 3)]
    text = Reader(result_of(*plans, n_more=4).to_html()).text
    assert "7 more plans found, not listed here." in text
    assert f"Plan {MAX_PLANS}" in text
    assert f"Plan {MAX_PLANS + 1}" not in text


def test_names_and_statements_are_only_texts():
    result = result_of(plan_of(HOSTILE), plan_of(HOSTILE, price=2), query={"have": [HOSTILE]})
    require_only_texts(result.to_html(), result._repr_html_())


def test_control_characters_and_long_texts_are_shown_in_part():
    page = result_of(plan_of("\x07\u202e" + "x" * 10_000, sql="y" * (MAX_STATEMENT + 1))).to_html()
    assert len(page) < 60_000
    assert "… (20,001 chars)" in page
    assert not set(page) & {"\x07", "\u202e"}


def test_a_page_can_go_to_a_stream():
    result, stream = result_of(plan_of()), io.StringIO()
    assert result.to_html(stream) is None
    assert stream.getvalue() == result.to_html() == acquisition_page(result.to_dict())


def test_notebooks_show_a_table_of_plans():
    text = Reader(result_of(plan_of(), plan_of(price=2, gap=0.5))._repr_html_()).text
    assert text.startswith(
        "2 plans; correlation in bits explains correlation price quality proof joins"
    )
    assert (
        "25.0 % 0.5 2 75.0 % within 50.0 % of the best yours:zip = zips.csv:zip; zips.csv:state"
        in text
    )
    none = result_of(reason="The budget is too small.")
    assert Reader(none._repr_html_()).text == "No plan: The budget is too small."


@pytest.mark.parametrize("branches", [1, 2, 5])
def test_boxes_lie_in_the_drawing_and_do_not_overlap(branches):
    drawn = path_drawing(plan_of(branches=branches, n_columns=4).to_dict(), priced=True)
    assert [box.label for box in drawn.boxes[:2]] == ["yours", "zips.csv"]
    assert [box.is_own for box in drawn.boxes] == [True] + [False] * (branches + 1)
    assert len(drawn.lines) == branches + 1
    for box in drawn.boxes:
        assert 0 < box.x < box.x + BOX_WIDTH < drawn.width
        assert 0 < box.y < box.y + box.height < drawn.height
    for one, other in combinations(drawn.boxes, 2):
        apart = abs(one.x - other.x) >= BOX_WIDTH
        assert apart or one.y + one.height <= other.y or other.y + other.height <= one.y


def test_a_drawing_says_which_columns_are_asked_for():
    drawn = path_drawing(plan_of(n_columns=MAX_COLUMNS + 5).to_dict(), priced=True)
    own, first, last = drawn.boxes
    assert [(column["name"], column["role"]) for column in own.columns] == [
        ("sick", "explained"),
        ("zip", ""),
    ]
    assert [(column["name"], column["role"]) for column in last.columns] == [
        ("smog", "wanted"),
        ("state", ""),
    ]
    assert len(first.columns) == MAX_COLUMNS + 1
    assert first.columns[-1]["label"] == "and 6 more"
    assert [box.note for box in drawn.boxes] == ["yours", "price 2", "price 2"]
    assert [line.name for line in drawn.lines] == ["zip", "state = of state"]
    assert drawn.lines[0].note == "N:1, weight 0.250"


def test_points_of_the_chart_lie_in_it_in_order():
    plans = [
        plan_of(price=price, correlation=bits).to_dict()
        for price, bits in ((8, 1.25), (4, 0.5), (4, 0.5), (0, 0))
    ]
    chart = price_chart(plans, 6.0, "bits")
    places = [(point.x, point.y) for point in chart.points]
    assert places[3] == (chart.left, chart.bottom)
    assert places[0][0] > places[1][0] > places[3][0]
    assert places[0][1] < places[1][1] < places[3][1]
    assert chart.points[1].label_y != chart.points[2].label_y
    for x, y in places:
        assert chart.left <= x <= chart.right < CHART_WIDTH
        assert 0 < chart.top <= y <= chart.bottom < CHART_HEIGHT
    assert [said for _, said in chart.x_ticks] == ["0", "2", "4", "6", "8"]
    assert chart.budget_x == chart.x_ticks[3][0]
    assert price_chart(plans, 100.0, "bits").budget_x is None
    assert price_chart(plans[1:3], 6.0, "bits") is None
