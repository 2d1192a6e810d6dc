"""Write the folder that the tutorial on your own data walks through, and the tables to ask with.

::

    python examples/write_own_data.py FOLDER

writes, into FOLDER, `my_data` (a travel office's files: a spreadsheet, exports, JSON, SQLite, an
archive, Parquet), and next to it `my_tour.xlsx` and `pasted.txt`. Nothing in it is drawn by chance
or depends on the clock. Files of the same names are replaced; no other file is touched.
"""

import io
import json
import sqlite3
import sys
import zipfile
from collections.abc import Iterable
from contextlib import closing
from datetime import date, datetime, timedelta
from pathlib import Path

from encoders import encoded, parquet_bytes
from facts.business import AIRLINES, AIRPORTS, METROS
from facts.countries import COUNTRIES, CURRENCIES, NATIONAL_DAYS
from facts.culture import HERITAGE_SITES, LANDMARKS, MUSEUMS
from facts.geography import CITIES
from facts.sheet import Facts, rewrite_every
from facts.spellings import misspelt, unaccented
from openpyxl import Workbook

YEAR = 2025
FIRST_DAY = date(YEAR, 7, 11)
WRITTEN = datetime(YEAR, 1, 1)
"""What spreadsheets and archives are said to be written at, so that they are the same each time."""

STOPS = (
    "Louvre Museum",
    "Musée d'Orsay",
    "Centre Pompidou",
    "Städel Museum",
    "Alte Pinakothek",
    "Pergamon Museum",
    "Pinacoteca di Brera",
    "Kunsthaus Zürich",
    "Uffizi Gallery",
    "Museo del Prado",
    "Museo Reina Sofía",
    "Guggenheim Museum Bilbao",
    "Rijksmuseum",
    "Van Gogh Museum",
    "Mauritshuis",
    "Kunsthistorisches Museum",
    "Albertina",
    "National Museum",
    "Nationalmuseum",
    "Acropolis Museum",
)

Cell = str | int | date | None


def _iso(day: str) -> date:
    """Return a day such as "14 July" in the year of the tour."""
    return datetime.strptime(f"{day} {YEAR}", "%d %B %Y").date()


def _lines(facts: Facts, delimiter: str, *above: str, below: tuple[str, ...] = ()) -> str:
    rows = [delimiter.join(row) for row in (facts.names, *facts.rows)]
    return "".join(f"{line}\r\n" for line in (*above, *rows, *below))


def workbook_bytes(sheets: dict[str, Iterable[Iterable[Cell]]]) -> bytes:
    """Return an .xlsx file with these sheets, the same bytes every time."""
    book = Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(list(row))
    saved = io.BytesIO()
    book.save(saved)
    with zipfile.ZipFile(saved) as parts:
        return archive_bytes(
            {name: _undated(name, parts.read(name)) for name in sorted(parts.namelist())}
        )


def _undated(name: str, content: bytes) -> bytes:
    """Return a part of a spreadsheet without the time at which it was saved."""
    if name != "docProps/core.xml":
        return content
    start = content.index(b"<dcterms:created")
    return content[:start] + b"</cp:coreProperties>"


def archive_bytes(members: dict[str, bytes]) -> bytes:
    """Return a zip archive with these members, the same bytes every time."""
    saved = io.BytesIO()
    with zipfile.ZipFile(saved, "w") as archive:
        for name, content in members.items():
            member = zipfile.ZipInfo(name, WRITTEN.timetuple()[:6])
            member.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(member, content)
    return saved.getvalue()


def _office() -> bytes:
    """Return a SQLite database of two tables, whose keys are whole numbers."""
    countries = COUNTRIES.select(iso="numeric", name="name", currency="currency")
    with closing(sqlite3.connect(":memory:")) as base:
        base.execute("create table countries (iso text, name text, currency text)")
        base.executemany("insert into countries values (?, ?, ?)", countries.rows)
        base.execute("create table airports (id integer, code text, airport text, city text)")
        base.executemany(
            "insert into airports values (?, ?, ?, ?)",
            [(number, *row[:3]) for number, row in enumerate(AIRPORTS.rows, 1)],
        )
        base.commit()
        return base.serialize()


def _cities() -> bytes:
    """Return JSON whose table lies below a name, with objects in its cells."""
    cities = [
        {
            "city": unaccented(city),
            "timeZone": zone,
            "position": {"lat": float(latitude), "lon": float(longitude)},
        }
        for city, _, latitude, longitude, zone in CITIES.rows
    ]
    return json.dumps({"version": 2, "cities": cities}, indent=1).encode()


