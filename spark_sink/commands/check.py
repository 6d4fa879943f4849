"""`spark-sink check`: report what `run` would reject."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from spark_sink.commands.configuration import config_option, configured
from spark_sink.errors import FatalError


@click.command()
@config_option
@click.option("--connect", is_flag=True, help="Also check the brokers, Java, the stores and the tables.")
def check(config: Path, connect: bool) -> None:
    """Check a configuration file and, with --connect, everything else that `run` needs.

    Each check prints one line.
    """
    loaded = configured(config)
    loaded.kafka.spark_options()  # also reads the files to which the configuration refers
    click.echo(f"ok     settings: {config}")
    if not connect:
        return
    # Imported here because help and configuration errors need no Spark.
    from spark_sink.operations import checks
    from spark_sink.spark import session as spark_session

    java = partial(spark_session.check_java, loaded.spark, loaded.store, iceberg=loaded.has_iceberg)
    asked = checks.questions(loaded, java)
    wrong = 0
    for answer in checks.answers(asked):
        wrong += answer.state == "WRONG"
        click.echo(f"{answer.state:<5}  {answer.subject}: {answer.text}")
    if wrong:
        raise FatalError(f"{wrong} of {len(asked)} checks failed; `spark-sink run` requires all of them to pass")
