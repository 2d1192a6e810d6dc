"""What tasks write from streams of batches."""

import pyarrow as pa

from pexeso import tasks
from pexeso.lake import catalog, records


def batches(rows):
    return iter([pa.RecordBatch.from_pylist([row], schema=records.SCHEMA) for row in rows])


def test_columns_that_are_kept_are_numbered_across_batches(tmp_path):
    rows = [
        {"record": "column", "table": "a.csv", "name": name, "label": name, "position": position, "reason": reason}
        for position, (name, reason) in enumerate([("x", None), ("y", "numbers"), ("z", None), ("z2", None)])
    ]
    (count,) = tasks.write_columns(batches(rows), folder=str(tmp_path))
    list(tasks.write_tables(batches([]), folder=str(tmp_path), skipped=[]))
    assert count.to_pydict() == {"rows": [4]}
    _, columns = catalog.read_catalog(tmp_path)
    assert columns["column_id"].to_pylist() == [0, None, 1, 2]
    assert columns.schema == catalog.COLUMNS_SCHEMA


def test_files_that_are_no_tables_stand_last_in_the_catalog(tmp_path):
    rows = [{"record": "table", "table": "a.csv", "format": "delimited", "n_rows": 3, "notes": ["one"]}]
    (count,) = tasks.write_tables(batches(rows), folder=str(tmp_path), skipped=[("notes.txt", "prose")])
    list(tasks.write_columns(batches([]), folder=str(tmp_path)))
    assert count.to_pydict() == {"rows": [2]}
    tables, columns = catalog.read_catalog(tmp_path)
    assert [(row["table"], row["reason"]) for row in tables.to_pylist()] == [("a.csv", None), ("notes.txt", "prose")]
    assert columns.num_rows == 0


def test_doctest_of_the_error_in_a_traceback():
    import doctest

    assert doctest.testmod(tasks).failed == 0
