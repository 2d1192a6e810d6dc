"""Keys with similar values in built indexes, against plain loops over rows, mappings and keys."""

import csv
import random
from collections import Counter
from itertools import permutations

import pytest
from long_runs import EVERYTHING, long_but

import pexeso
from pexeso.composite import similar_keys as similar
from pexeso.composite.key_table import key_table
from pexeso.errors import InputError, QueryError
from pexeso.lake.columns import label_columns
from pexeso.lake.containers.reader import read_table
from pexeso.lake.normalise.normaliser import Normaliser
from pexeso.lake.tokens import key_texts

COUNTRIES = ["Burma", "Germany", "United Kingdom", "Ivory Coast", "São Tomé", "Straße Nord", "ΟΔΟΣ"]
TABLES = {
    "exports.csv": [
        ["Country", "Year", "Tons"],
        *[[name, str(1999 + n % 3), str(n)] for n, name in enumerate(COUNTRIES * 2)],
        ["", "2000", "1"],
        ["Germany", "", "2"],
    ],
    "letters.csv": [
        ["nation", "seen", "year"],
        ["BURMA ", "burmah", "1999"],
        ["germny", "Germany", "2000"],
        ["untied kingdom", "United  Kingdom", "2001"],
        ["Cote d'Ivoire", "ivory coasts", "1999"],
        ["sao tome", "Sao Tomé", "2000"],
        ["STRASSE NORD", "strasse nordd", "2001"],
        ["οδος", "Οδός", "1999"],
        ["", "Burma", "1999"],
    ],
    "others.csv": [
        ["when", "where", "who"],
        ["3/5/1999", "Germany (West)", "Ann"],
        ["4/5/1999", "germanys", "Bob"],
        ["25/12/2000", "NYC", "Ann"],
        ["5 May 1999", "New York", "Cid"],
        ["2000-12-25", "new york city", "Bob"],
        ["5 May 1999", "Germany", "Ann"],
    ],
    "copy.csv": [
        ["y", "c", "c"],
        *[[str(1999 + n % 3), name.upper(), name] for n, name in enumerate(COUNTRIES)],
    ],
    "few.csv": [["country", "year"], ["Germany", "2000"], ["Burma", "1999"]],
    "numbers.csv": [["year", "code"], *[[str(1999 + n % 3), str(n)] for n in range(6)]],
}
QUERY = {
    "land": [
        "Burma", "GERMANY", "germany", "Untied Kingdom", "Ivory  Coast", "Sao Tome", "οδός",
        "Straße Nord", None, "new york", "Burma",
    ],
    "year": [1999, 2000, 2000, 2001, 1999, 2000, 1999, 2001, 1999, 1999, 1999],
    "day": [
        "1999-05-03", "4 May 1999", "25 Dec 2000", "5/5/1999", "x", "", "1999", "1999", "a", "b",
        "c",
    ],
    "person": ["ann", "BOB", "Ann", "cid", "Dora", "ann", "1", "2", "bob", "Anne", "annn"],
}  # fmt: skip


def write_lake(folder):
    folder.mkdir()
    for name, rows in TABLES.items():
        with (folder / name).open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows(rows)
    return folder


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    return write_lake(tmp_path_factory.mktemp("similar") / "lake")


@pytest.fixture(scope="module")
def by_letters(lake):
    return pexeso.build_index(lake, lake.parent / "letters.pexeso", parts=["composite"])


@pytest.fixture(scope="module")
def by_vectors(lake):
    """An index with vectors, in which case matters, and with aliases that make a chain."""
    aliases = lake.parent / "aliases.csv"
    aliases.write_text("alias,canonical\nNYC,new york\nnew york,new york city\n", encoding="utf-8")
    return pexeso.build_index(
        lake, lake.parent / "vectors.pexeso", parts=["composite"], model="hashing", dimensions=64,
        normaliser=Normaliser().switched(off=["case"]), aliases=str(aliases), n_partitions=2,
    )  # fmt: skip


def texts_of(column, normaliser):
    return key_texts(normaliser.resolved(column)).to_pylist()


