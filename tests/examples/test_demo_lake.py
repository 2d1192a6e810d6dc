"""Tests of the demo lake: written by its program, messy as intended, with the two joins."""

import csv
import gzip
import io
import json
import re
import subprocess
import sys
import unicodedata
import zlib
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from processes import ran

EXAMPLES = Path(__file__).parents[2] / "examples"
LAKE = EXAMPLES / "lake"
EXTENSIONS = {".csv", ".tsv", ".psv", ".gz", ".jsonl", ".parquet"}
BROKEN = {
    f"messy/{name}"
    for name in (
        "empty.csv",
        "photo.csv",
        "cut_short.parquet",
        "cut_short.csv.gz",
        "malformed.jsonl",
    )
}
# Bytes that depend on the installed zlib and Arrow: what is in the files is compared instead.
BYTES_VARY = {"lake/messy/cut_short.parquet", "lake/messy/cut_short.csv.gz"}
UNUSUAL_ENCODINGS = {
    "geography/dialling_codes.csv": "cp1252",
    "business/central_banks.csv": "cp1252",
    "culture/newspapers.csv": "cp1252",
    "geography/german_states.csv": "latin-1",
    "culture/cheeses.csv": "latin-1",
    "history/european_leaders.csv": "latin-1",
    "geography/brazilian_states.csv": "utf-16",
}


@pytest.fixture(scope="module")
def rewritten(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("examples")
    program = [sys.executable, str(EXAMPLES / "write_lake.py"), str(folder)]
    done = subprocess.run(program, check=True, capture_output=True, text=True, cwd=folder)
    assert done.stdout.endswith(f"files written under {folder}\n")
    return folder


@pytest.fixture(scope="module")
def lake_cells() -> dict[str, list[list[str]]]:
    """Every row of every sound table, the header among them, by the table's name."""
    sound = [path for path in table_paths() if path not in BROKEN]
    return {path: rows_of(path) for path in sound}


def files_under(folder: Path) -> list[str]:
    return sorted(
        path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()
    )


def table_paths() -> list[str]:
    return [path for path in files_under(LAKE) if Path(path).suffix in EXTENSIONS]


def rows_of(path: str) -> list[list[str]]:
    content = (LAKE / path).read_bytes()
    if path.endswith(".parquet"):
        table = pq.read_table(pa.BufferReader(content))
        return [
            table.column_names,
            *([str(cell) for cell in row.values()] for row in table.to_pylist()),
        ]
    if path.endswith(".jsonl"):
        rows = [json.loads(line) for line in content.decode().splitlines()]
        return [list(rows[0]), *([str(cell) for cell in row.values()] for row in rows)]
    content = gzip.decompress(content) if path.endswith(".gz") else content
    text = content.decode(UNUSUAL_ENCODINGS.get(path, "utf-8-sig"))
    return list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter_of(text)))


def delimiter_of(text: str) -> str:
    header = text.splitlines()[0]
    return max(",;\t|", key=header.count)


def user_column(name: str, column: str) -> list[str]:
    with (EXAMPLES / name).open(encoding="utf-8", newline="") as file:
        return [row[column] for row in csv.DictReader(file)]


def letters(text: str) -> Counter:
    """The letters of a text whatever their order, case and accents."""
    return Counter(c for c in unicodedata.normalize("NFD", text.casefold()) if c.isalpha())


def distinct_cells(lake_cells: dict[str, list[list[str]]], table: str, column: str) -> set[str]:
    header, *rows = lake_cells[table]
    position = header.index(column)
    return {row[position] for row in rows}


def test_the_program_writes_exactly_the_files_that_are_kept(rewritten):
    kept = [f"lake/{path}" for path in files_under(LAKE)] + [
        "my_autographs.csv",
        "my_suppliers.csv",
    ]
    assert files_under(rewritten) == sorted(kept)


def test_every_file_that_is_kept_is_what_the_program_writes(rewritten):
    for path in files_under(rewritten):
        old, new = (EXAMPLES / path).read_bytes(), (rewritten / path).read_bytes()
        if path in BYTES_VARY:
            continue
        if path.endswith(".parquet"):
            assert pq.read_table(pa.BufferReader(old)).equals(
                pq.read_table(pa.BufferReader(new))
            ), path
        elif path.endswith(".gz"):
            assert gzip.decompress(old) == gzip.decompress(new), path
        else:
            assert old == new, f"{path} differs; run examples/write_lake.py"


