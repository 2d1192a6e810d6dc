"""The command ``python -m benchmarks stale``: results whose code has changed since they were made.

A result is told of with the command that makes it again; ``python -m benchmarks renew`` runs these.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import click

from benchmarks.declared_results import DeclaredResult, known_results
from benchmarks.origin import ROOT, code_digest, read_code, why_stale

RESULTS = ROOT / "benchmarks" / "results"

FRESH, KEPT = "fresh", "kept"
NOT_MADE, NOT_DECLARED = "not made yet", "nothing is declared for it in benchmarks/results.yml"


@dataclass(frozen=True)
class State:
    """How a result stands.

    Attributes
    ----------
    path : str
        Below ``benchmarks/results``; of what is not made yet a pattern.
    benchmark : str
    why : str
        `FRESH`, `KEPT`, or why it is stale.
    commands : tuple of str
        That make it again; empty where nobody knows.
    date : str
        When it was made; empty where it does not say.
    minutes : float, optional
        What it took the last time, or is said to take.
    needs : str, optional
    """

    path: str
    benchmark: str
    why: str
    commands: tuple[str, ...] = ()
    date: str = ""
    minutes: float | None = None
    needs: str | None = None

    @property
    def stale(self) -> bool:
        """Whether it is to be made again."""
        return self.why not in (FRESH, KEPT)


def states(
    declared: Sequence[DeclaredResult] | None = None, results: Path = RESULTS, root: Path = ROOT
) -> list[State]:
    """Return how all results stand: those stored, and those declared and not made yet.

    They come in the order in which they are declared, since a command may read what one before it
    makes.

    Parameters
    ----------
    declared : sequence of DeclaredResult, optional
        By default those of ``results.yml``.
    results : Path
    root : Path
        Of the repository, whose files are read now.
    """
    known = known_results() if declared is None else declared
    digest = cache(partial(code_digest, code=read_code(root)))
    stored_states, seen = [], set()
    of_paths = [
        (path, next((declaration for declaration in known if declaration.holds(path)), None))
        for path in sorted(results.rglob("*.json"))
    ]
    of_paths.sort(key=lambda of_path: -1 if of_path[1] is None else known.index(of_path[1]))
    for path, one in of_paths:
        name = path.relative_to(results).as_posix()
        if one is None:
            stored_states.append(State(name, "", NOT_DECLARED))
            continue
        seen.add(one)
        if one.kept is not None:
            stored_states.append(State(name, one.name, KEPT))
            continue
        result = json.loads(path.read_text(encoding="utf-8"))
        origin = result.get("origin") or {}
        command = origin.get("command")
        stored_states.append(
            State(
                name,
                one.name,
                why_stale(result, digest(one.code)) or FRESH,
                one.commands or ((command,) if command else ()),
                date_of(result),
                round(origin["seconds"] / 60, 1) if "seconds" in origin else one.minutes,
                one.needs,
            )
        )
    missing = (one for one in known if one not in seen and one.commands and not one.kept)
    return [
        *stored_states,
        *(
            State(one.patterns[0], one.name, NOT_MADE, one.commands, "", one.minutes, one.needs)
            for one in missing
        ),
    ]


def date_of(result: Mapping[str, Any]) -> str:
    """Return the day a result was made, as it says; empty where it does not.

    Examples
    --------
    >>> date_of({"machine": {"date": "2026-11-21T19:06:53+00:00"}})
    '2026-11-21'
    >>> date_of({"origin": {"date": "2026-11-25T10:00:00+00:00"}, "measured": "2026-11-23"})
    '2026-11-25'
    """
    origin, machine = result.get("origin") or {}, result.get("machine") or {}
    dates = [origin.get("date"), machine.get("date"), result.get("date"), result.get("measured")]
    dates += sorted(
        (method["measured"] for method in _methods(result) if "measured" in method), reverse=True
    )
    return next((date[:10] for date in dates if date), "")


def _methods(result: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    methods = result.get("methods")
    return (
        [method for method in methods.values() if isinstance(method, dict)]
        if isinstance(methods, dict)
        else []
    )


def chosen(states: Iterable[State], names: Sequence[str]) -> list[State]:
    """Return those of which a benchmark or a part of a file is named; all where none is.

    Examples
    --------
    >>> both = [State("web/a.json", "speed", FRESH), State("app.json", "app", FRESH)]
    >>> [state.path for state in chosen(both, ["web/"])]
    ['web/a.json']
    """
    return [
        state
        for state in states
        if not names or any(name == state.benchmark or name in state.path for name in names)
    ]


def by_command(states: Iterable[State]) -> dict[tuple[str, ...], list[State]]:
    """Group states by the commands that make them again."""
    groups: dict[tuple[str, ...], list[State]] = {}
    for state in states:
        groups.setdefault(state.commands, []).append(state)
    return groups


def as_text(states: Sequence[State]) -> str:
    """Return what is stale as text: below each command the results that it makes."""
    stale = [state for state in states if state.stale]
    lines = []
    for commands, group in by_command(stale).items():
        lines += commands or ["no command is known:"]
        notes = [f"needs {group[0].needs}"] if group[0].needs else []
        minutes = [state.minutes for state in group if state.minutes is not None]
        notes += [f"about {max(minutes):g} minutes"] if minutes else []
        lines += [f"  ({'; '.join(notes)})"] if notes else []
        lines += [
            f"  {state.path}: {state.why}{f' ({state.date})' if state.date else ''}"
            for state in group
        ]
        lines.append("")
    counts = {why: sum(state.why == why for state in states) for why in (FRESH, KEPT)}
    return "\n".join(
        [
            *lines,
            f"{len(stale)} of {len(states)} results are stale; {counts[FRESH]} are fresh, and "
            f"{counts[KEPT]} are kept as they are.",
        ]
    )


@click.command("stale")
@click.argument("names", nargs=-1)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON array.")
def stale_command(names: tuple[str, ...], as_json: bool) -> None:
    """List the results whose code has changed since they were made.

    With NAMES, those of these benchmarks, or whose files have such a text in their path. What a
    result rests on is declared in benchmarks/results.yml.
    """
    selected = chosen(states(), names)
    if not as_json:
        click.echo(as_text(selected))
        return
    stale = [state for state in selected if state.stale]
    click.echo(json.dumps([{**vars(state), "commands": list(state.commands)} for state in stale]))
