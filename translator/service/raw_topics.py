"""Add raw topics. The metadata in the metadata topics is learned before the data is read."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from msgspec import Struct

from translator.config.setting_types import Start
from translator.config.settings import Settings, Source
from translator.errors import MessageError
from translator.kafka.admin import TopicFacts
from translator.kafka.offset_ranges import messages_of
from translator.kafka.subscription import Subscribed, metadata_topics
from translator.message import Message
from translator.service.components import Components
from translator.service.pipeline import Route
from translator.service.start_offsets import AddedTopic


class TopicPreview(Struct, frozen=True):
    """Facts and metadata for raw topics, collected before the topics are read."""

    facts: dict[str, TopicFacts]
    metadata: dict[str, list[Message]]  # by source


def preview_topics(components: Components, subscribed: Subscribed) -> TopicPreview:
    """Query raw topics, and read their metadata topics to the end. This changes nothing, so it can run in a thread.

    Raises:
        ConfigError: a topic does not exist.
    """
    facts = components.topics.describe(subscribed)
    metadata = {}
    for source in components.settings.sources:
        if names := metadata_topics(source, _of(source, subscribed)):
            metadata[source.name] = list(messages_of(components.client, {name: facts[name] for name in names}))
    return TopicPreview(facts, metadata)


def add_topics(
    components: Components, subscribed: Subscribed, preview: TopicPreview, start_of: Callable[[Source], Start]
) -> None:
    """Prepare raw topics for reading: learn the metadata in their metadata topics before their data is read.

    The group also reads these metadata messages, accounts for them, and publishes them to the other processes.
    """
    for source in components.settings.sources:
        translator = components.translators[source.name]
        for message in preview.metadata.get(source.name, ()):
            if learned := translator.lesson(message):
                with suppress(MessageError):  # the dead letter is written when the group reads the message
                    components.catalog.register(translator, learned.key, learned.document)
        for topic in _of(source, subscribed):
            facts = preview.facts[topic]
            components.pipeline.add(topic, Route(translator, facts.id))
            components.positions.add(topic, AddedTopic(source.name, facts, start_of(source)))
            if components.lineage is not None:
                components.lineage.topic_added(topic, source.name)
    components.subscribed.update(subscribed)
    components.metrics.topics.set(len(components.subscribed))


def configured_start(settings: Settings, source: Source) -> Start:
    """Return the start position for a source's topics that exist when the process starts."""
    return settings.start if source.start is None else source.start


def _of(source: Source, subscribed: Subscribed) -> list[str]:
    return [topic for topic, owner in subscribed.items() if owner.name == source.name]
