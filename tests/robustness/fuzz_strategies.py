"""Bad inputs on purpose: whole inputs of each target, and hypothesis strategies that bend them."""

import bz2
import functools
import io
import json
import struct

import fuzz_agents
import fuzz_app
import fuzz_documents
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from fuzz_targets import BASES, BOOKS, COLUMNAR, INDEX, PACKED, TABLE
from hypothesis import strategies as st
from lake.every_format import every_file

_CELLS_TEXT = (
    "' , ; | ^ ~ : \\ NaN null None - #1 #99999999999 1e999 31/12/99 2020-02-30 12:61 "
    "St. (1,234.5) İstanbul ẞ ﬁ Ω"
)
_NASTY = [
    *(
        "", " ", "\t", '"', '""', "\r", "\n", "\r\n", "\0", "\x1f", "\ufeff", "\u2028", "\x85",
        "5 march 0000", "nº 4", "$ -1",
    ),
    *_CELLS_TEXT.split(),
    *(
        "\u0661\u0662\u0663",
        "e\u0301" * 3,
        "\U0010ffff",
        "\U0001d518\U0001d52b",
        "\uff41\uff42",
        "a" * 300,
        "😀" * 20,
        "1" * 400,
    ),
]  # fmt: skip
_ENCODINGS = (
    "utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp1252", "cp1251", "cp932",
    "gb18030", "koi8_r", "utf-7",
)  # fmt: skip


def cells() -> st.SearchStrategy[str]:
    return st.one_of(
        st.sampled_from(_NASTY),
        st.text(max_size=12),
        st.from_regex(r"[0-9/.\-: ]{1,12}", fullmatch=True),
    )


@st.composite
def delimited(draw: st.DrawFn) -> bytes:
    """A text of cells, regular or not, in any encoding."""
    delimiter = draw(st.sampled_from((",", ";", "\t", "|", "^", "~", " ", ":", "")))
    end = draw(st.sampled_from(("\n", "\r\n", "\r", "\n\n")))
    quote = draw(st.sampled_from(("", "", '"', "'")))
    rows = draw(st.lists(st.lists(cells(), max_size=5), max_size=12))
    repeats = draw(st.sampled_from((1, 1, 1, 30)))
    text = end.join(
        delimiter.join(f"{quote}{cell}{quote}" for cell in row) for row in rows * repeats
    )
    return text.encode(draw(st.sampled_from(_ENCODINGS)), "ignore")


def json_values() -> st.SearchStrategy[object]:
    scalars = st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.integers(-(2**70), 2**70),
        st.floats(),
        cells(),
        st.just("\ud800"),
    )
    return st.recursive(
        scalars,
        lambda inner: st.one_of(
            st.lists(inner, max_size=4), st.dictionaries(cells(), inner, max_size=4)
        ),
        max_leaves=12,
    )


@st.composite
def json_lines(draw: st.DrawFn) -> bytes:
    """Lines of JSON, most of them objects; some nested beyond what a parser follows."""
    keys = draw(st.lists(cells(), min_size=1, max_size=4))
    records = st.dictionaries(st.sampled_from(keys), json_values(), max_size=4)
    odd = st.one_of(json_values(), st.just(None))
    lines = [
        json.dumps(record)
        for record in draw(st.lists(st.one_of(records, records, odd), max_size=8))
    ]
    if draw(st.integers(0, 9)) == 0:
        depth = draw(st.sampled_from((10, 990, 100_000)))
        lines.append('{"a":' + "[" * depth + "]" * draw(st.sampled_from((0, depth))) + "}")
    return draw(st.sampled_from(("\n", "\r\n", "\n\n"))).join(lines).encode("utf-8", "replace")


