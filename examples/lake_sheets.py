"""Which file of the demo lake shows which facts, in which spelling and which dialect.

The same people, places and companies stand in several files under other spellings, as in a lake
that many hands filled.
"""

from facts import business, countries, culture, geography, history, science, space, sport
from facts.sheet import Facts, Sheet, chain, rewrite_every
from facts.spellings import (
    abbreviated,
    day_month_year,
    dotted,
    given_first,
    misspelt,
    month_day_year,
    short_month_day_year,
    slashed,
    unaccented,
    with_unit,
)

WINDOWS = "\r\n"


def _countries_as_filed() -> Facts:
    world = countries.COUNTRIES
    filed = [
        inverted or name
        for inverted, name in zip(world.column("filed_as"), world.column("name"), strict=True)
    ]
    rows = zip(
        filed,
        world.column("alpha3"),
        world.column("continent"),
        world.column("currency"),
        strict=True,
    )
    return Facts(("Country Name", "Country Code", "Region", "Currency"), tuple(rows))


def _domains() -> Facts:
    world = countries.COUNTRIES.select(country=("name", unaccented), domain=("alpha2", str.lower))
    return Facts(
        world.names,
        tuple((name, ".uk" if code == "gb" else f".{code}") for name, code in world.rows),
    )


def _mountains() -> Facts:
    first_climbed = geography.MOUNTAINS.select(
        mountain="mountain", height_m="height_m", country="country"
    )
    every_summit = Facts(first_climbed.names, first_climbed.rows + geography.SUMMITS.rows)
    return every_summit.select(
        mountain="mountain", height=("height_m", with_unit("m")), country="country"
    )


def _stadiums() -> Facts:
    return sport.CLUBS.select(
        Ground="ground", Club=("club", rewrite_every(4, misspelt, 2)), City=("city", unaccented)
    )


def geography_sheets() -> list[Sheet]:
    """Return the files in `geography/`."""
    world = countries.COUNTRIES
    cities, states = geography.CITIES, geography.US_STATES
    days = countries.NATIONAL_DAYS
    return [
        Sheet(
            "geography/countries_iso3166.csv",
            world.select(name="name", alpha2="alpha2", alpha3="alpha3", numeric="numeric"),
        ),
        Sheet("geography/countries_as_filed.csv", _countries_as_filed(), delimiter=";"),
        Sheet(
            "geography/capitals.tsv",
            world.select(Country="name", Capital="capital", Continent="continent"),
            delimiter="\t",
        ),
        Sheet(
            "geography/dialling_codes.csv",
            world.select(COUNTRY=("name", str.upper), PREFIX="dial"),
            delimiter=";",
            encoding="cp1252",
            newline=WINDOWS,
        ),
        Sheet("geography/internet_domains.psv", _domains(), delimiter="|"),
        Sheet("geography/national_days.csv", days),
        Sheet(
            "geography/rivers.csv",
            geography.RIVERS.titled("River", "Length (km)", "Mouth", "Continent"),
        ),
        Sheet("geography/mountains.csv", _mountains()),
        Sheet(
            "geography/first_ascents.tsv",
            geography.MOUNTAINS.select(
                peak=("mountain", abbreviated),
                first_climbed=("first_ascent", short_month_day_year),
                range="range",
            ),
            delimiter="\t",
        ),
        Sheet("geography/lakes.csv", geography.LAKES),
        Sheet("geography/islands.csv", geography.ISLANDS, encoding="utf-8-sig"),
        Sheet(
            "geography/world_cities.csv",
            cities.select(
                city="city", country="country", latitude="latitude", longitude="longitude"
            ),
        ),
        Sheet(
            "geography/time_zones.tsv",
            cities.select(City=("city", unaccented), Zone="time_zone"),
            delimiter="\t",
            newline=WINDOWS,
        ),
        Sheet("geography/renamed_cities.csv", geography.RENAMED_CITIES),
        Sheet(
            "geography/us_states.csv", states.select(State="state", Code="code", Capital="capital")
        ),
        Sheet(
            "geography/us_admissions.csv",
            states.select(
                No="order", STATE=("state", str.upper), ADMITTED=("admitted", short_month_day_year)
            ),
        ),
        Sheet(
            "geography/german_states.csv",
            geography.GERMAN_STATES,
            delimiter=";",
            encoding="latin-1",
        ),
        Sheet(
            "geography/brazilian_states.csv",
            geography.BRAZILIAN_STATES,
            delimiter="\t",
            encoding="utf-16",
        ),
        Sheet("geography/canadian_provinces.csv", geography.PROVINCES_OF_CANADA),
    ]


