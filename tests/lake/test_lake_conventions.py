"""What programs and portals put into delimited text by conventions of their own."""

import json

import pytest
from read_tables import read_delimited as read
from read_tables import rows_of

from pexeso.errors import TableReadError
from pexeso.lake.containers.reader import read_table
from pexeso.lake.readers.encoding import detect_encoding


@pytest.mark.parametrize(
    "text",
    [
        '"city","people"\n"1","Oslo",709037\n"2","Bern",134591\n',
        "city\tpeople\n1\tOslo\t709037\n2\tBern\t134591\n",
    ],
)
def test_a_header_without_a_name_for_the_names_of_rows_stands_above_the_others(text):
    table = read(text, ".tsv" if "\t" in text else ".csv")
    assert table.names == ["", "city", "people"]
    assert rows_of(table) == [["1", "Oslo", "709037"], ["2", "Bern", "134591"]]


@pytest.mark.parametrize(
    "rows",
    [
        *("1,Oslo,x\n1,Bern,x\n", "1,Oslo,\n2,Bern,\n", ",Oslo,1\n,Bern,2\n", "1,Oslo,x\n2,Bern\n"),
        *("a,Sea, Oslo\nb,Hill, Bern\n", "a, b,c\nd,e,f\n"),
    ],
)
def test_longer_rows_without_names_of_their_own_get_a_column_at_the_end(rows):
    assert read(f"city,people\n{rows}").names == ["city", "people", ""]


def test_texts_protected_from_spreadsheets_are_read_as_these_show_them():
    table = read('id,"=""zip"""\n="001",="01234"\n="002","=""00501"""\n"=""""",="a"="b"\n')
    assert table.names == ["id", "zip"]
    assert rows_of(table) == [["001", "01234"], ["002", "00501"], [None, '="a"="b"']]
    assert table.notes == ['cells such as ="01234" were read as the text in them: 6']
    wide = read('id,zip\r\n="001",x\r\n="002",y\r\n'.encode("utf-16"))
    assert rows_of(wide) == [["001", "x"], ["002", "y"]]


def test_delimiters_in_a_single_column_are_part_of_its_texts():
    table = read("place\nOslo\nWashington, DC\nBern\nSan Juan, PR, USA\nLima,\nRome\nBonn\n")
    assert rows_of(table) == [
        [place]
        for place in ("Oslo", "Washington, DC", "Bern", "San Juan, PR, USA", "Lima", "Rome", "Bonn")
    ]
    assert table.notes == ["rows of the one column that hold a ',' were read whole: 3"]


@pytest.mark.parametrize(
    ("line", "row"),
    [
        ('"TV 42" screen",big,1', ['TV 42" screen', "big", "1"]),
        ('"a "b" c","d, ""e""",1', ['a "b" c', 'd, "e"', "1"]),
        ('"say "hi"","big",1', ['say "hi"', "big", "1"]),
        ('"x"",y","5" z",1', ['x",y', '5" z', "1"]),
        ('"","TV 42" screen","1"', [None, 'TV 42" screen', "1"]),
    ],
)
def test_quotation_marks_inside_quoted_cells_are_kept(line, row):
    table = read(f'item,size,n\n"Tube, long",x,0\n{line}\nPan,"s, m",2\n')
    assert rows_of(table) == [["Tube, long", "x", "0"], row, ["Pan", "s, m", "2"]]


@pytest.mark.parametrize("below", ["(3 rows)\n", "\n(3 rows affected)\n", "\x1a"])
def test_what_old_programs_and_databases_write_below_the_rows_is_left_out(below):
    table = read(f"city,people\nOslo,1\nBern,2\nLima,3\n{below}")
    assert rows_of(table) == [["Oslo", "1"], ["Bern", "2"], ["Lima", "3"]]


@pytest.mark.parametrize(
    "amounts",
    [
        ["1,200", "3,400", "50", "4,650"],
        ["$1200", "$3400", "$50", "$4650"],
        ["1.200,50", "2.000", "3", "3.203,50"],
        ["1 200", "3 400", "50", "4 650"],
        ["33.3", "33.3", "33.3", "100"],
        ["50%", "30%", "20%", "100%"],
    ],
)
def test_totals_are_sums_in_the_notation_of_people(amounts):
    towns = ["Oslo", "Bern", "Lima", "Total"]
    rows = "".join(f"{town};{amount}\n" for town, amount in zip(towns, amounts, strict=True))
    table = read(f"town;amount\n{rows}")
    assert rows_of(table) == [list(row) for row in zip(towns[:3], amounts, strict=False)]
    assert table.notes == ["the row of totals below the table was left out (Total)"]
    assert read(f"town;amount\n{rows}".replace("3", "7")).n_rows == 4


