"""Tables of labelled pairs: what is read, and what is refused."""

import pytest

from pexeso.errors import InputError, QueryError
from pexeso.semantic.thresholds.labels import ColumnLabel, ValueLabel, read_labels, require_labels


@pytest.fixture
def written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.csv").write_text("name,town\nAda,Oslo\nBob,Rome\n", encoding="utf-8")

    def write(text: str):
        path = tmp_path / "labels.csv"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def test_pairs_of_values(written):
    path = written(
        '\ufeffQuery_Value; lake_value ;same\n"Curie; Marie";Marie '
        "Curie;YES\nOslo;Rome;0\nA;B;y\nC;D;False\n"
    )
    assert read_labels(path) == [
        ValueLabel("Curie; Marie", "Marie Curie", True),
        ValueLabel("Oslo", "Rome", False),
        ValueLabel("A", "B", True),
        ValueLabel("C", "D", False),
    ]


def test_pairs_of_columns(written):
    labels = read_labels(
        written(
            "query_column,lake_column,same\npeople.csv:town,a/b.csv:c,yes\npeople.csv:town,a:b.csv:#2,no\n"
        )
    )
    assert [(label.query.column, label.table, label.column, label.same) for label in labels] == [
        ("town", "a/b.csv", "c", True),
        ("town", "a:b.csv", "#2", False),
    ]
    assert labels[0].query is labels[1].query  # read once


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "a,b\n1,2\n",
            "must have the header query_value,lake_value,same or query_column,lake_column,same. "
            "Got a,b.",
        ),
        (
            "query_value,lake_value,same\nOslo,Rome,perhaps\n",
            "row 1: same must be yes or no. Got 'perhaps'.",
        ),
        ("query_value,lake_value,same\nOslo,Rome,\n", "row 1: same must be yes or no. Got ''."),
        ("query_value,lake_value,same\nA,B,no\n,Rome,no\n", "row 2: one of the two is empty."),
        (
            "query_column,lake_column,same\npeople.csv:town,cities,no\n",
            "TABLE:COLUMN. Got 'cities'.",
        ),
        ("query_column,lake_column,same\npeople.csv:age,b.csv:c,no\n", "row 1: "),
        ("query_column,lake_column,same\nnone.csv:a,b.csv:c,no\n", "none.csv"),
        ("query_value,lake_value,same\n" + "A,B,x\n" * 5, "And 2 more."),
    ],
)
def test_what_cannot_be_used_is_named(written, text, message):
    with pytest.raises(QueryError) as error:
        read_labels(written(text))
    assert message in str(error.value)
    assert "labels.csv" in str(error.value)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([], "Got 0 yes and 0 no."),
        ([ValueLabel("a", "b", True)], "Got 1 yes and 0 no."),
        ([ValueLabel("a", "b", True), ("a", "b", False)], "Got ValueLabel, tuple."),
        (
            [ValueLabel("a", "b", True), ColumnLabel(None, "t", "c", False)],
            "Got ColumnLabel, ValueLabel.",
        ),
    ],
)
def test_labels_must_be_of_one_kind_with_both_answers(labels, message):
    with pytest.raises(InputError) as error:
        require_labels(labels)
    assert message in str(error.value)