def science_sheets() -> list[Sheet]:
    """Return the files in `science/`."""
    people, prized = science.SCIENTISTS, science.SCIENTISTS.where("prize", bool)
    schools = science.UNIVERSITIES
    return [
        Sheet(
            "science/elements.csv",
            science.ELEMENTS.select(number="number", symbol="symbol", element="element"),
        ),
        Sheet("science/periodic_table.parquet", science.ELEMENTS, kind="parquet"),
        Sheet(
            "science/element_discoveries.csv",
            science.DISCOVERIES.select(
                element=("element", rewrite_every(6, misspelt, 3)),
                discovered_by=("discoverer", given_first),
                year="year",
            ),
            delimiter=";",
        ),
        Sheet(
            "science/scientists.csv",
            people.select(
                name=("name", given_first),
                born="born",
                died="died",
                country="country",
                field="field",
            ),
        ),
        Sheet(
            "science/birthdays.tsv",
            people.select(person="name", birthday=("born", day_month_year), profession="field"),
            delimiter="\t",
        ),
        Sheet(
            "science/obituaries.csv",
            people.where("died", bool).select(
                Name=("name", chain(given_first, unaccented, rewrite_every(9, misspelt, 4))),
                Died=("died", dotted),
            ),
            delimiter=";",
            newline=WINDOWS,
        ),
        Sheet(
            "science/nobel_prizes.jsonl",
            prized.select(year="prize", laureate=("name", given_first), category="field"),
            kind="json",
        ),
        Sheet(
            "science/units.csv",
            science.UNITS.select(
                unit="unit", symbol="symbol", quantity="quantity", after="named_after"
            ),
        ),
        Sheet(
            "science/universities.csv",
            schools.select(
                university="university", city="city", country="country", founded="founded"
            ),
        ),
        Sheet(
            "science/university_short_names.csv",
            schools.select(
                short="short", university=("university", chain(abbreviated, unaccented))
            ),
            delimiter="|",
        ),
        Sheet("science/programming_languages.csv", science.PROGRAMMING_LANGUAGES),
        Sheet(
            "science/inventions.csv",
            science.INVENTIONS.select(
                Invention=("invention", rewrite_every(3, lambda cell: cell + "  ")),
                Inventor=("inventor", given_first),
                Year="year",
            ),
        ),
    ]


def space_sheets() -> list[Sheet]:
    """Return the files in `space/`."""
    return [
        Sheet("space/planets.csv", space.PLANETS),
        Sheet("space/moons.csv", space.MOONS),
        Sheet("space/missions.csv", space.MISSIONS),
        Sheet(
            "space/launch_log.tsv",
            space.MISSIONS.select(
                MISSION=("mission", chain(str.upper, rewrite_every(8, misspelt, 5))),
                LAUNCH_DATE=("launched", day_month_year),
                OPERATOR="agency",
            ),
            delimiter="\t",
        ),
        Sheet(
            "space/moon_walkers.csv",
            space.MOON_WALKERS.select(
                astronaut=("astronaut", given_first),
                mission="mission",
                landed=("landed", slashed),
                born=("born", slashed),
            ),
        ),
        Sheet(
            "space/space_travellers.csv",
            space.FIRST_FLIGHTS.select(
                traveller="traveller", country="country", first_flight=("first_flight", dotted)
            ),
            delimiter="|",
        ),
        Sheet("space/bright_stars.csv", space.STARS),
        Sheet("space/constellations.csv", space.CONSTELLATIONS, delimiter=";"),
    ]


def business_sheets() -> list[Sheet]:
    """Return the files in `business/`."""
    firms = business.COMPANIES
    airports = business.AIRPORTS
    return [
        Sheet(
            "business/companies.csv",
            firms.select(company="company", city="city", country="country", sector="sector"),
        ),
        Sheet(
            "business/founding_years.csv",
            firms.select(Company="short", Founded="founded"),
            delimiter=";",
        ),
        Sheet(
            "business/headquarters.csv",
            firms.select(
                company=("short", rewrite_every(7, str.upper, 2)),
                headquarters=("city", chain(unaccented, rewrite_every(10, misspelt, 6))),
                sector="sector",
            ),
        ),
        Sheet("business/stock_listings.csv", business.LISTINGS, delimiter="\t"),
        Sheet("business/stock_exchanges.csv", business.EXCHANGES),
        Sheet("business/currencies.csv", countries.CURRENCIES, encoding="utf-8-sig", delimiter=";"),
        Sheet("business/airlines.csv", business.AIRLINES),
        Sheet("business/airports.csv.gz", airports),
        Sheet(
            "business/flight_connections.tsv",
            airports.select(
                iata="code", served_city=("city", chain(unaccented, rewrite_every(11, misspelt, 3)))
            ),
            delimiter="\t",
        ),
        Sheet("business/brands.csv", business.BRANDS),
        Sheet("business/central_banks.csv", business.CENTRAL_BANKS, encoding="cp1252"),
        Sheet("business/metro_systems.csv", business.METROS),
    ]


