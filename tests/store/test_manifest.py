import dataclasses
import hashlib
import json
from functools import reduce

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from long_runs import examples

from pexeso.errors import IndexCorruptError, IndexVersionError, InputError
from pexeso.store.manifest import FORMAT_VERSION, FileEntry, FolderEntry, Manifest

CHECKSUM = "0123456789abcdef" * 2

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
names = st.text(
    st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\\/"), min_size=1, max_size=8
).filter(lambda name: name not in (".", ".."))
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False)
    | texts
)
plain = st.recursive(
    scalars.filter(lambda value: not isinstance(value, float) or abs(value) != float("inf")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(texts, plain, max_size=3)
files = st.lists(
    st.builds(
        FileEntry, names, st.integers(0, 2**60), st.binary(min_size=16, max_size=16).map(bytes.hex)
    ),
    min_size=1,
    max_size=3,
    unique_by=lambda entry: entry.path,
).map(tuple)


ranges = st.sets(st.integers(0, 2**40), max_size=6).map(
    lambda bounds: tuple(zip(sorted(bounds)[0::2], sorted(bounds)[1::2], strict=False))
)


@st.composite
def manifests(draw: st.DrawFn) -> Manifest:
    numbers = draw(st.lists(st.integers(0, 10**9), max_size=3, unique=True))
    return Manifest(
        written_by=draw(texts.filter(bool)),
        created="2024-05-01T12:00:00+00:00",
        generation=draw(st.integers(1, 2**40)),
        options=draw(objects),
        fingerprints=draw(objects),
        facts=draw(objects),
        catalogs=(FolderEntry(draw(st.sampled_from(["catalog", "catalog.2"])), draw(files)),),
        embedder=FolderEntry(draw(st.sampled_from(["embedder", "embedder.17"])), draw(files)),
        parts={
            name: tuple(
                FolderEntry(f"partitions/{number:05d}", draw(files), draw(objects))
                for number in some
            )
            for name, some in (("semantic", numbers[1:]), ("token_sets", numbers[:1]))
        },
        deleted_columns=draw(ranges),
    )


def example(**changes) -> Manifest:
    folder = (FileEntry("a", 1, CHECKSUM),)
    values = {
        "written_by": "pexeso",
        "created": "2024-05-01T12:00:00+00:00",
        "generation": 1,
        "options": {},
        "fingerprints": {},
        "facts": {},
        "catalogs": (FolderEntry("catalog", folder),),
        "embedder": FolderEntry("embedder", folder),
        "parts": {"semantic": (FolderEntry("partitions/00000", folder),)},
    }
    return Manifest(**{**values, **changes})


def signed(document: dict) -> bytes:
    """Return the bytes of a forged manifest, canonical and with a right checksum.

    The contents may be anything.
    """
    document = {key: value for key, value in document.items() if key != "checksum"}

    def canonical(value: dict) -> bytes:
        return json.dumps(value, sort_keys=True, separators=(",", ":")).encode("ascii") + b"\n"

    return canonical(
        {**document, "checksum": hashlib.blake2b(canonical(document), digest_size=16).hexdigest()}
    )


def changed(*path: str | int, to: object) -> bytes:
    document = json.loads(example().to_bytes())
    place = document
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = to
    return signed(document)


@given(manifests())
@settings(max_examples=examples(150), deadline=None)
def test_a_manifest_comes_back_as_it_was_and_to_the_same_bytes(manifest: Manifest) -> None:
    data = manifest.to_bytes()
    back = Manifest.from_bytes(data)
    assert back == manifest
    assert back.to_bytes() == data


@given(st.data())
@settings(max_examples=examples(300), deadline=None)
def test_changed_bytes_are_refused(data: st.DataObject) -> None:
    original = example(options={"text": "ü", "number": 0.06}).to_bytes()
    start = data.draw(st.integers(0, len(original)))
    end = data.draw(st.integers(start, min(len(original), start + 4)))
    mutated = original[:start] + data.draw(st.binary(max_size=4)) + original[end:]
    if mutated == original:
        assert Manifest.from_bytes(mutated).to_bytes() == original
    else:
        with pytest.raises(IndexCorruptError):
            Manifest.from_bytes(mutated)


@given(st.binary(max_size=60))
@settings(max_examples=examples(200), deadline=None)
def test_any_other_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(IndexCorruptError, match="changed or cut short"):
        Manifest.from_bytes(data)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"{}",
        b"null\n",
        b"[" * 100_000,
        b"1" * 10_000,
        b'{"format_version": NaN}',
        b"\xff\xfe",
    ],
    ids=["empty", "list", "object", "null", "deep", "long number", "NaN", "not UTF-8"],
)
def test_odd_json_is_refused(data: bytes) -> None:
    with pytest.raises(IndexCorruptError):
        Manifest.from_bytes(data)


def test_the_form_is_canonical() -> None:
    data = example(facts={"b": 1, "a": "ü"}).to_bytes()
    assert data.endswith(b"}\n")
    assert data.isascii()
    assert data.index(b'"a"') < data.index(b'"b"')
    assert json.loads(data)["format_version"] == FORMAT_VERSION


def test_a_newer_version_is_told_from_damage() -> None:
    document = json.loads(example().to_bytes())
    newer = signed({**document, "format_version": 7, "unknown": [1]})
    with pytest.raises(IndexVersionError) as caught:
        Manifest.from_bytes(newer)
    assert str(caught.value) == (
        "The index has format version 7, and this pexeso reads up to version 4: "
        "upgrade pexeso, or build the index again with this one."
    )
    with pytest.raises(IndexCorruptError):
        Manifest.from_bytes(newer.replace(b'"format_version":7', b'"format_version":8'))


