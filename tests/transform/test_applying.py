"""Programs applied to columns write what they write for single rows."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given

from pexeso.errors import InputError
from pexeso.transform.programs import applying
from pexeso.transform.programs.applying import apply_program
from pexeso.transform.programs.program import MAX_WRITTEN, Constant, Extract, Program, Split
from tests.transform.random_programs import ROWS, programs, random_programs, rows


def columns_of(table):
    return [pa.array([row[column] for row in table], pa.string()) for column in (0, 1)]


@given(programs, rows)
def test_columns_are_written_as_single_rows_are(program, table):
    written = apply_program(program, columns_of(table))
    assert written.type == pa.string()
    assert written.to_pylist() == [program.of(row) for row in table]


def test_hard_rows_are_written_as_single_rows_are():
    columns = columns_of(ROWS)
    for program in random_programs(400):
        assert apply_program(program, columns).to_pylist() == [program.of(r) for r in ROWS], program


@pytest.mark.parametrize(("rows_", "n_bytes"), [(1, 1 << 20), (7, 1 << 20), (1 << 17, 100)])
def test_batches_follow_each_other_in_the_order_of_the_rows(monkeypatch, rows_, n_bytes):
    monkeypatch.setattr(applying, "BATCH_ROWS", rows_)
    monkeypatch.setattr(applying, "BATCH_BYTES", n_bytes)
    first, second = columns_of(ROWS * 3)
    chunked = pa.chunked_array(
        [first[:10].cast(pa.large_string()), first[10:].cast("large_string")]
    )
    for program in random_programs(20, seed=1):
        written = apply_program(program, [chunked, second])
        assert written.to_pylist() == [program.of(row) for row in ROWS * 3]


def test_no_batch_is_larger_than_stated(monkeypatch):
    monkeypatch.setattr(applying, "BATCH_BYTES", 1000)
    columns = [pa.array(["x" * 90] * 100 + ["y" * 3000] + ["z"] * 400)]
    program = Program((Extract(0), Constant("c" * 10)))
    stops = [stop for stop, _ in applying._written(program, {0: columns[0]}, 0, 501)]
    assert stops[-1] == 501
    for start, stop in zip([0, *stops], stops, strict=False):
        assert stop == start + 1 or (
            columns[0][start:stop].nbytes <= 1000 and 10 * (stop - start) <= 1000
        )


def test_a_split_is_made_once_for_all_operators_that_use_it(monkeypatch):
    made = []
    split = applying.pc.split_pattern
    monkeypatch.setattr(
        applying.pc, "split_pattern", lambda texts, by: made.append(by) or split(texts, by)
    )
    bracket = Split("(", 0)
    operators = (
        Extract(0, (bracket, Split(", ", 1))),
        Extract(0, (bracket, Split(", ", 0))),
        Extract(0, (bracket,)),
        Extract(0, (Split("(", 1),)),
    )
    text = "Obama, Barack(1961-)"
    assert apply_program(Program(operators), [pa.array([text])]).to_pylist() == [
        "BarackObamaObama, Barack1961-)"
    ]
    assert made == ["(", ", "]


def test_programs_without_columns_write_their_constants():
    columns = [pa.array(["a", None])]
    assert apply_program(Program((Constant("x"), Constant("y"))), columns).to_pylist() == ["xy"] * 2
    assert apply_program(Program(()), columns).to_pylist() == ["", ""]
    assert apply_program(Program((Extract(0),)), [pa.array([], "string")]).to_pylist() == []


def test_more_than_two_gibibytes_are_refused(monkeypatch):
    class Large(applying._Batch):
        def of(self, program):
            return type("Written", (), {"nbytes": 1 << 31})()

    monkeypatch.setattr(applying, "_Batch", Large)
    with pytest.raises(
        InputError, match=r"writes 2,147,483,648 bytes for the first 1 of 1 rows; at most 2 GiB"
    ):
        apply_program(Program((Extract(0),)), [pa.array(["a"])])


def test_the_2_gibibytes_are_counted_while_rows_are_written(monkeypatch):
    monkeypatch.setattr(applying, "MAX_BYTES", 1000)
    monkeypatch.setattr(applying, "BATCH_ROWS", 1)
    made = []
    of = applying._Batch.of
    monkeypatch.setattr(
        applying._Batch,
        "of",
        lambda batch, program: made.append(batch.n_rows) or of(batch, program),
    )
    with pytest.raises(InputError, match=r"bytes for the first [0-9]+ of 500 rows; at most 2 GiB"):
        apply_program(Program((Extract(0), Constant("b" * 100))), [pa.array(["a"] * 500)])
    assert len(made) < 15


LONG = Extract(0, replacements=(("a", "a" * 10_000), ("a", "a" * 10_000)))


def test_what_replacements_write_is_counted_before_it_is_written():
    columns = [pa.array(["b", "a" * 20])]
    before = pa.default_memory_pool().max_memory()
    with pytest.raises(InputError, match=r"would write 2,000,000,000 characters for one row; at m"):
        apply_program(Program((LONG,) * 16), columns)
    assert pa.default_memory_pool().max_memory() < before + (1 << 24)
    with pytest.raises(InputError, match=r"would write 2,000,000,000 characters for one row; at m"):
        Program((LONG,)).of(["a" * 20])
    assert apply_program(Program((LONG,)), [pa.array(["b"])]).to_pylist() == ["b"]


def test_a_replacement_may_write_as_much_as_a_cell_has():
    once = Extract(0, replacements=(("é", "b" * 1024),))
    at_limit, above = "é" * 1024, "é" * 1024 + "x"
    assert apply_program(Program((once,)), [pa.array([at_limit])])[0].as_py() == "b" * MAX_WRITTEN
    assert Program((once,)).of([at_limit]) == "b" * MAX_WRITTEN
    with pytest.raises(InputError, match="would write 1,048,577 characters"):
        apply_program(Program((once,)), [pa.array([above])])
    with pytest.raises(InputError, match="would write 1,048,577 characters"):
        Program((once,)).of([above])


def test_many_rows_that_become_long_are_written_in_small_batches(monkeypatch):
    monkeypatch.setattr(applying, "BATCH_BYTES", 1 << 12)
    seen = []
    of = applying._Batch.of
    monkeypatch.setattr(
        applying._Batch,
        "of",
        lambda batch, program: seen.append(batch.n_rows) or of(batch, program),
    )
    program = Program((Extract(0, replacements=(("a", "bc" * 100),)), Constant("!")))
    rows = ["a" * (number % 7) for number in range(100)]
    expected = [program.of([row]) for row in rows]
    assert apply_program(program, [pa.array(rows)]).to_pylist() == expected
    assert len(seen) > 16
