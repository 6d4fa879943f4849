"""Prepare everything before Faust starts. Data is then read only after the catalog is loaded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import structlog
from confluent_kafka.admin import AclOperation

from cdc_core.state_format import release
from translator.codecs import Codec
from translator.config.settings import Settings
from translator.dialects import plugins_among
from translator.errors import ErrorCode
from translator.kafka import client_config
from translator.kafka.admin import TopicAdmin
from translator.kafka.producer import producer_config
from translator.kafka.subscription import Subscribed, subscribe
from translator.kafka.table_topics import TableTopics
from translator.resolution.builders import (
    avro_header,
    build_codecs,
    build_translators,
    fetch_schema,
    ids_of,
    registered_schemas,
)
from translator.resolution.resolve import EventOutput, Outputs, OutputTopic
from translator.resolution.routes import Routes
from translator.service.assembly import build_native_paths, build_table_topics, open_transactions
from translator.service.components import Components
from translator.service.delivery.at_least_once import open_delivery
from translator.service.delivery.base import Delivery
from translator.service.lag import lag_of
from translator.service.lineage import lineage_of
from translator.service.metadata_wait import MetadataWaiter
from translator.service.metrics import BatchAccount, Metrics
from translator.service.pipeline import Pipeline, Target
from translator.service.raw_topics import add_topics, configured_start, preview_topics
from translator.service.start_offsets import StartOffsets, offset_lookup_timeout
from translator.service.state_follower import apply_state_record
from translator.service.summary import Summary
from translator.state.contradiction_marks import Contradictions
from translator.state.hold_journal import TopicJournal
from translator.state.state_reader import StateReader
from translator.state.table_holds import Holds
from translator.translation.metadata_catalog import MetadataCatalog

# Minimum time for opening transactions: the broker first ends an earlier process's transaction, if one is open.
_OPEN_SECONDS = 30.0

log = structlog.get_logger("translator")


def prepare(settings: Settings, *, accept_gap: bool = False) -> Components:
    """Connect, and add the existing raw topics.

    Args:
        accept_gap: see `start_offsets.StartOffsets`.

    Raises:
        ConfigError: as for `connect`. It also raises this if two sources claim one topic, or if this user may not read
            with the group.
        RetryableError: a service that `connect` needs does not respond, or no topic can be read.
    """
    transactional = settings.delivery == "exactly_once"
    components = connect(settings, accept_gap=accept_gap, transactional=transactional, reports_lineage=True)
    components.topics.check_group(settings.group)
    subscribed = subscribe(settings, components.topics.names, log.warning)
    add_topics(components, subscribed, preview_topics(components, subscribed), partial(configured_start, settings))
    if components.transactions is not None:
        components.transactions.open(max(settings.timing.broker_wait, _OPEN_SECONDS))
    return components


def connect(
    settings: Settings, *, accept_gap: bool = False, transactional: bool = False, reports_lineage: bool = False
) -> Components:
    """Wait for the registry and the brokers, check or create topics, and read the compacted topics completely.

    The returned components do not read raw topics yet.

    Raises:
        ConfigError: a dialect's or codec's options are invalid, or topics are missing.
        RetryableError: no registry or no broker responded in time.
    """
    version = release()
    plugins = ", ".join(map(str, plugins_among(source.dialect for source in settings.sources)))
    metrics = Metrics(version, settings.metrics.tables, settings.digest, plugins)
    catalog = MetadataCatalog(partial(_say_conflict, metrics))
    translators = build_translators(settings, catalog, log.warning)
    schemas = registered_schemas(settings)
    codecs = build_codecs(settings, partial(avro_header, settings), ids_of(schemas))
    client = client_config.librdkafka(settings.kafka)
    topics = TopicAdmin(client)
    topics.wait_for_broker(settings.timing.broker_wait, log.warning)
    topics.ensure(settings)
    facts = topics.describe(settings.written_topics, AclOperation.WRITE)
    limits = topics.max_message_bytes(settings.written_topics)
    table_topics = build_table_topics(settings, topics, limits[settings.output.topic])
    limits |= {template: found.max_bytes for template, found in table_topics.items()}
    subscribed: Subscribed = {}
    lag = lag_of(client, topics, settings.group, metrics, lambda topic: subscribed[topic].name)
    summary = Summary()
    lineage = lineage_of(settings, metrics) if reports_lineage else None
    takers = (metrics.account, lag.acknowledged, summary.add)
    account = _to_each(*takers, *(() if lineage is None else (lineage.acknowledged,)))
    seconds, linger = settings.timing.delivery, settings.latency.linger_ms
    delivery: Delivery = open_delivery(client, limits.values(), account, settings.bounds, seconds, linger)
    if transactional:
        # In a transaction, the producer may drop a record, because the records after it never become visible.
        config = producer_config(client, seconds, limits.values(), settings.bounds, linger)
        delivery = open_transactions(
            settings, config, delivery, account, metrics.transactions.observe, lambda topic: positions.note(topic)
        )
    output = settings.output
    to = {name: OutputTopic(name, facts[name].partitions, limits[name]) for name in facts}
    target = _target(settings, version, codecs, to, table_topics)
    compacted = {name: facts[name] for name in (output.schemas_topic, output.metadata_topic)}
    reader = StateReader(client, compacted, follows=True)
    contradictions = Contradictions(settings.sources)
    native = build_native_paths(settings, translators, target.outputs, metrics)
    register = None if schemas is None else schemas.register
    waiter = MetadataWaiter(catalog, settings.timing.metadata_wait, fetch_schema(settings), log.warning, register)
    confirm = partial(delivery.confirm, output.metadata_topic)
    letters = output.dead_letter_topic
    journal = TopicJournal(topics, output.metadata_topic, letters, facts[letters].id, confirm)
    holds = Holds(journal)
    patience = offset_lookup_timeout(settings)
    positions = StartOffsets(topics, settings.group, metrics, confirm, accept_gap=accept_gap, patience=patience)
    components = Components(
        settings=settings,
        client=client,
        topics=topics,
        subscribed=subscribed,
        catalog=catalog,
        translators=translators,
        contradictions=contradictions,
        positions=positions,
        reader=reader,
        delivery=delivery,
        metrics=metrics,
        waiter=waiter,
        pipeline=Pipeline(
            {}, target, catalog, delivery, contradictions, waiter, holds, native, on_stop=metrics.tell_stop
        ),
        outdated=set(),
        target=target,
        holds=holds,
        journal=journal,
        lag=lag,
        summary=summary,
        lineage=lineage,
    )
    for record in reader.to_end():
        apply_state_record(components, record, fresh=False)
    journal.follow(reader.next_offset(output.metadata_topic, 0))
    return components


def _to_each(*takers: Callable[[BatchAccount], None]) -> Callable[[BatchAccount], None]:
    def account(batch: BatchAccount) -> None:
        for take in takers:
            take(batch)

    return account


def _target(
    settings: Settings,
    version: str,
    codecs: Mapping[str, Codec],
    topics: Mapping[str, OutputTopic],
    table_topics: Mapping[str, TableTopics],
) -> Target:
    output = settings.output

    def event_output(topic: str, codec: Codec) -> EventOutput:
        found = table_topics.get(topic)
        if found is None:
            return EventOutput(codec, topics[topic])
        to = OutputTopic(topic, found.partitions, found.max_bytes)
        return EventOutput(codec, to, Routes(found.template, found.open, settings.limits.topics))

    return Target(
        outputs=Outputs(
            events=tuple(event_output(topic, codec) for topic, codec in codecs.items()),
            schemas=topics[output.schemas_topic],
            metadata=topics[output.metadata_topic],
        ),
        dead_letters=topics[output.dead_letter_topic],
        version=version,
        stops=settings.codes("stop"),
        holds=settings.codes("hold_table"),
        holds_contradictions=ErrorCode.CONTRADICTION in settings.codes("hold_table"),
    )


def _say_conflict(metrics: Metrics, source: str, key: str) -> None:
    metrics.conflicts.labels(source).inc()
    log.warning("conflicting metadata, keeping the newest", source=source, id=key)
