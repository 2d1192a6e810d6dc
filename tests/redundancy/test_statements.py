"""Selections found for tables, their SQL, statements of files, and the plan document."""

import datetime as dt
import json
import random
import time
from collections import Counter
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from drawn_statements import ALLOWED, REFUSED
from long_runs import EVERYTHING

from pexeso.errors import InputError, OutputError
from pexeso.redundancy.plan import (
    ContainmentEdge,
    Deletion,
    Plan,
    plan_from_json,
    plan_to_json,
    read_plan,
    write_plan,
)
from pexeso.redundancy.rebuilds import Statement, read_statements, verify_statements
from pexeso.redundancy.row_hashes import hashed_column, row_hashes
from pexeso.redundancy.statements import MAX_BYTES, MAX_TOKENS, checked_statement
from pexeso.redundancy.transformations import (
    Condition,
    Transformation,
    find_transformation,
    literal,
    rows_of,
    to_sql,
)

NAN = float("nan")
KINDS = {
    "id": (pa.int64(), lambda draw: draw.randrange(200)),
    "group `x`": (pa.string(), lambda draw: draw.choice(["a", "it's", "b\\c\n", "é", None])),
    "price": (pa.decimal128(8, 2), lambda draw: Decimal(draw.randrange(500)).scaleb(-2)),
    "ratio": (pa.float64(), lambda draw: draw.choice([None, draw.random(), 0.1, -0.0, 1e300])),
    "odd": (pa.float32(), lambda draw: draw.choice([NAN, 0.5, 0.1])),
    "day": (pa.date32(), lambda draw: dt.date(2020, 1, 1) + dt.timedelta(draw.randrange(40))),
    "at": (
        pa.timestamp("us", "UTC"),
        lambda draw: (
            dt.datetime(2020, 1, 1, tzinfo=dt.UTC) + dt.timedelta(hours=draw.randrange(40))
        ),
    ),
    "local": (
        pa.timestamp("ms"),
        lambda draw: dt.datetime(2020, 1, 1) + dt.timedelta(minutes=draw.randrange(40)),
    ),
    "number": (pa.string(), lambda draw: draw.choice([str(draw.randrange(1000)), "7.50", None])),
    "flag": (pa.bool_(), lambda draw: draw.choice([True, False, None])),
}


def drawn_parent(draw, n=60):
    return {
        name: pa.array([make(draw) for _ in range(n)], kind) for name, (kind, make) in KINDS.items()
    }


def some_rows(draw, parent):
    """Draw one to three conditions, and return which rows meet all."""
    n = len(next(iter(parent.values())))
    mask = [True] * n
    for name in draw.sample(list(parent), draw.randint(1, 3)):
        cells = parent[name].to_pylist()
        present = [cell for cell in cells if cell is not None and cell == cell]
        low, high = sorted([draw.choice(present), draw.choice(present)])
        equal = draw.random() < 0.4
        for row, cell in enumerate(cells):
            known = cell is not None and cell == cell
            mask[row] &= known and (cell == low if equal else low <= cell <= high)
    return mask


def hashes(columns, names):
    n = len(columns[names[0]])
    return row_hashes(n, [hashed_column(columns[name]) for name in names], names)


def derived(draw, parent, mask):
    names = draw.sample(list(parent), draw.randint(1, len(parent)))
    rows = [row for row, take in enumerate(mask) if take]
    draw.shuffle(rows)
    return names, {name: parent[name].take(pa.array(rows, pa.int64())) for name in names}


def as_bag(columns, names):
    cells = [["nan" if cell != cell else cell for cell in columns[n].to_pylist()] for n in names]
    return Counter(zip(*cells, strict=True))


