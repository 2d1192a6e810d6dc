"""Two tables are joined by similar values without an index that stays."""

import os
import tempfile

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import pexeso

PEOPLE = pa.table({"firm": ["Acme Ltd", "Globex Corporation", None, "Initech"], "n": [4, 9, 1, 3]})
FIRMS = pa.table({"name": ["Globex Corp.", "ACME Limited", None], "city": ["Rome", "Oslo", "Bern"]})
CITIES = ["Oslo", "Rome", None, None]


@pytest.fixture(autouse=True)
def temporary_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", os.fspath(tmp_path))
    yield
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("kind", ["arrow", "pandas", "polars"])
def test_tables_of_every_kind_are_joined(kind):
    convert = {"arrow": lambda table: table, "pandas": pa.Table.to_pandas, "polars": pl.from_arrow}
    left, right = convert[kind](PEOPLE), convert[kind](FIRMS)
    joined = pexeso.fuzzy_join(left, right, left_on="firm", right_on="name")
    assert type(joined) is type(left)
    cities = joined["city"]
    if kind == "pandas":
        cities = cities.astype(object).where(cities.notna(), None)
    assert list(cities.to_pylist() if kind == "arrow" else cities.to_list()) == CITIES


def test_a_column_may_be_named_by_position_and_options_are_those_of_a_join():
    joined = pexeso.fuzzy_join(PEOPLE, FIRMS, 0, how="inner", provenance=("distance",))
    assert joined.column_names == ["firm", "n", "match_distance", "name", "city"]
    assert joined["match_distance"].to_pylist() == [0, 0]


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        (["5 Jan 2024", "2024-02-01"], ["2024-01-05", "2024-03-01"], ["2024-01-05", None]),
        ([10, 20], [20, 30], [None, 20]),
        (["A-1", "A-2"], ["A-2", "A-3"], [None, "A-2"]),
        (["Terminal 1"], ["Terminal 2"], [None]),
        (["Fee $7", "€9"], ["Fee €7", "€9"], [None, "€9"]),
        (["n/a", None], ["N/A", "a"], [None, None]),
        ([], ["a"], []),
    ],
)
def test_values_of_every_kind(left, right, expected):
    kind = pa.string() if not left or isinstance(left[0], str) else pa.int64()
    mine, others = (pa.table({"key": pa.array(side, kind)}) for side in (left, right))
    joined = pexeso.fuzzy_join(mine, others, on="key", provenance=())
    assert joined[joined.column_names[-1]].to_pylist() == expected


def test_keys_and_columns_of_types_of_pandas_are_joined():
    bins = pd.Series(pd.cut([1, 5, 8], [0, 3, 6, 9]))
    labels = pd.DataFrame({"bin": bins[::-1], "label": ["old", "adult", "child"]})
    joined = pexeso.fuzzy_join(pd.DataFrame({"bin": bins}), labels, on="bin")
    assert joined["label"].tolist() == ["child", "adult", "old"]
    places = pd.DataFrame({"city": ["Oslo", "Roma"], "bin": bins[:2]})
    joined = pexeso.fuzzy_join(pd.DataFrame({"city": ["Roma"]}), places, on="city")
    assert joined["bin"].tolist() == [bins[1]]
    months = pd.DataFrame({"month": pd.period_range("2024-01", periods=3, freq="M")})
    joined = pexeso.fuzzy_join(pd.DataFrame({"month": ["2024-02"]}), months, on="month")
    assert joined["month_right"].tolist() == ["2024-02"]


@pytest.mark.parametrize(
    "column",
    [
        pa.RunEndEncodedArray.from_arrays([1], ["x"]),
        pa.DictionaryArray.from_arrays(pa.array([0]), pa.array([[1]])),
        pa.DictionaryArray.from_arrays(pa.array([0]), pa.nulls(1)),
    ],
)
def test_columns_that_parquet_holds_otherwise_are_joined(column):
    others = pa.table({"city": ["Oslo"], "more": column})
    joined = pexeso.fuzzy_join(pa.table({"city": ["Oslo"]}), others, on="city")
    assert joined["more"].to_pylist() == column.to_pylist()


