"""Tables set aside and brought back: what moves, what is refused, and that nothing is lost."""

import errno
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from holding_kills import forked, renaming, scratch
from holding_lakes import GONE, contents, held_tables, plan_of, write_lake
from processes import ran

from pexeso.errors import InputError, LakeError, OutputError, TableReadError
from pexeso.lake.files import find_tables
from pexeso.lake.readers.table import read_content
from pexeso.redundancy import holding as holding_module
from pexeso.redundancy import table_files as moving
from pexeso.redundancy.holding import apply_plan, before_undoing, undo_plan
from pexeso.redundancy.holding_folder import JOURNAL, copy_name, default_holding, opened
from pexeso.redundancy.table_files import table_fingerprint
from pexeso.runtime import system

ROOT = Path(__file__).resolve().parents[2]
ONE = ["sales/2020.csv"]
NOBODY = 65534


@pytest.fixture
def lake(tmp_path) -> Path:
    return write_lake(tmp_path / "lake")


@pytest.fixture
def folder(lake) -> Path:
    return default_holding(lake)


@pytest.fixture(params=["here", "elsewhere"])
def anywhere(request, folder, monkeypatch) -> str:
    """A holding folder on the file system of the lake, and one that says it is on another."""
    if request.param == "elsewhere":
        monkeypatch.setattr(moving, "_rename_over_nothing", renaming(folder))
    return request.param


def refusals(done) -> dict[str, str]:
    return {refusal.table: refusal.reason for refusal in done.refused}


def test_tables_go_and_come_back_byte_for_byte(lake, folder, anywhere):
    before, plan = contents(lake), plan_of(lake)
    times = {path: path.stat().st_mtime_ns for path in lake.rglob("*") if path.is_file()}
    done = apply_plan(plan)
    assert (done.lake, done.holding) == (str(lake), str(folder))
    assert (done.moved, done.already, done.refused) == (tuple(GONE), (), ())
    assert (done.stopped, done.waiting) == (None, ())
    assert sorted(contents(lake)) == ["all.csv", "notes.md", "sales/all.csv"]
    assert contents(folder / "copies") == {}
    held = contents(folder / "tables")
    assert held == {name: before[name] for name in before if name not in contents(lake)}

    assert apply_plan(plan).already == tuple(GONE)
    back = undo_plan(folder)
    assert (back.moved, back.refused) == (tuple(GONE), ())
    assert contents(lake) == before
    assert {path: path.stat().st_mtime_ns for path in times} == times
    assert contents(folder / "tables") == contents(folder / "copies") == {}
    assert os.listdir(folder / "tables") == []
    assert undo_plan(folder).moved == ()
    assert apply_plan(plan).moved == tuple(GONE)


def test_the_journal_names_what_is_needed_to_rebuild_a_table(lake, folder):
    plan = plan_of(lake, ONE)
    now = datetime(2026, 11, 23, 12, tzinfo=UTC)
    apply_plan(plan, expires_days=1.5, now=now)
    [held], [item] = held_tables(folder), plan.delete
    assert (held.table, held.origin) == (item.table, str(lake / item.table))
    assert (held.moved, held.expires) == ("2026-11-23T12:00:00+00:00", "2026-11-25T00:00:00+00:00")
    assert (held.fingerprint, held.sql) == (item.fingerprint, item.sql)
    assert (held.parent, held.parent_fingerprint) == (item.parent, item.parent_fingerprint)


def test_each_call_has_a_day_of_its_own_from_which_its_tables_have_expired(lake, folder):
    now = datetime(2026, 11, 23, tzinfo=UTC)
    apply_plan(plan_of(lake, ["copy.csv"]), expires_days=1, now=now)
    apply_plan(plan_of(lake, ONE), expires_days=3, now=now)
    days = {held.table: held.expires[:10] for held in held_tables(folder)}
    assert days == {"copy.csv": "2026-11-24", ONE[0]: "2026-11-26"}
    undo_plan(folder, tables=["copy.csv"])
    assert [held.table for held in held_tables(folder)] == ONE
    assert sorted(contents(folder / "tables")) == ONE


@pytest.mark.parametrize("days", [0, -1, float("nan"), float("inf"), 40_000, "30"])
def test_days_that_are_none_are_refused(lake, folder, days):
    with pytest.raises(InputError, match="expires_days must be above 0"):
        apply_plan(plan_of(lake), expires_days=days)
    assert not folder.exists()


