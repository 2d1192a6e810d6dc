"""Holding folders as somebody else may have made them, and what no call on them may do."""

import os
from contextlib import suppress
from functools import partial

from holding_kills import renaming
from holding_lakes import GONE, contents, plan_of, write_lake

from pexeso.errors import InputError, LakeError, OutputError
from pexeso.redundancy import table_files as moving
from pexeso.redundancy.holding import apply_plan, before_undoing, undo_plan
from pexeso.redundancy.holding_folder import JOURNAL, copy_name, default_holding

_NAMES = ("", ".", "..", "../precious/all.csv", "/etc/passwd", "a\0b", "no.csv", "parts/part-0.csv")
_FIELDS = ("table", "parent", "fingerprint", "parent_fingerprint", "bytes", "expires", "sql")
_VALUES = (*_NAMES, "null", "1e999", "[]", "{}", "9" * 5000, "2026-01-01", "\\ud800", "all.csv")


def require_nothing_lost(draw, place):
    """Set tables of a lake aside, change the holding folder by chance, and move tables again.

    Parameters
    ----------
    draw : random.Random
    place : Path
        A new folder.

    Raises
    ------
    AssertionError
        A file of somebody's own was changed or removed, or a table of the lake was lost.
    """
    lake, precious = write_lake(place / "lake"), write_lake(place / "precious")
    folder, plan, before = default_holding(lake), plan_of(lake), contents(lake)
    outside, real = contents(precious), moving._rename_over_nothing
    moving._rename_over_nothing = renaming(folder if draw.randrange(2) else None)
    moves = [partial(apply_plan, plan), partial(undo_plan, folder)] * 2
    try:
        if draw.randrange(8):
            apply_plan(plan)
        planted = [_plant(draw, folder, lake, precious) for _ in range(draw.randrange(4))]
        if draw.randrange(2):
            _garble(draw, folder / JOURNAL)
        for call in draw.choices([*moves, partial(before_undoing, folder)], k=3):
            with suppress(InputError, OutputError, LakeError):
                call()
            assert contents(precious) == outside, planted
            assert set(filter(None, planted)) <= set(contents(place).values()), planted
    finally:
        moving._rename_over_nothing = real
    # No table is lost: each is whole in the lake, or held, or where a link was put before it.
    assert set(before.values()) <= set(contents(place).values()), planted


def _garble(draw, journal):
    """Change a journal: a value of a line, some bytes, or which lines there are."""
    if not journal.is_file() or journal.is_symlink():
        return
    lines = journal.read_bytes().splitlines(keepends=True)
    number = draw.randrange(len(lines))
    line = lines[number].decode("utf-8", "replace")
    kind = draw.randrange(5)
    if kind == 0:
        name = draw.choice(_FIELDS)
        begin, name_found, rest = line.partition(f'"{name}": ')
        _, comma, rest = rest.partition(", ")
        value = draw.choice(_VALUES)
        shown = value if draw.randrange(2) else f'"{value}"'
        line = f"{begin}{name_found}{shown}{comma}{rest}"
    elif kind == 1:
        at = draw.randrange(len(line))
        line = f"{line[:at]}{chr(draw.randrange(256))}{line[at + draw.randrange(3) :]}"
    elif kind == 2:
        line = ""
    elif kind == 3:
        line += line
    else:
        line = line[: draw.randrange(len(line))]
    lines[number] = line.encode("utf-8", "replace")
    journal.write_bytes(b"".join(lines))


def _plant(draw, folder, lake, precious):
    """Put a link, a file or a folder into a holding folder or among the copies of a lake.

    Returns the bytes of a file where it is somebody's own, and must stay.
    """
    table = draw.choice(GONE)
    hidden = f".pexeso-{draw.choice(['arriving', 'leaving'])}-{copy_name(table)}"
    path = draw.choice(
        [
            folder / "copies" / copy_name(table),
            folder / "copies" / "foreign",
            folder / "tables" / "foreign",
            folder / "tables" / table,
            folder / "tables" / table.split("/")[0],
            folder / "journal.draft",
            folder / "copies",
            folder / "tables",
            (lake / table).parent / hidden,
            folder / "own.txt",
        ]
    )
    if not path.parent.is_dir() or os.path.realpath(path.parent) != str(path.parent):
        return None
    if os.path.lexists(path):
        path.rename(path.with_name(f"{path.name}.aside-{len(os.listdir(path.parent))}"))
    kind = draw.randrange(3)
    if kind == 0:
        path.symlink_to(draw.choice([precious, precious / "all.csv", precious / "parts"]))
        return None
    if kind == 1:
        path.mkdir()
        path = path / "mine.txt"
    text = f"mine {path}"
    path.write_text(text, encoding="utf-8")
    own = path.is_relative_to(folder / "copies") and copy_name(table) in path.parts
    return None if own or path.name == "journal.draft" else text.encode()
