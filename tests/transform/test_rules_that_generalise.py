"""Rules that reach each key, hold for later rows, and are not refused where they are right."""

import re
from datetime import date, timedelta

import numpy as np
import pyarrow as pa
import pytest

import pexeso
from pexeso.errors import InputError
from pexeso.transform.learning.generality import generalised, held_out
from pexeso.transform.programs.applying import apply_program
from pexeso.transform.programs.program import Constant, Extract, Program


def partners(joined):
    return {left: right for left, right, _ in joined.pairs}


@pytest.mark.parametrize(
    ("form", "other"),
    [
        ("{y}Q{q}-{r}", "{r} Q{q}/{y}"),
        ("{r}/{y}-{q}", "{y}.{q}.{r}"),
        ("{q}{r}{y}", "{y}: {r}, part {q}"),
        ("{r}-{y}Q{q}", "Q{q} {y} ({r})"),
    ],
)
@pytest.mark.parametrize("years", [["2024"], ["2022", "2023", "2024"]])
def test_each_key_is_joined_with_its_own(form, other, years):
    rows = [
        {"y": year, "q": quarter, "r": region}
        for year in years
        for quarter in "1234"
        for region in ("EU", "US", "JP", "CN", "IN", "BR")
    ]
    wanted = {form.format(**row): other.format(**row) for row in rows}
    joined = pexeso.learn_transformation({"a": [*wanted]}, {"b": [*wanted.values()]})
    assert partners(joined) == wanted
    assert joined.collapse is None


def test_dates_in_two_orders_are_not_joined_where_they_are_equal_by_chance(tmp_path):
    days = [(f"{day:02}", f"{month:02}") for month in range(1, 9) for day in (1, 3, 5, 8, 11)]
    wanted = {f"{day}/{month}/2020": f"{month}/{day}/2020" for day, month in days}
    tables = {"a": [*wanted]}, {"b": [*wanted.values()]}
    joined = pexeso.learn_transformation(*tables)
    assert partners(joined) == wanted
    joined.save(tmp_path / "rule.json")
    assert partners(pexeso.learn_transformation(*tables, program=tmp_path / "rule.json")) == wanted


@pytest.mark.parametrize(
    ("months", "form", "other"),
    [
        (range(1, 7), "{y}{m}{d}", "{y}-{m}-{d}"),
        (range(1, 10), "{y}{m}{d}", "{y}/{m}/{d}"),
        (range(10, 13), "{y}{m}{d}", "{y}.{m}.{d}"),
    ],
)
def test_a_saved_rule_holds_for_later_rows(months, form, other, tmp_path):
    def dates(year, numbers):
        parts = [
            {"y": year, "m": f"{month:02}", "d": f"{day:02}"}
            for month in numbers
            for day in range(1, 28, 3)
        ]
        return {form.format(**part): other.format(**part) for part in parts}

    wanted, later = dates("2024", months), dates("2025", range(1, 13))
    learnt = pexeso.learn_transformation({"a": [*wanted]}, {"b": [*wanted.values()]}, fuzzy=False)
    learnt.save(tmp_path / "rule.json")
    applied = pexeso.learn_transformation(
        {"a": [*later]}, {"b": [*later.values()]}, program=tmp_path / "rule.json", fuzzy=False
    )
    assert partners(learnt) == wanted
    assert all(later[text] == key for text, key in partners(applied).items())
    assert len(partners(applied)) == len(later)


def words(n, seed):
    rng = np.random.default_rng(seed)
    letters = np.array(list("abcdefghijklmnoprstu"))
    return ["".join(rng.choice(letters, 7)).title() for _ in range(n)]


@pytest.mark.parametrize("n_shared", [12, 20, 40])
def test_few_rows_are_enough_where_chance_explains_none(n_shared):
    first, last = words(800, 1), words(800, 2)
    names = [f"{one} {other}" for one, other in zip(first, last, strict=True)]
    theirs = [f"{other.upper()}, {one}" for one, other in zip(first, last, strict=True)]
    ours = names[:400]
    others = [*theirs[:n_shared], *theirs[400 : 800 - n_shared]]
    joined = pexeso.learn_transformation({"n": ours}, {"a": others}, fuzzy=False)
    assert partners(joined) == dict(zip(ours[:n_shared], others[:n_shared], strict=True))


