"""Everything that is ready before Faust starts, so that data flows only when the catalog is loaded."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from importlib.metadata import version as installed_version
from typing import Any

import structlog
from confluent_kafka.admin import AclOperation
from msgspec import Struct

from cdc_core.envelope import schema_text
from translator import dialects
from translator.codecs import Codec
from translator.codecs import build as build_codec
from translator.codecs.avro import HEADER, confluent_header
from translator.errors import ConfigError, MessageError
from translator.kafka import client_config
from translator.kafka.offset_ranges import messages_of
from translator.kafka.producer import producer_config
from translator.kafka.schema_registry import SchemaRegistry, value_subject
from translator.kafka.subscription import Subscribed, metadata_topics, subscribe
from translator.kafka.topics import TopicAdmin, TopicFacts, TopicReader
from translator.kafka.transactional_producer import TransactionalProducer, transactional_config
from translator.message import Message, Setup
from translator.service.delivery.at_least_once import open_delivery
from translator.service.delivery.base import Delivery
from translator.service.delivery.exactly_once import ExactlyOnceDelivery
from translator.service.metadata_wait import FetchSchema, MetadataWaiter
from translator.service.metrics import Metrics
from translator.service.pipeline import Pipeline, Route, Target
from translator.service.resolve import EventOutput, Outputs, OutputTopic
from translator.service.start_offsets import AddedTopic, StartOffsets, offset_lookup_timeout
from translator.settings import Settings, Source, Start
from translator.state.contradiction_marks import PREFIX, Contradictions
from translator.state.hold_journal import TopicJournal
from translator.state.metadata_topic import document_of, document_record
from translator.state.table_holds import Holds
from translator.translation.metadata_catalog import MetadataCatalog, Named
from translator.translation.source_order import NativeOrder
from translator.translation.translate import Translator

# At least, of opening transactions: the broker ends one of a process before us first, if there is one.
_OPEN_SECONDS = 30.0

log = structlog.get_logger("translator")


class Components(Struct):
    """What the running service is made of."""

    settings: Settings
    client: Mapping[str, Any]  # connection settings
    topics: TopicAdmin
    subscribed: Subscribed
    catalog: MetadataCatalog
    translators: dict[str, Translator]  # by source
    contradictions: Contradictions
    positions: StartOffsets
    reader: TopicReader
    delivery: Delivery
    metrics: Metrics
    waiter: MetadataWaiter
    pipeline: Pipeline
    outdated: set[Named]
    """Metadata whose last record in the metadata topic is not the newest document; it is to be written again."""
    target: Target
    holds: Holds
    journal: TopicJournal

    @property
    def transactions(self) -> ExactlyOnceDelivery | None:
        """The delivery, where it writes transactions."""
        return self.delivery if isinstance(self.delivery, ExactlyOnceDelivery) else None


def build_translators(settings: Settings, catalog: MetadataCatalog) -> dict[str, Translator]:
    """One translator per source.

    Raises:
        ConfigError: a dialect or one of its options is not valid.
    """
    return {source.name: _translator(source, settings, catalog) for source in settings.sources}


def _translator(source: Source, settings: Settings, catalog: MetadataCatalog) -> Translator:
    limits = settings.limits.limits()
    tables = tuple(table.declared() for table in source.tables)
    setup = Setup(source.name, limits, tables, catalog.lookup(source.name))
    dialect = dialects.build(source.dialect, setup, source.options)
    order = NativeOrder(source.name, dialect, source.epochs, source.task) if source.order == "native" else None
    return Translator(source.name, dialect, limits, order)


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


def avro_header(settings: Settings, topic: str) -> bytes:
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


def prepare(settings: Settings, *, accept_gap: bool = False) -> Components:
    """The world of the service: `connect`, and the raw topics that are there.

    Args:
        accept_gap: see `start_offsets.StartOffsets`.

    Raises:
        ConfigError: as `connect`, or two sources claim one topic, or our user may not read as that group.
        RetryableError: as `connect`, or there is no topic to read.
        ContradictionError: as `connect`.
    """
    components = connect(settings, accept_gap=accept_gap, transactional=settings.delivery == "exactly_once")
    components.topics.check_group(settings.group)
    subscribed = subscribe(settings, components.topics.names, log.warning)
    add_topics(components, subscribed, preview_topics(components, subscribed), partial(configured_start, settings))
    if components.transactions is not None:
        components.transactions.open(max(settings.timing.broker_wait, _OPEN_SECONDS))
    return components


def connect(settings: Settings, *, accept_gap: bool = False, transactional: bool = False) -> Components:
    """Waits for registry and brokers, checks or creates topics, and reads the compacted topics to their end.

    The world that it gives reads no raw topic.

    Raises:
        ConfigError: options of a dialect or a codec are wrong, or topics are missing.
        RetryableError: no registry or no broker answered in time.
        ContradictionError: an earlier process met one, and the declaration is still the same.
    """
    version = installed_version("cdc-translator")
    metrics = Metrics(version, settings.metrics.tables, settings.digest)
    catalog = MetadataCatalog(partial(_say_conflict, metrics))
    translators = build_translators(settings, catalog)
    codecs = build_codecs(settings, partial(avro_header, settings))
    client = client_config.librdkafka(settings.kafka)
    topics = TopicAdmin(client)
    topics.wait_for_broker(settings.timing.broker_wait, log.warning)
    topics.ensure(settings)
    facts = topics.describe(settings.written_topics, AclOperation.WRITE)
    limits = topics.max_message_bytes(settings.written_topics)
    delivery: Delivery = open_delivery(
        client, limits.values(), metrics.account, settings.bounds, settings.timing.delivery
    )
    if transactional:
        # In a transaction the producer may give a record up: nothing of what is behind it will ever be seen.
        config = producer_config(client, settings.timing.delivery, limits.values(), settings.bounds)
        delivery = _transactions(settings, config, delivery, metrics, lambda topic: positions.note(topic))
    output = settings.output
    compacted = (output.schemas_topic, output.metadata_topic)
    reader = TopicReader(client, {name: facts[name] for name in compacted})
    contradictions = Contradictions(settings.sources)
    destinations = {name: OutputTopic(name, facts[name].partitions, limits[name]) for name in settings.written_topics}
    target = Target(
        outputs=Outputs(
            events=tuple(EventOutput(codec, destinations[topic]) for topic, codec in codecs.items()),
            schemas=destinations[output.schemas_topic],
            metadata=destinations[output.metadata_topic],
        ),
        dead_letters=destinations[output.dead_letter_topic],
        version=version,
        stops=settings.codes("stop"),
        holds=settings.codes("hold_table"),
    )
    waiter = MetadataWaiter(catalog, settings.timing.metadata_wait, fetch_schema(settings), log.warning)
    confirm = partial(delivery.confirm, output.metadata_topic)
    letters = output.dead_letter_topic
    journal = TopicJournal(topics, output.metadata_topic, letters, facts[letters].id, confirm)
    holds = Holds(journal)
    pipeline = Pipeline({}, target, catalog, delivery, contradictions, waiter, holds)
    patience = offset_lookup_timeout(settings)
    positions = StartOffsets(topics, settings.group, metrics, confirm, accept_gap=accept_gap, patience=patience)
    components = Components(
        *(settings, client, topics, {}, catalog, translators, contradictions, positions, reader, delivery, metrics),
        waiter,
        pipeline,
        set(),
        target,
        holds,
        journal,
    )
    for record in reader.to_end():
        apply_state_record(components, record, fresh=False)
    journal.follow(reader.next_offset(output.metadata_topic, 0))
    return components


def _transactions(
    settings: Settings, config: Mapping[str, Any], outside: Delivery, metrics: Metrics, note: Callable[[str], str]
) -> ExactlyOnceDelivery:
    seconds = settings.timing.delivery
    name = transactional_id(settings)
    log.info("transactions", transactional_id=name)
    config = transactional_config(config, name, seconds, reports=bool(settings.codes("hold_table")))
    return ExactlyOnceDelivery(
        TransactionalProducer.from_config(config),
        outside,
        metrics.account,
        note,
        metrics.transactions.observe,
        seconds,
        settings.bounds,
    )


def transactional_id(settings: Settings) -> str:
    """A name that no other running process has, and that the next process in this place has again.

    So the next one ends at once what a killed one left open. What keeps processes apart on a host is the port of the
    probes.
    """
    return f"{settings.group}-{socket.gethostname()}-{settings.web.port}"


class Ahead(Struct, frozen=True):
    """What is known of raw topics before they are read."""

    facts: dict[str, TopicFacts]
    metadata: dict[str, list[Message]]  # by source


def preview_topics(components: Components, subscribed: Subscribed) -> Ahead:
    """Asks about raw topics and reads their metadata topics to the end. It changes nothing, so that a thread may do it.

    Raises:
        ConfigError: one does not exist.
    """
    facts = components.topics.describe(subscribed)
    metadata = {}
    for source in components.settings.sources:
        if names := metadata_topics(source, _of(source, subscribed)):
            metadata[source.name] = list(messages_of(components.client, {name: facts[name] for name in names}))
    return Ahead(facts, metadata)


def add_topics(
    components: Components, subscribed: Subscribed, ahead: Ahead, start_of: Callable[[Source], Start]
) -> None:
    """Makes raw topics ready to be read: what their metadata topics hold is learned before their data flows.

    The group reads these metadata messages as well, accounts for them and tells the other processes.
    """
    for source in components.settings.sources:
        translator = components.translators[source.name]
        for message in ahead.metadata.get(source.name, ()):
            if learned := translator.lesson(message):
                with suppress(MessageError):  # its dead letter is written when the group reads it
                    components.catalog.register(translator, learned.key, learned.document)
        for topic in _of(source, subscribed):
            facts = ahead.facts[topic]
            components.pipeline.add(topic, Route(translator, facts.id))
            components.positions.add(topic, AddedTopic(source.name, facts, start_of(source)))
    components.subscribed.update(subscribed)
    components.metrics.topics.set(len(components.subscribed))


def configured_start(settings: Settings, source: Source) -> Start:
    """Where the topics of a source begin that are there when the process starts."""
    return settings.start if source.start is None else source.start


def _of(source: Source, subscribed: Subscribed) -> list[str]:
    return [topic for topic, owner in subscribed.items() if owner.name == source.name]


def _say_conflict(metrics: Metrics, source: str, key: str) -> None:
    metrics.conflicts.labels(source).inc()
    log.warning("metadata of one id disagree; the newest stands", source=source, id=key)


def fetch_schema(settings: Settings) -> FetchSchema | None:
    """What asks the registry for the schemas of writers; None without a registry."""
    if settings.registry is None:
        return None
    return partial(SchemaRegistry(settings.registry).schema_text, limit=settings.limits.schema_text_bytes)


def follow(components: Components, records: Iterable[Any]) -> None:
    """Takes in what came of the compacted topics since the start, to where the reader is.

    Raises:
        ContradictionError: a record marks one that stands.
    """
    for record in records:
        apply_state_record(components, record, fresh=True)
    components.journal.follow(components.reader.next_offset(components.settings.output.metadata_topic, 0))


def apply_state_record(components: Components, record: Any, *, fresh: bool) -> None:
    """One record of a compacted topic.

    Args:
        fresh: it came since the start.

    Raises:
        ContradictionError: it marks one that stands.
    """
    key = (record.key() or b"").decode()
    if components.holds.apply_state_record(key, record.value(), fresh=fresh) or record.value() is None:
        return
    if record.topic() == components.settings.output.schemas_topic:
        components.catalog.announced(key)
        return
    if key.startswith(PREFIX):
        components.contradictions.check(key, record.value())
        return
    found = document_of(record, components.translators)
    if found is not None:  # a source that is no longer configured leaves its metadata behind
        source, learned_key, document = found
        try:
            newest = components.catalog.register(components.translators[source], learned_key, document)
        except MessageError as error:  # an earlier release took it; the messages that need it say so
            components.catalog.refuse(source, learned_key, error)
            log.warning("metadata refused", source=source, id=learned_key, reason=error.reason)
            return
        (components.outdated.discard if newest else components.outdated.add)((source, learned_key))


async def restore(components: Components) -> None:
    """Writes newest documents that the metadata topic would forget: of a key, compaction keeps the last record.

    Two processes that learn two documents of one id at the same time may write them in either order.
    """
    for source, key in sorted(components.outdated):
        record = document_record(source, key, components.catalog.document(source, key))
        await components.delivery.confirm(components.settings.output.metadata_topic, record)
        components.outdated.discard((source, key))
