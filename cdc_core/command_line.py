"""The parts of a command line that both programs have."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])

_WHOLE = 1000
"""Characters of a summary: no first sentence has as many, so that none is cut."""


class CommandGroup(click.Group):
    """A group whose help has the summary of each command whole; Click cuts them to fit a line."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        commands = ((name, self.get_command(ctx, name)) for name in self.list_commands(ctx))
        rows = [(name, command.get_short_help_str(_WHOLE)) for name, command in commands if command is not None]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


json_option: Callable[[Command], Command] = click.option(
    "--json", "as_json", is_flag=True, help="One JSON object, for programs."
)


def config_option(file: str, variable: str) -> Callable[[Command], Command]:
    """The option `-c`.

    Args:
        file: in the working directory, where neither the option nor the variable says.
        variable: of the environment.
    """
    return click.option(
        "-c",
        "--config",
        type=click.Path(path_type=Path),
        default=file,
        show_default=True,
        envvar=variable,
        show_envvar=True,
        help="Configuration file (YAML).",
    )
