"""Which files of a lake are one table."""

from pexeso.redundancy.lake_reading import files_of_tables, table_of_file


def test_files_in_a_folder_that_an_engine_wrote_are_one_table():
    tables = files_of_tables(
        [
            "a.csv",
            "sales/part-00001.parquet",
            "sales/part-00000.parquet",
            "more/x=1/y=a%2Fb/data.parquet",
            "more/x=2/y=c/part-0.csv",
            "part-0.parquet",
        ]
    )
    assert {table: [part.file for part in files] for table, files in tables.items()} == {
        ".": ["part-0.parquet"],
        "a.csv": ["a.csv"],
        "more": ["more/x=1/y=a%2Fb/data.parquet", "more/x=2/y=c/part-0.csv"],
        "sales": ["sales/part-00000.parquet", "sales/part-00001.parquet"],
    }
    assert list(tables["more"][0].constants.items()) == [(("x",), "1"), (("y",), "a/b")]


def test_folders_that_begin_with_the_sign_are_no_values():
    assert table_of_file("=x/a.csv").table == "=x/a.csv"
