"""Ask brokers about topics, offsets and permissions, and create missing topics at startup."""

from __future__ import annotations

import difflib
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import closing
from functools import cached_property
from typing import Any, Literal, TypeVar

from confluent_kafka import (
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AclOperation, AdminClient, ConfigResource, NewTopic, OffsetSpec, ResourceType
from msgspec import Struct

from cdc_core.kafka_tokens import TokenError, require_token
from translator.config.settings import Settings
from translator.errors import ConfigError, FatalError, RetryableError
from translator.kafka.client_errors import ClientErrors
from translator.kafka.retry import retry_until

Answer = TypeVar("Answer")

_TIMEOUT = 20.0
_ENDS: Mapping[str, OffsetSpec] = {
    "earliest": OffsetSpec.earliest(),  # type: ignore[no-untyped-call]  # the library left its type out
    "latest": OffsetSpec.latest(),  # type: ignore[no-untyped-call]  # as above
}
DENIED = frozenset(
    {
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    }
)
_AWAY = frozenset(
    {
        KafkaError._TRANSPORT,
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._RESOLVE,
        KafkaError._TIMED_OUT,
        KafkaError._TIMED_OUT_QUEUE,
        KafkaError._WAIT_COORD,
        KafkaError.REQUEST_TIMED_OUT,
        KafkaError.NETWORK_EXCEPTION,
        KafkaError.BROKER_NOT_AVAILABLE,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.NOT_CONTROLLER,
    }
)
"""Errors which mean that no broker responds, or that the required one does not. The same request may succeed later.
"""
SOON_SECONDS = 5.0
"""Shorter timeout for requests that are retried."""


class TopicFacts(Struct, frozen=True):
    """The broker's view of a topic."""

    id: str
    partitions: int


class Committed(Struct, frozen=True):
    """A group's offset, and the metadata committed with it."""

    offset: int
    note: str


class GroupMember(Struct, frozen=True):
    """A process in a consumer group.

    Args:
        partitions: the partitions that the process owns, in ascending order. Empty during a rebalance.
    """

    name: str
    partitions: tuple[tuple[str, int], ...]


class TopicAdmin:
    """The admin client and the requests that the translator sends with it."""

    def __init__(self, connection: Mapping[str, Any]) -> None:
        self._complaints: ClientErrors | None = connection.get("error_cb")
        # We log the reason why no broker can be reached. librdkafka would log it ten times a second.
        self._client = {**connection, "log_level": 0}

    @cached_property
    def _admin(self) -> AdminClient:
        """The client, which is created when it is first needed. Keep a reference. If an AdminClient is
        garbage-collected, it destroys the futures that it returned.
        """
        return self._new_admin()

    def _new_admin(self) -> AdminClient:
        self._require_token()
        try:
            return AdminClient(self._client)
        except KafkaException as error:
            raise ConfigError(f"kafka: {_reason(error)}") from None

    def _require_token(self) -> None:
        try:
            require_token(self._client)
        except TokenError as error:
            raise RetryableError(str(error)) from None

    def wait_for_broker(self, seconds: float, say: Callable[[str], None]) -> None:
        """Wait until a broker responds, and report the wait.

        Raises:
            RetryableError: no broker responded in time.
            ConfigError: a broker rejects this client or is not trusted, so waiting would not help.
        """
        retry_until("broker", self._reach, seconds, say)

    def _reach(self, seconds: float) -> None:
        try:
            self._admin.list_topics(timeout=min(5.0, seconds))
        except KafkaException as error:
            self._admin.poll(0)  # errors arrive through the callback
            complaints = self._complaints
            if complaints is not None and (refusal := complaints.refusal(needed=False)):
                raise ConfigError(f"kafka: {refusal}") from None
            raise RetryableError((complaints and complaints.last) or _reason(error)) from None

    def names(self) -> set[str]:
        """Return all topics that this user can see.

        Raises:
            RetryableError: no broker responds.
        """
        try:
            return set(self._admin.list_topics(timeout=_TIMEOUT).topics)
        except KafkaException as error:
            raise RetryableError(f"no broker returned a list of topics: {_reason(error)}") from None

    def ensure(self, settings: Settings) -> None:
        """Create missing output topics, or report them.

        Raises:
            ConfigError: topics are missing and `topics.create` is false, or this user may not create them.
            RetryableError: no broker responds.
            FatalError: the broker does not create a topic.
        """
        self.make(_output_topics(settings), may_create=settings.topics.create)

    def make(self, topics: Iterable[NewTopic], *, may_create: bool) -> None:
        """Create the given topics if they are missing, or report them.

        Raises:
            ConfigError, RetryableError, FatalError: see `ensure`.
        """
        there = self.names()
        wanted = [topic for topic in topics if topic.topic not in there]
        if not wanted:
            return
        names = ", ".join(topic.topic for topic in wanted)
        if not may_create:
            raise ConfigError(f"missing topics: {names}; create them or set topics.create: true")
        for name, future in self._admin.create_topics(wanted).items():
            try:
                _answer(f"cannot create topic {name}", future)
            except KafkaException as error:
                code = error.args[0].code()
                if code in DENIED:
                    raise ConfigError(
                        f"topic {name}: this user can neither see nor create it. Grant the permission, or create "
                        "the topic and set topics.create: false"
                    ) from None
                if code != KafkaError.TOPIC_ALREADY_EXISTS:  # another process in the group can create it first
                    raise FatalError(f"cannot create topic {name}: {_reason(error)}") from None
        self._wait_for_topics({topic.topic for topic in wanted})

    def _wait_for_topics(self, names: set[str]) -> None:
        """Wait until the brokers know a new topic. Right after a topic is created, they may still report that it does
        not exist.
        """
        deadline = time.monotonic() + _TIMEOUT
        while absent := names - self.names():
            if time.monotonic() > deadline:
                raise FatalError(f"created, but still missing after {_TIMEOUT:g} s: {', '.join(sorted(absent))}")
            time.sleep(0.1)

    def describe(self, names: Iterable[str], right: AclOperation = AclOperation.READ) -> dict[str, TopicFacts]:
        """Return facts about topics that must exist.

        Args:
            right: the permission that this user needs on the topics.

        Raises:
            ConfigError: a topic does not exist, or the permission is missing.
            RetryableError: no broker responds.
        """
        facts = {}
        asked = self._admin.describe_topics(TopicCollection(list(names)), include_authorized_operations=True)
        for name, future in asked.items():
            try:
                described = _answer(f"topic {name}", future)
            except KafkaException as error:
                if error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                    raise ConfigError(self._missing(name)) from None
                raise ConfigError(f"topic {name}: {_reason(error)}") from None
            _check_right(f"topic {name}", described.authorized_operations, right)
            facts[name] = TopicFacts(str(described.topic_id), len(described.partitions))
        return facts

    def _missing(self, name: str) -> str:
        near = difflib.get_close_matches(name, self.names(), n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        return f"topic {name} does not exist or is not visible to this user{hint}"

    def check_group(self, group: str) -> None:
        """Check that this user may be a group member. If nothing shows this yet, joining the group will.

        Raises:
            ConfigError: this user is not allowed to join the group.
        """
        (future,) = self._admin.describe_consumer_groups(
            [group], include_authorized_operations=True, request_timeout=SOON_SECONDS
        ).values()
        try:
            described = _answer(f"group {group}", future)
        except RetryableError:
            return
        except KafkaException as error:
            if error.args[0].code() in DENIED:
                raise ConfigError(
                    f"group {group}: this user is not allowed to use it; docs/operate/configuration.md lists "
                    "the required permissions"
                ) from None
            return
        _check_right(f"group {group}", described.authorized_operations, AclOperation.READ)

    def members(self, group: str) -> list[GroupMember] | None:
        """Return the members of a group, sorted by name, or None if the brokers do not report them."""
        (future,) = self._admin.describe_consumer_groups([group], request_timeout=SOON_SECONDS).values()
        try:
            described = _answer(f"group {group}", future)
        except (RetryableError, KafkaException) as error:
            known = isinstance(error, KafkaException) and error.args[0].code() == KafkaError.GROUP_ID_NOT_FOUND
            return [] if known else None
        found = [
            GroupMember(
                f"{member.group_instance_id or member.client_id} at {member.host.removeprefix('/')}",
                tuple(sorted((place.topic, place.partition) for place in member.assignment.topic_partitions)),
            )
            for member in described.members
        ]
        return sorted(found, key=lambda member: (member.name, member.partitions))

    def ids(self, names: Iterable[str]) -> dict[str, str]:
        """Return topic ids. Topics that do not exist are left out.

        Raises:
            RetryableError: no broker responds.
        """
        found = {}
        for name, future in self._admin.describe_topics(
            TopicCollection(list(names)), request_timeout=SOON_SECONDS
        ).items():
            try:
                found[name] = str(_answer(f"topic {name}", future).topic_id)
            except RetryableError:
                # While the broker that this client considers the controller is down, the client does not query any
                # other broker (librdkafka 2.16). A new client does.
                self._admin = self._new_admin()
                raise
            except KafkaException as error:
                if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                    raise RetryableError(f"topic {name}: {_reason(error)}") from None
        return found

    def committed(self, group: str, partitions: Iterable[tuple[str, int]]) -> dict[tuple[str, int], Committed]:
        """Return a group's committed offsets, for partitions that have a committed offset. Waits for open transactions.

        Raises:
            RetryableError: no broker responds.
        """
        asked = [TopicPartition(*where) for where in partitions]
        found = {}
        try:
            # The admin client is not used here. After a broker outage, its request for group offsets is never answered
            # or crashes the process (librdkafka 2.16). A consumer of committed records requests stable offsets.
            with closing(self._reader(group)) as reader:
                for place in reader.committed(asked, timeout=SOON_SECONDS):
                    if place.error is not None:
                        raise RetryableError(f"{place.topic}/{place.partition}: {place.error.str()}")
                    if place.offset >= 0:
                        found[place.topic, place.partition] = Committed(place.offset, _note(place))
        except KafkaException as error:
            text = f"offsets of group {group}: {_reason(error)}"
            raise RetryableError(f"{text}; an open transaction can also be the cause") from None
        return found

    def _reader(self, group: str) -> Consumer:
        """Connect to a group without joining it."""
        self._require_token()
        return Consumer(
            {**self._client, "group.id": group, "enable.auto.commit": False, "isolation.level": "read_committed"}
        )

    def offsets(
        self, partitions: Iterable[tuple[str, int]], at: int | Literal["earliest", "latest"], *, stable: bool = False
    ) -> dict[tuple[str, int], int]:
        """Return partition offsets. If there is no record at or after the given time, the offset is -1.

        Args:
            at: a time in milliseconds, `earliest` or `latest`.
            stable: `latest` is the last offset that a consumer of committed records can see now.

        Raises:
            RetryableError: no broker responds.
        """
        level = IsolationLevel.READ_COMMITTED if stable else IsolationLevel.READ_UNCOMMITTED
        spec = OffsetSpec.for_timestamp(at) if isinstance(at, int) else _ENDS[at]
        asked = {TopicPartition(*where): spec for where in partitions}
        found = {}
        self._require_token()
        # A new client, because a client created before a leader change can keep the old leader epoch forever.
        admin = AdminClient(self._client)
        for where, future in admin.list_offsets(asked, isolation_level=level, request_timeout=SOON_SECONDS).items():
            place = f"{where.topic}/{where.partition}"
            try:
                offset = int(_answer(place, future).offset)
            except KafkaException as error:
                raise RetryableError(f"{place}: {_reason(error)}") from None
            if offset < -1:  # librdkafka returns OFFSET_INVALID without an error while brokers are down
                raise RetryableError(f"{place}: no broker returned its offsets")
            found[where.topic, where.partition] = offset
        return found

    def max_message_bytes(self, names: Iterable[str]) -> dict[str, int]:
        """Return each topic's `max.message.bytes`: the maximum record batch size.

        Raises:
            ConfigError: a topic's configuration cannot be read.
            RetryableError: no broker responds.
        """
        return {name: int(settings["max.message.bytes"].value) for name, settings in self._settings(names)}

    def configuration(self, name: str) -> Mapping[str, str]:
        """Return all settings of a topic.

        Raises:
            ConfigError: the topic's configuration cannot be read.
            RetryableError: no broker responds.
        """
        ((_, settings),) = self._settings([name])
        return {key: entry.value for key, entry in settings.items()}

    def is_compacted(self, name: str) -> bool:
        """Return whether Kafka may have removed individual records from a topic (compaction).

        Raises:
            ConfigError: the topic's configuration cannot be read.
            RetryableError: no broker responds.
        """
        return "compact" in self.configuration(name)["cleanup.policy"]

    def _settings(self, names: Iterable[str]) -> Iterator[tuple[str, Mapping[str, Any]]]:
        resources = [ConfigResource(ResourceType.TOPIC, name) for name in names]
        for topic, future in self._admin.describe_configs(resources).items():
            what = f"configuration of topic {topic.name}"
            try:
                yield topic.name, _answer(what, future)
            except KafkaException as error:
                raise ConfigError(f"{what}: {_reason(error)}") from None


def _answer(what: str, future: Future[Answer]) -> Answer:
    """Return a broker's response to the admin client. The caller handles errors in the response.

    Raises:
        RetryableError: no broker responds.
        KafkaException: the broker rejects the request.
    """
    try:
        return future.result(_TIMEOUT)
    except TimeoutError:
        raise RetryableError(f"{what}: no broker responded within {_TIMEOUT:g} s") from None
    except KafkaException as error:
        if error.args[0].code() in _AWAY:
            raise RetryableError(f"{what}: {_reason(error)}") from None
        raise


def _check_right(where: str, rights: Collection[AclOperation] | None, right: AclOperation) -> None:
    """Check a permission. If brokers do not report permissions, a missing one is detected only later."""
    if rights and right not in rights:
        raise ConfigError(
            f"{where}: this user lacks the permission {right.name}; docs/operate/configuration.md lists the "
            "required permissions"
        )


def _note(place: TopicPartition) -> str:
    """Return the metadata committed with an offset. The text that librdkafka returns may continue after the end of the
    metadata (`start_offsets`).
    """
    try:
        return place.metadata or ""
    except UnicodeDecodeError as error:
        return error.object.decode(errors="replace")


# Kafka's value for "use default.replication.factor", since version 2.4.
_AS_THE_BROKERS_DO = -1


def _output_topics(settings: Settings) -> list[NewTopic]:
    output, topics = settings.output, settings.topics
    plain: Mapping[str, str] = {}
    compact = {"cleanup.policy": "compact"}
    wanted = [
        (output.topic, topics.partitions, plain),
        *(
            (one.topic, one.partitions or topics.partitions, one.config)
            for one in settings.projections
            if one.template is None
        ),
        (output.dead_letter_topic, topics.partitions, plain),
        # A single partition, because consumers follow these topics as one ordered log.
        (output.schemas_topic, 1, compact),
        (output.metadata_topic, 1, compact),
    ]
    return [new_topic(settings, *one) for one in wanted]


def new_topic(settings: Settings, name: str, partitions: int, config: Mapping[str, str]) -> NewTopic:
    """Return a new topic with the configured number of replicas."""
    copies = settings.topics.replication_factor or _AS_THE_BROKERS_DO
    return NewTopic(name, partitions, copies, config={**config})


def _reason(error: KafkaException) -> str:
    return str(error.args[0].str()) or str(error.args[0].name())
