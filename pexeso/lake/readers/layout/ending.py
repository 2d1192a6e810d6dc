"""What stands below a table: sources, notes and other lines that are no rows."""

import re
from collections.abc import Sequence

MAX_ROWS_BELOW = 50
"""Most rows at the end of a text that are looked at."""

_WORDS_OF_A_NOTE = 3
_MARK = re.compile(
    r"\s*(?:(?:sources?|notes?|footnotes?|remarks?|disclaimer|quellen?|anmerkung(?:en)?|hinweise?"
    r"|fuentes?|notas?|remarques?|fonte|nota bene|legend|key|citation|contact|copyright|licen[cs]e"
    r"|last updated|updated|generated|exported|downloaded|retrieved|created|prepared by|compiled by"
    r"|end of (?:file|data|report|table))\b\s*(?:[:.(]|by\b|on\b|at\b|from\b|$)"
    r"|data (?:from|as of|source)\b|[*†‡§¶©¹²³]+\s*\S|\([a-z0-9*]\)\s|\[[a-z0-9*]\]\s|[#%]\s*\w"
    r"|//|--)",
    re.IGNORECASE,
)


def rows_below(rows: Sequence[Sequence[str]], width: int) -> int:
    """Return how many of the last rows of a text are not of the table.

    Rows are left out from the first on that is a note: one cell of text where the table has more
    columns, that begins like a note ("Source:", "* preliminary"), or stands apart after a blank
    line, or is a sentence in a line without delimiters. Before it there must be a row of the table.

    Parameters
    ----------
    rows
        The last rows, blank lines among them as empty lists.
    width
        Number of columns.
    """
    if width < 2:
        return 0
    begin = max(0, len(rows) - MAX_ROWS_BELOW)
    first = len(rows)
    for position in range(len(rows) - 1, begin - 1, -1):
        if not _may_stand_below(rows[position], width):
            break
        first = position
    for position in range(first, len(rows)):
        is_apart = position > 0 and _is_blank(rows[position - 1])
        if _is_note(rows[position], width, is_apart):
            while position > 0 and _is_blank(rows[position - 1]):
                position -= 1
            return len(rows) - position if position > 0 else 0
    return 0


def _is_blank(row: Sequence[str]) -> bool:
    return not any(cell.strip() for cell in row)


def _may_stand_below(row: Sequence[str], width: int) -> bool:
    n_values = sum(1 for cell in row if cell.strip())
    if n_values <= 1:
        return not row or bool(row[0].strip()) or not n_values
    return bool(row[0].strip()) and (len(row) < width or bool(_MARK.match(row[0])))


def _is_note(row: Sequence[str], width: int, is_apart: bool) -> bool:
    values = [cell for cell in row if cell.strip()]
    if not values:
        return False
    n_words = len(values[0].split())
    if _MARK.match(row[0]):
        return len(values) == 1 or len(row) < width or is_apart
    if len(row) < width:
        is_sentence = len(row) == 1 and width > 2 and n_words > _WORDS_OF_A_NOTE
        return is_sentence or (is_apart and (len(row) == 1 or n_words >= _WORDS_OF_A_NOTE))
    return len(values) == 1 and is_apart and width > 2 and n_words >= _WORDS_OF_A_NOTE