@functools.cache
def parquet_files() -> tuple[bytes, ...]:
    """Whole Parquet files of many types and encodings."""
    nested = pa.array(
        [[{"a": 1, "b": "x"}], None, []],
        pa.list_(pa.struct([("a", pa.int64()), ("b", pa.string())])),
    )
    tables = [
        pa.table({"city": ["Oslo", "Rome", None], "n": [1, 2, 3]}),
        pa.table(
            {
                "t": pa.array([0, 10**18, None], pa.timestamp("ns", "UTC")),
                "d": pa.array([0, 1, 2], pa.duration("us")),
            }
        ),
        pa.table({"x": pa.array([b"\xff", b"", None], pa.binary()), "nested": nested}),
        pa.table({"k": pa.array(["a", "b", "a"]).dictionary_encode(), "b": [True, None, False]}),
        pa.table({"m": pa.array([[("k", 1)], [], None], pa.map_(pa.string(), pa.int32()))}),
        pa.table(
            {
                "d": pa.array([1, 2, None], pa.date32()),
                "h": pa.array([1.5, float("nan"), None], pa.float16()),
            }
        ),
        pa.table(
            {
                "d": pa.array([1, 2, 3]).cast(pa.decimal128(30, 4)),
                "f": pa.array([b"abc"] * 3, pa.binary(3)),
            }
        ),
        pa.table({}),
    ]
    files = []
    for number, table in enumerate(tables):
        sink = io.BytesIO()
        pq.write_table(table, sink, compression=("none", "snappy", "zstd", "gzip")[number % 4])
        files.append(sink.getvalue())
    return tuple(files)


@functools.cache
def arrow_files() -> tuple[bytes, ...]:
    """Whole lists of texts as the store and the model write them, and Arrow files that are none."""
    files = []
    for name, array in (
        ("text", pa.array(["oslo", None, "lima"])),
        ("text", pa.array(["oslo"] * 40, pa.large_string())),
        ("text", pa.array([], pa.string())),
        ("text", pa.array([1, 2])),
        ("text", pa.array(["a", "b"]).dictionary_encode()),
        ("word", pa.array(["oslo", "lima", ""], pa.large_string())),
    ):
        sink = io.BytesIO()
        schema = pa.schema([(name, array.type)])
        with pa.ipc.new_file(sink, schema) as writer:
            writer.write_batch(pa.record_batch([array], schema=schema))
        files.append(sink.getvalue())
    return tuple(files)


def npy_file(header: str, data: bytes = b"") -> bytes:
    """A .npy file with any text as its header."""
    text = header.encode("latin-1", "replace")
    text += b" " * (-(len(text) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text) & 0xFFFF) + text + data


@st.composite
def npy_files(draw: st.DrawFn) -> bytes:
    """Headers of every shape and dtype, and too much or too little behind them."""
    shape = draw(
        st.lists(
            st.one_of(st.integers(0, 4), st.sampled_from((-1, 2**31, 2**62, 2**64, 10**30))),
            max_size=4,
        )
    )
    dtype = draw(
        st.sampled_from(
            ("<f4", "<i8", "|u1", "|b1", "<f8", ">i4", "|O", "<U9", "[('a', '<f4')]", "<m8", "")
        )
    )
    order = draw(st.sampled_from(("False", "True", "0", "None", "()")))
    ends = {1: "({},)", 0: "()"}.get(len(shape), "({})").format(", ".join(map(str, shape)))
    extra = draw(st.sampled_from(("", ", 'x': 1", ", 'shape': (9,)", "(" * 200, "-" * 3000 + "1")))
    header = f"{{'descr': {dtype!r}, 'fortran_order': {order}, 'shape': {ends}{extra}}}"
    return npy_file(header, draw(st.binary(max_size=64)))


def manifest_document() -> dict[str, object]:
    """What a small manifest holds; its checksum is for the target to set."""
    file = {"path": "a.npy", "n_bytes": 128, "checksum": "0" * 32}
    names = ("catalog", "embedder", "partitions/00000")
    catalog, embedder, partition = (
        {"folder": name, "files": [file], "facts": {"columns": 3}} for name in names
    )
    later = {"folder": "catalog.2", "files": [file, {**file, "path": "b/c.json"}], "facts": {}}
    document = {
        "format_version": 4,
        "written_by": "pexeso",
        "created": "2025-01-01T00:00:00+00:00",
        "generation": 1,
        "options": {"layout": 3, "grid": {"metric": "euclidean"}},
        "fingerprints": {"embedder": "x"},
        "facts": {"values": 3},
        "embedder": embedder,
    }
    newer = {**document, "catalogs": [catalog, later], "deleted_columns": [[1, 2], [5, 9]]}
    shard = {
        "folder": "partitions/00001",
        "files": [file],
        "facts": {"sets": 3, "deleted": [[0, 1]]},
    }
    return {**newer, "parts": {"semantic": [partition], "token_sets": [shard]}}


