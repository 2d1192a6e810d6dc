"""Columns of the lake found in an index, and the lake values nearest to those without a match."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from embed.spelling import spellings, spoken
from pexeso.engine.lists import damage_made_plain
from pexeso.errors import ColumnNotFoundError, IndexCorruptError, InputError
from pexeso.lake.catalog import Catalog
from pexeso.lake.columns import find_column
from pexeso.results.matches import Unmatched
from pexeso.results.query import Hit
from pexeso.semantic.encoded_query import EncodedQuery
from pexeso.semantic.partition_loader import PartitionLoader, posting_arrays
from pexeso.store.local.reader import Store

if TYPE_CHECKING:
    from pexeso.engine.vector_space import SpacePartition

_MAX_ALIKE = 0.7  # values that share no letters are at the square root of 1/2
NO_VALUE, UNKNOWN, TOO_FAR, APART = "empty", "unknown", "too far", "apart"


def locate_column(store: Store, table: str, column: str) -> Hit:
    """Find a column of the lake, by its name or ``#position``, with a count of 0."""
    for name, value in (("table", table), ("column", column)):
        if not isinstance(value, str):
            raise InputError(f"{name} must be a text, as results name it. Got {value!r} instead.")
    table, row = _catalog_entry(store, table, column)
    if row["column_id"] is None:
        raise ColumnNotFoundError(
            f"The column {row['label']!r} of '{table}' is not in the index: {row['reason']}. "
            "It is joined by equal values: pexeso join, in Python explain_composite of one column, "
            "or pexeso.learn_transformation."
        )
    hit = next(stored_columns(store, {row["column_id"]: (table, row["label"])}), None)
    if hit is None:
        raise IndexCorruptError(
            f"The index '{store.path}' lists the column {column!r} of '{table}', but no partition "
            "holds it: build the index again."
        )
    return hit


def is_compared(store: Store, table: str, column: str) -> bool:
    """Return whether a column of the lake is one whose values are compared by their distance."""
    return _catalog_entry(store, table, column)[1]["column_id"] is not None


def _catalog_entry(store: Store, table: str, column: str) -> tuple[str, dict[str, Any]]:
    """Return the table and the row of the catalog of a column."""
    catalog = Catalog(store.catalog_files)
    table = catalog.named(table)
    if not catalog.has(table):  # labels cut a column whose name holds colons at the last one
        table, rest = catalog.split(f"{table}:{column}")
        column = rest or ""
    rows = catalog.columns_of(table, ["name", "label", "reason", "column_id"])
    if not rows.num_rows:
        reason = catalog.why_not(table, store.manifest.facts["lake"])
        raise InputError(f"{reason} Got the column '{table}:{column}'.")
    try:
        position = find_column(rows["name"].to_pylist(), column)
    except ColumnNotFoundError as error:
        raise ColumnNotFoundError(f"'{table}': {error}") from None
    return table, rows.slice(position, 1).to_pylist()[0]


def locate_columns(store: Store, names: Sequence[tuple[str, str]]) -> list[Hit]:
    """Find named columns, as (table, label), in the partitions of an index, with counts of 0."""
    if not names:
        return []
    rows = Catalog(store.catalog_files).columns(
        ["table", "label", "column_id"], among=pa.array(sorted({table for table, _ in names}))
    )
    requested, ids = set(names), {}
    for row in rows.to_pylist():
        if row["column_id"] is not None and (row["table"], row["label"]) in requested:
            ids[row["column_id"]] = (row["table"], row["label"])
    return list(stored_columns(store, ids)) if ids else []


def stored_columns(store: Store, names: Mapping[int, tuple[str, str]]) -> Iterator[Hit]:
    """Yield those columns that partitions hold, with counts of 0; `names` has them by their ids."""
    for number in range(store.n_partitions):
        column_ids = store.array(number, "column_ids")
        for position in np.flatnonzero(np.isin(column_ids, list(names))).tolist():
            column = int(column_ids[position])
            yield Hit(column, 0, number, position, *names[column])


