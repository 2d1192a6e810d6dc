"""What tells normalised values apart, by the rules' own examples and by others of their kinds."""

import re

import numpy as np
import pyarrow as pa
import pytest

from embed.lexical import UNMATCHED_WORDS, create
from embed.words import hash_strings
from pexeso.build.parts.metadata import sparse_vectors
from pexeso.engine.sparse.marks import REGROUPED, STRICT_GROUPS, TURNED, marks_in_group
from pexeso.engine.sparse.vectors import pair_costs, pair_distances
from pexeso.lake.normalise.distinctions import differences, known_names, marks_of
from pexeso.lake.normalise.normaliser import Normaliser
from pexeso.lake.normalise.rules import DISTINCTIONS, RULES

EXAMPLES = [
    (rule.name, left, right)
    for rule in RULES
    if rule.tells_apart and rule.name != UNMATCHED_WORDS
    for left, right in rule.examples
]
APART = [
    ("長野県", "長野市"),
    ("5 km²", "5 km"),
    ("5 sq m", "5 sq km"),
    ("Apollo 11", "Apollo 13"),
    ("Boeing 737-800", "Boeing 737-900"),
    ("World War I", "World War II"),
    ("5 March 2020", "6 March 2020"),
    ("-5", "5"),
    ("C#", "C++"),
    ("A+", "A"),
    (">=5", "<=5"),
    ("Sudan", "South Sudan"),
    ("Niger", "Nigeria"),
    ("Bank of Georgia", "Bank of Florida"),
    ("Washington County, Ohio", "Washington County, Iowa"),
    ("East Germany", "Germany"),
    ("Région Nord", "Région Sud"),
    ("Hombres", "Mujeres"),
    ("King Jr.", "King Sr."),
    ("Duran Duran", "Duran"),
    ("Baden-Baden (Germany)", "Baden (Germany)"),
    ("Windows 10", "Windows"),
    ("Toy Story 2", "Toy Story"),
    ("Bayern Munich II", "Bayern Munich"),
    ("(+)-limonene", "(-)-limonene"),
    ("51.5074, 0.1278", "51.5074, -0.1278"),
    ("Mercedes C-Class", "Mercedes E-Class"),
    ("March sales", "May sales"),
    ("One Direction", "Two Directions"),
    ("Sugar 5 kg", "Sugar 5 g"),
    ("Race of 5 km", "Race of 5 m"),
    ("Super Bowl XL", "Super Bowl XLI"),
    ("Hepatitis A", "Hepatitis B"),
    ("Type I diabetes", "Type II diabetes"),
    ("Williams, S.", "Williams, V."),
    ("John F. Kennedy", "John S. Kennedy"),
    ("E-mail address", "G-mail address"),
    ("Gate A11", "Gate B11"),
    ("Section 8(a)", "Section 8(b)"),
    ("Bus 12A", "Bus 12B"),
    ("Класс Д", "Класс Б"),
    ("more than 5", "less than 5"),
    ("Hispanic", "Non-Hispanic"),
    ("Smoker", "Nonsmoker"),
    ("for profit", "not for profit"),
    ("Married", "Unmarried"),
    ("Vice President", "President"),
    ("Assistant Professor", "Associate Professor"),
    ("Baltimore City", "Baltimore County"),
    ("Bachelor of Arts", "Bachelor of Science"),
    ("Sodium chloride", "Sodium chlorate"),
    ("Methanol", "Ethanol"),
    ("Hyperglycaemia", "Hypoglycemia"),
    ("New York Mets", "New York Yankees"),
    ("iPhone 12 Pro", "iPhone 12 Mini"),
    ("SW1A 1AA", "SW1A 2AA"),
    ("2 to 1", "1 to 2"),
    ("5 mg", "5 µg"),
    ("37 cm", "37 kg"),
    ("5 MB", "5 ml"),
    ("Disk 1 TB", "Disk 1 GB"),
    ("Warranty 2 years", "Warranty 2 months"),
    ("500 BC", "500 AD"),
    ("Zwei Brüder", "Drei Brüder"),
    ("Balance -5", "Balance 5"),
    ("24 (\u22124)", "24 (4)"),
    ("48.85, 2.35", "48.85, -2.35"),
    ("UTC+2", "UTC-2"),
    ("UTC-5", "UTC 5"),
    ("Balance: -5", "Balance: 5"),
    ("Johnson & Johnson", "Johnson"),
    ("Duran Duran Duran", "Duran Duran"),
    ("Bison bison bison", "Bison bison"),
    ("AAA", "AA"),
    ("AA", "A"),
    ("AA-", "A-"),
    ("BB+", "B+"),
    ("★★★", "★★"),
    ("人人", "人"),
    ("Inner Mongolia", "Mongolia"),
    ("New South Wales", "Wales"),
    ("Western Michigan", "Michigan"),
    ("Lake Michigan", "Michigan"),
    ("University of North Texas", "University of Texas"),
    ("Gulf of Mexico", "Mexico"),
    ("Омская область", "Томская область"),
    ("Henan Airlines", "Hunan Airlines"),
    ("Markt Montag", "Markt Dienstag"),
    ("Januar Verkauf", "Februar Verkauf"),
    ("Premier trimestre", "Deuxième trimestre"),
    ("Battery AA", "Battery AAA"),
    ("Employer", "Employee"),
    ("Northern Region", "Region"),
    ("Savoie", "Haute-Savoie"),
    ("Yorkshire", "North Yorkshire"),
    ("Baja California", "Baja California Sur"),
    ("Arsenal", "Arsenal Women"),
    ("World Cup", "Women's World Cup"),
    ("Population", "Population, male"),
    ("Ken Griffey", "Ken Griffey Jr."),
    ("Lincoln High School", "Lincoln Middle School"),
    ("Lincoln Elementary School", "Lincoln High School"),
    ("King County", "Kings County"),
    ("Oklahoma City", "Oklahoma"),
    ("Michigan State", "Michigan"),
    ("Maria Rossi", "Mario Rossi"),
    ("Paul Martin", "Paula Martin"),
    ("St John's College", "St James' College"),
    ("George W. Bush", "George H. W. Bush"),
    ("Leaded gasoline", "Unleaded gasoline"),
    ("Very likely", "Very unlikely"),
    ("Main Street", "Main Road"),
    ("12a High Street", "12b High Street"),
    ("Apt 4B, 10 Elm St", "Apt 4C, 10 Elm St"),
    ("SW1A 1AA", "SW1A 1AB"),
    ("S72.001A", "S72.001D"),
    ("Honda CB500F", "Honda CB500X"),
    ("ABC 1234", "ABD 1234"),
    ("DE-BY", "DE-BE"),
    ("AAPL", "AAPB"),
    ("Version 1.2", "Version 1.20"),
    ("v1.2", "v1.20"),
    ("Class A Shares", "Class B Shares"),
    ("河北省", "河南省"),
    ("Fee $7", "Fee €7"),
    ("€5", "£5"),
    ("Price ($)", "Price (€)"),
    ("Fee 7 USD", "Fee €7"),
    ("<$10,000", ">$10,000"),
]
TOGETHER = [
    ("上海市", "上海"),
    ("120 m²", "120 square metres"),
    ("Germany (1)", "Germany"),
    ("Boeing 747", "Boeing"),
    ("Under-21", "Under 21"),
    ("Under 5", "<5"),
    ("0 to 4", "0-4"),
    ("2020H1", "1st half of 2020"),
    ("Fiscal year 2019-20", "FY19/20"),
    ("1000 USD", "$1,000"),
    ("Hauptstr.", "Hauptstraße"),
    ("Formula 1", "Formula"),
    ("Level 5 of 12", "Level 5"),
    ("New York, NY", "New York"),
    ("Singapore, Singapore", "Singapore"),
    ("J. Smith", "Smith, J."),
    ("Vitamin C", "Vitamin"),
    ("Arte y Ciencia", "Arte e Ciencia"),
    ("Sony 1080p recorder D", "Sony recorder D"),
    ("Apollo 08", "Apollo 8"),
    ("Rate 2.50", "Rate 2.5"),
    ("Northern Region", "North Region"),
    ("Bank of Georgia", "Bank of Georga"),
    ("Henry VIII", "Henry 8"),
    ("Super Bowl XL", "Super Bowl 40"),
    ("Sugar 5 kg", "Sugar 5 kilograms"),
    ("München", "Munich"),
    ("Moscow", "Москва"),
    ("pre-war", "pre war"),
    ("Kids' Club", "Kids Club"),
    ("Two Rivers", "2 Rivers"),
    ("Walla Walla", "Walla Walla"),
    ("Calvert", "Calvet"),
    ("Syfy (UK)", "Syfy (UK and Ireland)"),
    ("Canon Canon Battery Charger", "Canon Battery Charger"),
    ("Non-profit", "Nonprofit"),
    ("Non-binary", "Nonbinary"),
    ("Nonthaburi", "Nontaburi"),
    ("Deputy Mayor", "Vice-Mayor"),
    ("Assoc. Professor", "Associate Professor"),
    ("Baltimore City", "Baltimore"),
    ("Arts and Science", "Science"),
    ("Tom-Tom", "TomTom"),
    ("AA", "AA batteries"),
    ("Duran Duran", "Duran Duran (band)"),
    ("Johnson & Johnson", "Johnson and Johnson Inc"),
    ("UTC+2", "UTC 2"),
    ("Boeing 737 -800", "Boeing 737-800"),
    ("MGMT-101", "MGMT 101"),
    ("Plot No:-5", "Plot No: 5"),
    ("Northern Brazil", "North Brazil"),
    ("Ro 04-6790", "Ro04-6790"),
    ("Ministry of the Interior (Chad)", "Ministry of the Interior and Security (Chad)"),
    ("Arts Center, Ohio", "Arts Clinic, Ohio"),
    ("Palo Alto city, California", "Palo Alto, California"),
    ("Salt Lake City, Utah", "Salt Lake, Utah"),
    ("Lake County, Indiana", "Lake, Indiana"),
    ("N. Texas", "North Texas"),
    ("North of Italy", "Northern Italy"),
    ("Northwest Airlines", "North West Airlines"),
    ("Northeastern University", "North Eastern University"),
    ("Southeast Asia", "South-East Asia"),
    ("The Northern Trust", "Northern Trust"),
    ("12 Main St N", "12 Main St"),
    ("Wells Fargo Northwest", "Wells Fargo Northwest NA"),
    ("Durham, North Carolina", "Durham"),
    ("Eastern Republic of Uruguay", "Uruguay"),
    ("North Macedonia", "Macedonia"),
    ("NE 42nd Avenue", "Northeast 42nd Avenue"),
    ("BASF SE", "BASF"),
    ("New York City", "New York"),
    ("John William Colenso", "John Colenso"),
    ("J. K. Rowling", "J. Rowling"),
    ("Johann Bach", "John Bach"),
    ("Universal Studios", "Universal Studio"),
    ("Under Armour Inc", "Under Armor Inc"),
    ("500 BC", "500 BCE"),
    ("Version 2.0", "Version 2"),
    ("Kiev", "Kyiv"),
    ("iTV", "iTV channel"),
    ("Sector -14", "Sector 14"),
    ("1/1", "1 of 1"),
    ("$5", "5"),
    ("$5", "5 dollars"),
    ("Price ($)", "Price"),
    ("£1,000", "1000"),
    ("Less than $5", "<$5"),
]


