"""`translator status`: show the service's state on one screen."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from translator.commands.configuration import config_option
from translator.commands.output import say
from translator.config import settings as settings_module
from translator.operations.duration import duration, moment
from translator.operations.terminal_text import shown

if TYPE_CHECKING:  # imported at run time below, so that help starts without Kafka clients
    from translator.operations.status import PartitionStatus, Status

_COLUMNS = 80
"""Minimum screen width. On a wider screen, the output uses the full width."""


@click.command()
@config_option
@click.option(
    "--watch",
    type=click.FloatRange(0.1),
    metavar="[SECONDS]",
    is_flag=False,
    flag_value=2.0,
    help="Keep refreshing, every 2 seconds by default, and show rates.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per refresh.")
def status(config: Path, watch: float | None, as_json: bool) -> None:
    """Show positions, lag, stopped partitions, dead letters, held tables and the newest schemas.

    The command reads the topics and does not contact the service. It therefore also works while the service is down. To
    find the members of the group and their partitions, it queries the brokers. `behind` is the age of the oldest record
    that the group has not read yet, according to the record's timestamp.
    """
    settings = settings_module.load(config)
    from translator.operations.status import StatusLooker

    looker = StatusLooker(settings, say)
    while True:
        found = looker.look()
        if as_json:
            click.echo(msgspec.json.encode(found).decode())
        else:
            if watch is not None:
                click.clear()
            _print(found)
        if watch is None:
            return
        time.sleep(watch)


def _print(found: Status) -> None:
    console = Console()
    if not console.is_terminal or console.width < _COLUMNS:
        console = Console(width=_COLUMNS)
    console.print(f"group {found.group}, {moment(found.at_ms)}", highlight=False)
    console.print(found.membership, highlight=False)
    for plugin in found.plugins:
        console.print(f"dialect {plugin}", highlight=False, markup=False)
    for table in _tables(found):
        console.print(table)
    for sentence in found.missing:
        console.print(sentence, highlight=False, markup=False)
    lag = sum(partition.lag for partition in found.partitions)
    dead = sum(letters.count for letters in found.dead)
    console.print(f"lag={lag} dead={dead} held={len(found.held)} stopped={len(found.stopped)}", highlight=False)


def _tables(found: Status) -> Iterator[Table]:
    from translator.operations.status import places_text

    if found.members:
        table = _table("member", "partitions")
        for member in found.members:
            _add(table, member.name, places_text(member))
        yield table
    if found.partitions:
        rates = any(partition.rate is not None for partition in found.partitions)
        table = _table("source", "topic/partition", ">at", ">end", ">lag", ">behind", *([">a second"] if rates else []))
        for partition in found.partitions:
            _add(table, *_row(partition), *([f"{partition.rate or 0:.0f}"] if rates else []))
        yield table
    if found.stopped:
        table = _table("stopped partition", ">at offset", "code", "reason")
        for stopped in found.stopped:
            place = f"{stopped.topic}/{stopped.partition}"
            _add(table, place, str(stopped.offset), stopped.code, stopped.reason)
        yield table
    if found.dead:
        table = _table("source", "dead letters not yet replayed", ">count")
        for letters in found.dead:
            _add(table, letters.source, letters.code, str(letters.count))
        yield table
    if found.held:
        table = _table("held table", ">since offset", "code")
        for held in found.held:
            _add(table, held.table, str(held.since_offset), held.code)
        yield table
    if found.schemas:
        table = _table("source", "newest schemas", "id", "since")
        for schema in found.schemas:
            _add(table, schema.source, schema.table, schema.schema_id, moment(schema.since_ms))
        yield table


def _row(partition: PartitionStatus) -> tuple[str, ...]:
    place = f"{partition.topic}/{partition.partition}"
    at = "–" if partition.committed is None else str(partition.committed)
    behind = duration(partition.behind_seconds)
    return partition.source, place, at, str(partition.end), str(partition.lag), behind


def _table(*names: str) -> Table:
    """Return a table. Columns whose names begin with > are right-aligned. Long names wrap and are never cut off."""
    table = Table()
    for name in names:
        number = name.startswith(">")
        table.add_column(name.removeprefix(">"), justify="right" if number else "left", no_wrap=number, overflow="fold")
    return table


def _add(table: Table, *cells: str) -> None:
    table.add_row(*(Text(shown(cell)) for cell in cells))
