"""The parts of the sink benchmark that need no Spark work: its history reaches the topic."""

from __future__ import annotations

from bench.sink.events import Workload
from bench.sink.feeder import Feeder, create_topic, ends
from dev.servers.broker import Broker


def test_the_feeder(broker: Broker) -> None:
    """A process that remembers the rows appends each part to the topic."""
    create_topic(broker.bootstrap)
    with Feeder(broker.bootstrap, tables=2) as feeder:
        written, counts = [], []
        for part, count in ((feeder.load, 30), (feeder.changes, 20), (feeder.changes, 10)):
            written.append(part(count))
            counts.append(sum(ends(broker.bootstrap)))
    assert [30, 50, 60] == counts
    assert all(written)


def test_a_workload_knows_its_rows() -> None:
    """The workload knows the expected final rows of the tables."""
    workload = Workload(3)
    assert 2 == len(list(workload.rows_of(1, 2)))
    assert [0, 2, 0] == [len(rows) for rows in workload.rows]
