import csv
import gzip
import io
import os
import string
import time

import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from long_runs import examples
from read_tables import read_data as read
from read_tables import rows_of

from pexeso.errors import TableReadError
from pexeso.lake.containers.reader import read_table
from pexeso.lake.readers import delimited
from pexeso.lake.readers.table import MAX_COLUMNS, cells_to_column


def outcome(data, name):
    """The table and no message, or no table and the message of the one error that is allowed."""
    try:
        return read(data, name), None
    except TableReadError as error:
        return None, str(error)


def test_names_and_cells_stay_as_written_and_empty_cells_are_null():
    table = read('\ufeff city ,city,,#3\n Rome,"a\nb",,x\n')
    assert table.names == ["city", "city", "", "#3"]
    assert rows_of(table) == [[" Rome", "a\nb", None, "x"]]
    assert (table.encoding, table.delimiter, table.notes) == ("utf-8-sig", ",", [])


def test_a_header_alone_is_a_table_of_no_rows():
    table = read("a,b\n")
    assert (table.names, table.n_rows, [len(c) for c in table.columns]) == (["a", "b"], 0, [0, 0])


@pytest.mark.parametrize("data", ["", "\n\n\r\n", "\ufeff"])
def test_a_file_without_a_header_is_empty(data):
    with pytest.raises(TableReadError, match=r"^t\.csv is empty: it has no header row\.$"):
        read(data)


def test_ragged_rows_are_filled_or_cut_and_counted():
    table = read("a,b,c\n1,2,3\n1\n1,2,3,4\n\n4,5,6\n7,8,9\n")
    assert rows_of(table) == [
        ["1", "2", "3"],
        ["1", None, None],
        ["1", "2", "3"],
        ["4", "5", "6"],
        ["7", "8", "9"],
    ]
    assert table.notes == [
        "rows shorter than the header were filled with empty cells: 1",
        "rows longer than the header lost their surplus cells: 1",
    ]


def test_rows_that_are_mostly_longer_than_the_header_get_columns():
    table = read("a,b\n1,2,3\n4,5,6\n7,8\n")
    assert table.names == ["a", "b", ""]
    assert rows_of(table) == [["1", "2", "3"], ["4", "5", "6"], ["7", "8", None]]
    assert (
        table.notes[0]
        == "many rows are longer than the header: columns without a name were added: 1"
    )


@pytest.mark.parametrize("n_rows_before", [0, 3, 60_000])
def test_a_quotation_mark_that_never_closes_loses_no_row(n_rows_before):
    good = "".join(f'{i},"x,{i}"\n' for i in range(n_rows_before))
    table = read(f'id,name\n{good}1,"two\n2,three\n3,four\n')
    rows = rows_of(table)
    assert rows[:n_rows_before] == [[str(i), f"x,{i}"] for i in range(n_rows_before)]
    assert rows[n_rows_before:] == [["1", '"two'], ["2", "three"], ["3", "four"]]
    line = n_rows_before + 2
    assert table.notes == [
        f"a quotation mark in line {line:,} is never closed: it was read as a plain character"
    ]


def test_a_stray_quotation_mark_at_the_end_of_a_row_swallows_no_row():
    good = "".join(f'{i},"x, {i}",y\n' for i in range(20))
    table = read(f'id,name,note\n{good}20,"x, 20","\n21,"x, 21",y\n22,"x\nx, 22",y\n23,x,"\n')
    assert rows_of(table)[20:] == [
        ["20", "x, 20", '"'],
        ["21", "x, 21", "y"],
        ["22", "x\nx, 22", "y"],
        ["23", "x", '"'],
    ]
    assert table.notes == [
        "a quotation mark in line 22 is never closed: it was read as a plain character, "
        "as were those of 1 more lines"
    ]


