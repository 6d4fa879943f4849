"""Take a snapshot of the compacted topics: table schemas and learned metadata."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from msgspec import Struct

from cdc_core.envelope import TableSchema
from translator.config.settings import Settings
from translator.errors import FatalError
from translator.kafka import client_config
from translator.kafka.admin import TopicAdmin
from translator.state.metadata_topic import document_of
from translator.state.partition_stops import PartitionStop, stop_of
from translator.state.state_reader import StateReader


class StateSnapshot(Struct, frozen=True):
    """The newest record for each key in the two compacted topics. Times are record timestamps in milliseconds."""

    schemas: dict[str, tuple[int, TableSchema]]
    """By key: source/db/schema/table/schema_id, with `/` and `%` in names percent-encoded. Schemas are in the order in
    which they were last announced.
    """
    metadata: dict[str, tuple[int, bytes]]
    """Documents by source/key."""
    stops: list[PartitionStop]
    """The last stop of each partition. The group may have passed it since then."""


def read_state(settings: Settings, say: Callable[[str], None]) -> StateSnapshot:
    """Read both topics to the end.

    Raises:
        ConfigError: one of the topics does not exist.
        RetryableError: no broker responds.
        FatalError: one of the topics cannot be read, or the schemas topic contains other records.
    """
    client = client_config.librdkafka(settings.kafka)
    topics = TopicAdmin(client)
    topics.wait_for_broker(settings.timing.broker_wait, say)
    output = settings.output
    facts = topics.describe([output.schemas_topic, output.metadata_topic])
    sources = {source.name for source in settings.sources}
    reader = StateReader(client, facts)
    newest = {(record.topic(), record.key()): record for record in reader.to_end()}
    reader.close()
    known = StateSnapshot({}, {}, [])
    for (topic, key), record in sorted(newest.items(), key=lambda item: item[1].offset() or 0):
        time, value = record.timestamp()[1], record.value()
        if topic == output.metadata_topic:
            if value is not None and (stop := stop_of((key or b"").decode(), value)):
                known.stops.append(stop)
            elif found := document_of(record, sources):
                known.metadata[f"{found.source}/{found.key}"] = time, found.document
        elif value is not None:
            schema = _schema(output.schemas_topic, record.offset(), value)
            known.schemas[schema.topic_key] = time, schema
    return known


def _schema(topic: str, offset: int | None, value: bytes) -> TableSchema:
    try:
        return msgspec.json.decode(value, type=TableSchema)
    except msgspec.DecodeError as error:
        raise FatalError(
            f"topic {topic}, offset {offset}: the record is not one of the translator's table schemas: {error}"
        ) from None
