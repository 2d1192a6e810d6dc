"""Answers of `pexeso acquire` on the demo lake and on a shared one, as they have been.

After a change of answers that is meant, `python -m tests.acquisition.test_pins` writes the file of
them anew.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path

import pexeso
from pexeso.acquisition.searches import AcquisitionSearches
from pexeso.errors import PexesoError
from tests.acquisition.small_market import index_of

FILE = Path(__file__).parent / "pins.json"
DEMO = Path(pexeso.__file__).parent / "demo" / "lake"
BASEBALL = ("CollegePlaying", "HallOfFame", "People", "Schools")

COMPANIES = "business/companies.csv:sector"
DEMO_SEARCHES = {
    "two tables": (COMPANIES, "geography/capitals.tsv:Continent"),
    "any column": (COMPANIES, None, {"k": 5}),
    "any column, rows multiply": (
        "business/airlines.csv:country",
        None,
        {"max_fan_out": 20, "max_tables": 2, "k": 4, "prices": "entropy"},
    ),
    "entropy": (COMPANIES, "Continent", {"budget": 12}),
    "listed": (
        COMPANIES,
        "Continent",
        {"prices": {"*": {"*": 1.5}, "geography/capitals.tsv": {"*": 1, "Continent": 3}}},
    ),
    "of any table": ("geography/mountains.csv:height", "Continent", {"k": 3}),
    "nothing to explain": (None, ["sector", "Continent"], {"max_tables": 3}),
    "quality": (COMPANIES, "Continent", {"min_quality": 0.9, "max_informativeness": 0.6}),
    "two columns": ("business/companies.csv:sector,city", ["Continent", "Capital"], {"k": 3}),
    "all keys": (COMPANIES, "Continent", {"sample_rate": 1.0}),
    "excluded": (
        COMPANIES,
        "Continent",
        {
            "exclude_tables": ["geography/capitals.tsv"],
            "exclude_joins": [("business/companies.csv", "business/headquarters.csv")],
        },
    ),
    "no such column": (COMPANIES, "nowhere"),
    "no such table": ("business/companies.csv:sector", "nowhere.csv:column"),
    "no number": (COMPANIES, "Continent", {"budget": -1}),
}
BASEBALL_SEARCHES = {
    "two tables": ("HallOfFame.csv:category", "People.csv:bats", {"max_tables": 2}),
    "sampled": (
        "HallOfFame.csv:category",
        "People.csv:birthCountry",
        {"sample_rate": 0.3, "k": 2, "max_tables": 2, "budget": 90},
    ),
    "sampled, three tables": (
        "HallOfFame.csv:category",
        "Schools.csv:state",
        {"sample_rate": 0.5, "k": 1, "max_tables": 3},
    ),
    "sampled numbers, any column": (
        "HallOfFame.csv:votes",
        None,
        {"sample_rate": 0.5, "k": 3, "max_tables": 2},
    ),
    "numbers": ("HallOfFame.csv:votes", "People.csv:weight,height", {"k": 2, "max_tables": 2}),
}
ROUNDED = 10
"""Significant digits of the numbers that are kept."""


def plain(value):
    if isinstance(value, dict):
        return {key: plain(entry) for key, entry in value.items() if key != "seconds"}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    return float(f"{value:.{ROUNDED}g}") if isinstance(value, float) else value


def answer(searches, have, want, options=None):
    options = {"max_seconds": None, "max_tables": 3, **(options or {})}
    try:
        return plain(searches.acquire(have, want, **options).to_dict())
    except PexesoError as error:
        return {type(error).__name__: str(error).replace(str(searches.opened.lake), "LAKE")}


def answers(lake, folder, listed):
    searches = AcquisitionSearches(index_of(lake, folder))
    return {name: answer(searches, *search) for name, search in listed.items()}


def of_baseball(folder, tmp_path):
    lake = tmp_path / "lake"
    lake.mkdir(parents=True)
    for name in BASEBALL:
        [file] = folder.rglob(f"{name}.csv")
        shutil.copy(file, lake)
    return answers(lake, tmp_path / "index", BASEBALL_SEARCHES)


def compare(current, name):
    kept = json.loads(FILE.read_text(encoding="utf-8"))[name]
    assert list(current) == list(kept)
    for search, expected in kept.items():
        assert json.loads(json.dumps(current[search])) == expected, search


def test_answers_on_the_demo_lake(tmp_path):
    compare(answers(DEMO, tmp_path / "index", DEMO_SEARCHES), "demo")


def test_answers_on_a_shared_lake(lake_folder, tmp_path):
    compare(of_baseball(lake_folder("baseball"), tmp_path), "baseball")


if __name__ == "__main__":
    import sys
    import tarfile

    with tempfile.TemporaryDirectory() as kept:
        with tarfile.open(sys.argv[1]) as tables:
            tables.extractall(Path(kept, "baseball"), filter="data")
        written = {
            "demo": answers(DEMO, Path(kept, "index"), DEMO_SEARCHES),
            "baseball": of_baseball(Path(kept, "baseball"), Path(kept, "own")),
        }
    lines = ",\n".join(
        f'"{lake}": {{\n'
        + ",\n".join(f'"{name}": {json.dumps(entry)}' for name, entry in searches.items())
        + "\n}"
        for lake, searches in written.items()
    )
    FILE.write_text(f"{{{lines}}}\n", encoding="utf-8")
