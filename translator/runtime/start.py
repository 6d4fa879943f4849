"""Everything that is ready before Faust starts, so that data flows only when the catalog is loaded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from importlib.metadata import version as installed_version
from typing import Any

import structlog
from confluent_kafka import Producer
from msgspec import Struct

from translator import dialects
from translator.catalog import Catalog
from translator.codecs import Codec
from translator.codecs import build as build_codec
from translator.codecs.avro import HEADER, confluent_header
from translator.envelope import schema_text
from translator.errors import ConfigError
from translator.message import Learned, Message, Setup
from translator.runtime import connection
from translator.runtime.contradictions import PREFIX, Contradictions
from translator.runtime.delivery import Delivery, producer_config
from translator.runtime.metrics import Metrics
from translator.runtime.pipeline import Destination, Output, Pipeline, Route, Target
from translator.runtime.registry import SchemaRegistry, value_subject
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
    contradictions: Contradictions
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


def build_codecs(settings: Settings, avro_header: Callable[[str], bytes] = lambda _: HEADER) -> dict[str, Codec]:
    """One codec per topic of events, by topic; the canonical one first.

    Args:
        avro_header: gives what the Avro values of a topic begin with; asked only for topics that hold some.

    Raises:
        ConfigError: a codec or one of its options is not valid.
    """
    output = settings.output
    projections = [(projection.topic, projection.codec, projection.options) for projection in settings.projections]
    wanted: list[tuple[str, str, Mapping[str, Any]]] = [(output.topic, output.codec, {}), *projections]
    codecs = {}
    for topic, name, options in wanted:
        try:
            codecs[topic] = build_codec(name, options, partial(avro_header, topic))
        except ConfigError as error:
            raise ConfigError(f"topic {topic}: {error}") from None
    return codecs


def _avro_header(settings: Settings, topic: str) -> bytes:
    """Names the schema of the topic's values: by its id in the registry; without one, by its fingerprint.

    The id is asked for once. It is in every value from then on, so a registry that goes away later is not missed.
    """
    if settings.registry is None:
        return HEADER
    registry = SchemaRegistry(settings.registry)
    subject = value_subject(topic)
    schema_id = registry.wait_for_id(subject, schema_text(), settings.timing.broker_wait, log.warning)
    log.info("schema id of the registry", subject=subject, id=schema_id)
    return confluent_header(schema_id)


def prepare(settings: Settings) -> World:
    """Waits for registry and brokers, checks or creates topics, and reads the compacted topics to their end.

    Raises:
        ConfigError: options of a dialect or a codec are wrong, or topics are missing.
        RetryableError: no registry or no broker answered in time.
        ContradictionError: an earlier process met one, and the declaration is still the same.
    """
    version = installed_version("cdc-translator")
    catalog = Catalog()
    translators = build_translators(settings, catalog)
    codecs = build_codecs(settings, partial(_avro_header, settings))
    client = connection.librdkafka(settings.kafka)
    topics = Topics(client)
    topics.wait_for_broker(settings.timing.broker_wait, log.warning)
    topics.ensure(settings)
    facts = topics.describe([*settings.raw_topics, *settings.written_topics])
    limits = topics.max_message_bytes(settings.written_topics)
    metrics = Metrics(version)
    producer = Producer(producer_config(client, settings.timing.delivery, limits.values()))
    delivery = Delivery(producer, metrics.account)
    output = settings.output
    compacted = (output.schemas_topic, output.metadata_topic)
    reader = Reader(client, {name: facts[name] for name in compacted})
    contradictions = Contradictions(settings.sources)
    for record in reader.to_end():
        take_in(record, output.schemas_topic, catalog, translators, contradictions)
    for source in settings.sources:
        _learn_ahead(source, translators[source.name], client, facts, catalog)
    routes = {
        topic: Route(translators[source.name], facts[topic].id, positive_murmur2(topic))
        for source in settings.sources
        for topic in source.topics
    }
    destinations = {name: Destination(name, facts[name].partitions, limits[name]) for name in settings.written_topics}
    target = Target(
        outputs=tuple(Output(codec, destinations[topic]) for topic, codec in codecs.items()),
        dead_letters=destinations[output.dead_letter_topic],
        schemas=destinations[output.schemas_topic],
        metadata=destinations[output.metadata_topic],
        version=version,
    )
    pipeline = Pipeline(routes, target, catalog, delivery, contradictions, settings.timing.metadata_wait)
    return World(settings, catalog, translators, contradictions, reader, delivery, metrics, pipeline)


def take_in(
    record: Any,
    schemas_topic: str,
    catalog: Catalog,
    translators: Mapping[str, Translator],
    contradictions: Contradictions,
) -> None:
    """One record of a compacted topic.

    Raises:
        ContradictionError: it marks one that stands.
    """
    key = (record.key() or b"").decode()
    if record.value() is None:
        return
    if record.topic() == schemas_topic:
        catalog.announced(key)
        return
    if key.startswith(PREFIX):
        contradictions.check(key, record.value())
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
