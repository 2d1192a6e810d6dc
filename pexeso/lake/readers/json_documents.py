"""Tables in one JSON document: arrays of objects or of rows, columns, objects by key, GeoJSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pexeso.errors import TableReadError

Key = str | tuple[int | tuple[object, ...], str]
"""What a column is known by: its name, or with it where names may repeat what tells it from others.

That is its position, or the keys that lead to it.
"""
Record = Mapping[Key, object]

_DEPTH = 3
_FACTS_AND_RECORDS = 2
_USUAL_NAMES = frozenset(
    ("data", "records", "rows", "results", "items", "features", "values", "entries", "docs")
)
_BESIDE = "what stands beside the array of rows was left out"
_WAY_OUT = "a table is an array of objects or of rows, or an object of equally long columns"


def document_records(shown: str, document: object, notes: list[str]) -> Iterator[Record]:
    """Yield the rows of the one table that a document holds."""
    if isinstance(document, list):
        return _of_array(shown, document, notes)
    if isinstance(document, dict):
        return _of_object(shown, document, notes)
    raise _no_table(shown, "it is a single value")


def _no_table(shown: str, reason: str) -> TableReadError:
    return TableReadError(f"{shown} holds no table: {reason}; {_WAY_OUT}.")


def _of_array(shown: str, items: list[object], notes: list[str]) -> Iterator[Record]:
    if not items:
        raise TableReadError(f"{shown} is empty: its array has no item.")
    if (records := _beside_facts(items)) is not None:
        items = records
        notes.append("facts beside the array of objects were left out")
    n_objects = sum(isinstance(item, dict) for item in items)
    n_arrays = sum(isinstance(item, list) for item in items)
    if n_objects > len(items) - n_objects:
        if left_out := len(items) - n_objects:
            notes.append(f"items of the array that are no object were left out: {left_out:,}")
        return (item for item in items if isinstance(item, dict))
    if n_arrays == len(items):
        return _of_rows(shown, items)
    if not n_objects and not n_arrays:
        return ({"value": item} for item in items)
    raise _no_table(shown, "its array mixes objects, arrays and single values")


def _beside_facts(items: list[object]) -> list[object] | None:
    """Return the array of objects that stands beside an object of facts; None where none does.

    Services answer so: the first item says how many pages there are.
    """
    if len(items) != _FACTS_AND_RECORDS or sum(isinstance(item, dict) for item in items) != 1:
        return None
    records = next(item for item in items if not isinstance(item, dict))
    is_table = isinstance(records, list) and bool(records)
    return records if is_table and all(isinstance(row, dict) for row in records) else None


def _of_rows(
    shown: str, rows: list[list[object]], names: list[str] | None = None
) -> Iterator[Record]:
    """Yield rows that are arrays; the first one is the header if it is all texts."""
    if names is None:
        is_header = bool(rows[0]) and all(isinstance(name, str) for name in rows[0])
        names = rows[0] if is_header else []
        rows = rows[1:] if is_header else rows
    width = max([len(names), *map(len, rows)])
    keys = list(enumerate(names + [""] * (width - len(names))))
    if not rows:
        raise TableReadError(f"{shown} is empty: it holds a header and no row.")
    for row in rows:
        yield dict(zip(keys, row, strict=False))


def _of_object(shown: str, document: dict[str, object], notes: list[str]) -> Iterator[Record]:
    kind = document.get("type")
    if kind == "Topology":
        raise _no_table(shown, "it is a map (TopoJSON)")
    if kind == "Feature" and isinstance(document.get("properties"), dict):
        return _of_features([document], notes)
    features = document.get("features")
    if kind == "FeatureCollection" and isinstance(features, list) and features:
        return _of_features([item for item in features if isinstance(item, dict)], notes)
    if (rows := _split(shown, document)) is not None:
        described = any(isinstance(name, dict) for name in document.get("columns") or ())
        if described or document.keys() - {"columns", "data"}:
            notes.append(_BESIDE)
        return rows
    if (records := _only_records(shown, document)) is not None:
        if not _is_alone(document, records):
            notes.append(_BESIDE)
        return _of_array(shown, records, notes)
    if document and all(isinstance(value, list) for value in document.values()):
        return _of_columns(shown, document)
    if (rows := _by_key(document)) is not None:
        return rows
    raise _no_table(shown, "it is one object, such as settings are" if document else "it is {}")


def _of_features(features: list[dict[str, object]], notes: list[str]) -> Iterator[Record]:
    notes.append("shapes on the map were left out")
    for feature in features:
        properties = feature.get("properties")
        identity = {"id": feature["id"]} if "id" in feature else {}
        yield {**identity, **(properties if isinstance(properties, dict) else {})}


def _split(shown: str, document: dict[str, object]) -> Iterator[Record] | None:
    """Return rows that are arrays and stand beside the names of their columns."""
    rows = document.get("data")
    if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows) or not rows:
        return None
    names = document.get("columns")
    meta = document.get("meta")  # open data portals put the names there
    view = meta.get("view") if isinstance(meta, dict) else None
    if names is None and isinstance(view, dict):
        names = view.get("columns")
    if not isinstance(names, list) or not names:
        return None
    texts = [name.get("name") if isinstance(name, dict) else name for name in names]
    return _of_rows(shown, rows, ["" if text is None else str(text) for text in texts])


def _only_records(shown: str, document: dict[str, object]) -> list[object] | None:
    """Return the one array of objects in an object, or in objects of it; None if there is none.

    The least nested counts, and of several of these the one with a usual name such as ``data``.
    """
    level: dict[str, object] = dict(document)
    for _ in range(_DEPTH):
        arrays = {
            name: value
            for name, value in level.items()
            if isinstance(value, list) and value and all(isinstance(item, dict) for item in value)
        }
        usual = [name for name in arrays if name.rpartition(".")[2].lower() in _USUAL_NAMES]
        if len(arrays) == 1 or len(usual) == 1:
            return arrays[usual[0] if usual else next(iter(arrays))]
        if arrays:
            names = ", ".join(map(repr, list(arrays)[:5]))
            raise TableReadError(
                f"{shown} holds {len(arrays):,} tables, and a JSON file is read as one: save each "
                f"of {names} as a file of its own."
            )
        level = {
            f"{name}.{inner}": inner_value
            for name, value in level.items()
            if isinstance(value, dict)
            for inner, inner_value in value.items()
        }
    return None


def _is_alone(document: object, records: list[object]) -> bool:
    """Return whether an object holds an array, maybe in objects of it, and nothing else."""
    while isinstance(document, dict) and len(document) == 1:
        (document,) = document.values()
    return document is records


def _of_columns(shown: str, document: dict[str, object]) -> Iterator[Record]:
    lengths = {len(values) for values in document.values() if isinstance(values, list)}
    if len(lengths) > 1:
        raise _no_table(shown, "its arrays have different lengths")
    if not lengths - {0}:
        raise TableReadError(f"{shown} is empty: its arrays have no item.")
    names = list(document)
    for values in zip(*document.values(), strict=True):
        yield dict(zip(names, values, strict=True))


def _by_key(document: dict[str, object]) -> Iterator[Record] | None:
    """Return the rows of an object of objects: alike ones by key, or columns by row number."""
    inner = [value for value in document.values() if isinstance(value, dict)]
    if not inner or len(inner) < len(document):
        return None
    keys = dict.fromkeys(key for value in inner for key in value)
    numbers = [str(number) for number in range(len(keys))]
    if keys and list(keys) == numbers:
        return ({name: value.get(n) for name, value in document.items()} for n in numbers)
    if len(inner) < 2 or 2 * sum(map(len, inner)) < len(inner) * len(keys):
        return None
    return ({(0, "key"): key, **value} for key, value in document.items())
