"""Programs, casing and conversions: what they write for single rows and for columns."""

from __future__ import annotations

import datetime
import random

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from long_runs import EVERYTHING

import pexeso
from pexeso.errors import InputError
from pexeso.transform.programs import applying
from pexeso.transform.programs.applying import apply_program, cased_array
from pexeso.transform.programs.conversions import conversion, lists
from pexeso.transform.programs.program import (
    MAX_WRITTEN,
    Constant,
    Extract,
    Program,
    Split,
    cased,
    lower,
    title,
    upper,
)
from tests.transform.random_programs import CASINGS, ROWS, programs, random_programs, rows, texts


@pytest.mark.parametrize(
    ("operator", "text", "piece"),
    [
        (Extract(0, start=1, length=2), "abc", "bc"),
        (Extract(0, start=2, length=2), "abc", None),
        (Extract(0, start=3), "abc", None),
        (Extract(0, start=-3), "abc", "abc"),
        (Extract(0, start=-4), "abc", None),
        (Extract(0, start=-2, length=1), "abc", "b"),
        (Extract(0), "", ""),
        (Extract(0, start=-1), "", None),
        (Extract(0), None, None),
        (Extract(0, (Split("-", 1),)), "abc", None),
        (Extract(0, (Split("-", -1),)), "a-b-c", "c"),
        (Extract(0, (Split("-", -4),)), "a-b-c", None),
        (Extract(0, (Split("-", 1),)), "a--c", ""),
        (Extract(0, (Split("aa", 1),)), "aaa", "a"),
        (Extract(0, (Split("-", -2, "to"),)), "a-b-c", "a-b"),
        (Extract(0, (Split("-", 1, "from"),)), "a-b-c", "b-c"),
        (Extract(0, (Split("-", 3, "from"),)), "a-b-c", None),
        (Extract(0, casing="upper", replacements=(("-", " "), ("c", ""))), "a-b-c", "A B "),
        (Extract(0, length=5, shorter=True), "abc", "abc"),
        (Extract(0, start=3, length=5, shorter=True), "abc", None),
        (Extract(0, start=-2, length=5, shorter=True), "abc", "bc"),
    ],
)
def test_a_step_that_does_not_apply_writes_nothing_and_is_not_cut_short(operator, text, piece):
    assert operator.of([text]) == piece


PLACES = [*range(-4, 5)]


@pytest.mark.parametrize("shorter", [False, True])
@pytest.mark.parametrize("length", [None, 1, 2, 3, 5])
@pytest.mark.parametrize("start", PLACES)
def test_a_piece_is_there_from_a_number_of_characters_on(start, length, shorter):
    extract = Extract(0, start=start, length=length, shorter=shorter)
    min_length = extract.min_length
    for n_characters in range(10):
        piece = extract.of(["abcdefghij"[:n_characters]])
        assert (piece is not None) == (min_length is not None and n_characters >= min_length)


def test_letters_are_cased_one_by_one():
    assert lower("ΑΣ") == "\N{GREEK SMALL LETTER ALPHA}\N{GREEK SMALL LETTER SIGMA}"
    assert lower("İ") == "i"
    assert upper("ﬁne ß") == "ﬁNE SS"
    assert title("McDONALD's 3rd_x") == "Mcdonald'S 3Rd_X"


def test_a_greek_letter_with_an_iota_has_one_capital():
    assert upper("ᾳ ᾼ ῲ ǆ") == "ᾼ ᾼ ῲ Ǆ"


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


EVERY_CHARACTER = [
    chr(point)
    for point in range(0x110000)
    if not 0xD800 <= point < 0xE000 and (EVERYTHING or point < 0x20000 or point % 64 == 0)
]
"""All characters. Of those from U+20000 on, which have no case, a short run takes some."""


@given(st.lists(st.none() | texts), st.sampled_from(CASINGS))
def test_a_column_is_cased_as_its_texts_are(column, casing):
    expected = [None if text is None else cased(text, casing) for text in column]
    assert cased_array(pa.array(column, pa.string()), casing).to_pylist() == expected


@pytest.mark.parametrize("casing", CASINGS)
def test_every_character_there_is_and_its_neighbours(casing):
    column = [f"{character}a{character}" for character in EVERY_CHARACTER]
    made = cased_array(pa.array(column), casing)
    made.validate(full=True)
    assert made.to_pylist() == [cased(text, casing) for text in column]


def slices_of(word):
    """Return slices that begin behind the first text, the last by its offsets alone."""
    yield pa.array(["before", word, "", word, "behind"])[1:4]
    yield pa.array(["before", word, None, "", word, "behind"])[1:5]
    yield pa.array(["before", word, "behind"], pa.large_string())[1:].cast(pa.string())


@pytest.mark.parametrize("casing", CASINGS)
@pytest.mark.parametrize("word", ["O'NEIL mc", "straße ǅ"])
def test_a_slice_keeps_its_rows(casing, word):
    for column in slices_of(word):
        expected = [None if text is None else cased(text, casing) for text in column.to_pylist()]
        assert cased_array(column, casing).to_pylist() == expected
    assert column.offset == 0


