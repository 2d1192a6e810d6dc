"""Tables for people and documents for programs, without any index."""

import json

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from pexeso.faces.cli.output import (
    display_width,
    human_bytes,
    output_options,
    plain,
    table_lines,
    write_json,
    write_json_with_rows,
)
from pexeso.faces.cli.report import milliseconds, percent


@given(st.text(), st.integers(20, 100))
def test_a_shown_text_is_one_line_without_control_characters(text, limit):
    shown = plain(text, limit)
    assert len(shown.splitlines()) <= 1
    assert not any(ord(letter) < 32 or 127 <= ord(letter) < 160 for letter in shown)
    if len(text) > limit:
        assert f"({len(text):,} chars)" in shown


@given(st.text(max_size=40))
def test_a_plain_text_is_shown_as_it_is(text):
    if text.isprintable():
        assert plain(text) == text


def test_directions_of_writing_cannot_be_turned():
    assert plain("a\u202eb") == "a\\u202eb"


@given(st.lists(st.tuples(st.text(max_size=12), st.text(max_size=12)), min_size=1, max_size=5))
def test_columns_line_up(rows):
    lines = table_lines(("first", "second"), [(left, f"{right}|") for left, right in rows], "<>")
    assert len({display_width(line) for line in lines[1:]}) == 1


def test_wide_letters_and_marks_are_counted():
    lines = table_lines(("city", "n"), [("東京", "1"), ("Oslo", "2"), ("Ko\u0308ln", "3")], "<>")
    assert lines == ["city  n", "東京  1", "Oslo  2", "Ko\u0308ln  3"]


@pytest.mark.parametrize(
    "document", [{}, {"a": []}, {"a": [{"b": "ü"}, [1, None]], "c": {"d": [1, 2]}, "e": "x\ny"}]
)
def test_json_stays_json_however_it_is_laid_out(document, capsys):
    write_json(document)
    assert json.loads(capsys.readouterr().out) == document


@pytest.mark.parametrize("rows", [[], [{"a": 1}], [{"a": 1}, {"b": None}]])
def test_json_with_rows_is_written_as_if_it_were_one_document(rows, capsys):
    write_json({"groups": [1, 2], "n": {}, "rows": rows})
    whole = capsys.readouterr().out
    write_json_with_rows({"groups": [1, 2], "n": {}}, "rows", iter(rows))
    assert capsys.readouterr().out == whole


def test_json_has_one_result_a_line(capsys):
    write_json({"query": {"rows": 1}, "results": [{"table": "a"}, {"table": "b"}]})
    assert capsys.readouterr().out == (
        '{\n  "query": {"rows": 1},\n  "results": [\n    {"table": "a"},\n    {"table": "b"}\n  '
        "]\n}\n"
    )


@pytest.mark.parametrize(
    ("joinability", "shown"),
    [(1.0, "100.0 %"), (0.99999, "99.9 %"), (0.00001, "0.1 %"), (0.0, "0.0 %"), (2 / 3, "66.7 %")],
)
def test_shares_are_never_rounded_to_all_or_nothing(joinability, shown):
    assert percent(joinability) == shown


@pytest.mark.parametrize(
    ("n_bytes", "shown"),
    [
        (0, "0 bytes"),
        (999, "999 bytes"),
        (1000, "1.0 kB"),
        (999_949, "999.9 kB"),
        (999_999, "1.0 MB"),
        (5e15, "5,000.0 TB"),
    ],
)
def test_bytes_for_people(n_bytes, shown):
    assert human_bytes(n_bytes) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"), [(0.0, "0.0"), (0.00994, "9.9"), (0.00996, "10"), (1.2345, "1,234")]
)
def test_milliseconds_for_people(seconds, shown):
    assert milliseconds(seconds) == shown


@pytest.mark.parametrize(
    ("arguments", "form"),
    [([], None), (["--json"], "json"), (["--csv"], "csv"), (["--json", "--csv"], "csv")],
)
def test_the_last_output_option_counts(arguments, form):
    import click

    @click.command()
    @output_options("json", "csv")
    def command(form):
        click.echo(repr(form))

    assert CliRunner().invoke(command, arguments).stdout == f"{form!r}\n"


def test_a_long_cell_moves_its_own_row_only():
    rows = [("1", "a" * 1000, "x"), ("2", "short.csv", "y")]
    lines = table_lines(("n", "table", "column"), rows, "><<", limit=1000)
    assert lines == ["n  table      column", f"1  {'a' * 1000}  x", "2  short.csv  y"]
