"""Write one message to a raw topic and show how the running service translates it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from confluent_kafka import KafkaError
from confluent_kafka.admin import AclOperation
from msgspec import Struct

from translator.codecs.record import Record
from translator.config.settings import Settings
from translator.errors import ConfigError, FatalError, RetryableError
from translator.kafka import client_config
from translator.kafka.admin import TopicAdmin
from translator.kafka.offset_ranges import Partitions, Range
from translator.kafka.producer import RecordProducer, producer_config, write_failure
from translator.kafka.subscription import resolve
from translator.operations.record_origin import RecordOrigin, of_event, of_letter

_PAUSE = 0.2
_ANY = -1
"""Partition number that lets the producer choose."""


class Sent(Struct):
    """The result for the message, which is either events or a dead letter. It contains no row data."""

    topic: str
    partition: int
    offset: int
    seconds: float
    """Time from the broker's acknowledgement of the message until its result was read."""
    events: list[str] = []
    """The event ids."""
    dead: str | None = None
    """The dead letter's code."""


def send(settings: Settings, topic: str, value: bytes, seconds: float, say: Callable[[str], None]) -> Sent:
    """Write a message and wait for the service's output.

    Args:
        seconds: maximum time to wait.

    Raises:
        ConfigError: no source reads the topic, or the topic does not exist.
        FatalError: the message cannot be written, or the result cannot be read.
        RetryableError: no broker responds, or no result arrives in time.
    """
    client = client_config.librdkafka(settings.kafka)
    topics = TopicAdmin(client)
    topics.wait_for_broker(settings.timing.broker_wait, say)
    subscribed, _ = resolve(settings, topics.names())
    if topic not in subscribed:
        known = ", ".join(sorted(subscribed)) or "none"
        raise ConfigError(f"no source reads topic {topic}; the raw topics of this configuration are {known}")
    topics.describe([topic], AclOperation.WRITE)
    written = {settings.output.topic: of_event, settings.output.dead_letter_topic: of_letter}
    partitions = Partitions(client, settings.group)
    try:
        places = [
            (name, number) for name, facts in topics.describe(written).items() for number in range(facts.partitions)
        ]
        ahead = {place: partitions.bounds(*place).end for place in places}
        sent = _write(client, topics, settings.timing.delivery, topic, value)
        say(f"written to {sent.topic}/{sent.partition}, offset {sent.offset}")
        started = time.monotonic()
        while (took := time.monotonic() - started) < seconds:
            for place, first in ahead.items():
                for record in partitions.read(Range(*place, first, partitions.bounds(*place).end)):
                    ahead[place] = record.offset() + 1
                    _take(sent, written[place[0]](record))
            if sent.events or sent.dead is not None:
                sent.seconds = round(took, 3)
                return sent
            time.sleep(_PAUSE)
    finally:
        partitions.close()
    raise RetryableError(
        f"no event or dead letter for {sent.topic}/{sent.partition}, offset {sent.offset}, appeared within "
        f"{seconds:g} s. Either the service is not running or it lags (see translator status), or the message "
        f"produces neither (see translator explain {sent.topic} {sent.partition} {sent.offset})"
    )


def _write(client: Any, topics: TopicAdmin, delivery: float, topic: str, value: bytes) -> Sent:
    reports: list[tuple[KafkaError | None, Any]] = []
    config = producer_config(client, delivery, topics.max_message_bytes([topic]).values())
    producer = RecordProducer.from_config(config)
    producer.offer(topic, _ANY, Record(None, value, []), lambda error, record: reports.append((error, record)))
    producer.flush()
    ((error, record),) = reports
    if error is not None:
        raise FatalError(write_failure(topic, error))
    return Sent(topic, record.partition(), record.offset(), 0.0)


def _take(sent: Sent, origin: RecordOrigin | None) -> None:
    if origin is None or (origin.topic, origin.partition, origin.offset) != (sent.topic, sent.partition, sent.offset):
        return
    if origin.n is None:
        sent.dead = sent.dead or origin.content.decode()
    else:
        sent.events.append(f"{origin.source}/{origin.topic}/{origin.partition}/{origin.offset}/{origin.n}")
