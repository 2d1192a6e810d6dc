"""What joins two tables: learned, or saved before; the pairs, the program, the joined table."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from pexeso.errors import InputError, OutputError
from pexeso.transform.learning.finding import FindingOptions
from pexeso.transform.programs.as_python import as_python
from pexeso.transform.programs.as_sql import Dialect, as_sql
from pexeso.transform.programs.describing import in_words, steps_of_row
from pexeso.transform.programs.storing import (
    StoredProgram,
    program_from_text,
    program_to_json,
)
from pexeso.transform.transformation import (
    DEFAULT_PROGRAMS,
    KINDS,
    Transformation,
    TransformOptions,
    apply_programs,
)
from pexeso.transform.transformation import (
    learn_transformation as learn,
)
from pexeso.transform_join.sides import Side, side_of

Cardinality = Literal["none", "1:1", "N:1", "1:N", "N:M"]


@dataclass(frozen=True)
class TransformJoin:
    """Two tables and what joins them.

    Attributes
    ----------
    source, target : Side
    found : Transformation
        Its programs read rows of the source, or of the target: see ``direction`` of it.
    """

    source: Side
    target: Side
    found: Transformation = field(repr=False)

    @property
    def forward(self) -> bool:
        """Whether the programs read rows of the source."""
        return self.found.direction == "source to target"

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
        return self.keyed.texts.names[self.found.key_column]

    @property
    def program(self) -> str | None:
        """The programs in words, or None; each is for the rows that those before it left."""
        names = self.reading.texts.names
        return "; else ".join(in_words(each, names) for each in self.found.programs) or None

    def sql(self, dialect: Dialect = "duckdb") -> str | None:
        """Return an SQL expression over the columns that the programs read, or None.

        Of several programs it takes the first that applies to a row, as SQL knows no partners; one
        that found none there may still apply.
        """
        names = self.reading.texts.names
        texts = [as_sql(each, names, dialect) for each in self.found.programs]
        if len(texts) > 1:
            return f"coalesce({', '.join(texts)})"
        return texts[0] if texts else None

    @property
    def python(self) -> str | None:
        """Source of a function ``transform(row)``, or None; of several programs as in `sql`."""
        names = self.reading.texts.names
        texts = [as_python(each, names) for each in self.found.programs]
        if len(texts) < 2:
            return texts[0] if texts else None
        numbered = [
            text.replace("def transform(", f"def transform_{number}(")
            for number, text in enumerate(texts, 1)
        ]
        called = ", ".join(f"transform_{number}" for number in range(1, len(texts) + 1))
        return "\n\n".join(numbered) + (
            "\n\ndef transform(row: dict[str, str | None]) -> str | None:\n"
            f"    texts = (each(row) for each in ({called}))\n"
            "    return next((text for text in texts if text is not None), None)\n"
        )

    @property
    def coverage(self) -> float:
        """Share of the smaller side's keys joined by equality or a program, in [0, 1]."""
        return self.found.n_keys / self.found.n_joinable if self.found.n_joinable else 0.0

    @cached_property
    def pairs(self) -> list[tuple[Any, str, str]]:
        """Distinct pairs of a source value, a target value and how they are joined.

        In the order of the rows that the programs read. A source value of several columns is a
        tuple.
        """
        reading, keyed = self.reading.texts, self.keyed.texts
        columns = range(len(reading.columns)) if self.reading.named else self.found.columns
        joined = np.flatnonzero(self.found.partners >= 0)
        codes = [reading.columns[at].codes[joined] for at in columns]
        rows = np.stack([*codes, self.found.partners[joined], self.found.kinds[joined]], axis=1)
        _, first = np.unique(rows, axis=0, return_index=True)
        rows = joined[np.sort(first)]
        chosen = pa.array(rows)
        values = [reading.columns[at].cells.take(chosen).to_pylist() for at in columns]
        mine = values[0] if len(values) == 1 else list(zip(*values, strict=True))
        keys = keyed.columns[self.found.key_column].values
        theirs = keys.take(pa.array(self.found.partners[rows])).to_pylist()
        kinds = [KINDS[kind] for kind in self.found.kinds[rows].tolist()]
        left, right = (mine, theirs) if self.forward else (theirs, mine)
        return list(zip(left, right, kinds, strict=True))

    @cached_property
    def cardinality(self) -> Cardinality:
        """How many rows of either table a joined key has."""
        source, target = self._codes()
        size = len(self.keyed.texts.columns[self.found.key_column].values)
        n_source = np.bincount(source[source >= 0], minlength=size)
        n_target = np.bincount(target[target >= 0], minlength=size)
        joined = (n_source > 0) & (n_target > 0)
        if not joined.any():
            return "none"
        many_source = bool((n_source[joined] > 1).any())
        many_target = bool((n_target[joined] > 1).any())
        kinds: dict[tuple[bool, bool], Cardinality] = {
            (False, False): "1:1",
            (True, False): "N:1",
            (False, True): "1:N",
            (True, True): "N:M",
        }
        return kinds[many_source, many_target]

    def _codes(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the number of the key of each row of the source and of the target, or -1."""
        partners = self.found.partners
        keys = self.keyed.texts.columns[self.found.key_column].codes
        return (partners, keys) if self.forward else (keys, partners)

    def table(
        self, *, how: Literal["left", "inner"] = "left", many_to_many: bool = False
    ) -> pa.Table:
        """Return the source's rows with the columns of the target beside them.

        Parameters
        ----------
        how : {"left", "inner"}
            Keep rows without a partner, or drop them.
        many_to_many : bool
            Allow keys that have several rows on both sides, each of which is joined with each.

        Raises
        ------
        InputError
            Keys have several rows on both sides.
        """
        if self.cardinality == "N:M" and not many_to_many:
            raise InputError(
                "Some keys have several rows in both tables (N:M), so that rows would multiply: "
                "name other columns, remove duplicates of one table, or allow many to many."
            )
        source, target = self._codes()
        order = np.argsort(target, kind="stable")
        sorted_codes = target[order]
        first = np.searchsorted(sorted_codes, source, "left")
        count = np.where(source >= 0, np.searchsorted(sorted_codes, source, "right") - first, 0)
        kept = np.maximum(count, 1) if how == "left" else count
        rows = np.repeat(np.arange(len(source)), kept)
        place = np.arange(len(rows)) - np.repeat(np.cumsum(kept) - kept, kept)
        at = np.minimum(first[rows] + place, len(order) - 1)
        theirs = pa.array(order[at], mask=count[rows] == 0)
        names = list(self.source.names)
        columns = [_taken(cells, pa.array(rows)) for cells in self.source.cells]
        for name, cells in zip(self.target.names, self.target.cells, strict=True):
            names.append(_free_name(name, names))
            columns.append(_taken(cells, theirs))
        names.append(_free_name("match_kind", names))
        columns.append(self._kinds(rows, order[at], count[rows] > 0))
        return pa.table(columns, names=names)

    def _kinds(self, rows: np.ndarray, others: np.ndarray, joined: np.ndarray) -> pa.Array:
        kinds = self.found.kinds[rows if self.forward else others]
        return pa.array(KINDS).take(pa.array(kinds, pa.int32(), mask=~joined))

    def steps(self, n_rows: int = 3) -> list[list[tuple[str, str | None]]]:
        """Return what the operators of the first program wrote for the first rows it joined."""
        if not self.found.programs:
            return []
        texts = self.reading.texts
        joined = np.flatnonzero(self.found.kinds == KINDS.index("program"))[:n_rows]
        return [
            steps_of_row(self.found.programs[0], texts.row(int(row)), texts.names) for row in joined
        ]

    @property
    def tried(self) -> str | None:
        """Why there is no program; None where there is one."""
        if self.found.programs:
            return None
        best = self.found.best
        if best is None:
            return "no rows that share rare pieces of text are written by one rule"
        words = in_words(best.program, self.reading.texts.names)
        return (
            f"the best rule found, {words}, writes {best.n_keys} of the other column's values, "
            f"and {best.expected:.1f} would be expected of letters drawn at random: too few to "
            "trust it"
        )

    @property
    def stored(self) -> StoredProgram:
        """The programs as they are saved.

        Raises
        ------
        InputError
            There is none.
        """
        if not self.found.programs:
            raise InputError(f"There is no program to save: {self.tried}.")
        return StoredProgram(
            self.found.programs,
            self.reading.texts.names,
            {
                "direction": self.found.direction,
                "key_column": self.key_column,
                "coverage": self.coverage,
            },
        )

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the programs to a file, from which `learn_transformation` takes them."""
        text = json.dumps(program_to_json(self.stored), ensure_ascii=False, indent=2) + "\n"
        try:
            with open(path, "w" if overwrite else "x", encoding="utf-8") as file:
                file.write(text)
        except FileExistsError:
            raise OutputError(
                f"'{path}' is there already: choose another name, or overwrite it."
            ) from None
        except OSError as error:
            raise OutputError(f"'{path}' cannot be written: {error.strerror}.") from error

    def to_dict(self) -> dict[str, Any]:
        """Return the plain JSON form."""
        names = self.reading.texts.names
        counts = np.bincount(self.found.kinds, minlength=len(KINDS))
        return {
            "program": self.program,
            "sql": self.sql(),
            "sql_spark": self.sql("spark"),
            "python": self.python,
            "programs": [in_words(each, names) for each in self.found.programs],
            "direction": self.found.direction,
            "columns": [names[at] for at in self.found.columns],
            "key_column": self.key_column,
            "coverage": self.coverage,
            "cardinality": self.cardinality,
            "rows": {kind: int(counts[number]) for number, kind in enumerate(KINDS)},
            "tried": self.tried,
            "pairs": [
                [
                    list(left) if isinstance(left, tuple) else left,
                    list(right) if isinstance(right, tuple) else right,
                    kind,
                ]
                for left, right, kind in self.pairs
            ],
        }


def _taken(cells: pa.Array | pa.ChunkedArray, rows: pa.Array) -> pa.ChunkedArray:
    taken = cells.take(rows)
    return taken if isinstance(taken, pa.ChunkedArray) else pa.chunked_array([taken])


def _free_name(name: str, taken: list[str]) -> str:
    free, number = name, 1
    while free in taken:
        number += 1
        free = f"{name} {number}"
    return free


def learn_transformation(
    source: Any,
    target: Any,
    *,
    columns: str | Iterable[str] | None = None,
    target_columns: str | Iterable[str] | None = None,
    program: str | Path | None = None,
    fuzzy: bool = True,
    max_programs: int = DEFAULT_PROGRAMS,
    seed: int = 0,
) -> TransformJoin:
    """Learn a program that writes the keys of one table in the form of the other's, and join.

    Source: E. Zhu, Search and Join Algorithms for Tables in Data Lakes, PhD thesis, University of
    Toronto, 2019, chapter 4 (Auto-Join).

    Parameters
    ----------
    source, target : path, pandas.DataFrame, pyarrow.Table or mapping of columns
        A text may name columns: ``FILE:COLUMN``, ``FILE:COLUMN,COLUMN``, ``INDEX.pexeso:TABLE`` or
        ``INDEX.pexeso:TABLE:COLUMN``.
    columns, target_columns : str or iterable of str, optional
        That hold the key; without them those are found.
    program : path, optional
        Use programs that were saved instead of learning.
    fuzzy : bool
        Join what is nearly equal of what programs leave.
    max_programs : int
        At least 1; each is learned from the rows that the ones before it left.
    seed : int
        Of samples and sets of examples.

    Raises
    ------
    InputError
        A table, a column or an option is not as it must be.

    Examples
    --------
    >>> names = {"name": ["Suhela Chowdhury", "Maureen Paluzzi", "Carolyn Craddock", "Kelly Moore"]}
    >>> mails = {"mail": ["kmoore@a.us", "ccraddock@a.us", "schowdhury@a.us", "mpaluzzi@a.us"]}
    >>> joined = learn_transformation(names, mails)
    >>> joined.pairs[0], joined.coverage
    (('Suhela Chowdhury', 'schowdhury@a.us', 'program'), 1.0)
    """
    if max_programs < 1:
        raise InputError(f"max_programs is at least 1. Got {max_programs!r}.")
    sides = side_of(source, columns), side_of(target, target_columns)
    options = TransformOptions(
        finding=FindingOptions(seed=seed), max_programs=max_programs, fuzzy=fuzzy
    )
    if len(sides[0].columns) > 1 and sides[0].named:
        options = replace(options, directions=("source to target",))
    elif len(sides[1].columns) > 1 and sides[1].named:
        options = replace(options, directions=("target to source",))
    if program is not None:
        return _with_saved(*sides, program, options)
    return TransformJoin(*sides, learn(sides[0].texts, sides[1].texts, options))


def _with_saved(
    source: Side, target: Side, path: str | Path, options: TransformOptions
) -> TransformJoin:
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"The program '{path}' cannot be read: {error}.") from error
    stored = program_from_text(text)
    direction = stored.metadata.get("direction")
    if direction not in ("source to target", "target to source"):
        raise InputError(
            f"The program '{path}' does not say whose rows it reads: its metadata has no direction."
        )
    reading, keyed = (source, target) if direction == "source to target" else (target, source)
    needed = [stored.columns[at] for each in stored.programs for at in each.columns]
    missing = sorted(set(needed) - set(reading.names))
    if missing:
        raise InputError(
            f"The program '{path}' reads columns that the table does not have: "
            f"{', '.join(map(repr, missing))}. It has {', '.join(map(repr, reading.names[:20]))}."
        )
    key = stored.metadata.get("key_column")
    column = key if key in keyed.names and not keyed.named else None
    places = tuple(
        reading.names.index(name) if name in reading.names else 0 for name in stored.columns
    )
    reading = replace(reading, columns=places)
    if not keyed.named:
        if column is None:
            raise InputError(f"Name the column of the other table that is written by '{path}'.")
        keyed = replace(keyed, columns=(keyed.names.index(str(column)),))
    found = apply_programs(
        reading.texts,
        keyed.texts,
        "source to target" if direction == "source to target" else "target to source",
        stored.programs,
        options,
    )
    sides = (reading, keyed) if direction == "source to target" else (keyed, reading)
    return TransformJoin(*sides, found)