@pytest.mark.parametrize(
    ("cells", "row"),
    [
        # As wide as other rows: the cell goes on, whatever stands after its closing mark.
        ('1,2,"l1\nl2 "q" text"', ["1", "2", 'l1\nl2 q" text"']),
        ('1,"x" 24,"l1\nl2, text"', ["1", "x 24", "l1\nl2, text"]),
    ],
)
def test_a_cell_of_two_lines_with_odd_quotation_marks_stays_one(cells, row):
    assert rows_of(read(f"a,b,c\n{cells}\n5,6,7\n8,9,10\n")) == [
        row,
        ["5", "6", "7"],
        ["8", "9", "10"],
    ]


def test_one_stray_quotation_mark_turns_quoting_off_nowhere_else():
    good = "".join(f'{i},"x, {i}, and more, {i * 7}",y\n' for i in range(30))
    table = read(f'id,"name",note\n"a,"b, c",d\n{good}')
    assert table.names == ["id", "name", "note"]
    assert rows_of(table)[1:3] == [["0", "x, 0, and more, 0", "y"], ["1", "x, 1, and more, 7", "y"]]


def test_a_quarter_of_longer_rows_keep_their_cells():
    table = read("a,b\n" + "1,2\n" * 6 + "1,2,3\n" * 2)
    assert table.names == ["a", "b", ""]
    assert rows_of(table)[-1] == ["1", "2", "3"]
    assert read("a,b\n" + "1,2\n" * 7 + "1,2,3\n" * 2).names == ["a", "b"]
    assert read("a\n" + "1 x\n" * 6 + "1, y\n" * 2).names == ["a"]


def test_windows_marks_taken_for_latin_1_are_mended():
    assert rows_of(read("a,b\nLand\x92s End,7 \x96 8 Feb\n")) == [
        ["Land\u2019s End", "7 \u2013 8 Feb"]
    ]
    # Of another kind: Mac Roman, and UTF-8 taken for Latin-1.
    for cell in ("Skarsg\x8crd", "Chlo\x91", "Wrightâ\x80\x99s"):
        assert rows_of(read(f"a,b\n{cell},it\x92s\n")) == [[cell, "it\x92s"]]


def test_a_last_line_without_newline_and_open_quote_is_kept():
    assert rows_of(read('a,b\n1,2\n3,"x')) == [["1", "2"], ["3", '"x']]


def test_cells_over_the_limit_are_empty_and_the_table_still_reads():
    table = read(f"a,b\n{'x' * 300_000},1\ny,2\n", max_cell_bytes=1000)
    assert rows_of(table) == [[None, "1"], ["y", "2"]]
    assert table.notes == ["cells of more than 1,000 bytes were read as empty: 1"]


def test_few_cells_become_the_same_column_as_many():
    cells = ["", "a", "é" * 9, "é" * 10, "\ud800", " "]
    few, n_few = cells_to_column(cells, 80)
    many, n_many = cells_to_column(cells * 100, 80)
    assert few.to_pylist() * 100 == many.to_pylist() == [None, *cells[1:4], "?", " "] * 100
    assert (n_few, n_many) == (0, 0)
    limited, n_limited = cells_to_column(cells, 18)
    assert limited.to_pylist() == [None, "a", "é" * 9, None, "?", " "]
    assert n_limited == 1


def test_a_cell_of_exactly_the_limit_stays():
    assert rows_of(read("a,b\nxxxx,1\nééé,2\n", max_cell_bytes=4)) == [["xxxx", "1"], [None, "2"]]