@pytest.mark.parametrize("width", [5, 6])
def test_zeros_that_were_lost_are_found(width):
    codes = [
        f"{number:0{width}}" for number in range(10 ** (width - 2) + 1, 10 ** (width - 2) + 281, 2)
    ]
    joined = pexeso.learn_transformation(
        {"code": [code.lstrip("0") for code in codes]}, {"fips": codes}, fuzzy=False
    )
    assert partners(joined) == {code.lstrip("0"): code for code in codes}


def test_zeros_that_few_codes_lost_are_found():
    fips = ["01001", "01003", "04013", "06037", "36061", "48201", "12086", "53033", "17031"]
    ours = [code.lstrip("0") for code in fips[:7]]
    joined = pexeso.learn_transformation({"q": ours}, {"fips": fips}, fuzzy=False)
    assert partners(joined) == dict(zip(ours, fips, strict=False))


def test_zeros_that_some_codes_lost_are_found_among_other_columns():
    codes = [f"{state:02}{county:03}" for state in (1, 4, 5, 36) for county in range(1, 40, 2)]
    names = [f"County {number}" for number in range(len(codes))]
    ours = {"code": [code.lstrip("0") for code in codes], "n": [code[2:] for code in codes]}
    joined = pexeso.learn_transformation(ours, {"fips": codes, "county": names}, fuzzy=False)
    assert partners(joined) == {code.lstrip("0"): code for code in codes}


def test_a_rule_that_makes_one_key_of_several_is_refused_in_words(tmp_path):
    towns = words(6, 3)
    ours = [f"{town}-{shop:03}" for town in towns for shop in range(1, 6)]
    joined = pexeso.learn_transformation({"shop": ours}, {"town": towns}, fuzzy=False)
    assert joined.collapse == "30 source values became 6"
    for make in (joined.table, joined.join):
        with pytest.raises(InputError, match=r"30 source values became 6.*--many-to-one"):
            make()
        assert make(many_to_one=True).num_rows == 30
    assert joined.to_dict()["collapse"] == joined.collapse


def test_a_changed_program_writes_the_same_for_the_rows_it_was_learned_from():
    rng = np.random.default_rng(5)
    for _ in range(200):
        cells = pa.array([f"{rng.integers(0, 3)}ab{rng.integers(0, 20):03}x" for _ in range(8)])
        constant = "".join(rng.choice(list("0ab1-x"), rng.integers(1, 5)))
        start = int(rng.integers(0, 6))
        program = Program((Constant(constant), Extract(0, (), start, None), Constant("x0")))
        keys = apply_program(program, [cells]).drop_null()
        changed = generalised(program, [cells], keys)
        assert (
            apply_program(changed, [cells]).to_pylist()
            == apply_program(program, [cells]).to_pylist()
        )


FORMS = ("[{i}] {w}", "{i} - {w}", "{i}: {w}", "{w} ({i})", "{w} #{i}", "{i}_{w}", "No. {i} {w}")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("towns", [6, 60], ids=["names repeat", "names differ"])
@pytest.mark.parametrize("lowest", [1, 1000], ids=["counter", "ids"])
def test_an_id_beside_a_name_is_part_of_the_rule(form, towns, lowest):
    rng = np.random.default_rng(len(form) + towns + lowest)
    ids = [str(number) for number in lowest + rng.permutation(60 * (1 if lowest == 1 else 40))[:60]]
    names = [words(towns, 4)[at % towns] for at in range(60)]
    rooms = [form.format(i=one, w=name) for one, name in zip(ids, names, strict=True)]
    order = rng.permutation(60)
    theirs = {"room": [rooms[at] for at in order], "month": ["Mar", "Apr", "May"] * 20}
    joined = pexeso.learn_transformation({"id": ids, "name": names}, theirs, fuzzy=False)
    table = joined.table(how="inner")
    assert table.num_rows == 60
    assert table["room"].to_pylist() == rooms


