"""Where a table begins and ends in a delimited text: titles, comments, headers, notes."""

import pytest
from read_tables import read_delimited as read
from read_tables import rows_of

from pexeso.errors import TableReadError

BODY = "city,people,area\nOslo,709037,454\nBern,134591,52\nGraz,291072,128\nLima,9751717,2672\n"
ROWS = [line.split(",") for line in BODY.splitlines()]


@pytest.mark.parametrize(
    ("above", "n_lines"),
    [
        ("# by hand\n# do not edit, please\n", 2),
        ("// by hand\n\n", 2),
        ("% by hand\n\n% version 2\n\n", 4),
        ("; by hand\n", 1),
        ("Figures of the year\n", 1),
        ("Figures of the year\n\nOffice of Statistics, Oslo\n\n", 4),
        ("Figures of the year,,\n,,\n", 2),
        ("Created,2021-03-04,\n,,\n", 2),
        (",,\n", 1),
    ],
)
def test_what_stands_above_the_header_is_left_out(above, n_lines):
    table = read(above + BODY)
    assert [table.names, *rows_of(table)] == ROWS
    assert table.notes == [f"lines above the header were left out: {n_lines}"]


@pytest.mark.parametrize(
    ("below", "said"),
    [
        ("\nSource: Office of Statistics\n", "1 (Source: Office of Statistics)"),
        ("* preliminary\n", "1 (* preliminary)"),
        ("\u203b 速報値\n資料\uff1a総務省\n", "2 (\u203b 速報値)"),
        ("Stand: 1.1.2020\n", "1 (Stand: 1.1.2020)"),
        ("\n\nNotes:\n(1) Rounded, to tens.\n(2) Final.\n", "3 (Notes:)"),
        (",,\nSource: Office of Statistics,,\n", "1 (Source: Office of Statistics)"),
        ("Figures of Lima are those of 2017.\n", "1 (Figures of Lima are those of 2017.)"),
    ],
)
def test_what_stands_below_the_table_is_left_out(below, said):
    table = read(BODY + below)
    assert [table.names, *rows_of(table)] == ROWS
    assert table.notes == [f"lines below the table were left out: {said}"]


@pytest.mark.parametrize("last", ["Rome", "Total,13886417", "Den Haag,,", ",,"])
def test_short_rows_at_the_end_that_are_no_notes_are_kept(last):
    table = read(BODY + last + "\n")
    assert rows_of(table)[:4] == ROWS[1:]
    assert rows_of(table)[4] == [*[cell or None for cell in last.split(",")], None, None][:3]


FULL_ROWS = "".join(f"{{sign}}{n},spring\n" for n in range(12))


@pytest.mark.parametrize(
    ("sign", "last"),
    [
        ("#tag", [f"#free{n}," for n in range(20)]),
        ("#tag", ["", *(f"#free{n}," for n in range(60))]),
        ("#tag", ["#free1", "#free2"]),
        ("#", ["", "#13,autumn", "#14,"]),
        ("host", ["*.example.com,", "example.org,", "example.net,"]),
        ("*.", ["*.example.com", "example.org"]),
        ("%", ["%d,", "%s,"]),
        ("Film ", ["Contact,", "Fargo,", "Key (1996),"]),
        ("Film ", ["Notes on a Scandal,", "Fargo,"]),
        ("Unit ", ["--,", "Fargo,"]),
    ],
)
def test_names_that_begin_like_notes_are_rows(sign, last):
    """A cell alone says little where the line has all its delimiters, or others begin alike."""
    table = read("name,season\n" + FULL_ROWS.format(sign=sign) + "\n".join(last) + "\n")
    names = [line.partition(",")[0] for line in last if line]
    assert [row[0] for row in rows_of(table)[12:]] == names
    assert not any("below the table" in note for note in table.notes)


