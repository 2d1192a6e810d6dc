"""Tables of aliases: what is read of them, what is refused, and values that they replace."""

import json
import pickle

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from long_runs import examples

from pexeso.errors import IndexCorruptError, InputError, TableReadError
from pexeso.lake.cells import CountedCells
from pexeso.lake.choose import ColumnRules
from pexeso.lake.normalise import aliases as alias_module
from pexeso.lake.normalise import aliases as module
from pexeso.lake.normalise.aliases import (
    AliasedNormaliser,
    Aliases,
    normaliser_from_json,
    read_aliases,
)
from pexeso.lake.normalise.normaliser import Normaliser
from pexeso.lake.records import counted_column_records, normalised_values, value_records
from pexeso.sets.part.records import records as token_records

CITIES = [("NYC", "New York City"), ("Big Apple", "nyc"), ("LA", "Los Angeles")]


def written(folder, rows, names=("alias", "name")):
    path = folder / "aliases.parquet"
    columns = zip(*rows, strict=True) if rows else [[] for _ in names]
    pq.write_table(pa.table([pa.array(column, pa.string()) for column in columns], names), path)
    return path


def read(folder, rows):
    return read_aliases(written(folder, rows), Normaliser())


def as_dict(aliases):
    rows = aliases._rows
    return dict(zip(rows["alias"].to_pylist(), rows["canonical"].to_pylist(), strict=True))


def test_aliases_are_normalised_and_followed_to_the_end(tmp_path):
    rows = [
        *CITIES,
        ("nyc", "NEW YORK CITY"),  # says the same
        ("New York City", "new york  city"),  # stands for itself
        ("Gotham", " Big Apple "),
        ("Empire City", "new york CITY"),  # written as in its first row
    ]
    assert as_dict(read(tmp_path, rows)) == {
        "nyc": "New York City",
        "big apple": "New York City",
        "gotham": "New York City",
        "empire city": "New York City",
        "la": "Los Angeles",
    }


def test_every_format_of_a_lake_is_read(tmp_path):
    path = tmp_path / "aliases.tsv"
    path.write_text("short\tlong\nNYC\tNew York City\n", encoding="utf-8")
    assert as_dict(read_aliases(path, Normaliser())) == {"nyc": "New York City"}
    path = tmp_path / "aliases.csv"
    path.write_text('short;long\nNYC;"New York; City"\n', encoding="latin-1")
    assert as_dict(read_aliases(str(path), Normaliser())) == {"nyc": "New York; City"}


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([("a", "b"), ("b", "c"), ("c", "a"), ("z", "a")], r"circle: 'a' → 'b' → 'c' → 'a'\."),
        ([("a", "b"), ("B", "A")], r"circle: 'a' → 'b' → 'a'\. Remove one of these rows"),
        (
            [("NYC", "New York"), ("x", "y"), ("nyc", "Newark")],
            r"alias 'NYC' in '.*' stands for two values: 'New York' \(row 1\) and 'Newark' "
            r"\(row 3\), the header not counted\. 1 rows contradict",
        ),
        (
            [("a", "b"), ("c", None), (None, "d")],
            r"Row 2 of '.*', the header not counted, has an empty cell.*2 rows have",
        ),
        (
            [("a", "b"), ("--", "c")],
            "Row 2 of .* one of which normalisation leaves nothing; 1 rows",
        ),
        ([("a", "A"), ("b", "b")], "has no alias: each of its 2 rows must have an alias"),
        ([], "has no alias: each of its 0 rows"),
    ],
)
def test_bad_tables_are_refused_by_a_sentence(tmp_path, rows, message):
    with pytest.raises(InputError, match=message):
        read(tmp_path, rows)


def test_other_numbers_of_columns_are_refused(tmp_path):
    for names in (("a",), ("a", "b", "c")):
        path = written(tmp_path, [("x",) * len(names)], names)
        with pytest.raises(InputError, match=rf"two columns.*has {len(names)}: \['a'"):
            read_aliases(path, Normaliser())


def test_what_is_no_table_is_refused(tmp_path):
    with pytest.raises(TableReadError, match=r"gone\.csv"):
        read_aliases(tmp_path / "gone.csv", Normaliser())


def test_long_circles_are_cut(tmp_path):
    rows = [(f"v{number}", f"v{(number + 1) % 50}") for number in range(50)]
    with pytest.raises(InputError, match=r"circle: ('v\d+' → ){8}\.\.\. \(42 more\) → 'v\d+'\."):
        read(tmp_path, rows)