@pytest.mark.parametrize(
    "data", [b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", b"a,b\n1,\x00\n", bytes(range(1, 32)) * 9]
)
def test_binary_content_is_refused(data):
    with pytest.raises(TableReadError, match=r"^t\.csv is binary, not delimited text\.$"):
        read(data)


def test_too_many_columns_are_refused():
    with pytest.raises(TableReadError, match=r"has 16,385 columns; a table has at most 16,384\."):
        read("a," * MAX_COLUMNS + "a\n")


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("utf-16", "name;city\nJosé;São Paulo\n"),
        ("utf-16-le", "name;city\nJosé;São Paulo\n"),
        ("utf-16-be", "name;city\nJosé;São Paulo\n"),
        ("utf-16-le", "имя;город\nИван;Москва\nПётр;Казань\n"),  # noqa: RUF001
        ("utf-16-be", "号;市\n一;東京\n二;大阪\n"),
        ("utf-32", "name;city\nJosé;São Paulo\n"),
        ("cp1252", "name;city\nJosé;São Paulo\nZoë;Besançon\n"),
        ("cp1251", "имя;город\nИван;Москва\nПётр;Казань\n"),  # noqa: RUF001
        ("cp932", "名前;都市\n田中;東京\n鈴木;大阪\n佐藤;名古屋\n"),
        ("iso2022_jp", "名前;都市\n田中;東京\n鈴木;大阪\n佐藤;名古屋\n"),
        ("gb18030", "姓名;城市\n王伟;北京\n李娜;上海\n张敏;广州\n"),
    ],
)
def test_encodings_are_told_by_mark_or_guessed(encoding, text):
    table = read(text.encode(encoding))
    assert [table.names, *rows_of(table)] == [line.split(";") for line in text.splitlines()]
    assert (table.notes != []) == (encoding not in ("utf-16", "utf-32"))


@pytest.mark.parametrize("n", [2, 6])
def test_lines_of_files_that_were_put_together_have_the_encoding_of_their_own(n):
    towns = ["Łódź", "Köln", "Brno", "Málaga"], ["Orléans", "Nîmes", "Besançon", "Bogotá"][:n]
    table = read(
        b"town\n" + "\n".join(towns[0]).encode() + "\n".join(["", *towns[1]]).encode("cp1252")
    )
    assert table.columns[0].to_pylist() == [*towns[0], *towns[1]]
    assert table.notes == ["lines that are not UTF-8 were read as cp1252, a guess"]


def test_letters_that_were_cut_are_none_of_another_encoding():
    data = "town\nŁódź\nKöln\nMálaga\n".encode() + b"Caf\xc3\nBesan\xc3\n"
    assert read(data).columns[0].to_pylist()[3:] == ["Caf\ufffd", "Besan\ufffd"]


def test_a_few_wrong_bytes_do_not_turn_utf8_into_something_else():
    table = read("ä,ö\nü,ß\né,à\n".encode() + b"x,\xff\n")
    assert rows_of(table) == [["ü", "ß"], ["é", "à"], ["x", "\ufffd"]]
    assert table.notes == ["not all valid UTF-8: wrong bytes became the replacement character"]


def test_wrong_bytes_behind_the_sample_are_found():
    table = read(b"a,b\n" + b"x,y\n" * 50_000 + "Jos\xe9,M\xfcnchen\n".encode("latin-1"))
    assert rows_of(table)[-1] == ["José", "München"]


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.CSV.gz", "t"])
def test_the_delimiter_is_told_by_the_text(delimiter, name):
    data = "\n".join(
        delimiter.join(row)
        for row in [("a", "b", "c"), ("x, y" if delimiter != "," else "x", "1", "2")]
    )
    table = read(data, name)
    assert (table.delimiter, len(table.names)) == (delimiter, 3)


def test_a_column_of_its_own_has_no_delimiter():
    table = read("name\nAnn Lee\nBob: the 2nd\n")
    assert (table.names, table.n_rows) == (["name"], 2)


def test_decimal_commas_do_not_hide_semicolons():
    assert read("a;b\n1,5;2,5\n3,5;4,5\n").names == ["a", "b"]


def test_odd_dialects_go_to_clevercsv():
    table = read("a^b^c\n1^2^3\n4^5^6\n7^8\n")
    assert table.delimiter == "^"
    quoted = read("'a, x','b'\n'c, y','d'\n'e','f'\n'g','h'\n")
    assert quoted.names == ["a, x", "b"]


