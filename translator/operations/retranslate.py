"""Translate a range of a raw topic again, into a separate topic. The bytes are those that the service would write, but
the service's topics do not change.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import Any

from confluent_kafka import KafkaError
from msgspec import Struct

from cdc_core.envelope import ChangeEvent
from translator.codecs.record import Record
from translator.config.setting_types import matches
from translator.config.settings import Projection
from translator.errors import ConfigError, FatalError
from translator.kafka.offset_ranges import Partitions, message_of, narrowed, places_of
from translator.kafka.producer import RecordProducer, producer_config, write_failure
from translator.message import Learned, Message, Skip
from translator.operations.offline_translator import OfflineTranslator
from translator.resolution.resolve import OutputTopic, Translation
from translator.translation.dead_letter import DeadLetter
from translator.translation.partition_guards import Guards

Say = Callable[[str], None]
Bury = Callable[[Message, DeadLetter], None]


class Selection(Struct, frozen=True):
    """The selected events from a range of raw records, and the topic that they are written to."""

    topic: str
    partition: int
    first: int
    end: int
    output: str
    table: str | None = None
    """A pattern for `db.schema.table`, as in the header `cdc-table`. None selects all events."""

    def takes(self, event: ChangeEvent) -> bool:
        name = ".".join(level for level in (event.db, event.schema, event.table) if level)
        return self.table is None or fnmatchcase(name, self.table)


def retranslate(again: OfflineTranslator, wanted: Selection, say: Say, bury: Bury) -> Counter[str]:
    """Write the events of a range to the separate topic, and return the account.

    Args:
        bury: called for each message that cannot be translated, or whose records do not fit the topic.

    Raises:
        ConfigError: a topic or range does not exist, or the service reads or writes the topic.
        ContradictionError: the service would stop at this message. The events of earlier messages are written.
        FatalError: something could not be read or written.
    """
    translator = again.translator(wanted.topic)
    (place,) = places_of(wanted.topic, again.facts(wanted.topic), wanted.partition)
    _make(again, wanted.output)
    sizes = again.topics.max_message_bytes([wanted.output, again.settings.output.topic])
    to = OutputTopic(wanted.output, again.facts(wanted.output).partitions, min(sizes.values()))
    resolver = again.resolver(to)
    writer = _Writer(again, wanted, to)
    guards = Guards(translator.dialect, say)
    partitions = Partitions(again.client, again.settings.group)
    counts: Counter[str] = Counter()
    try:
        range_ = narrowed(partitions.bounds(*place), wanted.first, wanted.end)
        for record in partitions.read(range_):
            message = message_of(record, again.facts(wanted.topic).id)
            translation = again.translate(message, resolver)
            guards.inspect(message, translation.read)
            counts["records"] += 1
            records = _wanted(wanted, translation)
            writer.write(records)
            counts["events"] += len(records)
            counts[_word(translation.outcome)] += 1
            if isinstance(translation.outcome, DeadLetter):
                bury(message, translation.outcome)
    finally:
        partitions.close()
        writer.flush()
    return counts


def _wanted(selection: Selection, translation: Translation) -> list[Record]:
    """Return the selected events' records."""
    if translation.events is None:
        return []
    records = translation.by_event
    events = enumerate(translation.events.events)
    return [records[n] for n, event in events if n in records and selection.takes(event)]


def _make(again: OfflineTranslator, output: str) -> None:
    """Create or check the topic just like the service's own topics."""
    settings = again.settings
    if settings.writes(output):
        raise ConfigError(f"the service writes to topic {output}; choose another topic for --output")
    if any(matches(output, entry) for entry in settings.raw_topics):
        raise ConfigError(f"a source reads topic {output}; choose another topic for --output")
    beside = Projection(topic=output, codec=settings.output.codec)
    again.topics.ensure(settings.model_copy(update={"projections": (beside,)}))


def _word(outcome: object) -> str:
    return next((word for kind, word in _WORDS if isinstance(outcome, kind)), "translated")


_WORDS: tuple[tuple[type, str], ...] = ((DeadLetter, "dead"), (Skip, "skipped"), (Learned, "learned"))


class _Writer:
    """The separate topic. The partitions are assigned by the same rule as in the canonical topic."""

    def __init__(self, again: OfflineTranslator, wanted: Selection, to: OutputTopic) -> None:
        self._topic = to.topic
        self._partition = again.partition_in(to.topic, wanted.topic, wanted.partition)
        self._failure: str | None = None
        config = producer_config(again.client, again.settings.timing.delivery, [to.max_bytes])
        self._producer = RecordProducer.from_config(config)

    def write(self, records: list[Record]) -> None:
        for record in records:
            while not self._producer.offer(self._topic, self._partition, record, self._report):
                self._producer.poll(0.1)
            self._producer.poll()
        self._check()

    def _report(self, error: KafkaError | None, _message: Any) -> None:
        if error is not None and self._failure is None:
            self._failure = write_failure(self._topic, error)

    def _check(self) -> None:
        if self._failure is not None:
            raise FatalError(self._failure)

    def flush(self) -> None:
        """Return once everything has been delivered."""
        if self._producer.flush():
            raise FatalError(f"cannot write to {self._topic}: a record was not delivered")
        self._check()
