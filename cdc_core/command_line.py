"""Command-line building blocks that both programs use."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])

_WHOLE = 1000
"""Maximum length of a command summary. Every summary is shorter than this, so none of them is cut."""


class CommandGroup(click.Group):
    """A command group whose help prints each command's summary in full. By default, Click would shorten each summary to
    one line.
    """

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command for the arguments. If the name is unknown, the error suggests the most similar command."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            near = difflib.get_close_matches(args[0], self.list_commands(ctx), n=1)
            if near:
                error.message += f" Did you mean {near[0]}?"
            raise

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        commands = ((name, self.get_command(ctx, name)) for name in self.list_commands(ctx))
        rows = [(name, command.get_short_help_str(_WHOLE)) for name, command in commands if command is not None]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


class LazyGroup(CommandGroup):
    """A group that imports the module of a command only when it runs, so that `--help` is fast.

    Args:
        commands: each command's summary, keyed by its name. Tests compare them with the summaries of the commands
            themselves.
        modules: the module for each command whose module has a different name. A dash in the name of a command is an
            underscore in Python.
        package: the package that contains the modules.
    """

    def __init__(
        self,
        *args: Any,
        commands: Mapping[str, str],
        modules: Mapping[str, str] | None = None,
        package: str,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self._summaries = commands
        self._modules = modules or {}
        self._package = package

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*self._summaries]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._summaries:
            return None
        module = import_module(f"{self._package}.{self._modules.get(cmd_name, cmd_name).replace('-', '_')}")
        command: click.Command = getattr(module, cmd_name.replace("-", "_"))
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([*self._summaries.items()])


json_option: Callable[[Command], Command] = click.option(
    "--json", "as_json", is_flag=True, help="Print the result as one JSON object."
)


def config_option(file: str, variable: str) -> Callable[[Command], Command]:
    """Return the `-c` option.

    Args:
        file: the default file in the working directory. It applies if neither the option nor the variable is set.
        variable: the environment variable that may contain the file's path.
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
