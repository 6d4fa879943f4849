"""Discard dead letters for a stated reason. They stay in their topic and are never replayed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from cdc_core.state_format import release
from translator.config.settings import Settings
from translator.errors import ConfigError
from translator.kafka import client_config
from translator.kafka.admin import TopicAdmin
from translator.kafka.producer import RecordProducer, producer_config
from translator.operations.dlq.reader import Dead, LetterFilter, look
from translator.service.delivery.at_least_once import confirm_all

REASON_CHARACTERS = 500
"""Maximum length of a reason."""


def discard(
    settings: Settings, wanted: LetterFilter, reason: str, say: Callable[[str], None], *, execute: bool
) -> Dead:
    """Mark the selected dead letters that were neither replayed nor discarded. Without `execute`, only find these dead
    letters.

    Raises:
        ConfigError: the reason is empty or too long, or the dead-letter topic does not exist.
        RetryableError: no broker responded in time.
        FatalError: something could not be read or written.
    """
    if not 0 < len(reason.strip()) <= REASON_CHARACTERS:
        raise ConfigError(f"the reason must have 1 to {REASON_CHARACTERS} characters")
    dead = look(settings, wanted, say, pending=True)
    if execute and dead.letters:
        client = client_config.librdkafka(settings.kafka)
        topic = settings.output.metadata_topic
        limits = TopicAdmin(client).max_message_bytes([topic])
        producer = RecordProducer.from_config(producer_config(client, settings.timing.delivery, limits.values()))
        version = release()
        asyncio.run(confirm_all(producer, topic, [dead.mark(found, version, reason.strip()) for found in dead.letters]))
    return dead
