"""Checks of one option that is a choice or a truth value.

What is given is compared once its type is known: arrays and tables, of which Python has no truth
value, are refused like anything else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pexeso.errors import InputError
from pexeso.runtime.formatting import plain_scalar, shown


def require_choice(name: str, value: Any, allowed: Sequence[str]) -> None:
    """Raise InputError unless an option is one of some texts."""
    if not isinstance(value, str) or value not in allowed:
        raise InputError(f"{name} must be one of {', '.join(allowed)}. Got {shown(value)} instead.")


def require_flag(name: str, value: Any) -> None:
    """Raise InputError unless an option is a truth value: arrays and tables have none."""
    if not isinstance(plain_scalar(value), bool):
        raise InputError(f"{name} must be True or False. Got {shown(value)} instead.")