def test_the_fingerprint_of_a_file_is_that_of_the_reader(lake):
    assert table_fingerprint(lake / "all.csv") == read_content(lake / "all.csv").fingerprint
    whole = table_fingerprint(lake / "parts")
    (lake / "parts" / "part-0.csv").rename(lake / "parts" / "part-9.csv")
    assert table_fingerprint(lake / "parts") != whole


def test_tables_that_changed_since_the_plan_stay(lake, folder, anywhere):
    plan = plan_of(lake)
    (lake / "sales/2020.csv").write_text("city,year\nOslo,1999\n", encoding="utf-8")
    (lake / "parts/part-1.csv").unlink()
    (lake / "deep/in/side.csv").unlink()
    before = contents(lake)
    done = apply_plan(plan)
    assert done.moved == ("sales/2021.csv", "copy.csv")
    assert refusals(done) == {
        "sales/2020.csv": "it has changed since the plan was made",
        "parts": "it has changed since the plan was made",
        "deep/in/side.csv": "it is not in the lake",
    }
    assert [entry.table for entry in held_tables(folder)] == ["sales/2021.csv", "copy.csv"]
    undo_plan(plan)
    assert contents(lake) == before


@pytest.mark.parametrize("gone", [False, True])
def test_nothing_moves_where_the_parent_is_another(lake, folder, gone):
    plan = plan_of(lake)
    if gone:
        (lake / "all.csv").unlink()
    else:
        (lake / "all.csv").write_text("city,year\n", encoding="utf-8")
    before = contents(lake)
    done = apply_plan(plan)
    reason = "is not in the lake" if gone else "has changed since the plan was made"
    assert refusals(done) == dict.fromkeys(GONE, f"its parent 'all.csv' {reason}")
    assert contents(lake) == before


def test_a_parent_that_changes_between_two_moves_is_noticed(lake):
    def check(item):
        if item.table == "parts":
            (lake / "all.csv").write_text("city,year\n", encoding="utf-8")

    done = apply_plan(plan_of(lake), check=check)
    assert done.moved == ("sales/2020.csv", "sales/2021.csv")
    assert list(refusals(done)) == ["parts", "deep/in/side.csv", "copy.csv"]


def test_a_table_that_is_changed_while_it_moves_stays(lake, folder, anywhere, monkeypatch):
    real = holding_module.rename_new
    changed = "city,year\nOslo,1999\n"

    def rename(source, target):
        if source == lake / "copy.csv":
            source.write_text(changed, encoding="utf-8")
        real(source, target)

    monkeypatch.setattr(holding_module, "rename_new", rename)
    done = apply_plan(plan_of(lake, ["copy.csv", *ONE]))
    assert done.moved == tuple(ONE)
    assert "changed while it was" in refusals(done)["copy.csv"]
    assert (lake / "copy.csv").read_text(encoding="utf-8") == changed
    assert sorted(contents(folder / "tables")) == ONE
    assert [name for name in contents(lake) if "pexeso" in name] == []


def test_what_the_check_says_stays(lake):
    def check(item):
        if item.table == "parts":
            raise TableReadError("parts is cut short.")
        return "its rebuild differs" if item.table == "copy.csv" else None

    done = apply_plan(plan_of(lake), check=check)
    assert refusals(done) == {
        "parts": "it could not be checked: parts is cut short.",
        "copy.csv": "its rebuild differs",
    }
    assert len(done.moved) == 3


def test_names_that_are_taken_are_refused_and_nothing_is_overwritten(lake, folder, anywhere):
    apply_plan(plan_of(lake))
    for name in ("sales/2020.csv", "parts"):
        (lake / name).write_text("city,year\nnew,1\n", encoding="utf-8")
    # In the holding folder: a later version of a table is not written over an earlier one.
    done = apply_plan(plan_of(lake, ONE))
    assert refusals(done) == {
        "sales/2020.csv": f"'{folder / 'tables' / 'sales/2020.csv'}' is there already"
    }
    # In the lake.
    stored = contents(folder / "tables")
    back = undo_plan(folder)
    assert refusals(back) == dict.fromkeys(
        ["sales/2020.csv", "parts"], "another table has taken its name in the lake"
    )
    assert back.moved == ("sales/2021.csv", "deep/in/side.csv", "copy.csv")
    assert (lake / "parts").read_text(encoding="utf-8") == "city,year\nnew,1\n"
    left = {name for name in stored if name.startswith(("sales/2020", "parts"))}
    assert contents(folder / "tables") == {name: stored[name] for name in left}
    # The way out: the new ones get other names.
    for name in ("sales/2020.csv", "parts"):
        (lake / name).rename(lake / f"{name}.new")
    assert undo_plan(folder).moved == ("sales/2020.csv", "parts")


