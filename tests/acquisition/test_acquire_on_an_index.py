"""Acquisition over a built index, against joins by pandas: plans, reasons, warnings, all faces."""

import json
import math
from functools import reduce

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from pexeso.acquisition.lake_market import LakeMarket
from pexeso.acquisition.searches import AcquisitionSearches
from pexeso.errors import InputError, QueryError, TableReadError
from pexeso.faces.cli.main import cli
from pexeso.faces.service.verbs import Service
from pexeso.index import build_index, open_index
from pexeso.semantic.open_index import open_without_models

pytestmark = pytest.mark.slow

ZIPS = [f"{7000 + 37 * at:05}" for at in range(16)]
STATES = ["NJ", "NY", "MA", "CT"]


def lake_tables():
    random = np.random.default_rng(4)
    states = [STATES[at // 4] for at in range(16)]
    districts = [f"d{at // 2}" for at in range(16)]
    return {
        # Two rows of the first zip code: one of them has another state.
        "geo/zips.csv": pd.DataFrame(
            {
                "zip": [*ZIPS, *ZIPS],
                "state": [*states, *["NY"], *states[1:]],
                "district": districts * 2,
            }
        ),
        "air.csv": pd.DataFrame(
            {
                "state": np.repeat(STATES, 3),
                "month": ["may", "june", "july"] * 4,
                "smog": [9, 9, 8, 5, 5, 4, 1, 2, 1, 2, 2, 3],
            }
        ),
        "traffic.csv": pd.DataFrame(
            {
                "zip": ZIPS,
                "district": districts,
                "traffic": ["heavy"] * 5 + ["light"] * 8 + ["heavy"] * 3,
                "noise": random.integers(30, 40, 16) / 2,
            }
        ),
        "districts.csv": pd.DataFrame(
            {"district": sorted(set(districts)), "mayor": ["red", "blue"] * 4}
        ),
        "planets.csv": pd.DataFrame({"zip": ZIPS, "planet": "earth"}),
        "apart.csv": pd.DataFrame({"code": ["k1", "k2", "k3"], "moon": ["new", "full", "new"]}),
        "empty.csv": pd.DataFrame({"zip": [], "wind": []}),
        "survey.csv": pd.DataFrame({"zip": ZIPS, "happy": ["yes", "no"] * 8, "age": range(20, 36)}),
    }


def patients():
    random = np.random.default_rng(5)
    zips = [ZIPS[at % 16] for at in range(96)]
    ill = [int(zip_code) < 7150 or random.random() < 0.2 for zip_code in zips]
    return pd.DataFrame(
        {
            "zip": zips,
            "asthma": ["yes" if is_ill else "no" for is_ill in ill],
            "sex": random.choice(["f", "m"], 96),
            "days": np.where(ill, 12, 3) + random.integers(0, 4, 96) / 2,
        }
    )


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    folder = tmp_path_factory.mktemp("acquisition")
    for name, table in lake_tables().items():
        path = folder / "lake" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        table.to_csv(path, index=False)
    (folder / "lake" / "twice.csv").write_text(
        "zip,note,note\n" + "".join(f"{code},{'ab'[at % 2]},x\n" for at, code in enumerate(ZIPS))
    )
    mine = folder / "patients.csv"
    patients().to_csv(mine, index=False)
    path = folder / "lake.pexeso"
    build_index(folder / "lake", path, model="hashing", dimensions=16, parts=["overlap"])
    return path, mine


@pytest.fixture(scope="module")
def index(places):
    return open_index(places[0])


@pytest.fixture(scope="module")
def mine(places):
    return str(places[1])


# What a plan is worth, by a join in memory.


def entropy(values):
    shares = values.value_counts(normalize=True, dropna=False)
    return -math.fsum(share * math.log2(share) for share in shares)


def cumulative_entropy(values):
    ordered = np.sort(values.to_numpy(float))
    shares = np.arange(1, len(ordered)) / len(ordered)
    return -math.fsum(np.diff(ordered) * shares * np.log2(shares))


def expected_correlation(rows, have, want, numeric):
    known = rows.groupby([rows[column] for column in want], dropna=False)
    measures = [(cumulative_entropy, rows[column]) for column in have if column in numeric]
    texts = [column for column in have if column not in numeric]
    if texts:
        measures.append((entropy, rows[texts].apply(tuple, axis=1)))
    gains = [
        measure(values)
        - math.fsum(len(at) / len(rows) * measure(values.loc[at]) for at in known.groups.values())
        for measure, values in measures
    ]
    return math.fsum(gains)


def expected_informativeness(left, right):
    left, right = left.value_counts(), right.value_counts()
    both = left.index.intersection(right.index)
    matched = (left[both] * right[both]).to_numpy(float)
    alone = [side.drop(both).to_numpy(float) for side in (left, right)]
    counts = np.concatenate([matched, *alone])

    def bits(part):
        shares = part / part.sum() if len(part) else part
        return -math.fsum(shares * np.log2(shares))

    if not bits(counts):
        return 0.0
    weighed = math.fsum(part.sum() / counts.sum() * bits(part) for part in alone if len(part))
    return weighed / bits(counts)


def expected_quality(rows, plan, dependencies):
    correct = pd.Series(True, rows.index)
    for table in (*plan.tables, *plan.own_tables):
        for one in dependencies.get(table.table, ()):
            if not {*one.left, one.right} <= set(table.columns):
                continue
            left = [f"{table.table}:{name}" for name in one.left]
            right = f"{table.table}:{one.right}"
            counts = rows.groupby([*left, right], dropna=False).size().reset_index(name="n")
            counts = counts.sort_values(["n", right], ascending=[False, True])
            best = counts.drop_duplicates(left).set_index(left)[right]
            correct &= (
                rows[left]
                .apply(tuple, axis=1)
                .map(lambda key, best=best: best[key if len(key) > 1 else key[0]])
                == rows[right]
            )
    return correct.mean()


def joined(plan, tables):
    named = {
        name: table.rename(columns=lambda column, name=name: f"{name}:{column}")
        for name, table in tables.items()
    }

    def with_join(rows, join):
        return rows.merge(
            named[join.right],
            left_on=[f"{join.left}:{column}" for column in join.left_columns],
            right_on=[f"{join.right}:{column}" for column in join.right_columns],
        )

    return reduce(with_join, plan.path, named[plan.have[0][0]])


def check(plan, tables, dependencies=None, *, numeric=(), priced=False):
    rows = joined(plan, tables)
    have, want = (
        [f"{table}:{column}" for table, column in side] for side in (plan.have, plan.want)
    )
    assert plan.rows == len(rows)
    assert plan.correlation == pytest.approx(expected_correlation(rows, have, want, numeric))
    assert plan.informativeness == pytest.approx(
        math.fsum(
            expected_informativeness(
                *(
                    tables[name][list(columns)].apply(tuple, axis=1)
                    for name, columns in (
                        (join.left, join.left_columns),
                        (join.right, join.right_columns),
                    )
                )
            )
            for join in plan.path
        )
    )
    if dependencies is not None:
        assert plan.quality == pytest.approx(expected_quality(rows, plan, dependencies))
    price = math.fsum(
        entropy(tables[table.table][column]) for table in plan.tables for column in table.columns
    )
    assert plan.price == (pytest.approx(price) if priced else 0)


@pytest.fixture(scope="module")
def tables():
    return {**lake_tables(), "patients.csv": patients()}


@pytest.fixture(scope="module")
def dependencies(index):
    market = LakeMarket.of(index._opened)
    joined_by = {name: ["zip", "state", "district"] for name in lake_tables()}
    tables = market.tables(["geo/zips.csv", "traffic.csv", "air.csv", "districts.csv"], joined_by)
    return {table.name: tuple(table.dependencies) for table in tables}


@pytest.mark.parametrize("want", ["air.csv:smog", "state", "district", "mayor", "traffic"])
def test_plans_are_worth_what_a_join_says(index, mine, tables, dependencies, want):
    plans = index.acquire(f"{mine}:asthma", want, prices="entropy", max_tables=4, k=50)
    assert len(plans) > 0
    for plan in plans:
        assert plan.optimal
        check(plan, tables, dependencies, priced=True)
    if want == "state":
        # The table of zip codes has a zip code with two states, which breaks its rule.
        assert {plan.quality < 1 for plan in plans if plan.want[0][0] == "geo/zips.csv"} == {True}
    worth = [plan.correlation for plan in plans]
    assert worth == sorted(worth, reverse=True)
    for plan in plans:
        better = [rival for rival in plans if rival.correlation > plan.correlation]
        assert all(rival.price > plan.price or rival.quality < plan.quality for rival in better)


@pytest.mark.parametrize(
    ("have", "want"),
    [
        ("asthma", ["traffic.csv:traffic"]),
        ("asthma,sex", ["traffic.csv:traffic"]),
        ("days", ["traffic.csv:traffic,noise"]),
        ("days,sex", ["traffic.csv:noise"]),
        ("asthma", ["traffic.csv:traffic", "districts.csv:mayor"]),
        ("days", ["air.csv:month", "geo/zips.csv:state"]),
    ],
)
def test_columns_of_all_kinds_and_numbers(index, mine, tables, have, want):
    plans = index.acquire(f"{mine}:{have}", want, max_tables=4)
    assert len(plans) > 0
    for plan in plans:
        check(plan, tables, numeric=["patients.csv:days"])
    assert [column for _, column in plans[0].have] == have.split(",")
    assert len(plans[0].want) == sum(spec.count(",") + 1 for spec in want)
    if have == "days":
        assert plans.unit == "units of 'days'"
    if have == "days,sex":
        assert plans.unit == "bits, and units of 'days'"


def test_columns_of_the_lake_that_tell_most_of_each_other(index, tables):
    result = index.acquire(None, ["traffic.csv:traffic", "districts.csv:mayor"])
    rows = joined_want = tables["traffic.csv"].merge(tables["districts.csv"], on="district")
    expected = expected_correlation(rows, ["mayor"], ["traffic"], [])
    assert result[0].correlation == pytest.approx(expected)
    assert result[0].rows == len(joined_want)
    assert result.query["table"] is None


def test_a_column_of_the_lake_is_explained(index, tables):
    result = index.acquire("survey.csv:happy", "traffic.csv:traffic")
    assert result.query["table"] == "survey.csv"
    check(result[0], tables)
    assert "survey.csv" in {table.table for table in result[0].tables}


def test_without_a_wanted_column_there_is_one_plan_for_each(index, mine, tables):
    plans = index.acquire(f"{mine}:asthma", max_tables=3, k=50)
    assert len({plan.want for plan in plans}) == len(plans)
    assert {"state", "traffic"} & {plan.want[0][1] for plan in plans}
    for plan in plans:
        check(plan, tables)
        assert 0 <= plan.chance < plan.correlation
        # Each row of the patients finds one row at most.
        assert plan.rows <= 96
    gains = [
        joined(plan, tables)["patients.csv:zip"].count() / 96 * (plan.correlation - plan.chance)
        for plan in plans
    ]
    assert gains == sorted(gains, reverse=True)
    many = index.acquire(f"{mine}:asthma", max_fan_out=1000, max_tables=3, k=50)
    assert any(plan.rows > 96 for plan in many)


def test_a_listed_price_must_be_there_and_a_number_from_0(index, mine, tmp_path):
    spec = f"{mine}:asthma", "traffic.csv:traffic"
    listed = {name: dict.fromkeys(table.columns, 2.0) for name, table in lake_tables().items()}
    listed["*"] = {"*": 1.0}
    plans = index.acquire(*spec, prices=listed, max_tables=2)
    assert plans[0].price == 4.0
    with pytest.raises(InputError, match=r"There is no price for .* of 'traffic\.csv'"):
        index.acquire(*spec, prices={"traffic.csv": {"zip": 1}}, max_tables=2)
    file = tmp_path / "prices.csv"
    file.write_text("table,column,price\ntraffic.csv,traffic,-3\n")
    with pytest.raises(InputError, match=r"Line 2 of .*a price must be a number from 0"):
        index.acquire(*spec, prices=file)
    with pytest.raises(InputError, match="must be a finite number from 0"):
        index.acquire(*spec, prices={"*": {"*": -3.0}}, max_tables=2)
    file.write_text("table,column,price\nnone.csv,traffic,3\n")
    with pytest.raises(InputError, match=r"has no table 'none\.csv'"):
        index.acquire(*spec, prices=file)
    with pytest.raises(TableReadError, match="cannot be read as a list of prices"):
        index.acquire(*spec, prices=tmp_path / "none.csv")


def test_tables_without_rows(index, mine):
    with pytest.raises(QueryError, match="has no rows"):
        index.acquire({"zip": [], "x": []}, "traffic.csv:traffic", columns="x")
    result = index.acquire(f"{mine}:asthma", "empty.csv:wind")
    assert len(result) == 0
    assert result.reason


def test_names_that_a_table_has_twice(index, mine):
    plans = index.acquire(f"{mine}:asthma", "twice.csv:#1", max_tables=2)
    assert plans[0].want == (("twice.csv", "#1"),)
    with pytest.raises(InputError, match="There is no column 'note'"):
        index.acquire(f"{mine}:asthma", "twice.csv:note")


def test_joins_in_a_circle_are_answered_by_a_tree(index, mine, tables):
    plans = index.acquire(
        f"{mine}:asthma", ["geo/zips.csv:state", "districts.csv:mayor", "traffic.csv:noise"], k=50
    )
    assert plans.stats["joins"] >= 4
    for plan in plans:
        names = {name for join in plan.path for name in (join.left, join.right)}
        assert len(plan.path) == len(names) - 1
        check(plan, tables)


def test_what_may_mislead_is_said(index, mine):
    plans = index.acquire(f"{mine}:asthma", "air.csv:smog", max_tables=3)
    assert any("keys repeat in both tables" in warning for warning in plans[0].warnings)
    planet = index.acquire(f"{mine}:asthma", "planets.csv:planet", max_tables=2)
    assert planet[0].correlation == 0
    assert "planets.csv:planet has one value alone, which tells nothing." in planet[0].warnings
    named = index.acquire(f"{mine}:asthma", "geo/zips.csv:zip", max_tables=2, k=1)
    assert named[0].rows == 192
    few = patients().assign(zip=lambda rows: rows["zip"].where(rows["zip"].isin(ZIPS[:5]), "none"))
    partly = index.acquire(few, "traffic.csv:traffic", columns="asthma", max_tables=2)
    assert partly[0].rows == 30
    assert (
        "Of the rows of yours, 31.2 % are in the join: nothing is told of the others."
        in partly[0].warnings
    )


def test_joins_of_few_keys_are_not_sampled(index, mine):
    spec = f"{mine}:asthma", "traffic.csv:traffic"
    whole, half = (index.acquire(*spec, max_tables=2, sample_rate=rate) for rate in (1, 0.5))
    assert half.plans == whole.plans
    assert half.stats["notes"][-1].startswith("Correlation, quality and rows are those of samples")
    assert whole.stats["notes"] == []


def test_all_faces_give_the_same_plans(places, index, mine, tmp_path):
    path, _ = places
    options = {"budget": 30, "prices": "entropy", "max_tables": 4}
    result = index.acquire(f"{mine}:asthma", ["smog"], **options)
    assert len(result) > 0
    assert (
        AcquisitionSearches(open_without_models(path)).acquire(
            f"{mine}:asthma", ["smog"], **options
        )
        == result
    )
    page = tmp_path / "plans.html"
    done = CliRunner().invoke(
        cli,
        ["acquire", str(path), "--have", f"{mine}:asthma", "--want", "smog", "--budget", "30",
         "--prices", "entropy", "--max-tables", "4", "--json", "--html", str(page)],
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    printed = json.loads(done.stdout)
    assert printed["plans"] == json.loads(json.dumps(result.to_dict()["plans"]))
    assert result[0].path[0].condition in page.read_text(encoding="utf-8")
    service = Service(keep_open=True)
    request = {"verb": "acquire", "index": str(path), "have": f"{mine}:asthma", "want": ["smog"]}
    for _ in range(2):
        answer = json.loads(json.dumps(service.answer({**request, **options})))
        assert answer["plans"] == printed["plans"]
        assert answer["options"] == printed["options"]
