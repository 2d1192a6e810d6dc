"""Options of names with commas between them, which may be given several times too.

click would take the last one alone, and not say so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import click


def together(context: click.Context, option: click.Parameter, texts: Sequence[str]) -> str:
    """Return what was given at once or in several as one text, with commas."""
    return texts if isinstance(texts, str) else ",".join(texts)


def read_names(
    context: click.Context, option: click.Parameter, texts: Sequence[str]
) -> tuple[str, ...]:
    """Read names with commas between them."""
    text = together(context, option, texts)
    return tuple(name.strip() for name in text.split(",") if name.strip())


def read_names_or_none(
    context: click.Context, option: click.Parameter, texts: Sequence[str]
) -> tuple[str, ...]:
    """Read names with commas between them; the word none stands for none of them."""
    names = read_names(context, option, texts)
    return () if names == ("none",) else names


def name_list(
    default: Sequence[str] = (), callback: Callable[..., Any] = read_names
) -> dict[str, Any]:
    """Return the settings of an option of names."""
    shown = (",".join(default),) if default else ()
    return {
        "callback": callback,
        "multiple": True,
        "type": str,
        "default": shown,
        "show_default": bool(default),
    }
