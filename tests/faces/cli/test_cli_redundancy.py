"""`pexeso redundancy`: what people see, what programs do, and what is refused."""

import json

import pytest

# Without a session each command would start one of its own.
pytestmark = pytest.mark.usefixtures("spark")

ALL = "id,city,year\n" + "".join(f"{n},town {n % 7},{2000 + n % 3}\n" for n in range(60))


@pytest.fixture
def lake(tmp_path):
    """A table, one year of it, two of its columns, a copy in another order, and another table."""
    folder = tmp_path / "lake"
    (folder / "old").mkdir(parents=True)
    header, *rows = ALL.splitlines()
    (folder / "all.csv").write_text(ALL)
    of_2001 = [row for row in rows if row.endswith("2001")]
    (folder / "old" / "2001.csv").write_text("\n".join([header, *of_2001]) + "\n")
    (folder / "cities.csv").write_text(
        "city,id\n" + "".join(f"town {n % 7},{n}\n" for n in range(60))
    )
    (folder / "copy.csv").write_text("\n".join([header, *rows[::-1]]) + "\n")
    (folder / "other.csv").write_text("id,name\n1,x\n2,y\n")
    (folder / "broken.parquet").write_bytes(b"PAR1 no")
    return folder


@pytest.fixture
def free(write):
    """Costs of tables that nobody uses."""
    return write("costs.toml", "accesses = 0\n")


def test_from_a_lake_to_tables_set_aside_and_back(run, fail, lake, free, tmp_path):
    plan, page = tmp_path / "plan.json", tmp_path / "page.html"
    done = run("redundancy", lake, "--costs", free, "--plan", plan)
    first, *_ = done.stdout.splitlines()
    assert first.startswith("4 of 5 tables are contained whole in another; 3 can go: ")
    assert "SELECT `id`, `city`, `year` FROM `all.csv` WHERE `year` = '2001'" in done.stdout
    assert "SELECT `city`, `id` FROM `all.csv`" in done.stdout
    assert "Left out: broken.parquet: " in done.stderr
    assert f"Plan: '{plan}', which sets 3 tables aside" in done.stderr

    assert "is there already" in fail(1, "redundancy", lake, "--plan", plan)
    assert "there is no folder" in fail(1, "redundancy", "no lake", "--plan", tmp_path / "no" / "p")
    document = json.loads(run("redundancy", lake, "--costs", free, "--json").stdout)
    assert {(edge["parent"], edge["child"]) for edge in document["edges"]} >= {
        ("all.csv", "copy.csv"),
        ("copy.csv", "all.csv"),
        ("all.csv", "cities.csv"),
        ("copy.csv", "old/2001.csv"),
    }
    assert all(edge["exact"] and edge["containment"] == 1 for edge in document["edges"])
    assert [stage["name"] for stage in document["stages"]] == [
        "read", "schema", "types", "rows", "min_max", "exact", "plan",
    ]  # fmt: skip
    proposal = document["plan"]
    assert proposal["optimal"] is True
    assert proposal["cost"] < proposal["keep_all_cost"]
    assert {"table", "parent", "sql", "bytes"} <= proposal["delete"][0].keys()
    assert set(proposal["keep"]) | {deletion["table"] for deletion in proposal["delete"]} == {
        path.relative_to(lake).as_posix() for path in lake.rglob("*.*")
    }

    checked = run("redundancy", "verify", plan)
    assert checked.stdout == "ok: 3 tables\n"
    before = {path: path.read_bytes() for path in lake.rglob("*.csv")}
    said = run("redundancy", "apply", plan)
    assert said.stdout.count("would be set aside: ") == 3
    assert "Nothing was moved" in said.stderr
    assert {path: path.read_bytes() for path in lake.rglob("*.csv")} == before

    applied = run("redundancy", "apply", plan, "--yes")
    assert applied.stdout.count("set aside: ") == 3
    assert len(list(lake.rglob("*.csv"))) == 2
    again = json.loads(run("redundancy", "apply", plan, "--yes", "--json").stdout)
    assert len(again["already"]) == 3
    assert "is not in the lake" in fail_output(run, "redundancy", "verify", plan)

    holding = lake.with_name("lake.holding")
    assert run("redundancy", "undo", holding, "copy.csv").stdout == (
        "would be brought back: copy.csv\n"
    )
    (lake / "copy.csv").write_text("another table\n")
    undo = run("redundancy", "undo", holding, "copy.csv")
    assert undo.stdout == "stays:  copy.csv  another table has taken its name in the lake\n"
    assert f"0 tables would be brought back; the holding folder is '{holding}'" in undo.stderr
    (lake / "copy.csv").unlink()
    unknown = run("redundancy", "undo", holding, "none.csv", code=2)
    assert f"'{holding}' holds no table 'none.csv'." in unknown.stderr
    run("redundancy", "undo", plan, "--yes")
    assert {path: path.read_bytes() for path in lake.rglob("*.csv")} == before
    assert not page.exists()