def test_a_name_taken_at_the_last_instant_is_not_overwritten(tmp_path):
    (tmp_path / "a").write_text("a", encoding="utf-8")
    (tmp_path / "b").write_text("b", encoding="utf-8")
    with pytest.raises(FileExistsError):
        moving.rename_new(tmp_path / "a", tmp_path / "b")
    assert contents(tmp_path) == {"a": b"a", "b": b"b"}


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.EINVAL])
def test_file_systems_without_such_a_rename_are_asked_first(tmp_path, monkeypatch, number):
    monkeypatch.setattr(moving, "_linux_rename", lambda: lambda *given: -1)
    monkeypatch.setattr(moving.ctypes, "get_errno", lambda: number)
    test_a_name_taken_at_the_last_instant_is_not_overwritten(tmp_path)
    moving.rename_new(tmp_path / "a", tmp_path / "c")
    assert contents(tmp_path) == {"b": b"b", "c": b"a"}


def test_a_table_altered_in_the_holding_folder_stays_there(lake, folder, anywhere):
    apply_plan(plan_of(lake))
    altered = folder / "tables" / "copy.csv"
    altered.write_text("altered", encoding="utf-8")
    (folder / "tables" / "sales/2020.csv").unlink()
    assert refusals(undo_plan(folder)) == {
        "copy.csv": f"'{altered}' has changed since it was set aside",
        "sales/2020.csv": "it is neither in the holding folder nor in the lake",
    }
    assert altered.read_text(encoding="utf-8") == "altered"


def test_the_parent_of_a_table_that_was_set_aside_stays(lake, folder):
    apply_plan(plan_of(lake, ONE, parent="sales/all.csv"))
    plan = plan_of(lake, ["sales/all.csv", "copy.csv"])
    done = apply_plan(plan)
    assert done.moved == ("copy.csv",)
    assert refusals(done)["sales/all.csv"].startswith(
        "'sales/2020.csv', which was set aside earlier, is rebuilt from it"
    )
    undo_plan(folder, tables=ONE)
    assert apply_plan(plan).moved == ("sales/all.csv",)


def test_what_would_come_back_is_told_without_a_move(lake, folder):
    plan = plan_of(lake, [*ONE, "copy.csv"])
    apply_plan(plan)
    apply_plan(plan_of(lake, ["parts"]))
    before = contents(lake), contents(folder)
    assert before_undoing(folder).waiting == (*ONE, "copy.csv", "parts")
    assert before_undoing(plan).waiting == (*ONE, "copy.csv")
    assert before_undoing(plan, tables=["copy.csv"]).waiting == ("copy.csv",)
    assert (contents(lake), contents(folder)) == before

    (lake / "copy.csv").write_text("another table", encoding="utf-8")
    shutil.copy2(
        folder / "tables" / ONE[0], lake / ONE[0]
    )  # as a process that was killed leaves it
    preview = before_undoing(plan)
    assert (preview.waiting, refusals(preview)) == (
        (),
        {"copy.csv": "another table has taken its name in the lake"},
    )
    assert refusals(undo_plan(plan)) == refusals(preview)


@pytest.mark.parametrize("act", [undo_plan, before_undoing])
def test_the_holding_folder_is_given_once_and_its_tables_by_name(lake, folder, act):
    apply_plan(plan_of(lake, ONE))
    with pytest.raises(InputError, match="Give the holding folder once"):
        act(folder, holding=folder)
    with pytest.raises(InputError, match=r"holds no table 'none\.csv'"):
        act(folder, tables=["none.csv"])


def test_a_copy_that_was_left_half_made_goes_whatever_is_brought_back(lake, folder):
    apply_plan(plan_of(lake))
    (folder / "copies" / copy_name("copy.csv")).write_text("half", encoding="utf-8")
    undo_plan(folder, tables=ONE)
    assert contents(folder / "copies") == {}


@pytest.mark.parametrize("name", ["tables", "copies", "journal", "journal.draft"])
@pytest.mark.parametrize("call", ["apply", "undo"])
def test_no_link_of_a_holding_folder_is_followed(lake, folder, tmp_path, name, call):
    precious = write_lake(tmp_path / "precious")
    plan = plan_of(lake)
    apply_plan(plan)
    if call == "apply":
        undo_plan(folder)
    before, there = contents(precious), contents(lake)
    path = folder / name
    if path.is_dir():
        path.rename(tmp_path / name)
    elif path.exists():
        path.rename(precious / "journal")
        before = contents(precious)
    path.symlink_to(precious / "journal" if "journal" in name else precious)
    act = {"apply": lambda: apply_plan(plan), "undo": lambda: undo_plan(folder)}[call]
    if name == "journal.draft":
        act()
    else:
        with pytest.raises((InputError, OutputError), match=f"holding/{name}' (is a|cannot be)"):
            act()
        assert contents(lake) == there
    assert contents(precious) == before


