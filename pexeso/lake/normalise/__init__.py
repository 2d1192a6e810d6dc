"""The normaliser and its named rules."""

import json
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def package_data(name: str) -> Any:
    """Return what is in a JSON file of this package. Not to be changed by the caller."""
    return json.loads(files(__name__).joinpath(name).read_text("utf-8"))