def test_means_below_a_table_are_left_out_with_totals():
    rows = "town;n;share\nOslo;1;2,5\nBern;2;3,1\nLima;4;9,0\n"
    for below in ("Total;7;14,6\nAverage;2,33;4,87\n", "I alt;7;14,6\n", "Mittelwert:;2;4,9\n"):
        assert read(rows + below).n_rows == 3
    assert read(rows + "Average;3;5,1\n").n_rows == 4
    assert read("stat;n\nmin;1\nmax;9\nmean;5\n").n_rows == 3


@pytest.mark.parametrize(
    "encoding", ["cp1252", "latin-1", "cp1250", "cp1251", "mac_roman", "cp437", "cp850"]
)
@pytest.mark.parametrize(
    "places",
    [["Málaga", "Zürich"], ["Москва", "Уфа"], ["10 °C", "€"], ["it\u2019s", "é"], ["東京", "x"]],
)
def test_text_that_was_encoded_twice_is_decoded_twice(encoding, places):
    text = "place,n\n" + "".join(f"{place},{n}\n" for n, place in enumerate(places))
    twice = encoded_again(text, encoding)
    table = read(twice)
    assert table.columns[0].to_pylist() == places
    assert table.notes == ["the text was encoded as UTF-8 twice: it was decoded once more"]
    assert read(encoded_again(twice, encoding)).columns[0].to_pylist() == places


def test_text_of_which_a_part_was_encoded_twice_is_decoded_there():
    towns = ["Málaga", "São Tomé", "Orléans", "Besançon", "Malmö"]
    text = "\n".join(["town", *towns[:2], encoded_again("\n".join(towns[2:]), "cp1252")])
    assert read(text).columns[0].to_pylist() == towns
    assert read(text.replace("OrlÃ©ans", "AMANHÃ\u201d")).columns[0].to_pylist()[-1] == "MalmÃ¶"


def test_one_apostrophe_of_windows_that_was_encoded_twice_is_one():
    assert read("place\nit\xe2\u20ac\u2122s\na\n").columns[0].to_pylist() == ["it\u2019s", "a"]


def encoded_again(text, encoding):
    """Return what UTF-8 is in another encoding; programs take Latin-1 where that has no letter."""
    return "".join(bytes([byte]).decode(encoding, "ignore") or chr(byte) for byte in text.encode())


@pytest.mark.parametrize(
    "place",
    [
        *("São Paulo", "«CAFÉ»", "CAFÉ™", "Ã", "Größe", "Łódź", "36 \u0412°C", "√2 ± ∞", "├┤"),
        *("\u0414\u0406\u041b\u0406", "GÜŞ, TÖŞ"),
    ],
)
def test_other_text_is_decoded_once(place):
    table = read(f'place,n\n"{place}",1\nb,2\n')
    assert table.columns[0].to_pylist() == [place, "b"]
    assert table.notes == []


@pytest.mark.parametrize(
    ("begin", "kind"),
    [
        ("<!DOCTYPE html>\n<html>\n<p>Not found", "HTML"),
        ("\ufeff\n<HTML>\n<p>x", "HTML"),
        ('<?xml version="1.0"?>\n<rows>\n<row/>', "XML"),
        ("{\\rtf1\\ansi\nHello, you", "rich text"),
        ("%PDF-1.4\n1 0 obj\nendobj", "PDF"),
    ],
)
def test_documents_under_the_name_of_a_table_say_what_they_are(begin, kind):
    with pytest.raises(TableReadError, match=rf"^t\.csv holds {kind}, not delimited text; "):
        read(begin)


@pytest.mark.parametrize(
    ("data", "n_nulls"),
    [
        (b"city,people\nOslo,7090\0\nBern,1345\n", 1),
        (b"city,people\nOslo,7090\nBern,1345\n" + bytes(500), 500),
    ],
)
def test_a_few_nulls_in_a_text_are_left_out(data, n_nulls):
    table = read(data)
    assert rows_of(table) == [["Oslo", "7090"], ["Bern", "1345"]]
    assert table.notes == [f"NUL characters were left out: {n_nulls}"]


@pytest.mark.parametrize("text", [" ", "  \n\n\t\n"])
def test_white_space_alone_is_empty(text):
    with pytest.raises(TableReadError, match=r"^t\.csv is empty: it has no header row\.$"):
        read(text)