def test_what_pexeso_did_not_put_among_the_copies_stays(lake, folder):
    apply_plan(plan_of(lake))
    there, held = contents(lake), contents(folder / "tables")
    (folder / "copies" / "thesis").mkdir()
    (folder / "copies" / "thesis" / "one.txt").write_text("mine", encoding="utf-8")
    for call in (lambda: undo_plan(folder), lambda: apply_plan(plan_of_held(lake, folder))):
        with pytest.raises(InputError, match="copies/thesis' is none of the copies"):
            call()
    assert (folder / "copies" / "thesis" / "one.txt").read_text() == "mine"
    assert (contents(lake), contents(folder / "tables")) == (there, held)


def plan_of_held(lake, folder):
    """Return a plan of one table more."""
    (lake / "more.csv").write_bytes((lake / "all.csv").read_bytes())
    try:
        return plan_of(lake, ["more.csv"])
    finally:
        (lake / "more.csv").unlink()


def test_a_link_among_the_copies_is_removed_and_not_what_it_leads_to(lake, folder, tmp_path):
    precious = write_lake(tmp_path / "precious")
    before = contents(precious)
    apply_plan(plan_of(lake))
    (folder / "copies" / copy_name("copy.csv")).symlink_to(precious)
    (folder / "copies" / copy_name("parts")).mkdir()
    (folder / "copies" / copy_name("parts") / "link").symlink_to(precious)
    assert undo_plan(folder).refused == ()
    assert contents(precious) == before
    assert contents(folder / "copies") == {}


def test_files_of_the_user_under_names_of_copies_stay(lake, folder, anywhere):
    for place in ("arriving", "leaving"):
        (lake / f".pexeso-{place}-{copy_name('copy.csv')}").write_text("mine", encoding="utf-8")
    (lake / "sales" / f".pexeso-arriving-{copy_name(ONE[0])}").touch()  # with it all begin
    before, plan = contents(lake), plan_of(lake)
    elsewhere = anywhere == "elsewhere"
    done = apply_plan(plan)
    assert list(refusals(done)) == (["copy.csv"] if elsewhere else [])
    back = undo_plan(folder)
    assert list(refusals(back)) == ["copy.csv"]
    mine = {name: data for name, data in before.items() if ".pexeso" in name}
    assert {name: contents(lake)[name] for name in mine} == mine
    for name in mine:
        (lake / name).unlink()
    assert undo_plan(folder).refused == ()
    assert contents(lake) == {name: before[name] for name in before.keys() - mine.keys()}


@pytest.mark.parametrize("name", ["copy.csv", "parts/more/part-2.csv"])
def test_rows_of_a_program_that_has_a_table_open_are_not_lost(lake, folder, anywhere, name):
    plan = plan_of(lake)
    table = name.split("/")[0]
    with open(lake / name, "a", encoding="utf-8") as file:
        done = apply_plan(plan)
        file.write("late row,1\n")
    if anywhere == "elsewhere":
        assert list(refusals(done)) == [table]
        assert f"a program has '{lake / table}' open for writing" in refusals(done)[table]
        assert (lake / name).read_text(encoding="utf-8").endswith("late row,1\n")
        assert not (folder / "tables" / name).exists()
    else:
        assert (folder / "tables" / name).read_text(encoding="utf-8").endswith("late row,1\n")
    assert [path for path in contents(lake) if ".pexeso" in path] == []


@pytest.fixture
def without_leases(monkeypatch):
    """A file system that cannot say whether somebody has a file open for writing."""

    def refuse(descriptor, command, *given):
        if command == system.fcntl.F_SETLEASE:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        return 0

    monkeypatch.setattr(system.fcntl, "fcntl", refuse)


def hidden(lake):
    return [path for path in contents(lake) if ".pexeso-leaving" in path]


