"""Where reading resumes: gaps, start positions, and what is written before reading."""

import asyncio
import uuid

import msgspec
import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from dev.servers.broker import Broker
from tests.integration._workers import commit_noted, committing
from translator.codecs.record import Record
from translator.errors import FatalError
from translator.kafka.admin import TopicAdmin, TopicFacts
from translator.service.metrics import Metrics
from translator.service.start_offsets import AddedTopic, GapError, StartOffsets


class Bench:
    """Positions in a fresh topic of two partitions with 20 records each, and what was confirmed."""

    def __init__(self, broker: Broker, *, accept_gap: bool = False, start: str = "earliest") -> None:
        self.topic = f"positions-{uuid.uuid4().hex[:8]}"
        self.group = f"group-{self.topic}"
        self.bootstrap = broker.bootstrap
        self.client = {"bootstrap.servers": broker.bootstrap, "log_level": 0}
        self.admin = AdminClient(self.client)
        self.admin.create_topics([NewTopic(self.topic, 2, 1)])[self.topic].result(20)
        producer = Producer(self.client)
        for number in range(40):
            producer.produce(self.topic, b"x", partition=number % 2)
        assert 0 == producer.flush(20)
        self.confirmed: list[Record] = []
        self.metrics = Metrics("test")
        topics = TopicAdmin(self.client)
        self.positions = StartOffsets(topics, self.group, self.metrics, self._confirm, accept_gap=accept_gap)
        (self.facts,) = topics.describe([self.topic]).values()
        self.positions.add(self.topic, AddedTopic("s", self.facts, start))  # type: ignore[arg-type]

    async def _confirm(self, record: Record) -> None:
        self.confirmed.append(record)

    def commit(self, partition: int, offset: int, note: str | None = None) -> None:
        said = self.positions.note(self.topic) if note is None else note
        asyncio.run(commit_noted(self.bootstrap, self.group, self.topic, partition, offset, said))

    def delete_before(self, partition: int, offset: int) -> None:
        for future in self.admin.delete_records([TopicPartition(self.topic, partition, offset)]).values():
            future.result(20)

    def find(self, *partitions: int) -> tuple[dict[int, int], dict[int, int]]:
        found = asyncio.run(self.positions.find((self.topic, number) for number in partitions or (0, 1)))
        offsets, new = ({place[1]: offset for place, offset in which.items()} for which in (found.offsets, found.new))
        return offsets, new


def test_it_reads_on_where_the_group_was(broker: Broker) -> None:
    """Committed offsets are used, including 0 and the end. A partition without one gets a start position to commit."""
    bench = Bench(broker)
    bench.commit(0, 20)
    bench.delete_before(1, 5)
    assert ({0: 20, 1: 5}, {1: 5}) == bench.find()
    fresh = Bench(broker, start="latest")
    fresh.commit(0, 0)
    assert ({0: 0, 1: 20}, {1: 20}) == fresh.find()


@pytest.mark.parametrize(
    ("offset", "note", "said"),
    [
        (
            3,
            None,
            "deleted before they were read; committed offset 3, earliest available offset 8, end 20: 5 records",
        ),
        (3, "", "5 records are missing"),
        (21, None, "the topic ends before the committed offset"),
        (10, "topic=another;", "was deleted and recreated (topic=another, now "),
        (10, "topic=another\0", "was deleted and recreated (topic=another, now "),
    ],
    ids=["deleted", "without a note", "beyond the end", "another topic's", "another topic's, as it was noted before"],
)
def test_a_gap(broker: Broker, offset: int, note: str | None, said: str) -> None:
    """A gap is rejected with all numbers. If accepted, it is recorded, and reading starts at the earliest offset."""
    bench = Bench(broker)
    bench.delete_before(0, 8)
    bench.commit(0, offset, note)
    with pytest.raises(GapError) as caught:
        bench.find(0)
    assert said in str(caught.value)
    assert "--accept-gap" in str(caught.value)
    assert [] == bench.confirmed
    bench.positions._accept_gap = True
    assert ({0: 8}, {0: 8}) == bench.find(0)
    (mark,) = bench.confirmed
    assert f"!gap/{bench.topic}/0/{bench.facts.id}/{offset}" == (mark.key or b"").decode()
    assert 8 == msgspec.json.decode(mark.value or b"")["earliest"]
    assert "cdc_gaps_accepted_total" in bench.metrics.exposition().decode()


def test_a_position_that_is_lost_while_reading(broker: Broker) -> None:
    """A gap is reported if it explains the loss. Otherwise the error does not ask for a reload of tables."""
    bench = Bench(broker)
    bench.commit(0, 5)
    (place,) = [(bench.topic, 0)]
    said = asyncio.run(bench.positions.lost([place], "reading stopped: why"))
    assert (FatalError, True) == (
        type(said),
        str(said).startswith("reading stopped: why. The offsets that the group has committed"),
    )
    bench.delete_before(0, 8)
    assert isinstance(asyncio.run(bench.positions.lost([place], "reading stopped: why")), GapError)


@pytest.mark.parametrize("offset", [8, 20])
def test_the_edges_are_no_gap(broker: Broker, offset: int) -> None:
    """The earliest offset and the end are valid positions."""
    bench = Bench(broker)
    bench.delete_before(0, 8)
    bench.commit(0, offset)
    assert ({0: offset}, {}) == bench.find(0)


def test_a_partition_that_came_later_is_read_from_its_beginning(broker: Broker) -> None:
    """This does not depend on `start`, because the group existed before the partition."""
    bench = Bench(broker, start="latest")
    bench.admin.create_partitions([NewPartitions(bench.topic, 3)])[bench.topic].result(20)
    producer = Producer(bench.client)
    producer.produce(bench.topic, b"x", partition=2)
    assert 0 == producer.flush(20)
    assert ({0: 20, 1: 20, 2: 0}, {0: 20, 1: 20, 2: 0}) == bench.find(0, 1, 2)


def test_a_topic_with_another_id(broker: Broker) -> None:
    """The topic is not read under the id from the start, whether at an assignment or at a check."""
    bench = Bench(broker)
    bench.positions.add(bench.topic, AddedTopic("s", TopicFacts("before", 2), "earliest"))
    with pytest.raises(FatalError, match="deleted and recreated since the start: its id changed from before to "):
        bench.find()
    with pytest.raises(FatalError, match="deleted and recreated since the start"):
        bench.positions.look()


def test_notes_of_many_partitions_are_read_whole(broker: Broker) -> None:
    """A recorded gap is not reported again, whatever memory follows the note, because the note has its own end."""
    bench = Bench(broker)

    async def scenario() -> None:
        async with committing(bench.bootstrap, bench.group, bench.topic) as commit:
            for number in range(25):
                committed = {(bench.topic, 0): number % 20, (bench.topic, 1): (number + 7) % 20}
                for (_, partition), offset in committed.items():
                    await commit(partition, offset, bench.positions.note(bench.topic))
                assert committed == (await bench.positions.find(committed)).offsets

    asyncio.run(scenario())
