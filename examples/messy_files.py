"""The files in `messy/`: tables that need care, and files that no reader can save.

Each is made as bytes, because a sound writer would refuse to make most of them.
"""

import gzip

from encoders import parquet_bytes
from facts import business, countries, geography, science
from facts.spellings import unaccented, with_note

BROKEN = (
    "messy/empty.csv",
    "messy/photo.csv",
    "messy/cut_short.parquet",
    "messy/cut_short.csv.gz",
    "messy/malformed.jsonl",
)
"""The files that are no tables, or not any more."""


def _lines(*lines: str) -> bytes:
    return ("\n".join(lines) + "\n").encode("utf-8")


def notes_with_newlines() -> bytes:
    """Quoted cells that hold line breaks, delimiters and doubled quotation marks."""
    return _lines(
        "museum,visitor_note",
        '"Louvre Museum","Closed on Tuesdays.\nThe ""Mona Lisa"" is on the first floor, in room '
        '711."',
        '"British Museum","Free entry;\nthe Rosetta Stone is in room 4."',
        '"Rijksmuseum","See ""The Night Watch"",\nthen the library."',
        '"Museo del Prado","Three buildings:\nVillanueva,\nJerónimos,\nCasón."',
        '"Uffizi Gallery","Book ahead."',
        '"Van Gogh Museum","Tickets online only"',
        '"Vatican Museums","Closed on most Sundays,\nopen on the last of the month"',
        '"State Hermitage Museum","Winter Palace\nand four other buildings"',
    )


def header_with_a_gap() -> bytes:
    """One column without a name, as spreadsheets with an index column leave it."""
    rows = geography.ISLANDS.select(island="island", belongs_to="belongs_to").rows
    return _lines(
        ",island,country",
        *(f'{number},{name},"{country}"' for number, (name, country) in enumerate(rows)),
    )


def repeated_header() -> bytes:
    """Two columns of the same name, and the header line again in the middle."""
    rows = [f"{city};{country};{city.upper()}" for city, country, *_ in geography.CITIES.rows[:24]]
    return _lines("name;country;name", *rows[:12], "name;country;name", *rows[12:])


def ragged() -> bytes:
    """Rows that are too long or too short for the header."""
    lines = []
    for number, (code, airport, city, _) in enumerate(business.AIRPORTS.rows[:30]):
        cells = {0: [code, airport, city, "", ""], 1: [code, airport]}.get(
            number % 6, [code, airport, city]
        )
        lines.append(",".join(cells))
    return _lines("code,airport,city", *lines)


def numbers_only() -> bytes:
    """Nothing but numbers: squares and cubes."""
    return _lines("n,square,cube", *(f"{n},{n**2},{n**3}" for n in range(1, 41)))


def footnotes() -> bytes:
    """Footnote marks behind names, units behind numbers, and the notes below the table."""
    marks = [with_note(mark) for mark in ("[1]", "", "*", "", "†", "", "[2]", "")]
    rows = [
        f'{marks[number % len(marks)](river)},"{int(length):,} km"'
        for number, (river, length, *_) in enumerate(geography.RIVERS.rows)
    ]
    return _lines(
        "River,Length", *rows, "[1] Sources differ.", "* Measured from the farthest source."
    )


def stray_white_space() -> bytes:
    """White space of several kinds around the cells."""
    states = geography.GERMAN_STATES
    spaces = ("  {}", "{}   ", "\u00a0{}", "{}\u00a0", " {} ")
    pairs = zip(states.column("capital"), states.column("state"), strict=True)
    rows = [
        f"{spaces[number % 5].format(capital)} | {state}"
        for number, (capital, state) in enumerate(pairs)
    ]
    return _lines("capital | state", *rows)


def shouting() -> bytes:
    """Capitals without accents and with extra punctuation."""
    names = [unaccented(name).upper() for name in countries.COUNTRIES.column("name")[::4]]
    return _lines("COUNTRY!", *(f'"*** {name}. ***"' for name in names))


def _photo() -> bytes:
    return b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 8


def _cut_short_parquet() -> bytes:
    whole = parquet_bytes(business.COMPANIES)
    return whole[: len(whole) // 2]


def _cut_short_gzip() -> bytes:
    text = "\n".join(",".join(row) for row in science.ELEMENTS.rows).encode("utf-8")
    return gzip.compress(text, mtime=0)[:300]


def _malformed_json_lines() -> bytes:
    return _lines(
        '{"city": "Oslo", "country": "Norway"',
        '{"city": "Bergen" "country": "Norway"}',
        "city: Trondheim",
        "}{",
    )


def messy_files() -> dict[str, bytes]:
    """Return the content of every file in `messy/` by its path in the lake."""
    return {
        "messy/notes_with_newlines.csv": notes_with_newlines(),
        "messy/header_with_a_gap.csv": header_with_a_gap(),
        "messy/repeated_header.csv": repeated_header(),
        "messy/ragged.csv": ragged(),
        "messy/numbers_only.csv": numbers_only(),
        "messy/footnotes.csv": footnotes(),
        "messy/stray_white_space.csv": stray_white_space(),
        "messy/shouting.csv": shouting(),
        "messy/one_row.csv": _lines("wonder,city", "Great Pyramid of Giza,Giza"),
        "messy/header_only.csv": _lines("country,capital,population"),
        "messy/notes.txt": _lines(
            "Ask for the missing pages of the atlas.", "Nobody knows where photo.csv comes from."
        ),
        "messy/empty.csv": b"",
        "messy/photo.csv": _photo(),
        "messy/cut_short.parquet": _cut_short_parquet(),
        "messy/cut_short.csv.gz": _cut_short_gzip(),
        "messy/malformed.jsonl": _malformed_json_lines(),
    }
