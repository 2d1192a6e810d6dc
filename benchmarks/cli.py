"""The command line of the benchmarks."""

from __future__ import annotations

import importlib

import click

COMMANDS = {
    "acquisition": ("benchmarks.acquisition.command", "acquisition_command"),
    "cluster": ("benchmarks.cluster.running", "cluster_command"),
    "comparison": ("benchmarks.comparison", "comparison_command"),
    "composite": ("benchmarks.composite.command", "composite_command"),
    "containment": ("benchmarks.containment", "main"),
    "engines": ("benchmarks.engines", "engines_command"),
    "effectiveness": ("benchmarks.effectiveness.command", "main"),
    "gpu": ("benchmarks.gpu.command", "gpu_command"),
    "install": ("benchmarks.install", "install_command"),
    "lexical-speed": ("benchmarks.lexical_speed", "main"),
    "out-of-core": ("benchmarks.out_of_core.command", "out_of_core_command"),
    "overlap": ("benchmarks.overlap", "main"),
    "redundancy": ("benchmarks.redundancy.command", "redundancy_command"),
    "release": ("benchmarks.release", "release_command"),
    "run": ("benchmarks.run_commands", "run"),
    "sparse-speed": ("benchmarks.sparse_speed", "main"),
    "sweep": ("benchmarks.run_commands", "sweep"),
    "tables": ("benchmarks.pages", "tables_command"),
    "transform": ("benchmarks.transform.command", "transform_command"),
}
"""The module and the attribute of each command, which is imported when it is asked for."""


class _Group(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, attribute = COMMANDS[cmd_name]
        return getattr(importlib.import_module(module), attribute)


@click.group(cls=_Group)
def main() -> None:
    """Measure pexeso against what could be used instead; every answer is checked."""
