"""Rows that are hard on programs, and programs drawn for them."""

from __future__ import annotations

import random

from hypothesis import strategies as st

from pexeso.transform.programs.program import Constant, Extract, Program, Split

CASINGS = ("none", "lower", "upper", "title")
SEPARATORS = (
    " ",
    ", ",
    "-",
    "(",
    ".",
    "\\",
    "'",
    '"',
    "%",
    "|",
    "aa",
    "é",
    "\x00",
    "${",
    "$",
    "😀",
)
TEXTS = (
    "",
    " ",
    "it's",
    'a "name"',
    "\\n\\",
    "100%_",
    "\x00",
    "\n\t",
    "${env:HOME}",
    "ß😀",
    "\u202e",
)

CELLS = (
    None,
    "",
    " ",
    "a",
    "Obama, Barack(1961-)",
    "Bush, George H. W.(1924-)",
    "O'Neil-McDONALD 3rd",
    "aaa",
    "aaaaaa",
    "a-b--c-",
    "--",
    "a.b.c.d",
    "Madrid, Spain, Europe, World",
    "ﬁne Straße ẞ ßßa",
    "İSTANBUL I\u0131 ΟΔΟΣ ΑΣ Σ",
    "e\u0301te\u0301 é É ñ",
    "ᾳβ ᾠδή ᾨ ΐ ǆ ǅ Ǆ ŉ ǰ և",
    "😀a-😀B 👩‍👩‍👧",
    "𐐨𐐀 \U0001d49cb",
    "שלום, עולם",
    "\u202eabc\u202c-x",
    "東京 - 大阪 \uff21\uff42",
    "a\x00B\x00c",
    "line\nbreak\tTAB\r\n",
    "quo\"te it's `back` \\ slash\\",
    "100% _under_ %%",
    "${env:HOME} ${x} $1",
    "\\Q.\\E (a|b)* [c]",
    "ⓐⒶ ⅻⅫ \u0345 ª",
    "\u00a0no\u2028break\u00a0",
    "x" * 300 + "-Y",
    "400638133393",
    "9783161484100",
    "316148410X DE 3161484107",
    "000-0-007",
    "370400440532013000\n",
    "1234567 1.50 120",
    "3 März März MÄRZ-Mär İ",
    "Germany GB \u0131",
    "Zoë Müller-Łukasz ỳ Ⅷ ²",
    "١٢٣٤٥٦٧",
)
"""Cells of other scripts, of signs that languages give a meaning, and of letters hard to case."""

ROWS = [(cell, CELLS[(7 * number + 3) % len(CELLS)]) for number, cell in enumerate(CELLS)]


CONVERSIONS = (
    "pad 3",
    "pad 14",
    "strip zeros",
    "initials",
    "unaccented",
    "group ,",
    "group '",
    "group \N{NARROW NO-BREAK SPACE}",
    "with EAN digit",
    "with Luhn digit",
    "to ISBN-13",
    "to ISBN-10",
    "IBAN DE",
    "times 2.54",
    "times 0.001",
    "times 2.54 to 1",
    "times 0.5 to 0",
    "over 60",
    "German months to numbers",
    "numbers to short English months",
    "countries to codes",
    "codes to countries",
    "codes to three-letter codes",
)


def random_operator(chance: random.Random, separators: list[str]) -> Constant | Extract:
    if chance.random() < 0.25:
        return Constant(chance.choice(TEXTS))
    splits = tuple(
        Split(
            chance.choice(separators),
            chance.choice((0, 0, 1, 1, 2, 3, -1, -1, -2, -3)),
            chance.choice(("one", "one", "to", "from")),
        )
        for _ in range(chance.choice((0, 0, 1, 1, 2)))
    )
    start = chance.choice((0, 0, 0, 1, 2, 5, -1, -2, -3, -7))
    length = chance.choice((None, None, 1, 2, 3, 7))
    return Extract(
        chance.choice((0, 1)),
        splits,
        start,
        length,
        chance.choice(CASINGS),
        tuple(
            (chance.choice(SEPARATORS), chance.choice(TEXTS))
            for _ in range(chance.choice((0, 0, 0, 1, 2)))
        ),
        chance.random() < 0.5,
        chance.choice(CONVERSIONS) if chance.random() < 0.4 else "",
    )


def random_programs(number: int, seed: int = 0) -> list[Program]:
    """Return programs of one to four operators, most of which apply to some of `ROWS`."""
    chance = random.Random(seed)
    drawn: list[Program] = []
    while len(drawn) < number:
        # Few of them, so that operators share some.
        separators = chance.sample(SEPARATORS, 2)
        operators = (random_operator(chance, separators) for _ in range(chance.randint(1, 4)))
        program = Program(tuple(operators))
        if any(program.of(row) for row in ROWS) or chance.random() < 0.02:
            drawn.append(program)
    return drawn


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.text(
    st.sampled_from("aAbßẞİ\u0131Σ\u03c3ςᾳǆé\u0301\x00 -,😀𐐀ש東"), max_size=12
)
"""Any text that UTF-8 can hold."""

some = texts.filter(bool).map(lambda text: text[:2])
splits = st.builds(
    Split, some, st.integers(min_value=-4, max_value=4), st.sampled_from(("one", "to", "from"))
)
extracts = st.builds(
    Extract,
    st.integers(min_value=0, max_value=1),
    st.lists(splits, max_size=2).map(tuple),
    st.integers(min_value=-5, max_value=5),
    st.none() | st.integers(min_value=1, max_value=5),
    st.sampled_from(CASINGS),
    st.lists(st.tuples(some, texts), max_size=2).map(tuple),
    st.booleans(),
    st.just("") | st.sampled_from(CONVERSIONS),
)
programs = st.builds(
    Program, st.lists(st.builds(Constant, texts) | extracts, max_size=5).map(tuple)
)
rows = st.lists(st.tuples(st.none() | texts, st.none() | texts), max_size=6)