NORMALISER = Normaliser()


def normal(*texts: str) -> pa.LargeStringArray:
    return NORMALISER.normalise(pa.array(texts)).cast(pa.large_string())


def apart(left: str, right: str, distinctions=DISTINCTIONS) -> bool:
    model = create(distinctions=distinctions)
    vectors = [sparse_vectors(model, normal(text)) for text in (left, right)]
    return bool(pair_distances(*vectors)[0] >= 1.0)


@pytest.mark.parametrize(("rule", "left", "right"), EXAMPLES)
def test_a_rule_keeps_its_examples_apart_and_nothing_else_does(rule, left, right):
    assert apart(left, right, [rule])
    assert apart(right, left, [rule])
    assert not apart(left, right, [])


@pytest.mark.parametrize(("left", "right"), APART)
def test_different_things_are_apart(left, right):
    assert apart(left, right)


@pytest.mark.parametrize(("left", "right"), TOGETHER)
def test_forms_of_one_thing_are_not(left, right):
    assert not apart(left, right)


@pytest.mark.parametrize(
    ("left", "right", "words"),
    [
        ("apollo 11", "apollo 13", "11 against 13"),
        ("springfield illinois", "springfield missouri", "illinois against missouri"),
        ("<5", ">5", "<5 against >5"),
        ("baden baden", "baden", "baden baden against baden"),
        ("2 1", "1 2", "2 1 against 1 2"),
        ("world war i", "world war 2", "war i against 2"),
        ("paris", "pariz", None),
    ],
)
def test_the_words_that_tell_apart_are_named(left, right, words):
    assert differences([left, "oslo"], [right, "lisbon"], DISTINCTIONS) == [words, None]
    assert differences([left], [right], []) == [None]


