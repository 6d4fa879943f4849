"""Pins every private name of Faust, mode and aiokafka that the runtime relies on.

If an upgrade changes one of them, a test fails by name, before production loses data.
"""

import inspect
import re
from types import SimpleNamespace
from typing import Any

import aiokafka
import faust
import mode
import pytest
from aiokafka.consumer.fetcher import Fetcher, PartitionRecords
from aiokafka.consumer.group_coordinator import GroupCoordinator
from aiokafka.consumer.subscription_state import SubscriptionState
from faust.app.base import App
from faust.events import Event
from faust.tables import TableManager
from faust.tables.recovery import Recovery
from faust.topics import Topic
from faust.transport import consumer as faust_consumer
from faust.transport.conductor import Conductor
from faust.transport.drivers import aiokafka as driver
from faust.types.tuples import ConsumerMessage, Message
from mode.utils.futures import notify

from translator.kafka.transactional_producer import group_metadata
from translator.service import log_setup
from translator.service.faust_transport import BatchConsumer, BatchConsumerThread

VERSIONS = {"faust-streaming": "0.15.3", "mode-streaming": "0.7.1", "aiokafka": "0.14.0"}

# (owner, name, parameters, whether it is a coroutine function)
OVERRIDDEN = [
    (driver.Consumer, "__init__", "self, *args, **kwargs", False),
    (driver.Consumer, "_new_consumer_thread", "self", False),
    (driver.Consumer, "on_buffer_full", "self, tp", False),
    (driver.Consumer, "ack", "self, message", False),
    (driver.Consumer, "_filter_tps_with_pending_acks", "self, topics=None", False),
    (driver.Consumer, "_new_offset", "self, tp", False),
    (driver.Consumer, "_should_commit", "self, tp, offset", False),
    (driver.Consumer, "_commit", "self, offsets", True),
    (driver.Consumer, "_add_gap", "self, tp, offset_from, offset_to", True),
    (driver.Consumer, "on_partitions_revoked", "self, revoked", True),
    (driver.Consumer, "wait_empty", "self", True),
    (driver.Consumer, "perform_seek", "self", True),
    (driver.Consumer, "getmany", "self, timeout", False),
    (driver.AIOKafkaConsumerThread, "_create_worker_consumer", "self, transport", False),
    (driver.AIOKafkaConsumerThread, "__init__", "self, consumer, **kwargs", False),
    (driver.AIOKafkaConsumerThread, "_commit", "self, offsets", True),
    (PartitionRecords, "_consumer_record", "self, tp, record", False),
    (Fetcher, "_proc_fetch_request", "self, assignment, node_id, request", True),
    (faust.Worker, "_sentinel_task", "self", True),
    (TableManager, "on_start", "self", True),
]
CALLED = [
    (driver.Consumer, "_wait_next_records", "self, timeout", True),
    (driver.Consumer, "_get_active_partitions", "self", False),
    (driver.Consumer, "seek_wait", "self, partitions", True),
    (driver.Consumer, "stop_flow", "self", False),
    (driver.Consumer, "subscribe", "self, topics", True),
    (driver.AIOKafkaConsumerThread, "_ensure_consumer", "self", False),
    (SubscriptionState, "fetch_context", "self", False),
    (Conductor, "_update_indices", "self", True),
    (driver.Consumer, "assignment", "self", False),
    (driver.Consumer, "pause_partitions", "self, tps", False),
    (driver.Consumer, "resume_partitions", "self, tps", False),
    (App, "add_future", "self, coro", False),
    (TableManager, "_update_channels", "self", True),
    (Message, "ack", "self, consumer, n=1", False),
    (Event, "ack", "self", False),
    (App, "crash", "self, reason", True),
    (App, "on_rebalance_end", "self", False),
    (
        ConsumerMessage,
        "__init__",
        "self, topic, partition, offset, timestamp, timestamp_type, headers, key, value, checksum, "
        "serialized_key_size=None, serialized_value_size=None, tp=None, time_in=None, time_out=None, "
        "time_total=None, generation_id=None",
        False,
    ),
]


def parameters(function: Any) -> str:
    """Return the parameters without their annotations."""
    plain = [
        parameter.replace(annotation=inspect.Parameter.empty)
        for parameter in inspect.signature(function).parameters.values()
    ]
    return ", ".join(str(parameter) for parameter in plain)


