"""The producer that writes transactions: its settings, its calls, and its errors in our words and classes.

Every call blocks; the seconds that it is given are those that librdkafka is told.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicPartition

from translator.errors import ConfigError, FatalError, RetryableError
from translator.kafka.producer import RecordProducer

_MOVED = "the group has given the partitions to another process, or is about to; nothing of the transaction is visible"
_FENCED = (
    "the broker ended the transaction after timing.delivery, or another process has the same transactional.id: host "
    "name and web.port must not be those of another one of the group"
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
    KafkaError._TIMED_OUT: "no broker answered within timing.delivery; the next owner waits until it is known whether "
    "the transaction stands",
}
# What the operator must change before any start can succeed.
_REFUSALS: Mapping[int, str] = {
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "the user needs write and describe on it",
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: "the user may not write as an idempotent producer",
    KafkaError.INVALID_TRANSACTION_TIMEOUT: "timing.delivery is above the brokers' transaction.max.timeout.ms",
}


class PartitionsMovedError(FatalError):
    """The group has given the partitions of a transaction to another process, or is about to."""


def transactional_config(config: Mapping[str, Any], transactional_id: str, seconds: float) -> dict[str, Any]:
    """Return the settings of a producer that writes transactions, over those of the idempotent one.

    Args:
        seconds: after which the broker aborts a transaction of a process that is gone; until then readers of committed
            records wait. At least the time that a record may take.
    """
    return {
        **config,
        "transactional.id": transactional_id,
        "transaction.timeout.ms": max(1000, int(seconds * 1000)),
        # After all brokers were away librdkafka 2.16 forgets them and begins anew ("rebootstrap"), but sends offsets to
        # the group's coordinator over a connection that it has given up, until it runs out of time.
        "metadata.recovery.strategy": "none",
    }


def group_metadata(group: str, generation: int, member: str) -> bytes:
    """Return a member of a group in the form that librdkafka's consumers write for `send_offsets_to_transaction`.

    The form is librdkafka's own: a test holds it against `Consumer.consumer_group_metadata()`. Only a member that has
    joined may be written: generation -1 would be committed without any check.
    """
    if generation < 0 or not member:
        raise ValueError(f"no member of {group}: generation {generation}")
    return b"CGMDv2:" + struct.pack("<i", generation) + group.encode() + b"\0" + member.encode() + b"\0\1"


class TransactionalProducer(RecordProducer):
    """A producer of which a transaction is always open, from `open` on; to the broker an empty one is nothing."""

    def open(self, seconds: float) -> None:
        """End what an earlier process of the same transactional.id left open.

        Raises:
            ConfigError: this user cannot write transactions, or not so long ones.
            RetryableError: no broker answers.
        """
        try:
            self._producer.init_transactions(seconds)
            self._producer.begin_transaction()
        except KafkaException as error:
            cause: KafkaError = error.args[0]
            if cause.code() in _REFUSALS:
                raise ConfigError(f"no transactions: {cause.str()} ({_REFUSALS[cause.code()]})") from None
            raise RetryableError(f"no transactions: {cause.str()}") from None

    def send_offsets(self, offsets: Sequence[tuple[str, int, int, str]], membership: bytes, seconds: float) -> None:
        """Put offsets of a group into the transaction.

        Args:
            offsets: topic, partition, the offset of the next record to read, and the note beside it.
            membership: the member that reads the partitions, see `group_metadata`.

        Raises:
            PartitionsMovedError: the group has another generation by now.
            FatalError: the broker does not take them.
        """
        partitions = [TopicPartition(*offset) for offset in offsets]
        try:
            self._producer.send_offsets_to_transaction(partitions, membership, seconds)
        except KafkaException as error:
            raise self._fatal(error) from None

    def commit(self, seconds: float) -> None:
        """Commit the transaction and begin the next.

        Raises:
            FatalError: it is not known to stand.
        """
        try:
            self._producer.commit_transaction(seconds)
            self._producer.begin_transaction()
        except KafkaException as error:
            raise self._fatal(error) from None

    def abort(self, seconds: float) -> None:
        """Abort the transaction and begin the next.

        Raises:
            FatalError: it was not aborted.
        """
        try:
            self._producer.abort_transaction(seconds)
            self._producer.begin_transaction()
        except KafkaException as error:
            raise self._fatal(error) from None

    def abort_last(self, seconds: float) -> None:
        """Abort the transaction of a process that ends. Where that fails, the broker aborts it later."""
        with suppress(KafkaException):  # a commit is under way, or the broker aborted it: there is nothing to do
            self._producer.abort_transaction(seconds)

    def _fatal(self, error: KafkaException) -> FatalError:
        cause: KafkaError = error.args[0]
        advice = _CAUSES.get(cause.code())
        kind = PartitionsMovedError if cause.code() in _MOVES else FatalError
        return kind(f"transaction failed: {cause.str()}" + (f" ({advice})" if advice else ""))
