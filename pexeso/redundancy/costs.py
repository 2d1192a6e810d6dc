"""Prices of keeping tables and of rebuilding them.

R2D2 gives no figures; the defaults here are round numbers near the list prices of cloud storage in
2026, and meant to be replaced by one's own. Sizes are stored bytes, a gigabyte is 10**9 bytes, and
all prices are for a month.

Symbols of the paper: C_s is `storage`, C_m `maintenance`, f_v `maintenances`, A_v `accesses`, r and
w `read` and `write`, r_l and w_l `read_seconds` and `write_seconds`, Th `max_rebuild_seconds`.
"""

from __future__ import annotations

import csv
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields

import numpy as np

from pexeso.errors import InputError

GIGABYTE = 1e9


@dataclass(frozen=True)
class Costs:
    """Prices, and how often tables are used unless it is known of each.

    Attributes
    ----------
    storage : float
        Of a gigabyte kept for a month.
    maintenance : float
        Of a gigabyte gone over once, as a scan for privacy does.
    maintenances : float
        Such operations on a table in a month; one a week.
    read, write : float
        Of a gigabyte read or written once, where a table is rebuilt.
    accesses : float
        Of a table in a month: each would rebuild it, once it is deleted.
    read_seconds, write_seconds : float
        To read and write a gigabyte.
    max_rebuild_seconds : float or None
        A table is deleted only where rebuilding takes less, exclusive; None for no bound.
    accesses_of : dict of str to float
        Of single tables, by name.
    """

    storage: float = 0.02
    maintenance: float = 0.01
    maintenances: float = 52 / 12
    read: float = 0.01
    write: float = 0.01
    accesses: float = 0.1
    read_seconds: float = 10.0
    write_seconds: float = 20.0
    max_rebuild_seconds: float | None = None
    accesses_of: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for cost in fields(self):
            value = getattr(self, cost.name)
            values = value.values() if cost.name == "accesses_of" else [value]
            for number in values:
                if cost.name == "max_rebuild_seconds" and number is None:
                    continue
                if isinstance(number, bool) or not isinstance(number, int | float):
                    raise InputError(f"{cost.name} is a number. Got {number!r}.")
                if not 0 <= number < np.inf:
                    raise InputError(f"{cost.name} is 0 or more, inclusive. Got {number!r}.")

    def keeping(self, n_bytes: np.ndarray) -> np.ndarray:
        """Return what keeping tables costs in a month: float64 (n,)."""
        return (self.storage + self.maintenance * self.maintenances) * n_bytes / GIGABYTE

    def rebuilding(
        self, parent_bytes: np.ndarray, child_bytes: np.ndarray, accesses: np.ndarray
    ) -> np.ndarray:
        """Return what rebuilding deleted tables is expected to cost in a month: float64 (e,)."""
        return accesses * (self.read * parent_bytes + self.write * child_bytes) / GIGABYTE

    def seconds(self, parent_bytes: np.ndarray, child_bytes: np.ndarray) -> np.ndarray:
        """Return how long rebuilding tables takes: float64 (e,)."""
        return (self.read_seconds * parent_bytes + self.write_seconds * child_bytes) / GIGABYTE


def read_costs(path: str | os.PathLike[str]) -> Costs:
    """Read costs from a TOML file; what it does not name keeps its default.

    The table ``[accesses_of]`` has the accesses of single tables by name.

    Raises
    ------
    InputError
        The file cannot be read, or names something else.
    """
    try:
        with open(path, "rb") as file:
            document = tomllib.load(file)
    except (OSError, tomllib.TOMLDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"The costs in '{os.fspath(path)}' cannot be read: {reason}.") from error
    known = {cost.name for cost in fields(Costs)}
    unknown = sorted(set(document) - known)
    if unknown:
        raise InputError(
            f"'{os.fspath(path)}' names {', '.join(unknown)}, which is no cost. Known are "
            f"{', '.join(sorted(known))}."
        )
    if not isinstance(document.get("accesses_of", {}), dict):
        raise InputError(f"accesses_of in '{os.fspath(path)}' is a table of names and numbers.")
    return Costs(**document)


def read_accesses(path: str | os.PathLike[str]) -> dict[str, float]:
    """Read monthly uses of tables from a CSV with the columns ``table`` and ``accesses``.

    Raises
    ------
    InputError
        The file cannot be read as such.
    """
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            rows = csv.DictReader(file)
            if not {"table", "accesses"} <= set(rows.fieldnames or ()):
                raise ValueError(f"its columns are {', '.join(rows.fieldnames or ()) or 'none'}")
            accesses: dict[str, float] = {}
            for row in rows:
                if row["table"] in accesses:
                    raise ValueError(f"it names {row['table']!r} twice")
                accesses[row["table"]] = float(row["accesses"])
        return accesses
    except (OSError, TypeError, ValueError, csv.Error) as error:
        raise InputError(
            f"'{os.fspath(path)}' must be a CSV with the columns table and accesses, and a number "
            f"in each row, one for each table. {type(error).__name__}: {error}."
        ) from error
