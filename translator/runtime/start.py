"""Everything that is ready before Faust starts, so that data flows only when the catalog is loaded."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version as installed_version
from typing import Any

import structlog
from confluent_kafka import Producer
from msgspec import Struct

from translator import dialects
from translator.catalog import Catalog
from translator.codecs import CODECS
from translator.message import Learned, Message, Setup
from translator.runtime import connection
from translator.runtime.delivery import Delivery, producer_config
from translator.runtime.metrics import Metrics
from translator.runtime.pipeline import Pipeline, Route, Target
from translator.runtime.topics import Reader, TopicFacts, Topics
from translator.runtime.transport import positive_murmur2
from translator.settings import Settings, Source
from translator.translate import Translator

log = structlog.get_logger("translator")


class World(Struct):
    """What the running service is made of."""

    settings: Settings
    catalog: Catalog
    translators: dict[str, Translator]  # by source
    reader: Reader
    delivery: Delivery
    metrics: Metrics
    pipeline: Pipeline


def build_translators(settings: Settings, catalog: Catalog) -> dict[str, Translator]:
    """One translator per source.

    Raises:
        ConfigError: a dialect or one of its options is not valid.
    """
    return {source.name: _translator(source, settings, catalog) for source in settings.sources}


def _translator(source: Source, settings: Settings, catalog: Catalog) -> Translator:
    limits = settings.limits.limits()
    tables = tuple(table.declared() for table in source.tables)
    setup = Setup(source.name, limits, tables, catalog.lookup(source.name))
    return Translator(source.name, dialects.build(source.dialect, setup, source.options), limits)


def prepare(settings: Settings) -> World:
    """Waits for the brokers, checks or creates topics, and reads the compacted topics to their end.

    Raises:
        ConfigError: dialect options are wrong, or topics are missing.
        RetryableError: no broker answered in time.
    """
    version = installed_version("cdc-translator")
    catalog = Catalog()
    translators = build_translators(settings, catalog)
    client = connection.librdkafka(settings.kafka)
    topics = Topics(client)
    topics.wait_for_broker(settings.timing.broker_wait, log.warning)
    topics.ensure(settings)
    output = settings.output
    ours = (output.topic, output.dead_letter_topic, output.schemas_topic, output.metadata_topic)
    facts = topics.describe([*settings.raw_topics, *ours])
    max_bytes = topics.max_message_bytes([output.topic, output.dead_letter_topic])
    metrics = Metrics(version)
    delivery = Delivery(Producer(producer_config(client, settings.timing.delivery, max_bytes)), metrics.account)
    compacted = (output.schemas_topic, output.metadata_topic)
    reader = Reader(client, {name: facts[name] for name in compacted})
    for record in reader.to_end():
        take_in(record, output.schemas_topic, catalog, translators)
    for source in settings.sources:
        _learn_ahead(source, translators[source.name], client, facts, catalog)
    routes = {
        topic: Route(translators[source.name], facts[topic].id, positive_murmur2(topic))
        for source in settings.sources
        for topic in source.topics
    }
    # A dead letter goes to the partition of the same number, so the smaller topic decides.
    partitions = min(facts[output.topic].partitions, facts[output.dead_letter_topic].partitions)
    target = Target(output, partitions, max_bytes, version)
    codec = CODECS[output.codec]()
    pipeline = Pipeline(routes, codec, target, catalog, delivery, settings.timing.metadata_wait)
    return World(settings, catalog, translators, reader, delivery, metrics, pipeline)


def take_in(record: Any, schemas_topic: str, catalog: Catalog, translators: Mapping[str, Translator]) -> None:
    """One record of a compacted topic."""
    key = (record.key() or b"").decode()
    if record.value() is None:
        return
    if record.topic() == schemas_topic:
        catalog.announced(key)
        return
    source, _, learned_key = key.partition("/")
    if source in translators:  # a source that is no longer configured leaves its metadata behind
        catalog.learn(source, learned_key, record.value(), translators[source].dialect)


def _learn_ahead(
    source: Source, translator: Translator, client: Mapping[str, Any], facts: Mapping[str, TopicFacts], catalog: Catalog
) -> None:
    """Learns what the raw metadata topics of a source hold now; the group reads and accounts for them as well."""
    if not source.metadata_topics:
        return
    reader = Reader(client, {name: facts[name] for name in source.metadata_topics})
    for record in reader.to_end():
        learned = translator.translate(_message(record))
        if isinstance(learned, Learned):
            catalog.learn(source.name, learned.key, learned.document, translator.dialect)
    reader.close()


def _message(record: Any) -> Message:
    return Message(record.topic(), record.partition(), record.offset(), 0, record.key(), record.value())