_PLACES = (
    "../x",
    "/etc/passwd",
    "a/../../b",
    "catalog",
    "partitions/00000",
    "catalog.2",
    "a\0b",
    "a\\b",
    ".",
    "",
    "a//b",
    "\ud800",
    "x" * 5000,
)
_NUMBERS = (-1, 0, 1, 2**31, 2**53, 2**63, 2**64, 10**400, 1.5, float("nan"), True)


@st.composite
def manifests(draw: st.DrawFn, whole: bytes | None = None) -> bytes:
    """A manifest with one to three of its values replaced, removed or repeated."""
    document = json.loads(whole) if whole else manifest_document()
    values = st.one_of(st.sampled_from(_PLACES), st.sampled_from(_NUMBERS), json_values())
    return fuzz_documents.bend(draw, document, draw(st.integers(1, 3)), values, cells())


_WORDS_TEXT = """
index search batch join explain estimate info check -h --help --version nosuch
lake.pexeso t.csv t.csv:city t.csv:people t.csv:#0 \
t.csv: : q.jsonl - new.pexeso out.csv cities.csv:city
--max-distance --min-joinability -k --device --memory-budget \
-o --json --csv --explain --pairs --all-columns
--joinability-of --exclude-self --values all nearest --model \
--dimensions --metric --column-rule min_rows=2 --read delimiter=; header=x
--partition-bytes --column-types --max-table-bytes \
--spark-conf --overwrite --resume --preset published a=b spark.x hashing
0 1 -1 0.5 1.5 nan inf -inf 1e400 8GiB 1e9TB 0x10 \uff11 text,date cuda cuda:99 cpu
"""
_WORDS = [*_WORDS_TEXT.split(), "9" * 400]
_COMMANDS = ("index", "search", "batch", "join", "explain", "estimate", "info", "check")


@st.composite
def command_lines(draw: st.DrawFn) -> bytes:
    """Arguments of the command line, one a line: words of its own and any others."""
    words = st.one_of(st.sampled_from(_WORDS), st.sampled_from(_WORDS), cells())
    first = draw(st.one_of(st.sampled_from(_COMMANDS), words))
    middle = draw(
        st.lists(st.sampled_from((INDEX, "t.csv:city", "q.jsonl", "cities.csv:city")), max_size=3)
    )
    rest = draw(st.lists(words, max_size=7))
    return "\n".join([first, *middle, *rest]).encode("utf-8", "surrogateescape")


@st.composite
def bent(draw: st.DrawFn, whole: tuple[bytes, ...]) -> bytes:
    """A whole input with some bytes changed, cut out, repeated or put in."""
    data = bytearray(draw(st.sampled_from(whole)))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, max(0, len(data) - 1)))
        length = draw(st.sampled_from((1, 1, 2, 4, 8, 64)))
        new = draw(
            st.one_of(
                st.binary(min_size=1, max_size=8),
                st.sampled_from((b"\xff" * 8, b"\0" * 8, b"\xff\xff\xff\x7f")),
            )
        )
        how = draw(st.integers(0, 3))
        if how == 0:
            data[at : at + len(new)] = new
        elif how == 1:
            del data[at : at + length]
        elif how == 2:
            data[at:at] = data[at : at + length] * draw(st.sampled_from((1, 2, 500)))
        else:
            data[at:at] = new
    return bytes(data)


def lines_of(strategy: st.SearchStrategy[str]) -> st.SearchStrategy[bytes]:
    return st.lists(strategy, max_size=20).map(
        lambda lines: "\n".join(lines).encode("utf-8", "surrogatepass")
    )


@st.composite
def batch_files(draw: st.DrawFn) -> bytes:
    """Lines of a batch file, right and wrong."""
    fields = st.dictionaries(
        st.sampled_from(("id", "values", "file", "column", "x")), json_values(), max_size=4
    )
    files = st.fixed_dictionaries(
        {"file": st.sampled_from(("t.csv", "no.csv", "", ".", "\0")), "column": cells()}
    )
    values = st.fixed_dictionaries({"values": st.lists(json_values(), max_size=6)})
    lines = draw(st.lists(st.one_of(fields, files, values, json_values()), max_size=6))
    return "\n".join(json.dumps(line) for line in lines).encode("utf-8", "replace")


