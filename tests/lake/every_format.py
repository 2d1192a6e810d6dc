"""Writers of one table in every format that a lake may hold."""

import bz2
import gzip
import io
import json
import lzma
import sqlite3
import zipfile
from datetime import date

import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.orc as orc
import pyarrow.parquet as pq

TABLE = pa.table(
    {
        "city": ["Oslo", "Rome", "Málaga", "Kyōto", "Lagos", "Lima", "Perth"],
        "country": ["Norway", "Italy", "Spain", "Japan", "Nigeria", "Peru", "Australia"],
        "people": [709, 2761, 578, 1464, 15388, 10092, 2192],
        "founded": [date(1948, 1, 1), date(1900, 4, 21), *[date(1950, 5, n) for n in range(1, 6)]],
    }
)
ROWS = TABLE.to_pylist()
LINES = [TABLE.column_names, *(list(row.values()) for row in ROWS)]


def text(delimiter=",", *, above="", below="", quote="", end="\n"):
    lines = [delimiter.join(f"{quote}{name}{quote}" for name in TABLE.column_names)]
    lines += [delimiter.join(f"{quote}{cell}{quote}" for cell in row.values()) for row in ROWS]
    return above + end.join(lines) + end + below


def json_rows():
    return [{**row, "founded": str(row["founded"])} for row in ROWS]


def json_lines():
    return "".join(json.dumps(row) + "\n" for row in json_rows())


def book(**sheets):
    """Return an .xlsx; a sheet is a list of rows, or a function that fills it."""
    from openpyxl import Workbook

    made, saved = Workbook(), io.BytesIO()
    made.remove(made.active)
    for name, rows in sheets.items():
        sheet = made.create_sheet(name)
        for row in () if callable(rows) else rows:
            sheet.append(list(row))
        if callable(rows):
            rows(sheet)
    made.save(saved)
    return saved.getvalue()


def with_member(data, name, change):
    """Return an archive with one of its members changed by a function of bytes."""
    changed = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(changed, "w") as new:
        for member in old.infolist():
            content = old.read(member)
            new.writestr(member, change(content) if member.filename == name else content)
    return changed.getvalue()


def arrow_file(path, *, stream=False):
    make = pa.ipc.new_stream if stream else pa.ipc.new_file
    with make(str(path), TABLE.schema) as writer:
        writer.write_table(TABLE)


def sqlite_file(path):
    base = sqlite3.connect(path)
    for name in ("cities", "more towns"):
        base.execute(f'CREATE TABLE "{name}" (city TEXT, country TEXT, people INT, founded TEXT)')
        rows = [[*list(row.values())[:3], str(row["founded"])] for row in ROWS]
        base.executemany(f'INSERT INTO "{name}" VALUES (?, ?, ?, ?)', rows)
    base.commit()
    base.close()


def duckdb_file(path):
    import duckdb

    base = duckdb.connect(str(path))
    base.register("given", TABLE)
    base.execute("CREATE TABLE cities AS SELECT * FROM given")
    base.close()


def avro_file(path):
    import fastavro

    fields = [{"name": name, "type": "string"} for name in ("city", "country")]
    fields += [{"name": "people", "type": "long"}]
    fields += [{"name": "founded", "type": {"type": "int", "logicalType": "date"}}]
    schema = fastavro.parse_schema({"type": "record", "name": "cities", "fields": fields})
    with open(path, "wb") as stream:
        fastavro.writer(stream, schema, ROWS)


def zip_file(path, **members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name.replace("__", "/").replace("_", "."), data)


def as_bytes(write):
    """Return what a writer of a path writes."""
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        write(path)
        return path.read_bytes()


def zstd(data):
    packed = pa.BufferOutputStream()
    with pa.CompressedOutputStream(packed, "zstd") as stream:
        stream.write(data)
    return packed.getvalue().to_pybytes()


def parquet():
    sink = io.BytesIO()
    pq.write_table(TABLE, sink)
    return sink.getvalue()


def orc_bytes():
    sink = io.BytesIO()
    orc.write_table(TABLE, sink)
    return sink.getvalue()


def feather_bytes(compression):
    sink = io.BytesIO()
    feather.write_feather(TABLE, sink, compression=compression)
    return sink.getvalue()


def records(document):
    return json.dumps(document).encode()


