"""Questions to brokers: topics, offsets, rights; and the topics that are missing, made at start."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import closing
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
"""No broker answers, or not the one that could: the same question may be answered later."""
SOON_SECONDS = 5.0
"""For an answer to what is asked again when none comes."""


class TopicFacts(Struct, frozen=True):
    """The broker's facts about a topic."""

    id: str
    partitions: int


class Committed(Struct, frozen=True):
    """An offset of a group, and what was written beside it."""

    offset: int
    note: str


class TopicAdmin:
    """The admin client and what is asked of it."""

    def __init__(self, connection: Mapping[str, Any]) -> None:
        self._complaints: ClientErrors | None = connection.get("error_cb")
        # We say why no broker is reached; its log would say it ten times a second.
        self._client = {**connection, "log_level": 0}
        # A reference is kept: an AdminClient that is collected destroys the futures it gave.
        self._admin = self._new_admin()

    def _new_admin(self) -> AdminClient:
        try:
            return AdminClient(self._client)
        except KafkaException as error:
            raise ConfigError(f"kafka: {_reason(error)}") from None

    def wait_for_broker(self, seconds: float, say: Callable[[str], None]) -> None:
        """Waits until a broker answers, saying so.

        Raises:
            RetryableError: none did in time.
            ConfigError: one refuses us, or is not whom we trust; waiting would not help.
        """
        retry_until("broker", self._reach, seconds, say)

    def _reach(self, seconds: float) -> None:
        try:
            self._admin.list_topics(timeout=min(5.0, seconds))
        except KafkaException as error:
            self._admin.poll(0)  # complaints come in
            complaints = self._complaints
            if complaints is not None and (refusal := complaints.refusal(needed=False)):
                raise ConfigError(f"kafka: {refusal}") from None
            raise RetryableError((complaints and complaints.last) or _reason(error)) from None

    def names(self) -> set[str]:
        """All topics that this user may see.

        Raises:
            RetryableError: no broker answers.
        """
        try:
            return set(self._admin.list_topics(timeout=_TIMEOUT).topics)
        except KafkaException as error:
            raise RetryableError(f"no broker says which topics there are: {_reason(error)}") from None

    def ensure(self, settings: Settings) -> None:
        """Creates the missing output topics, or names them.

        Raises:
            ConfigError: topics are missing and `topics.create` is false, or our user may not create them.
            RetryableError: no broker answers.
            FatalError: the broker does not create one.
        """
        self.make(_output_topics(settings), may_create=settings.topics.create)

    def make(self, topics: Iterable[NewTopic], *, may_create: bool) -> None:
        """Create those of the topics that are missing, or name them.

        Raises:
            ConfigError, RetryableError, FatalError: as `ensure`.
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
                        f"topic {name}: our user may neither see nor create it: give it the right, or create the topic "
                        "and set topics.create: false"
                    ) from None
                if code != KafkaError.TOPIC_ALREADY_EXISTS:  # another process of the group may have been faster
                    raise FatalError(f"cannot create topic {name}: {_reason(error)}") from None
        self._wait_for_topics({topic.topic for topic in wanted})

    def _wait_for_topics(self, names: set[str]) -> None:
        """Brokers learn of a new topic a moment after it is created, and until then deny that it exists."""
        deadline = time.monotonic() + _TIMEOUT
        while absent := names - self.names():
            if time.monotonic() > deadline:
                raise FatalError(f"created, but not there after {_TIMEOUT:g} s: {', '.join(sorted(absent))}")
            time.sleep(0.1)

    def describe(self, names: Iterable[str], right: AclOperation = AclOperation.READ) -> dict[str, TopicFacts]:
        """Facts of topics that must exist.

        Args:
            right: what our user must be allowed to do there.

        Raises:
            ConfigError: one does not exist, or the right to it is missing.
            RetryableError: no broker answers.
        """
        facts = {}
        asked = self._admin.describe_topics(TopicCollection(list(names)), include_authorized_operations=True)
        for name, future in asked.items():
            try:
                described = _answer(f"topic {name}", future)
            except KafkaException as error:
                raise ConfigError(f"topic {name}: {_reason(error)}") from None
            _check_right(f"topic {name}", described.authorized_operations, right)
            facts[name] = TopicFacts(str(described.topic_id), len(described.partitions))
        return facts

    def check_group(self, group: str) -> None:
        """Check that our user may be a member of the group. Where nobody can tell yet, joining it will.

        Raises:
            ConfigError: it may not.
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
                    f"group {group}: our user may not use it; docs/operate/configuration.md lists its rights"
                ) from None
            return
        _check_right(f"group {group}", described.authorized_operations, AclOperation.READ)

    def ids(self, names: Iterable[str]) -> dict[str, str]:
        """Ids of topics; those that do not exist are left out.

        Raises:
            RetryableError: no broker answers.
        """
        found = {}
        for name, future in self._admin.describe_topics(
            TopicCollection(list(names)), request_timeout=SOON_SECONDS
        ).items():
            try:
                found[name] = str(_answer(f"topic {name}", future).topic_id)
            except RetryableError:
                # While the broker is away that it took for the controller, this client asks no other (librdkafka 2.16);
                # a new one does.
                self._admin = self._new_admin()
                raise
            except KafkaException as error:
                if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                    raise RetryableError(f"topic {name}: {_reason(error)}") from None
        return found

    def committed(self, group: str, partitions: Iterable[tuple[str, int]]) -> dict[tuple[str, int], Committed]:
        """Return the offsets that a group has committed, of partitions for which it has; wait for open transactions.

        Raises:
            RetryableError: no broker answers.
        """
        asked = [TopicPartition(*where) for where in partitions]
        found = {}
        try:
            # Not by the admin client: when brokers were away its question for the offsets of a group is never answered
            # again, or ends the process (librdkafka 2.16). A reader of committed records asks for stable offsets.
            with closing(self._reader(group)) as reader:
                for place in reader.committed(asked, timeout=SOON_SECONDS):
                    if place.error is not None:
                        raise RetryableError(f"{place.topic}/{place.partition}: {place.error.str()}")
                    if place.offset >= 0:
                        found[place.topic, place.partition] = Committed(place.offset, _note(place))
        except KafkaException as error:
            text = f"offsets of group {group}: {_reason(error)}"
            raise RetryableError(f"{text}; a transaction that is open holds them up, too") from None
        return found

    def _reader(self, group: str) -> Consumer:
        """Knows a group, and is no member of it."""
        return Consumer(
            {**self._client, "group.id": group, "enable.auto.commit": False, "isolation.level": "read_committed"}
        )

    def offsets(
        self, partitions: Iterable[tuple[str, int]], at: int | Literal["earliest", "latest"], *, stable: bool = False
    ) -> dict[tuple[str, int], int]:
        """Offsets of partitions; -1 for a time after which there is no record.

        Args:
            at: milliseconds of a time, or one of the ends.
            stable: `latest` is the end of what a reader of committed records may see by now.

        Raises:
            RetryableError: no broker answers.
        """
        level = IsolationLevel.READ_COMMITTED if stable else IsolationLevel.READ_UNCOMMITTED
        spec = OffsetSpec.for_timestamp(at) if isinstance(at, int) else _ENDS[at]
        asked = {TopicPartition(*where): spec for where in partitions}
        found = {}
        admin = AdminClient(self._client)  # one that was there before a leader moved may know its old epoch for ever
        for where, future in admin.list_offsets(asked, isolation_level=level, request_timeout=SOON_SECONDS).items():
            place = f"{where.topic}/{where.partition}"
            try:
                offset = int(_answer(place, future).offset)
            except KafkaException as error:
                raise RetryableError(f"{place}: {_reason(error)}") from None
            if offset < -1:  # librdkafka gives OFFSET_INVALID, and no error, while brokers are away
                raise RetryableError(f"{place}: no broker says its offsets")
            found[where.topic, where.partition] = offset
        return found

    def max_message_bytes(self, names: Iterable[str]) -> dict[str, int]:
        """`max.message.bytes` of each topic: how large a record batch may be there.

        Raises:
            ConfigError: a topic's configuration cannot be read.
            RetryableError: no broker answers.
        """
        return {name: int(settings["max.message.bytes"].value) for name, settings in self._settings(names)}

    def configuration(self, name: str) -> Mapping[str, str]:
        """All settings of a topic.

        Raises:
            ConfigError: the topic's configuration cannot be read.
            RetryableError: no broker answers.
        """
        ((_, settings),) = self._settings([name])
        return {key: entry.value for key, entry in settings.items()}

    def is_compacted(self, name: str) -> bool:
        """Say whether Kafka may have taken single records out of a topic.

        Raises:
            ConfigError: the topic's configuration cannot be read.
            RetryableError: no broker answers.
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
    """Return the answer of a broker to the admin client. A refusal of its own is for the caller to judge.

    Raises:
        RetryableError: none answers.
        KafkaException: it refuses.
    """
    try:
        return future.result(_TIMEOUT)
    except TimeoutError:
        raise RetryableError(f"{what}: no broker answered within {_TIMEOUT:g} s") from None
    except KafkaException as error:
        if error.args[0].code() in _AWAY:
            raise RetryableError(f"{what}: {_reason(error)}") from None
        raise


def _check_right(where: str, rights: Collection[AclOperation] | None, right: AclOperation) -> None:
    """Brokers that say nothing about rights find out later."""
    if rights and right not in rights:
        raise ConfigError(
            f"{where}: our user lacks the right {right.name}; docs/operate/configuration.md lists its rights"
        )


def _note(place: TopicPartition) -> str:
    """Return the note beside an offset. In the text of librdkafka anything may lie behind its end (`start_offsets`)."""
    try:
        return place.metadata or ""
    except UnicodeDecodeError as error:
        return error.object.decode(errors="replace")


# Kafka's word for "by default.replication.factor", since version 2.4.
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
        # One partition: a reader follows them as one ordered log.
        (output.schemas_topic, 1, compact),
        (output.metadata_topic, 1, compact),
    ]
    return [new_topic(settings, *one) for one in wanted]


def new_topic(settings: Settings, name: str, partitions: int, config: Mapping[str, str]) -> NewTopic:
    """Return a topic to be made, with as many copies as the settings say."""
    copies = settings.topics.replication_factor or _AS_THE_BROKERS_DO
    return NewTopic(name, partitions, copies, config={**config})


def _reason(error: KafkaException) -> str:
    return str(error.args[0].str()) or str(error.args[0].name())
