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
QUERY = ["Oslo", "Bergenn", "Trondheim", "Bodø", "Hamarr"]
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
    document = index.search(QUERY, **options).to_dict(explain=True)
    exact = index.search(QUERY, exact=True, **options)
    assert [match.table for match in exact] == [match["table"] for match in document["results"]]
    table, column = document["results"][0]["table"], document["results"][0]["column"]
    explanation = index.explain(QUERY, table, column).to_dict()
    return document["results"], document["options"], explanation


def require_as_alone(both, alone):
    """Require that the index of both models answers as each index of one."""
    answers_by_model = {name: answers(both.with_model(name)) for name in MODELS}
    assert answers_by_model == {name: answers(alone[name]) for name in MODELS}
    assert answers(both) == answers_by_model["lexical"]
    assert answers_by_model["lexical"] != answers_by_model["hashing"]
    assert both.check() == []