@pytest.mark.parametrize(
    ("sign", "below"),
    [
        ("city", "Source: Office of Statistics,\n"),
        ("city", "Last updated on 3 March,\nby hand,\n"),
        ("city", "* Those of the north are estimates.,\n"),
        ("city", "* preliminary\n"),
        ("city", ",\n* preliminary,\n"),
        ("city", "\nContact\nthe office\n"),
        ("*", "* preliminary\n"),
        ("Source: ", "Source: Office of Statistics\n"),
        ("#", "\nNotes:\n# by hand\n"),
    ],
)
def test_notes_are_left_out_of_tables_whatever_names_begin_with(sign, below):
    table = read("name,season\n" + FULL_ROWS.format(sign=sign) + below)
    assert table.n_rows == 12
    assert "below the table" in table.notes[0]


def test_a_line_that_names_the_separator_is_taken_at_its_word():
    for line in ("sep=;\n", '"sep=;"\r\n', "\ufeffSEP=;\n"):
        table = read(line + "a;b\n1,5;2\n3,5;4\n")
        assert (table.delimiter, table.names, table.n_rows) == (";", ["a", "b"], 2)
    assert "names the separator ';'" in table.notes[0]


@pytest.mark.parametrize("delimiter", ["#", "^", "~", "\t", ";", "|"])
def test_separators(delimiter):
    table = read(BODY.replace(",", delimiter))
    assert [table.names, *rows_of(table)] == ROWS
    assert table.notes == []


@pytest.mark.parametrize(
    "text",
    ["time\n12:30:45\n12:30:46\n12:30:47\n", "name\nAnn Lee\nBo Nils\n", "no\nItem #1\nItem #2\n"],
)
def test_odd_separators_are_not_seen_in_values(text):
    assert len(read(text).names) == 1


def test_colons_between_numbers_are_separators_below_names():
    body = "Oslo:402:57:12\nBern:41:99:10\nGraz:6:51:70\n"
    assert read("city:a:b:c\n" + body).names == ["city", "a", "b", "c"]
    assert len(read(body).names) == 1


def test_a_title_in_a_middle_column_below_blank_rows_is_left_out():
    table = read(",,\n,,\n,Figures of all cities,\n" + BODY)
    assert [table.names, *rows_of(table)] == ROWS
    groups = read(",,\n,Cost,\nCity,new,old\n" + "Oslo,5,60\nBern,50,61\n" * 3)
    assert "Cost new" in groups.names


def test_a_first_row_of_data_is_no_header():
    table = read("2008-02-28,1:00,12.5\n2008-02-28,2:00,12.1\n2008-02-28,3:00,11.0\n")
    assert table.names == ["", "", ""]
    assert table.n_rows == 3
    assert table.notes == ["there is no header: the first row is data, and columns have no names"]
    beside_words = read("Ann,Oslo,1\nBo,Bern,87\nCy,Graz,16\nDi,Lima,36\n")
    assert (beside_words.names, beside_words.n_rows) == (["", "", ""], 4)
    for rows in (
        "12\n15\n9\n22\n",
        "AB-12\nAB-13\nCX-40\nCX-41\n",
        "ann@x.org,Ann\nbo@x.org,Bo\ncy@y.org,Cy\ndi@y.org,Di\n",
        "http://a.org/x,Ann\nhttp://b.org/,Bo\nhttps://c.org,Cy\nhttp://d.org,Di\n",
    ):
        assert read(rows).n_rows == 4
    assert read("2019\n15\n9\n22\n").n_rows == read("0\n15\n9\n22\n").n_rows == 3
    adults = (
        "?,gov,11th,no\n38,own,HS,no\n53,own,11th,yes\n28,gov,BA,no\n37,own,MA,no\n4,gov,MA,no\n"
    )
    assert read(adults).n_rows == 6
    words = "Oslo,Norway\nBergen,Norway\nLyon,France\nOslo,Kenya\nNice,France\nTurin,Italy\n"
    assert read(words).n_rows == 6


