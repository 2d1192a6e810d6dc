"""``pexeso judge``: doubtful pairs are shown one after the other, and judged by a letter."""

from __future__ import annotations

import sys
from pathlib import Path

import click
import msgspec

from pexeso.faces.cli.errors import Interrupted
from pexeso.faces.cli.options import command, index_argument, takes
from pexeso.faces.cli.output import MAX_NAME, heading, output_options, talk, write_json
from pexeso.faces.service.judging import JudgeRequest
from pexeso.faces.service.verbs import Service
from pexeso.lake.judgements import FIELDS, NO, UNSURE, YES
from pexeso.runtime.formatting import many, percent, plain
from pexeso.semantic.thresholds.judging import Doubt
from pexeso.store.manifest import JUDGEMENTS

ANSWERS = {"y": YES, "n": NO, "u": UNSURE}
KEYS = "y yes, n no, u unsure, z undo, q quit"
_WORDS = {word: letter for key in KEYS.split(", ") for letter in key[0] for word in key.split()}


@command()
@index_argument
@output_options("json")
@takes(JudgeRequest, without=("verdict",))
def judge(request: JudgeRequest, form: str | None) -> None:
    """Judge doubtful joins and values of a lake.

    \b
    Example:
      pexeso judge lake.pexeso
      pexeso judge lake.pexeso --json

    Shows pairs near the thresholds. Answer y (yes), n (no), u (unsure), z (undo) or q (quit), one a
    line. Answers are kept in judgements.csv in the folder of the index and count at once: rejected
    joins are not found again, accepted values match, rejected ones do not. From 20 judged pairs of
    columns on it says how likely a join is. --json lists the pairs and asks nothing.

    In Python: pexeso.record_judgements(INDEX, [pexeso.Judgement(...)]).
    """  # noqa: D301  click reads \b
    service = Service(keep_open=True)
    response = service.run(request)
    if form == "json":
        write_json(response.to_dict())
        return
    if response.doubts:
        _ask(service, request)
    else:
        talk("There is no doubtful pair that was not judged.")
    for line in service.run(msgspec.structs.replace(request, limit=0)).calibration_lines():
        click.echo(line)


def _ask(service: Service, request: JudgeRequest) -> None:
    """Ask for a verdict on one pair after the other, and record each at once."""
    kept = f"kept in '{plain(str(Path(request.index, JUDGEMENTS)), MAX_NAME)}'"
    given: list[tuple[Doubt, str | None]] = []
    coming: list[Doubt] = []
    try:
        while coming := coming or list(service.run(request).doubts):
            for line in doubt_lines(coming[0], len(given) + 1):
                talk(line)
            answer = _answer()
            if answer == "q":
                break
            if answer != "z":
                doubt = coming.pop(0)
                given.append((doubt, _record(service, request, doubt, ANSWERS[answer])))
            elif given:
                doubt, before = given.pop()
                _record(service, request, doubt, before or UNSURE)
                coming.insert(0, doubt)
            else:
                talk("There is nothing to undo.")
    except KeyboardInterrupt as error:
        raise Interrupted(f"Interrupted; {many(len(given), 'judgement')} {kept}.") from error
    talk(f"{many(len(given), 'judgement')} {kept}.")


def _answer() -> str:
    """Read one of the letters; the end of the input is ``q``."""
    while True:
        click.echo(f"{KEYS}: ", err=True, nl=False)
        line = sys.stdin.readline() if sys.stdin is not None else ""
        word = line.strip().lower()
        if not line:
            talk("")
            return "q"
        if word in _WORDS:
            return _WORDS[word]
        talk(f"Answer with one letter. Got '{plain(word)}'.")


def _record(service: Service, request: JudgeRequest, doubt: Doubt, verdict: str) -> str | None:
    fields = {name: getattr(doubt.judgement, name) for name in FIELDS} | {"verdict": verdict}
    return service.run(JudgeRequest.of(index=request.index, **fields)).before


def doubt_lines(doubt: Doubt, number: int) -> list[str]:
    """Lay out a pair for people."""
    pair = doubt.judgement
    columns = [
        f"  {plain(table, MAX_NAME)} : {plain(label, MAX_NAME)}  {_listed(values)}"
        for (table, label), values in ((pair.query, doubt.yours), (pair.lake, doubt.theirs))
    ]
    question = "are these values the same" if pair.of_values else "do these columns join"
    lines = ["", heading(f"{number:,}: {question}?"), *columns]
    if pair.of_values:
        return [*lines, f"  distance {doubt.score:.2g}"]
    lines.append(
        f"  {doubt.matched:,} of {many(doubt.total, 'value')} of the first match "
        f"({percent(doubt.score)}):"
    )
    return [
        *lines,
        *(f"    {_listed((ours,))} ~ {_listed((theirs,))}" for ours, theirs in doubt.pairs),
    ]


def _listed(values: tuple[str, ...]) -> str:
    return ", ".join(f"'{plain(value)}'" for value in values)
