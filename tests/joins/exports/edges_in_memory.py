"""Edges for exporters, made of a few rows, with names that mean something to other tools."""

import pyarrow as pa

from pexeso.joins.exports.files import EDGES

HOSTILE = (
    'a "quoted" name',
    "it's; DROP TABLE t; --",
    "{{ env_var('HOME') }} {% raw %} {# c #}",
    "<script>alert(1)</script> & ]]>",
    "- key: value # note",
    "%%{init: {}}%% `code` |x| --> y",
    "back\\slash \t tab \n line \r return",
    "next\u0085line\u2028sep\u2029par\ufeff",
    "\x01\x7f\x9b[31m\ufffe",
    "emoji \U0001f600, Ελλάδα, 北京",
    "=1+1",
    "{\n{{%}\r\n{#}\n",
    " ",
)
"""Names of tables and columns."""


class EdgeRows:
    """Edges in memory, a batch for each given list of rows."""

    options, n_columns, n_cut = {"k": 20}, 0, 0

    def __init__(self, *batches):
        self._batches = batches

    def batches(self):
        for rows in self._batches:
            yield pa.RecordBatch.from_pylist(rows, schema=EDGES)

    def summary(self):
        return {"edges": sum(map(len, self._batches))}


def edge(left, right, matched=3, total=4, *, unique=False, copies=(0, 0)):
    """Return a row of `EDGES` from two (table, column)."""
    return {
        "left_table": left[0], "left_column": left[1],
        "right_table": right[0], "right_column": right[1],
        "joinability": matched / total, "matched": matched, "total": total,
        "right_total": 9, "right_unique": unique,
        "left_copies": copies[0], "right_copies": copies[1],
    }  # fmt: skip


def hostile_edges():
    """Return edges between columns of hostile names, in order, in two batches."""
    names = sorted(HOSTILE)
    rows = [
        edge((left, right), (right, left), matched, 4, unique=matched == 4)
        for left, right, matched in zip(
            names, names[1:] + names[:1], [4, 3] * len(names), strict=False
        )
    ]
    return rows, EdgeRows(rows[:5], rows[5:])
