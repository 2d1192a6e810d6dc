"""A small lake, indexes of it of one model and of two, and all that these answer."""

import pexeso

TABLES = {
    "cities.csv": "city,mayor\nOslo,Anne\nBergen,Rune\nTrondheim,Kent\nBodø,Odd\nHamar,Einar\n",
    "towns.csv": "town,county\nolso,Østland\nBergenn,Vestland\nTrondhjem,Trøndelag\n"
    "Bodo,Nordland\nHammer,Innlandet\n",
    "people.csv": "person,born\nMarie Curie,Warsaw\nNiels Bohr,Copenhagen\nLise Meitner,Vienna\n"
    "Ada Lovelace,London\nAlan Turing,London\n",
}
MORE = "place,code\nOslo,OSL\nBergen,BGO\nTrondheim,TRD\nStavanger,SVG\nTromsø,TOS\n"
ASKED = ["Oslo", "Bergenn", "Trondheim", "Bodø", "Hamarr"]
MODELS = ("lexical", "hashing")
DIMENSIONS = 64


def write_lake(folder):
    """Write the lake into a new folder, and return it."""
    folder.mkdir()
    for name, text in TABLES.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def build(lake, path, model, **options):
    dimensions = None if model == "lexical" else DIMENSIONS
    return pexeso.build_index(lake, path, model=model, dimensions=dimensions, **options)


def answers(index):
    """What searches and explanations give: all fields, pairs with their distances too."""
    options = {"min_joinability": 0.2, "k": "all"}
    found = index.search(ASKED, **options).to_dict(explain=True)
    exact = index.search(ASKED, exact=True, **options)
    assert [match.table for match in exact] == [each["table"] for each in found["results"]]
    table, column = found["results"][0]["table"], found["results"][0]["column"]
    told = index.explain(ASKED, table, column).to_dict()
    return found["results"], found["options"], told


def require_as_alone(both, alone):
    """Require that the index of both models answers as each index of one."""
    told = {name: answers(both.with_model(name)) for name in MODELS}
    assert told == {name: answers(alone[name]) for name in MODELS}
    assert answers(both) == told["lexical"]
    assert told["lexical"] != told["hashing"]
    assert both.check() == []
