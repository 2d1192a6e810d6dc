"""Tables that keep their history are read as they were; an index of a moment stays at it."""

import datetime
import os
import time

import pyarrow as pa
import pytest

import pexeso
from pexeso.errors import InputError, LakeError
from pexeso.index import build_index
from pexeso.lake.containers.reader import read_table
from pexeso.lake.readers.options import ReadingOptions
from pexeso.store.io import table_history
from pexeso.store.io.table_history import plain_state
from tests.lake.delta_log import TOWNS, iceberg, towns

deltalake = pytest.importorskip("deltalake")
sql = pytest.importorskip("pyiceberg.catalog.sql")
config = pytest.importorskip("pyiceberg.utils.config")

LATER = ["Kiel", "Riga", "Turin", "Quito", "Minsk", "Dakar"]


def moment():
    """Return the present moment, and let a millisecond pass, in which tables count time."""
    text = datetime.datetime.now(datetime.UTC).isoformat()
    time.sleep(0.003)
    return text


def tables_found(index, values):
    return {match.table for match in index.search(values, fold_copies=False)}


def names_in(path, **reading):
    table = read_table(path, options=ReadingOptions(**reading))
    return sorted(table.columns[0].to_pylist())


@pytest.fixture
def lake(tmp_path):
    (tmp_path / "lake").mkdir()
    return tmp_path / "lake"


@pytest.mark.parametrize(
    ("given", "plain"),
    [
        ("2024-06-01", "2024-06-01T00:00:00Z"),
        (" 2024-06-01 12:00 ", "2024-06-01T12:00:00Z"),
        ("2024-06-01T12:00:00.5+02:00", "2024-06-01T10:00:00.500000Z"),
        (datetime.date(2024, 6, 1), "2024-06-01T00:00:00Z"),
        (datetime.datetime(2024, 6, 1, 12), "2024-06-01T12:00:00Z"),
        (7, "7"),
        ("007", "7"),
    ],
)
def test_a_state_has_one_form(given, plain):
    assert plain_state(given) == plain
    assert plain_state(plain) == plain


@pytest.mark.parametrize("given", ["", "soon", "2024-13-01", True, 1.5, -1, "1" * 20, [], "①"])
def test_what_is_no_state_is_refused(given, tmp_path):
    for make in (plain_state, lambda value: ReadingOptions(as_of=value)):
        with pytest.raises(InputError, match="as_of must be a moment, such as 2024-06-01"):
            make(given)
    with pytest.raises(InputError, match="as_of must be a moment"):
        build_index(tmp_path, tmp_path / "ix", as_of=given)


def test_states_of_a_delta_table(lake):
    path = lake / "t"
    before = moment()
    deltalake.write_deltalake(path, towns())
    first = moment()
    deltalake.write_deltalake(path, towns(LATER), mode="append")
    second = moment()
    deltalake.write_deltalake(path, towns(LATER), mode="overwrite")
    assert names_in(path, as_of=first) == names_in(path, as_of=0) == sorted(TOWNS)
    assert names_in(path, as_of=second) == names_in(path, as_of="1") == sorted(TOWNS + LATER)
    assert names_in(path, as_of=moment()) == names_in(path) == sorted(LATER)
    with pytest.raises(pexeso.PexesoError, match=r"it has no version of .* or before"):
        names_in(path, as_of=before)
    with pytest.raises(pexeso.PexesoError, match="cannot be read as a table"):
        names_in(path, as_of=3)


def test_commits_that_name_no_time_have_that_of_their_file(lake):
    path = lake / "t"
    deltalake.write_deltalake(path, towns())
    log = path / "_delta_log" / f"{0:020}.json"
    lines = [line for line in log.read_text().splitlines() if "commitInfo" not in line]
    log.write_text("\n".join(lines))
    moment()
    assert names_in(path, as_of=moment()) == sorted(TOWNS)
    with pytest.raises(pexeso.PexesoError, match="it has no version of 2001"):
        names_in(path, as_of="2001-01-01")


def test_logs_that_are_no_files_are_no_commits(lake, tmp_path):
    path = lake / "t"
    deltalake.write_deltalake(path, towns())
    state = moment()
    log = path / "_delta_log"
    os.mkfifo(log / f"{1:020}.json")
    (log / f"{2:020}.json").symlink_to(log / f"{0:020}.json")
    (log / "notes.json").write_text("{}")
    assert table_history.delta_version(path, plain_state(state)) == 0


def test_states_of_an_iceberg_table_have_the_names_of_then(lake):
    before = moment()
    table = iceberg(lake / "t", towns())
    first, number = moment(), table.current_snapshot().snapshot_id
    with table.update_schema() as change:
        change.rename_column("town", "place")
    table.append(pa.table({"place": LATER, "n": list(range(7, 13))}))
    for state in (first, number):
        read = read_table(lake / "t", options=ReadingOptions(as_of=state))
        assert read.names == ["town", "n"]
        assert sorted(read.columns[0].to_pylist()) == sorted(TOWNS)
    assert read_table(lake / "t").names == ["place", "n"]
    with pytest.raises(pexeso.PexesoError, match=r"it has no snapshot of .* or before"):
        names_in(lake / "t", as_of=before)
    with pytest.raises(pexeso.PexesoError, match="it has no snapshot 7"):
        names_in(lake / "t", as_of=7)


