"""`translator contract`: write a data contract for each table, and check schemas and statements against contracts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from cdc_core.command_line import CommandGroup
from translator.commands.configuration import config_option
from translator.commands.output import say
from translator.config import settings as settings_module
from translator.errors import ConfigError

if TYPE_CHECKING:
    from cdc_core.envelope import TableSchema
    from cdc_core.table_id import TableId
    from translator.config.settings import Settings


@click.group(cls=CommandGroup)
def contract() -> None:
    """Write a data contract for each table, and check a schema or a DDL statement against contracts."""


@contract.command()
@config_option
@click.option(
    "--table",
    "pattern",
    default="*",
    help="Export only tables whose db.schema.table matches this pattern with * and ?.",
)
@click.option(
    "--out",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder for the contracts, one file per table. If unset, print the contract of a single table.",
)
def export(config: Path, pattern: str, folder: Path | None) -> None:
    """Write one contract per table, from its newest schema in the schemas topic.

    Contracts are YAML documents of the Open Data Contract Standard (ODCS). A file that exists with other content is not
    overwritten.
    """
    settings = settings_module.load(config)
    # Imported here so that help and `translator translate` start without Kafka clients.
    from translator.operations.contracts import contract_of, write

    found = {table: contract_of(schema, settings) for table, schema in _newest(settings, pattern).items()}
    if not found:
        raise ConfigError(f"the schemas topic has no schema for a table that matches {pattern}")
    if folder is not None:
        for file in write(found, folder):
            click.echo(str(file))
    elif len(found) > 1:
        raise ConfigError(
            f"{len(found)} tables match {pattern}; set --out to a folder, or select one table with --table"
        )
    else:
        click.echo(next(iter(found.values())), nl=False)


def _newest(settings: Settings, pattern: str = "*") -> dict[TableId, TableSchema]:
    from translator.operations.contracts import newest_schemas
    from translator.state.state_snapshot import read_state

    known = read_state(settings, say)
    return newest_schemas((schema for _, schema in known.schemas.values()), pattern)
