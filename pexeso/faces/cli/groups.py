"""A command with verbs beside it.

``pexeso redundancy LAKE`` makes a plan, ``pexeso redundancy apply PLAN`` applies it.
"""

from __future__ import annotations

from typing import Any

import click


class _OwnPath(click.Context):
    """The context of a command that is called by the name of its group."""

    @property
    def command_path(self) -> str:
        """The name as it is typed."""
        return self.parent.command_path if self.parent is not None else super().command_path


class WithVerbs(click.Group):
    """A command that goes by the name of a group, which has other commands besides."""

    def __init__(self, name: str, default: click.Command, *others: click.Command) -> None:
        self._default = default
        default.context_class = _OwnPath
        super().__init__(
            name,
            commands={str(command.name): command for command in others},
            help=default.help,
            short_help=default.short_help,
            add_help_option=False,
            context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
        )

    @property
    def default(self) -> click.Command:
        """The command that goes by the group's name."""
        return self._default

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Hand everything to the command that is meant."""
        named = bool(args) and args[0] in self.commands
        name = args[0] if named else self._default.name or ""
        rest = args[1:] if named else args
        return super().parse_args(ctx, [name, *rest])

    def get_command(self, ctx: click.Context, cmd_name: str) -> Any:
        """Return the command of a name, the default one too."""
        return (
            self._default if cmd_name == self._default.name else super().get_command(ctx, cmd_name)
        )