@pytest.mark.parametrize("version", [0, -1, True, "1", 1.0, None])
def test_a_version_that_is_none_is_refused(version: object) -> None:
    with pytest.raises(IndexCorruptError, match="format version"):
        Manifest.from_bytes(changed("format_version", to=version))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("written_by",), ""),
        (("created",), 5),
        (("generation",), 0),
        (("generation",), 1.0),
        (("options",), []),
        (("facts",), None),
        (("catalogs",), None),
        (("catalogs",), []),
        (("catalogs", 0), None),
        (("catalogs", 0), {"folder": "catalog", "files": []}),
        (("catalogs", 0, "files"), []),
        (("catalogs", 0, "files"), {}),
        (("catalogs", 0, "files"), [["a", 1, CHECKSUM]]),
        (("catalogs", 0, "folder"), "embedder"),
        (("catalogs", 0, "folder"), "catalog/.."),
        (("catalogs", 0, "folder"), "/catalog"),
        (("catalogs", 0, "folder"), "partitions/00000"),
        (("embedder", "folder"), "catalog"),
        (("embedder", "folder"), ".building"),
        (("parts",), []),
        (("parts",), None),
        (("parts", "semantic"), {}),
        (("parts", "../up"), []),
        (("parts", ""), []),
        (("partitions",), []),
        (("parts", "semantic", 0), "partitions/00000"),
        (("parts", "semantic", 0, "folder"), "partitions/0"),
        (("parts", "semantic", 0, "folder"), "partitions/../.."),
        (("parts", "semantic", 0, "folder"), "embedder.3"),
        (("parts", "semantic", 0, "facts"), "none"),
        (("parts", "semantic", 0, "files", 0, "n_bytes"), -1),
        (("parts", "semantic", 0, "files", 0, "n_bytes"), True),
        (("parts", "semantic", 0, "files", 0, "n_bytes"), 1.5),
        (("parts", "semantic", 0, "files", 0, "checksum"), CHECKSUM.upper()),
        (("parts", "semantic", 0, "files", 0, "checksum"), CHECKSUM + "\n"),
        (("parts", "semantic", 0, "files", 0, "path"), "../a"),
        (("parts", "semantic", 0, "files", 0, "path"), "/etc/passwd"),
        (("parts", "semantic", 0, "files", 0, "path"), "b/./a"),
        (("parts", "semantic", 0, "files", 0, "path"), "b\\a"),
        (("parts", "semantic", 0, "files", 0, "path"), "a\x00"),
        (("parts", "semantic", 0, "files", 0, "path"), ""),
        (("parts", "semantic", 0, "files", 0, "path"), 3),
        (("parts", "semantic", 0, "files", 0, "other"), 3),
        (("deleted_columns",), [[2, 1]]),
        (("deleted_columns",), [[1, 1]]),
        (("deleted_columns",), [[-1, 3]]),
        (("deleted_columns",), [[1, 3], [2, 4]]),
        (("deleted_columns",), [[1]]),
        (("deleted_columns",), [1]),
        (("deleted_columns",), None),
        (("more",), 1),
    ],
)
def test_whole_manifests_that_say_what_none_can_say_are_refused(path: tuple, value: object) -> None:
    with pytest.raises(IndexCorruptError, match="holds what no index can hold"):
        Manifest.from_bytes(changed(*path, to=value))


@pytest.mark.parametrize("version", [1, 2, 3])
def test_an_index_that_no_release_wrote_is_refused(version: int) -> None:
    older = signed({**json.loads(example().to_bytes()), "format_version": version})
    with pytest.raises(
        IndexVersionError, match=f"version {version}, .* version 4: build the index again"
    ):
        Manifest.from_bytes(older)


def test_a_missing_field_is_refused() -> None:
    document = json.loads(example().to_bytes())
    for name in set(document) - {"checksum", "format_version"}:
        with pytest.raises(IndexCorruptError):
            Manifest.from_bytes(
                signed({key: value for key, value in document.items() if key != name})
            )


def test_repeated_names_are_refused() -> None:
    entry = FileEntry("a", 1, CHECKSUM)
    folder = FolderEntry("partitions/00001", (entry,))
    with pytest.raises(InputError, match="name the same folder"):
        example(parts={"semantic": (folder, folder)})
    with pytest.raises(InputError, match="name the same folder"):
        example(parts={"semantic": (folder,), "other": (folder,)})
    with pytest.raises(InputError, match="listed twice"):
        FolderEntry("catalog", (entry, entry))
    with pytest.raises(InputError, match="both a file and a folder"):
        FolderEntry("catalog", (entry, FileEntry("a/b/c", 1, CHECKSUM)))


def test_a_path_of_half_a_surrogate_pair_is_refused() -> None:
    with pytest.raises(InputError, match="plain name"):
        FileEntry("\ud83d", 1, CHECKSUM)


@pytest.mark.parametrize(
    "value",
    [
        (1, 2),
        float("nan"),
        float("inf"),
        {1: 2},
        b"",
        "\ud83d",
        reduce(lambda v, _: [v], range(9999)),
    ],
)
def test_values_that_json_would_change_are_refused(value: object) -> None:
    with pytest.raises(InputError, match="options must hold plain JSON values"):
        example(options={"value": value})


def test_files_are_listed_from_the_index_down_with_their_bytes() -> None:
    manifest = example()
    assert [path for path, _ in manifest.files()] == [
        "catalog/a",
        "embedder/a",
        "partitions/00000/a",
    ]
    assert manifest.n_bytes == 3
    with pytest.raises(dataclasses.FrozenInstanceError):
        manifest.generation = 2  # type: ignore[misc]
