"""Store the progress of a command that reads partitions in several runs. It is stored as committed offsets of a group
without members.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import closing
from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicPartition

from translator.errors import RetryableError
from translator.kafka.admin import TopicAdmin
from translator.kafka.offset_ranges import Place


class RangeProgress:
    """The offsets that earlier runs reached.

    Args:
        group: a group that is used only by this command with these arguments.
    """

    def __init__(self, client: Mapping[str, Any], topics: TopicAdmin, group: str) -> None:
        self.group = group
        self._client = client
        self._topics = topics

    def read(self, places: Collection[Place]) -> tuple[dict[Place, int], str]:
        """Return the offset at which to resume in each partition, and the last run's note. Both are empty if no earlier
        run exists.

        Raises:
            RetryableError: no broker responds.
        """
        found = self._topics.committed(self.group, places)
        notes = {committed.note for committed in found.values()}
        return {place: committed.offset for place, committed in found.items()}, max(notes, default="")

    def write(self, ends: Mapping[Place, int], note: str) -> None:
        """Store the offsets at which to resume, and a note.

        Raises:
            RetryableError: no broker accepts the offsets.
        """
        config = {**self._client, "group.id": self.group, "enable.auto.commit": False}
        reached = [TopicPartition(*place, offset, note) for place, offset in ends.items()]
        try:
            with closing(Consumer(config)) as consumer:
                consumer.commit(offsets=reached, asynchronous=False)
        except KafkaException as error:
            raise RetryableError(f"offsets of group {self.group}: {error.args[0].str()}") from None