def whole_files(*extensions: str, is_chosen: bool = True) -> tuple[bytes, ...]:
    """Return whole files of formats, behind the byte that chooses one where several are."""
    return tuple(
        bytes([number] * is_chosen) + data
        for number, extension in enumerate(extensions)
        for name, (data, _) in every_file().items()
        if name.endswith(extension)
    )


_WHOLE_FILES = {
    "columnar": lambda: whole_files(*COLUMNAR),
    "packed": lambda: (*whole_files(*PACKED), repacked(TABLE.encode())),
    "book": lambda: whole_files(*BOOKS),
    "base": lambda: whole_files(*BASES),
    "avro": lambda: whole_files(".avro", is_chosen=False),
    "archive": lambda: whole_files(".zip", is_chosen=False),
}


def repacked(data: bytes) -> bytes:
    """Return a text packed by bzip2."""
    return b"\0" + bz2.compress(data, 1)


def seeds_of(name: str) -> tuple[bytes, ...]:
    """Return whole inputs of a target, to start from."""
    if name in _WHOLE_FILES:
        return _WHOLE_FILES[name]()
    table = TABLE.encode()
    lines = b'{"city": "Oslo", "n": 1}\n{"city": null, "x": [1, {"a": 2}]}\n'
    plain = np.lib.format
    array = io.BytesIO()
    plain.write_array(array, np.arange(6, dtype=np.int64).reshape(2, 3))
    return {
        "csv": (
            table,
            b'a,b\n"x ""y""",2\n3\n',
            "name;ort\nJosé;Köln\n".encode("cp1252"),
            TABLE.encode("utf-16"),
        ),
        "tsv": (table.replace(b";", b"\t"), b"a\tb\n1\t2\n"),
        "jsonl": (lines,),
        "parquet": parquet_files(),
        "gz": (b"G" + table, b"\xff\x08\0\0\0\0\0\0\x02\xff"),
        "other": (table, parquet_files()[0], b"a|b\n1|2\n"),
        "normaliser": (
            "Main St.\n12/31/1999 5pm\nÅse Ø\n3,5\n+\n2020-03-05T10:11:12.5+02:00".encode(),
        ),
        "query": (b"t.csv:city", b"#1", b'["Oslo", 7, null]', b'{"a": [1.5, "x"]}'),
        "batch": (
            b'{"id": 1, "values": ["Oslo", 3, null]}\n{"file": "t.csv", "column": '
            b'"city"}\n{"file": "t.csv"}\nx\n',
        ),
        "manifest": (json.dumps(manifest_document()).encode(),),
        "array": (array.getvalue(),),
        "texts": arrow_files(),
        "document": (b'{"a": [1, {"b": null}], "c": 1.5e3}',),
        "command": (
            b"search\nlake.pexeso\nt.csv:city\n-n\n3\n--explain",
            b"info\nlake.pexeso\n--json",
            b"check\nlake.pexeso",
        ),
        "app": fuzz_app.SEEDS,
        "agent": fuzz_agents.SEEDS,
        **fuzz_documents.SEEDS,
    }[name]


def strategy_of(name: str) -> st.SearchStrategy[bytes]:
    """Return the strategy that makes inputs of a target."""
    own: dict[str, tuple[st.SearchStrategy[bytes], ...]] = {
        **dict.fromkeys(("csv", "tsv", "other"), (delimited(),)),
        "jsonl": (json_lines(),),
        "gz": (delimited().map(lambda data: b"G" + data),),
        "normaliser": (lines_of(cells()),),
        "query": (lines_of(cells()), json_values().map(lambda value: json.dumps(value).encode())),
        "batch": (batch_files(),),
        "manifest": (manifests(),),
        "array": (npy_files(),),
        "document": (json_values().map(lambda value: json.dumps(value).encode()),),
        "command": (command_lines(), command_lines()),
        "app": (fuzz_app.requests(), fuzz_app.requests(), fuzz_app.requests()),
        "agent": (fuzz_agents.LINES, fuzz_agents.LINES, fuzz_agents.LINES),
        "packed": (delimited().map(repacked),),
        **{other: (own, own, own) for other, own in fuzz_documents.STRATEGIES.items()},
    }
    return st.one_of(*own.get(name, ()), bent(seeds_of(name)))
