"""`spark-sink checksums`: print the SQL that computes checksums of a table at its source."""

from __future__ import annotations

import re
from pathlib import Path

import click

from spark_sink.commands.configuration import config_option, configured, opened
from spark_sink.config.source_database import DatabaseType
from spark_sink.errors import ConfigError


@click.command()
@config_option
@click.argument("table")
@click.option(
    "--for",
    "database",
    type=click.Choice([one.value for one in DatabaseType]),
    required=True,
    help="Type of the source database.",
)
@click.option("--skip", multiple=True, metavar="COLUMN", help="Leave this source column out of the checksums.")
@click.option("--create", is_flag=True, help="Instead, print the statement that creates the table for the checksums.")
@click.option("--row", metavar="HASH", help="Instead, print a query that finds the row with this key hash.")
def checksums(config: Path, table: str, database: str, skip: tuple[str, ...], create: bool, row: str | None) -> None:
    """Print the SQL job that computes checksums of TABLE, a mirror, at its source.

    Run the job in the source database, in the table's schema or database. It inserts the checksums into the table
    `cdc_checksums`. Once they have been replicated, compare them with `spark-sink verify --against checksums`.
    """
    if create and row is not None:
        raise ConfigError("--create cannot be combined with --row")
    if row is not None and not re.fullmatch("[0-9a-f]{1,32}", row):
        raise ConfigError(f"--row: expected up to 32 hexadecimal digits in lower case, but got {row!r}")
    from spark_sink.commands.verify_source import mirror
    from spark_sink.events.shared_tables import SEVERAL
    from spark_sink.operations import checksum_job, status
    from spark_sink.operations.digest_sql import DigestSql
    from spark_sink.operations.verify_source import compared_columns

    loaded = configured(config)
    tables = opened(loaded)
    status.check_name(tables, loaded.pipeline, loaded.tables.pattern, table)
    found, type = mirror(tables, table), DatabaseType(database)
    source = found.shape.table
    if source.source == SEVERAL:
        raise ConfigError(f"{table} is shared by several source tables (tables.shared), so it has no checksums")
    expected = checksum_job.ExpectedColumns(found.shape, DigestSql(type, source))
    columns, left_out = compared_columns(found.shape, expected, skip)
    if create:
        sql = checksum_job.creation(type, source)
    elif row is not None:
        sql = checksum_job.row_query(type, source, columns, row)
    else:
        sql = checksum_job.job(type, source, columns, found.live_keys().total())
        for name, why in left_out.items():
            click.echo(f"column not compared: {name}: {why}", err=True)
    click.echo(sql, nl=False)