def test_the_versions_are_the_ones_that_were_read() -> None:
    """The transport was written for exactly these releases."""
    found = {name: _version(name) for name in VERSIONS}
    assert VERSIONS == found, "read the new source, then change this table"


def _version(name: str) -> str:
    from importlib.metadata import version

    return version(name)


@pytest.mark.parametrize(
    ("owner", "name", "expected", "is_async"),
    [*OVERRIDDEN, *CALLED],
    ids=lambda value: value if isinstance(value, str) and re.fullmatch(r"\w+", value) else "",
)
def test_private_signatures(owner: type, name: str, expected: str, is_async: bool) -> None:
    """A name that the transport overrides or calls keeps its parameters and its kind."""
    function = getattr(owner, name)
    assert expected == parameters(function)
    assert is_async is inspect.iscoroutinefunction(function)


@pytest.mark.parametrize("name", [name for owner, name, *_ in OVERRIDDEN if owner is driver.Consumer])
def test_every_override_is_ours(name: str) -> None:
    """After a rename upstream, our method would be dead code, so each must still override one."""
    assert getattr(BatchConsumer, name) is not getattr(driver.Consumer, name)


@pytest.mark.parametrize(
    ("owner", "method", "needed"),
    [
        (faust_consumer.Consumer, "_filter_committable_offsets", "self._new_offset(tp)"),
        (faust_consumer.Consumer, "_filter_committable_offsets", "self._should_commit(tp, offset)"),
        (faust_consumer.Consumer, "force_commit", "self._filter_tps_with_pending_acks(topics)"),
        (faust_consumer.Consumer, "_commit_offsets", "await self._commit(committable_offsets)"),
        (faust_consumer.Consumer, "wait_empty", "self._unacked_messages"),
        # Both ways of revoking partitions call `wait_empty`.
        (App, "_on_partitions_revoked", "self._consumer_wait_empty"),
        (App, "_stop_consumer", "self._consumer_wait_empty"),
        (App, "_consumer_wait_empty", "await consumer.wait_empty()"),
        # This announces new topics to the only agent.
        (Conductor, "_update_indices", "for topic in channel.topics:"),
        (Conductor, "_update_tp_index", "for subtopic in topic.topics:"),
        (driver.AIOKafkaConsumerThread, "subscribe", "topics=set(topics)"),
        # The reason why a pause of all partitions must look like fetching.
        (GroupCoordinator, "_heartbeat_routine", "idle_time = self._subscription.fetcher_idle_time"),
        (faust_consumer.Consumer, "track_message", "self._unacked_messages.add(message)"),
        (faust_consumer.Consumer, "_drain_messages", "callback(message), self.suspend_flow.wait()"),
        (faust_consumer.Consumer, "_wait_for_ack", "self._waiting_for_ack = asyncio.Future"),
        (driver.AIOKafkaConsumerThread, "_create_worker_consumer", "RoundRobinPartitionAssignor"),
        (driver.AIOKafkaConsumerThread, "commit", "self.call_thread(self._commit, offsets)"),
        # Partitions are placed before records flow, and a rebalance interrupts placing.
        (Recovery, "_resume_streams", "consumer.perform_seek(), timeout=self.app.conf.broker_request_timeout"),
        (Recovery, "_wait", "self.signal_recovery_start in wait_result.done"),
        # Readiness: a rebalance begins before the group is joined, and ends after placing, even of no partition.
        (driver.ConsumerRebalanceListener, "on_partitions_revoked", "thread.app.on_rebalance_start()"),
        (App, "on_rebalance_start", "self.rebalancing = True"),
        (Recovery, "_resume_streams", "app.on_rebalance_end()"),
        # With auto_offset_reset "none", both are errors and not a silent jump.
        # All fetched records become our small objects.
        (Fetcher, "_proc_fetch_request", "partition_records = PartitionRecords("),
        (PartitionRecords, "_unpack_records", "consumer_record = self._consumer_record(tp, record)"),
        (Fetcher, "_update_fetch_positions", "err = Errors.NoOffsetForPartitionError(tp)"),
        (Fetcher, "_proc_fetch_request", "err = Errors.OffsetOutOfRangeError({tp: fetch_offset})"),
        # Our identity in the group: what is forgotten first is read last.
        (driver.ConsumerRebalanceListener, "on_partitions_assigned", "app.consumer_generation_id = generation"),
        (
            GroupCoordinator,
            "reset_generation",
            "self.generation = OffsetCommitRequest.DEFAULT_GENERATION_ID self.member_id",
        ),
        # Without our own offsets, nothing is committed, because transactions do that.
        (faust_consumer.Consumer, "_commit_tps", "if commit_offsets:"),
        (aiokafka.AIOKafkaConsumer, "start", "isolation_level=self._isolation_level"),
        # The start: what we wait for instead of a second, and what waits for the tables.
        (TableManager, "on_start", "await self.sleep(1.0) if not self.should_stop: await self._update_channels()"),
        (TableManager, "on_start", "await self.recovery.start()"),
        (Conductor, "_subscriber", "await self.app.tables.wait_until_tables_registered()"),
        (Topic, "__aiter__", "self.app.topics.add(cast(TopicT, channel))"),
        # The end of the process: remaining tasks are cancelled and then awaited.
        (mode.Worker, "_gather_all", "task.cancel()"),
        (mode.Worker, "_shutdown_loop", "self._gather_all()"),
        (mode.Worker, "_shutdown_loop", "self._sentinel_task()"),
        (mode.Worker, "_shutdown_loop", log_setup._CRASH),
        (aiokafka.AIOKafkaConsumer, "start", "fetch_max_wait_ms=self._fetch_max_wait_ms"),
        # Requests are paced. A cancelled request has the same result as upstream's.
        (aiokafka.AIOKafkaConsumer, "start", "self._fetcher = Fetcher("),
        (Fetcher, "_fetch_requests_routine", "self._proc_fetch_request(assignment, node_id, request)"),
        (Fetcher, "_proc_fetch_request", "except asyncio.CancelledError:"),
        # The set of messages in flight, in which a fetch is replaced by its batches.
        (faust_consumer.Consumer, "__init__", "self._unacked_messages = WeakSet()"),
    ],
)
def test_upstream_still_calls_what_we_replace(owner: type, method: str, needed: str) -> None:
    """Upstream still calls the places that lead to our bookkeeping."""
    found = getattr(owner, method)
    function = getattr(found, "fun", found)  # a task of a service wraps its function
    source = re.sub(r"\s+", " ", inspect.getsource(function))
    assert needed in source


