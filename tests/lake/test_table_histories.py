"""An index follows a table with a log: after every append it knows the rows of then.

The histories are random, and written by the library of the format. What deltalake does not write,
deletion vectors and the renaming of columns, is written into its log as other writers do it.
"""

import csv
import datetime
import random

import pyarrow as pa
import pytest
from read_tables import index_content, lake_content

from pexeso.index import build_index
from pexeso.lake.choose import ColumnRules
from pexeso.lake.containers import folders, reader
from tests.lake.delta_log import delete_by_vector, rename_column
from tests.long_runs import EVERYTHING

deltalake = pytest.importorskip("deltalake")
sql = pytest.importorskip("pyiceberg.catalog.sql")
icebergs = pytest.importorskip("pyiceberg.types")
expressions = pytest.importorskip("pyiceberg.expressions")

N_HISTORIES = 200 if EVERYTHING else 10
N_STEPS = 4

TOWNS = ["Oslo", "Rome", "Bern", "Bonn", "Lima", "Oldtown", "Oldham", "Kiel", "Łódź", "Åbo"]
TYPES = {"town": pa.string(), "n": pa.int64(), "day": pa.date32(), "size": pa.float64()}
OTHER = "fruit\napple\npear\nplum\nfig\nlime\n"


class History:
    """A table as its library writes it, and its rows as plain Python has them."""

    def __init__(self, folder, seed):
        self.folder, self.random = folder, random.Random(seed)
        self.names = {name: name for name in TYPES}  # what each column is called now
        self.n_added = 0
        self.rows = self.some_rows(12)
        self.create(self.table(self.rows))

    def some_rows(self, n):
        choose = self.random
        rows = []
        for _ in range(n):
            self.n_added += 1
            size = choose.choice([None, 0.5, 2.0, choose.randrange(10**6) / 64])
            day = datetime.date(2020, 1, 1) + datetime.timedelta(choose.randrange(400))
            row = {"town": choose.choice([*TOWNS, None]), "n": self.n_added, "size": size}
            rows.append({**row, "day": day, "note": f"note {choose.randrange(9)}"})
        return [{name: row[name] for name in self.names} for row in rows]

    def table(self, rows):
        columns = {
            self.names[name]: pa.array([row[name] for row in rows], TYPES.get(name, pa.string()))
            for name in self.names
        }
        return pa.table(columns)

    def where(self):
        low = self.random.randrange(max(1, self.n_added - 20), self.n_added + 1)
        name = self.names["n"]
        return f"{name} >= {low} and {name} < {low + 6}", lambda row: low <= row["n"] < low + 6

    def append(self):
        rows = self.some_rows(self.random.randrange(1, 9))
        self.write(self.table(rows), "append")
        self.rows += rows

    def overwrite(self):
        self.rows = self.some_rows(self.random.randrange(6, 12))
        self.write(self.table(self.rows), "overwrite")

    def delete(self):
        predicate, is_gone = self.where()
        self.delete_rows(predicate)
        self.rows = [row for row in self.rows if not is_gone(row)]

    def merge(self):
        rows = self.some_rows(4)
        for row in rows[: min(2, len(self.rows))]:
            row["n"] = self.random.choice(self.rows)["n"]
        rows = list({row["n"]: row for row in rows}.values())
        self.upsert(self.table(rows))
        keys = {row["n"] for row in rows}
        self.rows = [row for row in self.rows if row["n"] not in keys] + rows

    def rename(self):
        name = self.random.choice(["town", "day", "size"])
        if name in self.names:
            old, self.names[name] = self.names[name], f"{name}_{self.random.randrange(10**6)}"
            self.rename_column(old, self.names[name])

    def add_column(self):
        if "note" not in self.names:
            self.names["note"] = "note"
            self.rows = [{**row, "note": None} for row in self.rows]
            self.add_text_column("note")

    def step(self):
        steps = [self.append, self.overwrite, self.delete, self.merge, self.rename]
        step = self.random.choice([*steps, self.add_column, *self.own_steps()])
        step()
        return step.__name__

    def export(self, folder):
        """Write the rows as a file of text, under the name of the table."""
        path = folder / self.folder.name
        with open(path, "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(self.names.values())
            for row in self.rows:
                writer.writerow(map(text_of, row.values()))


def text_of(value):
    """Return the text of a value: a float that is whole has no fraction."""
    if value is None:
        return ""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


class Delta(History):
    def create(self, table):
        self.write_table, self.open_table = deltalake.write_deltalake, deltalake.DeltaTable
        self.is_mapped = self.random.random() < 0.4
        settings = {"delta.columnMapping.mode": "name", "delta.minReaderVersion": "2"}
        self.write_table(
            self.folder,
            table,
            partition_by=self.random.choice([None, None if self.is_mapped else "day"]),
            configuration={**settings, "delta.minWriterVersion": "5"} if self.is_mapped else None,
        )

    def own_steps(self):
        others = [self.optimise, self.delete_by_vector]  # which the library or we do not map
        return [self.clean, *([] if self.is_mapped else others)]

    def write(self, table, mode):
        self.write_table(self.folder, table, mode=mode)

    def delete_rows(self, predicate):
        self.open_table(self.folder).delete(predicate)

    def upsert(self, table):
        key = f"s.{self.names['n']} = t.{self.names['n']}"
        merge = self.open_table(self.folder).merge(table, key, source_alias="s", target_alias="t")
        merge.when_matched_update_all().when_not_matched_insert_all().execute()

    def rename_column(self, old, new):
        if self.is_mapped:
            rename_column(self.folder, old, new)
        else:  # Delta renames no others
            self.names = {key: old if name == new else name for key, name in self.names.items()}

    def add_column(self):
        if not self.is_mapped:  # which the library does not do then
            super().add_column()

    def add_text_column(self, name):
        field = deltalake.schema.Field(name, "string")
        self.open_table(self.folder).alter.add_columns(field)

    def optimise(self):
        self.open_table(self.folder).optimize.compact()

    def clean(self):
        table = self.open_table(self.folder)
        table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
        table.create_checkpoint()

    def delete_by_vector(self):
        _, is_gone = self.where()
        gone = {row["n"] for row in self.rows if is_gone(row)}
        gone = delete_by_vector(self.folder, self.names["n"], gone)
        self.rows = [row for row in self.rows if row["n"] not in gone]


class Iceberg(History):
    def create(self, table):
        settings = {"uri": "sqlite:///:memory:", "warehouse": f"file://{self.folder.parent}"}
        catalog = sql.SqlCatalog("test", **settings)
        catalog.create_namespace("n")
        location = f"file://{self.folder}"
        self.written = catalog.create_table("n.t", table.schema, location=location)
        self.written.append(table)

    def own_steps(self):
        return [self.drop_column, self.clean]

    def write(self, table, mode):
        getattr(self.written, mode)(table)

    def delete_rows(self, predicate):
        self.written.delete(predicate)

    def upsert(self, table):
        name = self.names["n"]
        with self.written.transaction() as change:  # its own upsert knows no renamed columns
            change.delete(expressions.In(name, table[name].to_pylist()))
            change.append(table)

    def rename_column(self, old, new):
        with self.written.update_schema() as change:
            change.rename_column(old, new)

    def add_text_column(self, name):
        with self.written.update_schema() as change:
            change.add_column(name, icebergs.StringType())

    def drop_column(self):
        if "size" in self.names:
            with self.written.update_schema() as change:
                change.delete_column(self.names.pop("size"))
            self.rows = [{name: row[name] for name in self.names} for row in self.rows]

    def clean(self):
        with self.written.transaction() as change:
            change.set_properties(written_by="a test")


def answers(index, history):
    for name in history.names:
        texts = [text_of(row[name]) for row in history.rows if row[name] is not None]
        for values in (texts, texts[:3]):
            matches = (
                index.search(values, k=20, max_distance=0, min_joinability=0.01) if values else []
            )
            yield [
                (match.table, match.column, match.matched, match.joinability) for match in matches
            ]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Delete operation did not match any records")
@pytest.mark.parametrize("number", range(N_HISTORIES))
def test_an_index_is_that_of_the_rows_of_now(tmp_path, monkeypatch, number):
    read = []
    read_snapshot = folders.read_snapshot
    monkeypatch.setattr(
        reader, "read_snapshot", lambda *_, table: read.append(1) or read_snapshot(*_, table=table)
    )
    lake, exported = tmp_path / "lake", tmp_path / "exported"
    for folder in (lake, exported):
        folder.mkdir()
        (folder / "other.csv").write_text(OTHER)
    history = (Delta, Iceberg)[number % 2](lake / "towns.csv", number)  # named as the file of text
    rules = ColumnRules(kinds=("text", "date", "number"), min_rows=1, min_distinct=1)
    index, steps = build_index(lake, tmp_path / "ix", rules=rules), ["create"]
    for _ in range(N_STEPS):
        history.export(exported)
        assert index_content(index) == lake_content(exported, rules), steps
        read.clear()
        assert not index.append().committed
        steps.append(history.step())
        assert not read
        update = index.append()
        if steps[-1] == "clean":
            assert (update.committed, read) == (False, [])
    history.export(exported)
    wanted = build_index(exported, tmp_path / "wanted", rules=rules)
    assert index_content(index) == index_content(wanted), steps
    assert list(answers(index, history)) == list(answers(wanted, history)), steps