def test_an_index_stays_at_its_moment(lake, tmp_path):
    deltalake.write_deltalake(lake / "delta", towns())
    written = iceberg(lake / "ice", towns())
    (lake / "plain.csv").write_text("fruit\napple\npear\nplum\nfig\nlime\n")
    then = moment()
    deltalake.write_deltalake(lake / "delta", towns(LATER), mode="overwrite")
    written.overwrite(towns(LATER))
    deltalake.write_deltalake(lake / "young", towns())
    parts = ["overlap", "composite"]
    index = build_index(lake, tmp_path / "ix", as_of=then, parts=parts)
    assert index.as_of == plain_state(then)
    assert tables_found(index, TOWNS) == {"delta", "ice"}
    assert {match.table for match in index.overlap(TOWNS, fold_copies=False)} == {"delta", "ice"}
    assert not tables_found(index, LATER)
    [row] = [row for row in index.left_out().rows() if row["table"] == "young"]
    assert "which cannot be read: it has no version of" in row["reason"]
    joined = index.search(TOWNS)[0].join(pa.table({"mine": TOWNS}), on="mine")
    assert joined.num_rows == len(TOWNS)
    keys = index.explain_composite(towns(), ["town", "n"], "ice")
    assert keys.matched_keys == len(TOWNS)
    for compare in ("modified", "content"):
        assert not index.append(compare=compare).committed
    (lake / "plain.csv").write_text("fruit\nquince\npear\nplum\nfig\nlime\n")
    deltalake.write_deltalake(lake / "delta", towns(TOWNS[:2]), mode="append")
    update = index.append()
    assert (update.new, update.changed, update.unchanged) == (0, 1, 2)
    assert tables_found(index, TOWNS) == {"delta", "ice"}
    assert tables_found(index, ["quince"]) == {"plain.csv"}
    current = build_index(lake, tmp_path / "current")
    assert current.as_of is None
    assert tables_found(current, LATER) == {"delta", "ice"}


def test_the_file_of_the_lake_names_states_of_its_own(lake, tmp_path):
    deltalake.write_deltalake(lake / "old" / "t", towns())
    deltalake.write_deltalake(lake / "new" / "t", towns())
    for name in ("old", "new"):
        deltalake.write_deltalake(lake / name / "t", towns(LATER), mode="overwrite")
    later = moment()
    (lake / "lake.toml").write_text('[[files]]\npattern = "old/*"\nas-of = 0\n')
    index = build_index(lake, tmp_path / "ix", as_of=later)
    assert tables_found(index, TOWNS) == {"old/t"}
    assert tables_found(index, LATER) == {"new/t"}
    assert not index.append(compare="content").committed
    (lake / "lake.toml").write_text('[[files]]\npattern = "**"\nas-of = "soon"\n')
    with pytest.raises(LakeError, match="as-of must be a moment"):
        index.append()


def test_files_that_are_gone_leave_a_state_out(lake, tmp_path):
    deltalake.write_deltalake(lake / "t", towns())
    (lake / "plain.csv").write_text("fruit\napple\npear\nplum\nfig\nlime\n")
    deltalake.write_deltalake(lake / "t", towns(LATER), mode="overwrite")
    deltalake.DeltaTable(lake / "t").vacuum(0, enforce_retention_duration=False, dry_run=False)
    index = build_index(lake, tmp_path / "ix", as_of=0)
    [row] = [row for row in index.left_out().rows() if row["table"] == "t"]
    assert row["reason"].endswith("is not there")


def test_a_table_of_a_catalogue(lake, tmp_path, monkeypatch):
    settings = {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db"}
    settings["warehouse"] = f"file://{tmp_path}/warehouse"
    (tmp_path / "warehouse").mkdir()
    catalog = sql.SqlCatalog("towns", **settings)
    catalog.create_namespace("n")
    table = catalog.create_table("n.t", towns().schema)
    table.append(towns())
    then = moment()
    table.overwrite(towns(LATER))
    catalog.create_table("n.young", towns().schema).append(towns())
    for name, value in settings.items():
        monkeypatch.setenv(f"PYICEBERG_CATALOG__TOWNS__{name.upper()}", value)
    # Read when it was imported.
    monkeypatch.setattr("pyiceberg.catalog._ENV_CONFIG", config.Config())
    index = build_index("iceberg://towns", tmp_path / "ix", as_of=then)
    assert tables_found(index, TOWNS) == {"n.t"}
    assert index.search(TOWNS)[0].join(pa.table({"mine": TOWNS}), on="mine")
    [row] = [row for row in index.left_out().rows() if row["table"] == "n.young"]
    assert "it has no snapshot of" in row["reason"]
    table.append(towns(LATER))
    assert not index.append().committed
    current = build_index("iceberg://towns", tmp_path / "current")
    assert tables_found(current, TOWNS) == {"n.young"}


def test_tables_of_spark_have_no_state(tmp_path):
    with pytest.raises(InputError, match=r"Tables of Spark have no as_of.*'db\.t'"):
        build_index("db.t", tmp_path / "ix", as_of="2024-01-01")