def test_filters_of_one_to_three_columns_are_found():
    draw, n_found, n_drawn = random.Random(16), 0, 300 if EVERYTHING else 100
    for _ in range(n_drawn):
        parent = drawn_parent(draw)
        mask = some_rows(draw, parent)
        names, child = derived(draw, parent, mask)
        selection = find_transformation(parent, hashes(parent, names), hashes(child, names), names)
        if selection is None:
            continue
        n_found += 1
        rows = np.flatnonzero(rows_of(selection.conditions, parent, 60))
        got = as_bag({name: parent[name].take(pa.array(rows)) for name in names}, names)
        wanted = as_bag(child, names)
        assert (Counter(dict.fromkeys(got, 1)) if selection.distinct else got) == wanted
    assert n_found > n_drawn * 2 / 3


def test_all_rows_and_distinct_rows():
    parent = {"a": pa.array([1, 1, 2]), "b": pa.array(["x", "y", "z"])}
    names = ["a"]
    rows = hashes(parent, names)
    whole = find_transformation(parent, rows, rows[::-1], names)
    assert (whole.conditions, whole.distinct) == ((), False)
    once = find_transformation(parent, rows, rows[[0, 2]], names)
    assert (once.conditions, once.distinct) == ((), True)
    assert to_sql(once, "p.csv") == "SELECT DISTINCT `a` FROM `p.csv`"


def test_rows_that_no_condition_tells_apart_have_no_selection():
    values = pa.array(np.arange(1000))
    sample = values.take(pa.array(np.random.default_rng(0).permutation(1000)[:500]))
    rows, some = (hashes({"a": column}, ["a"]) for column in (values, sample))
    assert find_transformation({"a": values}, rows, some, ["a"]) is None
    strange = hashes({"a": pa.array([5000])}, ["a"])
    assert find_transformation({"a": values}, rows, strange, ["a"]) is None


def test_texts_that_are_numbers_are_compared_as_such():
    cells = pa.array([str(n) for n in range(200)])
    names = ["n"]
    child = cells.slice(0, 150)
    selection = find_transformation(
        {"n": cells}, hashes({"n": cells}, names), hashes({"n": child}, names), names
    )
    assert to_sql(selection, "p.csv") == (
        "SELECT `n` FROM `p.csv` WHERE CAST(`n` AS DOUBLE) <= CAST('149.0' AS DOUBLE)"
    )


def test_spark_reads_the_statements_as_they_are_meant(spark):
    draw = random.Random(5)
    parent = drawn_parent(draw)
    spark.createDataFrame(pa.table(parent)).createOrReplaceTempView("parent_of_filters")
    checked = 0
    for _ in range(40):
        names, child = derived(draw, parent, some_rows(draw, parent))
        selection = find_transformation(parent, hashes(parent, names), hashes(child, names), names)
        if selection is None or checked == 15:
            continue
        checked += 1
        got = spark.sql(to_sql(selection, "parent_of_filters")).toArrow()
        columns = {
            name: got[name].combine_chunks().cast(parent[name].type) for name in got.column_names
        }
        assert list(columns) == names
        assert as_bag(columns, names) == as_bag(child, names)
    spark.catalog.dropTempView("parent_of_filters")
    assert checked == 15


def test_dates_that_python_cannot_hold_and_views_of_texts_are_no_obstacle():
    parent = {
        "far": pa.array([1, 2**30, 3], pa.date32()),
        "": pa.array([1, 2, 3]),
        "text": pa.array(["a", None, "b"], pa.string_view()),
        "a": pa.array([1, 1, 1]),
    }
    rows = hashes({"a": pa.array([1, 2, 3])}, ["a"])
    selection = find_transformation(parent, rows, rows[[0, 2]], ["a"])
    assert [condition.column for condition in selection.conditions] == ["text"]


def test_rows_that_have_a_value_and_no_rows_at_all():
    parent = {"a": pa.array([1, 2, 3]), "x": pa.array([NAN, None, 0.5])}
    rows = hashes(parent, ["a"])
    for positions, text in ([0, 2], "`x` IS NOT NULL"), ([], "FALSE"):
        selection = find_transformation(parent, rows, rows[positions], ["a"])
        assert to_sql(selection, "p") == f"SELECT `a` FROM `p` WHERE {text}"
        assert np.flatnonzero(rows_of(selection.conditions, parent, 3)).tolist() == positions


