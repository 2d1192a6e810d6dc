"""Edges as JSON lines, CSV and Parquet, read back."""

import csv
import errno
import json

import pyarrow.parquet as pq
import pytest

from pexeso.errors import InputError, OutputError
from pexeso.joins.exports.files import (
    EDGES,
    FORMATS,
    OF_FILES,
    format_named,
    format_of_file,
    write_export,
)
from tests.joins.exports.edges_in_memory import EdgeRows, hostile_edges


def test_json_lines_are_the_rows_as_json_writes_them(tmp_path):
    rows, edges = hostile_edges()
    path = write_export(OF_FILES[".jsonl"], edges, tmp_path / "a.jsonl")
    expected = "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)
    assert path.read_bytes() == expected.encode()


def test_parquet_has_the_rows(tmp_path):
    rows, edges = hostile_edges()
    read = pq.read_table(write_export(OF_FILES[".parquet"], edges, tmp_path / "a.parquet"))
    assert read.schema.equals(EDGES)
    assert read.to_pylist() == rows


def test_csv_has_the_rows(tmp_path):
    rows, edges = hostile_edges()
    path = write_export(OF_FILES[".csv"], edges, tmp_path / "a.csv")
    with path.open(newline="", encoding="utf-8") as stream:
        read = list(csv.DictReader(stream))
    assert [row["left_column"] for row in read] == [row["left_column"] for row in rows]
    assert [float(row["joinability"]) for row in read] == [row["joinability"] for row in rows]


def test_a_map_names_the_options_of_its_graph_in_words(tmp_path):
    edges = EdgeRows()
    edges.options = {"method": "overlap", "max_distance": None, "k": 3}
    page = write_export(OF_FILES[".html"], edges, tmp_path / "a.html").read_text("utf-8")
    assert "<li>method <b>overlap</b></li><li>joins of a column at most <b>3</b></li>" in page
    edges.options = {"fold_copies": True, "seed": 0}
    page = write_export(OF_FILES[".html"], edges, tmp_path / "b.html").read_text("utf-8")
    assert "<li>copies <b>folded</b></li>" in page
    assert "seed" not in page


@pytest.mark.parametrize("suffix", OF_FILES)
def test_a_graph_without_edges_is_a_file_too(tmp_path, suffix):
    assert write_export(OF_FILES[suffix], EdgeRows(), tmp_path / f"a{suffix}").is_file()


def test_a_file_that_is_there_is_kept_or_replaced_whole(tmp_path):
    path, form = tmp_path / "a.jsonl", OF_FILES[".jsonl"]
    path.write_text("mine")
    with pytest.raises(OutputError, match="is there already"):
        write_export(form, hostile_edges()[1], path)
    assert path.read_text() == "mine"

    class Broken(EdgeRows):
        def batches(self):
            yield from super().batches()
            raise OutputError("stopped")

    with pytest.raises(OutputError, match="stopped"):
        write_export(form, Broken(hostile_edges()[0]), path, overwrite=True)
    assert path.read_text() == "mine"
    assert list(tmp_path.iterdir()) == [path]
    write_export(form, hostile_edges()[1], path, overwrite=True)
    assert path.read_text().startswith("{")


@pytest.mark.parametrize("there", [True, False])
def test_a_folder_that_was_made_goes_where_the_file_cannot_be_written(tmp_path, there):
    class Fails(EdgeRows):
        def batches(self):
            raise OSError(errno.ENOSPC, "No space left on device")

    folder = tmp_path / "models" / "lake"
    if there:
        folder.mkdir(parents=True)
    with pytest.raises(OutputError, match="No space left on device"):
        write_export(FORMATS["dbt"], Fails(), folder)
    assert folder.exists() == there
    assert [*tmp_path.iterdir()] == [folder.parent] * there


def test_a_folder_that_is_not_there_is_made_for_a_tool_that_reads_folders(tmp_path):
    path = write_export(FORMATS["dbt"], EdgeRows(), tmp_path / "new" / "models")
    assert path == tmp_path / "new" / "models" / "lake_joins.yml"
    with pytest.raises(OutputError, match="there is no folder"):
        write_export(OF_FILES[".csv"], EdgeRows(), tmp_path / "none" / "a.csv")
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="cannot be made"):
        write_export(FORMATS["dbt"], EdgeRows(), tmp_path / "file" / "models")


def test_other_names_are_refused():
    with pytest.raises(InputError, match=r"must end in .jsonl.*, .graphml or .html"):
        format_of_file("joins.xlsx")
    with pytest.raises(InputError, match="format must be one of dbt, openmetadata"):
        format_named("excel")
