"""`translator schema`: list the table schemas that events refer to, and the learned metadata."""

from __future__ import annotations

import json
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from cdc_core.command_line import CommandGroup
from cdc_core.envelope import TableSchema
from cdc_core.table_id import joined_name
from translator.commands.configuration import config_option
from translator.commands.output import print_table, say
from translator.config import settings as settings_module
from translator.errors import ConfigError
from translator.operations.duration import instant

if TYPE_CHECKING:  # imported at run time below, so that help and `translator translate` start without Kafka clients
    from translator.state.state_snapshot import StateSnapshot


@click.group(cls=CommandGroup)
def schema() -> None:
    """List and show table schemas and learned metadata."""


@schema.command()
@config_option
@click.option(
    "--table", "pattern", default="*", help="List only tables whose db.schema.table matches this pattern with * and ?."
)
@click.option(
    "--metadata",
    is_flag=True,
    help="List the metadata documents that the translator has learned, instead of the schemas.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
def ls(config: Path, pattern: str, metadata: bool, as_json: bool) -> None:
    """List the schemas in the schemas topic, or the documents in the metadata topic, by key."""
    known = _look(config)
    rows = _documents(known) if metadata else _schemas(known, pattern)
    if as_json:
        for row in rows:
            click.echo(json.dumps(row, ensure_ascii=False))
    elif rows:
        print_table(list(rows[0]), [list(row.values()) for row in rows])
    else:
        # Printed on standard error, so that a program that counts the lines of output gets 0.
        say(_nothing(metadata=metadata, pattern=pattern))


@schema.command()
@config_option
@click.argument("key")
def show(config: Path, key: str) -> None:
    """Show one schema or document in full. Name it by the key that `ls` prints. For a schema, its ID alone is
    enough.
    """
    known = _look(config)
    if key in known.metadata:
        click.echo(known.metadata[key][1].decode(errors="replace"))
        return
    found = {name: schema for name, (_, schema) in known.schemas.items() if key in (name, schema.id)}
    if not found:
        raise ConfigError(f"{key!r} is in neither the schemas topic nor the metadata topic; `schema ls` lists both")
    for schema in found.values():  # tables with the same columns share an id
        click.echo(msgspec.json.format(msgspec.json.encode(schema)).decode())


def _nothing(*, metadata: bool, pattern: str) -> str:
    if metadata:
        return "no metadata was learned; only Qlik's metadata messages and the schemas in its registry are learned"
    return (
        "no schema has been published" if pattern == "*" else f"there is no schema for a table that matches {pattern}"
    )


def _look(config: Path) -> StateSnapshot:
    settings = settings_module.load(config)
    from translator.state.state_snapshot import read_state

    return read_state(settings, say)


def _schemas(known: StateSnapshot, pattern: str) -> list[dict[str, str | int]]:
    return [
        {
            "key": key,
            "columns": len(schema.columns),
            "key columns": ", ".join(schema.key_columns),
            "key kind": schema.key_kind,
            "since": instant(time),
        }
        for key, (time, schema) in sorted(known.schemas.items())
        if fnmatchcase(_name(schema), pattern)
    ]


def _documents(known: StateSnapshot) -> list[dict[str, str | int]]:
    return [
        {"key": key, "bytes": len(document), "since": instant(time)}
        for key, (time, document) in sorted(known.metadata.items())
    ]


def _name(schema: TableSchema) -> str:
    return joined_name(schema.db, schema.schema, schema.table)