def test_every_character_of_a_text_is_read_back_by_spark(spark):
    texts = ["\x0012", "\\n", "'\"`", "\u2028é\U0001f600", "\r\n\t", "%_", "\\u0041"]
    values = ", ".join(literal(text, pa.string()) for text in texts)
    [row] = spark.sql(f"SELECT array({values}) AS found").collect()
    assert row.found == texts


@pytest.mark.parametrize("columns", [("",), ("a", "a"), ("a", "A")])
def test_columns_without_a_name_of_their_own_have_no_statement(columns):
    with pytest.raises(InputError, match="cannot name"):
        to_sql(Transformation(columns, columns), "p")


def test_statements_and_literals():
    missing = Condition("a", pa.int64(), (), with_missing=True)
    listed = Condition("b`c", pa.string(), ("x", "y"), with_missing=True)
    text = to_sql(Transformation(("a",), ("z",), (missing, listed)), "t`.csv")
    assert text == (
        "SELECT `a` AS `z` FROM `t``.csv` WHERE `a` IS NULL AND "
        "(`b``c` IN ('x', 'y') OR `b``c` IS NULL)"
    )
    assert literal(2**64 - 1, pa.uint64()) == "CAST('18446744073709551615' AS DECIMAL(20, 0))"
    assert literal(True, pa.bool_()) == "TRUE"


@pytest.mark.parametrize(
    "values",
    [
        pa.array([1.0, NAN, None], pa.float16()),
        pa.array([1, 2, None], pa.time32("ms")),
        pa.array([1, 2, None], pa.time64("us")),
        pa.array([1, 2, None], pa.timestamp("ns")),
        pa.array([1, 2, None], pa.decimal256(60, 2)),
        pa.array([Decimal(100), Decimal(200), None], pa.decimal128(5, -2)),
        pa.array([(1, 2, 3), (1, 2, 4), None], pa.month_day_nano_interval()),
    ],
    ids=lambda values: str(values.type),
)
def test_no_condition_is_put_on_columns_that_spark_cannot_read(values):
    rows = hashes({"k": pa.array([1, 2, 3])}, ["k"])
    for positions in ([0], [1], [2], [0, 1], [0, 2], [1, 2]):
        assert find_transformation({"x": values}, rows, rows[positions], ["k"]) is None


@pytest.mark.parametrize(
    "values",
    [
        pa.array([0.0, -0.0, 5.0, -5.0, None]),
        pa.array([0.0, 0.0, 5.0, 6.0, None]),
        pa.array([-0.0, -0.0, -5.0, -6.0, None], pa.float32()),
        pa.array([1.0, NAN, NAN, 2.0, None]),
        pa.array([float("inf"), 1e308, -float("inf"), 5e-324, None]),
        pa.array([b"a", b"\xff", b"", b"a", None]),
        pa.array([1, 2**62, 3, 4, None], pa.duration("us")),
        pa.array([True, False, True, True, None]),
    ],
    ids=str,
)
def test_spark_finds_the_rows_in_parquet_too(spark, tmp_path, values):
    keys = pa.array([1, 2, 3, 4, 5])
    pq.write_table(pa.table({"k": keys, "x": values}), tmp_path / "p.parquet")
    spark.read.parquet(str(tmp_path / "p.parquet")).createOrReplaceTempView("parquet_of_filters")
    rows, n_found = hashes({"k": keys}, ["k"]), 0
    for positions in ([0], [0, 1], [0, 2], [0, 3], [1, 2], [2, 3], [4], [0, 1, 4], [0, 1, 2, 3]):
        selection = find_transformation({"x": values}, rows, rows[positions], ["k"])
        if selection is not None:
            n_found += 1
            got = spark.sql(to_sql(selection, "parquet_of_filters")).toArrow()["k"].to_pylist()
            assert sorted(got) == [row + 1 for row in positions]
    spark.catalog.dropTempView("parquet_of_filters")
    assert n_found