def test_words_in_another_order_are_near_and_not_equal():
    turned = pa.array(["marie curie", "curie marie"], pa.large_string())
    vectors = sparse_vectors(create(distinctions=DISTINCTIONS), turned)
    assert pair_distances(vectors[0:1], vectors[1:2]).tolist() == [TURNED]
    assert pair_distances(vectors[0:1], vectors[0:1]).tolist() == [0.0]


@pytest.mark.parametrize(
    ("left", "right", "is_near"),
    [
        ("Paris", "Pariz", True),
        ("Kenya", "Kneya", True),
        ("Dublin", "Dubln", True),
        ("Казань", "Казан", True),
        ("Саратов", "Саратоф", False),
        ("Fuzhou", "Suzhou", False),
        ("Lima", "Limo", False),
        ("A1234", "A1235", False),
        ("東京都港区", "東京都北区", False),
        ("Oslo Paris", "Oslo Pariz", False),
    ],
)
def test_a_letter_of_a_short_word_may_differ(left, right, is_near):
    sides = [marks_of(normal(text), ()) for text in (left, right)]
    marks = [set(side.of_letters()[0].tolist()) for side in sides]
    assert bool(marks[0] & marks[1]) == is_near


@pytest.mark.parametrize(
    ("left", "right", "distance"),
    [
        ("WalMart", "Wal-Mart", REGROUPED),
        ("New York", "NewYork", REGROUPED),
        ("2-1", "21", 1.0),
        ("Henry V", "Henry 5", REGROUPED),
        ("Room 007", "Room 7", REGROUPED),
        ("Ro 04-6790", "Ro04-6790", REGROUPED),
        ("Seven Eleven", "7-Eleven", REGROUPED),
        ("Size XL", "Size 40", 0.5),
    ],
)
def test_one_word_or_two(left, right, distance):
    model = create(distinctions=DISTINCTIONS)
    sides = [sparse_vectors(model, normal(text)) for text in (left, right)]
    assert pair_distances(*sides).tolist() == [distance]
    if distance == REGROUPED:
        assert pair_costs(*sides, pair_distances(*sides)).tolist() == [distance]


