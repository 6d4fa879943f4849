"""The benchmark of the sink, as far as it goes without Spark: its history reaches the topic."""

from __future__ import annotations

from bench.sink.events import Workload
from bench.sink.feeder import HistorySize, create_topic, feed
from dev.broker import Broker


def test_the_feeder(broker: Broker) -> None:
    """Each part is written by a process of its own, behind what is there."""
    create_topic(broker.bootstrap)
    history = HistorySize(tables=2, load=30, warm_up=20, changes=10)
    assert [30, 50, 60] == [sum(feed(broker.bootstrap, history, part)) for part in range(3)]


def test_a_workload_knows_its_rows() -> None:
    """What is in the tables at the end can be compared with it."""
    workload = Workload(3)
    assert 2 == len(list(workload.rows_of(1, 2)))
    assert [0, 2, 0] == [len(rows) for rows in workload.rows]