def test_what_lies_under_a_null_is_not_read():
    # Bytes that are no UTF-8, hidden by the bitmap.
    hidden = pa.StringArray.from_buffers(
        2,
        pa.py_buffer(b"\0\0\0\0\2\0\0\0\3\0\0\0"),
        pa.py_buffer(b"\xff\xfeA"),
        pa.py_buffer(b"\2"),
    )
    assert cased_array(hidden, "title").to_pylist() == [None, "A"]


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("pad 5", "77", "00077"),
        ("pad 2", "777", "777"),
        ("strip zeros", "0070", "70"),
        ("strip zeros", "000", "0"),
        ("initials", "Ada King Lovelace", "AKL"),
        ("unaccented", "Zoë Łukasz Ñandú ß", "Zoe Lukasz Nandu ß"),
        ("group ,", "1234567", "1,234,567"),
        ("group '", "123", "123"),
        ("group ,", "-1234", None),
        ("with EAN digit", "400638133393", "4006381333931"),
        ("with Luhn digit", "7992739871", "79927398713"),
        ("to ISBN-13", "0-306-40615-2", "9780306406157"),
        ("to ISBN-10", "978-3-16-148410-0", "316148410X"),
        ("to ISBN-10", "9791034304998", None),
        ("IBAN DE", "370400440532013000", "DE89370400440532013000"),
        ("IBAN BE", "539007547034", "BE68539007547034"),
        ("times 1000", "1.5", "1500"),
        ("times 0.001", "1500", "1.5"),
        ("times 2.54 to 1", "1", "2.5"),
        ("times 1000", "1,5", None),
        ("over 60", "120", "2"),
        ("over 60", "121", None),
        ("English months to numbers", "MAR", "3"),
        ("German months to two-digit numbers", "März", "03"),
        ("numbers to French months", "08", "août"),
        ("countries to codes", "germany", "DE"),
        ("countries to three-letter codes", "Germany", "DEU"),
        ("codes to states", "TX", "Texas"),
        ("codes to currencies", "SEK", "Swedish Krona"),
        ("codes to currencies", "GBP", "British Pound"),
        ("currencies to codes", "British pound", "GBP"),
        ("currencies to codes", "Pound Sterling", "GBP"),
    ],
)
def test_a_text_is_converted(name, text, expected):
    assert conversion(name).of(text) == expected


@pytest.mark.parametrize(
    "name", ["", "pad 0", "pad 100", "group a", "times 1e9", "over 0", "IBAN D1", "countries to x"]
)
def test_what_is_no_conversion_is_refused(name):
    with pytest.raises(InputError, match="there is no conversion"):
        conversion(name)


def test_lists_go_back_and_forth():
    for (kind, form), entries in lists().items():
        back = lists().get((form, kind))
        if back is not None and kind in ("codes", "three-letter codes"):
            assert {text: back[new.lower()].lower() for text, new in entries.items()} == {
                text: text for text in entries
            }
        if form == "numbers":
            assert sorted(set(entries.values()), key=int) == [str(n) for n in range(1, 13)]


def numbers(seed):
    drawn = random.Random(seed)
    return [str(drawn.randrange(10 ** drawn.choice((3, 4, 6)))) for _ in range(40)]


DAYS = [datetime.date(2024, 1, 1) + datetime.timedelta(7 * week) for week in range(40)]
ENGLISH = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()  # noqa: SIM905  shorter
LEARNED = {
    "zeros": [(number, number.rjust(8, "0")) for number in numbers(1)],
    "zeros behind a letter": [(number, f"N{number.rjust(8, '0')}") for number in numbers(2)],
    "thousands": [(number, f"{int(number):,}") for number in numbers(3)],
    "metres": [(number, f"{number}000") for number in numbers(4) if number != "0"],
    "minutes": [(str(60 * int(number)), number) for number in numbers(5)],
    "percent": [(f"{n / 8:g}", f"{12.5 * n:g} %") for n in range(1, 40)],
    "names of months": [(f"{ENGLISH[d.month - 1]} {d.day}, {d.year}", d.isoformat()) for d in DAYS],
    "months": [(f"{ENGLISH[m]}-24", f"2024-{m + 1:02}") for m in range(12)],
    "countries": [("Germany", "DEU"), ("France", "FRA"), ("Spain", "ESP"), ("Chile", "CHL"),
                  ("Kenya", "KEN"), ("Japan", "JPN")],
    "countries and numbers": [
        (f"{name} {number}", f"{code}-{number}")
        for number in range(1000, 1020)
        for name, code in (("Norway", "NO"), ("Austria", "AT"))
    ],
    "ISBN": [("0-306-40615-2", "9780306406157"), ("3-16-148410-0", "9783161484100"),
             ("0-19-852663-6", "9780198526636"), ("1-86197-876-6", "9781861978769"),
             ("0-14-032872-8", "9780140328721")],
}  # fmt: skip


@pytest.mark.parametrize("kind", LEARNED)
@pytest.mark.parametrize("back", [False, True], ids=["forth", "back"])
def test_a_rule_is_found(kind, back):
    pairs = [pair[::-1] for pair in LEARNED[kind]] if back else LEARNED[kind]
    wanted = dict(pairs)
    keys = random.Random(6).sample([*wanted.values()], len(wanted))
    joined = pexeso.learn_transformation({"a": [*wanted]}, {"b": keys}, fuzzy=False)
    assert {left: right for left, right, _ in joined.pairs} == wanted
