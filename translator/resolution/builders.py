"""Create what a translation needs from the settings: translators, masks, codecs, and data from the registry."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import structlog

from cdc_core.envelope import schema_text
from translator import dialects
from translator.codecs import Codec, Framing
from translator.codecs import build as build_codec
from translator.codecs.avro import HEADER, confluent_header
from translator.codecs.filtered import FilteredCodec
from translator.codecs.registered import SchemaIds, TableSchemas, TopicOf, unknown_id
from translator.config.settings import Projection, Settings, Source
from translator.errors import ConfigError
from translator.message import Setup
from translator.translation.masking import SourceMasks
from translator.translation.metadata_catalog import MetadataCatalog
from translator.translation.source_order import NativeOrder
from translator.translation.translate import Translator

if TYPE_CHECKING:
    from translator.kafka.registered_schemas import RegisteredSchemas

log = structlog.get_logger("translator")

FetchSchema = Callable[[int], str | None]
"""Returns the Avro schema with an id, or None if the registry does not know the id (`SchemaRegistry.schema_text`)."""


def _nobody(text: str) -> None:
    return None


def build_translators(
    settings: Settings, catalog: MetadataCatalog, warn: Callable[[str], object] = _nobody
) -> dict[str, Translator]:
    """Create one translator per source.

    Args:
        warn: called with a warning for each masked key.

    Raises:
        ConfigError: invalid dialects, options or masks. The error lists all mistakes.
    """
    built: dict[str, Translator] = {}
    wrong: list[tuple[tuple[int | str, ...], ConfigError]] = []
    for number, source in enumerate(settings.sources):
        try:
            built[source.name] = _translator(source, settings, catalog, warn)
        except ConfigError as error:
            wrong.append((("sources", number, _field_at_fault(source.dialect)), error))
    settings.refuse(wrong)
    return built


def _field_at_fault(dialect: str) -> str:
    """Return the setting that contains the mistake. It is `dialect` if no options would make the dialect work."""
    try:
        dialects.plugin_of(dialect)
    except ConfigError:
        return "dialect"
    return "options"


def _translator(
    source: Source, settings: Settings, catalog: MetadataCatalog, warn: Callable[[str], object]
) -> Translator:
    limits = settings.limits.limits()
    tables = tuple(table.declared() for table in source.tables)
    setup = Setup(source.name, limits, tables, catalog.lookup(source.name))
    dialect = dialects.build(source.dialect, setup, source.options)
    dialects.check_declared(dialect, source.options)
    dialects.check_time(dialect, settings.timing.stuck)
    order = NativeOrder(source.name, dialect, source.epochs, source.task) if source.order == "native" else None
    masks = build_masks(source, settings, warn)
    if masks is not None:
        for table in tables:
            masks.check_declared(table)
    return Translator(source.name, dialect, limits, order, masks)


def build_masks(source: Source, settings: Settings, warn: Callable[[str], object] = _nobody) -> SourceMasks | None:
    """Return a source's masks, or None if no rule applies to it.

    Raises:
        ConfigError: one of the source's rules is invalid.
    """
    given = settings.masks
    rules = given.rules_of(source.name)
    if not rules:
        return None
    key = None if given.key is None else given.key.get_secret_value().encode()
    return SourceMasks(source.name, rules, key, keeps_messages=given.messages == "keep", warn=warn)


def build_codecs(
    settings: Settings,
    avro_header: Callable[[str], bytes] = lambda _: HEADER,
    ids: SchemaIds = unknown_id,
) -> dict[str, Codec]:
    """Create the codec for each event topic, keyed by topic, with the canonical topic first.

    Args:
        avro_header: returns the header for the Avro values of a topic. It is called only for topics with Avro.
        ids: returns the ids of table schemas, for projections that use such ids; called only when events are encoded.

    Raises:
        ConfigError: an invalid codec or codec option.
    """
    output = settings.output
    canonical = Projection(topic=output.topic, codec=output.codec, include=output.include, exclude=output.exclude)
    wanted = [canonical, *settings.projections]
    codecs: dict[str, Codec] = {}
    wrong: list[tuple[tuple[int | str, ...], ConfigError]] = []
    for number, projection in enumerate(wanted, -1):
        topic, choice = projection.topic, projection.tables
        try:
            tables = None if settings.registry is None else TableSchemas(ids, _topic_of(projection))
            framing = Framing(partial(avro_header, topic), tables, routed=projection.template is not None)
            codec = build_codec(projection.codec, projection.options, framing)
        except ConfigError as error:
            place = ("output",) if number < 0 else ("projections", number)
            wrong.append((place, ConfigError(f"topic {topic}: {error}")))
            continue
        codecs[topic] = codec if choice is None else FilteredCodec(codec, choice)
    settings.refuse(wrong)
    return codecs


def _topic_of(projection: Projection) -> TopicOf:
    template, topic = projection.template, projection.topic
    if template is None:
        return lambda event: topic
    return lambda event: template.topic(event.source, event.db, event.schema, event.table)


def registered_schemas(settings: Settings) -> RegisteredSchemas | None:
    """Return the registered table schemas, or None without a registry."""
    if settings.registry is None:
        return None
    from translator.kafka.registered_schemas import RegisteredSchemas  # see `fetch_schema`
    from translator.kafka.schema_registry import SchemaRegistry

    return RegisteredSchemas(SchemaRegistry(settings.registry))


def ids_of(schemas: RegisteredSchemas | None) -> SchemaIds:
    """Return the function with which codecs look up ids."""
    return unknown_id if schemas is None else schemas.id_of


def avro_header(settings: Settings, topic: str) -> bytes:
    """Return the header that identifies the schema of a topic's values. It contains the registry id or, without a
    registry, the fingerprint.

    The id is requested once and is then part of every value. A later outage of the registry therefore has no effect.
    """
    if settings.registry is None:
        return HEADER
    from translator.kafka.schema_registry import SchemaRegistry, value_subject  # see `fetch_schema`

    registry = SchemaRegistry(settings.registry)
    subject = value_subject(topic)
    schema_id = registry.wait_for_id(subject, schema_text(), settings.timing.broker_wait, log.warning)
    log.info("schema id received from the registry", subject=subject, id=schema_id)
    return confluent_header(schema_id)


def fetch_schema(settings: Settings) -> FetchSchema | None:
    """Return the function that requests writers' schemas from the registry, or None without a registry."""
    if settings.registry is None:
        return None
    # Imported here because importing the registry's client takes a third of a second, and most services have no
    # registry.
    from translator.kafka.schema_registry import SchemaRegistry

    return partial(SchemaRegistry(settings.registry).schema_text, limit=settings.limits.schema_text_bytes)
