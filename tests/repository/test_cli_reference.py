"""docs/cli.md matches the help of the commands, and every command has help."""

from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from dev.pages.cli_reference import PAGE, PROGRAMS, page


def test_the_page_is_written_anew() -> None:
    assert page() == PAGE.read_text(encoding="utf-8"), "python -m dev.pages.cli_reference"


def _paths(group: click.Group, *names: str) -> Iterator[tuple[str, ...]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        yield (*names, name)
        if isinstance(command, click.Group):
            yield from _paths(command, *names, name)


@pytest.mark.parametrize(
    ("program", "path"),
    [(program, path) for program, group in PROGRAMS.items() for path in _paths(group)],
    ids=lambda part: part if isinstance(part, str) else " ".join(part),
)
def test_every_command_runs(program: str, path: tuple[str, ...]) -> None:
    """The help shows every summary in full and explains each option. An unknown option exits with code 2."""
    ran = CliRunner().invoke(PROGRAMS[program], [*path, "--help"])
    assert 0 == ran.exit_code, ran.output
    assert "...\n" not in ran.output.partition("Options:")[2]
    command: click.Command = PROGRAMS[program]
    for name in path:
        assert isinstance(command, click.Group)
        found = command.get_command(click.Context(command), name)
        assert found is not None
        command = found
    assert all(option.help for option in command.params if isinstance(option, click.Option))
    assert 2 == CliRunner().invoke(PROGRAMS[program], [*path, "--no-such-option"]).exit_code