def test_without_leases_an_original_stays_until_it_is_settled(
    lake, folder, monkeypatch, without_leases
):
    monkeypatch.setattr(moving, "_rename_over_nothing", renaming(folder))
    before, plan = contents(lake), plan_of(lake, ["copy.csv", "parts"])
    with open(lake / "copy.csv", "a", encoding="utf-8") as file:
        done = apply_plan(plan)
        file.write("late row,1\n")
    assert (done.moved, done.kept, done.refused) == (("copy.csv", "parts"),) * 2 + ((),)
    assert apply_plan(plan).refused[0].table == "copy.csv"  # the row is in the original alone
    assert len(hidden(lake)) == 4
    monkeypatch.setattr(moving, "_SETTLED_SECONDS", -1)
    again = apply_plan(plan)
    assert "differs from its copy" in refusals(again)["copy.csv"]
    assert (again.already, again.kept) == (("parts",), ())
    [late] = hidden(lake)
    assert (lake / late).read_text(encoding="utf-8").endswith("late row,1\n")
    back = undo_plan(folder)
    assert list(refusals(back)) == ["copy.csv"]
    (lake / late).unlink()
    assert undo_plan(folder).refused == ()
    assert contents(lake) == before


def test_without_leases_an_original_comes_back_itself(lake, folder, monkeypatch, without_leases):
    monkeypatch.setattr(moving, "_rename_over_nothing", renaming(folder))
    before, number = contents(lake), (lake / "copy.csv").stat().st_ino
    apply_plan(plan_of(lake, ["copy.csv"]))
    back = undo_plan(folder)
    assert (back.moved, back.kept) == (("copy.csv",), ("copy.csv",))
    assert (lake / "copy.csv").stat().st_ino == number
    assert contents(lake) == before
    monkeypatch.setattr(moving, "_SETTLED_SECONDS", -1)
    assert undo_plan(folder).kept == ()
    assert contents(folder / "tables") == {}


@pytest.mark.parametrize("call", ["apply", "undo"])
@pytest.mark.parametrize("place", ["lake", "tables", "copies"])
def test_a_folder_that_becomes_a_link_at_the_last_instant_leads_nowhere(
    lake, folder, anywhere, tmp_path, monkeypatch, call, place
):
    precious = write_lake(tmp_path / "precious")
    plan, outside, whole = plan_of(lake, ["sales/2020.csv"]), contents(precious), contents(lake)
    if call == "undo":
        apply_plan(plan)
    swapped = {
        "lake": lake / "sales",
        "tables": folder / "tables/sales",
        "copies": folder / "copies",
    }
    real = {name: getattr(holding_module, name) for name in ("rename_new", "copy_whole")}

    def swapping(name):
        def move(*given):
            if (path := swapped[place]).is_dir() and not path.is_symlink():
                path.rename(tmp_path / "swapped")
                path.symlink_to(precious / "sales")
            return real[name](*given)

        return move

    for name in real:
        monkeypatch.setattr(holding_module, name, swapping(name))
    done = apply_plan(plan) if call == "apply" else undo_plan(folder)
    assert contents(precious) == outside
    touched = place != "copies" or anywhere == "elsewhere"
    assert list(refusals(done)) == (["sales/2020.csv"] if touched else [])
    kept = {**contents(tmp_path)}.values()
    assert set(whole.values()) <= set(kept)


def test_rows_written_to_a_held_table_while_it_comes_back_are_not_lost(lake, folder, monkeypatch):
    monkeypatch.setattr(moving, "_rename_over_nothing", renaming(folder))
    before = contents(lake)
    apply_plan(plan_of(lake))
    with open(folder / "tables" / "copy.csv", "a", encoding="utf-8") as file:
        back = undo_plan(folder)
        file.write("late row,1\n")
    assert list(refusals(back)) == ["copy.csv"]
    held = (folder / "tables" / "copy.csv").read_text(encoding="utf-8")
    assert held.endswith("late row,1\n")
    assert contents(lake) == before
    assert contents(folder / "copies") == {}


def test_a_table_copied_for_an_earlier_plan_gets_the_parent_of_the_new_one(lake, folder):
    apply_plan(plan_of(lake, ONE, parent="sales/all.csv"))
    shutil.copy2(folder / "tables" / ONE[0], lake / ONE[0])
    assert held_tables(folder) == []
    assert apply_plan(plan_of(lake, ONE)).moved == tuple(ONE)
    assert [entry.parent for entry in held_tables(folder)] == ["all.csv"]