def test_quotation_marks_beyond_what_clevercsv_reads_are_seen():
    uneven = "name,town,age\n" + "Ann,Rome,31\n" * 900 + "Bob,Oslo\n" + "Eve,Bern,4,5\n" * 3
    later = '"Lee, Jr.",Oslo,31\n'
    for text in (uneven + later, "name,town,age\nAnn,Rome\n" + uneven * 8 + later):
        table = read(text)
        assert rows_of(table)[-1] == ["Lee, Jr.", "Oslo", "31"]
    wrapped = uneven.replace(",", "\t") + '"Bob\tOslo\t31"\n' * 40
    assert rows_of(read(wrapped))[-1] == ['"Bob', "Oslo", '31"']


def test_gzip_is_known_by_its_content(write):
    packed = gzip.compress(b"a,b\n1,2\n")
    for name in ("t.csv.gz", "t.csv"):
        assert rows_of(read_table(write(name, packed))) == [["1", "2"]]
    assert rows_of(read_table(write("plain.csv.gz", "a,b\n3,4\n"))) == [["3", "4"]]


def test_damaged_gzip_says_so(write):
    packed = gzip.compress(os.urandom(5000))
    with pytest.raises(
        TableReadError, match="is a gzip file that was cut short; write or download it again"
    ):
        read_table(write("t.csv.gz", packed[:-100]))
    with pytest.raises(TableReadError, match="is a gzip file that is damaged"):
        read_table(write("u.csv.gz", packed[:50] + b"\x00" * 50 + packed[100:]))


@pytest.mark.parametrize("before", [b"", b"note", b"\x28\xb5\x2f\xfd" * 3])
def test_zstd_behind_frames_that_are_skipped_is_known(write, before):
    packed = pa.compress(b"a,b\n1,2\n", codec="zstd", asbytes=True)
    frames = [bytes([number]) + b"\x2a\x4d\x18" for number in (0x50, 0x5F)]
    skipped = b"".join(frame + len(before).to_bytes(4, "little") + before for frame in frames)
    for data in (skipped + packed, skipped + packed + skipped):
        assert rows_of(read_table(write("t.csv.zst", data))) == [["1", "2"]]
    with pytest.raises(TableReadError, match="binary, not delimited text"):
        read_table(write("u.csv.zst", skipped + b"\x04\x22\x4d\x18" + bytes(100)))  # lz4


def test_a_gzip_bomb_stops_at_the_limit(write):
    path = write("bomb.csv.gz", gzip.compress(b"a,b\n" + b"1,2\n" * 99_999))
    with pytest.raises(
        TableReadError, match=r"holds more than 100,000 bytes, the most that is read \(max_bytes\)"
    ):
        read_table(path, max_bytes=100_000)
    assert read_table(path).n_rows == 99_999


def test_what_is_no_regular_file_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    for name in ("pipe.csv", "."):
        with pytest.raises(TableReadError, match="is not a regular file; a table is one file"):
            read_table(tmp_path / name)
    with pytest.raises(
        TableReadError, match=r"gone\.csv cannot be read: No such file or directory\."
    ):
        read_table(tmp_path / "gone.csv")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_says_so(write):
    path = write("t.csv", "a\n1\n")
    path.chmod(0)
    with pytest.raises(TableReadError, match=r"cannot be read: Permission denied\."):
        read_table(path)


CELLS = st.text(
    st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufeff")
    | st.sampled_from("\n,;|\"' "),
    max_size=12,
)


@settings(max_examples=examples(80))
@given(
    width=st.integers(2, 5),
    data=st.data(),
    delimiter=st.sampled_from(",;\t|"),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-32"]),
    newline=st.sampled_from(["\n", "\r\n"]),
)
def test_what_the_csv_module_writes_is_read_back(width, data, delimiter, encoding, newline):
    rows = data.draw(
        st.lists(st.lists(CELLS, min_size=width, max_size=width), min_size=1, max_size=6)
    )
    names = list(string.ascii_lowercase[:width])
    written = io.StringIO()
    csv.writer(
        written, delimiter=delimiter, quoting=csv.QUOTE_ALL, lineterminator=newline
    ).writerows([names, *rows])
    table = read(
        written.getvalue().encode(encoding), {"\t": "t.tsv", "|": "t.psv"}.get(delimiter, "t.csv")
    )
    assume(
        table.delimiter == delimiter
    )  # a rectangular table under two delimiters at once has two true readings
    assert table.names == names
    assert rows_of(table) == [[cell or None for cell in row] for row in rows]


