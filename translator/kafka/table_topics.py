"""The topics of a projection whose `topic` is a template. Each of them is checked or created when its first records
arrive.
"""

from __future__ import annotations

from collections.abc import Callable

from confluent_kafka.admin import AclOperation

from translator.config.settings import Projection, Settings
from translator.config.topic_template import TopicTemplate
from translator.errors import ConfigError
from translator.kafka.admin import TopicAdmin, new_topic
from translator.kafka.retry import retry_until

LIMIT = "max.message.bytes"


def limit_of(projection: Projection, canonical: int) -> int:
    """Return the maximum record size in each of a projection's topics: the canonical topic's, or the value in `config`.

    Raises:
        ConfigError: the value is not a number.
    """
    given = projection.config.get(LIMIT)
    if given is None:
        return canonical
    if not given.isdecimal():
        raise ConfigError(f"topic {projection.topic}: {LIMIT} is not a number of bytes")
    return int(given)


class TableTopics:
    """Opens topics for one projection.

    Args:
        max_bytes: the maximum record size in these topics.
    """

    def __init__(
        self,
        topics: TopicAdmin,
        settings: Settings,
        projection: Projection,
        template: TopicTemplate,
        max_bytes: int,
        say: Callable[[str], None],
    ) -> None:
        self._topics = topics
        self._settings = settings
        self._say = say
        self.template = template
        self.max_bytes = max_bytes
        self.partitions = projection.partitions or settings.topics.partitions
        self._config = {**projection.config, LIMIT: str(max_bytes)}

    def open(self, topic: str) -> int:
        """Return a topic's number of partitions. Creates the topic if it is missing, and waits for brokers.

        Raises:
            ConfigError: the topic is missing and must not be created, or its maximum record size is too small.
            RetryableError: no broker responded within `timing.delivery`.
            FatalError: the broker does not create the topic.
        """
        return retry_until("broker", lambda _: self._open(topic), self._settings.timing.delivery, self._say)

    def _open(self, topic: str) -> int:
        try:
            made = new_topic(self._settings, topic, self.partitions, self._config)
            self._topics.make([made], may_create=self._settings.topics.create)
            (facts,) = self._topics.describe([topic], AclOperation.WRITE).values()
            (largest,) = self._topics.max_message_bytes([topic]).values()
        except ConfigError as error:
            raise ConfigError(f"projection {self.template.text}: {error}") from None
        if largest < self.max_bytes:
            raise ConfigError(
                f"projection {self.template.text}: topic {topic} accepts records of up to {largest} bytes, but "
                f"must accept {self.max_bytes}: raise its {LIMIT}, or set {LIMIT} in `config` of the projection"
            )
        return facts.partitions
