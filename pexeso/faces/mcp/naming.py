"""References to columns of the lake: names, or codes where a name cannot be written out."""

from __future__ import annotations

from hashlib import blake2b

from pexeso.errors import InputError
from pexeso.faces.service.verbs import Service
from pexeso.runtime.formatting import is_hidden

LONGEST = 200
"""Characters of a name that is written out."""

_CODE = "~"


def reference(table: str, column: str) -> str:
    """Return how answers name a column of the lake.

    A name that is long, or has characters that are not seen, is a code, so that an agent can give
    it back as it stands.

    Examples
    --------
    >>> reference("geo/cities.csv", "city"), reference("a.csv", "b" * 500)
    ('geo/cities.csv:city', '~86977a0234b82049')
    """
    name = f"{table}:{column}"
    if (
        len(name) > LONGEST
        or name.startswith(_CODE)
        or (not name.isprintable() and any(map(is_hidden, name)))
    ):
        return _CODE + blake2b(name.encode(), digest_size=8).hexdigest()
    return name


def named_by(service: Service, index: str, name: str) -> str:
    """Return ``TABLE:COLUMN`` of a reference; what is no code is returned as it is."""
    if not name.startswith(_CODE):
        return name
    rows = service.open(index).catalog.columns(["table", "label"])
    for table, label in zip(rows["table"].to_pylist(), rows["label"].to_pylist(), strict=True):
        if reference(table, label) == name:
            return f"{table}:{label}"
    raise InputError(f"No column of the lake has the code {name!r}: take it from an answer.")
