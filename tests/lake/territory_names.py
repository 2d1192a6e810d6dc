"""Program that writes the names and codes of territories.

The source is the Unicode Common Locale Data Repository as Babel has it. Usage:
``python tests/lake/territory_names.py``.

The package carries the file instead of asking Babel, so that values have the same form whatever
version of Babel a machine has.
"""

import json
from pathlib import Path

from babel import Locale
from babel.core import get_global

PAGE = Path(__file__).resolve().parents[2] / "pexeso" / "lake" / "normalise" / "territories.json"
NO_TERRITORIES = {"EU", "EZ", "QO", "UN", "XA", "XB", "ZZ"}


def from_babel() -> dict[str, dict[str, str]]:
    """Return English territory names by two-letter codes, and these by three-letter codes.

    The three-letter codes are those of ISO 3166.
    """
    english = Locale("en").territories
    names = {
        code: english[code]
        for code in sorted(english)
        if len(code) == 2 and code not in NO_TERRITORIES
    }
    aliases = sorted(get_global("territory_aliases").items())
    three = {
        code: to[0]
        for code, to in aliases
        if len(code) == 3 and code.isalpha() and len(to) == 1 and to[0] in names
    }
    return {"english": names, "three_letters": three}


if __name__ == "__main__":
    PAGE.write_text(
        json.dumps(json.loads(PAGE.read_text("utf-8")) | from_babel(), indent=1, ensure_ascii=False)
        + "\n",
        "utf-8",
    )