@pytest.mark.parametrize("attribute", ["_unacked_messages", "_waiting_for_ack", "_n_acked", "flow_active"])
def test_private_attributes(attribute: str) -> None:
    """Upstream sets the attributes that the transport reads or writes."""
    source = inspect.getsource(faust_consumer.Consumer)
    assert re.search(rf"self\.{attribute}\b(: [^=]+)? = ", source) or f"    {attribute}:" in source


@pytest.mark.parametrize(
    ("generation", "member", "joined"),
    [(7, "m", True), (8, "m", False), (-1, "", False)],
    ids=["joined", "joined anew", "nobody"],
)
def test_a_batch_belongs_to_the_generation_that_was_placed(generation: int, member: str, joined: bool) -> None:
    """Transactions need the identity at the time of the fetch. A batch of another generation has none."""
    coordinator = SimpleNamespace(generation=generation, member_id=member)
    consumer: Any = SimpleNamespace(
        app=SimpleNamespace(consumer_generation_id=7, conf=SimpleNamespace(id="group")),
        _thread=SimpleNamespace(_ensure_consumer=lambda: SimpleNamespace(_coordinator=coordinator)),
        _joined=(-1, b""),
    )
    assert joined is BatchConsumer._join(consumer)
    named = BatchConsumer.membership(consumer, SimpleNamespace(generation_id=7))
    assert (group_metadata("group", 7, "m") if joined else None) == named
    assert BatchConsumer.membership(consumer, SimpleNamespace(generation_id=6)) is None


def test_our_thread_is_used() -> None:
    """The consumer creates our thread. Otherwise aborted records would be read."""
    assert "BatchConsumerThread(" in inspect.getsource(BatchConsumer._new_consumer_thread)
    assert issubclass(BatchConsumerThread, driver.AIOKafkaConsumerThread)


def test_notify_takes_none() -> None:
    """`notify` can be called when nobody waits."""
    notify(None)


def test_the_worker_takes_our_keywords() -> None:
    """The worker can start without setting up logging or taking over standard output."""
    accepted = inspect.signature(faust.Worker.__init__).parameters
    assert {"loglevel", "quiet", "redirect_stdouts"} <= accepted.keys()
    assert "override_logging" in inspect.signature(mode.Worker.__init__).parameters
