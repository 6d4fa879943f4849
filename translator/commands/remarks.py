"""Remarks of a command on standard error, apart from its output."""

from __future__ import annotations

import click


def say(text: str) -> None:
    """Print a remark, prefixed with the program's name because several programs may share a terminal."""
    click.echo(f"translator: {text}", err=True)