def test_values_have_marks_of_their_own_whatever_others_there_are():
    values = normal(*(text for pair in (*APART, *TOGETHER) for text in pair))
    every = marks_of(values, DISTINCTIONS)
    for row in range(len(values)):
        alone = marks_of(values.slice(row, 1), DISTINCTIONS)
        assert alone.members.tolist() == every.take(np.array([row])).members.tolist(), values[row]
    assert len(marks_of(values.slice(0, 0), DISTINCTIONS)) == 0


SPOKEN = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
SPOKEN += ["eleven", "twelve"]
BETWEEN = ["to", "of", "vs", "v", "zu"]
ROMAN = {"i": "1", "v": "5", "x": "10", "xl": "40", "l": "50"}
PIECES = [*"0123456789", *".. -ab", "é", "1.50", "007", "2..3", "one", "twelve", "xl", "i", "ab"]


def numbers_in(word: str) -> list[str]:
    """Return the numbers of a word by patterns."""
    word = str(1 + SPOKEN.index(word)) if word in SPOKEN else word
    numbers = []
    for piece in re.split(r"[^0-9.]+|\.(?:[^0-9]|$)", word):
        piece = re.sub(r"^0+([0-9])", r"\1", piece)
        piece = re.sub(r"(\.[0-9]*?)0+$", r"\1", piece)
        numbers.append(re.sub(r"\.$", "", piece))
    return [number for number in numbers if re.search("[0-9]", number)]


