import json
import pickle

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from long_runs import examples

from pexeso.errors import InputError
from pexeso.lake.normalise import abbreviations, characters
from pexeso.lake.normalise import normaliser as normalise
from pexeso.lake.normalise.normaliser import VERSION, Normaliser
from pexeso.lake.normalise.rules import ALL_RULES, DEFAULT_RULES, RULES

MADE = {}


def normaliser_of(on=(), **options):
    """Make each normaliser once: it reads its dictionaries when it is first used."""
    key = repr((on, sorted(options.items())))
    if key not in MADE:
        MADE[key] = Normaliser(**options).switched(on=on)
    return MADE[key]


def normal(*values, **options):
    texts = normaliser_of(**options).normalise(pa.array(values, pa.string()))
    assert texts.type == pa.string()
    return texts.to_pylist()


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("  New\tYork \n", "new york"),
        ("São Paulo", "sao paulo"),
        ("Łódź", "lodz"),
        ("Straße", "strasse"),
        ("Fee $7", "fee $ 7"),
        ("<$10,000", "< $ 10000"),
        ("Price (US$)", "price us $"),
        ("Ke$ha", "ke ha"),
        ("FY98", "fiscal year 1998"),
        ("3Q2020", "q3 2020"),
        ("2 PM", "14 00"),
        ("10 or less", "≤10"),
        ("More than 5 km", ">5 km"),
        ("More than words", "more than words"),
        ("Vol 3, Nr. 5", "volume 3 no 5"),
        ("Sector -14", "sector 14"),
        ("Temp -5", "temp -5"),
        ("Ǿ Ά", "o \u03b1"),
        ("\uff46\uff55\uff4c\uff4c\uff0d\uff57ide", "full wide"),
        ("Москва Йод", "москва йод"),
        ("हिन्दी", "हिन्दी"),
        ("한국어 東京都", "한국어 东京都"),
        ("soft\u00adhyphen", "softhyphen"),
        ("Metro-Goldwyn-Mayer", "metro goldwyn mayer"),
        ("O'Brien\u2019s rock'n'roll", "obriens rocknroll"),
        ("U.S.A.", "united states"),
        ("J.R.R. Tolkien", "jrr tolkien"),
        ("www.example.com", "example com"),
        ("https://www.example.com/a/", "example com a"),
        ("www. a", "www a"),
        ("http error", "http error"),
        ("&lt;5 &amp;amp; Caf&Eacute;", "<5 and cafe"),
        ("R&D; AT&T;", "r and d at and t"),
        ("l\u00b4Aquila", "laquila"),
        ("臺灣大學", "台湾大学"),
        ("5 pct.", "5"),
        ("percent", "percent"),
        ("Chapter V", "chapter 5"),
        ("Malcolm X", "malcolm x"),
        ("Super Bowl XLVIII", "super bowl 48"),
        ("Jet Li", "jet li"),
        ("AT&T", "at and t"),
        ("C++ / C# / F#", "c++ c# f#"),
        ("#1 + 2", "1 2"),
        ("1,234,567.50", "1234567.50"),
        ("1,23", "1 23"),
        ("-5", "-5"),
        ("- 5", "-5"),
        ("a -5", "a -5"),
        ("a 7 -5", "a 7 5"),
        ("24 (\u22124)", "24 -4"),
        ("24 -4", "24 -4"),
        ("Room 24 (-4)", "room 24 4"),
        ("1937 -38", "1937 1938"),
        ("48.85, -2.35", "48.85 -2.35"),
        ("a-5", "a 5"),
        ("\u20131.2", "-1.2"),
        ("UTC-2", "utc -2"),
        ("★★", "★★"),
        ("+", "+"),
        ("Google™", "google"),
        ("--", None),
        ("...,;", None),
        ("", None),
        (" \u200b ", None),
        ("Main St", "main street"),
        ("Main St., Springfield", "main street springfield"),
        ("St. Petersburg", "saint petersburg"),
        ("Springfield, St. Clair", "springfield saint clair"),
        ("12 St James St", "12 saint james street"),
        ("Main St NW", "main street nw"),
        ("120 N. Main St. SW", "120 north main street southwest"),
        ("120 Main St, Apt. 5", "120 main street apartment 5"),
        ("St", "st"),
        ("N Sync", "n sync"),
        ("Vitamin E", "vitamin e"),
        ("Mt. Everest", "mount everest"),
        ("Ft Worth", "fort worth"),
        ("6 ft tall", "6 ft tall"),
        ("Dr. Smith", "doctor smith"),
        ("Mulholland Dr.", "mulholland drive"),
        ("5th Ave & Sunset Blvd", "5th avenue and sunset boulevard"),
        ("Mar 1953", "march 1953"),
        ("Mar del Plata", "mar del plata"),
        ("Jan Ullrich", "jan ullrich"),
        ("5 Dec", "5 december"),
        ("Mar 5, 1953", "5 march 1953"),
    ],
)
def test_characters_and_abbreviations(value, expected):
    assert normal(value) == [expected]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("at large", "at large"),
        ("At Home", "at home"),
        ("AT-5", "at 5"),
        ("V. S. Naipaul", "v s naipaul"),
        ("V.S. Naipaul", "v s naipaul"),
        ("A. T. Kearney", "a t kearney"),
        ("A.T.B. Smith", "atb smith"),
        ("Vsevolod", "vsevolod"),
        ("vs. at Texas", "texas"),
        ("@", None),
        ("@ #4 Georgia Tech", "georgia tech"),
        ("#1 Jazz, #2 R&B", "1 jazz 2 r and b"),
        ("1. FC K\u00f6ln", "1 fc koln"),
        ("2. Bundesliga", "2 bundesliga"),
        ("(500) Days of Summer", "days of summer"),
        ("(3)", "3"),
        ("Arsenal (3)", "arsenal 3"),
        ("Paris (France)", "paris france"),
        ("Vitamin E. A study", "vitamin e a study"),
        ("H. W. Bush", "hw bush"),
        ("2002-03", "2002 2003"),
        ("1988-05", "may 1988"),
        ("1999-00", "1999 2000"),
        ("1950-00", "1950 00"),
        ("1990s", "1990s"),
        ("Q1", "q1"),
        ("q4-2019", "q4 2019"),
        ("13:30 pm", "13 30 pm"),
        ("Berlin, DE", "berlin delaware"),
        ("Paris, France", "paris france"),
        ("Springfield (Springfield, MA)", "springfield springfield massachusetts"),
        ("Austin, TX 78701-1234", "austin texas 78701 1234"),
        ("NSW, SA, Wa", "nsw sa washington"),
        ("5 metres", "5 m"),
        ("1,200 sq. ft.", "1200 sqft"),
        ("5 square kilometres", "5 sqkm"),
        ("3 cubic meters", "3 cum"),
        ("30 km/h", "30 kmh"),
        ("20 degrees Celsius", "20 c"),
        ("M2 motorway", "m2 motorway"),
        ("3 m2 4", "3 sqm 4"),
        ("France 2)", "france"),
        ("Germany\u00b9", "germany"),
        ("Deutschland (a)", "germany"),
        ("Chad 2", "chad 2"),
        ("Chad (2019)", "chad 2019"),
        ("\u5185\u8499\u53e4\u81ea\u6cbb\u533a", "\u5185\u8499\u53e4 \u81ea\u6cbb\u533a"),
        ("\u6771\u4eac\u90fd\u5e81", "\u4e1c\u4eac\u90fd\u5e81"),
        ("\u5317\u6d77\u9053", "\u5317\u6d77\u9053"),
        ("the second", "the 2nd"),
        ("Company", "company"),
    ],
)
def test_rules_at_their_borders(value, expected):
    assert normal(value, on=("opponents",)) == [expected]


