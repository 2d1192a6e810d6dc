"""Small lakes to move tables of, and what there is of each table afterwards."""

import os
from pathlib import Path

from pexeso.redundancy.holding_folder import TABLES, HeldTable, read_journal
from pexeso.redundancy.plan import Deletion, Plan
from pexeso.redundancy.table_files import table_fingerprint

GONE = ["sales/2020.csv", "sales/2021.csv", "parts", "deep/in/side.csv", "copy.csv"]
KEPT = ["all.csv", "sales/all.csv"]
Bytes = dict[str, bytes]


def write_lake(folder: Path) -> Path:
    """Write a lake of plain tables, one of which is a folder of files."""
    header = "city,year\n"
    rows = [f"town {n},{2000 + n % 30}\n" for n in range(120)]
    texts = {
        "all.csv": rows,
        "copy.csv": rows,
        "sales/all.csv": rows[:60],
        "sales/2020.csv": rows[5:25],
        "sales/2021.csv": rows[30:31],
        "deep/in/side.csv": rows[:90],
        "parts/part-0.csv": rows[:40],
        "parts/part-1.csv": rows[40:80],
        "parts/more/part-2.csv": rows[80:],
        "notes.md": ["no table"],
    }
    for name, lines in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(header + "".join(lines), encoding="utf-8")
    return folder


def plan_of(lake: Path, gone: list[str] = GONE, parent: str = "all.csv") -> Plan:
    """Return the plan that deletes these tables and rebuilds them from one parent."""
    items = tuple(
        Deletion(
            table=name,
            parent=parent,
            sql=f"SELECT `city`, `year` FROM `{parent}`",
            bytes=1,
            rows=1,
            saving=1.0,
            seconds=None,
            derived=(),
            fingerprint=table_fingerprint(lake / name),
            parent_fingerprint=table_fingerprint((lake / parent).resolve()),
            verified=True,
        )
        for name in gone
    )
    kept = tuple(name for name in KEPT if name not in gone)
    return Plan(str(lake), "2026-01-01T00:00:00+00:00", {}, 1.0, 2.0, True, 0.0, items, kept)


def contents(folder: Path) -> Bytes:
    """Return the bytes of each file below a folder, hidden ones too, by its relative path."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def shown(folder: Path) -> Bytes:
    """Return `contents` without what a lake hides."""
    return {
        name: data
        for name, data in contents(folder).items()
        if not any(part.startswith(".") for part in name.split("/"))
    }


def part_of(files: Bytes, table: str) -> Bytes:
    """Return the files of one table."""
    return {
        name: data for name, data in files.items() if name == table or name.startswith(f"{table}/")
    }


def held_tables(holding: Path) -> list[HeldTable]:
    """Return the tables that lie in a holding folder now, and not in the lake."""
    journal = read_journal(holding)
    return [
        entry
        for name, entry in journal.tables.items()
        if os.path.lexists(holding / TABLES / name)
        and not os.path.lexists(Path(journal.lake, name))
    ]
