"""How the sink's commands find the configuration."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from spark_sink.commands import cli, main
from spark_sink.commands.configuration import FILE, VARIABLE


def test_where_the_file_is(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The option decides, then the variable, then the usual file name in the working directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(VARIABLE, raising=False)

    def status(*options: str) -> str:
        monkeypatch.setattr(sys, "argv", ["spark-sink", "status", *options])
        with pytest.raises(SystemExit):
            main()
        return capsys.readouterr().err.strip()

    assert f"spark-sink: cannot read {FILE}: No such file or directory" == status()
    monkeypatch.setenv(VARIABLE, "other.yaml")
    assert "cannot read other.yaml" in status()
    assert "cannot read third.yaml" in status("-c", "third.yaml")


def test_every_command_finds_it_there() -> None:
    """No command requires an option that others do not need."""
    options = [option for command in _commands(cli) for option in command.params if "--config" in option.opts]
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