def test_a_long_chain_and_many_rows_end_at_the_same_value(tmp_path, monkeypatch):
    monkeypatch.setattr(alias_module, "_CHUNK_SIZE", 7)
    monkeypatch.setattr(module, "_HASH_CHUNK_SIZE", 5)
    rows = [(f"v{number}", f"v{number + 1}") for number in range(200)]
    assert set(as_dict(read(tmp_path, rows[::-1])).values()) == {"v200"}


@settings(max_examples=examples(100))
@given(
    st.dictionaries(st.sampled_from("abcdefgh"), st.sampled_from("abcdefghij")),
    st.lists(st.sampled_from([*"abcdefghij", None]), max_size=8),
)
def test_replacing_is_following_the_table(tmp_path_factory, steps, values):
    """The judge follows one step after the other."""

    def end(value):
        seen = set()
        while steps.get(value, value) != value:
            if value in seen:
                return None
            seen.add(value)
            value = steps[value]
        return value

    rows = list(steps.items())
    path = tmp_path_factory.mktemp("aliases")
    circles = any(end(value) is None for value in steps)
    if circles or all(one == other for one, other in rows):
        with pytest.raises(InputError, match="go in a circle" if circles else "has no alias"):
            read(path, rows)
        return
    normaliser = AliasedNormaliser(Normaliser(), read(path, rows))
    array = pa.array(values, pa.string())
    expected = [None if value is None else end(value) for value in values]
    assert normaliser.resolved(array).to_pylist() == expected
    assert normaliser.normalise(array).to_pylist() == expected


def test_values_whose_hashes_are_equal_are_told_apart(monkeypatch):
    monkeypatch.setattr(module, "_HASHED_BYTES", 2)
    names = [f"ab{number:03d}" for number in range(100)]
    aliases = Aliases.of(pa.array(names), pa.array([name.upper() for name in names]))
    assert len(np.unique(aliases._rows["hash"])) == 1
    queries = pa.array([*names[::7], "ab100", None, "", "ab"])
    assert (
        aliases.canonical(queries).to_pylist() == [name.upper() for name in names[::7]] + [None] * 4
    )
    assert aliases.canonical(queries.slice(3, 2)).to_pylist() == ["AB021", "AB028"]
    assert aliases.canonical(pa.array([], pa.string())).to_pylist() == []


def test_hashes_are_the_same_on_every_machine():
    texts = pa.array(["", "a", "ab", "ba", "é", "a" * 64 + "b", "a" * 64 + "c", None])
    hashes = module._hashes(texts)
    assert hashes.tolist()[1:3] == [4929281584866343969, 7017054141178507391]
    assert hashes[5] == hashes[6], "only the first bytes count"
    assert len(set(hashes[:6].tolist())) == 6
    assert module._hashes(texts.slice(2, 2)).tolist() == hashes[2:4].tolist()


def test_aliases_are_sent_as_a_path_and_opened_once(tmp_path):
    aliases = read(tmp_path, CITIES)
    assert as_dict(pickle.loads(pickle.dumps(aliases))) == as_dict(aliases)
    normaliser = AliasedNormaliser(Normaliser(extra={"st": "street"}), aliases)
    kept = normaliser.kept_in(tmp_path)
    assert kept.kept_in(tmp_path / "nowhere") is kept
    sent = pickle.dumps(kept)
    assert len(sent) < 2000
    one, other = pickle.loads(sent), pickle.loads(sent)
    assert one.aliases is other.aliases
    assert one == normaliser
    assert hash(one) == hash(normaliser)
    assert one.normalise(pa.array(["big apple", "X St"])).to_pylist() == [
        "new york city",
        "x street",
    ]
    assert Normaliser().kept_in(tmp_path / "nowhere") == Normaliser()


def test_a_description_comes_back_with_the_files_of_a_catalog(tmp_path):
    normaliser = AliasedNormaliser(Normaliser(), read(tmp_path, CITIES)).kept_in(tmp_path)
    restored = normaliser_from_json(
        normaliser.to_json(), lambda kind: [[], [normaliser.aliases.path]]
    )
    assert restored == normaliser
    assert restored.fingerprint == normaliser.fingerprint != Normaliser().fingerprint
    assert restored.normalise(pa.array(["LA"])).to_pylist() == ["los angeles"]
    assert normaliser_from_json(Normaliser().to_json(), None) == Normaliser()
    lost = normaliser_from_json(normaliser.to_json(), lambda kind: [[]])
    with pytest.raises(IndexCorruptError, match="lists no file of the aliases"):
        lost.normalise(pa.array(["LA"]))
    for description in (3, {"count": 0, "digest": "0" * 32}, {"count": 1, "digest": "x"}):
        text = json.dumps({"version": 3, "rules": [], "extra": {}, "aliases": description})
        with pytest.raises(InputError, match="must be described by a count and a digest"):
            normaliser_from_json(text, None)