def search_slowly(index, lake, query, columns, max_distance):
    """Return matched keys with a minus, table and labels of all tables, by the definition."""
    opened = index._snapshot.opened
    normaliser = opened.normaliser
    question = key_table(query, columns)
    keys = Counter(key for key in zip(*asked_texts(question, normaliser), strict=True) if all(key))
    stored = opened.catalog.columns(["table", "position", "column_id"]).to_pylist()
    kept = {(row["table"], row["position"]) for row in stored if row["column_id"] is not None}
    rows = []
    for name in sorted(TABLES):
        table = read_table(lake / name)
        labels = label_columns(table.names)
        texts = [texts_of(column, normaliser) for column in table.columns]
        values = [normaliser.normalise(column).to_pylist() for column in table.columns]
        pairs = {
            (i, at): similar_pairs(index, question, i, name, labels[at], normaliser, max_distance)
            for i, column in enumerate(question.key)
            for at in range(len(labels))
            if column.similar and (name, at) in kept
        }

        def matches(i, at, row, value, question=question, pairs=pairs, texts=texts, values=values):
            if not question.key[i].similar:
                return texts[at][row] == value
            return texts[at][row] is not None and (value, values[at][row]) in pairs.get((i, at), ())

        best = (0, None)
        for mapping in permutations(range(len(labels)), len(question.key)):
            joined = {
                key
                for row in range(table.n_rows)
                for key in keys
                if all(matches(i, at, row, key[i]) for i, at in enumerate(mapping))
            }
            if len(joined) > best[0]:
                best = (len(joined), [labels[at] for at in mapping])
        if best[0]:
            rows.append((-best[0], name, best[1]))
    return sorted(rows, key=lambda one: one[:2])


def asked_texts(question, normaliser):
    return [texts.to_pylist() for texts in question.key_texts(normaliser)]


def similar_pairs(index, question, i, table, label, normaliser, max_distance):
    """Return key texts of the query and normalised values of a column that are near each other."""
    column = question.cells[question.key[i].position]
    explanation = index.explain(column, table, label, max_distance=max_distance)
    forms = dict(
        zip(
            [str(cell) for cell in column.to_pylist()],
            asked_texts(question, normaliser)[i],
            strict=True,
        )
    )
    return {(forms[pair.query], pair.key) for pair in explanation.match.pairs()}


def in_short(result):
    return [(-match.matched_keys, match.table, list(match.columns)) for match in result]


KEYS = (
    ["land~", "year"],
    ["year", "land~"],
    ["land~", "day~"],
    ["day~", "person", "land~"],
    ["person~", "day~"],
    ["year~", "land"],
)


@pytest.mark.parametrize("columns", long_but(KEYS[1:4], KEYS), ids=",".join)
@pytest.mark.parametrize("max_distance", long_but([None], [None, 0.0, 0.6]))
@pytest.mark.parametrize("kind", ["by_letters", "by_vectors"])
def test_the_answer_is_that_of_plain_loops(request, lake, kind, columns, max_distance):
    index = request.getfixturevalue(kind)
    given = {} if max_distance is None else {"max_distance": max_distance}
    reach = index.usual_max_distance if max_distance is None else max_distance
    expected = search_slowly(index, lake, QUERY, columns, reach)
    answer = index.search_composite(QUERY, columns, k="all", **given)
    assert in_short(answer) == expected
    assert answer.options["max_distance"] == reach
    for k in (1, 2):
        assert in_short(index.search_composite(QUERY, columns, k=k, **given)) == expected[:k]


def test_case_accents_and_letters_that_are_wrong_do_not_keep_keys_apart(by_letters):
    hits = {match.table: match for match in by_letters.search_composite(QUERY, ["land~", "year"])}
    assert {"letters.csv", "exports.csv", "copy.csv"} <= set(hits)
    best = hits["letters.csv"]
    assert (best.matched_keys, best.columns) == (7, ("nation", "year"))
    equal = by_letters.search_composite(QUERY, ["land", "year"])
    assert max(match.matched_keys for match in equal if match.table == "letters.csv") < 7


