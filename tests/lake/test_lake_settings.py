"""Settings of a lake: what `lake.toml` says about files, and what is wrong with it."""

import pickle
import time

import pytest
from read_tables import records_of

from pexeso.errors import InputError, LakeError
from pexeso.lake.containers.reader import TablesInTurn, read_table
from pexeso.lake.files import find_tables
from pexeso.lake.readers.options import FileSettings, LakeSettings, ReadingOptions
from pexeso.lake.rows import read_rows
from pexeso.store.io.location import locate

_EXPORTS = """
[[files]]
pattern = "exports/*.csv"
delimiter = "#"
encoding = "latin-1"
header = 2
skip-rows = 3
"""


@pytest.fixture
def load(write, tmp_path):
    """A function that returns the settings of a lake with this text in its file."""

    def load_settings(text):
        write("lake.toml", text)
        return LakeSettings.load(tmp_path)

    return load_settings


def _of(*patterns):
    return LakeSettings(
        tuple(FileSettings(pattern, ReadingOptions(header=0)) for pattern in patterns)
    )


def test_an_entry_is_read_with_all_its_keys(load):
    settings = load(_EXPORTS)
    assert settings.options_of("exports/a.csv") == ReadingOptions("#", "iso8859-1", 2, 3)
    assert settings.options_of("a.csv") == ReadingOptions()


def test_a_lake_without_the_file_has_no_settings(tmp_path):
    assert LakeSettings.load(tmp_path) == LakeSettings()
    assert LakeSettings.load(tmp_path / "absent") == LakeSettings()


def test_an_empty_file_is_no_settings(load):
    assert load("# nothing yet\n") == LakeSettings()


def test_settings_of_a_lake_elsewhere():
    lake = locate("memory://lake-of-settings")
    assert LakeSettings.load(lake) == LakeSettings()
    (lake / "lake.toml").write(_EXPORTS.encode())
    assert LakeSettings.load(lake).options_of("exports/a.csv").delimiter == "#"


@pytest.mark.parametrize(
    ("pattern", "matching", "others"),
    [
        ("*.csv", ["a.csv", ".csv"], ["b/a.csv", "a.tsv", "a.csv.gz", "a.CSV"]),
        ("**/*.csv", ["a.csv", "b/a.csv", "c/b/a.csv"], ["a.tsv", "b/a.csv/c"]),
        ("exports/*", ["exports/a"], ["exports/b/a", "a", "exports"]),
        ("exports/**", ["exports/a", "exports/b/a"], ["exports", "export/a"]),
        ("a/**/z.csv", ["a/z.csv", "a/b/c/z.csv"], ["z.csv", "b/a/z.csv"]),
        ("**/b/**/*.csv", ["b/a.csv", "x/b/y/z/a.csv"], ["a.csv", "x/bb/a.csv"]),
        ("20??/s*-*.csv", ["2019/sales-1.csv", "2020/s-.csv"], ["201/s-1.csv", "2019/s1.csv"]),
        ("a**b.csv", ["ab.csv", "axxb.csv"], ["a/b.csv"]),
        ("a[1].csv", ["a[1].csv"], ["a1.csv"]),
        ("**", ["a.csv", "b/a.csv"], []),
        ("x.zip/in*.csv", ["x.zip/inner.csv"], ["x.zip"]),
    ],
)
def test_patterns(pattern, matching, others):
    settings = _of(pattern)
    assert [name for name in matching + others if settings.options_of(name)] == matching


def test_a_pattern_of_many_stars_takes_no_time():
    settings = _of("*a" * 60 + "b", "/".join(["**"] * 60) + "/z")
    start = time.perf_counter()
    assert not settings.options_of("a" * 200)
    assert not settings.options_of("/".join(["a"] * 120))
    assert time.perf_counter() - start < 1


def test_later_entries_win_key_by_key(load):
    settings = load(
        """
        files = [
            {pattern = "**", delimiter = ";", header = 1},
            {pattern = "old/*", header = 0, encoding = "cp1250"},
        ]
        """
    )
    assert settings.options_of("old/a.csv") == ReadingOptions(";", "cp1250", 0)
    assert settings.options_of("new/a.csv") == ReadingOptions(";", None, 1)


def test_the_digest_is_that_of_the_options(load):
    settings = load(_EXPORTS)
    assert settings.digest_of("a.csv") is None
    assert settings.digest_of("exports/a.csv") == (
        '{"delimiter":"#","encoding":"iso8859-1","header":2,"skip_rows":3}'
    )
    same = load('[[files]]\npattern = "**"\nheader = 2\nskip-rows = 3\n' + _EXPORTS)
    assert same.digest_of("exports/a.csv") == settings.digest_of("exports/a.csv")
    assert load(_EXPORTS.replace("2", "1")).digest_of("exports/a.csv") != settings.digest_of(
        "exports/a.csv"
    )


