"""JSON of every shape: what is a table of it, what is not and why, and damaged ones."""

import json
import random
import re
import time

import pytest
from read_tables import as_bytes

from pexeso.errors import TableReadError
from pexeso.lake.readers.json_text import parse_json
from pexeso.lake.readers.table import ReadingBudget
from pexeso.lake.typed.parquet import json_rows

CITIES = [{"city": "Oslo", "n": 7}, {"city": "Bodø", "n": 5}]
READ = (["city", "n"], [["Oslo", "Bodø"], ["7", "5"]])


def parse(text, name="t.json"):
    data = as_bytes(text)
    return parse_json(data, ReadingBudget(name, len(data)), max_cell_bytes=1 << 20)


def typed(text, name="t.json"):
    data = as_bytes(text)
    return json_rows(data, ReadingBudget(name, len(data)))


def read(document, name="t.json"):
    table = parse(document if isinstance(document, str | bytes) else json.dumps(document), name)
    return table.names, [column.to_pylist() for column in table.columns]


def refused(document, name="t.json"):
    with pytest.raises(TableReadError) as caught:
        read(document, name)
    text = str(caught.value)
    assert text.startswith(name)
    assert text.endswith(".")
    assert "\n" not in text
    return text


@pytest.mark.parametrize(
    "document",
    [
        CITIES,
        {"data": CITIES},
        {"data": CITIES, "meta": {"count": 2}, "next": None},
        {"result": {"fields": [{"id": "city"}], "records": CITIES}},
        {"response": {"docs": CITIES}},
        {"city": ["Oslo", "Bodø"], "n": [7, 5]},
        {"city": {"0": "Oslo", "1": "Bodø"}, "n": {"0": 7, "1": 5}},
        {"columns": ["city", "n"], "index": [0, 1], "data": [["Oslo", 7], ["Bodø", 5]]},
        {
            "meta": {"view": {"columns": [{"name": "city"}, {"name": "n"}]}},
            "data": [["Oslo", 7], ["Bodø", 5]],
        },
        [["city", "n"], ["Oslo", 7], ["Bodø", 5]],
        '{"city": "Oslo", "n": 7}\n\n{"city": "Bodø", "n": 5}\n',
        '\ufeff[{"city": "Oslo", "n": 7}, {"city": "Bodø", "n": 5}]',
        json.dumps(CITIES).encode("utf-16"),
        json.dumps(CITIES).encode("utf-16-le"),
        json.dumps(CITIES, indent=2),
    ],
)
@pytest.mark.parametrize("name", ["t.json", "t.json.gz"])
def test_shapes_of_one_table(document, name):
    assert read(document, name) == READ


@pytest.mark.parametrize("document", ['[{"n": %s}, {"n": 1.10}]', '{"n": %s}\n{"n": 1.10}\n'])
def test_numbers_that_no_float_holds_keep_their_digits(document):
    numbers = ["12345678901234567.89", "0.12345678901234567890"]
    assert [read(document % number)[1] for number in numbers] == [[[n, "1.1"]] for n in numbers]


def test_a_document_is_one_in_files_named_as_json_lines_too():
    for document in (json.dumps(CITIES), json.dumps({"data": CITIES}, indent=1)):
        assert read(document, "t.jsonl") == READ
    assert read('{"data": [1], "n": 2}', "t.jsonl") == (["data", "n"], [["[1]"], ["2"]])


def test_the_rows_with_types_are_those_of_the_text():
    document = [{"a": 1, "b": {"c": "x", "d": [1]}}, {"a": None, "b": {"e": True}}]
    (batch,) = typed(json.dumps(document))
    assert batch.names == read(document)[0] == ["a", "b.c", "b.d", "b.e"]
    assert [column.to_pylist() for column in batch.columns] == [
        ["1", None], ['"x"', None], ["[1]", None], [None, "true"],
    ]  # fmt: skip


def test_objects_inside_objects_are_columns_and_arrays_stay_json():
    document = [
        {"name": "Eva", "at": {"city": "Oslo", "geo": {"x": 1.5}}, "tags": ["a", {"b": 1}]},
        {"name": "Per", "at": "unknown", "tags": []},
        {"name": "Kim", "at": {}},
    ]
    assert read(document) == (
        ["name", "at.city", "at.geo.x", "tags", "at"],
        [
            ["Eva", "Per", "Kim"],
            ["Oslo", None, None],
            ["1.5", None, None],
            ['["a", {"b": 1}]', "[]", None],
            [None, "unknown", None],
        ],
    )


