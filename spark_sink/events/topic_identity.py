"""Identify the canonical topic. Its offsets become invalid when the topic is deleted and recreated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import structlog
from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient

from spark_sink.errors import ConfigError, FatalError

log = structlog.get_logger()

_SECONDS = 20.0

# The id that brokers without topic ids return: sixteen zero bytes.
_NO_ID = "AAAAAAAAAAAAAAAAAAAAAA"


def topic_id(connection: Mapping[str, Any], topic: str) -> str | None:
    """Return the id that Kafka assigned to a topic when it was created. Return None if the topic does not exist or has
    no id.

    Args:
        connection: librdkafka settings.

    Raises:
        FatalError: the brokers do not answer.
    """
    admin = AdminClient({**connection, "log_level": 0})
    (future,) = admin.describe_topics(TopicCollection([topic]), request_timeout=_SECONDS).values()
    try:
        found = str(future.result(_SECONDS + 1).topic_id)
    except KafkaException as error:
        if error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
            return None
        raise FatalError(f"cannot query the brokers for the topic {topic}: {error.args[0].str()}") from None
    return None if found == _NO_ID else found


def check_topic(topic: str, found: str | None, noted: str | None) -> None:
    """Raise an error unless this is the topic that the pipeline has read before.

    Args:
        noted: the recorded id, or None if the pipeline has not recorded one yet.

    Raises:
        ConfigError: the topic was deleted and created again.
    """
    if found is None or noted is None or found == noted:
        return
    raise ConfigError(
        f"the topic {topic} was deleted and recreated: its id was {noted} and is now {found}. The checkpoint and "
        "_cdc.batches contain offsets of the old topic, so the sink would skip events of the new one. Give this "
        "sink another `pipeline` and an empty checkpoint folder. It then reads the new topic from the beginning; "
        "existing tables are kept, and positions prevent events from being applied twice "
        "(docs/operate/recovery.md#the-canonical-topic)"
    )
