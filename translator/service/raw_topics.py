"""Raw topics taken on: what their metadata topics hold is learned before their data flows."""

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
    """Facts and metadata of raw topics, gathered before they are read."""

    facts: dict[str, TopicFacts]
    metadata: dict[str, list[Message]]  # by source


def preview_topics(components: Components, subscribed: Subscribed) -> TopicPreview:
    """Asks about raw topics and reads their metadata topics to the end. It changes nothing, so that a thread may do it.

    Raises:
        ConfigError: one does not exist.
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
    """Makes raw topics ready to be read: what their metadata topics hold is learned before their data flows.

    The group reads these metadata messages as well, accounts for them and tells the other processes.
    """
    for source in components.settings.sources:
        translator = components.translators[source.name]
        for message in preview.metadata.get(source.name, ()):
            if learned := translator.lesson(message):
                with suppress(MessageError):  # its dead letter is written when the group reads it
                    components.catalog.register(translator, learned.key, learned.document)
        for topic in _of(source, subscribed):
            facts = preview.facts[topic]
            components.pipeline.add(topic, Route(translator, facts.id))
            components.positions.add(topic, AddedTopic(source.name, facts, start_of(source)))
    components.subscribed.update(subscribed)
    components.metrics.topics.set(len(components.subscribed))


def configured_start(settings: Settings, source: Source) -> Start:
    """Return where the topics of a source begin that are there when the process starts."""
    return settings.start if source.start is None else source.start


def _of(source: Source, subscribed: Subscribed) -> list[str]:
    return [topic for topic, owner in subscribed.items() if owner.name == source.name]
