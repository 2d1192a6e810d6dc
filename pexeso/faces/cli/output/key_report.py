"""Explanations of keys of several columns for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pexeso.faces.cli.output.output import table_lines
from pexeso.lake.key_columns import spec_of
from pexeso.runtime.formatting import percent
from pexeso.runtime.shown import many

if TYPE_CHECKING:
    from pexeso.composite.key_explanation import FanOut, KeyExplanation, UnmatchedKeys

_INDENT = "    "


def key_explanation_lines(explanation: KeyExplanation) -> list[str]:
    """Lay out an explanation for people."""
    blocks = (
        _head(explanation),
        _parts(explanation),
        _fan_out(explanation.fan_out),
        _unmatched(explanation),
        _others(explanation),
        _sample(explanation),
    )
    lines: list[str] = []
    for block in blocks:
        if block:
            lines += ["", *block] if lines else block
    return lines


def _head(explanation: KeyExplanation) -> list[str]:
    columns = ", ".join(explanation.columns)
    how = "" if explanation.are_given else ", the columns that join most keys"
    if not explanation.matched_keys and not explanation.are_given:
        how = ", the columns that have most of the values"
    lines = [
        f"{percent(explanation.joinability)} of the keys match ({explanation.matched_keys:,} of "
        f"{explanation.total_keys:,}): {', '.join(explanation.query['columns'])} with {columns} of "
        f"{explanation.table}{how}."
    ]
    left_out = explanation.query["rows_without_key"]
    if left_out:
        has = "has" if left_out == 1 else "have"
        lines.append(f"{many(left_out, 'row')} of yours {has} no key: a part of it is empty.")
    return lines


def _parts(explanation: KeyExplanation) -> list[str]:
    rows = [
        (
            part.column,
            part.lake_column,
            percent(part.matched / part.total if part.total else 0.0),
            f"{part.matched:,} of {many(part.total, 'value')}",
        )
        for part in explanation.parts
    ]
    return [
        "Each column for itself:",
        *_table(("yours", "the lake's", "matched", ""), rows, "<<><"),
    ]


def _fan_out(fan_out: FanOut) -> list[str]:
    if fan_out.relation is None:
        return []
    lines = [
        f"{many(fan_out.rows, 'row')} of yours and {fan_out.lake_rows:,} of the lake's make "
        f"{many(fan_out.joined_rows, 'joined row')} ({fan_out.relation})."
    ]
    if fan_out.examples:
        rows = [
            (spec_of(example.key), f"{example.rows:,}", f"{example.lake_rows:,}")
            for example in fan_out.examples
        ]
        lines += _table(("repeated key", "rows of yours", "of the lake's"), rows, "<>>")
    return lines


def _unmatched(explanation: KeyExplanation) -> list[str]:
    left = explanation.total_keys - explanation.matched_keys
    if not left:
        return []
    lines = [f"{many(left, 'key')} without a match:"]
    for group in explanation.unmatched:
        lines.append(f"  {many(group.keys, 'key')}: {_why(group)}")
        rows = [
            (
                spec_of(example.key),
                "" if example.nearest is None else spec_of(example.nearest),
                f"{example.parts} of {len(example.key)}" if example.parts else "none",
            )
            for example in group.examples
        ]
        lines += _table(("key", "nearest row", "parts in it"), rows, "<<<")
    return lines


def _why(group: UnmatchedKeys) -> str:
    if not group.missing:
        return "every part is there, but in different rows"
    n_parts = len(group.there) + len(group.missing)
    if not group.there:
        return f"none of the {n_parts} parts is there"
    are, missing = "is" if len(group.there) == 1 else "are", " and ".join(group.missing)
    return f"{len(group.there)} of {n_parts} parts {are} there; no row has the {missing}"


def _others(explanation: KeyExplanation) -> list[str]:
    if not explanation.others:
        return []
    rows = [
        (", ".join(other.columns), many(other.matched_keys, "key")) for other in explanation.others
    ]
    return [
        f"Other columns of {explanation.table} that match as many keys, or nearly:",
        *_table(("", ""), rows, "<>"),
    ]


def _sample(explanation: KeyExplanation) -> list[str]:
    sample = explanation.sample
    if not sample.rows:
        return []
    names = (*sample.columns, "|", *sample.lake_columns)
    rows = [(*map(_shown, ours), "|", *map(_shown, lake_cells)) for ours, lake_cells in sample.rows]
    return ["The first joined rows:", *_table(names, rows, "<" * len(names))]


def _table(names: Sequence[str], rows: Sequence[Sequence[str]], align: str) -> list[str]:
    return [f"{_INDENT}{line}" for line in table_lines(names, rows, align)]


def _shown(cell: str | None) -> str:
    return "" if cell is None else cell
