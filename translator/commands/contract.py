"""`translator contract`: write a data contract for each table, and check schemas and statements against contracts."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from cdc_core.command_line import CommandGroup, json_option
from translator.commands.configuration import config_option
from translator.commands.output import say
from translator.config import settings as settings_module
from translator.errors import ConfigError

if TYPE_CHECKING:
    from cdc_core.envelope import TableSchema
    from cdc_core.table_contract import TableContract
    from cdc_core.table_id import TableId
    from translator.config.settings import Settings
    from translator.operations.contracts import Breach


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

    Contracts are YAML documents of the Open Data Contract Standard (ODCS). If a file already exists with other content,
    it is not overwritten.
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


@contract.command()
@config_option
@click.option(
    "--ddl",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="File with the proposed statements. If unset, check the newest schemas from the schemas topic.",
)
@click.option(
    "--sql",
    "dialect",
    type=click.Choice(["mysql", "oracle", "postgres", "tsql"]),
    default="mysql",
    show_default=True,
    help="SQL dialect of the statements.",
)
@json_option
@click.argument("contracts", type=click.Path(path_type=Path, exists=True), nargs=-1, required=True)
def check(config: Path, ddl: Path | None, dialect: str, as_json: bool, contracts: tuple[Path, ...]) -> None:
    """Report how a proposed DDL statement, or the newest schemas, would break contracts. The exit code is 1 if a
    contract is broken.

    Contracts are files or folders. With --ddl, the command needs neither a configuration nor a broker.
    """
    # Imported here so that help and `translator translate` start without Kafka clients.
    from cdc_core.table_contract import read
    from translator.operations.contracts import ContractCheck, breaches_by_schema

    wanted = [*read(*contracts).values()]
    if ddl is None:
        newest = _newest(settings_module.load(config))
        found = [breach for one in wanted for breach in breaches_by_schema(one, newest.get(one.table))]
    else:
        found = _by_statements(wanted, ddl, dialect)
    if as_json:
        click.echo(msgspec.json.encode(ContractCheck(not found, found)))
    else:
        for breach in found:
            click.echo(f"{breach.table}: {breach.breach}")
    if found:
        sys.exit(1)


def _by_statements(wanted: list[TableContract], ddl: Path, dialect: str) -> list[Breach]:
    from translator.operations.proposed_ddl import breaches_by_statements

    try:
        sql = ddl.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read {ddl}: {type(error).__name__}") from None
    found, concerned = breaches_by_statements(wanted, sql, dialect)
    if not concerned:
        say("no statement changes a table with a contract")
    return found


def _newest(settings: Settings, pattern: str = "*") -> dict[TableId, TableSchema]:
    from translator.operations.contracts import newest_schemas
    from translator.state.state_snapshot import read_state

    known = read_state(settings, say)
    return newest_schemas((schema for _, schema in known.schemas.values()), pattern)
