"""Explanations of keys of several columns for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pexeso.cli.output.output import table_lines
from pexeso.lake.key_columns import spec_of
from pexeso.runtime.formatting import percent
from pexeso.runtime.shown import many

if TYPE_CHECKING:
    from pexeso.explain.key_explanation import FanOut, KeyExplanation, UnmatchedKeys

_INDENT = "    "


def key_explanation_lines(found: KeyExplanation) -> list[str]:
    """Lay out an explanation for people."""
    blocks = (
        _head(found),
        _parts(found),
        _fan_out(found.fan_out),
        _unmatched(found),
        _others(found),
        _sample(found),
    )
    lines: list[str] = []
    for block in blocks:
        if block:
            lines += ["", *block] if lines else block
    return lines


def _head(found: KeyExplanation) -> list[str]:
    columns = ", ".join(found.columns)
    how = "" if found.are_given else ", the columns that join most keys"
    if not found.matched_keys and not found.are_given:
        how = ", the columns that have most of the values"
    lines = [
        f"{percent(found.joinability)} of the keys match ({found.matched_keys:,} of "
        f"{found.total_keys:,}): {', '.join(found.query['columns'])} with {columns} of "
        f"{found.table}{how}."
    ]
    left_out = found.query["rows_without_key"]
    if left_out:
        has = "has" if left_out == 1 else "have"
        lines.append(f"{many(left_out, 'row')} of yours {has} no key: a part of it is empty.")
    return lines


def _parts(found: KeyExplanation) -> list[str]:
    rows = [
        (
            each.column,
            each.lake_column,
            percent(each.matched / each.total if each.total else 0.0),
            f"{each.matched:,} of {many(each.total, 'value')}",
        )
        for each in found.parts
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
            (spec_of(each.key), f"{each.rows:,}", f"{each.lake_rows:,}")
            for each in fan_out.examples
        ]
        lines += _table(("repeated key", "rows of yours", "of the lake's"), rows, "<>>")
    return lines


def _unmatched(found: KeyExplanation) -> list[str]:
    left = found.total_keys - found.matched_keys
    if not left:
        return []
    lines = [f"{many(left, 'key')} without a match:"]
    for group in found.unmatched:
        lines.append(f"  {many(group.keys, 'key')}: {_why(group)}")
        rows = [
            (
                spec_of(each.key),
                "" if each.nearest is None else spec_of(each.nearest),
                f"{each.parts} of {len(each.key)}" if each.parts else "none",
            )
            for each in group.examples
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


def _others(found: KeyExplanation) -> list[str]:
    if not found.others:
        return []
    rows = [(", ".join(each.columns), many(each.matched_keys, "key")) for each in found.others]
    return [
        f"Other columns of {found.table} that match as many keys, or nearly:",
        *_table(("", ""), rows, "<>"),
    ]


def _sample(found: KeyExplanation) -> list[str]:
    sample = found.sample
    if not sample.rows:
        return []
    names = (*sample.columns, "|", *sample.lake_columns)
    rows = [(*map(_shown, ours), "|", *map(_shown, theirs)) for ours, theirs in sample.rows]
    return ["The first joined rows:", *_table(names, rows, "<" * len(names))]


def _table(names: Sequence[str], rows: Sequence[Sequence[str]], align: str) -> list[str]:
    return [f"{_INDENT}{line}" for line in table_lines(names, rows, align)]


def _shown(cell: str | None) -> str:
    return "" if cell is None else cell
