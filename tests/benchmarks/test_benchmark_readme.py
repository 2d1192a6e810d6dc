"""Tests of the benchmark README and of a release: commands, links, figures and sweeps."""

import re
import shlex
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from benchmarks import report
from benchmarks.cli import main
from benchmarks.metrics import METRICS
from benchmarks.release import release_commands
from benchmarks.sweeps import known_sweeps

ROOT = Path(__file__).resolve().parent.parent.parent
README = ROOT / "benchmarks" / "README.md"
TEXT = README.read_text(encoding="utf-8")
PAGES = (TEXT, (ROOT / "docs" / "explanation" / "benchmarks.md").read_text(encoding="utf-8"))

START = "python -m benchmarks "
COMMANDS = sorted(
    {
        line.removeprefix(START)
        for text in PAGES
        for line in text.splitlines()
        if line.startswith(START)
    }
)
OF_A_RELEASE = [
    command.removeprefix(START) for command in release_commands() if command.startswith(START)
]
QUICK = [command for command in COMMANDS if "--data random" in command]


def test_there_are_commands_of_both_kinds():
    assert len(QUICK) >= 4
    assert len(COMMANDS) > len(QUICK)
    assert len(OF_A_RELEASE) > 40


@pytest.mark.parametrize("command", QUICK)
def test_a_quick_command_runs(command, tmp_path, monkeypatch):
    monkeypatch.setattr(report, "RESULTS", tmp_path)
    done = CliRunner().invoke(main, [*shlex.split(command), "--threads", "1", "--write"])
    assert done.exit_code == 0, done.output
    assert list(tmp_path.rglob("*.json"))


def test_every_sweep_is_declared():
    sweeps = [shlex.split(command)[1] for command in COMMANDS if command.startswith("sweep ")]
    assert sweeps
    assert set(sweeps) <= set(known_sweeps())


@pytest.mark.parametrize("command", [*COMMANDS, *OF_A_RELEASE])
def test_every_command_is_understood(command):
    name, *arguments = shlex.split(command)
    context = click.Context(main)
    subcommand = main.get_command(context, name)
    assert subcommand is not None
    subcommand.make_context(name, arguments, parent=context)  # refuses options that are none


def test_links_lead_somewhere():
    targets = re.findall(r"\]\(([^)#:]+)\)", TEXT)
    assert len(targets) > 5
    assert [target for target in targets if not (README.parent / target).exists()] == []


def test_every_figure_and_every_sweep_is_told():
    assert [name for name in METRICS if f"`{name}`" not in TEXT] == []
    assert [name for name in known_sweeps() if f"| `{name}` |" not in TEXT] == []
