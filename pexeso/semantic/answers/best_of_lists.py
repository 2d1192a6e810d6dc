"""The best columns of several ranked lists, where a column's rank rests on what all of them say.

A column has a share by meaning and one by equal values, and each search lists columns by its own.
Neither list alone tells which are the best: of two columns with the largest share that there is,
the one with the larger other share comes first, and that may stand far down in both lists. So lists
are read as deep as need be, and no deeper (the threshold algorithm of Fagin, Lotem and Naor, PODS
2001): what is read of one list is looked up in the others, and a column that stands in none of the
parts read cannot be better than the last columns read are together. What is better than that is
surely in its place.

No column with a share below that of the k-th best is needed, so that the work is bounded by the
columns with at least that share, four times, however many more the lake has. Of columns with equal
shares there may be many; of them, too, only those are read that can come before the k-th.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pexeso.results.copies import first_request, next_request

if TYPE_CHECKING:
    from collections.abc import Callable

    from pexeso.semantic.answers.semantic_list import SemanticList
    from pexeso.sets.search.overlap_list import OverlapList
    from pexeso.sets.search.results import TokenMatch, TokenSearchResult
    from pexeso.transform.search.results import TransformMatch

    Name = tuple[str, str]

Rank = tuple[float, float, str, str]


@dataclass(frozen=True)
class Known:
    """What is known of a column."""

    name: Name
    meaning: float
    equal_text: TokenMatch | None
    transform: TransformMatch | None

    @property
    def rank(self) -> Rank:
        """See `pexeso.semantic.answers.combined.CombinedMatch.rank`."""
        equal = self.equal_text.containment if self.equal_text else 0.0
        program = self.transform.joinability if self.transform else 0.0
        return rank_of(self.meaning, equal, program, self.name)


def rank_of(meaning: float, equal: float, program: float, name: Name) -> Rank:
    """Return what the columns of all lists are ordered by; the smallest is the best."""
    return -max(meaning, equal, program), -min(meaning, equal), *name


@dataclass(frozen=True)
class Best:
    """The best columns of all lists.

    Attributes
    ----------
    n_sure : int
        No column that was not read comes before these.
    """

    columns: list[Known]
    n_sure: int
    is_whole: bool
    overlap: TokenSearchResult


def best_of_lists(
    semantic: Sequence[SemanticList],
    overlap: OverlapList,
    by_program: Mapping[Name, TransformMatch],
    wanted: int | None,
    *,
    n_lines: Callable[[Best], int],
    folds: bool,
    exclude_table: str | None = None,
) -> Best:
    """Read lists until the best columns of all of them are sure.

    Parameters
    ----------
    n_lines : callable
        How many lines, copies folded, begin with columns that are sure.
    """
    n = None if wanted is None else first_request(wanted, folds=folds)
    while True:
        best = _read(semantic, overlap, by_program, n, exclude_table)
        if best.is_whole or wanted is None or n_lines(best) >= wanted:
            return best
        n = next_request(n or 1)


def _read(
    semantic: Sequence[SemanticList],
    overlap: OverlapList,
    by_program: Mapping[Name, TransformMatch],
    n: int | None,
    exclude_table: str | None,
) -> Best:
    """Read the first n columns of each list, and look all of them up in the others."""
    shared = overlap.read(n)
    are_read = shared.n_more == 0  # all that share a value
    for source in semantic:
        source.read(n)
    # Where nothing is left to look up, what was found anyway is not cut.
    depth = None if are_read and all(source.is_whole for source in semantic) else n
    listed = [name for source in semantic for name in source.first(depth)]
    sharing = [(match.table, match.column) for match in shared]
    names = [
        name for name in dict.fromkeys([*listed, *sharing, *by_program]) if name[0] != exclude_table
    ]
    if are_read:
        by_name = dict(zip(sharing, shared, strict=True))
        texts = [by_name.get(name) for name in names]
    else:
        texts = overlap.matches(names)
    by_model = [source.shares(names) for source in semantic]
    shares = [max(of_column) for of_column in zip(*by_model, strict=True)]
    columns = [
        Known(name, share, text, by_program.get(name))
        for name, share, text in zip(names, shares, texts, strict=True)
    ]
    columns.sort(key=lambda column: column.rank)
    last = shared[-1] if shared else None
    floor = (0.0, ("", "")) if last is None else (last.containment, sharing[-1])
    behind = _best_behind(
        [source.last_read(depth) for source in semantic], None if are_read else floor
    )
    n_sure = sum(behind is None or column.rank <= behind for column in columns)
    return Best(columns, n_sure, behind is None, shared)


def _best_behind(
    semantic: Sequence[tuple[float, Name] | None], equal: tuple[float, Name] | None
) -> Rank | None:
    """Return a rank that no column can be better than which no list was read down to.

    Each list gives the last column read, behind which its other columns have smaller shares, or
    equal ones and later names; None where it was read to its end. None if all were: there is no
    such column.
    """
    open_lists = [last for last in semantic if last is not None]
    if not open_lists and equal is None:
        return None
    meaning = max((share for share, _ in open_lists), default=0.0)
    # Of several models the one that gives the largest share bounds the name too.
    named = min((name for share, name in open_lists if share == meaning), default=("", ""))
    text, text_name = (0.0, ("", "")) if equal is None else equal
    return rank_of(meaning, text, 0.0, max(named, text_name))
