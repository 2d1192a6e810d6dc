"""JSON that every reader takes: it has no NaN and no infinity, null stands for them."""

from __future__ import annotations

import json
import math
from typing import Any

from pexeso.runtime.formatting import cell_text


def plain_json(value: Any) -> Any:
    """Return a value as plain JSON: null for what is no finite number, texts for other types.

    Examples
    --------
    >>> plain_json({"share": float("nan"), "at": [b"x", 1]})
    {'share': None, 'at': ['x', 1]}
    """
    if isinstance(value, dict):
        return {str(name): plain_json(member) for name, member in value.items()}
    if isinstance(value, list | tuple):
        return [plain_json(element) for element in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, bool | int | float | str | None) else cell_text(value)


def json_line(document: Any) -> str:
    """Return a document on one line, without a line feed.

    Examples
    --------
    >>> json_line({"city": "Århus"})
    '{"city": "Århus"}'
    """
    try:
        return json.dumps(document, ensure_ascii=False, allow_nan=False)
    except ValueError:
        return json.dumps(plain_json(document), ensure_ascii=False, allow_nan=False)