def _archive() -> bytes:
    holidays = Facts(
        ("Country", "Closed on", "Occasion"),
        tuple(
            (country, f"{_iso(day):%d.%m.%Y}", occasion)
            for country, day, occasion in NATIONAL_DAYS.rows
        ),
    )
    return archive_bytes(
        {
            "holidays.csv": encoded(_lines(holidays, ";"), "utf-8-sig"),
            "currencies.csv": _lines(CURRENCIES, ";").encode(),
            "read me.txt": b"Public holidays and currencies.\nAsk the office for newer ones.\n",
        }
    )


def _tours() -> bytes:
    """Return the office's spreadsheet: a title above one table, and a sheet that is none."""
    partners = AIRLINES.select(Airline="airline", Code="iata", Base="base")
    return workbook_bytes(
        {
            "Partners": [["Airlines we book with"], [], partners.names, *partners.rows],
            "To do": [
                ["Ask the Uffizi for a group rate"],
                ["Renew the contract with the bus firm"],
            ],
        }
    )


def _museums() -> bytes:
    museums = MUSEUMS.where("city", lambda city: city != "Oslo").select(
        Museum=("museum", rewrite_every(7, misspelt, 2)), City="city", Country="country"
    )
    text = _lines(
        museums, ";", "Museums;;", "As of 1 January 2025;;", below=("", "Source: own list")
    )
    return encoded(text, "cp1252")


def _landmarks() -> bytes:
    return _lines(LANDMARKS.titled("Landmark", "Street", "City"), "!").encode()


def _heritage() -> bytes:
    sites = HERITAGE_SITES.titled("Site", "Country", "Inscribed")
    return encoded(_lines(sites, ";"), "cp850")


def _metros() -> bytes:
    return parquet_bytes(METROS.select(city="city", metro="system", opened="opened"))


def my_data() -> dict[str, bytes]:
    """Return the files of the folder, by their names."""
    return {
        "archive.zip": _archive(),
        "cities.json": _cities(),
        "exports/heritage.csv": _heritage(),
        "exports/landmarks.txt": _landmarks(),
        "exports/museums.csv": _museums(),
        "metros.parquet": _metros(),
        "office.sqlite": _office(),
        "tours.xlsx": _tours(),
    }


def stops() -> list[tuple[Cell, ...]]:
    """Return the stops of a tour: museums as one types them, dates, and codes that lost zeros."""
    museums = {row[0]: row for row in MUSEUMS.rows}
    numbers = dict(zip(COUNTRIES.column("name"), COUNTRIES.column("numeric"), strict=True))
    respelt = rewrite_every(5, misspelt, 1)
    rows: list[tuple[Cell, ...]] = []
    for number, name in enumerate(STOPS):
        _, city, country = museums[name]
        day = FIRST_DAY + timedelta(days=3 * number)
        rows.append((respelt(unaccented(name)), city, day, int(numbers[country]), 20 + number % 7))
    return rows


def my_tour() -> bytes:
    """Return the spreadsheet to ask with."""
    names = ("Museum", "City", "Visit on", "Country no", "Seats")
    costs = [("Item", "Euro"), ("Bus", 5200), ("Guides", 1800)]
    return workbook_bytes({"Costs": costs, "Stops": [names, *stops()]})


def pasted() -> bytes:
    """Return a selection of a spreadsheet as it is pasted: cells with tabs between them."""
    rows = [("Museum", "City"), *(row[:2] for row in stops()[:8])]
    return "".join("\t".join(map(str, row)) + "\n" for row in rows).encode()


def write_own_data(folder: Path) -> list[Path]:
    """Write everything into `folder`; return the paths written, in order."""
    contents = {f"my_data/{name}": content for name, content in my_data().items()}
    contents |= {"my_tour.xlsx": my_tour(), "pasted.txt": pasted()}
    for path, content in contents.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    return [folder / path for path in contents]


def main() -> None:
    """Write the files into the folder given."""
    if len(sys.argv) != 2:
        sys.exit("usage: python examples/write_own_data.py FOLDER")
    for path in write_own_data(Path(sys.argv[1])):
        sys.stdout.write(f"{path}\n")


if __name__ == "__main__":
    main()
