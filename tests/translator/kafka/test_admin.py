"""Topics on the real broker are created or checked, described and read to the end, or the broker is unreachable."""

import uuid
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from dev.servers.broker import Broker
from tests.translator.service._said import Said, tell
from translator.config.settings import Kafka, Output, Projection, Settings, Source, TopicsSettings
from translator.errors import ConfigError, RetryableError
from translator.kafka import admin as admin_module
from translator.kafka.admin import TopicAdmin, _note
from translator.kafka.table_topics import TableTopics
from translator.kafka.topic_reader import TopicReader


@pytest.fixture
def settings(broker: Broker) -> Iterator[Settings]:
    output = Output(topic=f"topics-{uuid.uuid4().hex[:8]}")
    yield Settings(
        kafka=Kafka(bootstrap_servers=broker.bootstrap),
        output=output,
        sources=(Source(name="s", dialect="canal", topics=("raw",)),),
    )
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    made = [name for name in admin.list_topics(timeout=10).topics if name.startswith(output.topic)]
    if made:
        for future in admin.delete_topics(made).values():
            future.result(20)


def topics_of(settings: Settings) -> TopicAdmin:
    return TopicAdmin({"bootstrap.servers": settings.kafka.bootstrap_servers})


def test_what_lies_behind_a_note_may_be_anything() -> None:
    """librdkafka copies notes without a terminator, so arbitrary bytes of memory can follow."""

    class Copied:
        @property
        def metadata(self) -> str:
            return b"topic=abc;\xff\xfe".decode()

    assert _note(Copied()).startswith("topic=abc;")  # type: ignore[arg-type]
    assert "" == _note(TopicPartition("t", 0, 1))


def test_missing_topics_are_created_once(settings: Settings) -> None:
    """The schemas and metadata topics have one partition and are compacted. A second start changes nothing."""
    topics = topics_of(settings)
    topics.ensure(settings)
    topics.ensure(settings)
    output = settings.output
    facts = topics.describe([output.topic, output.dead_letter_topic, output.schemas_topic, output.metadata_topic])
    assert [4, 4, 1, 1] == [fact.partitions for fact in facts.values()]
    assert 4 == len({fact.id for fact in facts.values()})


def test_projections_are_created_as_the_canonical_topic(settings: Settings) -> None:
    """A projection has as many partitions as the canonical topic. Record size limits are reported by topic."""
    projections = (Projection(topic=f"{settings.output.topic}.json", codec="json"),)
    projected = settings.model_copy(update={"projections": projections})
    topics = topics_of(projected)
    topics.ensure(projected)
    assert [4, 4, 4, 1, 1] == [fact.partitions for fact in topics.describe(projected.written_topics).values()]
    assert projected.written_topics == list(topics.max_message_bytes(projected.written_topics))


def test_topics_of_tables_are_made_as_their_projection_says(settings: Settings) -> None:
    """They are created when first opened. Existing ones are checked, and must accept records of the same size."""
    prefix = f"{settings.output.topic}-t."
    config = {"cleanup.policy": "compact"}
    wanted = Projection(topic=f"{prefix}{{table}}", codec="upsert", partitions=3, config=config)
    projected = settings.model_copy(update={"projections": (wanted,)})
    topics, topic = topics_of(projected), f"{prefix}shop.orders"
    topics.ensure(projected)
    assert topic not in topics.names()
    assert wanted.template is not None
    tables = TableTopics(topics, projected, wanted, wanted.template, 5_000, print)
    assert [3, 3] == [tables.open(topic), tables.open(topic)]
    assert topics.is_compacted(topic)
    assert {topic: 5_000} == topics.max_message_bytes([topic])
    larger = TableTopics(topics, projected, wanted, wanted.template, 6_000, print)
    with pytest.raises(ConfigError, match=r"orders accepts records of up to 5000 bytes, but must accept 6000"):
        larger.open(topic)
    strict = projected.model_copy(update={"topics": TopicsSettings(create=False)})
    with pytest.raises(ConfigError, match=r"projection .*: missing topics: .*shop\.items; .*topics\.create: true"):
        TableTopics(topics, strict, wanted, wanted.template, 5_000, print).open(f"{prefix}shop.items")


def test_missing_topics_are_named_when_they_may_not_be_created(settings: Settings) -> None:
    """With topics.create false, a missing topic is a configuration error that names it."""
    strict = settings.model_copy(update={"topics": TopicsSettings(create=False)})
    with pytest.raises(ConfigError, match=f"missing topics: {settings.output.topic}, .*topics.create: true"):
        topics_of(settings).ensure(strict)


