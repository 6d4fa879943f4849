"""Write the reference page for both command lines, based on the commands themselves.

`python -m dev.pages.cli_reference` writes docs/cli.md, and a test compares the page with the commands.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path

import click

import spark_sink.commands
import translator.commands

PAGE = Path(__file__).parents[2] / "docs" / "cli.md"

PROGRAMS = {"translator": translator.commands.cli, "spark-sink": spark_sink.commands.cli}

_HEAD = """# Command line

This page lists every command of both programs with its arguments and options. `COMMAND --help` prints the same
information. `python -m dev.pages.cli_reference` generates the page.

- **Exit codes**: 0 for success, 1 if the work failed, 2 for a wrong command line or configuration. A command's
  description names its other codes.
- **Configuration**: `-c`, or the environment variable (`CDC_TRANSLATOR_CONFIG`, `CDC_SINK_CONFIG`), or
  `translator.yaml` or `sink.yaml` in the working directory.
- **Row data**: no command prints row data unless its description says so.
- **Completion**: bash `eval "$(_TRANSLATOR_COMPLETE=bash_source translator)"`, zsh `zsh_source`, fish `fish_source`.
  For the sink, use `_SPARK_SINK_COMPLETE`.
"""


def page() -> str:
    """Return the whole page."""
    parts = [_HEAD]
    for name, group in PROGRAMS.items():
        parts.append(f"## {name}\n\n{group.help}\n")
        parts += _commands(name, group)
    return "\n".join(parts)


def _commands(path: str, group: click.Group) -> Iterator[str]:
    context = click.Context(group, info_name=path)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield f"### {path} {name}\n\n{_text(command)}\n"
            yield from _commands(f"{path} {name}", command)
        elif command is not None:
            yield _command(f"{path} {name}", command)


def _command(path: str, command: click.Command) -> str:
    context = click.Context(command, info_name=path)
    usage = " ".join([path, *command.collect_usage_pieces(context)])
    lines = [f"### {path}", "", f"`{usage}`", "", _text(command), ""]
    records = [found for parameter in command.params if (found := parameter.get_help_record(context)) is not None]
    if records:
        lines += ["| option | |", "| --- | --- |"]
        lines += [f"| `{_cell(name)}` | {_cell(text)} |" for name, text in records]
        lines.append("")
    return "\n".join(lines)


def _text(command: click.Command) -> str:
    r"""Return a command's help. Blocks marked with `\b` are not wrapped."""
    parts = inspect.cleandoc(command.help or "").split("\n\n")
    blocks = (part.removeprefix("\b\n") for part in parts)
    return "\n\n".join(
        f"```text\n{block}\n```" if part.startswith("\b") else block for part, block in zip(parts, blocks, strict=True)
    )


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