@pytest.mark.parametrize("n", [8, 60])
@pytest.mark.parametrize("other", ["{n}", "{n:04}", "Row {n}", "{n}.5"])
def test_numbers_of_rows_join_nothing(n, other):
    """Two counters have their numbers in common whatever their rows are about."""
    ours = {"no": [str(row) for row in range(1, n + 1)], "what": words(n, 5)}
    rows = np.random.default_rng(6).permutation(n) + 1
    theirs = {"row": [other.format(n=row) for row in rows], "who": words(n, 7)}
    joined = pexeso.learn_transformation(ours, theirs)
    assert joined.n_rows["none"] == n


def test_a_word_that_repeats_in_both_tables_is_no_key():
    rng = np.random.default_rng(8)
    numbers = rng.permutation(np.arange(10_000, 90_000, 7))[:80]
    kinds = ["red", "green", "blue"]
    ours = {"number": numbers.astype(str).tolist(), "kind": [*rng.choice(kinds, 80)]}
    theirs = {
        "key": [f"INV-{number}" for number in numbers[::-1]],
        "kind": [*rng.choice(kinds, 80)],
    }
    joined = pexeso.learn_transformation(ours, theirs, fuzzy=False)
    assert partners(joined) == {str(number): f"INV-{number}" for number in numbers}
    assert joined.cardinality == "1:1"


def test_dates_whose_parts_are_common_are_written_anew():
    days = [(d, m, 2024) for m in range(1, 7) for d in range(1, 29, 3)]
    wanted = {f"{d:02}.{m:02}.{y}": f"{y}/{m:02}/{d:02}" for d, m, y in days}
    ours = {"day": [*wanted], "no": [str(row) for row in range(len(days))]}
    theirs = {"date": [*wanted.values()][::-1], "count": [str(row) for row in range(len(days))]}
    assert partners(pexeso.learn_transformation(ours, theirs, fuzzy=False)) == wanted


SHARES = (3, 5, 8, 10, 15, 20, 30, 60, 100)


def test_more_rows_in_common_never_make_a_rule_less_sure():
    first, last = words(800, 11), words(800, 12)
    names = [f"{one} {other}" for one, other in zip(first, last, strict=True)]
    theirs = [f"{other.upper()}, {one}" for one, other in zip(first, last, strict=True)]
    for n_shared in (4 * share for share in SHARES):
        others = [*theirs[:n_shared], *theirs[400 : 800 - n_shared]]
        joined = pexeso.learn_transformation({"n": names[:400]}, {"a": others}, fuzzy=False)
        assert partners(joined) == dict(zip(names[:n_shared], others[:n_shared], strict=True))


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [("{n}", "1{n:02}"), ("{n}", "{m}"), ("1{n:03}", "2{n:03}"), ("A{n}", "B-{n:02}")],
)
def test_ids_that_fill_a_range_join_only_if_the_rule_is_accepted(ours, theirs):
    """Nothing shows that the seventh row of one table is that of the other."""
    a = {"id": [ours.format(n=n) for n in range(1, 41)]}
    b = {"no": [theirs.format(n=n, m=n + 40) for n in range(1, 41)]}
    joined = pexeso.learn_transformation(a, b)
    assert joined.programs == []
    assert joined.n_rows["none"] == 40
    assert re.search(
        r"writes \d+ of the other column's values, but .+; if it is right, accept it by "
        r"accept_rule \(--accept-rule\)$",
        joined.tried,
    )
    accepted = pexeso.learn_transformation(a, b, accept_rule=True)
    assert len(accepted.programs) == 1
    assert accepted.n_rows["program"] > 5


def test_other_columns_are_proposed_where_those_named_have_no_rule():
    mails = [f"{first.lower()}@a.us" for first in words(30, 13)]
    ours = {"who": words(30, 13), "note": words(30, 14)}
    theirs = {"mail": mails[::-1], "town": words(30, 15)}
    named = {"columns": "note", "target_columns": "town", "fuzzy": False}
    joined = pexeso.learn_transformation(ours, theirs, **named)
    assert joined.tried.endswith(
        "; but a rule joins 'who' of the first table with 'mail' of the second: name these"
    )


