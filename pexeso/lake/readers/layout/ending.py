"""What stands below a table: sources, notes and other lines that are no rows."""

import re
from collections.abc import Iterable, Sequence

MAX_ROWS_BELOW = 50
"""Most rows at the end of a text that are looked at."""

_WORDS_OF_A_NOTE = 3
MIN_FULLER = 0.75
"""Share of the rows above that fill more cells than a note: else it may be a row like these."""
_NOUNS = (
    r"sources?|notes?|footnotes?|remarks?|disclaimer|quellen?|anmerkung(?:en)?|hinweise?|fuentes?"
    r"|notas?|remarques?|fonte|nota bene|legend|key|citation|contact|copyright|licen[cs]e"
)
_DONE = r"updated|generated|exported|downloaded|retrieved|created|prepared by|compiled by"
_SELDOM_NAMES = r"last updated|end of (?:file|data|report|table)"
_COUNT = r"\([0-9]+ rows?(?: affected| selected)?\)\s*$"
"""What programs of databases write below the rows that they give."""
_MARK = re.compile(
    rf"\s*(?:(?:{_NOUNS}|{_DONE}|{_SELDOM_NAMES})\b\s*(?:[:.(]|by\b|on\b|at\b|from\b|$)"
    r"|data (?:from|as of|source)\b|[*†‡§¶©¹²³]+\s*\S|\([a-z0-9*]\)\s|\[[a-z0-9*]\]\s"
    rf"|\d\)\s|[#%]\s*\w|//|--|{_COUNT})",
    re.IGNORECASE,
)
_SURE = re.compile(
    rf"\s*(?:(?:{_NOUNS}|{_DONE})\b\s*[:.]|(?:{_DONE})\s+(?:by|on|at|from)\b"
    rf"|(?:{_SELDOM_NAMES})\b|data (?:from|as of)\b|{_COUNT})",
    re.IGNORECASE,
)
"""Of the marks those that no name has: a film is called Contact, and a domain ``*.example.com``."""
_BEGIN = re.compile(r"\s*(\w+|[^\w\s]\s?)")


def rows_below(rows: Sequence[Sequence[str]], width: int) -> int:
    """Return how many of the last rows of a text are not of the table.

    Rows are left out from the first on that is a note: one cell of text where the table has more
    columns, that begins like a note ("Source:", "* preliminary"; see `is_marked`), or stands apart
    after a blank line, or is a sentence in a line without delimiters. Before it there must be a row
    of the table, and most of them fill more cells; but for marks that no name has.
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
        if _is_note(rows[position], rows[:position], width, is_apart):
            while position > 0 and _is_blank(rows[position - 1]):
                position -= 1
            return len(rows) - position if position > 0 else 0
    return 0


def is_marked(text: str, begins: Iterable[str], *, is_like_a_row: bool) -> bool:
    """Return whether a cell that stands alone in its row begins like a note.

    A mark that names have too ("#", "*", "Contact") counts where something else tells the row from
    one of the table, or the cell is a sentence; and only where no row above begins alike.

    Examples
    --------
    >>> is_marked("Contact", ["alien", "brazil"], is_like_a_row=True)
    False
    >>> is_marked("Contact: the office", ["alien", "brazil"], is_like_a_row=True)
    True
    """
    if not _MARK.match(text):
        return False
    if is_like_a_row and not (is_sure(text) or _is_sentence(text)):
        return False
    if is_sure(text) and not is_like_a_row:
        return True
    return begin_of(text) not in begins


def is_sure(text: str) -> bool:
    """Return whether a text begins as a note does and no name.

    Examples
    --------
    >>> is_sure("Source: us"), is_sure("Contact")
    (True, False)
    """
    return bool(_SURE.match(text))


def begin_of(text: str) -> str:
    """Return the first word of a text, or its first sign and whether a space follows.

    Examples
    --------
    >>> begin_of("Source: us"), begin_of("#free"), begin_of("* preliminary")
    ('source', '#', '* ')
    """
    match = _BEGIN.match(text)
    return match[1].casefold() if match else ""


def _are_fuller(rows: Sequence[Sequence[str]], n_values: int) -> bool:
    counts = [n for row in rows if (n := sum(1 for cell in row if cell.strip()))]
    return sum(n > n_values for n in counts) >= MIN_FULLER * len(counts)


def _is_sentence(text: str) -> bool:
    return len(text.split()) > _WORDS_OF_A_NOTE and text.rstrip(" \t)\"'").endswith(".")


def _is_blank(row: Sequence[str]) -> bool:
    return not any(cell.strip() for cell in row)


def _may_stand_below(row: Sequence[str], width: int) -> bool:
    n_values = sum(1 for cell in row if cell.strip())
    if n_values <= 1:
        return not row or bool(row[0].strip()) or not n_values
    return bool(row[0].strip()) and (len(row) < width or bool(_MARK.match(row[0])))


def _is_note(
    row: Sequence[str], above: Sequence[Sequence[str]], width: int, is_apart: bool
) -> bool:
    values = [cell for cell in row if cell.strip()]
    if not values:
        return False
    n_words, is_short = len(values[0].split()), len(row) < width
    if not is_sure(row[0]) and not _are_fuller(above, len(values)):
        return False
    # A line above that lacks delimiters may be a note too, and says nothing of the table's rows.
    begins = (begin_of(other[0]) for other in above if len(other) >= width)
    if is_marked(row[0], begins, is_like_a_row=not (is_short or is_apart)):
        return len(values) == 1 or is_short or is_apart
    if is_short:
        is_sentence = len(row) == 1 and width > 2 and n_words > _WORDS_OF_A_NOTE
        return is_sentence or (is_apart and (len(row) == 1 or n_words >= _WORDS_OF_A_NOTE))
    return len(values) == 1 and is_apart and width > 2 and n_words >= _WORDS_OF_A_NOTE
