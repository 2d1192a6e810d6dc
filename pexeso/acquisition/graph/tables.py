"""Tables of a market, and the shopper's own."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from pexeso.acquisition.measures.prices import projection_price
from pexeso.acquisition.measures.quality import Dependency
from pexeso.errors import ColumnNotFoundError, InputError

ReadColumns = Callable[[Sequence[str]], pa.Table]
"""Returns the named columns of a table, all of its rows, in the same order at each call."""

PriceOf = Callable[[Collection[str]], float]
"""Returns the price of a projection on the named columns."""


def free(names: Collection[str]) -> float:
    """Return the price of one's own tables, and of all tables of a free lake."""
    return 0.0


@dataclass(frozen=True, eq=False)
class MarketTable:
    """A table that could be bought, or that the shopper owns.

    Attributes
    ----------
    name : str
        Unique in its graph.
    columns : tuple of str
        Names of its columns, each once.
    n_rows : int
        The rows that `read` returns: all of the table, or of a sample.
    read : callable
        From names of columns to a `pyarrow.Table` with these.
    price : callable
        From names of columns to what a projection on them costs.
    owned : bool
        It is the shopper's: it costs nothing, and there is nothing to buy.
    numeric : frozenset of str
        Columns whose values are numbers and no codes; all others are categorical.
    dependencies : tuple of Dependency
        Approximate functional dependencies that hold in the table; those whose columns a plan has
        are the measure of its quality.

    Raises
    ------
    InputError
        If two columns have one name.
    """

    name: str
    columns: tuple[str, ...]
    n_rows: int
    read: ReadColumns
    price: PriceOf = free
    owned: bool = False
    numeric: frozenset[str] = frozenset()
    dependencies: tuple[Dependency, ...] = ()

    def __post_init__(self) -> None:
        twice = sorted({name for name in self.columns if self.columns.count(name) > 1})
        if twice:
            raise InputError(
                f"The columns of '{self.name}' must have different names, got {twice} more than "
                "once. Rename them."
            )

    @classmethod
    def of(
        cls,
        name: str,
        rows: pa.Table,
        *,
        price: PriceOf | None = None,
        owned: bool = False,
        numeric: Iterable[str] = (),
        dependencies: Iterable[Dependency] = (),
    ) -> MarketTable:
        """Return a table whose rows are in memory.

        Parameters
        ----------
        name : str
            Its name.
        rows : pyarrow.Table
            Its rows.
        price : callable, optional
            Entropy-based (`EntropyPrices`) if not given, nothing for an owned table.
        owned, numeric, dependencies
            As the attributes.

        Examples
        --------
        >>> rows = pa.table({"region": [1, 2], "name": ["Asia", "Africa"]})
        >>> table = MarketTable.of("regions", rows)
        >>> table.price(["region", "name"])
        2.0
        """
        if price is None:
            price = free if owned else EntropyPrices(rows.select)
        return cls(
            name,
            tuple(rows.column_names),
            rows.num_rows,
            rows.select,
            price,
            owned,
            frozenset(numeric),
            tuple(dependencies),
        )

    def require(self, column: str) -> None:
        """Raise `ColumnNotFoundError` unless the table has a column."""
        if column not in self.columns:
            raise ColumnNotFoundError(
                f"'{self.name}' has no column {column!r}. Its columns: {', '.join(self.columns)}."
            )


@dataclass
class EntropyPrices:
    """Prices of projections of a table by the Shannon entropies of its columns, added up.

    Each entropy is measured when it is first asked for and kept: a few bytes a column.

    Attributes
    ----------
    read : callable
        As that of `MarketTable`.
    scale : float
        The price of a bit.

    Examples
    --------
    >>> prices = EntropyPrices(pa.table({"a": [1, 2, 3, 4], "b": ["x", "x", "y", "y"]}).select)
    >>> prices(["a", "b"]), prices(["b"])
    (3.0, 1.0)
    """

    read: ReadColumns
    scale: float = 1.0
    _known: dict[str, float] = field(default_factory=dict)

    def __call__(self, names: Collection[str]) -> float:
        """Return the price of a projection."""
        for name in names:
            if name not in self._known:
                self._known[name] = projection_price(self.read([name]), [name])
        return self.scale * math.fsum(self._known[name] for name in sorted(set(names)))


@dataclass(frozen=True)
class ListedPrices:
    """Prices of columns from a list, added up.

    Attributes
    ----------
    table : str
        What errors call the table.
    of_column : mapping of str to float
        The price of each column.

    Raises
    ------
    InputError
        If a price is negative or not finite, or one is asked for that is not in the list.

    Examples
    --------
    >>> prices = ListedPrices("regions", {"region": 1.5, "name": 2.0})
    >>> prices(["region", "name"])
    3.5
    """

    table: str
    of_column: Mapping[str, float]

    def __post_init__(self) -> None:
        for column, price in self.of_column.items():
            if not 0 <= price < math.inf:
                raise InputError(
                    f"The price of {column!r} of '{self.table}' must be a finite number from 0, "
                    f"got {price}."
                )

    def __call__(self, names: Collection[str]) -> float:
        """Return the price of a projection."""
        missing = sorted(set(names) - set(self.of_column))
        if missing:
            raise InputError(
                f"There is no price for {', '.join(map(repr, missing))} of '{self.table}'. Add "
                "a line for each to the list of prices."
            )
        return math.fsum(self.of_column[name] for name in sorted(set(names)))
