"""Writer of ``terminal.svg``, a terminal that plays without a script, with the present code.

Run it as ``python docs/write_terminal.py``. The commands of `SCENES` are run on the demo lake, one
scene after the other; where motion is not wanted, the last one is shown.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from html import escape
from pathlib import Path

import pexeso

HERE = Path(__file__).parent
PICTURE = HERE / "terminal.svg"
COLUMNS, ROWS = 92, 17
LETTER, LINE, MARGIN = 8.4, 20, 18
SECONDS_A_SCENE, SECONDS_A_LINE = 10, 0.15
SCENES = (
    ("pexeso index lake lake.pexeso",),
    ("pexeso search lake.pexeso autographs.csv:signed_by --explain --pairs 4 -k 2",),
    (
        "pexeso join lake.pexeso autographs.csv:signed_by science/scientists.csv:name -o my.csv",
        "pexeso search lake.pexeso my.csv:country --explain --pairs 3 -k 1",
    ),
)
_TIMES = re.compile(r"\d+ columns? in [\d,]+ ms ")
_SECONDS = re.compile(r" in \d+\.\d+ s\b")

STYLE = """
text { fill: #d6deeb; white-space: pre;
  font: 14px ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace; }
.command { fill: #7fdbca; font-weight: bold; }
g, text { animation-duration: %(all)gs; animation-iteration-count: infinite;
  animation-timing-function: step-end; }
%(scenes)s
@media (prefers-reduced-motion: reduce) {
  g, text { animation: none !important; }
  g:not(:last-of-type) { display: none; }
}
"""


def scenes() -> list[list[str]]:
    """Run the commands; return the lines of each scene, the command first."""
    demo = Path(pexeso.__file__).parent / "demo"
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(demo / "lake", Path(folder, "lake"))
        shutil.copy(demo / "my_autographs.csv", Path(folder, "autographs.csv"))
        return [
            [line for command in some for line in (f"$ {command}", *_output(command, folder))]
            for some in SCENES
        ]


def _output(command: str, folder: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-m", *command.split()],
        cwd=folder,
        env=os.environ | {"COLUMNS": str(COLUMNS), "NO_COLOR": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=True,
    )
    lines = [
        _SECONDS.sub("", line)[:COLUMNS]
        for line in done.stdout.rstrip().splitlines()
        if not _TIMES.match(line)
    ]
    return lines if len(lines) < ROWS else [*lines[: ROWS - 2], "..."]


def picture(every: list[list[str]]) -> str:
    """Return the drawing of scenes that are shown one after the other."""
    total = SECONDS_A_SCENE * len(every)
    width, height = round(COLUMNS * LETTER + 2 * MARGIN), ROWS * LINE + 2 * MARGIN
    rules, groups = [], []
    for number, lines in enumerate(every):
        start = number * SECONDS_A_SCENE
        begin, end = (100 * second / total for second in (start, start + SECONDS_A_SCENE))
        shown = "opacity: 1" if number == 0 else "opacity: 0"
        rules.append(
            f"@keyframes s{number} {{ 0% {{ {shown} }} {begin:g}% {{ opacity: 1 }} "
            f"{end:g}% {{ opacity: 0 }} }} #s{number} {{ animation-name: s{number}; }}"
        )
        texts = []
        for row, line in enumerate(lines):
            delay = start + (0 if row == 0 else 1.5 + row * SECONDS_A_LINE)
            name, at = f"s{number}l{row}", 100 * delay / total
            if row:
                rules.append(
                    f"@keyframes {name} {{ 0% {{ opacity: 0 }} {at:.3g}% {{ opacity: 1 }} }} "
                    f"#{name} {{ animation-name: {name}; }}"
                )
            kind = ' class="command"' if line.startswith("$ ") else ""
            place = f'x="{MARGIN}" y="{MARGIN + (row + 1) * LINE - 5}"'
            texts.append(f'<text id="{name}"{kind} {place}>{escape(line)}</text>')
        groups.append(f'<g id="s{number}">\n' + "\n".join(texts) + "\n</g>")
    style = STYLE % {"all": total, "scenes": "\n".join(rules)}
    said = "A terminal: a lake is indexed, searched, and joined with a table of autographs"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}">\n<title>{said}</title>\n<style>{style}</style>\n'
        f'<rect width="{width}" height="{height}" rx="10" fill="#011627"/>\n'
        + "\n".join(groups)
        + "\n</svg>\n"
    )


if __name__ == "__main__":
    PICTURE.write_text(picture(scenes()), encoding="utf-8")