def test_dates_are_read_over_the_column_and_repeats_are_kept():
    assert normal("3/5/1953", None, "13/5/1953", "3/5/1953") == [
        "3 may 1953",
        None,
        "13 may 1953",
        "3 may 1953",
    ]
    assert normal("2020-03-05") != normal("2020-05-03")


def test_options_switch_steps_off():
    assert normal("Émile", fold_accents=False) == ["émile"]
    assert normal("Émile ST. Louis", fold_case=False) == ["Emile saint Louis"]
    assert normal(" a.b,  c! ", drop_punctuation=False) == ["a.b, c!"]
    assert normal("2020-03-05", read_dates=False) == ["2020 03 05"]
    assert normal("Main St, Mar 5", dictionaries=("dates",)) == ["main st march 5"]
    assert normal("Main St", dictionaries=()) == ["main st"]


def test_rules_are_switched_by_name():
    assert normal("Émile", rules=["case"]) == ["émile"]
    assert Normaliser(["dates", "case", "case"]).rules == ("case", "dates")
    made = Normaliser().switched(on=["qualifiers", "case"], off=["accents"])
    assert set(made.rules) == {*DEFAULT_RULES, "qualifiers"} - {"accents"}
    assert list(made.rules) == [name for name in ALL_RULES if name in made.rules]
    assert Normaliser(fold_case=False).rules == Normaliser().switched(off=["case"]).rules