def fail_output(run, *arguments):
    done = run(*arguments, code=1)
    return done.stdout


@pytest.mark.long
def test_a_changed_table_is_refused_by_name(run, lake, free, tmp_path):
    plan = tmp_path / "plan.json"
    run("redundancy", lake, "--costs", free, "--plan", plan)
    with (lake / "cities.csv").open("a") as file:
        file.write("town 9,99\n")
    done = run("redundancy", "verify", plan, code=1)
    assert "cities.csv  it has changed since the plan was made" in done.stdout
    done = run("redundancy", "apply", plan, "--yes", code=1)
    assert "stays:  cities.csv  it has changed since the plan was made" in done.stdout
    assert "1 table could not be set aside" in done.stderr
    assert (lake / "cities.csv").exists()
    assert not (lake / "old" / "2001.csv").exists()


def test_partial_containment(run, lake):
    (lake / "other.csv").write_text("id,city\n1,town 1\n2,town 2\n3,town 3\n4,town 5\n")
    document = json.loads(run("redundancy", lake, "--min-containment", 0.7, "--json").stdout)
    shares = {(edge["parent"], edge["child"]): edge["containment"] for edge in document["edges"]}
    assert shares["all.csv", "other.csv"] == 0.75
    done = run("redundancy", lake, "--min-containment", 0.7)
    assert "other.csv     is partly in     all.csv" in done.stdout


def test_a_table_that_is_in_one_that_it_partly_holds_is_listed(run, write):
    shop = write("shop/a.csv", "x,y\n1,a\n1,a\n2,b\n").parent
    (shop / "b.csv").write_text("x,y\n1,a\n2,b\n3,c\n")
    lines = run("redundancy", shop, "--min-containment", 0.5).stdout.splitlines()
    listed = [" ".join(line.split()) for line in lines]
    assert "a.csv is in b.csv 100.0 % 3" in listed
    assert "b.csv is partly in a.csv 66.7 % 3" in listed


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--min-containment", "0"], "--min-containment must be a number in (0, 1]. Got 0.0"),
        (["--costs", "nowhere.toml"], "nowhere.toml"),
        (["--synonyms", "nowhere.toml"], "nowhere.toml"),
        (["--accesses", "nowhere.csv"], "nowhere.csv"),
        (["--html", "nowhere/page.html"], "there is no folder 'nowhere'"),
        (["--plan", "nowhere/plan.json"], "there is no folder 'nowhere'"),
    ],
)
def test_what_cannot_be_used_is_told_before_anything_is_read(fail, lake, arguments, said):
    message = fail(1 if "nowhere/" in arguments[1] else 2, "redundancy", lake, *arguments)
    assert said in message


def test_lakes_without_contained_tables(run, fail, tmp_path):
    lake = tmp_path / "lake"
    lake.mkdir()
    assert "has no table" in fail(1, "redundancy", lake)
    (lake / "a.csv").write_text("a\n1\n")
    assert run("redundancy", lake).stdout == "None of 1 table is contained whole in another.\n"


def test_a_page_is_written_and_not_replaced_unasked(run, fail, tmp_path):
    lake, costs, page = tmp_path / "lake", tmp_path / "costs.toml", tmp_path / "page.html"
    lake.mkdir()
    costs.write_text("accesses = 0\n")
    (lake / "all.csv").write_text("id,city\n1,Oslo\n2,Rome\n3,Bern\n")
    (lake / "<b>cities.csv").write_text("city\nOslo\nRome\nBern\n")
    done = run("redundancy", lake, "--costs", costs, "--html", page)
    assert f"Page for the browser: '{page}'" in done.stderr
    text = page.read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>")
    assert text.endswith("</html>")
    assert "<title>&lt;b&gt;cities.csv is rebuilt from all.csv</title>" in text
    assert "<code>SELECT `city` FROM `all.csv`</code>" in text
    assert "<b>cities" not in text

    page.write_text("mine")
    assert "is there already" in fail(1, "redundancy", lake, "--html", page)
    assert page.read_text() == "mine"