@pytest.mark.parametrize("name", ["t.json", "t.jsonl"])
def test_a_key_named_as_one_inside_an_object_is_a_column_of_its_own(name):
    rows = [{"a": {"b": 0}}, {"a.b": 1, "a": {"b": 2}}, {"a": {"b": {"c": 3}, "b.c": 4}}]
    text = "\n".join(map(json.dumps, rows)) if name == "t.jsonl" else json.dumps(rows)
    table = parse(text, name)
    columns = list(zip(table.names, (column.to_pylist() for column in table.columns), strict=True))
    assert columns == [
        ("a.b", ["0", "2", None]),
        ("a.b", [None, "1", None]),
        ("a.b.c", [None, None, "3"]),
        ("a.b.c", [None, None, "4"]),
    ]
    assert table.notes == ["keys that are named as others inside objects are columns of their own"]
    (batch,) = typed(text, name)
    assert batch.names == table.names
    assert [column.to_pylist() for column in batch.columns] == [values for _, values in columns]


def test_objects_in_columns_of_one_name_are_columns_of_their_own():
    names, columns = read({"columns": ["x", "x"], "data": [[{"y": 1}, {"y": 2}]]})
    assert (names, columns) == (["x.y", "x.y"], [["1"], ["2"]])


@pytest.fixture
def few_cells(monkeypatch):
    monkeypatch.setattr("pexeso.lake.readers.table.MIN_CELLS", 1 << 16)


@pytest.mark.usefixtures("few_cells")
def test_keys_of_one_name_in_many_different_objects_stay_json():
    rows = [{"a.b": 1, "a": {"b": 2}, "by": {f"key {n}": n}} for n in range(2_000)]
    table = parse(json.dumps(rows))
    assert table.names == ["a.b", "a", "by"]
    assert table.columns[1][7].as_py() == '{"b": 2}'
    assert next(iter(typed(json.dumps(rows)))).names == table.names


def test_objects_more_than_eight_levels_deep_stay_json():
    inner = {"z": 1}
    for _ in range(10):
        inner = {"k": inner}
    names, columns = read([inner])
    assert names == [".".join(["k"] * 9)]
    assert columns == [['{"k": {"z": 1}}']]


@pytest.mark.usefixtures("few_cells")
def test_objects_with_keys_of_their_own_in_each_row_stay_json():
    rows = [{"id": n, "by": {f"key {n}": n}} for n in range(2_000)]
    table = parse(json.dumps(rows))
    assert table.names == ["id", "by"]
    assert table.columns[1][7].as_py() == '{"key 7": 7}'
    assert table.notes == ["objects inside objects stay JSON: they have too many different keys"]
    assert next(iter(typed(json.dumps(rows)))).names == ["id", "by"]


def test_geojson_gives_the_properties_of_its_features():
    feature = {"type": "Feature", "id": 3, "properties": {"city": "Oslo"}, "geometry": {"x": [1]}}
    for document in ({"type": "FeatureCollection", "features": [feature]}, feature):
        assert read(document, "t.geojson") == (["id", "city"], [["3"], ["Oslo"]])
    assert parse(json.dumps(feature)).notes == ["shapes on the map were left out"]


def test_objects_by_key_have_the_key_as_the_first_column():
    document = {"NO": {"name": "Norway", "key": 1}, "SE": {"name": "Sweden", "n": 2}}
    assert read(document) == (
        ["key", "name", "key", "n"],
        [["NO", "SE"], ["Norway", "Sweden"], ["1", None], [None, "2"]],
    )


def test_rows_without_a_header_have_columns_without_names():
    assert read([[1, "a"], [2, "b", None]]) == (
        ["", "", ""],
        [["1", "2"], ["a", "b"], [None, None]],
    )
    assert read([["a", "a"], [1, 2]]) == (["a", "a"], [["1"], ["2"]])


def test_an_array_of_single_values_is_one_column():
    assert read(["Oslo", 7, None]) == (["value"], [["Oslo", "7", None]])


