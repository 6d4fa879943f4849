"""Learn the metadata messages of a backlog before the service reads it. It uses no consumer group and writes no
events.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping

from msgspec import Struct, field

from translator.codecs.record import record_size
from translator.config.settings import Settings
from translator.errors import ConfigError, ErrorCode, MessageError, unknown
from translator.kafka import client_config
from translator.kafka.admin import TopicAdmin
from translator.kafka.offset_ranges import messages_of
from translator.kafka.producer import RecordProducer, producer_config
from translator.kafka.subscription import resolve
from translator.kafka.topic_reader import TopicReader
from translator.message import Learning, Message, Versioned
from translator.resolution.builders import build_translators
from translator.service.delivery.at_least_once import confirm_all
from translator.state.metadata_loader import load_document
from translator.state.metadata_topic import document_record
from translator.state.state_reader import StateReader
from translator.translation.metadata_catalog import MetadataCatalog, Named
from translator.translation.translate import Translator


class LearnedMetadata(Struct, frozen=True):
    """The newest metadata for a key, after all records were read. `known`: the metadata topic already contained it."""

    key: str
    subject: str
    version: str
    known: bool


class LearnReport(Struct):
    """The result for a source: counts, and the metadata that its topics contained."""

    source: str
    topics: list[str]
    records: int = 0
    messages: int = 0
    """Metadata messages among the records."""
    refused: int = 0
    """Metadata messages that the service turns into dead letters. They are rejected, or too large for the metadata
    topic.
    """
    lessons: list[LearnedMetadata] = field(default_factory=list)


def learn(settings: Settings, only: Collection[str], say: Callable[[str], None]) -> list[LearnReport]:
    """Read all topics of the sources from beginning to end, and write the metadata that the topics contain.

    Args:
        only: the names of the sources. If there are none, every source that has metadata messages is read.

    Raises:
        ConfigError: a source or topic does not exist, or a source has no metadata messages.
        RetryableError: no broker responded in time.
        FatalError: something could not be read or written.
    """
    catalog = MetadataCatalog(
        lambda source, key: say(f"source {source}: conflicting metadata {key}, keeping the newest")
    )
    translators = _learning(settings, build_translators(settings, catalog), only)
    client = client_config.librdkafka(settings.kafka)
    topics = TopicAdmin(client)
    topics.wait_for_broker(settings.timing.broker_wait, say)
    topics.ensure(settings)
    subscribed, doubtful = resolve(settings, topics.names())
    if doubtful:
        raise ConfigError("; ".join(doubtful))
    name = settings.output.metadata_topic
    limits = topics.max_message_bytes([name])
    written = _written(StateReader(client, topics.describe([name])), catalog, translators)
    reports = []
    for translator in translators.values():
        mine = [topic for topic, source in subscribed.items() if source.name == translator.source]
        backlog = LearnReport(translator.source, mine)
        if mine:
            say(f"reading {', '.join(mine)}")
            keys = _read(backlog, messages_of(client, topics.describe(mine)), translator, catalog, limits[name])
            backlog.lessons = [_lesson(translator.source, key, catalog, written) for key in sorted(keys)]
        reports.append(backlog)
    producer = RecordProducer.from_config(producer_config(client, settings.timing.delivery, limits.values()))
    fresh = [(backlog.source, lesson.key) for backlog in reports for lesson in backlog.lessons if not lesson.known]
    asyncio.run(confirm_all(producer, name, [document_record(*named, catalog.document(*named)) for named in fresh]))
    return reports


def _learning(settings: Settings, all_: Mapping[str, Translator], only: Collection[str]) -> dict[str, Translator]:
    for name in only:
        if name not in all_:
            raise ConfigError(unknown("source", name, all_))
        if not isinstance(all_[name].dialect, Learning):
            raise ConfigError(f"source {name}: dialect {all_[name].dialect.name} has no metadata messages")
    return {
        source.name: all_[source.name]
        for source in settings.sources
        if isinstance(all_[source.name].dialect, Learning) and (not only or source.name in only)
    }


def _written(
    reader: TopicReader, catalog: MetadataCatalog, translators: Mapping[str, Translator]
) -> dict[Named, bytes]:
    """Load these sources' documents from the metadata topic into the catalog, by key."""
    written: dict[Named, bytes] = {}
    for record in reader.to_end():
        if loaded := load_document(record, translators, catalog):
            written[loaded.source, loaded.key] = loaded.document
    reader.close()
    return written


def _read(
    backlog: LearnReport, messages: Iterable[Message], translator: Translator, catalog: MetadataCatalog, limit: int
) -> set[str]:
    """Return the keys of all metadata in a source's topics."""
    keys = set()
    for message in messages:
        backlog.records += 1
        learned = translator.lesson(message)
        if learned is None:
            continue
        backlog.messages += 1
        try:
            if record_size(document_record(translator.source, learned.key, learned.document)) > limit:
                raise MessageError(ErrorCode.TOO_LARGE, "metadata")
            catalog.register(translator, learned.key, learned.document)
            keys.add(learned.key)
        except MessageError:
            backlog.refused += 1
    return keys


def _lesson(source: str, key: str, catalog: MetadataCatalog, written: Mapping[Named, bytes]) -> LearnedMetadata:
    found = catalog.lookup(source)(key)
    subject, version = (found.subject, str(found.version[0])) if isinstance(found, Versioned) else ("", "")
    return LearnedMetadata(key, subject, version, written.get((source, key)) == catalog.document(source, key))
