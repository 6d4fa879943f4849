"""Keep the table schemas that the translator has announced, and read the compacted schemas topic."""

from __future__ import annotations

import re
import time
import zlib
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

import msgspec
import structlog
from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, Consumer, KafkaError, KafkaException, TopicPartition

from cdc_core.envelope import TableSchema
from cdc_core.kafka_tokens import TokenError, require_token
from cdc_core.table_id import TableId
from spark_sink.errors import ConfigError, FatalError

log = structlog.get_logger()

# Permanent errors, as librdkafka names them. An unavailable token endpoint is not a permanent error, because the
# endpoint may recover. Neither is a connection that ended during the login, nor a second login within a second.
_REFUSED = re.compile(
    r"SASL (authentication error|.*handshake failed): (?!(.* failed: )?(Local: |Broker: Request not valid))"
    r"|certificate verify failed|SSL alert number (?!80\b|90\b)"
    r"|OAUTHBEARER token: .*(certificate|invalid_|unauthorized_client|unsupported_grant_type)"
)
_ATTEMPT_SECONDS = 5.0

# The suffix that librdkafka adds to an error text. The suffix can contain parentheses: `1 identical error(s)
# suppressed`.
_TAIL = re.compile(r" \((after \d+ms in state |install ca-certificates).*\)$", re.DOTALL)

# The errors for a partition that is new or has lost its leader.
_LEADERLESS = frozenset({KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE})
_PAUSE_SECONDS = 0.1

# If nothing arrives within this time, the brokers count as unavailable.
PATIENCE_SECONDS = 60.0


class SchemaCatalog:
    """Schemas by table and id, in the order in which they were announced. The catalog is sent to the workers."""

    def __init__(self) -> None:
        self._by_table: dict[TableId, dict[str, TableSchema]] = {}
        self._packed: bytes | None = None

    def __getstate__(self) -> bytes:
        """Return the packed form. It is computed after each change, not for each batch, because it also contains tables
        without events in the batch.
        """
        if self._packed is None:
            known = [(table, list(schemas.values())) for table, schemas in self._by_table.items()]
            self._packed = zlib.compress(msgspec.msgpack.encode(known), 1)
        return self._packed

    def __setstate__(self, packed: bytes) -> None:
        known = msgspec.msgpack.decode(zlib.decompress(packed), type=list[tuple[TableId, list[TableSchema]]])
        self._by_table = {table: {schema.id: schema for schema in schemas} for table, schemas in known}
        self._packed = packed

    def add(self, schema: TableSchema) -> None:
        self._packed = None
        known = self._by_table.setdefault(TableId.of(schema), {})
        known.pop(schema.id, None)  # announced again, so this schema is now the latest
        known[schema.id] = schema

    def find(self, table: TableId, schema_id: str) -> TableSchema | None:
        return self._by_table.get(table, {}).get(schema_id)

    def latest(self, table: TableId) -> TableSchema | None:
        """Return the schema for events that have no schema id."""
        known = self._by_table.get(table)
        return next(reversed(known.values())) if known else None

    def known(self, table: TableId) -> list[TableSchema]:
        """Return all of the table's schemas, in the order in which they were announced."""
        return list(self._by_table.get(table, {}).values())

    def joined(self, table: TableId, parts: Iterable[TableId]) -> SchemaCatalog:
        """Return a catalog that also contains `table`. It has all schemas of the tables in `parts`."""
        copy = SchemaCatalog()
        copy._by_table = {**self._by_table, table: {}}
        for part in parts:
            copy._by_table[table].update(self._by_table.get(part, {}))
        return copy

    def tables(self) -> list[TableId]:
        return list(self._by_table)