def single_letters_in(words: list[str]) -> list[str]:
    """Return the letters that are a word, and those behind a number or as many letters' first."""
    letters = []
    has_number = bool(re.search("[0-9]", " ".join(words)))
    for place, word in enumerate(words):
        is_last = place == len(words) - 1
        behind = re.fullmatch("(.*[0-9])([a-z]{1,2})", word)
        if behind:
            is_plain = behind[1].isdecimal() and (is_last or len(words) <= 5)
            if len(words) <= 3 or is_plain:
                letters += [behind[2]] * (behind[2] not in ("s", "st", "nd", "rd", "th"))
        elif len(words) > 1:
            pattern = "[a-z]" if place == 0 or is_last else "[b-df-hj-np-tv-xz]"
            if re.fullmatch(pattern, word) or (is_last and word == "é"):
                letters.append(word)
            elif not has_number and place > 0 and not is_last:
                letters += re.findall("^([b-df-hj-np-tv-xz])[b-df-hj-np-tv-xz]$", word)
            elif is_last:
                letters += re.findall("^([a-z])[0-9]+$", word)
    return letters


def code_words_in(words: list[str]) -> list[str]:
    """Return the words of letters of a code, and of values that are as short as one."""
    limit = 4 if len(words) == 1 else 3 if re.search("[0-9]", " ".join(words)) else 2
    is_code = len(words) <= 3 and all(
        len(word.encode()) <= limit + bool(re.search("[0-9]", word)) for word in words
    )
    known = [*(SPOKEN if len(words) == 1 else ()), "xl", "aa", "aaa"]
    letters = [word for word in words if re.fullmatch("[a-z]{2,4}", word)]
    return [word for word in letters if is_code and word not in known]


def numbers_again(value: str) -> set[int]:
    """Return the marks of numbers that a value has more than once."""
    numbers = [number for word in value.split(" ") for number in numbers_in(word)]
    hashes = hash_strings(pa.array(sorted({*numbers}), pa.large_string())).tolist()
    again = [
        mixed(hashed + times)
        for number, hashed in zip(sorted({*numbers}), hashes, strict=True)
        for times in range(1, numbers.count(number))
    ]
    is_short = len(value.split(" ")) <= 5
    return set(marks_in_group(1, np.array(again * is_short, np.uint64)).tolist())


def mixed(number: int) -> int:
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
        number &= 2**64 - 1
        number = (number ^ (number >> shift)) * factor
    return number & (2**64 - 1)


