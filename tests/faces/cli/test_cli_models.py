"""`--model` on the command line: an index of two models, and the model that a command names."""

import json
import shutil

import pytest

import pexeso

MODELS = ("lexical", "hashing")


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cli-models") / "lake"
    folder.mkdir()
    (folder / "cities.csv").write_text(
        "city,mayor\nOslo,Anne\nBergen,Rune\nTrondheim,Kent\nBodø,Odd\nHamar,Einar\n", "utf-8"
    )
    (folder / "towns.csv").write_text(
        "town,county\nolso,Østland\nBergenn,Vestland\nTrondhjem,Trøndelag\nBodo,Nordland\n"
        "Hammer,Innlandet\n",
        "utf-8",
    )
    return folder


@pytest.fixture(scope="module")
def built(lake):
    """Return the paths of indexes of both models and of each."""
    names = {"both": "lexical,hashing", **{name: name for name in MODELS}}
    for name, model in names.items():
        pexeso.build_index(lake, lake.parent / name, model=model, parts=["overlap"])
    return {name: lake.parent / name for name in names}


@pytest.fixture
def query(write):
    path = write("mine.csv", "place,n\nOslo,1\nBergenn,2\nTrondheim,3\nBodø,4\nHamarr,5\n")
    return f"{path}:place"


def shown(run, *arguments):
    return run(*arguments).stdout


def require_as_alone(run, built, model, *command):
    """Require that a command with `--model` says what it says of an index of that model alone."""
    both, alone = built["both"], built[model]
    name, *rest = command
    assert shown(run, name, both, *rest, "--model", model) == shown(run, name, alone, *rest)


@pytest.mark.parametrize("model", MODELS)
def test_each_command_asks_the_model_that_it_is_given(run, built, query, tmp_path, write, model):
    options = ("--min-joinability", 0.2)
    require_as_alone(run, built, model, "search", query, "--explain", *options)
    require_as_alone(run, built, model, "explain", query, "towns.csv:town")
    require_as_alone(run, built, model, "join", query, "towns.csv:town")
    queries = write("queries.jsonl", '{"id": 1, "values": ["Oslo", "Bergenn"]}\n')
    answers = [
        [json.loads(line)["results"] for line in shown(run, *line).splitlines()]
        for line in (
            ("batch", built["both"], queries, *options, "--model", model),
            ("batch", built[model], queries, *options),
        )
    ]
    assert answers[0] == answers[1] != [[]]
    labels = tmp_path / "labels.csv"
    pairs = "Oslo,Oslo,yes\nOslo,olso,yes\nOslo,Bergen,no\nBodø,Hammer,no\n"
    labels.write_text(f"query_value,lake_value,same\n{pairs}", encoding="utf-8")
    require_as_alone(run, built, model, "tune", labels, "--json")


def test_the_first_model_is_the_default(run, built, query):
    arguments = (query, "--min-joinability", 0.2, "--explain")
    first, other = (shown(run, "search", built["both"], *arguments, *more) for more in ((), OTHER))
    assert first == shown(run, "search", built["lexical"], *arguments) != other


OTHER = ("--model", "hashing")


def test_combined_search_shows_what_each_model_found(run, built, query):
    arguments = (query, "--method", "all", "--min-joinability", 0.5)
    document = json.loads(shown(run, "search", built["both"], *arguments, "--json"))
    assert set(document["options"]) == set(document["stats"]) == {*MODELS, "overlap", "transform"}
    alone = {
        model: {
            match["table"]: match["joinability"]
            for match in json.loads(
                shown(run, "search", built[model], *arguments[:1], *arguments[3:], "--json")
            )["results"]
        }
        for model in MODELS
    }
    assert len(alone["lexical"]) == 2 > len(alone["hashing"])
    for match in document["results"]:
        by_model = {model: alone[model].get(match["table"]) for model in MODELS}
        assert match["models"] == by_model
        assert match["joinability"] == max(filter(None, by_model.values()))
        models = [model for model in MODELS if by_model[model] is not None]
        assert [name for name in match["found_by"] if name in MODELS] == models
    table = shown(run, "search", built["both"], *arguments)
    assert {"hashing" in line for line in table.splitlines()[1:]} == {True, False}
    assert "lexical 5/5, hashing 3/5 values" in table
    one = json.loads(shown(run, "search", built["both"], *arguments, *OTHER, "--json"))
    assert set(one["options"]) == {"hashing", "overlap", "transform"}
    assert [list(match["models"]) for match in one["results"]][:1] == [["hashing"]]
    plain = json.loads(shown(run, "search", built["hashing"], *arguments, *OTHER, "--json"))
    assert set(plain["options"]) == {"meaning", "overlap", "transform"}
    assert "models" not in plain["results"][0]


def test_models_of_a_combined_search_in_python(built):
    index = pexeso.open_index(built["both"])
    result = pexeso.search_combined(index, ["Oslo", "Bergenn"], models=["hashing"])
    assert list(result[0].by_model) == ["hashing"]
    with pytest.raises(pexeso.PexesoError, match="models must name some of those"):
        pexeso.search_combined(index, ["Oslo"], models=[])
    with pytest.raises(pexeso.PexesoError, match="does not hold the model 'glove'"):
        pexeso.search_combined(index, ["Oslo"], models=["glove"])


def test_info_and_estimate_list_the_models(run, built, lake):
    lines = shown(run, "info", built["both"]).splitlines()
    models = [line.split(maxsplit=1)[1] for line in lines if line.startswith("model ")]
    assert models == ["lexical, 19 words", "hashing, 256 dimensions of 16 bits"]
    estimate = json.loads(shown(run, "estimate", lake, "--model", "lexical,hashing", "--json"))
    [further] = estimate["further_models"]
    assert (further["model"], further["dimensions"]) == ("hashing", 256)
    assert estimate["seconds"]["index_2"] > 0
    alone = json.loads(shown(run, "estimate", lake, "--model", "lexical", "--json"))
    assert estimate["index_bytes"] - alone["index_bytes"] >= further["model_bytes"]
    assert "index_2" not in alone["seconds"]


def test_updates_are_told_of_all_models(run, built, lake, tmp_path):
    shutil.copytree(built["both"], tmp_path / "copy")
    shutil.copytree(lake, tmp_path / "lake")
    (tmp_path / "lake" / "more.csv").write_text(
        "place,code\nOslo,OSL\nBergen,BGO\nTrondheim,TRD\nStavanger,SVG\nTromsø,TOS\n", "utf-8"
    )
    shown(run, "append", tmp_path / "copy", tmp_path / "lake")
    info = json.loads(shown(run, "info", tmp_path / "copy", "--json"))
    assert len(info["partitions"]) == len(info["further_models"][0]["partitions"]) == 2
    shown(run, "check", tmp_path / "copy")


def test_a_model_is_added(run, built, query, tmp_path):
    shutil.copytree(built["lexical"], tmp_path / "copy")
    report = json.loads(shown(run, "add-model", tmp_path / "copy", "hashing", "--json"))
    assert (report["committed"], report["partitions_added"], report["generation"]) == (True, 1, 2)
    arguments = (query, "--explain", "--min-joinability", 0.2, *OTHER)
    output, expected = (
        shown(run, "search", path, *arguments) for path in (tmp_path / "copy", built["both"])
    )
    assert output == expected
    result = run("add-model", tmp_path / "copy", "fasttext", "--value-vectors", "mean")
    assert "Added fasttext with 1 partition; generation 3, " in result.stderr
    info = json.loads(shown(run, "info", tmp_path / "copy", "--json"))
    assert [model["model"] for model in info["further_models"]] == ["hashing", "fasttext"]
