"""Check everything that `translator run` depends on. Each check is independent, so one failure does not hide another.
The checks write, create and register nothing, and join no group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from confluent_kafka.admin import AclOperation

from translator.config.setting_types import is_pattern, matches
from translator.config.settings import Settings, Source
from translator.errors import CdcError, ConfigError
from translator.kafka import client_config
from translator.kafka.admin import TopicAdmin
from translator.kafka.subscription import metadata_topics, resolve
from translator.kafka.topic_samples import samples
from translator.operations.sample_checks import Check, sample_checks
from translator.resolution.builders import avro_header, build_codecs

_DAY_MS = 24 * 60 * 60 * 1000


def checks(settings: Settings, count: int, say: Callable[[str], None]) -> Iterator[Check]:
    """Check everything outside the configuration file.

    Args:
        count: number of records to read and translate per raw topic.
        say: called with a description of what the check is waiting for.
    """
    client = client_config.librdkafka(settings.kafka)
    admin = TopicAdmin(client)
    reached = _asked("brokers", partial(_brokers, settings, admin, say))
    yield from reached
    if any(check.state == "WRONG" for check in reached):
        return
    yield from _asked(f"group {settings.group}", partial(_group, settings, admin))
    there = admin.names()
    for source in settings.sources:
        yield from _asked(f"source {source.name}", partial(_source, settings, source, admin, there))
    written = settings.written_topics
    of_templates = sorted(topic for topic in there if settings.writes(topic) and topic not in written)
    for topic in (*written, *of_templates):
        yield from _asked(f"topic {topic}", partial(_written, settings, topic, admin, there))
    if settings.registry is not None:
        yield from _asked("registry", partial(_registry, settings))
    yield from _asked("messages", partial(_messages, settings, client, admin, there, count))


def _asked(subject: str, ask: Callable[[], Sequence[Check]]) -> Sequence[Check]:
    """Return one check's results. If the check raises an exception, the exception is the result."""
    try:
        return ask()
    except CdcError as error:
        return [Check(subject, "WRONG", " ".join(str(error).split()))]


def _brokers(settings: Settings, admin: TopicAdmin, say: Callable[[str], None]) -> list[Check]:
    admin.wait_for_broker(min(20.0, settings.timing.broker_wait), say)
    return [Check("brokers", "ok", f"{settings.kafka.bootstrap_servers} responds")]


def _group(settings: Settings, admin: TopicAdmin) -> list[Check]:
    admin.check_group(settings.group)
    return [Check(f"group {settings.group}", "ok", "according to the brokers, this user can join it")]


def _source(settings: Settings, source: Source, admin: TopicAdmin, there: set[str]) -> list[Check]:
    """Report all topics of a source that are missing or unreadable, and the consequences of the topics' settings."""
    subject = f"source {source.name}"
    subscribed, claimed_twice = resolve(settings, there)
    found = [Check(subject, "WRONG", claim) for claim in claimed_twice if f" {source.name} (" in claim]
    for entry in source.topics:
        if is_pattern(entry):
            if not any(matches(topic, entry) for topic, owner in subscribed.items() if owner.name == source.name):
                found.append(Check(subject, "note", f"no topic matches {entry} yet"))
        elif entry not in there:
            text = f"topic {entry} does not exist or is not visible to this user"
            found.append(Check(subject, "WRONG", text))
    partitions = 0
    for topic in (topic for topic, owner in subscribed.items() if owner.name == source.name and topic in there):
        try:
            partitions += admin.describe([topic])[topic].partitions
            found += [Check(subject, "note", text) for text in _retention(topic, admin.configuration(topic))]
        except ConfigError as error:
            found.append(Check(subject, "WRONG", str(error)))
    if source.metadata_topics and not metadata_topics(source, subscribed):
        found.append(Check(subject, "note", f"no topic matches {', '.join(source.metadata_topics)}"))
    if partitions:
        text = f"it has {partitions} partitions, so up to {partitions} processes of the group can share it"
        found.append(Check(subject, "ok", text))
    return found


def _retention(topic: str, configuration: Mapping[str, str]) -> Iterator[str]:
    if "compact" in configuration["cleanup.policy"]:
        yield f"topic {topic} is compacted, so Kafka may delete messages that have not been read yet"
    kept = int(configuration["retention.ms"])
    if "delete" in configuration["cleanup.policy"] and 0 <= kept < _DAY_MS:
        hours = kept / 3_600_000
        yield (
            f"topic {topic} retains messages for only {hours:g} hours (retention.ms), so messages are lost in a "
            "longer outage"
        )


def _written(settings: Settings, topic: str, admin: TopicAdmin, there: set[str]) -> list[Check]:
    subject = f"topic {topic}"
    if topic not in there:
        if not settings.topics.create:
            raise ConfigError(
                "it does not exist, and topics.create is false; create the topic, or set topics.create: true"
            )
        return [Check(subject, "ok", "it does not exist yet; `run` will create it")]
    facts = admin.describe([topic], AclOperation.WRITE)[topic]
    policy = admin.configuration(topic)["cleanup.policy"]
    found = [Check(subject, "ok", f"it has {facts.partitions} partitions, and this user is allowed to write")]
    remembered = (settings.output.schemas_topic, settings.output.metadata_topic)
    if topic in remembered and policy != "compact":
        text = f"cleanup.policy is {policy}, which would delete state; set it to compact"
        found.append(Check(subject, "WRONG", text))
    if topic == settings.output.dead_letter_topic and "compact" in policy:
        found.append(
            Check(subject, "WRONG", f"cleanup.policy is {policy}, which would remove dead letters; set it to delete")
        )
    return found


def _registry(settings: Settings) -> list[Check]:
    """Look up our own schema without registering it."""
    registry = settings.registry
    if registry is None:
        return []
    asked = settings.model_copy(update={"registry": registry.model_copy(update={"auto_register": False})})
    try:
        build_codecs(asked, partial(avro_header, asked))
    except ConfigError as error:
        if registry.auto_register and "register the schema" in str(error):
            return [Check("registry", "ok", "it responds; `run` will register the envelope")]
        raise
    return [Check("registry", "ok", "it responds, and the envelope is registered")]


def _messages(
    settings: Settings, client: Mapping[str, Any], admin: TopicAdmin, there: set[str], count: int
) -> list[Check]:
    """Translate the oldest and newest records in each raw topic, as the service would."""
    subscribed, _ = resolve(settings, there)
    read = dict(samples(client, admin.describe(topic for topic in subscribed if topic in there), count))
    return sample_checks(settings, {topic: subscribed[topic].name for topic in read}, read)
