"""Translate raw records again just as the service does, for commands that check, repeat or explain.

The core, the options, the metadata and the registry are the same. No group is joined, and nothing is written to the
service's topics.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import cached_property, partial
from typing import Any

from msgspec.structs import replace

from translator.codecs import Codec
from translator.config.settings import Settings
from translator.errors import ConfigError, unknown
from translator.kafka import client_config
from translator.kafka.admin import TopicAdmin, TopicFacts
from translator.kafka.partitioner import output_partition
from translator.kafka.subscription import resolve
from translator.message import Message, Needs
from translator.resolution.builders import avro_header, build_codecs, build_translators, fetch_schema
from translator.resolution.resolve import EventOutput, Outputs, OutputTopic, Resolver, Translation
from translator.service.metadata_wait import MetadataWaiter
from translator.state.metadata_loader import load_document
from translator.state.state_reader import StateReader
from translator.translation.metadata_catalog import MetadataCatalog
from translator.translation.translate import Translator


class OfflineTranslator:
    """The service's translators, with everything that the service has learned.

    Args:
        say: called to report a wait, or conflicting metadata.

    Raises:
        ConfigError: options are invalid, topics are missing, or two sources claim one topic.
        RetryableError: no registry or no broker responded in time.
    """

    def __init__(self, settings: Settings, say: Callable[[str], None]) -> None:
        self.settings = settings = registering_nothing(settings)
        self.catalog = MetadataCatalog(
            lambda source, key: say(f"source {source}: conflicting metadata {key}, keeping the newest")
        )
        self._by_source = build_translators(settings, self.catalog)
        self.client: Mapping[str, Any] = client_config.librdkafka(settings.kafka)
        self.topics = TopicAdmin(self.client)
        self.topics.wait_for_broker(settings.timing.broker_wait, say)
        there = self.topics.names()
        subscribed, doubtful = resolve(settings, there)
        if doubtful:
            raise ConfigError("; ".join(doubtful))
        self.raw_topics = {topic: source.name for topic, source in subscribed.items()}
        alone = settings.model_copy(update={"projections": ()})
        self.codec: Codec = build_codecs(alone, partial(avro_header, settings))[settings.output.topic]
        self._facts: dict[str, TopicFacts] = {}
        # With 0 seconds, the registry is queried once for a schema that has not been learned yet. If the registry does
        # not respond, the schema is missing.
        self._waits = MetadataWaiter(self.catalog, 0, fetch_schema(settings), say)
        self._loop = asyncio.Runner()
        self._learn_all()

    @cached_property
    def _outputs(self) -> Outputs:
        """The canonical topic and the other outputs. The broker is asked about the outputs when the first message is
        translated, because they exist by then.
        """
        output = self.settings.output
        names = (output.topic, output.schemas_topic, output.metadata_topic)
        sizes = self.topics.max_message_bytes(names)
        canonical, schemas, metadata = (OutputTopic(name, self.facts(name).partitions, sizes[name]) for name in names)
        return Outputs((EventOutput(self.codec, canonical),), schemas, metadata)

    def _learn_all(self) -> None:
        """Read the metadata topic, to which the service writes everything it learns."""
        name = self.settings.output.metadata_topic
        reader = StateReader(self.client, {name: self.facts(name)})
        for record in reader.to_end():
            load_document(record, self._by_source, self.catalog)
        reader.close()

    def facts(self, topic: str) -> TopicFacts:
        """Return the broker's information about a topic. The broker is asked only once.

        Raises:
            ConfigError: the topic does not exist.
        """
        if topic not in self._facts:
            self._facts |= self.topics.describe([topic])
        return self._facts[topic]

    def translator(self, topic: str) -> Translator:
        """Return a raw topic's translator.

        Raises:
            ConfigError: no source reads the topic.
        """
        if topic not in self.raw_topics:
            raise ConfigError(unknown("raw topic", topic, self.raw_topics))
        return self._by_source[self.raw_topics[topic]]

    def partition_in(self, written: str, topic: str, partition: int) -> int:
        """Return a written topic's partition for everything from a raw partition (docs/design.md §4.3)."""
        return output_partition(topic, partition, self.facts(written).partitions)

    @cached_property
    def _resolver(self) -> Resolver:
        return Resolver(self._outputs, self.catalog)

    def resolver(self, to: OutputTopic) -> Resolver:
        """Return a resolver that writes the same format to another topic instead of the canonical one."""
        return Resolver(replace(self._outputs, events=(EventOutput(self.codec, to),)), self.catalog)

    def translate(self, message: Message, resolver: Resolver | None = None) -> Translation:
        """Resolve a message. Waits only for the registry."""
        resolver, translator = resolver or self._resolver, self.translator(message.topic)
        resolved = resolver.resolve(translator, message)
        if isinstance(resolved, Needs):  # an event loop per message would take as long as translating the message
            resolved = self._loop.run(self._waits.resolve(resolver, translator, message, resolved))
        for key in resolved.schemas:
            self.catalog.announced(key)  # no other processes have to be informed
        return resolved

    def close(self) -> None:
        self._loop.close()


def registering_nothing(settings: Settings) -> Settings:
    """Return the settings without registration. Ids are only looked up, because the service has already registered the
    schemas.
    """
    if settings.registry is None:
        return settings
    registry = settings.registry.model_copy(update={"auto_register": False})
    return settings.model_copy(update={"registry": registry})