@pytest.mark.parametrize("sql", ALLOWED)
def test_a_query_is_written_from_its_tree(sql):
    written = checked_statement(sql, "t")
    assert written == ALLOWED[sql]
    assert checked_statement(written, "t") == written


@pytest.mark.parametrize(("sql", "line", "column"), REFUSED, ids=lambda value: str(value)[:40])
def test_what_is_none_of_the_grammar_is_refused_by_its_place(sql, line, column):
    with pytest.raises(InputError, match=rf"At line {line}, column {column or '[0-9]+'} of") as why:
        checked_statement(sql, "t")
    assert "Allowed are SELECT" in str(why.value)
    assert len(str(why.value)) < 500


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("", "is empty"),
        (" -- nothing", "is empty"),
        ("SELECT 'a", "no end"),
        ("SELECT `a", "no end"),
        ("SELECT '\ud800'", "half of one"),
        (f"SELECT '{'x' * MAX_BYTES}'", "1,048,576 bytes"),
        ("SELECT 1" + ",1" * MAX_TOKENS, "100,000 words"),
    ],
    ids=lambda value: value[:20].encode("ascii", "replace").decode(),
)
def test_statements_are_bounded_before_they_are_parsed(sql, said):
    started = time.perf_counter()
    with pytest.raises(InputError, match=said):
        checked_statement(sql, "t")
    assert time.perf_counter() - started < 20


def test_long_chains_are_no_depth():
    many = " AND ".join(f"a{n} = {n}" for n in range(3000))
    assert checked_statement(f"SELECT a FROM t WHERE {many}", "t").count(" AND ") == 2999


def test_names_and_texts_are_quoted_whatever_is_in_them():
    name = "x`; DROP ' \" -- /*+ \n${env:HOME}"
    sql = f"SELECT `{name.replace('`', '``')}` FROM `{name.replace('`', '``')}`"
    assert checked_statement(sql, name) == sql
    texts = ["\x0012", "\\n", "'\"`", "\u2028é\U0001f600", "\r\n\t", "%_", "\\u0041", "${env:HOME}"]
    texts += ["".join(random.Random(n).choices("\\'\"\n\r\t\0u01xZ%_`", k=12)) for n in range(300)]
    for text in texts:
        written = literal(text, pa.string())
        assert checked_statement(f"SELECT {written} FROM t", "t") == f"SELECT {written} FROM `t`"


def test_a_file_of_statements_is_refused_as_it_is_read(tmp_path):
    path = tmp_path / "known.toml"
    path.write_text(
        "[[rebuild]]\ntable = 'child'\nparent = 't'\n"
        "sql = '''\nSELECT a,\n TRANSFORM(a) USING \"id\" AS (a string) FROM t'''\n",
        encoding="utf-8",
    )
    with pytest.raises(InputError) as why:
        read_statements(path)
    assert "statement for 'child' that cannot be run. At line 2, column 2" in str(why.value)
    assert "may not name TRANSFORM" in str(why.value)
    path.write_text("[[rebuild]]\ntable = 'c'\nparent = 't'\nsql = 'select A from t -- x'\n")
    assert read_statements(path) == {("t", "c"): "SELECT `A` FROM `t`"}
    path.write_text(f"a = {'[' * 5000}", encoding="utf-8")
    with pytest.raises(InputError, match="must be TOML"):
        read_statements(path)


def test_texts_with_the_signs_of_variables_are_texts(spark, tmp_path):
    whole = pa.table({"user": ["a", "${env:HOME}", "${spark.app.name}"], "`${x}": [1, 2, 3]})
    pq.write_table(whole, tmp_path / "a.parquet")
    pq.write_table(whole.slice(1, 1), tmp_path / "b.parquet")
    sql = "SELECT user, ```${x}` FROM `a.parquet` WHERE user = '${env:HOME}'"
    statement = Statement("b.parquet", "a.parquet", sql)
    assert verify_statements(spark, tmp_path, [statement]) == {}