@pytest.mark.parametrize(
    ("mine", "others", "words"),
    [
        ("2024-01-05 14:30", "2024-01-05T16:30:00+02:00", "Your times have no time zone"),
        ("2024-01-05T14:30Z", "5 Jan 2024 2:30 pm", "Times of right.parquet:at have no time zone"),
        ("2024-01-05T14:30Z", "2024-01-05 15:30:00.0 GMT+1", None),
        ("2024-01-05 14:30", "05.01.2024 14:30", None),
        ("2024-01-05", "2024-01-05T00:00:00+02:00", None),
    ],
)
def test_times_that_are_read_as_those_of_utc_are_said(caplog, mine, others, words):
    joined = pexeso.fuzzy_join(pa.table({"at": [mine]}), pa.table({"at": [others]}), on="at")
    assert joined["match_distance"].to_pylist() == [0]
    assert (words or "") in caplog.text
    assert bool(words) == ("no time zone" in caplog.text)


def test_a_column_that_no_file_holds_is_refused_by_name():
    spans = pa.array([(1, 2, 3)], pa.month_day_nano_interval())
    others = pa.table({"city": ["Oslo"], "more": spans})
    with pytest.raises(pexeso.InputError, match=r"'more' of .* month_day_nano_interval, .*leave"):
        pexeso.fuzzy_join(pa.table({"city": ["Oslo"]}), others, on="city")


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        (["CA"], ["CA", "NY", "TX", "FL"], ["CA"]),
        (["DE", "Oslo"], ["DE", "FR", "IT", "ES", "PL"], ["DE", None]),
        (["CA", "NY", "TX"], ["CA", "Oslo", "Bonn", "Rome"], ["CA", None, None]),
        (["mars 2024"], ["janvier 2024", "février 2024", "mars 2024"], ["mars 2024"]),
        (["CA", "FR", "DE", "US"], ["CA", "NY", "TX", "FL"], [None] * 4),
    ],
)
def test_equal_cells_are_joined_where_one_column_does_not_say_what_they_mean(left, right, expected):
    joined = pexeso.fuzzy_join(pa.table({"key": left}), pa.table({"key": right}), on="key")
    assert joined["key_right"].to_pylist() == expected


def test_max_distance_is_that_of_the_search():
    left, right = pd.DataFrame({"key": ["Amsterdam"]}), pd.DataFrame({"key": ["Amsterdm"]})
    assert pexeso.fuzzy_join(left, right, "key")["match_value"].tolist() == ["Amsterdm"]
    joined = pexeso.fuzzy_join(left, right, "key", max_distance=0.01)
    assert joined["match_value"].isna().all()


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ((PEOPLE, FIRMS), pexeso.InputError, "Name the column to join by"),
        ((PEOPLE, FIRMS, "name"), pexeso.ColumnNotFoundError, "'name'"),
        ((PEOPLE, FIRMS, "firm"), pexeso.ColumnNotFoundError, "'firm'"),
        (("people.csv", FIRMS, "firm"), pexeso.InputError, "Got str instead"),
        ((PEOPLE, None, "firm"), pexeso.InputError, "Got NoneType instead"),
        ((PEOPLE, FIRMS[:0], 0), pexeso.InputError, "'name' of the table on the right has no val"),
        ((PEOPLE, pa.table({"key": ["n/a", None]}), 0), pexeso.InputError, "has no values"),
        (
            (PEOPLE, pa.table({"key": ["!!!"]}), 0),
            pexeso.InputError,
            "cannot be compared: No",
        ),
    ],
)
def test_what_is_no_table_or_column_is_refused(arguments, error, words):
    with pytest.raises(error, match=words):
        pexeso.fuzzy_join(*arguments)


