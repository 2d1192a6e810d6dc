"""Joins declared in a file, and whether the tables of now still keep what it promises of them."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePath
from typing import Annotated, Any, Literal, get_args

import msgspec
import numpy as np
import pyarrow.compute as pc

from pexeso.errors import InputError, PexesoError
from pexeso.lake.normalise.rules import require_reading
from pexeso.redundancy.schema_tokens import read_toml
from pexeso.results.query import read_query, split_spec
from pexeso.runtime.formatting import Shown, many, named, percent, shown
from pexeso.store.io.temporary import written_whole
from pexeso.two_tables import index_of_table

# In this order, so that the ends count in twos: the left end first.
Relation = Literal["1:1", "N:1", "1:N", "N:M"]
RELATIONS: tuple[Relation, ...] = get_args(Relation)

# As version 0.1.0 wrote them, in the same order.
_RelationWords = Literal["one-to-one", "many-to-one", "one-to-many", "many-to-many"]
_IN_WORDS: tuple[str, ...] = get_args(_RelationWords)

# Values without a match that a file keeps, so that those that are new can be listed alone.
MAX_RECORDED = 100

_Share = Annotated[float, msgspec.Meta(ge=0, le=1)]


class DeclaredJoin(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """An entry of the file: two columns, how they are compared, bounds, and what was recorded."""

    left: str
    right: str
    max_distance: _Share | None = None
    rules: tuple[str, ...] = ()
    aliases: str | None = None
    min_share: _Share | None = None
    relation: Relation | _RelationWords | None = None
    max_rows_per_value: Annotated[int, msgspec.Meta(ge=1)] | None = None
    share: _Share | None = None
    unmatched: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if self.relation in _IN_WORDS:
            relation = RELATIONS[_IN_WORDS.index(self.relation)]
            msgspec.structs.force_setattr(self, "relation", relation)


class _Document(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    join: tuple[DeclaredJoin, ...] = ()


@dataclass(frozen=True)
class JoinFigures:
    """What a join makes of the tables of now.

    Attributes
    ----------
    matched, total : int
        Distinct values of the left column that match, and all of them.
    relation : str
        Of the rows that join: ``"N:1"`` where a left row joins one row of the right at
        most, and a right row may join several of the left.
    max_rows_per_value : int
        The largest number of right rows that a left row joins; `widest` is the value of such a row.
    unmatched : tuple of str
        The texts of the left column that have a value, and no match.
    """

    matched: int
    total: int
    relation: Relation
    max_rows_per_value: int
    widest: str | None
    unmatched: tuple[str, ...] = field(repr=False)

    @property
    def share(self) -> float:
        return self.matched / self.total if self.total else 0.0


@dataclass(frozen=True)
class JoinCheck:
    """A declared join, what it makes now, and what is broken: a clause for each bound.

    `figures` is None where the join cannot be made, which `broken` then explains. `unmatched` are
    the values without a match that were not recorded.
    """

    declared: DeclaredJoin
    figures: JoinFigures | None
    broken: tuple[str, ...]
    unmatched: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return f"{self.declared.left} -> {self.declared.right}"

    def change(self) -> str:
        """Return the share of values that match, and what it was where that was recorded."""
        if self.figures is None:
            return "no join"
        before, now = self.declared.share, self.figures.share
        was = "" if before is None or before == now else f"{percent(before)} -> "
        counts = f"{self.figures.matched:,} of {many(self.figures.total, 'value')}"
        rows = f"up to {many(self.figures.max_rows_per_value, 'row')} a value"
        return f"matched {was}{percent(now)} ({counts}), {self.figures.relation}, {rows}"

    def missing(self) -> str | None:
        """Return how many values have no match, with examples, of those that were not recorded."""
        if not self.unmatched:
            return None
        new = " newly" if self.declared.unmatched is not None else ""
        values = named([f"'{value}'" for value in self.unmatched])
        return f"{many(len(self.unmatched), 'value')}{new} without a match: {values}"

    def to_dict(self) -> dict[str, Any]:
        """Return the plain JSON form, with all values without a match that were not recorded."""
        figures = None
        if self.figures is not None:
            figures = {**asdict(self.figures), "share": self.figures.share}
            del figures["unmatched"]
        return {
            **msgspec.to_builtins(self.declared),
            "ok": not self.broken,
            "broken": list(self.broken),
            "now": figures,
            "new_unmatched": list(self.unmatched),
        }


@dataclass(frozen=True, repr=False)
class JoinChecks(Shown):
    """The joins of a file, each with what it makes now.

    Attributes
    ----------
    path : str
    joins : tuple of JoinCheck
        In the order of the file.
    """

    path: str
    joins: tuple[JoinCheck, ...]

    @property
    def broken(self) -> tuple[JoinCheck, ...]:
        """The joins that do not keep what was declared."""
        return tuple(check for check in self.joins if check.broken)

    def _summary(self) -> str:
        return f"{many(len(self.joins), 'join')}, {len(self.broken):,} broken"

    def _shown(self) -> tuple[list[str], list[list[Any]]]:
        rows = [[check.name, check.change(), "; ".join(check.broken)] for check in self.joins]
        return ["join", "now", "broken"], rows

    def to_dict(self) -> dict[str, Any]:
        """Return the plain JSON form."""
        joins = [check.to_dict() for check in self.joins]
        return {"ok": not self.broken, "path": self.path, "joins": joins}


def verify(path: str | os.PathLike[str]) -> JoinChecks:
    """Compare the joins that a file declares with the tables as they are now.

    Parameters
    ----------
    path : path
        A TOML file with an entry ``[[join]]`` for each join: ``left`` and ``right``, columns as
        ``FILE:COLUMN`` below the folder of the file; bounds, of which each may be left out:
        ``min_share`` of the distinct values of the left that must match, ``relation`` of the rows
        (``"N:1"``), ``max_rows_per_value``; and ``max_distance``, ``rules`` and ``aliases``
        (a table in the same folder), as in a join. `record_join` writes such entries.

    Returns
    -------
    JoinChecks
        ``broken`` has the joins that do not hold, and those whose tables cannot be joined.

    Raises
    ------
    InputError
        The file cannot be read, or an entry is not as it must be, or names a file outside its
        folder.

    Examples
    --------
    >>> import pexeso
    >>> pexeso.verify("joins.toml").broken  # doctest: +SKIP
    ()
    """
    file = Path(path)
    declared = _read(file)
    if not declared:
        raise InputError(f"'{file}' declares no join: add one by record_join (pexeso verify).")
    return JoinChecks(str(path), tuple(_checks(file.parent, declared)))


def record_join(
    path: str | os.PathLike[str],
    left: str,
    right: str,
    *,
    max_distance: float | None = None,
    rules: Sequence[str] = (),
) -> JoinChecks:
    """Add a join to a file that `verify` reads, with what it makes now as its bounds.

    Parameters
    ----------
    path : path
        The file, which is made where there is none.
    left, right : str
        ``FILE:COLUMN``, in the folder of the file or below it.
    max_distance : float, optional
        As in `pexeso.fuzzy_join`.
    rules : sequence of str
        Rules of a column by which both are compared, as ``pexeso join --rule`` takes them.

    Returns
    -------
    JoinChecks
        The new join alone.

    Raises
    ------
    InputError, TableReadError
        The join cannot be made, no value matches, or the file declares it already.

    Examples
    --------
    >>> import pexeso
    >>> pexeso.record_join("joins.toml", "orders.csv:city", "cities.csv:name")  # doctest: +SKIP
    JoinChecks(1 join, 0 broken)
    """
    file = Path(path)
    known = _read(file) if file.exists() else ()
    sides = {"left": _relative(file, left), "right": _relative(file, right)}
    options = {} if max_distance is None else {"max_distance": max_distance}
    join = _converted(file, {"join": [{**sides, **options, "rules": list(rules)}]})[0]
    _require_rules(file, join)
    _require_inside(file, join)
    if any((other.left, other.right) == (join.left, join.right) for other in known):
        raise InputError(
            f"'{file}' declares {join.left} -> {join.right} already: delete that entry first, or "
            "change its bounds there."
        )
    figures = _figures(file.parent, join)
    if not figures.matched:
        raise InputError(f"No value of {join.left} matches one of {join.right}: nothing to record.")
    join = msgspec.structs.replace(
        join,
        min_share=math.floor(figures.share * 1000) / 1000,
        relation=figures.relation,
        max_rows_per_value=figures.max_rows_per_value,
        share=figures.share,
        unmatched=figures.unmatched if len(figures.unmatched) <= MAX_RECORDED else None,
    )
    before = file.read_text(encoding="utf-8") if file.exists() else ""
    with written_whole(file, overwrite=True) as temporary:
        temporary.write_text(f"{before.rstrip()}\n\n{_toml(join)}".lstrip(), encoding="utf-8")
    return JoinChecks(str(path), (JoinCheck(join, figures, ()),))


def _read(file: Path) -> tuple[DeclaredJoin, ...]:
    declared = _converted(file, read_toml(file, "joins"))
    for join in declared:
        _require_rules(file, join)
        _require_inside(file, join)
    return declared


def _require_rules(file: Path, join: DeclaredJoin) -> None:
    for rule in join.rules:
        require_reading(f"A rule of {join.left} -> {join.right} in '{file}'", rule)


def _converted(file: Path, document: dict[str, Any]) -> tuple[DeclaredJoin, ...]:
    try:
        return msgspec.convert(document, _Document).join
    except msgspec.ValidationError as error:
        relations = f" A relation is {', '.join(RELATIONS)}." if "relation" in str(error) else ""
        raise InputError(
            f"'{file}' does not declare joins as it must: {error}.{relations}"
        ) from error


def _require_inside(file: Path, join: DeclaredJoin) -> None:
    """Refuse what is read for a join where it is not in the folder of the file."""
    for spec in (join.left, join.right):
        name, column = _split(file.parent, spec)
        if not name or not column:
            raise InputError(f"Columns in '{file}' are FILE:COLUMN. Got {spec!r} instead.")
        _require_path_inside(file, name)
    if join.aliases is not None:
        _require_path_inside(file, join.aliases)


def _require_path_inside(file: Path, name: str) -> None:
    path = PurePath(name)
    is_outside = path.is_absolute() or path.drive or ".." in path.parts or "://" in name
    above = [file.parent.joinpath(*path.parts[: n + 1]) for n in range(len(path.parts))]
    if is_outside or any(map(os.path.islink, above)):
        raise InputError(
            f"The tables of '{file}' must lie in its folder or below it, and links are not "
            f"followed. Got '{name}'."
        )


def _split(folder: Path, spec: str) -> tuple[str, str | None]:
    """Split ``FILE:COLUMN`` where the file is in a folder."""
    _, column = split_spec(os.path.join(folder, spec))
    return (spec, None) if column is None else (spec[: -len(column) - 1], column)


def _relative(file: Path, spec: str) -> str:
    name, column = split_spec(spec)
    if column is None:
        column = str(read_query(spec).column)
    folder = os.path.abspath(file.parent)
    path = PurePath(os.path.relpath(os.path.abspath(name), folder))
    return f"{path.as_posix()}:{column}"


def _checks(folder: Path, declared: tuple[DeclaredJoin, ...]) -> Iterator[JoinCheck]:
    for join in declared:
        try:
            figures = _figures(folder, join)
        except PexesoError as error:
            yield JoinCheck(join, None, (str(error),))
            continue
        unmatched = set(join.unmatched or ())
        new = tuple(text for text in figures.unmatched if text not in unmatched)
        yield JoinCheck(join, figures, tuple(_broken(join, figures)), new)


def _broken(join: DeclaredJoin, figures: JoinFigures) -> Iterator[str]:
    if not figures.matched:
        yield "no value matches"
    elif join.min_share is not None and figures.share < join.min_share:
        now, limit = percent(figures.share), percent(join.min_share)
        yield f"{now} of the values match, and at least {limit} must"
    # A relation holds where neither end is many that must be one.
    if join.relation and RELATIONS.index(figures.relation) & ~RELATIONS.index(join.relation):
        yield f"the relation is {figures.relation}, and must be {join.relation}"
    max_rows, rows = join.max_rows_per_value, figures.max_rows_per_value
    if max_rows is not None and rows > max_rows:
        yield f"{shown(figures.widest)} joins {many(rows, 'row')}, and at most {max_rows:,} may"


def _figures(folder: Path, join: DeclaredJoin) -> JoinFigures:
    query = read_query(os.path.join(folder, join.left))
    name, column = _split(folder, join.right)
    file = os.path.join(folder, name)
    aliases = None if join.aliases is None else os.path.join(folder, join.aliases)
    options: dict[str, Any] = {}
    if join.max_distance is not None:
        options["max_distance"] = join.max_distance
    with index_of_table(file, column, f" of '{name}'", aliases=aliases) as (index, label):
        index = index.with_readings(*join.rules)
        match = index.explain(query, os.path.basename(file), label, **options).match
        rows = match._details.joined_rows(match)
        unmatched = match._details.unmatched_texts(match._position).to_pylist()
    texts = rows.mapping.texts
    at = pc.drop_null(pc.index_in(query.values, texts, skip_nulls=True)).to_numpy()
    own = np.bincount(at, minlength=len(texts))
    counts, joined = rows.counts(), rows.joined
    # Each range of right rows adds the left rows of its text, which end behind it.
    steps = np.zeros(len(joined.order) + 1, np.int64)
    np.add.at(steps, joined.start, own[joined.text])
    np.subtract.at(steps, joined.start + joined.size, own[joined.text])
    max_left, max_right = (int(sizes.max(initial=0)) for sizes in (np.cumsum(steps), counts))
    relation = RELATIONS[(max_left > 1) + 2 * (max_right > 1)]
    widest = texts[int(counts.argmax())].as_py() if max_right else None
    return JoinFigures(match.matched, match.total, relation, max_right, widest, tuple(unmatched))


def _toml(join: DeclaredJoin) -> str:
    """Return an entry; texts are written as JSON, which strings of TOML are too."""
    fields = msgspec.to_builtins(join)
    lines = (f"{name} = {_toml_value(value)}\n" for name, value in fields.items())
    return f"[[join]]\n{''.join(lines)}"


def _toml_value(value: Any) -> str:
    # TOML takes DEL for a control character, and JSON does not escape it.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