ITEM = Deletion(
    table="sales/2020.csv",
    parent="sales/all.csv",
    sql="SELECT `a` FROM `sales/all.csv` WHERE `year` = 2020",
    bytes=120,
    rows=7,
    saving=1.5,
    seconds=0.25,
    derived=("other.csv",),
    fingerprint="0" * 32,
    parent_fingerprint="1" * 32,
    verified=True,
)
OTHER = replace(ITEM, table="sales/2021.csv", seconds=None)
PLAN = Plan(
    lake="/data/lake",
    created="2026-11-23T12:00:00+00:00",
    costs={"storage": 0.02},
    cost=3.5,
    keep_all_cost=5,
    optimal=False,
    gap=None,
    delete=(ITEM, OTHER),
    keep=("sales/all.csv", "towns é.csv"),
    edges=(ContainmentEdge("sales/all.csv", "sales/2020.csv", 1.0, 7),),
)


def test_a_plan_is_read_as_it_was_written(tmp_path):
    path = tmp_path / "plan.json"
    write_plan(path, PLAN)
    assert read_plan(path) == PLAN
    document = json.loads(path.read_text(encoding="utf-8"))
    assert (document["format"], document["version"]) == ("pexeso-redundancy-plan", 1)
    assert document["delete"][0]["table"] == "sales/2020.csv"
    assert document["edges"] == [
        {"parent": "sales/all.csv", "child": "sales/2020.csv", "containment": 1.0, "rows": 7}
    ]


def test_a_plan_is_overwritten_only_where_that_is_asked(tmp_path):
    path = tmp_path / "plan.json"
    write_plan(path, PLAN)
    later = replace(PLAN, cost=2.0)
    with pytest.raises(OutputError, match=r"plan\.json' is there already"):
        write_plan(path, later)
    assert read_plan(path) == PLAN
    write_plan(path, later, overwrite=True)
    assert read_plan(path) == later
    with pytest.raises(OutputError, match=r"there is no folder"):
        write_plan(tmp_path / "absent" / "plan.json", PLAN)