@pytest.mark.parametrize("values", ["nearest", "one-to-one", "all"])
def test_equal_values_on_both_sides_are_refused_and_never_written_out(values):
    same = pa.table({"key": ["same"] * 100_000})
    with pytest.raises(pexeso.InputError, match="would make 10,000,000,000 rows"):
        pexeso.fuzzy_join(same, same, "key", values=values)


def test_equal_values_on_both_sides_are_aggregated():
    same = pa.table({"key": ["same"] * 100_000})
    joined = pexeso.fuzzy_join(same, same, "key", aggregate="count", provenance=(), suffix="_2")
    assert joined.num_rows == 100_000
    assert joined["key_2"].unique().to_pylist() == [100_000]


def test_an_index_that_does_not_stay_waits_for_no_disk(monkeypatch, tmp_path_factory):
    synced = []
    monkeypatch.setattr(os, "fsync", synced.append)
    pexeso.fuzzy_join(PEOPLE, FIRMS, left_on="firm", right_on="name")
    assert synced == []
    folder = tmp_path_factory.mktemp("lake")
    (folder / "firms.csv").write_text("name\nAcme\nGlobex\nHooli\nInitech\nUmbrella\n")
    pexeso.build_index(folder / "firms.csv", folder / "firms.pexeso")
    assert synced


def test_a_column_of_one_letter_is_joined_by_equal_letters():
    left, right = (pa.table({"key": [*letters, None]}) for letters in ("abca", "bcd"))
    joined = pexeso.fuzzy_join(left, right, "key", provenance=("value",))
    assert joined["match_value"].to_pylist() == [None, "b", "c", None, None]
    columns = pexeso.fuzzy_join(left, right, "key", provenance=()).column_names
    assert columns == ["key", "key_right"]


def test_names_of_companies_are_joined_by_their_names_whatever_the_legal_form():
    names = ["Nova Energy", "Nova Optik", "Aurora Foods", "Aurora Logistik", "Vega Textil"]
    ours, theirs = ["GmbH & Co. KG", "AG", "Ltd.", "AG", "Inc"], ["GmbH", "GmbH & Co. KG", "AG"]
    left = pd.DataFrame({"firm": [f"{n} {form}" for n, form in zip(names, ours, strict=True)]})
    forms = [*theirs, "GmbH & Co. KG", "S.A."]
    right = pd.DataFrame({"name": [f"{n} {form}" for n, form in zip(names, forms, strict=True)]})
    joined = pexeso.fuzzy_join(left, right, left_on="firm", right_on="name")
    assert joined["name"].tolist() == right["name"].tolist()


def test_texts_of_tables_in_memory_are_not_decoded():
    twice = [name.encode().decode("cp1252") for name in ("Zürich", "Köln", "Málaga")]
    joined = pexeso.fuzzy_join(
        pd.DataFrame({"k": twice}), pd.DataFrame({"r": twice}), left_on="k", right_on="r"
    )
    assert joined["r"].tolist() == joined["match_value"].tolist() == twice
    [group] = pexeso.cluster(pd.Series([twice[0], twice[0].lower()])).groups
    assert list(group.values) == [twice[0], twice[0].lower()]


@pytest.mark.parametrize(
    ("left", "right", "words"),
    [
        (["DE893704", "GB82WEST"], ["DE89 3704", "GB82 WEST"], "2 of 2 would match"),
        (["(10)", "+10", "7"], ["10", "7", "8"], "'(10)' with '10'"),
        (["Oslo", "Rome"], ["Oslo", "Oslo"], "1 value of your table is joined with several rows"),
        (["Oslo", "Rome"], ["Oslo", "Rome"], None),
    ],
)
def test_what_a_join_had_to_choose_is_said(caplog, left, right, words):
    with caplog.at_level("WARNING", logger="pexeso"):
        pexeso.fuzzy_join(pa.table({"a": left}), pa.table({"b": right}), left_on="a", right_on="b")
    assert len(caplog.messages) == (words is not None)
    assert words is None or words in caplog.text
