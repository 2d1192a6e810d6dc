"""An index of hashed values answers by equal values as one of texts does, and holds no text."""

import hashlib
import random
import string

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest

import pexeso
from pexeso.errors import InputError
from pexeso.index import build_index
from pexeso.lake.hashed_values import KEY, hashed_texts, value_key
from pexeso.semantic.open_index import open_without_models

SECRET = "a key of many letters"
PARTS = ["containment"]


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv(KEY, SECRET)


def words(n, seed):
    letters = random.Random(seed)
    return ["".join(letters.choices(string.ascii_lowercase, k=12)) for _ in range(n)]


NAMES = words(30, 1)


@pytest.fixture
def lake(tmp_path):
    folder = tmp_path / "lake"
    folder.mkdir()
    for number, names in enumerate((NAMES[:20], NAMES[10:], words(20, 2))):
        rows = [f"{name},{700_000 + n},{n % 28 + 1}.03.20{n + 10}" for n, name in enumerate(names)]
        (folder / f"t{number}.csv").write_text("\n".join(["name,n,day", *rows]))
    note = "\n".join(["town,n", *(f"{name},1" for name in words(8, 3)), "", "secretfootnote"])
    (folder / "noted.csv").write_text(note)
    (folder / "broken.json").write_text('{"secretcell": tru')
    return folder


def matches_of(result):
    return [
        (match.table, match.column, match.overlap, match.containment, match.shared())
        for match in result
    ]


def test_equal_texts_alone_have_equal_hashes_of_a_key():
    texts = ["Oslo", None, "Łódź", "Oslo", "oslo", "😀" * 999, "a\0", "a"]
    key, other = value_key(), bytes(64)
    hashes = hashed_texts(pa.array(texts), key).to_pylist()
    assert hashes == [
        text and hashlib.blake2b(text.encode(), key=key, digest_size=16).hexdigest()
        for text in texts
    ]
    assert hashed_texts(pa.array(texts)[2:5], key).to_pylist() == hashes[2:5]
    assert not {*hashed_texts(pa.array(texts), other).drop_null().to_pylist()} & {*hashes}
    assert hashed_texts(pa.array([], pa.string()), key).to_pylist() == []


def test_answers_are_those_of_an_index_of_texts(lake, tmp_path):
    plain = build_index(lake, tmp_path / "plain", parts=PARTS)
    index = build_index(lake, tmp_path / "ix", values="hashed")
    assert index.parts == ("overlap", "containment")
    for query in (NAMES, NAMES[:7], ["700001", "700002.0"], ["1.3.2010", "2.3.2011"], ["none"]):
        assert matches_of(index.overlap(query)) == matches_of(plain.overlap(query))
        assert matches_of(index.contain(query, min_containment=0.2)) == matches_of(
            plain.contain(query, min_containment=0.2)
        )
    assert matches_of(index.overlap(NAMES))[0][4]
    edges, hashed_edges = (one.graph(method="overlap").rows() for one in (plain, index))
    assert hashed_edges == edges != []
    assert not [problem for problem in index.check() if problem.is_failure]


def contents(folder):
    """Yield all bytes of an index, unpacked."""
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        yield str(path.name).encode() + path.read_bytes()
        if path.suffix == ".parquet":
            yield repr(pq.read_table(path, partitioning=None).to_pydict()).encode()
        elif path.suffix == ".arrow":
            yield repr(pa.ipc.open_file(path).read_all().to_pydict()).encode()
        elif path.suffix == ".npy":
            yield repr(np.load(path).ravel().tolist()).encode()


def test_no_value_is_in_the_index_nor_the_key(lake, tmp_path):
    secrets = [*NAMES, *words(20, 2), *words(8, 3), "secretfootnote", "secretcell", SECRET]
    secrets += [value_key().hex(), "700000", ".03.20", "-03-"]
    build_index(lake, tmp_path / "ix", values="hashed")
    (lake / "t9.csv").write_text("name\n" + "\n".join(NAMES[:8]))
    pexeso.open_index(tmp_path / "ix").append()
    held = list(contents(tmp_path / "ix"))
    assert [word for word in secrets if any(word.encode() in data for data in held)] == []
    build_index(lake, tmp_path / "plain", parts=PARTS)
    held = list(contents(tmp_path / "plain"))
    assert len([word for word in secrets if any(word.encode() in data for data in held)]) > 50


def test_without_its_key_an_index_answers_nothing(lake, tmp_path, monkeypatch):
    path = tmp_path / "ix"
    build_index(lake, path, values="hashed")
    for secret, said in (
        (None, "Hashed values need a key: set PEXESO_KEY"),
        ("short", r"16 to 65,536 bytes.* Got 5\."),
        ("another key of many letters", "written with another key than that of PEXESO_KEY"),
        (f"@{tmp_path}/missing", "names cannot be read: No such file"),
        ("@", "names cannot be read"),
    ):
        monkeypatch.delenv(KEY) if secret is None else monkeypatch.setenv(KEY, secret)
        for use in (
            lambda: pexeso.open_index(path),
            lambda: open_without_models(path),
            lambda: build_index(lake, path, values="hashed", overwrite=True),
        ):
            if (
                secret == "another key of many letters"
                and use.__code__.co_names[0] == "build_index"
            ):
                continue
            with pytest.raises(InputError, match=said) as refused:
                use()
            assert secret is None or secret not in str(refused.value)
    (tmp_path / "key").write_text(f"{SECRET}\n")
    monkeypatch.setenv(KEY, f"@{tmp_path}/key")
    index = pexeso.open_index(path)
    assert index.overlap(NAMES)
    (lake / "t9.csv").write_text("name\n" + "\n".join(NAMES[:8]))
    monkeypatch.setenv(KEY, "another key of many letters")
    with pytest.raises(InputError, match="another key"):
        index.append()
    monkeypatch.setenv(KEY, SECRET)
    assert index.append().new == 1
    index.delete(["t0.csv"])
    assert index.compact(everything=True).committed
    assert {match.table for match in index.overlap(NAMES)} == {"t1.csv", "t9.csv"}


def test_what_needs_texts_is_refused(lake, tmp_path):
    index = build_index(lake, tmp_path / "ix", values="hashed")
    for use in (
        lambda: index.search(NAMES),
        lambda: index.search(NAMES, method="all"),
        lambda: index.search(NAMES, method="transform"),
        lambda: index.search_batch([NAMES]),
        lambda: index.advise(),
        lambda: index.graph(method="semantic"),
        lambda: index.acquire("t0.csv:name", "n"),
    ):
        with pytest.raises(
            InputError, match="holds hashed values, which are found by equal values"
        ):
            use()
    with pytest.raises(InputError, match="it is hashed, and found by equal values alone"):
        index.explain(NAMES, "t0.csv", "name")
    for use in (
        lambda: index.add_parts(["composite"]),
        lambda: index.add_model("hashing"),
        lambda: build_index(lake, tmp_path / "no", values="hashed", parts=["redundancy"]),
        lambda: build_index(lake, tmp_path / "no", values="hashed", model="hashing"),
        lambda: build_index(lake, tmp_path / "no", values="hashed", aliases="a.csv"),
    ):
        with pytest.raises(InputError, match="An index of hashed values has the parts overlap"):
            use()
    for use in (
        lambda: index.search_composite(pa.table({"a": NAMES, "b": NAMES}), ["a", "b"]),
        lambda: pexeso.find_redundancy(str(tmp_path / "ix")),
    ):
        with pytest.raises(pexeso.PexesoError, match=r"has no part|lacks"):
            use()