class SchemaReader:
    """Reads the schemas topic. It has only one partition, so that schemas are in order."""

    def __init__(self, client_options: Mapping[str, Any], topic: str) -> None:
        self.catalog = SchemaCatalog()
        self._topic = topic
        self._next = OFFSET_BEGINNING
        # librdkafka requires a group name, although the consumer neither joins the group nor commits.
        fixed: dict[str, object] = {
            "group.id": "spark-sink-schemas",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
            # Only an empty response reports the end of the topic, and the broker delays empty responses by this time.
            "fetch.wait.max.ms": 10,
            # The sink itself reports why it cannot reach a broker. librdkafka's log would repeat the reason twenty
            # times per second.
            "log_level": 0,
        }
        self._complaint = ""
        self._options = {**client_options, **fixed, "error_cb": self._complain}

    @cached_property
    def _consumer(self) -> Consumer:
        """The client, which is created when it is first needed."""
        require_token(self._options)
        try:
            return Consumer(self._options)
        except KafkaException as error:
            raise ConfigError(f"kafka: {error.args[0].str()}") from None

    def reach(self, patience: float = PATIENCE_SECONDS) -> None:
        """Wait up to `patience` seconds for a broker, and log the wait. Try at least once.

        Raises:
            ConfigError: a broker rejects this client, or is not trusted.
            FatalError: no broker answered in time.
        """
        deadline = time.monotonic() + patience
        said = ""
        while True:
            try:
                self._consumer.list_topics(self._topic, timeout=_ATTEMPT_SECONDS)
            except TokenError as error:
                reason = str(error)
                time.sleep(_PAUSE_SECONDS)
            except KafkaException as error:
                self._consumer.poll(0)  # the error callback runs in this call
                reason = self._complaint or error.args[0].str()
                if _REFUSED.search(reason):
                    raise ConfigError(f"kafka: {reason}; check kafka.sasl_*, oauth_* and ssl_*") from None
            else:
                return
            if time.monotonic() > deadline:
                waited = max(patience, _ATTEMPT_SECONDS)
                raise FatalError(f"no broker responded within {waited:g} s: {reason}")
            if reason != said:
                log.warning("waiting for a broker", reason=reason)
                said = reason

    def _complain(self, error: KafkaError) -> None:
        """Record the reason why no broker can be reached. If a broker rejected the client, this takes precedence over
        other reasons.
        """
        if error.code() != KafkaError._ALL_BROKERS_DOWN and not _REFUSED.search(self._complaint):
            self._complaint = _TAIL.sub("", error.str())

    def refresh(self) -> SchemaCatalog:
        """Return the catalog with the topic's current content.

        Raises:
            FatalError: the brokers do not answer, or no login token is available.
            ConfigError: the topic has more than one partition.
        """
        try:
            if self._exists():
                # Assign the partition again each time, because its end is reported once per assignment.
                self._consumer.assign([TopicPartition(self._topic, 0, self._next)])
                while self._read_one():
                    pass
        except KafkaException as error:
            raise FatalError(f"cannot read the schemas topic {self._topic}: {error.args[0].str()}") from None
        except TokenError as error:
            raise FatalError(f"cannot read the schemas topic {self._topic}: {error}") from None
        return self.catalog

    def ends(self, topic: str, patience: float = PATIENCE_SECONDS) -> dict[int, int]:
        """Return the offset after the last record in each partition of another topic. The result is empty if the topic
        does not exist.

        Records of open transactions do not count, because consumers cannot read them yet.

        Raises:
            FatalError: the brokers do not answer, or no login token is available.
        """
        return self._bounds(topic, OFFSET_END, patience)

    def begins(self, topic: str, patience: float = PATIENCE_SECONDS) -> dict[int, int]:
        """Return the offset of the first available record in each partition.

        Raises:
            FatalError: the brokers do not answer, or no login token is available.
        """
        return self._bounds(topic, OFFSET_BEGINNING, patience)

    def _bounds(self, topic: str, which: int, patience: float) -> dict[int, int]:
        deadline = time.monotonic() + patience
        while True:
            try:
                return self._ask_bounds(topic, which, patience)
            except KafkaException as error:
                if error.args[0].code() not in _LEADERLESS or time.monotonic() > deadline:
                    asked = "ends" if which == OFFSET_END else "begins"
                    raise FatalError(f"cannot read where the topic {topic} {asked}: {error.args[0].str()}") from None
                time.sleep(_PAUSE_SECONDS)
            except TokenError as error:
                raise FatalError(f"cannot read offsets of the topic {topic}: {error}") from None

    def _ask_bounds(self, topic: str, which: int, timeout: float) -> dict[int, int]:
        partitions = self._consumer.list_topics(topic, timeout=timeout).topics[topic].partitions
        # Kafka converts the special time that means a partition's end to an offset, for all partitions in one request.
        places = [TopicPartition(topic, number, which) for number in partitions]
        found = self._consumer.offsets_for_times(places, timeout=timeout) if places else []
        for place in found:
            if place.error is not None:
                raise KafkaException(place.error)
        return {place.partition: place.offset for place in found}

    def close(self) -> None:
        if "_consumer" in vars(self):
            self._consumer.close()

    def _exists(self) -> bool:
        found = self._consumer.list_topics(self._topic, timeout=PATIENCE_SECONDS).topics[self._topic]
        if found.error is not None and found.error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
            if self._next == OFFSET_BEGINNING:
                log.warning("schemas topic does not exist, all columns will be strings", topic=self._topic)
                self._next = 0  # logged once
            return False
        if found.error is not None:
            raise KafkaException(found.error)
        if len(found.partitions) != 1:
            raise ConfigError(f"the schemas topic {self._topic} has {len(found.partitions)} partitions; expected 1")
        return True

    def _read_one(self) -> bool:
        """Read one record, and return whether there may be more records."""
        message = self._consumer.poll(PATIENCE_SECONDS)
        if message is None:
            raise FatalError(f"the brokers did not respond to a query about the schemas topic {self._topic}")
        error = message.error()
        if error is not None:
            if error.code() == KafkaError._PARTITION_EOF:
                self._next = message.offset() or 0
                return False
            if error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED:
                return True  # an error that concerns the unused group
            raise KafkaException(error)
        value = message.value()
        if value is not None:
            self._learn(value, message.offset())
        return True

    def _learn(self, value: bytes, offset: int | None) -> None:
        try:
            self.catalog.add(msgspec.json.decode(value, type=TableSchema))
        except msgspec.DecodeError:
            # Events with this schema go to quarantine, because the schema's id is unknown.
            log.error("schema could not be parsed", topic=self._topic, offset=offset)