@pytest.mark.parametrize(
    "header",
    [
        *("country,2010,2011,2012", "country,0,b,c", ",0,1,2", "country,1/22/20,1/23/20,1/24/20"),
        *("country,a,b,c", "country,7,b,c"),
    ],
)
def test_numbers_may_be_names(header):
    table = read(header + "\nOslo,5,60,7\nBern,50,61,72\nGraz,51,6,70\nLima,52,65,71\n")
    assert table.names == header.split(",")
    assert (table.n_rows, table.notes) == (4, [])


def test_a_header_of_two_rows_is_joined():
    body = "Norway,5,60,7,8\nChile,50,61,72,8\nKenya,51,6,70,9\nJapan,52,65,71,9\n"
    names = ["Country", "Sales 2019", "Sales 2020", "Costs 2019", "Costs 2020"]
    for header in (
        ",Sales,,Costs,\nCountry,2019,2020,2019,2020\n",
        "Country,Sales,,Costs,\n,2019,2020,2019,2020\n",
        "Country,Sales,Sales,Costs,Costs\n,2019,2020,2019,2020\n",
    ):
        table = read(header + body)
        assert table.names == names
        assert table.notes == ["the header has 2 rows: their names were joined"]
        assert rows_of(table) == [line.split(",") for line in body.splitlines()]
    units = "Country,a,b,c,d\n,kg,kg,m2,m2\n"
    for table in (read(units + body), read(units + body + units + body)):
        assert table.names == ["Country", "a kg", "b kg", "c m2", "d m2"]
        assert table.n_rows in (4, 8)
    years = read("Country,2019,,2020,\n,Men,Women,Men,Women\n" + body)
    assert years.names == ["Country", "2019 Men", "2019 Women", "2020 Men", "2020 Women"]
    three = "Country,Births,,Deaths,\n,2019,2020,2019,2020\n,No.,No.,No.,No.\n"
    assert read(three + body + body).names[1:3] == ["Births 2019 No.", "Births 2020 No."]


def test_a_title_is_above_a_header_that_is_repeated():
    table = read(
        "Page 1,,\nid,town,n\n1,Oslo,4\n2,Rome,5\nPage 2,,\nid,town,n\n3,Bern,6\n4,Ulm,7\n"
    )
    assert (table.names, table.n_rows) == (["id", "town", "n"], 5)


@pytest.mark.parametrize(
    ("text", "n_lines"),
    [
        ("id,town\n--,----\n1,Oslo\n2,Rome\n3,Bern\n\n(3 rows affected)\n", 1),
        ("| id | town |\n|---|:---|\n| 1 | Oslo |\n| 2 | Rome |\n| 3 | Bern |\n", 1),
        ("id;town\n1;Oslo\n2;Rome\n3;Bern\n__________\nQuelle: Amt\n", 1),
        (
            "+----+------+\n| id | town |\n+----+------+\n| 1  | Oslo |\n| 2  | Rome |\n"
            "| 3  | Bern |\n+----+------+\n3 rows in set (0.00 sec)\n",
            2,
        ),
    ],
)
def test_lines_that_are_drawn_are_no_rows(text, n_lines):
    table = read(text)
    names = [position for position, name in enumerate(table.names) if name]
    assert [table.names[position] for position in names] == ["id", "town"]
    assert [[row[at].strip() for at in names] for row in rows_of(table)] == [
        ["1", "Oslo"],
        ["2", "Rome"],
        ["3", "Bern"],
    ]
    assert f"lines of dashes were left out: {n_lines}" in table.notes
    assert read("id,a,b,c\n1,-,-,-\n-,-,-,-\n3,x,y,z\n").n_rows == 3


def test_quotation_marks_around_whole_lines_are_left_out():
    text = '"id,""town"",n"\n"1,""Oslo, N"",3"\n"2,""Rome"",4"\n"3,""Bern"",5"\n'
    table = read(text)
    assert [table.names, *rows_of(table)] == [
        ["id", "town", "n"],
        ["1", "Oslo, N", "3"],
        ["2", "Rome", "4"],
        ["3", "Bern", "5"],
    ]
    assert table.notes == ["quotation marks around whole lines were left out"]
    names = '"Doe, Ann, Dr"\n"Roe, Bo, Dr"\n"Poe, Cy, Dr"\n'
    for kept in (f'"Last, First, Title"\n{names}', f'"name"\n{names}', f"name\n{names}"):
        assert len(read(kept).names) == 1