def test_settings_can_be_pickled(load):
    settings = load(_EXPORTS)
    assert settings.options_of("exports/a.csv")
    assert pickle.loads(pickle.dumps(settings)) == settings


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("files = [", "is no TOML"),
        (b"# caf\xe9\n", "is no TOML"),
        ("[[file]]\n", "has the key 'file'; the only one allowed is 'files'"),
        ("files = 3\n", "'files' must be a list of entries"),
        ("files = [1]\n", "'files' must be a list of entries"),
        (_EXPORTS + "quote = 'x'\n", "entry 1 of 'files' has the key 'quote'; allowed are"),
        (_EXPORTS + "[[files]]\nheader = 1\n", "entry 2 of 'files': 'pattern' must be"),
        ("[[files]]\npattern = '/a.csv'\nheader = 1\n", "Got '/a.csv'"),
        ("[[files]]\npattern = '../a.csv'\nheader = 1\n", "Got '../a.csv'"),
        ("[[files]]\npattern = 'a\\b.csv'\nheader = 1\n", "Got 'a"),
        ("[[files]]\npattern = 'a.csv'\n", "('a.csv') sets nothing"),
        ("[[files]]\npattern = 'a'\ndelimiter = ''\n", "delimiter must be one character"),
        ("[[files]]\npattern = 'a'\nencoding = 'utf-99'\n", "Got 'utf-99'"),
        ("[[files]]\npattern = 'a'\nheader = 21\n", "from 0 to 20. Got 21"),
        ("[[files]]\npattern = 'a'\nheader = true\n", "Got True"),
        ("[[files]]\npattern = 'a'\nskip-rows = -1\n", "skip-rows must be"),
        ("[[files]]\npattern = 'a'\nskip-rows = 1.5\n", "Got 1.5"),
        ("#" * ((1 << 20) + 1), "holds more than 1,048,576 bytes"),
        ("files = [" + "{pattern = 'a', header = 1}," * 1001 + "]", "at most 1,000"),
    ],
)
def test_what_is_wrong_is_said_with_the_file(load, text, said):
    with pytest.raises(LakeError) as caught:
        load(text)
    assert said in str(caught.value)
    assert "lake.toml'" in str(caught.value)


def test_a_folder_of_that_name_is_refused(tmp_path):
    (tmp_path / "lake.toml").mkdir()
    with pytest.raises(LakeError, match="is not a regular file"):
        LakeSettings.load(tmp_path)


@pytest.mark.parametrize("given", ["tab", "\\t", "\t"])
def test_names_of_delimiters(given):
    assert ReadingOptions(delimiter=given).delimiter == "\t"


@pytest.mark.parametrize(
    "given",
    [
        {"delimiter": "ab"},
        {"delimiter": "a"},
        {"delimiter": '"'},
        {"delimiter": "\n"},
        {"delimiter": 7},
        {"encoding": "base64"},
        {"encoding": "idna"},
        {"encoding": "no\0name"},
        {"encoding": 8},
        {"header": "1"},
        {"skip_rows": 1_000_001},
    ],
)
def test_options_that_are_refused(given):
    with pytest.raises(InputError, match=f"{next(iter(given))} must be"):
        ReadingOptions(**given)


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
    records = records_of([file])
    assert (records[0]["delimiter"], records[0]["n_rows"]) == ("#", 1)
    assert [row["name"] for row in records if row["record"] == "column"] == ["city", "n,o"]
    assert read_rows(tmp_path, "old/a.csv").to_pydict() == {"city": ["Málaga"], "n,o": ["1,2"]}
    assert records[0]["fingerprint"] == TablesInTurn().fingerprint(file.path, None, file.reading)


def test_a_file_counts_as_changed_where_it_is_to_be_read_in_another_way(tmp_path):
    with_settings = find_tables(lake_in(tmp_path))[0][1]
    (tmp_path / "lake.toml").unlink()
    without = find_tables(tmp_path)[0][1]
    assert (without.version, without.reading) == (None, None)
    assert TablesInTurn().fingerprint(without.path) != TablesInTurn().fingerprint(
        without.path, None, with_settings.reading
    )


def test_what_an_entry_names_by_its_end_is_text(write, tmp_path):
    for name in ("a.dat", "b.dat", "list", "c.pdf", "sub/a.dat", "sub/d.DAT"):
        write(name, "town,n\nOslo,1\nBern,2\n")
    tables = [("*.dat", ["a.dat", "b.dat"]), ("**/a.dat", ["a.dat", "sub/a.dat"])]
    tables += [("list", ["list"]), ("**", []), ("sub/*", []), ("**/*.csv", [])]
    for place in (tmp_path, locate(f"file://{tmp_path}")):
        for pattern, names in tables:
            write("lake.toml", f'[[files]]\npattern = "{pattern}"\nheader = 1\n')
            assert [file.table for file in find_tables(place)[0]] == names
        write("lake.toml", '[[files]]\npattern = "*.dat"\nas-of = "3"\n')
        assert find_tables(place)[0] == []


def test_a_list_of_words_is_a_table_where_it_is_named_and_none_in_a_lake(tmp_path):
    (tmp_path / "words.txt").write_text("city\nOslo\nRome\nLima\n")
    assert read_table(tmp_path / "words.txt").columns[0].to_pylist() == ["Oslo", "Rome", "Lima"]
    record, *_ = records_of(find_tables(tmp_path)[0])
    assert "not delimited text" in record["reason"]