def test_the_lake_is_large_enough_to_search_and_small_enough_to_keep():
    assert len(table_paths()) >= 60
    assert sum((LAKE / path).stat().st_size for path in files_under(LAKE)) < 1_500_000


def test_tables_are_small_and_rectangular_unless_they_mean_not_to_be(lake_cells):
    for path, (header, *rows) in lake_cells.items():
        if path.startswith("messy/"):
            continue
        assert 2 <= len(header) <= 8, path
        assert len(set(header)) == len(header), path
        assert 8 <= len(rows) <= 200, path
        assert {len(row) for row in rows} == {len(header)}, path


def test_no_country_code_element_or_airport_stands_twice(lake_cells):
    for path, column in (
        ("geography/countries_iso3166.csv", "alpha2"),
        ("geography/countries_iso3166.csv", "alpha3"),
        ("geography/countries_iso3166.csv", "numeric"),
        ("science/elements.csv", "symbol"),
        ("business/airports.csv.gz", "code"),
        ("business/airlines.csv", "iata"),
        ("business/stock_exchanges.csv", "market_code"),
        ("culture/languages.csv", "code"),
    ):
        assert len(distinct_cells(lake_cells, path, column)) == len(lake_cells[path]) - 1, (
            path,
            column,
        )


@pytest.mark.parametrize("folder", ["kept", "rewritten"])
def test_cut_files_begin_well_and_end_early(folder, request):
    messy = (EXAMPLES if folder == "kept" else request.getfixturevalue("rewritten")) / "lake/messy"
    parquet = (messy / "cut_short.parquet").read_bytes()
    assert parquet.startswith(b"PAR1")
    with pytest.raises(pa.ArrowInvalid):
        pq.read_table(pa.BufferReader(parquet))
    zipped = (messy / "cut_short.csv.gz").read_bytes()
    assert zlib.decompressobj(wbits=31).decompress(zipped).startswith(b"1,H,Hydrogen")
    with pytest.raises(EOFError):
        gzip.decompress(zipped)


def test_suppliers_are_found_by_equal_text(lake_cells):
    suppliers = user_column("my_suppliers.csv", "supplier")
    assert 15 <= len(suppliers) <= 30
    assert set(suppliers) <= distinct_cells(lake_cells, "business/founding_years.csv", "Company")
    assert (
        len(set(suppliers) & distinct_cells(lake_cells, "business/stock_listings.csv", "security"))
        >= 10
    )


def test_no_autograph_is_found_by_equal_text(lake_cells):
    signed_by = set(user_column("my_autographs.csv", "signed_by"))
    for path, rows in lake_cells.items():
        assert not signed_by & {cell.strip() for row in rows for cell in row}, path


@pytest.mark.parametrize(
    ("table", "column"), [("science/scientists.csv", "name"), ("science/birthdays.tsv", "person")]
)
def test_every_autograph_is_found_under_another_spelling(lake_cells, table, column):
    signed_by = user_column("my_autographs.csv", "signed_by")
    assert 15 <= len(signed_by) <= 30
    people = [letters(person) for person in distinct_cells(lake_cells, table, column)]
    slips = [
        min(sum(((a - b) + (b - a)).values()) for b in people) for a in map(letters, signed_by)
    ]
    assert max(slips) <= 2, dict(zip(signed_by, slips, strict=True))
    assert sum(slip > 0 for slip in slips) == 6


@pytest.mark.parametrize("module", ["facts/sheet.py", "facts/spellings.py"])
def test_examples_in_docstrings_are_true(module):
    done = ran([sys.executable, "-m", "doctest", str(EXAMPLES / module)])
    assert done.returncode == 0, done.stdout
    assert done.stdout == ""


def test_readme_counts_the_files_of_each_folder():
    readme = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    for folder in sorted(path for path in LAKE.iterdir() if path.is_dir()):
        assert f"| `{folder.name}/` | {len(files_under(folder))} |" in readme, folder.name


def test_readme_quotes_cells_that_are_there(lake_cells):
    readme = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    quoted = re.findall(r"`([a-z]+/[a-z0-9_.]+)`: ([^|]+?) \|", readme)
    assert len(quoted) >= 20
    for path, text in quoted:
        cells = {cell for row in lake_cells[path] for cell in row}
        assert text in cells or set(text.split(", ")) <= cells, (path, text)