@damage_made_plain("the index")
def find_unmatched(
    scan: PartitionLoader,
    query: EncodedQuery,
    hit: Hit,
    is_matched: np.ndarray,
    limit: int | None = None,
) -> tuple[Unmatched, ...]:
    """List query texts without a pair, not `is_matched`, with the lake values nearest to them."""
    texts, value_of_text = query.texts
    known = query.known
    left = [
        (texts[position], int(value_of_text[position]))
        for position in np.flatnonzero(~is_matched)[:limit].tolist()
    ]
    values = sorted({value for _, value in left if known[value]})
    nearest = dict(zip(values, _nearest(scan, query, values, hit), strict=True))
    unmatched = [
        Unmatched(text, *nearest[value]) if value in nearest else Unmatched(text, UNKNOWN)
        for text, value in left
    ]
    return (
        *unmatched,
        *(Unmatched(text, NO_VALUE) for text in texts_without_value(query).to_pylist()),
    )[:limit]


def texts_without_value(query: EncodedQuery) -> pa.Array:
    return pc.drop_null(query.column.values.filter(query.value_of_row.is_null())).unique()


# Values without a match of which it is said by what a rule tells them apart.
MAX_REASONS = 1000


def compared_forms(texts: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the forms in which texts are compared, where these have other words than the texts.

    `texts` are pairs: texts of tables, and their normalised values.
    """
    pairs = dict(texts)
    words = pc.split_pattern(pa.array(pairs.values(), pa.string()), " ")
    # Chinese words are spelled beside Latin ones alone.
    has_latin = pc.any(pc.match_substring_regex(words.flatten(), "[a-z]")).as_py()
    spell = spoken if has_latin else spellings
    spelled = spell(words.flatten().cast(pa.large_string())).cast(pa.string())
    latin = pc.binary_join(pa.ListArray.from_arrays(words.offsets, spelled), " ").to_pylist()
    plain = (_plain_letters(text) for text in pairs)
    return {
        text: form if form == own else f"{form} (Latin spelling)"
        for text, own, form, letters in zip(pairs, pairs.values(), latin, plain, strict=True)
        if form.replace(" ", "") != letters
    }


def _plain_letters(text: str) -> str:
    """Return the letters and digits of a text, small and without accents."""
    apart = unicodedata.normalize("NFKD", text.casefold())
    return "".join(letter for letter in apart if letter.isalnum())


def _nearest(
    scan: PartitionLoader, query: EncodedQuery, values: Sequence[int], hit: Hit
) -> list[tuple[str, str | None, float | None, str | None]]:
    """Return why query values have no match, the nearest of a column, its distance, a reason."""
    vectors = query.vectors[values]
    lists = scan.on_host(hit.partition).column_lists
    rows, start = lists[hit.position], lists.offsets[hit.position]
    if not len(rows) or not len(vectors):
        return [(TOO_FAR, None, None, None)] * len(vectors)

    def nearest(partition: SpacePartition) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        position, distance = scan.space.nearest(partition, vectors, rows)
        stored = scan.space.stored(partition, rows[position])
        return position, distance, scan.space.pair_distances(vectors, stored)

    position, distance, defined = scan.compare(hit.partition, len(vectors) * len(rows), nearest)
    # A value at distance 0 would match, were its column not read otherwise.
    is_apart = (defined >= 1.0) & (distance < _MAX_ALIKE) | (distance == 0)
    reasons = np.where(is_apart, APART, TOO_FAR)
    texts, keys = posting_arrays(scan, hit.partition, position + start)
    words: list[str | None] = [None] * len(vectors)
    apart = np.flatnonzero(reasons == APART)[:MAX_REASONS]
    if len(apart):
        from pexeso.lake.normalise.distinctions import differences

        ours = query.values.take(pa.array(np.asarray(values)[apart])).to_pylist()
        theirs = keys.take(pa.array(apart)).to_pylist()
        rules = () if query.normaliser is None else query.normaliser.rules
        for at, some in zip(apart.tolist(), differences(ours, theirs, rules), strict=True):
            words[at] = some
    judged = () if query.judged is None else query.judged.pairs_of((hit.table, hit.label))
    rejected = {(pair.value, pair.text) for pair in judged if not pair.is_match}
    for at, pair in enumerate(zip(values, texts.to_pylist(), strict=True)):
        if rejected and pair in rejected:
            reasons[at], words[at] = APART, "judged"
    return list(zip(reasons.tolist(), texts.to_pylist(), distance.tolist(), words, strict=True))