def test_mixed_types_and_numbers_that_python_or_json_do_not_know():
    long = "9" * 5000
    text = f'[{{"a": {long}, "b": NaN, "c": Infinity}}, {{"a": true, "b": "x", "c": 1e999}}]'
    assert read(text) == (["a", "b", "c"], [[long, "true"], [None, "x"], ["Infinity", "Infinity"]])


def test_keys_that_are_there_twice_count_with_their_last_value():
    text = '[{"a": 1, "a": 2}, {"a": 3}]'
    assert read(text) == (["a"], [["2", "3"]])
    assert parse(text).notes == ["objects with a key twice were read with its last value: 1"]


@pytest.mark.parametrize(
    ("document", "is_all"),
    [
        ({"data": CITIES}, True),
        ({"result": {"records": CITIES}}, True),
        ({"data": CITIES, "license": "ours"}, False),
        ({"data": CITIES, "other": [{"a": 1}]}, False),
        ({"result": {"records": CITIES, "total": 2}}, False),
        ({"columns": ["city", "n"], "data": [["Oslo", 7]]}, True),
        ({"columns": ["city", "n"], "data": [["Oslo", 7]], "index": ["north"]}, False),
        ({"columns": [{"name": "city", "unit": "none"}], "data": [["Oslo"]]}, False),
        ({"city": ["Oslo", "Bodø"], "n": [7, 5]}, True),
    ],
)
def test_what_stands_beside_the_rows_is_told(document, is_all):
    notes = [] if is_all else ["what stands beside the array of rows was left out"]
    assert parse(json.dumps(document)).notes == notes


def test_a_minority_of_items_that_are_no_objects_is_left_out():
    table = parse('[{"a": 1}, {"a": 2}, "end"]')
    assert table.n_rows == 2
    assert table.notes == ["items of the array that are no object were left out: 1"]


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ("17", "holds no table: it is a single value"),
        ({"name": "x", "version": [1], "on": True}, "it is one object, such as settings are"),
        ({"a": {"x": 1}, "b": {"y": 2}, "c": {"z": 3}}, "it is one object, such as settings are"),
        ({"type": "Topology", "objects": {}, "arcs": []}, "it is a map"),
        ({}, "it is {}"),
        ([], "is empty: its array has no item"),
        ({"a": []}, "is empty: its arrays have no item"),
        ({"a": [1], "b": [1, 2]}, "its arrays have different lengths"),
        (
            {"title": "Vase", "images": CITIES, "makers": CITIES},
            "is one object with 2 lists in it: 'images', 'makers'; write such objects as JSON",
        ),
        ({"nodes": CITIES, "links": CITIES}, "holds 2 tables, .* each of 'nodes', 'links' as"),
        ([{"a": 1}, 2, [3]], "its array mixes objects, arrays and single values"),
        ("", "is empty: it holds no JSON"),
        (" \n ", "is empty: it holds no JSON"),
        ("[" * 100_000, "is nested more deeply than can be read"),
        ('[{"a": ' + '{"b":' * 100_000, "is nested more deeply than can be read"),
        ('[{"a": 1}, {"a"', r"is no readable JSON: .* in line 1, column \d+"),
        ("a,b\n1,2\n", "is no readable JSON: Expecting value in line 1, column 1"),
        (b"\x00\xff\xfe\x80" * 50, "is no readable JSON"),
        ([["a"]], "is empty: it holds a header and no row"),
    ],
)
def test_what_holds_no_table_says_why(document, reason):
    assert re.search(reason, refused(document))


def test_documents_with_random_damage_are_read_or_refused_in_one_sentence():
    generator = random.Random(0)
    document = json.dumps({"data": [{"a": n, "b": {"c": f"x{n}"}} for n in range(30)]}).encode()
    messages = []
    for _ in range(300):
        data = bytearray(document)
        for _ in range(generator.choice((1, 3, 20))):
            data[generator.randrange(len(data))] = generator.randrange(256)
        if generator.random() < 0.3:
            del data[generator.randrange(len(data)) :]
        try:
            parse(bytes(data))
        except TableReadError as error:
            messages.append(str(error))
    assert len(messages) > 100
    assert not any("\n" in message for message in messages)


