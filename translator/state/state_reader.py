"""A reader for the compacted topics."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from confluent_kafka import Message

from cdc_core.state_format import check_format
from translator.kafka.topic_reader import TopicReader
from translator.state.state_record import FORMAT_HEADER, RELEASE_HEADER


class StateReader(TopicReader):
    """Read whole topics, and reject records in the format of a later release."""

    def poll(self, seconds: float) -> Iterator[Message]:
        """Return records like `TopicReader.poll`.

        Raises:
            FatalError: a record has the format of a later release, or the topic cannot be read.
        """
        record: Any
        for record in super().poll(seconds):
            headers = {name: (value or b"").decode("utf-8", "replace") for name, value in record.headers() or ()}
            where = f"the record in topic {record.topic()}, offset {record.offset()},"
            check_format(headers.get(FORMAT_HEADER), where, headers.get(RELEASE_HEADER))
            yield record