@pytest.mark.parametrize("delimiter", ["::", "||"])
def test_a_delimiter_may_be_doubled(delimiter):
    text = "1::Heat: A Film::Crime\n2::Babe::Comedy, Drama\n3::Jumanji::Adventure\n"
    table = read(text.replace("::", delimiter))
    assert rows_of(table) == [line.split("::") for line in text.splitlines()]
    assert len(read("a|b|c|d\n1||x|\n2||y|\n3||z|\n").names) == 4


@pytest.mark.parametrize(
    "first",
    ["Norway,n/a,n/a", "Norway,-,-", "Norway,**,**", "Norway,1–2,3–4", "Norway,18 (new),2 (old)"],  # noqa: RUF001
)
def test_odd_first_rows_are_data(first):
    table = read(f"Country,a,b\n{first}\nChile,50,61\nKenya,51,6\nJapan,52,65\n")
    assert table.names == ["Country", "a", "b"]
    assert table.n_rows == 4


@pytest.mark.parametrize(
    "years", ["2556,2555,2554", "1397,1398,1399", "2550,2553,2556", "1390,1395,1398"]
)
def test_years_of_other_eras_are_names(years):
    table = read(f"Province,{years}\nTrat,5,8,7\nLoei,6,5,5\nNan,9,4,6\n")
    assert (table.names, table.n_rows) == (["Province", *years.split(",")], 3)
    assert read("Province,2560,2561\nTrat,5,8\nLoei,6,5\nNan,9,4\n").n_rows == 3
    assert read("Trat,2556,2559,2554\nLoei,6,5,5\nNan,9,4,6\nTak,9,4,6\n").n_rows == 4
    assert read("Trat,2556,2559\nLoei,6,5\nNan,9,4\nTak,9,4\n").n_rows == 4
    assert read("Ann,1001,1002\nBob,1003,1004\nCy,1005,1006\n").n_rows == 3
    assert read("Ann,1000,1010,1020\nBob,1001,1011,1021\nCy,1002,1012,1022\n").n_rows == 3


def test_a_year_beside_a_date_like_those_below_is_no_name():
    assert read("2015,2013-09-11,no\n2019,2024-01-26,no\n1980,2012-08-30,yes\n").n_rows == 3
    table = read("2015,day,no\n2019,2024-01-26,no\n1980,2012-08-30,yes\n")
    assert table.names == ["2015", "day", "no"]


def test_codes_of_another_form_name_no_columns():
    rows = ["490.45;15:38;-46.2,-4.3", "192.26;12:29;-84.5,13.7", "198.09;17:56;-32.8,124.2"]
    assert read("\n".join(rows) + "\n").n_rows == 3


def test_tabs_that_cut_more_cells_than_commas_are_the_delimiter():
    table = read("Oslo\t59.91,10.75\t1\nBern\t46.95,7.45\t2\nLima\t-12.05,-77.04\t3\n")
    assert (table.delimiter, table.n_rows) == ("\t", 3)


def test_quotation_marks_and_escapes():
    single = read("'name','said'\n'Ann','a, b'\n'Bo','it''s'\n'Cy','c'\n")
    assert rows_of(single) == [["Ann", "a, b"], ["Bo", "it's"], ["Cy", "c"]]
    escaped = read('"name","said"\n"Ann","a \\"b\\", c"\n"Bo","\\"d\\""\n')
    assert rows_of(escaped) == [["Ann", 'a "b", c'], ["Bo", '"d"']]
    spaced = read('name, said\nAnn, "a, b"\nBo, "c"\nCy, "d, e"\n')
    assert rows_of(spaced) == [["Ann", "a, b"], ["Bo", "c"], ["Cy", "d, e"]]
    inches = read('name,size\nA,"12"" wide, ""new"""\nB,7\n')
    assert rows_of(inches) == [["A", '12" wide, "new"'], ["B", "7"]]