@pytest.mark.parametrize(
    "text",
    [
        '[{"city": "Oslo", "n": 1}, {"city": "Bern", "n": 2}]',
        '{"city": "Oslo", "n": 1}\n{"city": "Bern", "n": 2}\n',
    ],
)
@pytest.mark.parametrize("name", ["a.csv", "a.txt"])
def test_json_under_the_name_of_delimited_text_is_read_as_json(tmp_path, text, name):
    (tmp_path / name).write_text(text)
    table = read_table(tmp_path / name)
    assert (table.names, rows_of(table)) == (["city", "n"], [["Oslo", "1"], ["Bern", "2"]])
    cell = json.dumps({"a": 1}).replace('"', '""')
    (tmp_path / name).write_text(f'id,facts\n1,"{cell}"\n2,"{cell}"\n')
    assert read_table(tmp_path / name).names == ["id", "facts"]


@pytest.mark.parametrize(
    "above", ["Report,People\nCreated,2021-03-04\n\n", "\nA,B\nC,D\n\n\n", "Report,People\n\n"]
)
def test_facts_above_a_blank_line_are_not_of_the_table(above):
    table = read(f"{above}city,country,people\nOslo,Norway,709037\nBern,Switzerland,134591\n")
    assert table.names == ["city", "country", "people"]
    assert table.n_rows == 2


def test_a_short_header_above_a_blank_line_stays():
    table = read("country,people\n\nOslo,Norway,7\nBern,Switzerland,1\nLima,Peru,9\n")
    assert table.n_rows == 3


def test_a_narrower_table_above_a_blank_line_is_not_left_out():
    table = read("n,city\n1,Oslo\n2,Bern\n3,Lima\n\nn,city,x\n4,Rome,5\n6,Bonn,7\n8,Graz,9\n")
    assert (table.names, table.n_rows) == (["n", "city", ""], 7)


def test_tags_below_the_header_are_no_row():
    assert read("agency\tsite\tlat\n5s\t15s\t16n\nUSGS\t0101\t46.7\nUSGS\t0102\t47.1\n").n_rows == 2
    table = read("Country,People,Note\n#country,#affected +f,\nKenya,5,a\nChad,7,b\n")
    assert table.names == ["Country", "People", "Note"]
    assert rows_of(table) == [["Kenya", "5", "a"], ["Chad", "7", "b"]]
    assert table.notes == ["the row of tags below the header was left out"]
    assert read("tag,n\n#free,#1\n#love,#2\n").n_rows == 2


def test_descriptions_below_codes_are_a_second_row_of_the_header():
    body = "".join(f"05US{n},Place {n},{n * 7}\n" for n in range(10, 16))
    table = read(f"GEO_ID,NAME,B01E\nGeography,Name of area,Estimate\n{body}")
    assert table.names == ["GEO_ID Geography", "NAME Name of area", "B01E Estimate"]
    assert read(f"GEO_ID,NAME,B01E\n05US9,Place 9,unknown\n{body}").n_rows == 7


def test_columns_aligned_by_spaces_are_read():
    table = read(
        "name      people    area\nOslo      709       454\nBern      134       52\n", ".txt"
    )
    assert table.names == ["name", "people", "area"]
    assert rows_of(table) == [["Oslo", "709", "454"], ["Bern", "134", "52"]]


