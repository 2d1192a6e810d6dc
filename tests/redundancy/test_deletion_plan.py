"""The plan document: what is written is read again, and what cannot be acted on is refused."""

import json
from dataclasses import replace

import pytest

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