def test_decimal_commas_without_a_header():
    table = read("1,5;2,5\n3,5;4,5\n5,5;6,25\n")
    assert (table.delimiter, table.n_rows) == (";", 3)


def test_mixed_line_ends():
    table = read("a,b\r\n1,2\r3,4\n5,6\r\n")
    assert rows_of(table) == [["1", "2"], ["3", "4"], ["5", "6"]]


def test_options_are_taken_in_place_of_what_is_found():
    assert read("a:b\n1:2\n", delimiter=":").names == ["a", "b"]
    assert read("naïve\n1\n".encode("cp1252"), encoding="cp1252").notes == []
    assert read("a,b\nc,d\n1,2\n", header=2).names == ["a c", "b d"]
    none = read(BODY, header=0)
    assert (none.names, none.n_rows, none.notes) == (["", "", ""], 5, [])
    table = read("x,y\nz,u\n\nw,v\n" + BODY, skip_rows=4)
    assert [table.names, *rows_of(table)] == ROWS
    assert table.notes == []
    assert read("2010,2011\n1,2\n3,4\n5,6\n", header=1).names == ["2010", "2011"]
    assert read("# a,b\n1,2\n3,4\n", skip_rows=0).names == ["# a", "b"]


def test_more_lines_to_leave_out_than_there_are():
    with pytest.raises(TableReadError, match="is empty: it has no header row"):
        read(BODY, skip_rows=10)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "It was a dark night, and rain fell.\nNo one was out there.\n"
            "Then, in the end, a shot rang.\n",
            "prose",
        ),
        ("city      people\nOslo      709037\nBern      134591\nGraz      291072\n", "fixed-width"),
        ("Oslo\nBern\nGraz\n", "text without columns"),
    ],
)
def test_texts_that_are_no_tables_are_refused_by_their_extension(text, said):
    with pytest.raises(TableReadError, match=rf"^t\.txt is {said}.*not delimited text\.$"):
        read(text, ".txt")
    assert read(text, ".txt", delimiter=",").n_rows > 0


def test_tables_are_read_whatever_their_extension():
    table = read("Figures of the year\n\n" + BODY.replace(",", "\t"), ".txt")
    assert [table.names, *rows_of(table)] == ROWS


TEMPERATURES = "".join(f"Ort {n};{n},5;1.2{n:02},{n} €\n" for n in range(12))


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (f"Ort;Temp;Kosten\n{TEMPERATURES}\nQuelle: DWD\n", ["Ort", "Temp", "Kosten"]),
        (f"Klima 2023\nOrt;Temp;Kosten\n{TEMPERATURES}", ["Ort", "Temp", "Kosten"]),
        (
            "Datum;Temperatur, °C\n" + "".join(f"{n + 1:02}.01.2023;{n},5\n" for n in range(12)),
            ["Datum", "Temperatur, °C"],
        ),
        (
            "Klima 2023\nOst\tWest\n" + "".join(f"{n},5\t{n},25\n" for n in range(12)),
            ["Ost", "West"],
        ),
    ],
)
def test_decimal_commas_are_no_delimiters_whatever_stands_around_the_table(text, names):
    table = read(text)
    assert table.names == names
    assert table.n_rows == 12


@pytest.mark.parametrize(
    "rows",
    [
        ["2020-01-01,no data,no data", *(f"2020-01-{n:02},{n}.5,{n}.25" for n in range(2, 15))],
        ["AB-100,n/k,unknown", *(f"AB-1{n:02},{n}.5,{n}.25" for n in range(1, 15))],
    ],
)
def test_a_first_row_with_a_date_or_code_like_those_below_is_no_header(rows):
    table = read("\n".join(["Key,Flow,Level", *rows, ""]))
    assert table.names == ["Key", "Flow", "Level"]
    assert table.n_rows == len(rows)


