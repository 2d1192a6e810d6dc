"""What joins two tables by programs: the pairs, the programs, the joined table."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TextIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.errors import InputError
from pexeso.joins.measures import KeyMatches
from pexeso.joins.options import free_name, join_options, require_how
from pexeso.lake.frames.tables import take_column_cells
from pexeso.runtime.checks import require_flag
from pexeso.runtime.formatting import Shown, many, percent, plain, shown
from pexeso.store.io.temporary import written_whole
from pexeso.transform.joins.details import (
    RowSteps,
    first_rows,
    page_report,
    require_distinct,
    require_moderate,
    why_no_program,
)
from pexeso.transform.joins.sides import Side, chunked, file_name
from pexeso.transform.learning.finding import collapses
from pexeso.transform.learning.generality import held_out
from pexeso.transform.programs.applying import apply_program
from pexeso.transform.programs.patterns import MAX_ROWS, Pattern, pattern_of
from pexeso.transform.programs.renderings import (
    Dialect,
    first_as_python,
    first_as_sql,
    in_words,
    steps_of_row,
)
from pexeso.transform.programs.storing import StoredProgram, program_to_json
from pexeso.transform.texts import spread
from pexeso.transform.transformation import KINDS, Transformation

# Rows that are held out in turn, of the first program; of fewer nothing would be left.
_HELD_OUT, MIN_HELD_OUT = 60, 3

Cardinality = Literal["none", "1:1", "N:1", "1:N", "N:M"]


@dataclass(frozen=True, repr=False)
class TransformJoin(Shown):
    """Two tables and what joins them.

    Attributes
    ----------
    source, target : Side
    rule : Transformation
        Its programs read rows of the source, or of the target: see ``direction`` of it.
    max_compared : int, optional
        Where a side has more distinct values, for which reason similar ones were not joined.
    """

    source: Side
    target: Side
    rule: Transformation = field(repr=False)
    max_compared: int | None = None
    proposal: Callable[[], str | None] | None = field(default=None, repr=False)

    def _summary(self) -> str:
        joined = f"{percent(self.coverage)} of the keys, {self.cardinality}"
        return f"{plain(self.program or 'no program')}, {joined}"

    @cached_property
    def proposed(self) -> str | None:
        """Other columns than those that were named, which a program joins; learned when asked."""
        return self.proposal() if self.proposal else None

    @property
    def forward(self) -> bool:
        """Whether the programs read rows of the source."""
        return self.rule.direction == "source to target"

    @property
    def reading(self) -> Side:
        """The table whose rows the programs read."""
        return self.source if self.forward else self.target

    @property
    def keyed(self) -> Side:
        """The table whose keys the programs write."""
        return self.target if self.forward else self.source

    @property
    def key_column(self) -> str:
        """Name of the column whose values the programs write."""
        return self.keyed.texts.names[self.rule.key_column]

    @property
    def source_columns(self) -> tuple[int, ...]:
        """Of the source's columns that may hold the key, those that do."""
        return self._read if self.forward else (self.rule.key_column,)

    @property
    def target_columns(self) -> tuple[int, ...]:
        """Of the target's columns that may hold the key, those that do."""
        return (self.rule.key_column,) if self.forward else self._read

    @property
    def _read(self) -> tuple[int, ...]:
        """Columns whose cells are a row's value: those that were named, or that programs read."""
        if self.reading.named:
            return tuple(range(len(self.reading.columns)))
        return self.rule.columns

    @property
    def programs(self) -> list[str]:
        """Each program in words; each is for the rows that those before it left."""
        names = self.reading.texts.names
        return [in_words(program, names) for program in self.rule.programs]

    @property
    def program(self) -> str | None:
        """The programs in words, in one text, or None."""
        return "; else ".join(self.programs) or None

    def sql(self, dialect: Dialect = "duckdb") -> str | None:
        """Return an SQL expression over the columns that the programs read, or None.

        Of several programs it takes the first that applies to a row, as SQL knows no partners; one
        that found none there may still apply.
        """
        programs = self.rule.programs
        return first_as_sql(programs, self.reading.texts.names, dialect) if programs else None

    @property
    def python(self) -> str | None:
        """Source of a function ``transform(row)``, or None; of several programs as in `sql`."""
        programs = self.rule.programs
        return first_as_python(programs, self.reading.texts.names) if programs else None

    @property
    def coverage(self) -> float:
        """Share of the smaller side's keys joined by equality or a program, in [0, 1]."""
        return self.rule.n_keys / self.rule.n_joinable if self.rule.n_joinable else 0.0

    @cached_property
    def pairs(self) -> list[tuple[Any, str, str]]:
        """Distinct pairs of a source value, a target value and how they are joined.

        In the order of the rows that the programs read. A source value of several columns is a
        tuple.
        """
        reading, keyed = self.reading.texts, self.keyed.texts
        joined = np.flatnonzero(self.rule.partners >= 0)
        codes = [reading.columns[at].codes[joined] for at in self._read]
        links = np.stack([*codes, self.rule.partners[joined], self.rule.kinds[joined]], axis=1)
        rows = joined[np.sort(np.unique(links, axis=0, return_index=True)[1])]
        values = [reading.columns[at].cells.take(pa.array(rows)).to_pylist() for at in self._read]
        read_values: list[Any] = values[0] if len(values) == 1 else list(zip(*values, strict=True))
        keys = keyed.columns[self.rule.key_column].values
        key_values: list[Any] = keys.take(pa.array(self.rule.partners[rows])).to_pylist()
        kinds = [KINDS[kind] for kind in self.rule.kinds[rows].tolist()]
        left, right = (read_values, key_values) if self.forward else (key_values, read_values)
        return list(zip(left, right, kinds, strict=True))

    @cached_property
    def cardinality(self) -> Cardinality:
        """How many rows of either table a joined key has."""
        n_source, n_target = self.key_counts
        joined = (n_source > 0) & (n_target > 0)
        if not joined.any():
            return "none"
        if (n_source[joined] > 1).any():
            return "N:M" if (n_target[joined] > 1).any() else "N:1"
        return "1:N" if (n_target[joined] > 1).any() else "1:1"

    @property
    def multiplies(self) -> bool:
        """Whether some joined key has several rows in both tables, so that rows multiply."""
        return bool((np.minimum(*self.key_counts) > 1).any())

    @property
    def key_counts(self) -> tuple[np.ndarray, np.ndarray]:
        """Rows of the source and of the target that each key has."""
        size = len(self.keyed.texts.columns[self.rule.key_column].values)
        source, target = (
            np.bincount(codes[codes >= 0], minlength=size) for codes in self.key_codes
        )
        return source, target

    @property
    def key_codes(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the number of the key of each row of the source and of the target, or -1."""
        partners = self.rule.partners
        keys = self.keyed.texts.columns[self.rule.key_column].codes
        return (partners, keys) if self.forward else (keys, partners)

    @cached_property
    def _programmed(self) -> tuple[np.ndarray, np.ndarray]:
        """A row for each distinct value that programs join, and the key that it became."""
        rows = np.flatnonzero(self.rule.kinds == KINDS.index("program"))
        codes = [self.reading.texts.columns[at].codes[rows] for at in self.rule.columns]
        if not len(rows):
            return rows, self.rule.partners[rows]
        first = np.unique(np.stack(codes, axis=1), axis=0, return_index=True)[1]
        return rows[first], self.rule.partners[rows[first]]

    @property
    def _side(self) -> str:
        return "source" if self.forward else "target"

    @cached_property
    def collapse(self) -> str | None:
        """What says that programs make one key of several values; None where they do not."""
        rows, keys = self._programmed
        n_texts, n_keys = len(rows), len(np.unique(keys))
        if not collapses(n_texts, n_keys):
            return None
        return f"{n_texts:,} {self._side} values became {n_keys:,}"

    @cached_property
    def shared_keys(self) -> str | None:
        """What names values that became one key, where these are too few to be refused."""
        rows, keys = self._programmed
        distinct, counts = np.unique(keys, return_counts=True)
        if self.collapse is not None or not (counts > 1).any():
            return None
        some = rows[keys == distinct[counts > 1][0]]
        column = self.reading.texts.columns[self.rule.columns[0]]
        named = ", ".join(repr(text) for text in column.cells.take(pa.array(some[:3])).to_pylist())
        return f"{int(counts[counts > 1].sum()):,} {self._side} values share a key, such as {named}"

    def table(
        self,
        *,
        how: Literal["left", "inner"] = "left",
        many_to_many: bool = False,
        many_to_one: bool = False,
    ) -> pa.Table:
        """Return the source's rows with the columns of the target added.

        Parameters
        ----------
        how : {"left", "inner"}
            Keep rows without a partner, or drop them.
        many_to_many : bool
            Allow keys that have several rows on both sides, each of which is joined with each, and
            more than ten times the rows.
        many_to_one : bool
            Allow programs that make one key of several values.

        Raises
        ------
        InputError
            Keys have several rows on both sides, or make more than ten times the rows; programs
            make one key of several values; or an argument is none of those allowed.
        """
        require_how(how)
        require_distinct(self, many_to_one=many_to_one)
        require_flag("many_to_many", many_to_many)
        require_moderate(self, how, many_to_many=many_to_many)
        return _side_by_side(self, how)

    def join(self, *, many_to_one: bool = False, **options: Any) -> pa.Table:
        """Return the source's rows with the target's, as joins with a lake give them.

        The columns ``match_value`` and ``match_distance`` say what a row is joined with; the
        distance is 0 unless the two are nearly equal.

        Parameters
        ----------
        many_to_one : bool
            As in `table`.
        **options
            ``how``, ``aggregate``, ``suffix``, ``provenance`` and ``many_to_many``: see
            `pexeso.Match.join`.

        Raises
        ------
        InputError
            There is no such option, keys have several rows in both tables and rows are not
            aggregated, or programs make one key of several values.
        """
        from pexeso.transform.joins.lake_join import join_sides

        name = file_name(self.target.file) or "target"
        return join_sides(self, name, join_options(options), many_to_one=many_to_one).table

    @cached_property
    def program_numbers(self) -> np.ndarray:
        """Which program joined each row that the programs read, from 1, or 0: int8 (r,)."""
        numbers = np.zeros(self.reading.n_rows, np.int8)
        rows, keys = self._rows_and_keys("program")
        cells = [column.cells.take(pa.array(rows)) for column in self.reading.texts.columns]
        for number, program in enumerate(self.rule.programs, 1):
            same = pc.fill_null(pc.equal(apply_program(program, cells), keys), False)
            free = rows[same.to_numpy(zero_copy_only=False)]
            numbers[free[numbers[free] == 0]] = number
        return numbers

    def _rows_and_keys(self, kind: str) -> tuple[np.ndarray, pa.Array]:
        """Return the rows that the programs read and that are joined so, and their keys."""
        rows = np.flatnonzero(self.rule.kinds == KINDS.index(kind))
        keys = self.keyed.texts.columns[self.rule.key_column].values
        return rows, keys.take(pa.array(self.rule.partners[rows]))

    def steps(self, n_rows: int = 3) -> list[RowSteps]:
        """Return what the operators of each program wrote for the first rows that it joined.

        Parameters
        ----------
        n_rows : int
            Of each program, at most. Rows of equal cells are one.
        """
        steps: list[RowSteps] = []
        for number, program in enumerate(self.rule.programs, 1):
            rows = first_rows(self.reading.texts, self.rule.columns, self.program_numbers == number)
            for row in rows[:n_rows].tolist():
                names, cells = self.reading.texts.names, self.reading.texts.row(row)
                read = tuple((names[at], cells[at] or "") for at in program.columns)
                written = steps_of_row(program, cells, names)
                texts = tuple((words, text or "") for words, text in written)
                steps.append(RowSteps(number, row, read, texts, "".join(text for _, text in texts)))
        return steps

    @property
    def n_rows(self) -> dict[str, int]:
        """Rows that the programs read, by how they are joined: none, equal, program, fuzzy."""
        counts = np.bincount(self.rule.kinds, minlength=len(KINDS))
        return {kind: int(counts[number]) for number, kind in enumerate(KINDS)}

    @property
    def tried(self) -> str | None:
        """Why there is no program; None where there is one."""
        return None if self.rule.programs else why_no_program(self)

    @property
    def stored(self) -> StoredProgram:
        """The programs as they are saved."""
        if not self.rule.programs:
            raise InputError(f"There is no program to save: {self.tried}.")
        return StoredProgram(
            self.rule.programs,
            self.reading.texts.names,
            {
                "direction": self.rule.direction,
                "key_column": self.key_column,
                "equal_column": self._equal_column,
                "coverage": self.coverage,
            },
            self.patterns,
        )

    @cached_property
    def held_out(self) -> tuple[int, int] | None:
        """How many keys rules write right that are learned from other rows, and of how many."""
        joined = np.flatnonzero(self.program_numbers == 1)
        some = joined[spread(len(joined), _HELD_OUT)]
        if len(some) <= MIN_HELD_OUT:
            return None
        keys = self.keyed.texts.columns[self.rule.key_column].values
        own_keys = keys.take(pa.array(self.rule.partners[some])).to_pylist()
        return held_out(self.reading.texts.rows(some), own_keys), len(some)

    @cached_property
    def patterns(self) -> tuple[dict[int, Pattern], ...]:
        """Of each program, what the cells of the rows that it joins look like, by column."""
        if self.rule.patterns:
            return tuple(map(dict, self.rule.patterns))
        patterns = []
        for number, program in enumerate(self.rule.programs, 1):
            joined = np.flatnonzero(self.program_numbers == number)
            rows = self.reading.texts.rows(joined[spread(len(joined), MAX_ROWS)])
            patterns.append({at: pattern_of(rows, program, at) for at in program.columns})
        return tuple(patterns)

    @property
    def refused(self) -> str | None:
        """Which rows a saved program leaves alone, as they are unlike those it was learned from."""
        rows = self.rule.refused
        if rows is None or not len(rows):
            return None
        for patterns in self.rule.patterns:
            for column, pattern in patterns.items():
                text = self.reading.texts.columns[column].cells[int(rows[0])].as_py()
                if text is not None and not pattern.allows(text):
                    unlike = f"such as {shown(text)}: {pattern.why_not(text)}"
                    return (
                        f"{many(len(rows), 'row')} unlike those that the rule was learned from, "
                        f"{unlike}"
                    )
        return None

    @property
    def _equal_column(self) -> str | None:
        """Name of the column whose cells equal keys; None where no row is joined that way."""
        rows, keys = self._rows_and_keys("equal")
        return next(
            (
                column.name
                for column in self.reading.texts.columns
                if len(rows) and pc.all(pc.equal(column.cells.take(pa.array(rows)), keys)).as_py()
            ),
            None,
        )

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the programs to a file, from which `learn_transformation` takes them.

        Raises
        ------
        InputError
            There is none.
        OutputError
            The file exists already, or cannot be written.
        """
        document = program_to_json(self.stored)
        with written_whole(path, overwrite=overwrite) as draft:
            text = json.dumps(document, ensure_ascii=False, indent=2) + "\n"
            draft.write_text(text, encoding="utf-8")

    def to_html(self, stream: TextIO | None = None) -> str | None:
        """Create a self-contained HTML page of it.

        It shows the programs, the steps of 10 rows of each, up to 100 rows that are nearly equal
        and that have no partner, up to 100 keys without a row, and the programs as SQL and Python.

        Parameters
        ----------
        stream : text stream, optional
            Open for writing as UTF-8.

        Returns
        -------
        str or None
            The page, where no stream was given.
        """
        from pexeso.results.pages.page import transform_page, written

        return written(iter([transform_page(page_report(self))]), stream)

    def _repr_html_(self) -> str:
        """Return what notebooks show: the programs and the first 20 pairs."""
        from pexeso.results.pages.page import transform_table

        return transform_table(self.to_dict())

    def to_dict(self) -> dict[str, Any]:
        """Return the plain JSON form."""
        names = self.reading.texts.names
        return {
            "program": self.program,
            "sql": self.sql(),
            "sql_spark": self.sql("spark"),
            "python": self.python,
            "programs": self.programs,
            "direction": self.rule.direction,
            "columns": [names[at] for at in self.rule.columns],
            "key_column": self.key_column,
            "coverage": self.coverage,
            "held_out": self.held_out,
            "cardinality": self.cardinality,
            "collapse": self.collapse,
            "shared_keys": self.shared_keys,
            "rows": self.n_rows,
            "tried": self.tried,
            "refused": self.refused,
            "pairs": [
                [
                    list(left) if isinstance(left, tuple) else left,
                    list(right) if isinstance(right, tuple) else right,
                    kind,
                ]
                for left, right, kind in self.pairs
            ],
        }


def _side_by_side(joined: TransformJoin, how: Literal["left", "inner"]) -> pa.Table:
    matches = KeyMatches(*joined.key_codes)
    rows, partners = matches.pairs(0, joined.source.n_rows)
    if how == "left":
        alone = np.flatnonzero(matches.sizes == 0)
        rows, partners = np.append(rows, alone), np.append(partners, np.full(len(alone), -1))
        order = np.argsort(rows, kind="stable")
        rows, partners = rows[order], partners[order]
    is_alone = partners < 0
    columns: dict[str, pa.ChunkedArray] = {}
    for side, chosen in (
        (joined.source, pa.array(rows)),
        (joined.target, pa.array(partners, mask=is_alone)),
    ):
        for name, cells in zip(side.names, side.cells, strict=True):
            columns[free_name(name, columns.__contains__, " {}")] = take_column_cells(
                chunked(cells), chosen
            )
    kinds = joined.rule.kinds[rows if joined.forward else partners]
    shown_kinds = pa.array(KINDS).take(pa.array(kinds, pa.int32(), mask=is_alone))
    columns[free_name("match_kind", columns.__contains__, " {}")] = shown_kinds
    return pa.table(columns)
