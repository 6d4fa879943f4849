"""Commands for the running sink, which executes them between batches: `spark-sink resume`, `rebuild`, `sweep` and
others.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TextIO

import click
import msgspec

from spark_sink.commands.configuration import config_option, configured, opened
from spark_sink.config import settings
from spark_sink.errors import ConfigError, FatalError

_LOOK_SECONDS = 1.0

wait = click.option("--wait", "seconds", type=float, help="Seconds to wait until the running sink responds.")


@click.command()
@config_option
@click.argument("table")
@wait
def resume(config: Path, table: str, seconds: float | None) -> None:
    """Replay the events of a parked TABLE, then resume it."""
    _ask(config, "resume", table, None, seconds)


@click.command()
@config_option
@click.argument("table")
@wait
def discard(config: Path, table: str, seconds: float | None) -> None:
    """Discard the events of a parked TABLE that tables.exclude now leaves out."""
    _ask(config, "discard", table, None, seconds)


@click.command()
@config_option
@click.argument("table")
@wait
def park(config: Path, table: str, seconds: float | None) -> None:
    """Park TABLE: store its events, and do not apply them until it is resumed."""
    _ask(config, "park", table, None, seconds)


@click.command()
@config_option
@click.argument("table")
@click.option("--into", metavar="NAME", help="Write a new table with this name and leave TABLE unchanged.")
@click.option(
    "--as-of",
    metavar="BATCH|TIME",
    help=(
        "With --into: read events only up to the end of this batch, given as a number, or of the last batch that had "
        "ended by this time, such as 2026-01-31T12:00:00+00:00."
    ),
)
@click.option(
    "--without",
    metavar="RANGE",
    multiple=True,
    help="Events to skip: PARTITION:OFFSET, PARTITION:FIRST-LAST, or batch:NUMBER. Can be repeated.",
)
@wait
def rebuild(
    config: Path, table: str, into: str | None, as_of: str | None, without: tuple[str, ...], seconds: float | None
) -> None:
    """Rebuild TABLE from the canonical topic into a new, empty table, and resume it.

    Events that arrive during the rebuild are stored until it ends. Other tables are not affected. The old rows stay
    readable as the table's previous version. The table's mode, key and sources may have changed in the configuration.

    With --into, the new table gets another name. TABLE then continues unchanged, and the sink writes the new table only
    once.
    """
    if as_of is not None and into is None:
        raise ConfigError(
            "--as-of: a table that continues would lack the events after that batch; add --into NAME to write the "
            "earlier state to another table"
        )
    loaded = _configured_sink(config)
    from spark_sink.control_tables.batches import BatchTable
    from spark_sink.operations.rebuild_options import options_for_copy, options_for_table
    from spark_sink.schema.table_naming import plain_name

    if table not in loaded.tables.rename.values():
        _check_name(loaded, table)
    batches = BatchTable(loaded.tables.warehouse, loaded.pipeline, "", loaded.input.topic)
    if into is None:
        options = options_for_table(batches, without)
        _queue(loaded, "rebuild", table, None if options is None else options.text(), seconds)
        return
    try:
        plain_name(into)
    except ValueError as error:
        raise ConfigError(f"--into: {error}") from None
    copy = options_for_copy(batches, loaded.input.topic, table, as_of, without)
    _queue(loaded, "rebuild-into", into, copy.text(), seconds)


@click.command()
@config_option
@click.argument("table")
@wait
def relayout(config: Path, table: str, seconds: float | None) -> None:
    """Rewrite TABLE in the layout that tables.layout configures.

    Events that arrive during the rewrite are stored until it ends. Other tables are not affected. The rows do not
    change.
    """
    _ask(config, "relayout", table, None, seconds)


@click.command()
@config_option
@click.argument("table")
@click.argument("step", type=click.Choice(("begin", "end", "cancel")))
@wait
def reload(config: Path, table: str, step: str, seconds: float | None) -> None:
    """Reload TABLE without showing the load to readers before it is complete.

    Between `begin` and `end`, the load and all changes wait, and readers see the old rows. `end` applies them, deletes
    the rows that were not in the load, and publishes the result in one commit. `cancel` applies the waiting events as
    if the reload had never begun.
    """
    _ask(config, "reload", table, step, seconds)


@click.command()
@config_option
@click.argument("table")
@click.argument("key", type=click.File())
@wait
def erase(config: Path, table: str, key: TextIO, seconds: float | None) -> None:
    """Erase a row of TABLE, its earlier versions and its stored events.

    KEY is a file with the row's key columns as a JSON object, or - for standard input. The key itself is not
    stored. Delete the row at the source first: later changes to it are applied again.
    """
    from spark_sink.operations.erase import parse_key

    shape = opened(configured(config)).shape(table)
    if shape is None:
        raise FatalError(f"table {table!r} does not exist")
    argument = msgspec.json.encode(parse_key(key.read(), shape)).decode()
    _ask(config, "erase", table, argument, seconds)


@click.command()
@config_option
@click.argument("table")
@click.option(
    "--from", "source", required=True, help="Source table that will own the table, written as source/db/schema/table."
)
@wait
def adopt(config: Path, table: str, source: str, seconds: float | None) -> None:
    """Assign TABLE to another source table, whose rows replace existing rows with the same key."""
    from spark_sink.operations.actions import parse_source

    parse_source(source)
    _ask(config, "adopt", table, source, seconds)


@click.command()
@config_option
@click.argument("table")
@click.option("--before", required=True, help="A time with its UTC offset, an epoch such as 0003, or a position.")
@wait
def sweep(config: Path, table: str, before: str, seconds: float | None) -> None:
    """Delete the rows of TABLE that a reload did not contain."""
    from spark_sink.operations.sweep import parse_before

    parse_before(before)
    _ask(config, "sweep", table, before, seconds)


@click.command()
@config_option
@click.argument("table", required=False)
@click.option("--dry-run", is_flag=True, help="Show what the command would do, but do not do it.")
@wait
def maintain(config: Path, table: str | None, dry_run: bool, seconds: float | None) -> None:
    """Compact, checkpoint and vacuum TABLE, or all tables."""
    if not dry_run:
        _ask(config, "maintain", table, None, seconds)
        return
    loaded = configured(config)
    from spark_sink.control_tables.batches import ControlTables
    from spark_sink.metrics import Metrics
    from spark_sink.operations.maintenance import Maintenance
    from spark_sink.tables.formats import FormatMaintenance

    warehouse = loaded.tables.warehouse
    control = ControlTables(warehouse, loaded.pipeline, "", loaded.input.topic)
    files = FormatMaintenance(opened(loaded), None)
    maintenance = Maintenance(files, control, loaded.maintenance.rules, Metrics(0))
    if table is not None:
        _check_name(loaded, table)
    for name, step in maintenance.planned([table] if table is not None else maintenance.tables()):
        click.echo(f"{name}\t{step.step}\t{step.why}")


@click.command()
@config_option
@click.argument("table", required=False)
@wait
def register(config: Path, table: str | None, seconds: float | None) -> None:
    """Register TABLE, or all tables, in the configured catalog, and replace their views.

    The sink does this automatically for new and changed tables. `SELECT * FROM` a registered mirror returns the rows of
    the source.
    """
    _ask(config, "register", table, None, seconds)


def _check_name(loaded: settings.Settings, table: str) -> None:
    from spark_sink.operations import status

    status.check_name(opened(loaded), loaded.pipeline, loaded.tables.pattern, table)


def _ask(path: Path, command: str, table: str | None, argument: str | None, seconds: float | None) -> None:
    loaded = _configured_sink(path)
    from spark_sink.operations.maintenance import ALL_TABLES

    if table is not None:
        _check_name(loaded, table)
    _queue(loaded, command, table or ALL_TABLES, argument, seconds)


def _configured_sink(path: Path) -> settings.Settings:
    """Return the configuration of the sink that will execute the commands."""
    loaded = configured(path)
    # Imported here because help and configuration errors need no table library.
    from spark_sink.control_tables.requests import RequestTable

    RequestTable(loaded.tables.warehouse, loaded.pipeline).check()
    return loaded


def _queue(loaded: settings.Settings, command: str, table: str, argument: str | None, seconds: float | None) -> None:
    from spark_sink.control_tables.requests import RequestTable, State

    control_table = RequestTable(loaded.tables.warehouse, loaded.pipeline)
    id = control_table.ask(command, table, argument)
    if seconds is None:
        click.echo(f"queued as {id}: the sink will execute it between two batches, or when it next starts")
        return
    deadline = time.monotonic() + seconds
    while True:
        request = next(request for request in control_table.requests() if request.id == id)
        if request.state == State.FAILED:
            raise FatalError(f"{command} {table}: {request.error}")
        if request.ended:
            click.echo(request.result)
            return
        if time.monotonic() > deadline:
            raise FatalError(f"{command} {table}: {request.state} after {seconds:g} s; it stays in the queue as {id}")
        time.sleep(_LOOK_SECONDS)
