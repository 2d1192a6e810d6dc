"""What an open index of a folder of tables shows, without Spark and without models."""

from functools import partial
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from equal_text_lakes import shard_of

from pexeso.lake.catalog import COLUMNS, COLUMNS_SCHEMA, TABLES, TABLES_SCHEMA, Catalog, files_in
from pexeso.lake.choose import ColumnRules
from pexeso.lake.files import find_tables
from pexeso.lake.normalise.normaliser import Normaliser
from pexeso.lake.records import lake_records
from pexeso.lake.rows import read_rows
from pexeso.sets.part.records import records as token_records


def opened_lake(lake, folder, *, min_rows=1):
    files = find_tables(lake)[0]
    read = pa.Table.from_batches(
        lake_records(files, ColumnRules(min_rows=min_rows), Normaliser(), wanted=[token_records])
    )
    folder.mkdir(parents=True, exist_ok=True)
    for kind, record, schema in (
        (TABLES, "table", TABLES_SCHEMA),
        (COLUMNS, "column", COLUMNS_SCHEMA),
    ):
        rows = read.filter(pc.equal(read["record"], record))
        arrays = [
            rows[name].cast(field.type)
            if name in rows.column_names
            else pa.nulls(len(rows), field.type)
            for name, field in zip(schema.names, schema, strict=True)
        ]
        rows = pa.table(dict(zip(schema.names, arrays, strict=True)))
        pq.write_table(rows.sort_by("table"), folder / f"{kind}-00000.parquet")
    sets = read.filter(pc.equal(read["record"], "set"))
    tokens = read.filter(pc.equal(read["record"], "token"))
    names = {(row["table"], row["position"]): row["label"] for row in sets.to_pylist()}
    columns = {(table, label): set() for (table, _), label in names.items()}
    for row in tokens.to_pylist():
        columns[row["table"], names[row["table"], row["position"]]].add(row["value"])
    shards = [shard_of(folder, columns)] if columns else []
    options = {"parts": ["overlap"]}
    return SimpleNamespace(
        store=SimpleNamespace(path=folder, manifest=SimpleNamespace(options=options)),
        rows=partial(read_rows, lake),
        shards=shards,
        catalog=Catalog(files_in([folder])),
        lake=lake,
        normaliser=Normaliser(),
        require_texts=lambda: None,
        reading_of=lambda spec, reading: reading,
    )


def write_lake(folder, tables):
    for name, columns in tables.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        rows = [list(columns), *zip(*columns.values(), strict=True)]
        path.write_text("".join(",".join(map(str, row)) + "\n" for row in rows), encoding="utf-8")
    return folder