def test_few_equal_values_of_other_columns_do_not_win_over_a_rule():
    names = words(60, 16)
    ours = {"name": names, "year": [str(1900 + at) for at in range(60)]}
    theirs = {
        "mail": [f"{name.lower()}@a.us" for name in names[:55]][::-1],
        "since": [str(1951 + at) for at in range(55)],
    }
    joined = pexeso.learn_transformation(ours, theirs, fuzzy=False)
    assert partners(joined) == {name: f"{name.lower()}@a.us" for name in names[:55]}


def test_what_held_out_rows_say_of_a_rule():
    names = words(40, 17)
    mails = [f"{name.lower()}@a.us" for name in names]
    learned = pexeso.learn_transformation({"n": names}, {"m": mails}, fuzzy=False)
    assert learned.held_out == (40, 40)
    # Half of the keys follow another rule, which no rule of the rest can know.
    assert held_out([[name] for name in names], [*mails[:38], "x1", "y2"]) < 40
    assert held_out([["a1"]], ["1"]) == 0


@pytest.mark.parametrize(
    ("rows", "later"),
    [
        (
            {"Sefi/Kuvefe/X1": "Kuvefe Sefi", "Moma/Lize/Y2": "Lize Moma"}
            | {"Bado/Teri/Z3": "Teri Bado", "Runo/Gavi/Q4": "Gavi Runo", "Wexi/Po/K5": "Po Wexi"},
            {"Al/Marchetti/X9": "Marchetti Al"},
        ),
        (
            {f"{day} Jun 1990": f"1990-06-{day:02}" for day in range(5, 15)},
            {"31 Dec 2024": "2024-12-31"},
        ),
        (
            {f"{day} Dezember 1991": f"199112{day:02}" for day in range(7, 14)},
            {"1 März 2024": "20240301"},
        ),
        (
            {f"{day}. August 2006": f"200608{day:02}" for day in range(1, 30)},
            {"1. October 2024": "20241001"},
        ),
        (
            {"Zñbume Kafàbasa": "znbume-kafabasa", "Bäle Darulísi": "bale-darulisi"}
            | {"Lñdoma Bamà": "lndoma-bama", "Lérodo Bodçzafu": "lerodo-bodczafu"},
            {"Bartolomé Núñez": "bartolome-nunez"},
        ),
    ],
    ids=["lengths", "months", "compact days", "a zero", "accents"],
)
def test_parts_are_preferred_to_places_and_letters_where_rows_are_few(rows, later, tmp_path):
    joined = pexeso.learn_transformation({"a": [*rows]}, {"b": [*rows.values()]}, fuzzy=False)
    joined.save(tmp_path / "rule.json")
    applied = pexeso.learn_transformation(
        {"a": [*later]}, {"b": [*later.values()]}, program=tmp_path / "rule.json", fuzzy=False
    )
    assert partners(joined) == rows
    assert partners(applied) == later


def test_a_key_may_have_a_row_that_equals_it_and_one_that_becomes_it():
    towns = words(9, 20)
    ours = [*towns[:3], *(f"at {town}" for town in towns[1:])]
    joined = pexeso.learn_transformation({"o": ours}, {"t": towns}, fuzzy=False)
    assert partners(joined) == {text: text.removeprefix("at ") for text in ours}


@pytest.mark.parametrize("form", ["%d %b %Y", "%d. %B %Y", "%b %d, %Y"])
def test_months_are_read_where_only_one_month_was_seen_at_first(form):
    days = [date(2024, 1, 1) + timedelta(3 * at) for at in range(60)]
    wanted = {f"{day}T0{at % 10}:15:00Z": day.strftime(form) for at, day in enumerate(days)}
    theirs = [*wanted.values()][::-1]
    joined = pexeso.learn_transformation({"at": [*wanted]}, {"day": theirs}, fuzzy=False)
    assert partners(joined) == wanted