def test_pairs_of_a_match_are_told_with_their_distances(by_letters):
    result = by_letters.search_composite(QUERY, ["land~", "year"])
    match = next(match for match in result if match.table == "letters.csv")
    pairs = match.similar_pairs(None)["nation"]
    assert [pair.distance for pair in pairs] == sorted(pair.distance for pair in pairs)
    distances = {(pair.value, pair.cell): pair.distance for pair in pairs}
    assert distances["germany", "germny"] > 0
    assert ("untied kingdom", "untied kingdom") not in distances  # equal texts
    explained = by_letters.explain(QUERY["land"], "letters.csv", "nation", max_distance=0.4)
    known = {
        (pair.query.casefold(), pair.value.casefold()): pair for pair in explained.match.pairs()
    }
    assert distances["germany", "germny"] == known["germany", "germny"].distance
    assert match.similar_pairs(1) == {"nation": pairs[:1]}
    document = result.to_dict(explain=True)
    assert document["query"]["similar"] == ["land"]
    row = next(row for row in document["results"] if row["table"] == "letters.csv")
    assert row["similar_pairs"]["nation"][0] == vars(pairs[0])
    assert "similar_pairs" not in match.to_dict()


@pytest.mark.long
def test_every_text_of_a_value_is_found_not_only_the_one_that_the_index_keeps(by_letters):
    """The date stands as 25/12/2000 in another row of the column."""
    query = {"who": ["Bob"], "day": ["25 Dec 2000"]}
    answer = by_letters.search_composite(query, ["who", "day~"], max_distance=0)
    assert in_short(answer) == [(-1, "others.csv", ["who", "when"])]


def test_what_an_alias_stands_for_is_not_read_as_an_alias_again(by_vectors):
    query = {"where": ["NYC"], "day": ["25/12/2000"]}
    answer = by_vectors.search_composite(query, ["where~", "day"], max_distance=0)
    assert in_short(answer) == [(-1, "others.csv", ["where", "when"])]


def test_few_tables_at_a_time_give_the_same_answer(by_letters, monkeypatch):
    expected = {
        k: in_short(by_letters.search_composite(QUERY, ["land~", "year"], k=k)) for k in (1, 3)
    }
    monkeypatch.setattr(similar, "FIRST_TABLES", 1)
    for k, answer in expected.items():
        result = by_letters.search_composite(QUERY, ["land~", "year"], k=k)
        assert in_short(result) == answer
    assert result.stats["tables"] <= 4


def test_random_queries_of_the_lake_itself(by_letters, by_vectors, lake):
    draw = random.Random(1)
    for _ in range(12 if EVERYTHING else 5):
        name = draw.choice(sorted(TABLES))
        table = read_table(lake / name)
        n = draw.choice([n for n in (2, 3) if n <= len(table.names)])
        places = draw.sample(range(len(table.names)), n)
        columns = [f"#{place}{draw.choice(['~', '~', ''])}" for place in places]
        columns[0] = f"#{places[0]}~"
        index = draw.choice([by_letters, by_vectors])
        reach = draw.choice([0.1, 0.3, 0.5])
        query = str(lake / name)
        answer = index.search_composite(query, columns, k="all", max_distance=reach)
        assert in_short(answer) == search_slowly(index, lake, query, columns, reach)
        own = index.search_composite(query, columns, k="all", max_distance=reach, exclude_self=True)
        assert in_short(own) == [one for one in in_short(answer) if one[1] != name]


def test_a_share_of_the_keys_and_empty_queries(by_letters):
    assert by_letters.search_composite({"a": [None], "b": ["1"]}, ["a~", "b"]).matches == ()
    assert by_letters.search_composite({"a": ["--"], "b": ["1999"]}, ["a~", "b"]).matches == ()
    whole = by_letters.search_composite(QUERY, ["land~", "year"], k="all")
    answer = by_letters.search_composite(QUERY, ["land~", "year"], k="all", min_joinability=0.5)
    assert in_short(answer) == [
        one for one, match in zip(in_short(whole), whole, strict=True) if match.joinability >= 0.5
    ]


def test_options_that_do_not_go_with_a_key_are_refused(by_letters):
    with pytest.raises(InputError, match="max_distance is for columns of a key whose values"):
        by_letters.search_composite(QUERY, ["land", "year"], max_distance=0.1)
    with pytest.raises(InputError, match="row_filter is for keys of equal values alone"):
        by_letters.search_composite(QUERY, ["land~", "year"], row_filter="xash")
    with pytest.raises(InputError, match=r"max_distance must be a number in \[0, 1\]"):
        by_letters.search_composite(QUERY, ["land~", "year"], max_distance=2)
    with pytest.raises(QueryError, match="two columns or more"):
        by_letters.search_composite(QUERY, ["land~"])
