"""The option `-c` of every command that needs the configuration."""

from __future__ import annotations

from pathlib import Path

import click

# Where no option says: this variable, else this file in the working directory.
VARIABLE, FILE = "CDC_TRANSLATOR_CONFIG", "translator.yaml"

config_option = click.option(
    "-c",
    "--config",
    type=click.Path(path_type=Path),
    default=FILE,
    show_default=True,
    envvar=VARIABLE,
    show_envvar=True,
    help="Configuration file (YAML).",
)
