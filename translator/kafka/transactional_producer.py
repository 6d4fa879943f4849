"""The producer that writes transactions: its settings and calls, and the conversion of its errors to this project's
error classes and wording.

Every call blocks and passes its timeout in seconds on to librdkafka.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicPartition

from translator.errors import ConfigError, FatalError, RetryableError
from translator.kafka.producer import RecordProducer

_MOVED = "the group has reassigned the partitions to another process, or is about to; the transaction stays invisible"
_FENCED = (
    "the broker aborted the transaction after timing.delivery, or another process uses the same transactional.id: "
    "every process of the group needs its own combination of host name and web.port"
)
_MOVES: Mapping[int, str] = {
    KafkaError.ILLEGAL_GENERATION: _MOVED,
    KafkaError.UNKNOWN_MEMBER_ID: _MOVED,
    KafkaError.REBALANCE_IN_PROGRESS: _MOVED,
}
_CAUSES: Mapping[int, str] = {
    **_MOVES,
    KafkaError._FENCED: _FENCED,
    KafkaError.PRODUCER_FENCED: _FENCED,
    KafkaError.INVALID_PRODUCER_EPOCH: _FENCED,
    KafkaError._TIMED_OUT: "no broker responded within timing.delivery; the next owner waits until it is known whether "
    "the transaction was committed",
}
# Errors for which the operator must change something before the service can start.
_REFUSALS: Mapping[int, str] = {
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "this user needs the permissions write and describe on it",
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: "this user is not allowed to write as an idempotent producer",
    KafkaError.INVALID_TRANSACTION_TIMEOUT: "timing.delivery exceeds the brokers' transaction.max.timeout.ms",
}


class PartitionsMovedError(FatalError):
    """The group has reassigned a transaction's partitions to another process, or is about to reassign them."""


def transactional_config(config: Mapping[str, Any], transactional_id: str, seconds: float) -> dict[str, Any]:
    """Return the settings for a producer that writes transactions, based on the idempotent producer's settings.

    Args:
        seconds: time after which the broker aborts a dead process's transaction. Until then, consumers of committed
            records wait. It must be at least the maximum time to deliver a record.
    """
    return {
        **config,
        "transactional.id": transactional_id,
        "transaction.timeout.ms": max(1000, int(seconds * 1000)),
        # After an outage of all brokers, librdkafka 2.16 forgets them and starts again ("rebootstrap"). librdkafka then
        # sends offsets to the group coordinator over a connection that it has abandoned, until the request times out.
        "metadata.recovery.strategy": "none",
    }


def group_metadata(group: str, generation: int, member: str) -> bytes:
    """Return a group member in librdkafka's format for `send_offsets_to_transaction`.

    The format is internal to librdkafka; a test compares it with `Consumer.consumer_group_metadata()`. The member must
    have joined the group, because generation -1 would be committed without any check.
    """
    if generation < 0 or not member:
        raise ValueError(f"not a member of {group}: generation {generation}")
    return b"CGMDv2:" + struct.pack("<i", generation) + group.encode() + b"\0" + member.encode() + b"\0\1"


class TransactionalProducer(RecordProducer):
    """A producer that always has an open transaction once `open` was called. The broker does not see an empty
    transaction.
    """

    def open(self, seconds: float) -> None:
        """Finish the transaction that an earlier process with the same transactional.id left open.

        Raises:
            ConfigError: this user is not allowed to write transactions, or to keep them open this long.
            RetryableError: no broker responds.
        """
        try:
            self._producer.init_transactions(seconds)
            self._producer.begin_transaction()
        except KafkaException as error:
            cause: KafkaError = error.args[0]
            if cause.code() in _REFUSALS:
                raise ConfigError(f"cannot write transactions: {cause.str()} ({_REFUSALS[cause.code()]})") from None
            raise RetryableError(f"cannot write transactions: {cause.str()}") from None

    def send_offsets(self, offsets: Sequence[tuple[str, int, int, str]], membership: bytes, seconds: float) -> None:
        """Add a group's offsets to the transaction.

        Args:
            offsets: the topic, the partition, the offset of the next record to read, and the metadata to commit with
                it.
            membership: the member that reads the partitions, see `group_metadata`.

        Raises:
            PartitionsMovedError: the group has a newer generation.
            FatalError: the broker does not accept the offsets.
        """
        partitions = [TopicPartition(*offset) for offset in offsets]
        try:
            self._producer.send_offsets_to_transaction(partitions, membership, seconds)
        except KafkaException as error:
            raise self._fatal(error) from None

    def commit(self, seconds: float) -> None:
        """Commit the transaction and begin the next one.

        Raises:
            FatalError: it is unknown whether the transaction was committed.
        """
        try:
            self._producer.commit_transaction(seconds)
            self._producer.begin_transaction()
        except KafkaException as error:
            raise self._fatal(error) from None

    def abort(self, seconds: float) -> None:
        """Abort the transaction and begin the next one.

        Raises:
            FatalError: the transaction was not aborted.
        """
        try:
            self._producer.abort_transaction(seconds)
            self._producer.begin_transaction()
        except KafkaException as error:
            raise self._fatal(error) from None

    def abort_last(self, seconds: float) -> None:
        """Abort the transaction of a process that is stopping. If this call fails, the broker aborts the transaction
        later.
        """
        with suppress(KafkaException):  # a commit is in progress, or the broker aborted it: nothing to do
            self._producer.abort_transaction(seconds)

    def _fatal(self, error: KafkaException) -> FatalError:
        cause: KafkaError = error.args[0]
        advice = _CAUSES.get(cause.code())
        kind = PartitionsMovedError if cause.code() in _MOVES else FatalError
        return kind(f"transaction failed: {cause.str()}" + (f" ({advice})" if advice else ""))