def test_links_do_not_lead_out_of_the_lake(lake, folder, tmp_path):
    outside = write_lake(tmp_path / "outside")
    plan = plan_of(lake, ["sales/2020.csv", "copy.csv", "parts", "deep/in/side.csv"])
    shutil.rmtree(lake / "deep")
    (lake / "deep").symlink_to(outside / "deep")
    (lake / "copy.csv").unlink()
    (lake / "copy.csv").symlink_to(outside / "copy.csv")
    (lake / "parts/more/part-2.csv").unlink()
    (lake / "parts/more/part-2.csv").symlink_to(outside / "parts/more/part-2.csv")
    before = contents(outside)
    done = apply_plan(plan)
    assert done.moved == ("sales/2020.csv",)
    assert all("is a symbolic link" in reason for reason in refusals(done).values())
    assert contents(outside) == before
    # And not on the way back.
    shutil.move(lake / "sales", tmp_path / "sales")
    (lake / "sales").symlink_to(tmp_path / "sales")
    assert "is a symbolic link" in refusals(undo_plan(folder))["sales/2020.csv"]
    assert not (tmp_path / "sales/2020.csv").exists()


def test_a_parent_out_of_the_lake_is_none(lake, tmp_path):
    plan = plan_of(lake, ONE)
    (lake / "all.csv").rename(tmp_path / "all.csv")
    (lake / "all.csv").symlink_to(tmp_path / "all.csv")
    assert refusals(apply_plan(plan)) == {
        "sales/2020.csv": "its parent 'all.csv' is a link out of the lake"
    }


def test_a_link_to_a_table_keeps_it(lake):
    shutil.copy(lake / "copy.csv", lake / "alias.csv")
    kept = replace(plan_of(lake, ["copy.csv"], parent="alias.csv"), keep=("alias.csv",))
    moved = plan_of(lake, ["alias.csv", "copy.csv"])  # which a link is not
    (lake / "alias.csv").unlink()
    (lake / "alias.csv").symlink_to(lake / "copy.csv")
    for plan in (kept, moved):
        stays = refusals(apply_plan(plan))
        assert stays["copy.csv"] == "'alias.csv', which stays, is a symbolic link to it"
        assert (lake / "alias.csv").exists()


def test_a_holding_folder_in_the_lake_is_refused(lake, tmp_path):
    (tmp_path / "link").symlink_to(lake)
    (tmp_path / "inner").symlink_to(lake / "sales")
    before = contents(lake)
    for place in (lake, lake / "held", tmp_path / "link" / "held", tmp_path / "inner" / "a" / "b"):
        with pytest.raises(InputError, match="lies in the lake"):
            apply_plan(plan_of(lake), place)
    with pytest.raises(InputError, match="lies in the holding folder"):
        apply_plan(plan_of(lake), tmp_path)
    # A lake that is named by a link is the same lake.
    linked = replace(plan_of(lake), lake=str(tmp_path / "link"))
    with pytest.raises(InputError, match="lies in the lake"):
        apply_plan(linked, lake / "held")
    assert contents(lake) == before


@pytest.mark.parametrize("url", ["s3://bucket/lake", "memory://lake"])
def test_an_url_is_refused(lake, url):
    said = f"folders of this machine only, and '{url}' is an URL"
    for call in (
        lambda: apply_plan(replace(plan_of(lake), lake=url)),
        lambda: apply_plan(plan_of(lake), url),
        lambda: undo_plan(plan_of(lake), holding=url),
    ):
        with pytest.raises(InputError, match=said):
            call()


