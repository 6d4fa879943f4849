"""`translator check`: what `run` would refuse, without brokers."""

from __future__ import annotations

from pathlib import Path

import click

from translator import dialects
from translator import settings as settings_module
from translator.message import Setup


@click.command()
@click.option("-c", "--config", type=click.Path(path_type=Path), required=True, help="Configuration file (YAML).")
def check(config: Path) -> None:
    """Check a configuration file: settings, dialects, dialect options, declared tables."""
    settings = settings_module.load(config)
    for source in settings.sources:
        tables = tuple(table.declared() for table in source.tables)
        dialects.build(source.dialect, Setup(source.name, settings.limits.limits(), tables), source.options)
    click.echo(f"{config}: ok, {len(settings.sources)} source(s)")
