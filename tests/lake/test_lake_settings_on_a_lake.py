"""Files of a lake read as its `lake.toml` says, in the listing, in records, and in later reads."""

from pexeso.lake.choose import ColumnRules
from pexeso.lake.containers.reader import read_table, table_fingerprint
from pexeso.lake.files import find_tables
from pexeso.lake.normalise.normaliser import Normaliser
from pexeso.lake.records import table_records
from pexeso.lake.rows import read_rows

SETTINGS = (
    '[[files]]\npattern = "old/*.csv"\ndelimiter = "#"\nencoding = "latin-1"\nskip-rows = 1\n'
)


def lake_in(folder, settings=SETTINGS):
    (folder / "old").mkdir()
    (folder / "old" / "a.csv").write_bytes("left over\ncity#n,o\nMálaga#1,2\n".encode("latin-1"))
    (folder / "b.csv").write_text("city,no\nRome,1\n")
    if settings:
        (folder / "lake.toml").write_text(settings)
    return folder


def test_the_settings_are_listed_and_named_in_the_files_they_are_for(tmp_path):
    tables, skipped = find_tables(lake_in(tmp_path))
    assert [(file.table, bool(file.reading)) for file in tables] == [
        ("b.csv", False),
        ("old/a.csv", True),
    ]
    assert skipped == []
    assert tables[1].version == tables[1].reading


def test_settings_in_a_folder_of_the_lake_are_told_to_be_of_no_use(tmp_path):
    lake_in(tmp_path, settings="")
    (tmp_path / "old" / "lake.toml").write_text(SETTINGS)
    _, skipped = find_tables(tmp_path)
    reason = "the settings of a lake; they count in the lake's own folder alone"
    assert [(file.path, file.reason) for file in skipped] == [("old/lake.toml", reason)]


def test_records_and_rows_are_read_as_they_say(tmp_path):
    file = find_tables(lake_in(tmp_path))[0][1]
    records = [
        row
        for batch in table_records(file, ColumnRules(), Normaliser())
        for row in batch.to_pylist()
    ]
    assert (records[0]["delimiter"], records[0]["n_rows"]) == ("#", 1)
    assert [row["name"] for row in records if row["record"] == "column"] == ["city", "n,o"]
    assert read_rows(tmp_path, "old/a.csv").to_pydict() == {"city": ["Málaga"], "n,o": ["1,2"]}
    assert records[0]["fingerprint"] == table_fingerprint(file.path, None, file.reading)


def test_a_file_counts_as_changed_where_it_is_to_be_read_in_another_way(tmp_path):
    with_settings = find_tables(lake_in(tmp_path))[0][1]
    (tmp_path / "lake.toml").unlink()
    without = find_tables(tmp_path)[0][1]
    assert (without.version, without.reading) == (None, None)
    assert table_fingerprint(without.path) != table_fingerprint(
        without.path, None, with_settings.reading
    )


def test_a_list_of_words_is_a_table_where_it_is_named_and_none_in_a_lake(tmp_path):
    (tmp_path / "words.txt").write_text("city\nOslo\nRome\nLima\n")
    assert read_table(tmp_path / "words.txt").columns[0].to_pylist() == ["Oslo", "Rome", "Lima"]
    file = find_tables(tmp_path)[0][0]
    record = next(table_records(file, ColumnRules(), Normaliser())).to_pylist()[0]
    assert "not delimited text" in record["reason"]