def test_folders_that_are_something_else_are_refused(lake, folder, tmp_path):
    plan = plan_of(lake)
    folder.mkdir()
    (folder / "mine.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(InputError, match="holds something else than tables set aside"):
        apply_plan(plan)
    for place in (folder, tmp_path / "absent", folder / "mine.txt"):
        with pytest.raises(InputError, match="is not a holding folder"):
            undo_plan(plan, holding=place)
    assert contents(folder) == {"mine.txt": b"mine"}
    other = write_lake(tmp_path / "other")
    apply_plan(plan_of(other), tmp_path / "held")
    with pytest.raises(InputError, match="holds tables of the lake"):
        apply_plan(plan, tmp_path / "held")
    with pytest.raises(InputError, match="holds tables of the lake"):
        undo_plan(plan, holding=tmp_path / "held")
    with pytest.raises(LakeError, match="is not a folder that is there"):
        apply_plan(replace(plan, lake=str(tmp_path / "absent")))
    with pytest.raises(InputError, match="must be an absolute path"):
        apply_plan(replace(plan, lake="lake"))


def test_a_line_that_was_never_finished_does_not_count(lake, folder):
    before, plan = contents(lake), plan_of(lake)
    apply_plan(replace(plan, delete=plan.delete[:2]))
    journal = folder / JOURNAL
    with open(journal, "ab") as file:
        file.write(b'{"table": "par')
    assert [entry.table for entry in held_tables(folder)] == GONE[:2]
    assert apply_plan(plan).moved == tuple(GONE[2:])
    assert len(journal.read_bytes().splitlines()) == 1 + len(GONE)
    undo_plan(folder)
    assert contents(lake) == before


@pytest.mark.parametrize("line", [b"{}", b"nonsense", b'{"format": "other", "version": 1}'])
def test_a_journal_that_cannot_be_read_moves_nothing(lake, folder, line):
    apply_plan(plan_of(lake))
    (folder / JOURNAL).write_bytes(line + b"\n")
    before = contents(folder)
    for call in (
        lambda: undo_plan(folder),
        lambda: apply_plan(plan_of(lake, ["all.csv"], "notes.md")),
    ):
        with pytest.raises(InputError):
            call()
    with pytest.raises(InputError, match=r"lie in .* under their names"):
        undo_plan(folder)
    assert contents(folder) == before


def test_two_processes_do_not_move_tables_at_once(lake, folder, tmp_path):
    plan = plan_of(lake)
    with opened(folder, lake):
        for call in (
            lambda: apply_plan(plan),
            lambda: apply_plan(plan, tmp_path / "another"),  # two plans could keep nothing
            lambda: undo_plan(folder),
        ):
            with pytest.raises(OutputError, match="Another process is moving tables"):
                call()
        assert held_tables(folder) == []
    assert apply_plan(plan).moved == tuple(GONE)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS])
def test_a_disk_that_takes_no_more_ends_the_call(lake, folder, monkeypatch, number):
    before, plan = contents(lake), plan_of(lake)
    monkeypatch.setattr(moving, "_rename_over_nothing", renaming(folder))
    real = holding_module.copy_whole

    def copy(source, target, fingerprint):
        if source == lake / "parts":
            raise OSError(number, os.strerror(number), str(target))
        real(source, target, fingerprint)

    with monkeypatch.context() as patched:
        patched.setattr(holding_module, "copy_whole", copy)
        done = apply_plan(plan)
    assert done.moved == ("sales/2020.csv", "sales/2021.csv")
    assert done.waiting == ("parts", "deep/in/side.csv", "copy.csv")
    assert done.stopped.startswith("2 of 5 tables were moved, then 'parts' could not be: ")
    assert done.stopped.endswith(", then apply the plan again to go on.")
    assert apply_plan(plan).already == ("sales/2020.csv", "sales/2021.csv")
    undo_plan(folder)
    assert contents(lake) == before


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
def test_a_disk_that_takes_no_more_of_a_folder_ends_the_call(lake, folder, monkeypatch, number):
    before, plan = contents(lake), plan_of(lake)
    monkeypatch.setattr(moving, "_rename_over_nothing", renaming(folder))
    real = moving._copy_opened

    def copy(reading, source, right, target):
        if source.name == "part-1.csv":
            raise OSError(number, os.strerror(number))
        return real(reading, source, right, target)

    monkeypatch.setattr(moving, "_copy_opened", copy)
    done = apply_plan(plan)
    shown = f"'{lake / 'parts' / 'part-1.csv'}' and '{folder / 'copies'}/"
    if number == errno.ENOSPC:
        assert done.waiting == ("parts", "deep/in/side.csv", "copy.csv")
        assert f"no space is left for {shown}" in done.stopped
    else:
        assert refusals(done)["parts"].startswith(shown)
        assert refusals(done)["parts"].endswith(os.strerror(number))
        assert len(done.moved) == 4
    undo_plan(folder)
    assert contents(lake) == before


def test_a_table_that_may_not_be_moved_is_refused_and_the_others_go_on(lake, folder, monkeypatch):
    real = moving._rename_over_nothing

    def rename(source, target):
        if source == lake / "parts":
            raise PermissionError(errno.EACCES, "Permission denied", str(source), None, str(target))
        real(source, target)

    monkeypatch.setattr(moving, "_rename_over_nothing", rename)
    done = apply_plan(plan_of(lake))
    assert list(refusals(done)) == ["parts"]
    assert refusals(done)["parts"].startswith("there is no permission to change ")
    assert len(done.moved) == 4
    assert "parts" not in [entry.table for entry in held_tables(folder)]
    assert "parts" not in (folder / JOURNAL).read_text(encoding="ascii").split('"')