@pytest.mark.parametrize("last", [False, True])
def test_two_stray_quotation_marks_in_one_column_swallow_no_row(last):
    rows = [f"{n},{n} inch pipe,x" for n in range(40)]
    for n in (5, 30):
        rows[n] = f'{n},"{n} inch pipe,x'
    if last:
        rows = [",".join(row.split(",")[:2]) for row in rows]
    header = "id,what" if last else "id,what,more"
    table = read("\n".join([header, *rows, ""]))
    assert table.n_rows == 40
    assert rows_of(table)[5][1] == '"5 inch pipe'
    assert any("quotation mark" in note for note in table.notes)


def test_cells_of_two_lines_stay_one_cell_where_each_line_is_as_wide_as_the_table():
    rows = "".join(f'{n},"12 Main St, Apt {n}\nSpringfield, IL",x\n' for n in range(9))
    table = read("id,address,more\n" + rows)
    assert table.n_rows == 9
    assert tuple(rows_of(table)[3]) == ("3", "12 Main St, Apt 3\nSpringfield, IL", "x")


def test_backslashes_at_the_ends_of_cells_escape_no_quotation_mark():
    table = read('"folder","size"\n"C:\\a\\","1,5"\n"D:\\b\\","2,5"\n"E:\\c","3,5"\n')
    assert rows_of(table) == [["C:\\a\\", "1,5"], ["D:\\b\\", "2,5"], ["E:\\c", "3,5"]]


def test_one_escaped_quotation_mark_will_do():
    table = read('"name","said"\n"Ann","say \\"hi\\""\n"Bo","c"\n"Cy","d"\n')
    assert rows_of(table) == [["Ann", 'say "hi"'], ["Bo", "c"], ["Cy", "d"]]


def test_backslashes_that_escape_nothing_stay_beside_those_that_do():
    r"""Spark writes quotation marks as ``\\"``, and any other backslash as it is."""
    rows = [r"C:\new\dir,1", r'"say \"hi\", \"you\"",2', r'"a \"b\" c\d",3', r"E:\raw,4"]
    table = read("\n".join(["path,n", *rows, ""]))
    assert [row[0] for row in rows_of(table)] == [
        "C:\\new\\dir", 'say "hi", "you"', 'a "b" c\\d', "E:\\raw",
    ]  # fmt: skip


SHOPS = "town,turnover,since\nTours,100,1990\nUlm,107,1991\nCork,114,1999\n"


@pytest.mark.parametrize(
    ("between", "other", "title"),
    [
        ("\nTable 2: Shops\n", SHOPS, "Table 2: Shops"),
        ("\nShops\nof 2019\n\n", SHOPS, "Shops"),
        (",,\n,,\nShops,,\n", SHOPS, "Shops"),
        ("\n", SHOPS, "town"),
        ("\nShops\n", "city,people\nTours,136463\nUlm,126329\n", "Shops"),
    ],
)
def test_another_table_below_is_left_out_and_named(between, other, title):
    table = read(BODY + between + other)
    assert [table.names, *rows_of(table)] == ROWS
    assert table.notes == [f"another table below this one was left out ({title})"]
    many = BODY + "".join(f"Place {n},{n},{n}\n" for n in range(9000))
    assert read(many + between + other).n_rows == len(ROWS) - 1 + 9000


@pytest.mark.parametrize(
    "below",
    [
        "Rome,unknown,\nKiev,2952301,839\nParis,2102650,105\n",  # a missing value
        "Asia\nDhaka,8906039,306\nDili,222323,48\n",  # a group of rows
        "city,people,area\nDhaka,8906039,306\nDili,222323,48\n",  # the header once more
        "Rome,counted later,\nKiev,2952301,\nParis,2102650,\n",  # a column that ends
        "Dhaka,8906039,none yet\nDili,222323,48\nAccra,284124,20\n",  # a lone remark
    ],
)
def test_rows_behind_a_blank_line_that_are_no_other_table_are_kept(below):
    table = read(BODY + "\n" + below)
    assert table.columns[0].to_pylist()[-2:] == [row.split(",")[0] for row in below.split()[-2:]]
    assert not any("another table" in note for note in table.notes)