PLACES = {
    "cp1252": [
        "Jyväskylä Hämeenlinna Seinäjoki Järvenpää Ylöjärvi",
        "Göttingen Köln Nürnberg Fürth Gießen",
        "Orléans Besançon Nîmes Mâcon Saint-Étienne",
        "Camões São_Paulo Goiânia Brasília Évora",
        "Hafnarfjörður Kópavogur Garðabær Þorlákshöfn Reykjavík",
        "Málaga Zürich Malmö Bogotá Ålesund",
    ],
    "cp1250": [
        "Łódź Wrocław Gdańsk Częstochowa Białystok",
        "Plzeň Děčín Třebíč Havířov Žďár",
        "Győr Pécs Kőszeg Székesfehérvár Érd",
        "Šibenik Čakovec Križevci Đakovo Varaždin",
        "Braşov Iaşi Timişoara Constanţa Brăila",
    ],
    "cp1251": ["Москва Самара Казань Уфа Омск", "Київ Львів Харків Одеса Чернігів"],
    "cp1253": ["Αθήνα Θεσσαλονίκη Πάτρα Λάρισα Βόλος"],
    "cp1254": ["Eskişehir Muğla Gümüşhane Niğde Çanakkale"],
    "cp1255": ["ירושלים חיפה אשדוד נתניה"],
    "cp1256": ["القاهرة بغداد الرياض دمشق"],
    "cp874": ["กระบี่ กรุงเทพมหานคร ขอนแก่น", "ภูเก็ต ตราด นครราชสีมา เลย น่าน"],
    "cp1257": ["Rīga Jūrmala Liepāja Jēkabpils Cēsis", "Šiauliai Panevėžys Mažeikiai Plungė"],
    "iso8859_2": [
        "Łódź Świętochłowice Dąbrowa Płońsk Świdnica",
        "Słowacja Węgry Białoruś Azja_Środkowa",
    ],
    "iso8859_15": ["10_€ 12_€ Œuf_3_€ 8_€", "5_€ 7_€"],
    "koi8_r": ["Москва Самара Казань Уфа Омск"],
    "koi8_u": ["Київ Львів Харків Запоріжжя Чернігів Вінниця Луцьк"],
    "iso8859_5": ["Москва Самара Казань Уфа Омск", "Мінск Гомель Магілёў Віцебск Гродна Брэст"],
    "iso8859_6": ["القاهرة بغداد الرياض دمشق"],
    "mac_cyrillic": [
        "Москва Самара Казань Уфа Омск",
        "Београд Ниш Суботица Панчево Чачак Шабац Вршац",
    ],
    "cp866": ["Москва Самара Казань Уфа Омск"],
    "cp850": ["München Köln Düsseldorf Nürnberg Würzburg"],
    "mac_roman": ["Orléans Besançon Béziers Nîmes Genève"],
}


@pytest.mark.parametrize(
    ("encoding", "places"), [(name, places) for name, lists in PLACES.items() for places in lists]
)
def test_a_few_names_tell_the_encoding(encoding, places):
    text = "place,n\n" + "".join(
        f"{place.replace('_', ' ')},{n}\n" for n, place in enumerate(places.split())
    )
    guess = detect_encoding(text.encode(encoding))
    assert text.encode(encoding).decode(guess.name) == text
    assert guess.note == f"not UTF-8: read as {guess.name}, a guess"


@pytest.mark.parametrize(
    ("encoding", "name"),
    [
        *(("cp1251", name) for name in ("Николай", "Щербакова", "Хохлов", "Орёл", "ПЕНЗА")),
        *(("cp1253", name) for name in ("Αθήνα", "Λάρισα")),
    ],
)
def test_one_name_is_not_of_an_encoding_that_is_seldom_written(encoding, name):
    assert detect_encoding(name.encode(encoding)).name == encoding


@pytest.mark.parametrize(
    ("encoding", "places"),
    [
        ("cp932", "東京都 大阪府 北海道 神奈川県 カナダ"),
        ("cp932", "愛知 福岡 鈴木一郎"),
        ("cp932", "広島 茨城 札幌 福岡 岐阜"),
        ("gb18030", "北京市 上海市 广州市 深圳市 天津市 重庆市"),
        ("big5", "臺北市 高雄市 臺中市 臺南市"),
        ("big5", "id 縣市 臺北市 新北市 桃園市 臺中市 臺南市 高雄市"),
        ("cp949", "서울특별시 부산광역시 대구광역시 인천광역시"),
    ],
)
def test_letters_of_several_bytes_are_taken_for_none_of_one(encoding, places):
    data = "\n".join(places.split()).encode(encoding)
    assert data.decode(detect_encoding(data).name) == data.decode(encoding)


@pytest.mark.parametrize(
    "cells",
    [
        "\u201ca\u201d it\u2019s x\u2013y",
        "12\xb0C \xa35 \xbd 2\xba",
        "\u20ac5 7\xa0\u20ac",
        "a\u2026",
    ],
)
def test_marks_without_letters_are_those_of_windows(cells):
    text = "\n".join(cells.split(" "))
    assert detect_encoding(text.encode("cp1252")).name == "cp1252"


@pytest.mark.parametrize(
    "cells", ["DublLock\xae binder|Accent\u2122 chair", "\u201ca\u201d|b", "a\u2026|b"]
)
def test_marks_of_a_mac_are_told_where_they_are_none_of_windows(cells):
    text = "id,product\n" + "".join(f"{n},{cell}\n" for n, cell in enumerate(cells.split("|")))
    assert detect_encoding(text.encode("mac_roman")).name == "mac_roman"
    assert detect_encoding(text.encode("cp1252")).name == "cp1252"
