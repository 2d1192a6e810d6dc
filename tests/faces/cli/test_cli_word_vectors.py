"""fastText `.bin` files and files of word vectors: `--value-vectors` on the command line."""

import json

import numpy as np
import pyarrow as pa
import pytest

import pexeso

CITIES = ["oslo fjord", "bergen harbour", "trondheim", "narvik harbour", "hamar"]
TOWNS = ["bergen port", "oslo", "narvik", "hamar fjord", "molde port"]
WORDS = sorted({word for value in (*CITIES, *TOWNS) for word in value.split()})


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    folder = tmp_path_factory.mktemp("word-vectors") / "lake"
    folder.mkdir()
    (folder / "towns.csv").write_text("town\n" + "".join(f"{town}\n" for town in TOWNS), "utf-8")
    return folder


@pytest.fixture(scope="module")
def binary(tmp_path_factory):
    """Return a tiny model of the fasttext package, and the file that it wrote."""
    package = pytest.importorskip("fasttext")
    folder, generator = tmp_path_factory.mktemp("binary"), np.random.default_rng(5)
    lines = (" ".join(generator.choice(WORDS, 4)) for _ in range(300))
    (folder / "corpus.txt").write_text("\n".join(lines), encoding="utf-8")
    model = package.train_unsupervised(
        str(folder / "corpus.txt"), dim=12, epoch=5, bucket=500, minCount=1, thread=12, verbose=0
    )
    model.save_model(str(folder / "small.bin"))
    return model, folder / "small.bin"


def write_vectors(path, header=""):
    rows = np.random.default_rng(7).standard_normal((len(WORDS), 6)).round(4)
    lines = (f"{word} {' '.join(map(str, row))}\n" for word, row in zip(WORDS, rows, strict=True))
    path.write_text(header + "".join(lines), encoding="utf-8")
    return dict(zip(WORDS, rows, strict=True))


def published_distances(vector_of):
    """Return the distances of the means of unit word vectors, as fractions of the largest."""

    def unit(vector):
        return vector / np.linalg.norm(vector)

    cities, others = (
        np.array([unit(sum(unit(vector_of(word)) for word in value.split())) for value in side])
        for side in (CITIES, TOWNS)
    )
    return np.linalg.norm(cities[:, None] - others[None], axis=2) / 2


def distances_of(index):
    """Return the distances that an index has for the same values."""
    cities, others = (index.encode(pa.array(side)) for side in (CITIES, TOWNS))
    distances = (cities.vectors[:, None] - others.vectors[None]).norm(dim=2) / 2
    order = [[list(column.values.to_pylist()).index(value) for value in side]
             for column, side in ((cities, CITIES), (others, TOWNS))]  # fmt: skip
    return distances.numpy()[np.ix_(*order)]


def built(run, lake, path, *options):
    run("index", lake, path, *options)
    return pexeso.open_index(path, device="cpu")


def require_answers(run, index, query, distances):
    """Require that searches by the command line count what the distances say."""
    for limit in (0.06, 0.2, 0.4):
        expected = int((distances.min(1) <= limit).sum())
        result = run("search", index.path, query, "--max-distance", limit, "-k", 1, "--json")
        matches = json.loads(result.stdout)["results"]
        assert [match["matched"] for match in matches] == ([expected] if expected else [])


@pytest.fixture
def query(write):
    path = write("mine.csv", "city\n" + "".join(f"{city}\n" for city in CITIES))
    return f"{path}:city"


@pytest.mark.long
def test_a_fasttext_file_as_published_and_weighted(run, lake, binary, query, tmp_path):
    package, path = binary
    mean = built(run, lake, tmp_path / "mean", "--model", path, "--value-vectors", "mean")
    assert (mean.embedder.kind, mean.usual_max_distance) == ("fasttext-mean", 0.06)
    expected = published_distances(package.get_word_vector)
    np.testing.assert_allclose(distances_of(mean), expected, atol=5e-4)
    require_answers(run, mean, query, distances_of(mean))
    weighted = built(run, lake, tmp_path / "weighted", "--model", path)
    assert (weighted.embedder.kind, weighted.usual_max_distance) == ("fasttext", 0.22)
    assert np.abs(distances_of(weighted) - expected).max() > 0.05
    require_answers(run, weighted, query, distances_of(weighted))
    other = pexeso.build_index(lake, tmp_path / "other", model=str(path), value_vectors="mean")
    assert other.embedder.fingerprint == mean.embedder.fingerprint
    np.testing.assert_array_equal(distances_of(other), distances_of(mean))


@pytest.mark.parametrize("header", ["", f"{len(WORDS)} 6\n"])
def test_a_file_of_word_vectors_is_the_published_mean(run, lake, query, tmp_path, header):
    path = tmp_path / "words.txt"
    rows = write_vectors(path, header)
    mean = built(run, lake, tmp_path / "mean", "--model", path, "--value-vectors", "mean")
    assert (mean.embedder.kind, mean.usual_max_distance) == ("glove", 0.06)
    np.testing.assert_allclose(distances_of(mean), published_distances(rows.get), atol=5e-4)
    require_answers(run, mean, query, distances_of(mean))
    if header:
        plain = pexeso.build_index(lake, tmp_path / "plain", model=str(path))
        assert plain.embedder.fingerprint == mean.embedder.fingerprint


def test_wrong_files_and_options_are_refused_and_leave_no_index(fail, lake, tmp_path):
    words, odd, index = tmp_path / "words.txt", tmp_path / "odd.txt", tmp_path / "index"
    write_vectors(words)
    good = words.read_text(encoding="utf-8")
    for text, said in (
        (f"{good}odd nan 1 2 3 4 5\n", "holds vectors that are not finite numbers"),
        ("All happy families are alike.\n", "its first line is not a word and numbers"),
        ("", "its first line is not a word and numbers"),
    ):
        odd.write_text(text, encoding="utf-8")
        shown = fail(1, "index", lake, index, "--model", odd)
        assert said in shown
        assert "odd.txt" in shown
        assert not (index / "manifest.json").exists()
    said = fail(2, "index", lake, index, "--model", words, "--value-vectors", "weighted")
    assert "does not say how rare words are, so value_vectors must be 'mean'" in said
