"""Encodings of short tables, told by the letters of languages."""

import pytest

from pexeso.lake.readers.encoding import detect_encoding

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
    "cp1257": ["Rīga Jūrmala Liepāja Jēkabpils Cēsis", "Šiauliai Panevėžys Mažeikiai Plungė"],
    "iso8859_2": ["Łódź Świętochłowice Dąbrowa Płońsk Świdnica"],
    "koi8_r": ["Москва Самара Казань Уфа Омск"],
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
    ("encoding", "places"),
    [
        ("cp932", "東京都 大阪府 北海道 神奈川県 カナダ"),
        ("gb18030", "北京市 上海市 广州市 深圳市 天津市 重庆市"),
        ("big5", "臺北市 高雄市 臺中市 臺南市"),
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