def test_a_plan_touches_no_other_file(tmp_path):
    mine = tmp_path / "plan.json.draft"
    mine.write_text("mine", encoding="utf-8")
    write_plan(tmp_path / "plan.json", PLAN)
    assert mine.read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize(
    "name",
    ["/etc/towns.csv", "../towns.csv", "a/../../b", "a//b", "a/", "./a", "", "a\0b", "\ud800"],
)
@pytest.mark.parametrize("where", ["table", "parent", "keep", "edge"])
def test_names_that_lead_out_of_the_lake_are_refused(name, where):
    changed = {
        "table": {"delete": (replace(ITEM, table=name),)},
        "parent": {"delete": (replace(ITEM, parent=name),)},
        "keep": {"keep": (*PLAN.keep, name)},
        "edge": {"edges": (ContainmentEdge("sales/all.csv", name, 1.0, 7),)},
    }[where]
    expected = "not empty" if name == "" else "is not the name of a table"
    with pytest.raises(InputError, match=expected):
        plan_from_json(plan_to_json(replace(PLAN, **changed)))


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"delete": (ITEM, ITEM)}, "'sales/2020.csv' is deleted twice"),
        ({"keep": ("sales/all.csv",) * 2}, "'sales/all.csv' is kept twice"),
        (
            {"keep": ("sales/all.csv", "sales/2021.csv")},
            "'sales/2021.csv' is both deleted and kept",
        ),
        (
            {"delete": (ITEM, replace(OTHER, parent="sales/2020.csv"))},
            "'sales/2021.csv' would be rebuilt from 'sales/2020.csv', which is itself deleted",
        ),
        (
            {"delete": (replace(ITEM, parent="sales/2020.csv"),)},
            "'sales/2020.csv' would be rebuilt from 'sales/2020.csv', which is itself deleted",
        ),
        (
            {"keep": ("towns.csv",)},
            "from 'sales/all.csv', which is not among the tables that are kept",
        ),
        (
            {"delete": (replace(ITEM, table="sales"),)},
            "'sales/all.csv' lies in 'sales', which is deleted",
        ),
        (
            {"delete": (ITEM, replace(ITEM, table="sales/2020.csv/part-0"))},
            "'sales/2020.csv/part-0' lies in 'sales/2020.csv', which is deleted",
        ),
    ],
)
def test_tables_that_do_not_fit_together_are_refused_by_name(changed, said, tmp_path):
    document = plan_to_json(replace(PLAN, **changed))
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(InputError) as raised:
        read_plan(path)
    assert said in str(raised.value)
    with pytest.raises(InputError):
        write_plan(tmp_path / "other.json", replace(PLAN, **changed))
    assert not (tmp_path / "other.json").exists()


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (["format"], "other", "not a document of the format 'pexeso-redundancy-plan'"),
        (["version"], 2, "its version is 2, and this program reads version 1"),
        (["version"], True, "its version is True"),
        (["version"], 1.0, "its version is 1.0"),
        (["lake"], "", "'lake' of the plan must be a text that is not empty, but is ''"),
        (["gap"], "no", "'gap' of the plan must be a finite number or null"),
        (["optimal"], 1, "'optimal' of the plan must be true or false"),
        (["keep"], "all", "'keep' of the plan must be a list of texts"),
        (["keep", 0], 7, "'keep' of the plan must be a text"),
        (["delete"], {}, "'delete' of the plan must be a list of objects"),
        (["delete", 1], [], "entry 2 of 'delete' in the plan is list, not an object"),
        (["delete", 0, "rows"], -1, "'rows' of entry 1 of 'delete' in the plan must be a whole"),
        (["delete", 0, "rows"], True, "'rows' of entry 1 of 'delete' in the plan must be a whole"),
        (["delete", 0, "saving"], None, "'saving' of entry 1"),
        (["delete", 0, "more"], 1, "entry 1 of 'delete' in the plan has the unknown field 'more'"),
        (["edges", 0, "child"], None, "'child' of entry 1 of 'edges' in the plan must be a text"),
    ],
)
def test_fields_of_another_kind_are_refused_by_name(path, value, said):
    document = plan_to_json(PLAN)
    inner = document
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    with pytest.raises(InputError) as raised:
        plan_from_json(document)
    assert said in str(raised.value)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT TRANSFORM(a) USING 'id' AS (a string) FROM `sales/all.csv`",
        "SELECT IDENTIFIER('ref' || 'lect')('java.lang.System', 'exit', 1)",
        "SELECT * FROM `sales/2020.csv`",
    ],
)
def test_a_statement_that_may_not_be_run_is_refused_with_its_plan(sql):
    document = plan_to_json(PLAN)
    document["delete"][1]["sql"] = sql
    with pytest.raises(InputError, match=r"of 'sales/2021.csv' cannot be run: At line 1, column "):
        plan_from_json(document)


def test_a_field_that_is_missing_is_named():
    document = plan_to_json(PLAN)
    del document["delete"][1]["sql"]
    with pytest.raises(InputError, match="entry 2 of 'delete' in the plan lacks 'sql'"):
        plan_from_json(document)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is not readable as JSON"),
        ('{"format": NaN}', "NaN is no number of a plan"),
        ("[" * 100_000, "is not readable as JSON"),
        ("[]", "cannot be used: it is not a document of the format"),
    ],
)
def test_files_that_are_no_plan_are_refused(text, said, tmp_path):
    path = tmp_path / "plan.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=said):
        read_plan(path)


def test_a_file_that_is_not_there_is_said_to_be_so(tmp_path):
    with pytest.raises(InputError, match=r"absent\.json' cannot be read: No such file"):
        read_plan(tmp_path / "absent.json")
