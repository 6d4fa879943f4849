"""`translator check`: what `run` would refuse, without brokers."""

from __future__ import annotations

from pathlib import Path

import click

from translator import settings as settings_module
from translator.catalog import Catalog


@click.command()
@click.option("-c", "--config", type=click.Path(path_type=Path), required=True, help="Configuration file (YAML).")
def check(config: Path) -> None:
    """Check a configuration file: settings, dialects, dialect options, declared tables."""
    settings = settings_module.load(config)
    # Here, not above: help and `translator translate` start without Kafka clients.
    from translator.runtime.start import build_translators

    build_translators(settings, Catalog())
    click.echo(f"{config}: ok, {len(settings.sources)} source(s)")
