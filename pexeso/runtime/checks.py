"""Checks of options: choices, truth values, and options that are passed on by name.

What is given is compared once its type is known: arrays and tables, of which Python has no truth
value, are refused like anything else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from inspect import Parameter, signature
from typing import Any, ParamSpec, TypeVar

import numpy as np

from pexeso.errors import InputError
from pexeso.runtime.formatting import plain_scalar, shown

Given = ParamSpec("Given")
Result = TypeVar("Result")


def require_choice(name: str, value: Any, allowed: Sequence[str]) -> None:
    """Raise InputError unless an option is one of some texts."""
    if not isinstance(value, str) or value not in allowed:
        raise InputError(f"{name} must be one of {', '.join(allowed)}. Got {shown(value)} instead.")


def require_flag(name: str, value: Any) -> bool:
    """Return an option that is a truth value as Python's; raise InputError for any other."""
    if not isinstance(value, bool | np.bool_):
        raise InputError(f"{name} must be True or False. Got {shown(value)} instead.")
    return bool(value)


def require_share(name: str, value: Any, meaning: str = "", *, zero: bool = False) -> None:
    """Raise InputError unless an option is a number from 0 to 1, 0 itself only with `zero`."""
    number = plain_scalar(value)
    is_number = isinstance(number, int | float) and not isinstance(number, bool)
    if not is_number or not 0 <= number <= 1 or not (number or zero):
        bounds = f"{'[' if zero else '('}0, 1]"
        said = f"{name} must be a number in {bounds}. Got {shown(value)} instead. {meaning}"
        raise InputError(said.rstrip())


def require_options(
    shares: Mapping[str, tuple[Any, str, bool]],
    flags: Mapping[str, Any],
    choices: Mapping[str, tuple[Any, Sequence[str]]],
) -> None:
    """Require shares, truth values and choices.

    Of a share there are its value, its meaning, and whether it may be 0; of a choice its value and
    what it is out of. What is plainly right is looked at no closer.
    """
    for name, (value, meaning, zero) in shares.items():
        if type(value) is not float or not 0 < value <= 1:
            require_share(name, value, meaning, zero=zero)
    for name, value in flags.items():
        if type(value) is not bool:
            require_flag(name, value)
    for name, (value, allowed) in choices.items():
        if type(value) is not str or value not in allowed:
            require_choice(name, value, allowed)


def require_instance(name: str, value: Any, kind: type) -> None:
    """Raise InputError unless an option is an object of a public class."""
    if not isinstance(value, kind):
        raise InputError(
            f"{name} must be a {kind.__name__}, such as pexeso.{kind.__name__}(...). Got "
            f"{shown(value)} instead."
        )


def flags(**options: Any) -> dict[str, bool]:
    """Return options that are truth values as Python's; raise InputError for any other."""
    return {
        name: value if type(value) is bool else require_flag(name, value)
        for name, value in options.items()
    }


def named_options(of: str) -> Callable[[Callable[Given, Result]], Callable[Given, Result]]:
    """Let a function refuse an option that it does not have, and take scalars of numpy.

    Its results name the options as plain JSON, which has no numbers of numpy.
    """

    def decorate(work: Callable[Given, Result]) -> Callable[Given, Result]:
        parameters = signature(work).parameters
        names = [name for name, entry in parameters.items() if entry.kind is Parameter.KEYWORD_ONLY]

        @wraps(work)
        def checked(*positional: Given.args, **options: Given.kwargs) -> Result:
            if unknown := sorted(options.keys() - parameters.keys()):
                raise InputError(
                    f"Options of {of} are {', '.join(names)}. Got {', '.join(unknown)}."
                )
            for name, value in options.items():
                options[name] = plain_scalar(value)
            return work(*positional, **options)

        return checked

    return decorate