@pytest.mark.parametrize("name", ["t.json", "t.jsonl"])
def test_json_that_was_encoded_twice_is_decoded_twice(name):
    text = '{"town":"M\u00e1laga"}\n{"town":"K\u00f6ln"}'.encode().decode("latin-1")
    table = parse(text.encode(), name)
    assert table.columns[0].to_pylist() == ["M\u00e1laga", "K\u00f6ln"]
    assert table.notes == ["the text was encoded as UTF-8 twice: it was decoded once more"]


GUESSED = "not UTF-8: read as cp1252, a guess"


@pytest.mark.parametrize("name", ["t.json", "t.jsonl"])
def test_json_that_is_no_utf_8_is_read_in_a_guessed_encoding_with_a_note(name):
    rows = [{"name": f"caf\u00e9 {number}"} for number in range(5_000)]
    text = (
        "\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
        if name == "t.jsonl"
        else json.dumps(rows, ensure_ascii=False)
    )
    table = parse(text.encode("latin-1"), name)
    assert table.columns[0].to_pylist() == [row["name"] for row in rows]
    assert (table.encoding, table.notes) == ("cp1252", [GUESSED])
    (first, *_) = typed(text.encode("latin-1"), name)
    assert first.columns[0][0].as_py() == '"caf\u00e9 0"'
    assert parse(b'[{"a":"caf\xe9"}]').columns[0].to_pylist() == ["caf\u00e9"]


@pytest.mark.parametrize(
    ("data", "note"),
    [
        ('[{"a":"\u00e9\u00e9\u00e9"},{"a":"'.encode() + b'\xff"}]', "UTF-8"),
        ('\ufeff[{"a":"'.encode() + b'\xff"}]', "UTF-8"),
        ('[{"a":"'.encode("utf-16-le") + b"\x00\xd8" + '"}]'.encode("utf-16-le"), "UTF-16-LE"),
        ('\ufeff[{"a":"'.encode("utf-16-le") + b"\x00\xd8" + '"}]'.encode("utf-16-le"), "UTF-16"),
    ],
)
def test_wrong_bytes_of_json_are_noted(data, note):
    table = parse(data)
    assert table.columns[0].to_pylist()[-1] == "\N{REPLACEMENT CHARACTER}"
    assert table.notes == [f"not all valid {note}: wrong bytes became the replacement character"]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-be", "utf-32"])
def test_json_in_an_encoding_of_unicode_needs_no_note(encoding):
    table = parse('[{"a":"caf\u00e9"}]'.encode(encoding))
    assert (table.columns[0].to_pylist(), table.notes) == (["caf\u00e9"], [])


@pytest.mark.parametrize("name", ["t.json", "t.jsonl"])
@pytest.mark.parametrize(
    "text",
    [
        '{\n  "a": 1,\n  "b": "x"\n}\n{\n  "a": 2,\n  "b": ",]"\n}\n',
        '{"a":1,"b":"x"}{"a":2,"b":",]"}',
        '{"a":1,"b":"x"},\n{"a":2,"b":",]"},\n',
        '\x1e{"a":1,"b":"x"}\n\x1e{"a":2,"b":",]"}\n',
        '[{"a":1,"b":"x"},{"a":2,"b":",]",},]',
        '["a","b"]\n[1,"x"]\n[2,",]"]\n',
        '[{"page":1,"pages":1},[{"a":1,"b":"x"},{"a":2,"b":",]"}]]',
    ],
)
def test_what_people_take_for_json_is_read(name, text):
    table = parse(text, name)
    assert table.names == ["a", "b"]
    assert [column.to_pylist() for column in table.columns] == [["1", "2"], ["x", ",]"]]


@pytest.mark.parametrize("text", ['"a"\n"b"\n', "1 2 3", "[1, 2"])
def test_other_values_behind_each_other_are_no_table(text):
    with pytest.raises(TableReadError, match=r"is no readable JSON: .* in line [0-9]+"):
        parse(text)


def test_a_text_that_never_ends_takes_bounded_time():
    start = time.perf_counter()
    with pytest.raises(TableReadError, match="is no readable JSON: Unterminated string"):
        parse(b'["' + b'\\"' * 300_000)
    assert time.perf_counter() - start < 20
