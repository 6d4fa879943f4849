"""`translator explain`: what the service makes of one raw record, and why."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cdc_core.envelope import ChangeEvent
from translator import settings as settings_module
from translator.codecs.json import JsonCodec
from translator.commands.configuration import config_option
from translator.commands.dlq_preview import preview, size_alone
from translator.errors import ConfigError
from translator.message import Learned, Message, Skip
from translator.translation.dead_letter import DeadLetter
from translator.translation.translate import Events, Translator

if TYPE_CHECKING:  # at run time below: help and `translator translate` start without Kafka clients
    from translator.service.resolve import Translation

_EVENT_FACTS = (
    *("id", "op", "variant", "variant_basis", "dbms", "server", "task", "pos", "pos_scope", "pos_native"),
    *("key_kind", "before_state", "after_state", "changed", "unavailable", "schema_id", "notes"),
)
"""The fields of an event that are printed: nothing out of a row."""


@click.command()
@config_option
@click.option("--values", is_flag=True, help="Print the events whole, as JSON; they hold row data.")
@click.argument("topic")
@click.argument("partition", type=click.IntRange(0))
@click.argument("offset", type=click.IntRange(0))
def explain(config: Path, values: bool, topic: str, partition: int, offset: int) -> None:
    """Say how one raw record is read: its form, its events with the decisions in them, or why there are none.

    It is translated now, with this configuration and what the service has learned; the topics written are not asked
    (`audit` does). A message that Canal's continuity check or native order would judge by others is read alone.
    """
    settings = settings_module.load(config)
    from translator.kafka.offset_ranges import records_of
    from translator.operations.offline_translator import OfflineTranslator

    def say(text: str) -> None:
        click.echo(f"translator: {text}", err=True)

    again = OfflineTranslator(settings, say)
    try:
        source = again.translator(topic)
        message = next(records_of(settings, topic, partition, offset, offset + 1, 1, say), None)
        if message is None:
            raise ConfigError(f"no record at {topic}/{partition}, offset {offset}: compacted, or part of a transaction")
        translation = again.translate(message)
    finally:
        again.close()
    for line in _record(message, source):
        click.echo(line)
    for line in _outcome(translation, values=values):
        click.echo(line)


def _record(message: Message, translator: Translator) -> Iterator[str]:
    yield f"record: {message.topic}/{message.partition} offset {message.offset}, timestamp {message.timestamp_ms}"
    yield f"source: {translator.source} ({translator.dialect.name})"
    yield f"key: {'none' if message.key is None else f'{len(message.key)} bytes'}"
    yield f"headers: {', '.join(name for name, _ in message.headers) or 'none'}"
    value, *members = preview(message.value) if translator.shows_messages else [size_alone(message.value)]
    yield f"value: {value}"
    yield from members


def _outcome(translation: Translation, *, values: bool) -> Iterator[str]:
    match translation.outcome:
        case DeadLetter(code=code, reason=reason):
            yield f"outcome: dead letter {code}: {reason}"
        case Skip(reason=reason):
            yield f"outcome: skipped, {reason}"
        case Learned(key=key):
            yield f"outcome: learned, metadata {key}"
        case Events(events=events):
            yield f"outcome: translated, {len(events)} events"
    if translation.events is None:
        return
    records = translation.by_event
    for n, event in enumerate(translation.events.events):
        size = f"{len(records[n].value or b'')} bytes" if n in records else "of a table that the topic does not get"
        yield f"event {n}: {event.kind} {_table(event)}, {size}"
        for name, fact in _facts(event):
            yield f"  {name}: {fact}"
        if values:
            (whole,) = JsonCodec().encode(event)
            yield f"  {(whole.value or b'').decode()}"


def _table(event: ChangeEvent) -> str:
    return ".".join(part for part in (event.db, event.schema, event.table) if part) or "of no table"


def _facts(event: ChangeEvent) -> Iterator[tuple[str, str]]:
    for name in _EVENT_FACTS:
        fact: Any = getattr(event, name)
        if fact is not None:
            yield name, fact if isinstance(fact, str) else json.dumps(fact, ensure_ascii=False)
    for image in ("before", "after"):
        text: str | None = getattr(event, image)
        if text is not None:
            yield f"{image} columns", ", ".join(json.loads(text))
    for issue in event.issues or ():
        yield "issue", f"{issue.col} {issue.code}"