def test_a_raw_topic_that_is_not_there_is_named(settings: Settings) -> None:
    """Raw topics are never created. A missing one is a configuration error, whatever is requested about it."""
    with pytest.raises(ConfigError, match=r"^topic no-such-topic does not exist"):
        topics_of(settings).describe(["no-such-topic"])
    with pytest.raises(ConfigError, match=r"^configuration of topic no-such-topic: "):
        topics_of(settings).max_message_bytes(["no-such-topic"])


@pytest.mark.parametrize("follows", [False, True])
def test_a_reader_reads_to_the_end_and_then_follows(settings: Settings, follows: bool) -> None:
    """`to_end` returns the existing records, even of an empty partition. `poll` returns only later ones.

    `follows` affects only how often the broker is polled.
    """
    topics = topics_of(settings)
    topics.ensure(settings)
    name = settings.output.topic
    producer = Producer({"bootstrap.servers": settings.kafka.bootstrap_servers})
    for number in range(5):
        producer.produce(name, b"%d" % number, partition=number % 3)
    producer.flush(20)
    client = {"bootstrap.servers": settings.kafka.bootstrap_servers}
    reader = TopicReader(client, topics.describe([name]), follows=follows)
    assert [b"0", b"1", b"2", b"3", b"4"] == sorted(record.value() for record in reader.to_end())
    producer.produce(name, b"later", partition=3)
    producer.flush(20)
    later = next(values for _ in range(40) if (values := [record.value() for record in reader.poll(0.5)]))
    assert [b"later"] == later
    assert [5, 1] == [sum(reader.next_offset(name, number) for number in range(3)), reader.next_offset(name, 3)]
    reader.close()


def test_a_broker_that_does_not_answer_is_said_and_waited_for(free_port: int) -> None:
    """The start logs that it waits, and fails with a retryable error after the time."""
    topics = TopicAdmin({"bootstrap.servers": f"127.0.0.1:{free_port}", "log_level": 0})
    with pytest.raises(Said, match=r"^waiting for a broker: "):
        topics.wait_for_broker(60, tell)
    with pytest.raises(RetryableError, match="no broker available within 1 s"):
        topics.wait_for_broker(1, lambda _: None)


NOBODY_ANSWERS: dict[str, Callable[[TopicAdmin, Settings], object]] = {
    "names": lambda topics, _: topics.names(),
    "ensure": lambda topics, settings: topics.ensure(settings),
    "created": lambda topics, settings: topics._wait_for_topics({settings.output.topic}),
    "describe": lambda topics, _: topics.describe(["raw"]),
    "ids": lambda topics, _: topics.ids(["raw"]),
    "committed": lambda topics, _: topics.committed("group", [("raw", 0)]),
    "offsets": lambda topics, _: topics.offsets([("raw", 0)], "latest"),
    "sizes": lambda topics, _: topics.max_message_bytes(["raw"]),
    "compacted": lambda topics, _: topics.is_compacted("raw"),
}


@pytest.fixture
def lost(free_port: int, monkeypatch: pytest.MonkeyPatch) -> tuple[TopicAdmin, Settings]:
    """A client of a stopped broker, with a short timeout."""
    monkeypatch.setattr(admin_module, "_TIMEOUT", 0.5)
    monkeypatch.setattr(admin_module, "SOON_SECONDS", 0.5)
    kafka = Kafka(bootstrap_servers=f"127.0.0.1:{free_port}")
    settings = Settings(kafka=kafka, sources=(Source(name="s", dialect="canal", topics=("raw",)),))
    return TopicAdmin({"bootstrap.servers": kafka.bootstrap_servers, "log_level": 0}), settings


@pytest.mark.parametrize("asked", NOBODY_ANSWERS)
def test_a_broker_that_is_lost(lost: tuple[TopicAdmin, Settings], asked: str) -> None:
    """Every request raises our own error about the unreachable broker, which is not a configuration error."""
    with pytest.raises(RetryableError):
        NOBODY_ANSWERS[asked](*lost)


def test_the_group_is_not_judged_while_the_broker_is_lost(lost: tuple[TopicAdmin, Settings]) -> None:
    """The group's permissions cannot be checked yet, and are checked when joining."""
    lost[0].check_group("group")
