"""Which columns can be join keys: named rules, each with a reason that carries the numbers."""

from dataclasses import dataclass, fields

from pexeso.errors import InputError
from pexeso.lake.sniff import ColumnProfile

KINDS = ("text", "date", "number")
"""The kinds of columns that rules may keep."""


@dataclass(frozen=True)
class ColumnRules:
    """When a column is left out of the index. Every bound is itself allowed.

    Attributes
    ----------
    kinds
        Kinds of columns that are kept, out of ``text``, ``date``, ``number``. Semantic joins have
        nothing to say about numbers.
    min_rows
        Tables with fewer rows are left out, 1 or more.
    min_distinct
        Columns with fewer different values are left out, 1 or more: a constant is no key.
    max_number_fraction
        In [0, 1]. A column is one of numbers where a larger fraction of its values are numbers.
    max_median_tokens
        Columns whose median value has more words are free text, not keys; 1 or more.
    max_missing_fraction
        In [0, 1]. Columns with a larger fraction of empty cells are left out; 1 switches the rule
        off.

    Raises
    ------
    InputError
        A value is out of its range.

    Examples
    --------
    >>> ColumnRules(min_rows=10).min_rows
    10
    """

    kinds: tuple[str, ...] = ("text", "date")
    min_rows: int = 5
    min_distinct: int = 2
    max_number_fraction: float = 0.5
    max_median_tokens: float = 12
    max_missing_fraction: float = 1.0

    def __post_init__(self) -> None:
        if isinstance(self.kinds, str) or not self.kinds or not set(self.kinds) <= set(KINDS):
            raise InputError(
                f"kinds must be one or more of {', '.join(KINDS)}. Got {self.kinds!r}."
            )
        object.__setattr__(self, "kinds", tuple(kind for kind in KINDS if kind in self.kinds))
        for name in ("min_rows", "min_distinct"):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise InputError(f"{name} must be a whole number, 1 or more. Got {value!r}.")
        for name in ("max_number_fraction", "max_missing_fraction"):
            self._check_number(name, 0, 1)
        self._check_number("max_median_tokens", 1, float("inf"))

    def _check_number(self, name: str, low: float, high: float) -> None:
        value = getattr(self, name)
        # Written so that NaN, which compares false with everything, is refused.
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or not low <= value <= high
        ):
            bounds = (
                f"a number of {low} or more"
                if high == float("inf")
                else f"a number from {low} to {high}"
            )
            raise InputError(f"{name} must be {bounds}. Got {value!r}.")

    def to_dict(self) -> dict[str, object]:
        """Return the rules as plain values that JSON can hold."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {**values, "kinds": list(self.kinds)}

    @classmethod
    def from_dict(cls, values: dict[str, object]) -> "ColumnRules":
        """Return the rules that `to_dict` wrote.

        Raises
        ------
        InputError
            A rule is unknown or a value out of its range.
        """
        unknown = set(values) - {field.name for field in fields(cls)}
        if unknown:
            raise InputError(f"Unknown column rules: {', '.join(sorted(map(str, unknown)))}.")
        kinds = values.get("kinds", cls.kinds)
        return cls(**{**values, "kinds": tuple(kinds) if isinstance(kinds, list) else kinds})  # type: ignore[arg-type]


def reason_left_out(profile: ColumnProfile, rules: ColumnRules) -> str | None:
    """Return why a column is left out, None where it is kept; the first rule that fails speaks.

    Examples
    --------
    >>> from pexeso.lake.sniff import ColumnProfile
    >>> reason_left_out(ColumnProfile("text", 8, 0, 1, 0, 0, 1.0), ColumnRules())
    '1 distinct value, at least 2 needed (min_distinct)'
    """
    if profile.n_rows < rules.min_rows:
        return f"{_count(profile.n_rows, 'row')}, at least {rules.min_rows:,} needed (min_rows)"
    if profile.kind == "empty":
        return "no values: every cell is missing"
    if profile.kind not in rules.kinds:
        return _wrong_kind(profile, rules)
    if profile.n_distinct < rules.min_distinct:
        return reason_too_few(profile.n_distinct, rules)
    if profile.median_tokens > rules.max_median_tokens:
        return (
            f"free text: a median of {profile.median_tokens:g} words a value, "
            f"at most {rules.max_median_tokens:g} allowed (max_median_tokens)"
        )
    if profile.n_missing > rules.max_missing_fraction * profile.n_rows:
        return (
            f"{_percent(profile.n_missing, profile.n_rows)} of the cells are empty, "
            f"at most {rules.max_missing_fraction:.4g} of them allowed (max_missing_fraction)"
        )
    return None


def reason_too_few(n_distinct: int, rules: ColumnRules) -> str:
    """Return the reason for a column of too few distinct values."""
    return (
        f"{_count(n_distinct, 'distinct value')}, at least {rules.min_distinct:,} needed "
        "(min_distinct)"
    )


def _wrong_kind(profile: ColumnProfile, rules: ColumnRules) -> str:
    kinds = " and ".join(rules.kinds)
    if profile.kind == "number":
        return (
            f"numbers: {_percent(profile.n_numbers, profile.n_values)} of the values, over the "
            "fraction of "
            f"{rules.max_number_fraction:g} (max_number_fraction), and only {kinds} columns are "
            "kept (kinds)"
        )
    return f"a {profile.kind} column, and only {kinds} columns are kept (kinds)"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.4g} %"
