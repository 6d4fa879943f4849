"""`spark-sink status`, `batches`, `cut`, `view` and `quarantine ls`: show the state of the tables."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cdc_core.command_line import CommandGroup, json_option
from spark_sink.commands.configuration import config_option, configured, opened
from spark_sink.errors import Reason
from spark_sink.schema.business_view import ReaderEngine, create_view
from spark_sink.schema.table_spec import Format

if TYPE_CHECKING:
    from spark_sink.operations.status import TableStatus, VerificationStatus

_MOMENT = "%Y-%m-%d %H:%M:%S UTC"


@click.command()
@config_option
@json_option
def status(config: Path, as_json: bool) -> None:
    """Show all tables, the reason for each parked table, and the newest batch."""
    loaded = configured(config)
    from spark_sink.operations import status

    found = status.status(opened(loaded), loaded.pipeline, loaded.tables.pattern, loaded.tables.exclude)
    if as_json:
        click.echo(json.dumps(found, default=str))
        return
    last = found["last_batch"]
    newest = f"last batch {last['batch']}, ended {last['ended_at']:%Y-%m-%d %H:%M:%S} UTC" if last else "no batch yet"
    click.echo(f"{found['pipeline']}: {newest}")
    for table in found["tables"]:
        click.echo(_line(table))
    if found["no_table"]:
        click.echo(f"in quarantine, without a table: {_counts(found['no_table'])}")
    if found["excluded"]:
        click.echo(f"excluded by tables.exclude: {', '.join(found['excluded'])}")
    for table in found["tables"]:
        name, file = shlex.quote(table["table"]), shlex.quote(str(config))
        if table["parked"] == Reason.RELOAD:
            click.echo(f"once the load is complete, run: spark-sink reload {name} end -c {file}")
        elif table["parked"]:
            click.echo(f"once the cause is fixed, run: spark-sink resume {name} -c {file}")
    for command in found["open_commands"]:
        click.echo(f"open command: {command}")


def _line(table: TableStatus) -> str:
    parts = [table["table"], "no version" if table["version"] is None else f"version {table['version']}"]
    since = f"{table['since']:%Y-%m-%d %H:%M:%S} UTC" if table["parked"] else ""
    if table["parked"] == Reason.RELOAD:
        parts.append(f"reloading since {since}, {table['waiting']} events waiting")
    elif table["parked"]:
        parts.append(f"PARKED since {since}, {table['waiting']} events waiting: {table['parked']}: {table['detail']}")
    if table["beside"]:
        added = ", ".join(f"{name} for {source}" for name, source in table["beside"].items())
        parts.append(f"columns added with a suffix: {added}")
    if table["layout"]:
        parts.append(f"not in its configured layout: {'; '.join(table['layout'])}")
    if table["quarantined"]:
        parts.append(f"in quarantine: {_counts(table['quarantined'])}")
    parts += [_verified(against, found) for against, found in table["verified"].items()]
    return "  ".join(parts)


def _verified(against: str, found: VerificationStatus) -> str:
    through, conclusive = found["verified_through"], found["conclusive"]
    said = f"verified through {through:{_MOMENT}}" if through else "not verified"
    problems = []
    if conclusive and conclusive["differing"]:
        problems.append(f"on {conclusive['at']:{_MOMENT}}, {conclusive['differing']} rows differed")
    if found["differing"] is None:
        problems.append(f"on {found['at']:{_MOMENT}}, the comparison was inconclusive")
    if found["left_out"]:
        problems.append(f"on {found['at']:{_MOMENT}}, {found['left_out']} rows could not be compared")
    return f"{said} against {against}" + (f" ({'; '.join(problems)})" if problems else "")


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{reason} {count}" for reason, count in counts.items())


@click.command()
@config_option
@click.option(
    "--limit", default=20, show_default=True, type=click.IntRange(1), help="Number of batches to list, newest first."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line for each batch.")
def batches(config: Path, limit: int, as_json: bool) -> None:
    """List the newest batches, each with its end time, applied offsets and changed tables.

    A line without a batch number and without offsets shows that a resume or a sweep changed tables between two batches.
    """
    loaded = configured(config)
    from spark_sink.operations import status

    newest = status.newest_batches(loaded.tables.warehouse, loaded.pipeline, limit)
    if not newest:
        click.echo(f"{loaded.pipeline}: no batch yet", err=True)
    for found in newest:
        if as_json:
            click.echo(json.dumps(found, default=str))
            continue
        number = "between" if found["batch"] is None else f"batch {found['batch']}"
        offsets = ", ".join(f"{partition}: {begin} to {end}" for partition, (begin, end) in found["offsets"].items())
        tables = ", ".join(found["tables"]) or "no table"
        click.echo(f"{number}  {found['ended_at']:%Y-%m-%d %H:%M:%S} UTC  offsets {offsets or 'none'}  {tables}")


@click.command()
@config_option
@click.option("--batch", type=int, help="Print the cut that was valid after this batch. Defaults to the newest batch.")
@click.option("--checkpoint", help="ID of the batch's checkpoint. Defaults to the checkpoint of the newest batch.")
def cut(config: Path, batch: int | None, checkpoint: str | None) -> None:
    """Print a consistent cut as JSON, with the version of each table and the matching topic offsets."""
    loaded = configured(config)
    from spark_sink.operations import status

    keep_days = loaded.maintenance.keep_days
    found = status.cut(loaded.tables.warehouse, loaded.pipeline, loaded.input.topic, keep_days, batch, checkpoint)
    click.echo(json.dumps(found, default=str, indent=2))


@click.command()
@config_option
@click.argument("table")
@click.option(
    "--for",
    "engine",
    type=click.Choice([engine.value for engine in ReaderEngine]),
    default=ReaderEngine.SPARK.value,
    show_default=True,
    help="Query engine that you will use the view in.",
)
@click.option(
    "--name",
    help=(
        "Name of the view. Defaults to the view that the sink maintains, or to the table name with underscores in "
        "place of dots."
    ),
)
@click.option(
    "--from",
    "relation",
    help="Name under which the engine knows the table. Required for engines that cannot open a table by its folder.",
)
def view(config: Path, table: str, engine: str, name: str | None, relation: str | None) -> None:
    """Print the SQL for a view of TABLE that has only its source columns and its live rows.

    If catalog.views or tables.iceberg_catalog.views is set, the sink keeps this view in the catalog.
    """
    loaded = configured(config)
    from spark_sink.errors import ConfigError, Refused
    from spark_sink.operations import status
    from spark_sink.operations.registration import configured_views
    from spark_sink.tables.locations import location

    tables = opened(loaded)
    status.check_name(tables, loaded.pipeline, loaded.tables.pattern, table)
    try:
        shape = tables.shape(table)
    except Refused as error:
        raise ConfigError(f"{table}: {error}") from None
    if shape is None:
        raise ConfigError(
            f"table {table!r} does not exist yet, and its events are waiting; run `spark-sink status` to see why"
        )
    views = configured_views(loaded).get(tables.format(table))
    if views is not None and engine == ReaderEngine.SPARK and not (name or relation):
        click.echo(views.statement(table, shape, tables))
        return
    named = name or table.replace(".", "_")
    # No engine reliably finds an Iceberg table by its folder, because the engine would have to guess the newest
    # metadata file.
    folder = location(tables.warehouse, table) if tables.format(table) is Format.DELTA else None
    click.echo(create_view(ReaderEngine(engine), named, shape, folder, relation))


@click.group(cls=CommandGroup)
def quarantine() -> None:
    """Show events that could not be applied."""


@quarantine.command()
@config_option
@click.option("--table", help="Show only events for the table with this lakehouse name.")
@click.option("--reason", help="Show only events with this reason.")
@click.option("--limit", default=100, show_default=True, help="Maximum number of events.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line for each event.")
def ls(config: Path, table: str | None, reason: str | None, limit: int, as_json: bool) -> None:
    """List the events in quarantine, each with its reason, table, topic offset, ID and detail. No row data is
    printed.
    """
    loaded = configured(config)
    from spark_sink.errors import ConfigError, Reason, unknown
    from spark_sink.operations import status

    if reason is not None and reason not in list(Reason):
        raise ConfigError(unknown("reason", reason, Reason))
    found = [
        row
        for row in status.quarantined(loaded.tables.warehouse, loaded.tables.pattern)
        if table in (None, row["target"]) and reason in (None, row["reason"])
    ]
    found.sort(key=lambda row: (row["kafka_partition"], row["kafka_offset"]))
    for row in found[:limit]:
        if as_json:
            click.echo(json.dumps(row, default=str))
            continue
        place = f"{row['kafka_partition']}@{row['kafka_offset']}"
        click.echo("\t".join((row["reason"], row["target"] or "-", place, row["event_id"] or "-", row["detail"])))
    if not found:
        click.echo(
            "no event in quarantine matches the filter" if table or reason else "there are no events in quarantine",
            err=True,
        )
    if len(found) > limit:
        click.echo(f"{len(found) - limit} more", err=True)