FORM_RULES = [rule for rule in RULES if not rule.tells_apart and not rule.is_reading]
EXAMPLES = [(rule.name, value, form) for rule in FORM_RULES for value, form in rule.examples]


@pytest.mark.parametrize(("rule", "value", "form"), EXAMPLES)
def test_every_rule_does_what_its_examples_show(rule, value, form):
    assert normal(value, on=(rule,)) == [form]


def test_every_rule_is_seen_in_one_of_its_examples():
    """Without it, the value has another form; names of territories take long to prepare."""
    for rule in FORM_RULES:
        others = {"territories"} - {rule.name}
        on = Normaliser().switched(on=[rule.name], off=others)
        off = Normaliser().switched(off={rule.name, *others})
        values = pa.array([value for value, _ in rule.examples])
        assert on.normalise(values) != off.normalise(values), rule.name


def test_a_dictionary_of_ones_own_goes_first():
    assert normal("NYC", "St Ives", extra={"nyc": "new york", "st": "x"}) == ["new york", "x ives"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"dictionaries": ("names",)},
            r"dictionaries must be out of dates, addresses\. Got \('names',\)\.",
        ),
        ({"dictionaries": "dates"}, "dictionaries must be out of dates, addresses"),
        (
            {"extra": {"New York": "x"}},
            r"must be single lower-case words without commas\. Got 'New York'\.",
        ),
        ({"extra": {"a": ""}}, r"extra must give a text for each word\. Got 'a': ''\."),
        (
            {"rules": ["case", "date"]},
            r"There is no rule 'date' \(did you mean 'dates'\?\)\. The rules are entities, ",
        ),
        ({"rules": "case"}, r"rules must be a list of names of rules\. Got 'case'\."),
        ({"rules": [1]}, r"There is no rule 1\. The rules are"),
        ({"extra": [1]}, r"extra must be a dictionary of words\. Got list\."),
    ],
)
def test_wrong_options_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        Normaliser(**options)


def test_a_rule_is_not_switched_on_and_off_at_once():
    with pytest.raises(
        InputError,
        match=r"The rule 'counts' cannot be switched on and off at once: name it in one place\.",
    ):
        Normaliser().switched(on=["counts"], off=["case", "counts"])


def test_a_description_makes_an_equal_normaliser():
    made = Normaliser(fold_case=False, dictionaries=("dates",), extra={"b": "x", "a": "é"})
    again = Normaliser.from_json(made.to_json())
    assert again == made
    assert hash(again) == hash(made)
    assert again.fingerprint == made.fingerprint
    assert pickle.loads(pickle.dumps(made)) == made
    assert made.version == VERSION


def test_every_option_changes_the_fingerprint():
    variants = [{}, {"extra": {"a": "b"}}, {"extra": {"a": "c"}}]
    variants += [{"rules": [other for other in ALL_RULES if other != rule]} for rule in ALL_RULES]
    assert len({Normaliser(**options).fingerprint for options in variants}) == len(variants)


def test_a_change_of_any_data_changes_the_fingerprint(monkeypatch):
    before = Normaliser().fingerprint
    for name in abbreviations.packaged():
        changed = abbreviations.packaged() | {name: []}
        with monkeypatch.context() as patch:
            patch.setattr(normalise, "packaged", lambda changed=changed: changed)
            assert Normaliser().fingerprint != before, name


