"""`translator capture`: raw records of a topic as a record file, which `translator translate` reads."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from translator import settings as settings_module
from translator.commands.configuration import config_option
from translator.commands.record_file import record_line
from translator.errors import ConfigError, FatalError
from translator.setting_types import matches


@click.command()
@config_option
@click.option("--count", type=click.IntRange(1), required=True, help="How many records, at most.")
@click.option("--partition", type=click.IntRange(0), help="Only this partition; default: one after the other.")
@click.option("--from", "first", type=click.IntRange(0), help="First offset; default: the first there is.")
@click.argument("topic")
def capture(config: Path, count: int, partition: int | None, first: int | None, topic: str) -> None:
    """Write records of a topic to standard output as a record file; it holds row data.

    It takes what is there and does not wait for more; it joins no group.
    """
    if first is not None and partition is None:
        raise ConfigError("--from needs --partition: offsets are those of one partition")
    settings = settings_module.load(config)
    for source in settings.sources:
        if source.name in settings.masked_sources and any(matches(topic, entry) for entry in source.topics):
            raise ConfigError(
                f"topic {topic} is of source {source.name}, which has masks, and masks.messages says leave_out: its"
                " records are not copied"
            )
    # Here, not above: help and `translator translate` start without Kafka clients.
    from translator.kafka.offset_ranges import records_of

    def say(text: str) -> None:
        click.echo(f"translator: {text}", err=True)

    taken = 0
    try:
        for message in records_of(settings, topic, partition, first, None, count, say):
            sys.stdout.buffer.write(record_line(message))
            taken += 1
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise  # a reader such as `head` had enough; click ends the program silently
    except OSError as error:
        raise FatalError(f"cannot write to standard output: {error.strerror}") from None
    click.echo(f"records={taken}", err=True)
