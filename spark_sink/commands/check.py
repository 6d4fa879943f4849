"""`spark-sink check`: report what `run` would reject."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from cdc_core import deprecations
from cdc_core.kafka_settings import tokens_of
from spark_sink.commands.configuration import config_option, configured
from spark_sink.errors import FatalError
from spark_sink.schema.reader_rules import Reader


@click.command()
@config_option
@click.option(
    "--readers",
    help="Readers to check, such as duckdb,trino@476. The command reports the tables that they cannot read.",
)
@click.option("--connect", is_flag=True, help="Also check the brokers, Java, the stores and the tables.")
@click.option(
    "--certify",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    metavar="FILE",
    help="With --connect: also write, read and drop a table, just as the sink does, and write a report to FILE.",
)
def check(config: Path, readers: str | None, connect: bool, certify: Path | None) -> None:
    """Check a configuration file and, with --connect, everything else that `run` needs.

    Each check prints one line.
    """
    if certify is not None and not connect:
        raise click.UsageError("--certify requires --connect")
    loaded = configured(config)
    loaded.kafka.spark_options()  # also reads the files to which the configuration refers
    tokens_of(loaded.kafka)
    click.echo(f"ok     settings: {config}")
    for warning in deprecations.deprecated_settings(loaded, deprecations.SPARK_SINK):
        click.echo(f"note   settings: {warning}")
    named = [Reader.parse(text) for text in readers.split(",")] if readers is not None else []
    if not (connect or named):
        return
    # Imported here because help and configuration errors need no Spark.
    from spark_sink.operations import checks
    from spark_sink.spark import session as spark_session

    java = partial(spark_session.check_java, loaded.spark, loaded.store, iceberg=loaded.has_iceberg)
    asked = [*(checks.questions(loaded, java) if connect else ()), *checks.reader_questions(loaded, named)]
    found = []

    def show(answer: checks.Answer) -> None:
        found.append(answer)
        click.echo(f"{answer.state:<5}  {answer.subject}: {answer.text}")

    for answer in checks.answers(asked):
        show(answer)
    if certify is not None:
        if any(one.state == "WRONG" and one.subject in checks.NEEDED_BY_SPARK for one in found):
            raise FatalError("nothing was certified, because checks that Spark needs have failed")
        from spark_sink.commands.certification import write_certificate

        write_certificate(loaded, certify, show)
    if wrong := sum(one.state == "WRONG" for one in found):
        raise FatalError(f"{wrong} of {len(found)} checks failed; `spark-sink run` requires all of them to pass")