def test_the_fingerprint_of_this_version_does_not_change():
    """Check that the fingerprint of this version does not change.

    If it does, values have another form: raise `VERSION`, then write the new fingerprint here.
    """
    assert (VERSION, Normaliser().fingerprint) == (11, "71433df6f919e600a41ca74b38770a61")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"version": 1},
            f"The normaliser has version 1, and this pexeso has version {VERSION}: build the "
            "index again",
        ),
        ({"version": 99}, f"The normaliser has version 99, and this pexeso has version {VERSION}"),
        ({"colour": 1}, "must have the keys version, rules, extra\\."),
    ],
)
def test_a_description_of_something_else_is_refused(change, message):
    options = json.loads(Normaliser().to_json()) | change
    with pytest.raises(InputError, match=message):
        Normaliser.from_json(json.dumps(options))


def test_a_description_that_is_no_json_is_refused():
    with pytest.raises(InputError, match=r"^The description of the normaliser is not JSON: "):
        Normaliser.from_json("{")


PIECES = [
    *[
        *("at", "vs.", "@", "#", "(2)", "1.", "[3]", "No.", "the", "The", "&", "and", ",", "."),
        *("-", "/", "'", "(", ")", "C", "+", "-5", "1,234", "3/5/1953"),
    ],
    *[
        *("st", "St.", "dr", "mt", "ste", "n", "J.", "K.", "inc", "Ltd.", "company", "second"),
        *("first", "3rd", "apt", "ẞ", "\u0131", "İ", "ﬁ", "Σ"),
    ],
    *[
        *("march", "Mar", "may", "5", "05", "2020", "53", "1990s", "10:30", "pm", "Q1", "FY", "c."),
        *("\u2013", "of", "de"),
    ],
    *(" " * 12),
]
TEXTS = st.lists(
    st.none() | st.text(max_size=15) | st.text("aSt.,é'& 15/-+#\u0301\n", max_size=15),
    min_size=1,
    max_size=8,
)


@settings(max_examples=examples(40))
@given(TEXTS)
def test_any_text_gives_words_with_single_spaces_or_nothing(values):
    values = [value.encode("utf-8", "replace").decode() if value else value for value in values]
    for text, value in zip(normal(*values), values, strict=True):
        assert text is None or (text and text == text.strip() and "  " not in text)
        assert value is not None or text is None


@settings(max_examples=examples(70))
@given(
    st.lists(
        st.none()
        | st.text(max_size=12)
        | st.lists(st.sampled_from(PIECES), max_size=6).map("".join),
        max_size=8,
    )
)
def test_a_form_keeps_its_form(values):
    values = [value.encode("utf-8", "replace").decode() if value else value for value in values]
    for options in ({}, {"rules": ALL_RULES}, {"drop_punctuation": False}):
        once = normal(*values, **options)
        assert normal(*once, **options) == once


@settings(max_examples=examples(40))
@given(TEXTS)
def test_blocks_and_neighbours_do_not_change_a_value(values):
    values = [value.encode("utf-8", "replace").decode() if value else value for value in values]
    options = {"read_dates": False}  # dates look at the whole column on purpose
    alone = [normal(value, **options)[0] for value in values]
    assert normal(*values, **options) == alone
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(characters, "_BLOCK_BYTES", 5)
        assert normal(*values, **options) == alone


@settings(max_examples=examples(40))
@given(st.lists(TEXTS, max_size=4))
def test_columns_together_are_as_each_by_itself(columns):
    arrays = [
        pa.array([v.encode("utf-8", "replace").decode() if v else v for v in c], pa.string())
        for c in columns
    ]
    normaliser = normaliser_of()
    together = normaliser.normalise_columns(arrays)
    assert [c.to_pylist() for c in together] == [
        normaliser.normalise(c).to_pylist() for c in arrays
    ]


def test_other_arrays_of_strings_are_taken():
    normaliser = Normaliser()
    assert normaliser.normalise(pa.array(["A"], pa.large_string())).to_pylist() == ["a"]
    assert normaliser.normalise(pa.chunked_array([["A"], ["B"]])).to_pylist() == ["a", "b"]
    assert normaliser.normalise(pa.array([None, None])).to_pylist() == [None, None]
    assert normaliser.normalise(pa.array([], pa.string())).to_pylist() == []
    assert normaliser.normalise(pa.array(["x", "A b", "C"])[1:]).to_pylist() == ["a b", "c"]