def every_file():
    """Return the bytes of each file by its name, and the tables that it holds."""
    utf8 = text().encode()
    columns = {name: [row[name] for row in json_rows()] for name in TABLE.column_names}
    sheets, base = book(Cities=LINES, More=LINES), as_bytes(sqlite_file)
    one = {
        "a.csv": utf8,
        "b.tsv": text("\t").encode(),
        "c.tab": text("\t").encode(),
        "d.psv": text("|").encode(),
        "e-semicolon.csv": text(";").encode(),
        "f-hash.csv": text("#").encode(),
        "g-quoted.csv": text(quote='"').encode(),
        "h-sep.csv": text(";", above="sep=;\n").encode(),
        "i-comment.csv": text(above="# cities of the world\n").encode(),
        "j-title.csv": text(above="Cities of the world\n\n").encode(),
        "k-note.csv": text(below="\nSource: the atlas\n").encode(),
        "l-latin.csv": text().replace("ō", "o").encode("latin-1"),
        "m-utf16.csv": text().encode("utf-16"),
        "n-bom.csv": text().encode("utf-8-sig"),
        "o-crlf.csv": text(end="\r\n").encode(),
        "p-mac.csv": text(end="\r").encode(),
        "q.csv.gz": gzip.compress(utf8),
        "r.csv.bz2": bz2.compress(utf8),
        "s.csv.xz": lzma.compress(utf8),
        "t.csv.zst": zstd(utf8),
        "u.txt": text("\t").encode(),
        "v.jsonl": json_lines().encode(),
        "w.ndjson.gz": gzip.compress(json_lines().encode()),
        "x-lines.json": json_lines().encode(),
        "y-array.json": records(json_rows()),
        "z-data.json": records({"status": "ok", "data": json_rows()}),
        "za-columns.json": records(columns),
        "zb-rows.json": records([TABLE.column_names, *(list(r.values()) for r in json_rows())]),
        "zc-nested.json": records([{"id": n, "at": row} for n, row in enumerate(json_rows())]),
        "zd.geojson": records(
            {
                "type": "FeatureCollection",
                "features": [
                    {"type": "Feature", "properties": row, "geometry": None} for row in json_rows()
                ],
            }
        ),
        "ze.parquet": parquet(),
        "zf.feather": feather_bytes("zstd"),
        "zg-plain.feather": feather_bytes("uncompressed"),
        "zh.arrow": as_bytes(arrow_file),
        "zi.arrows": as_bytes(lambda path: arrow_file(path, stream=True)),
        "zj.ipc": as_bytes(arrow_file),
        "zk.orc": orc_bytes(),
        "zl.avro": as_bytes(avro_file),
    }
    files = {name: (data, [name]) for name, data in one.items()}
    several = {
        "zm.xlsx": (sheets, ["#Cities", "#More"]),
        "zn.sqlite": (base, ["#cities", "#more towns"]),
        "zo.db": (base, ["#cities", "#more towns"]),
        "zp.duckdb": (as_bytes(duckdb_file), ["#cities"]),
        "zq.zip": (
            as_bytes(lambda path: zip_file(path, a_csv=utf8, deep__b_json=one["y-array.json"])),
            ["/a.csv", "/deep/b.json"],
        ),
        "zr.zip": (
            as_bytes(lambda path: zip_file(path, book_xlsx=sheets, base_sqlite=base)),
            [
                "/book.xlsx#Cities",
                "/book.xlsx#More",
                "/base.sqlite#cities",
                "/base.sqlite#more towns",
            ],
        ),
        "zs.ods": (ods(LINES), ["#Cities"]),
    }
    files |= {
        name: (data, [name + table for table in tables]) for name, (data, tables) in several.items()
    }
    return files


def ods(rows, entries=""):
    """Return a spreadsheet of OpenDocument: rows are lists, or XML, and entries its manifest's."""

    def cell(value):
        if isinstance(value, int):
            return f'<table:table-cell office:value-type="float" office:value="{value}"/>'
        if isinstance(value, date):
            return f'<table:table-cell office:value-type="date" office:date-value="{value}"/>'
        kind = 'office:value-type="string"'
        return f"<table:table-cell {kind}><text:p>{value}</text:p></table:table-cell>"

    if not isinstance(rows, str):
        lines = ("".join(map(cell, row)) for row in rows)
        rows = "".join(f"<table:table-row>{line}</table:table-row>" for line in lines)
    spaces = " ".join(
        f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
        for name in ("office", "table", "text", "manifest")
    )
    parts = {
        "mimetype": "application/vnd.oasis.opendocument.spreadsheet",
        "META-INF/manifest.xml": f"<manifest:manifest {spaces}>{entries}</manifest:manifest>",
        "content.xml": f"<office:document-content {spaces}><office:body><office:spreadsheet>"
        f'<table:table table:name="Cities">{rows}</table:table>'
        "</office:spreadsheet></office:body></office:document-content>",
    }
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            xml = name.endswith(".xml")
            archive.writestr(name, f'<?xml version="1.0" encoding="UTF-8"?>{text}' if xml else text)
    return packed.getvalue()
