"""`translator explain`: show how the service translates one raw record, and why."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import click

from cdc_core.command_line import json_option
from translator.commands.configuration import config_option
from translator.commands.output import say
from translator.config import settings as settings_module
from translator.errors import ConfigError
from translator.message import Message
from translator.operations.duration import instant
from translator.operations.message_preview import preview, size_alone
from translator.operations.terminal_text import shown
from translator.translation.translate import Translator


@click.command()
@config_option
@click.option("--values", is_flag=True, help="Print the complete events as JSON. They contain row data.")
@json_option
@click.argument("topic")
@click.argument("partition", type=click.IntRange(0))
@click.argument("offset", type=click.IntRange(0))
def explain(config: Path, values: bool, as_json: bool, topic: str, partition: int, offset: int) -> None:
    """Explain how one raw record is interpreted: its format, its events, and the decisions behind them.

    The record is translated now, with this configuration and the metadata that the service has learned. The command
    does not read the output topics. Use `audit` for that. Canal's continuity check and native order compare messages
    with each other. This command looks at only one record.
    """
    settings = settings_module.load(config)
    from translator.kafka.offset_ranges import records_of
    from translator.operations.explanation import outcome_facts, outcome_lines
    from translator.operations.offline_translator import OfflineTranslator

    with closing(OfflineTranslator(settings, say)) as again:
        source = again.translator(topic)
        message = next(records_of(settings, topic, partition, offset, offset + 1, 1, say), None)
        if message is None:
            raise ConfigError(
                f"there is no record at {topic}/{partition}, offset {offset}. It was compacted away, or it is a "
                "transaction marker or an aborted record"
            )
        translation = again.translate(message)
    if as_json:
        click.echo(json.dumps({**_facts(message, source), **outcome_facts(translation, values=values)}))
        return
    for line in (*_record(message, source), *outcome_lines(translation, values=values)):
        click.echo(shown(line))


def _facts(message: Message, translator: Translator) -> dict[str, Any]:
    """Print the parts of the record. The row appears only as lengths."""
    return {
        "record": {
            "topic": message.topic,
            "partition": message.partition,
            "offset": message.offset,
            "timestamp": message.timestamp_ms,
        },
        "source": translator.source,
        "dialect": translator.dialect.name,
        "key_bytes": None if message.key is None else len(message.key),
        "headers": [name for name, _ in message.headers],
        "layout": preview(message.value) if translator.shows_messages else [size_alone(message.value)],
    }


def _record(message: Message, translator: Translator) -> Iterator[str]:
    yield f"record: {message.topic}/{message.partition} offset {message.offset}, {instant(message.timestamp_ms)}"
    yield f"source: {translator.source} ({translator.dialect.name})"
    yield f"key: {'none' if message.key is None else f'{len(message.key)} bytes'}"
    yield f"headers: {', '.join(name for name, _ in message.headers) or 'none'}"
    value, *members = preview(message.value) if translator.shows_messages else [size_alone(message.value)]
    yield f"value: {value}"
    yield from members