@settings(max_examples=examples(60))
@given(
    words=st.lists(
        st.lists(st.text("abc é", min_size=1, max_size=9), min_size=3, max_size=3),
        min_size=3,
        max_size=9,
    )
)
@pytest.mark.parametrize("delimiter", ",;\t|")
def test_plain_tables_are_read_under_every_delimiter(delimiter, words):
    data = "\n".join(delimiter.join(row) for row in [["x", "y", "z"], *words])
    table = read(data)
    assert table.delimiter == delimiter
    assert rows_of(table) == words


@settings(max_examples=examples(150))
@given(
    data=st.binary(max_size=400),
    name=st.sampled_from(["t.csv", "t.tsv", "t.parquet", "t.jsonl", "t", "t.csv.gz"]),
)
def test_random_bytes_give_a_table_or_the_one_error(data, name):
    table, message = outcome(data, name)
    if table is None:
        assert message.startswith(f"{name} ")
        assert message.endswith(".")
    else:
        assert len({len(column) for column in table.columns}) <= 1
        assert len(table.columns) == len(table.names)


@settings(max_examples=examples(40))
@given(data=st.text(st.sampled_from("ab,;\"\n\t|\\'"), max_size=300))
def test_odd_text_never_fails_and_loses_no_line_of_letters(data):
    table, message = outcome(data, "t.csv")
    if table is None:
        assert message == "t.csv is empty: it has no header row."
        return
    cells = [*table.names, *(cell for row in rows_of(table) for cell in row if cell)]
    n_letters = sum(c in "ab" for cell in cells for c in cell)
    if not any("lost" in note for note in table.notes):
        assert n_letters == sum(c in "ab" for c in data)


def test_chunks_do_not_change_a_table(monkeypatch):
    data = 'a,b,c\n"x\ny",2,3\n\n4,5\n' + "6,7,8,9\n6,7,8\n" * 5 + '"q",r,s\n'
    whole = read(data)
    for n_cells in (1, 3, 7):
        monkeypatch.setattr(delimited, "_CELLS_A_CHUNK", n_cells)
        table = read(data)
        assert rows_of(table) == rows_of(whole)
        assert sorted(table.notes) == sorted(whole.notes)


def test_a_pathological_text_takes_bounded_time():
    start = time.process_time()
    read("".join("a,b;c|d"[i % 7] + "\n" * (i % 11 == 0) for i in range(200_000)))
    read("x" * 3_000_000 + "\n" + "\xe9" * 10)
    assert time.process_time() - start < 10


@pytest.mark.lakes
@pytest.mark.parametrize(
    ("name", "n_columns", "n_rows"),
    [
        pytest.param("wikitables", 13_445, 57_845, marks=pytest.mark.long),
        ("fivethirtyeight", 8_615, 204_286),
        ("pudding", 1_089, 81_586),
    ],
)
def test_real_lakes_have_the_columns_and_rows_they_are_said_to_have(
    lake_folder, name, n_columns, n_rows
):
    paths, tables = sorted(lake_folder(name).rglob("*.csv")), []
    for path in paths:
        if path.read_bytes().startswith(b"version https://git-lfs.github.com"):
            with pytest.raises(TableReadError, match="holds a pointer of Git LFS, not delimited"):
                read_table(path)
        else:
            tables.append(read_table(path))
    assert sum(len(table.names) for table in tables) == n_columns
    assert sum(table.n_rows for table in tables) == n_rows
    assert {table.delimiter for table in tables} == {","}
