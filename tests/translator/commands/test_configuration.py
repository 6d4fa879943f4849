"""How commands find the configuration."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from tests.translator.commands.test_check import FINE
from translator.commands import cli, main
from translator.commands.configuration import FILE, VARIABLE


def test_where_the_file_is(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The option decides, then the variable, then the usual file name in the working directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(VARIABLE, raising=False)

    def check(*options: str) -> str:
        monkeypatch.setattr(sys, "argv", ["translator", "check", *options])
        with pytest.raises(SystemExit):
            main()
        said = capsys.readouterr()
        return (said.out + said.err).strip()

    assert f"translator: cannot read {FILE}: No such file or directory" == check()
    (tmp_path / FILE).write_text(FINE)
    assert check().startswith(f"{FILE}: ok")
    monkeypatch.setenv(VARIABLE, "other.yaml")
    assert "cannot read other.yaml" in check()
    assert check("-c", FILE).startswith(f"{FILE}: ok")


def test_every_command_finds_it_there() -> None:
    """No command requires an option that others do not need. Some accept having no configuration."""
    commands = [command for command in _commands(cli) if command.name not in ("desk", "translate")]
    options = [option for command in commands for option in command.params if "--config" in option.opts]
    assert len(options) > 10
    assert {(VARIABLE, FILE)} == {(option.envvar, option.default) for option in options}


def _commands(group: click.Group) -> Iterator[click.Command]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from _commands(command)
        else:
            yield command