def texts_by_group(value: str) -> set[tuple[int, str]]:
    """Return the numbers, repeated words, and letters of a value, with the groups of their marks.

    Runs of numbers and how often something is said, whose marks are no hashes of texts, have the
    text "".
    """
    words = value.split(" ")
    made = set()
    if len(words) <= 8:
        made |= {(1, number) for word in words for number in numbers_in(word)}
        if len(words) > 1 and words[-1] in ROMAN:
            made.add((1, ROMAN[words[-1]]))
        alone = [bool(re.fullmatch("-?[0-9.]+", word) or word in SPOKEN) for word in words]
        for place in range(1, len(words)):
            is_between = words[place] in BETWEEN and re.fullmatch(
                "-?[0-9.]+", "".join(words[place + 1 : place + 2])
            )
            if alone[place - 1] and (alone[place] or is_between):
                made.add((2, ""))
            if place == len(words) - 1 and re.fullmatch("[0-9]{1,2}", words[place]):
                is_run = alone[place - 1] or (words[place - 1] in BETWEEN and alone[place - 2])
                is_small = words[place] not in ("1", "01") and not (place > 1 and is_run)
                if is_small and not re.search("[0-9]", words[0] + words[place - 1]):
                    made.add((120, ""))
        made |= {(4, letter) for letter in single_letters_in(words)}
        made |= {(9, word) for word in code_words_in(words)}
    made |= {(8, word) for word in words if re.fullmatch("[\u4e00-\u9fff]{2}", word)}
    if len(words) == 3 and words[0] == words[2] and words[1] in BETWEEN:
        words = words[::2] if re.fullmatch("-?[0-9.]+", words[0]) else words
    if 1 < len(words) <= 3 and words[0] == words[1]:
        made.add((115, words[0]))
    if 3 <= len(words) <= 5 and words[1] == "and" and words[0] == words[2]:
        made.add((115, words[0]))
    if len(words) > 1 and len(set(words)) == 1:
        made.add((5, ""))
    if len(words) == 1 and re.fullmatch(r"(?s)(\D)\1*[-+#0-9]*", value):
        made.add((6, ""))
    if any(words[: len(words) // n] * n == words for n in (2, 3, 4) if len(words) > n):
        made.add((116, ""))
    if re.fullmatch("[a-zé]{5,6}", value):
        made |= {(127, value), *((127, value[:k] + value[k + 1 :]) for k in range(1, len(value)))}
    return made


def test_marks_are_those_that_patterns_find():
    generator = np.random.default_rng(5)
    values = ["".join(generator.choice(PIECES, generator.integers(0, 14))) for _ in range(3000)]
    values += [" ".join(generator.choice(SPOKEN[:3], 4)) for _ in range(200)]
    values += ["".join(generator.choice([*"abé"], 5 + k % 2)) for k in range(100)]
    words = ["1", "2", "12", "to", "v", "and", "-"]
    values += [" ".join(generator.choice(words, 1 + k % 7)) for k in range(600)]
    values += [letter * times for letter in "aé1東" for times in (1, 2, 3)]
    marks = marks_of(pa.array(values, pa.large_string()), ["different-numbers", "repeated-words"])
    n_compared = 0
    for row, value in enumerate(values):
        again = numbers_again(value)
        own = marks.take(np.array([row])).members
        assert again <= {*own.tolist()}, value
        own = own[~np.isin(own, [*again])]
        expected = sorted(texts_by_group(value))
        groups = np.array([group for group, _ in expected], np.int64)
        hashes = hash_strings(pa.array([text for _, text in expected], pa.large_string()))
        known = np.isin(groups, [1, 4, 8, 9, 115, 127])
        of_texts = own[np.isin(own >> 56, [1, 4, 8, 9, 115, 127])]
        assert sorted(set(marks_in_group(groups, hashes)[known])) == of_texts.tolist(), value
        assert sorted(set(groups[~known])) == sorted(set(own[~np.isin(own, of_texts)] >> 56)), value
        n_compared += len(expected)
    assert n_compared > 3000


def test_opposites_are_few_enough_to_be_told_from_strict_marks():
    marks = known_names().opposites
    assert (marks >= 0).all()
    assert (marks > 0).sum() > 100
    groups = np.unique(marks >> 56)
    assert set(groups[groups >= STRICT_GROUPS]) == {117, 118, 119}


def test_names_of_a_city_in_two_languages_have_the_same_letters():
    names = ["munich", "munchen", "muenchen", "koln", "cologne", "东京", "tokyo", "york"]
    letters = marks_of(pa.array(names, pa.large_string()), DISTINCTIONS).letters.tolist()
    assert letters[0] == letters[1] == letters[2]
    assert letters[3] == letters[4]
    assert letters[5] == letters[6]
    assert len(set(letters)) == 4
