"""Sets of columns of a table, and how those of two tables join, without ever listing them all.

The paper's second layer: the AS-lattice of a table with m columns has a vertex for each set of at
least two of them, 2**m - m - 1, one level for each size. A child has one column more than its
parent. An AS-edge joins vertices of two tables that share columns; its label J is what they share.
Of a table with 28 columns there are 268 million vertices. So all counts here are formulas, what is
enumerated comes one at a time, and a weight is looked up by J (Property 4.1).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb

from pexeso.acquisition.graph.joins import JoinEdge, JoinSet
from pexeso.errors import InputError

MIN_COLUMNS = 2
"""Columns of the smallest vertex."""

Vertex = tuple[str, ...]


@dataclass(frozen=True)
class Lattice:
    """The sets of at least two columns of a table.

    Attributes
    ----------
    columns : tuple of str
        The columns of the table, by name.

    Raises
    ------
    InputError
        If a column is named twice.

    Examples
    --------
    >>> lattice = Lattice.of(["c", "a", "b"])
    >>> lattice.n_vertices, lattice.level_sizes
    (4, {2: 3, 3: 1})
    >>> list(lattice.vertices())
    [('a', 'b'), ('a', 'c'), ('b', 'c'), ('a', 'b', 'c')]
    >>> lattice.children(("a", "c"))
    [('a', 'b', 'c')]
    """

    columns: tuple[str, ...]

    def __post_init__(self) -> None:
        if len(set(self.columns)) < len(self.columns):
            raise InputError(f"Columns of a lattice must have different names, got {self.columns}.")

    @classmethod
    def of(cls, columns: Collection[str]) -> Lattice:
        """Return the lattice of columns in any order."""
        return cls(tuple(sorted(columns)))

    @property
    def n_vertices(self) -> int:
        """2**m - m - 1, and 0 of less than two columns."""
        return 2 ** len(self.columns) - len(self.columns) - 1

    @property
    def height(self) -> int:
        """The number of levels, m - 1."""
        return max(len(self.columns) - 1, 0)

    @property
    def level_sizes(self) -> dict[int, int]:
        """How many vertices have how many columns."""
        m = len(self.columns)
        return {size: comb(m, size) for size in range(MIN_COLUMNS, m + 1)}

    @property
    def n_links(self) -> int:
        """The number of pairs of a parent and its child."""
        m = len(self.columns)
        return sum(n * (m - size) for size, n in self.level_sizes.items())

    def vertices(self, size: int | None = None) -> Iterator[Vertex]:
        """Yield the vertices of a size, or all, small ones first and then by name."""
        sizes = range(MIN_COLUMNS, len(self.columns) + 1) if size is None else [size]
        for n_columns in sizes:
            if n_columns >= MIN_COLUMNS:
                yield from combinations(self.columns, n_columns)

    def children(self, vertex: Collection[str]) -> list[Vertex]:
        """Return the vertices with one column more.

        Raises
        ------
        InputError
            If it is no vertex of this lattice.
        """
        known = self._vertex(vertex)
        return [
            tuple(sorted({*known, column})) for column in self.columns if column not in set(known)
        ]

    def parents(self, vertex: Collection[str]) -> list[Vertex]:
        """Return the vertices with one column less.

        Raises
        ------
        InputError
            If it is no vertex of this lattice.
        """
        known = self._vertex(vertex)
        return list(combinations(known, len(known) - 1)) if len(known) > MIN_COLUMNS else []

    def _vertex(self, vertex: Collection[str]) -> Vertex:
        known = tuple(sorted(set(vertex)))
        if len(known) < MIN_COLUMNS or not set(known) <= set(self.columns):
            raise InputError(
                f"A vertex has {MIN_COLUMNS} or more of the columns {', '.join(self.columns)}. Got "
                f"{', '.join(known) or 'none'}."
            )
        return known


@dataclass(frozen=True)
class LatticeEdge:
    """Two sets of columns of two tables that join by what they share, an AS-edge.

    Attributes
    ----------
    left, right : tuple of str
        Vertices of the lattices of two tables.
    shared : tuple of str
        The columns of both, J; at least one.
    """

    left: Vertex
    right: Vertex
    shared: Vertex


def lattice_edges(left: Lattice, right: Lattice) -> Iterator[LatticeEdge]:
    """Yield the AS-edges of two tables whose columns join where they have equal names.

    Examples
    --------
    >>> edges = list(lattice_edges(Lattice.of("ABC"), Lattice.of("BCDE")))
    >>> len(edges), edges[0]
    (34, LatticeEdge(left=('A', 'B'), right=('B', 'C'), shared=('B',)))
    """
    for left_columns in left.vertices():
        for right_columns in right.vertices():
            shared = set(left_columns) & set(right_columns)
            if shared:
                yield LatticeEdge(left_columns, right_columns, tuple(sorted(shared)))


def n_lattice_edges(left: Lattice, right: Lattice, shared: Collection[str] | None = None) -> int:
    """Return how many AS-edges two tables have, or how many with one set of shared columns.

    Both vertices have the shared columns J. Of the s - |J| other columns that both tables have,
    each is in one vertex or in none, which makes 3 choices, and each column of one table alone is
    in or not. Vertices of one column, possible where J has one, are none.

    Parameters
    ----------
    left, right : Lattice
        Of the two tables.
    shared : collection of str, optional
        J.

    Returns
    -------
    int

    Raises
    ------
    InputError
        If a column of `shared` is not one of both, or there is none.

    Examples
    --------
    >>> n_lattice_edges(Lattice.of("ABC"), Lattice.of("BCDE"), "B")
    13
    """
    both = set(left.columns) & set(right.columns)
    if shared is None:
        return sum(comb(len(both), k) * _n_edges(left, right, k) for k in range(1, len(both) + 1))
    if not shared or not set(shared) <= both:
        raise InputError(
            f"Columns of both tables are {', '.join(sorted(both)) or 'none'}. Got "
            f"{', '.join(sorted(shared)) or 'none'}."
        )
    return _n_edges(left, right, len(set(shared)))


def join_set_between(edge: JoinEdge, left: Sequence[str], right: Sequence[str]) -> JoinSet | None:
    """Return the join of two sets of columns by all pairs of columns that both have.

    Parameters
    ----------
    edge : JoinEdge
        Of two tables.
    left, right : sequence of str
        Columns of its left and its right table.

    Returns
    -------
    JoinSet or None
        None if they have no pair to join by, or if the join by all of them is not weighed.
    """
    known = {
        pair
        for join_set in edge.join_sets
        for pair in join_set.pairs
        if pair[0] in set(left) and pair[1] in set(right)
    }
    return next((join_set for join_set in edge.join_sets if set(join_set.pairs) == known), None)


def _n_edges(left: Lattice, right: Lattice, n_shared: int) -> int:
    others = len(set(left.columns) & set(right.columns)) - n_shared
    n_left_only = len(left.columns) - others - n_shared
    n_right_only = len(right.columns) - others - n_shared
    n_all = 3**others * 2 ** (n_left_only + n_right_only)
    if n_shared >= MIN_COLUMNS:
        return n_all
    return n_all - 2 ** (others + n_left_only) - 2 ** (others + n_right_only) + 1
