"""The options of commands that run on Spark."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import click

from pexeso.errors import InputError

Command = TypeVar("Command", bound=Callable[..., Any])


def spark_options(command: Command) -> Command:
    """Add ``--spark-master`` and ``--spark-conf``, as the parameters `master` (None where it was not given) and `conf`, a dict."""

    @functools.wraps(command)
    def with_conf(**given: Any) -> Any:
        given["conf"] = dict(map(spark_setting, given["conf"]))
        return command(**given)

    options = (
        click.option(
            "--spark-master", "master", metavar="URL", help="Spark master: local[*] (all cores), local[4], spark://..."
        ),
        click.option(
            "--spark-conf",
            "conf",
            multiple=True,
            metavar="KEY=VALUE",
            help="A Spark setting, such as spark.driver.memory=8g.",
        ),
    )
    decorated: Any = with_conf
    for option in reversed(options):
        decorated = option(decorated)
    return decorated


def spark_setting(text: str) -> tuple[str, str]:
    """Read ``KEY=VALUE``.

    Raises
    ------
    InputError
        It has no key, or no equals sign.

    Examples
    --------
    >>> spark_setting("spark.driver.memory=8g")
    ('spark.driver.memory', '8g')
    """
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise InputError(f"--spark-conf must be KEY=VALUE, such as spark.driver.memory=8g. Got {text!r} instead.")
    return key.strip(), value.strip()
