"""Write the demo lake and the two user tables that go with it.

::

    python examples/write_lake.py            # into examples/
    python examples/write_lake.py FOLDER     # into FOLDER/lake and FOLDER/my_*.csv

The same program writes the same files every time: nothing in it is drawn by chance and nothing
depends on the clock. Files of the same names are replaced; no other file is touched.
"""

import sys
from pathlib import Path

from encoders import sheet_bytes
from lake_sheets import all_sheets
from messy_files import messy_files
from user_tables import user_sheets


def write_examples(folder: Path) -> list[Path]:
    """Write the lake into `folder/lake` and the user tables into `folder`.

    Returns the paths written, in order.
    """
    contents = {f"lake/{sheet.path}": sheet_bytes(sheet) for sheet in all_sheets()}
    contents |= {f"lake/{path}": content for path, content in messy_files().items()}
    contents |= {sheet.path: sheet_bytes(sheet) for sheet in user_sheets()}
    written = []
    for path, content in sorted(contents.items()):
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
        written.append(target)
    return written


def main() -> None:
    """Write the examples into the folder given, or next to this program."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    written = write_examples(folder)
    sys.stdout.write(f"{len(written)} files written under {folder}\n")


if __name__ == "__main__":
    main()
