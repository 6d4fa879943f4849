"""`translator capture`: save a topic's raw records as a record file for `translator translate`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import click

from translator.commands.configuration import config_option
from translator.commands.output import say
from translator.commands.record_file import record_line
from translator.config import settings as settings_module
from translator.config.setting_types import matches
from translator.config.settings import Settings
from translator.dialects import check_maskable
from translator.errors import ConfigError, FatalError, Unmaskable
from translator.message import Message


@click.command()
@config_option
@click.option("--count", type=click.IntRange(1), required=True, help="Maximum number of records.")
@click.option(
    "--partition",
    type=click.IntRange(0),
    help="Read only this partition. By default, all partitions are read one after another.",
)
@click.option(
    "--from", "first", type=click.IntRange(0), help="First offset to read. Defaults to the beginning of the partition."
)
@click.option(
    "--mask", is_flag=True, help="Replace the values of rows and keys with fictitious values in the same format."
)
@click.argument("topic")
def capture(config: Path, count: int, partition: int | None, first: int | None, mask: bool, topic: str) -> None:
    """Write records of a topic to standard output as a record file. The file contains row data unless you use --mask.

    The command reads the records that exist now, and does not wait for more. It does not join a consumer group. With
    --mask, the command translates each record and its masked copy. The results may differ only in values. Records for
    which no such copy can be made are skipped, and the exit code is then 1.
    """
    if first is not None and partition is None:
        raise ConfigError("--from requires --partition, because an offset is valid only within one partition")
    settings = settings_module.load(config)
    for source in settings.sources:
        if source.name in settings.masked_sources and any(matches(topic, entry) for entry in source.topics):
            raise ConfigError(
                f"records of topic {topic} cannot be captured, because its source {source.name} has masks and "
                "masks.messages: leave_out"
            )
    # Imported here so that help and `translator translate` start without Kafka clients.
    from translator.kafka.offset_ranges import records_of

    taken = left_out = 0
    copy = _masking(settings, topic, say) if mask else None
    try:
        for message in records_of(settings, topic, partition, first, None, count, say):
            taken += 1
            try:
                line = record_line(message if copy is None else copy(message))
            except Unmaskable as error:
                left_out += 1
                say(f"{topic}/{message.partition} offset {message.offset} has no masked copy: {error}")
                continue
            sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise  # a reader such as `head` closed the pipe; click exits silently
    except OSError as error:
        raise FatalError(f"cannot write to standard output: {error.strerror}") from None
    if copy is None:
        click.echo(f"records={taken}", err=True)
        return
    click.echo(f"records={taken} masked={taken - left_out} left_out={left_out}", err=True)
    if left_out:
        sys.exit(1)


def _masking(settings: Settings, topic: str, say: Callable[[str], None]) -> Callable[[Message], Message]:
    """Return the function that makes masked copies of a topic's records."""
    from translator.operations.masked_copy import RecordMasker
    from translator.operations.offline_translator import OfflineTranslator

    translator = OfflineTranslator(settings, say)
    dialect = translator.translator(topic).dialect
    check_maskable(dialect)
    return partial(RecordMasker(translator.translate).copy, dialect=dialect)
