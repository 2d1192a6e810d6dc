"""Tables with a log: of Iceberg, and commits to one of Delta that deltalake does not write."""

import base64
import json
import string
import struct

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

TOWNS = ["Oslo", "Rome", "Bern", "Bonn", "Lima", "Oldtown", "Oldham"]


def towns(names=TOWNS):
    return pa.table({"town": names, "n": list(range(len(names)))})


def iceberg(folder, table, **options):
    """Write a table of Iceberg by its library, and return it."""
    catalog = pytest.importorskip("pyiceberg.catalog.sql")
    opened = catalog.SqlCatalog("test", uri="sqlite:///:memory:", warehouse=f"file://{folder}")
    opened.create_namespace("n")
    written = opened.create_table("n.t", table.schema, location=f"file://{folder}", **options)
    written.append(table)
    return written


def vector_of(*rows):
    """Return a deletion vector that stands in the log: a bitmap of one array, in the Z85 form."""
    head = struct.pack("<IQIIIHHI", 1681511377, 1, 0, 12346, 1, 0, len(rows) - 1, 16)
    data = head + struct.pack(f"<{len(rows)}H", *rows)
    signs = string.digits + string.ascii_lowercase + string.ascii_uppercase
    z85 = signs + ".-:+=^!/*?&<>()[]{}@%$#"
    b85 = (
        string.digits + string.ascii_uppercase + string.ascii_lowercase + "!#$%&()*+-;<=>?@^_`{|}~"
    )
    data += bytes(-len(data) % 4)
    text = base64.b85encode(data).decode().translate(str.maketrans(b85, z85))
    sizes = {"sizeInBytes": len(head) + 2 * len(rows), "cardinality": len(rows)}
    return {"storageType": "i", "pathOrInlineDv": text, **sizes}


def _logs(folder):
    return sorted((folder / "_delta_log").glob("*.json"))


def _actions(folder):
    for log in _logs(folder):
        yield from map(json.loads, log.read_text().splitlines())


def _commit(folder, *actions):
    path = folder / "_delta_log" / f"{len(_logs(folder)):020}.json"
    path.write_text("".join(json.dumps(action) + "\n" for action in actions))


def rename_column(folder, old, new):
    """Rename a column of a table whose columns are mapped."""
    *_, metadata = (action["metaData"] for action in _actions(folder) if "metaData" in action)
    schema = json.loads(metadata["schemaString"])
    for field in schema["fields"]:
        field["name"] = new if field["name"] == old else field["name"]
    renamed = [new if name == old else name for name in metadata["partitionColumns"]]
    metadata |= {"schemaString": json.dumps(schema), "partitionColumns": renamed}
    _commit(folder, {"metaData": metadata})


def delete_by_vector(folder, column, values):
    """Delete rows of the live files that have no vector yet, and return the values deleted."""
    adds = {}
    for action in _actions(folder):
        if "add" in action:
            adds[action["add"]["path"]] = action["add"]
        elif "remove" in action:
            adds.pop(action["remove"]["path"], None)
    gone, actions = set(), []
    for path, add in adds.items():
        if add.get("deletionVector") is not None:
            continue
        cells = pq.ParquetFile(folder / path).read(columns=[column])[column].to_pylist()
        rows = [row for row, value in enumerate(cells) if value in values]
        if rows:
            gone.update(cells[row] for row in rows)
            removed = {"path": path, "deletionTimestamp": 1, "dataChange": True}
            actions += [
                {"remove": removed},
                {"add": {**add, "deletionVector": vector_of(*rows), "dataChange": True}},
            ]
    features = ["deletionVectors"]
    named = {"readerFeatures": features, "writerFeatures": [*features, "appendOnly", "invariants"]}
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7, **named}
    if actions:
        _commit(folder, {"protocol": protocol}, *actions)
    return gone