def culture_sheets() -> list[Sheet]:
    """Return the files in `culture/`."""
    return [
        Sheet("culture/world_heritage.csv", culture.HERITAGE_SITES),
        Sheet("culture/museums.csv", culture.MUSEUMS),
        Sheet("culture/paintings.csv", culture.PAINTINGS),
        Sheet(
            "culture/painters.tsv",
            culture.PAINTERS.select(
                Painter="painter", Born=("born", day_month_year), Died=("died", day_month_year)
            ),
            delimiter="\t",
        ),
        Sheet(
            "culture/composers.csv",
            culture.COMPOSERS.select(
                composer="composer", born=("born", dotted), died=("died", dotted), country="country"
            ),
            delimiter=";",
        ),
        Sheet("culture/concert_programme.csv", culture.WORKS),
        Sheet("culture/novels.csv", culture.NOVELS),
        Sheet("culture/literature_prizes.csv", culture.LITERATURE_PRIZES),
        Sheet("culture/best_pictures.csv", culture.FILMS, delimiter="|"),
        Sheet("culture/languages.csv", culture.LANGUAGES),
        Sheet("culture/cheeses.csv", culture.CHEESES, encoding="latin-1"),
        Sheet("culture/dog_breeds.csv", culture.DOG_BREEDS),
        Sheet("culture/instruments.csv", culture.INSTRUMENTS),
        Sheet("culture/newspapers.csv", culture.NEWSPAPERS, encoding="cp1252", delimiter=";"),
        Sheet(
            "culture/bridges.csv",
            culture.BRIDGES.select(bridge="bridge", city="city", opened=("opened", month_day_year)),
        ),
        Sheet("culture/landmarks.csv", culture.LANDMARKS),
        Sheet(
            "culture/visitor_addresses.csv",
            culture.LANDMARKS.select(
                place=("landmark", rewrite_every(5, misspelt, 1)),
                address=(
                    "street",
                    chain(
                        abbreviated,
                        lambda cell: cell.replace("Fifth", "5th").replace("Seventh", "7th"),
                    ),
                ),
            ),
            delimiter=";",
        ),
        Sheet("culture/tall_buildings.csv", culture.BUILDINGS),
    ]


def history_sheets() -> list[Sheet]:
    """Return the files in `history/`."""
    return [
        Sheet("history/us_presidents.csv", history.US_PRESIDENTS),
        Sheet(
            "history/inaugurations.tsv",
            history.US_PRESIDENTS.select(
                President=("president", chain(given_first, rewrite_every(12, misspelt, 7))),
                Inaugurated=("took_office", month_day_year),
            ),
            delimiter="\t",
        ),
        Sheet(
            "history/european_leaders.csv",
            history.EUROPEAN_LEADERS.select(
                leader=("leader", given_first), office="office", since=("took_office", dotted)
            ),
            encoding="latin-1",
            delimiter=";",
        ),
        Sheet("history/secretaries_general.csv", history.SECRETARIES_GENERAL),
        Sheet("history/treaties.csv", history.TREATIES),
        Sheet(
            "history/treaty_calendar.csv",
            history.TREATIES.select(
                signed=("signed", day_month_year),
                treaty=("treaty", chain(str.lower, rewrite_every(10, misspelt, 4))),
                where=("place", unaccented),
            ),
        ),
        Sheet(
            "history/battles.csv",
            history.BATTLES.select(
                battle="battle", fought=("fought", day_month_year), today="country_today"
            ),
        ),
    ]


def sport_sheets() -> list[Sheet]:
    """Return the files in `sport/`."""
    return [
        Sheet(
            "sport/summer_olympics.csv",
            sport.SUMMER_GAMES.select(
                year="year",
                city=("city", unaccented),
                country="country",
                opening=("opening", day_month_year),
            ),
        ),
        Sheet("sport/winter_olympics.tsv", sport.WINTER_GAMES, delimiter="\t"),
        Sheet("sport/football_world_cups.csv", sport.WORLD_CUPS),
        Sheet(
            "sport/football_clubs.csv",
            sport.CLUBS.select(club="club", city="city", country="country", founded="founded"),
        ),
        Sheet("sport/stadiums.csv", _stadiums(), delimiter=";"),
        Sheet("sport/racing_champions.csv", sport.CHAMPIONS),
    ]


def all_sheets() -> list[Sheet]:
    """Return every sound file of the lake outside `messy/`."""
    return [
        *geography_sheets(),
        *science_sheets(),
        *space_sheets(),
        *business_sheets(),
        *culture_sheets(),
        *history_sheets(),
        *sport_sheets(),
    ]