def test_a_file_of_other_aliases_is_refused(tmp_path):
    aliases = read(tmp_path, CITIES).save(tmp_path)
    read(tmp_path, [*CITIES[:2], ("LA", "Louisiana")]).save(tmp_path)
    with pytest.raises(IndexCorruptError, match="not those that the index was built with"):
        aliases.canonical(pa.array(["la"]))
    aliases.path.write_bytes(b"PAR1")
    with pytest.raises(IndexCorruptError, match=r"aliases-00000\.parquet"):
        aliases.canonical(pa.array(["la"]))


def normaliser_of(folder, rows):
    return AliasedNormaliser(Normaliser(), read(folder, rows))


def test_territories_may_be_aliases_by_code_and_by_name(tmp_path):
    normaliser = normaliser_of(tmp_path, [("DE", "Kingdom"), ("Netherlands", "Low Countries")])
    codes = pa.array(["FR", "DE", "ES", "IT", "NL", "BE", "PT", "AT", "SE"])
    assert normaliser.normalise(codes).to_pylist()[:2] == ["france", "kingdom"]
    assert normaliser.normalise(codes).to_pylist()[4] == "low countries"
    assert normaliser.normalise(pa.array(["DE", "x"])).to_pylist() == ["kingdom", "x"]


def test_values_that_become_equal_count_once_in_their_column(tmp_path):
    """Three of six values are codes, too few, but three of four once the others are the same."""
    normaliser = normaliser_of(tmp_path, [("first", "aa"), ("second", "aa"), ("third", "aa")])
    values = ["FR", "ES", "IT", "first", "second", "third"]
    by_hand = ["FR", "ES", "IT", "aa"]
    forms = normaliser.normalise(pa.array(values)).to_pylist()
    assert forms[:4] == Normaliser().normalise(pa.array(by_hand)).to_pylist()
    assert forms[0] == "france"


def test_cells_are_shown_as_they_are_and_counted_together(tmp_path):
    normaliser = normaliser_of(tmp_path, CITIES)
    column = pa.array(["N.Y.C.", "New York City", "nyc", "Rome", None])
    [counted_values] = normalised_values(CountedCells.of([column]), normaliser)
    assert counted_values.values.to_pylist() == ["new york city", "rome"]
    assert counted_values.texts.to_pylist() == ["N.Y.C.", "Rome"]
    assert counted_values.counts.to_pylist() == [3, 1]


def test_a_normaliser_without_aliases_touches_nothing():
    values = pa.array(["NYC", "Rome"])
    assert Normaliser().aliases is None
    assert Normaliser().resolved_distinct(values, np.zeros(2, np.int64)) is values
    assert Normaliser().resolved(pa.array(["b", None, "b"])).to_pylist() == ["b", None, "b"]


def test_an_alias_without_a_hit_gives_the_values_themselves(tmp_path):
    normaliser = normaliser_of(tmp_path, CITIES)
    values = pa.array(["Rome", None])
    assert normaliser.resolved_distinct(values, np.zeros(2, np.int64)) is values


def test_equal_by_alias_needs_an_alias_and_different_forms(tmp_path):
    normaliser = normaliser_of(tmp_path, CITIES)
    pairs = [
        ("NYC", "New York City", True),
        ("Big Apple", "N.Y.C.", True),
        ("NYC", "nyc", False),
        ("new york city", "New York City", False),
        ("UK", "United Kingdom", False),
    ]
    ours, theirs, expected = zip(*pairs, strict=True)
    assert normaliser.equal_by_alias(pa.array(ours), pa.array(theirs)).tolist() == list(expected)


def test_counted_columns_such_as_those_of_spark_tables_are_read_alike(tmp_path):
    normaliser = normaliser_of(tmp_path, CITIES)
    cells = [pa.array(["nyc", "New York City", "Rome"]), pa.array([2, 1, 1])]
    batches = counted_column_records(
        {"table": "t", "position": 0, "name": "city", "label": "city"},
        pa.StructArray.from_arrays(cells, ["values", "counts"]),
        4,
        ColumnRules(min_rows=1),
        normaliser,
        wanted=[value_records, token_records],
    )
    rows = [row for batch in batches for row in batch.to_pylist()]
    assert [
        (row["value"], row["text"], row["count"]) for row in rows if row["record"] == "value"
    ] == [("new york city", "nyc", 3), ("rome", "Rome", 1)]
    tokens = [row["value"] for row in rows if row["record"] == "token"]
    assert tokens == ["New York City", "Rome"]