def test_a_lake_may_be_named_by_a_folder_in_it(lake, folder):
    plan = replace(plan_of(lake), lake=str(lake / "sales" / ".."))
    done = apply_plan(plan)
    assert (done.moved, done.holding) == (tuple(GONE), str(folder))
    assert before_undoing(plan).waiting == tuple(GONE)
    assert undo_plan(plan).moved == tuple(GONE)


@pytest.mark.parametrize("closed", ["parts", "parts/more"])
def test_a_folder_that_cannot_be_written_keeps_no_other_table_from_coming_back(closed):
    with scratch() as folder:
        lake, holding = write_lake(Path(folder, "lake")), Path(folder, "lake.holding")
        before, plan = contents(lake), plan_of(lake)
        (lake / closed).chmod(0o555)
        for path in (Path(folder), *Path(folder).rglob("*")):
            if os.geteuid() == 0:  # who may do everything is nobody in particular here
                os.chown(path, NOBODY, NOBODY)

        def child():
            if os.geteuid() == 0:
                os.setuid(NOBODY)
            moving._rename_over_nothing = renaming(holding)
            done = apply_plan(plan)
            wanted = {"parts": f"there is no permission to change '{lake / closed}'"}
            assert refusals(done) == (wanted if closed == "parts" else {})
            assert contents(holding / "copies") == {}
            assert not list(lake.rglob(".pexeso-*"))
            assert apply_plan(plan).already == done.moved
            assert undo_plan(holding).moved == done.moved
            assert contents(lake) == before

        assert forked(child) == 0
        (lake / closed).chmod(0o755)


def test_another_file_system_is_no_obstacle(lake, tmp_path):
    shared = Path("/dev/shm")  # the one that most machines have apart from their disk
    if not shared.is_dir() or shared.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("this machine has no second file system at /dev/shm")
    place = shared / f"pexeso-holding-{os.getpid()}"
    before = contents(lake)
    try:
        assert apply_plan(plan_of(lake), place).moved == tuple(GONE)
        assert find_tables(lake)[0][0].table == "all.csv"
        assert len(contents(place / "tables")) == 7
        assert undo_plan(place).moved == tuple(GONE)
    finally:
        shutil.rmtree(place, ignore_errors=True)
    assert contents(lake) == before


MOUNTED = """
import os, subprocess, sys
from pathlib import Path
place, program = Path(sys.argv[1]), sys.argv[2]
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)], check=True)
sys.path[:0] = [sys.argv[3]]
from holding_lakes import contents, plan_of, write_lake
from pexeso.redundancy.holding import apply_plan, undo_plan
from pexeso.errors import PexesoError
if program == "full":
    lake = write_lake(place.parent / "lake")
    (lake / "copy.csv").write_bytes(os.urandom(2_000_000))
    before = contents(lake)
    done = apply_plan(plan_of(lake), place / "held")
    print(len(done.moved), done.waiting, done.stopped.replace(str(place), ""))
    print(contents(place / "held" / "copies"), contents(lake)["copy.csv"] == before["copy.csv"])
    undo_plan(place / "held")
    print(contents(lake) == before)
else:
    lake = write_lake(place / "lake")
    plan = plan_of(lake)
    subprocess.run(["mount", "-o", "remount,ro", str(place)], check=True)
    for folder in (None, place.parent / "held"):
        try:
            apply_plan(plan, folder)
        except PexesoError as error:
            print(type(error).__name__, str(error).replace(str(place), ""))
"""


@pytest.mark.parametrize("program", ["full", "read-only"])
def test_a_real_disk_that_takes_no_more(tmp_path, program):
    place = tmp_path / "disk"
    place.mkdir()
    mounting = ["unshare", "--map-root-user", "--mount"]
    allowed = shutil.which("unshare") and subprocess.run(
        [*mounting, "mount", "-t", "tmpfs", "tmpfs", str(place)], capture_output=True, check=False
    )
    if not allowed or allowed.returncode != 0:
        pytest.skip("this machine does not let a test make a file system of its own")
    here = str(Path(__file__).resolve().parent)
    done = ran(
        [*mounting, sys.executable, "-c", MOUNTED, str(place), program, here],
        cwd=ROOT,
        variables={"OMP_NUM_THREADS": "1"},
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    if program == "full":
        assert lines[0].startswith(
            "4 ('copy.csv',) 4 of 5 tables were moved, then 'copy.csv' could not be: no space is "
            "left for "
        )
        assert lines[1:] == ["{} True", "True"]
    else:
        said = "OutputError No table was moved: the file system of '/lake' is read-only; "
        assert [line.startswith(said) for line in lines] == [True, True]
