"""Find the existing raw topics: the topics on the brokers that match the sources' names and patterns."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TypeAlias

from translator.config.setting_types import is_pattern, matches
from translator.config.settings import Settings, Source
from translator.errors import ConfigError, RetryableError
from translator.kafka.retry import retry_until

Subscribed: TypeAlias = dict[str, Source]
"""Raw topics by name, each with its source."""

INTERNAL = "__"
"""The name prefix of Kafka's internal topics, which patterns never match."""


def resolve(settings: Settings, there: Collection[str]) -> tuple[Subscribed, list[str]]:
    """Return the topics that the sources read, and a sentence for each topic that more than one source claims.

    A name claims its topic even if the topic does not exist. A pattern claims every existing topic that it matches,
    except Kafka's internal topics and the topics that the translator writes. A topic that two sources claim could be
    read in two ways, so neither of them gets it.
    """
    open_to_patterns = [topic for topic in there if not topic.startswith(INTERNAL) and not settings.writes(topic)]
    claims: dict[str, list[tuple[Source, str]]] = defaultdict(list)
    for source in settings.sources:
        for entry in source.topics:
            for topic in _named_by(entry, open_to_patterns):
                claims[topic].append((source, entry))
    subscribed, doubtful = {}, []
    for topic, claimed in sorted(claims.items()):
        if len({source.name for source, _ in claimed}) == 1:
            subscribed[topic] = claimed[0][0]
        else:
            who = " and ".join(f"{source.name} ({entry})" for source, entry in claimed)
            doubtful.append(f"topic {topic} is claimed by more than one source: {who}")
    return subscribed, doubtful


def _named_by(entry: str, there: Iterable[str]) -> list[str]:
    return [topic for topic in there if matches(topic, entry)] if is_pattern(entry) else [entry]


def metadata_topics(source: Source, topics: Iterable[str]) -> list[str]:
    """Return the source's topics that contain metadata messages."""
    return [topic for topic in topics if any(matches(topic, entry) for entry in source.metadata_topics)]


def subscribe(settings: Settings, names: Callable[[], Collection[str]], say: Callable[[str], None]) -> Subscribed:
    """Return the topics to read from the start. Patterns that match nothing are reported, and their topics are added
    later.

    If there is no topic to read at all, wait for one, just as for brokers (`timing.broker_wait`).

    Raises:
        ConfigError: two sources claim a topic.
        RetryableError: no topic can be read.
    """
    subscribed = retry_until("raw topic", lambda _: _some(settings, names()), settings.timing.broker_wait, say)
    for source in settings.sources:
        for entry in source.topics:
            if is_pattern(entry) and not any(
                matches(topic, entry) for topic, owner in subscribed.items() if owner.name == source.name
            ):
                say(f"source {source.name}: no topic matches {entry} yet")
    return subscribed


def _some(settings: Settings, there: Collection[str]) -> Subscribed:
    subscribed, doubtful = resolve(settings, there)
    if doubtful:
        raise ConfigError("; ".join(doubtful))
    if not subscribed:
        entries = ", ".join(entry for source in settings.sources for entry in source.topics)
        raise RetryableError(f"no topic matches {entries}")
    return subscribed


def added(settings: Settings, known: Mapping[str, Source], there: Collection[str]) -> tuple[Subscribed, list[str]]:
    """Return topics that were created since startup, and warnings about new topics that are not added.

    Topics that are already being read stay subscribed. If the pattern of another source also matches such a topic, the
    next start rejects the configuration.
    """
    subscribed, doubtful = resolve(settings, there)
    return {topic: source for topic, source in subscribed.items() if topic not in known}, doubtful
