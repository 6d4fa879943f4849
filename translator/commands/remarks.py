"""A command says on standard error what is not its output."""

from __future__ import annotations

import click


def say(text: str) -> None:
    """Say it under the name of the program: output may go into a file, and several programs into one terminal."""
    click.echo(f"translator: {text}", err=True)
