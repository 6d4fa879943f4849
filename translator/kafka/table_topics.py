"""The topics of a projection whose setting `topic` is a template: looked at, or made, when their first records come."""

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
    """Return how large a record may be in each topic of a projection: as in the canonical topic, or as `config` says.

    Raises:
        ConfigError: it says no number.
    """
    given = projection.config.get(LIMIT)
    if given is None:
        return canonical
    if not given.isdecimal():
        raise ConfigError(f"topic {projection.topic}: {LIMIT} is no number of bytes")
    return int(given)


class TableTopics:
    """Opens topics of one projection.

    Args:
        max_bytes: how large a record may be there.
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
        """Return the number of partitions of a topic, which is made when it is missing. Waits for brokers.

        Raises:
            ConfigError: it is missing and may not be made, or takes smaller records than it must.
            RetryableError: no broker answered within `timing.delivery`.
            FatalError: the broker does not create it.
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
                f"projection {self.template.text}: topic {topic} takes records of {largest} bytes, and must take "
                f"{self.max_bytes}: raise its {LIMIT}, or set {LIMIT} in `config` of the projection"
            )
        return facts.partitions
