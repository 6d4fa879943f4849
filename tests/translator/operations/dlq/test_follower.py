"""A follower of dead letters finds what a reader of the whole topic finds, and reads each record once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from dev.servers.broker import Broker
from tests.translator.operations._replay import AMBIGUOUS, CLEAR, Yard, update
from translator.config.settings import Settings
from translator.operations.dlq import follower, reader
from translator.operations.dlq.follower import LetterFollower


@pytest.fixture
def yard(broker: Broker) -> Iterator[Yard]:
    found = Yard(broker.bootstrap)
    found.feed(0, update(1), b"no JSON", update(2, both=False))
    found.translate(found.settings(AMBIGUOUS))
    yield found
    found.close()


def _same(yard: Yard, settings: Settings, following: LetterFollower) -> int:
    """Compare the follower with a reader, and return how many dead letters both found."""
    expected, found = yard.look(settings), following.look()
    assert expected == found
    return len(found.letters)


def test_the_same_as_a_whole_pass(yard: Yard) -> None:
    """New letters, replays, marks of earlier letters and letters that expired are all seen."""
    settings = yard.settings(CLEAR)
    following = LetterFollower(settings, print)
    assert 2 == _same(yard, settings, following)
    yard.replay(settings)
    _same(yard, settings, following)
    assert [True, False] == sorted((found.replayed for found in following.look().letters), reverse=True)
    yard.feed(1, update(3), b"nor this")
    yard.translate(yard.settings(AMBIGUOUS))  # reads everything again, so there are duplicates as well
    found = _same(yard, settings, following)
    assert 2 < found
    topic = settings.output.dead_letter_topic
    first = [TopicPartition(topic, one.partition, 1) for one in following.look().letters if one.offset == 0]
    admin: Any = AdminClient({"bootstrap.servers": yard.bootstrap})
    for future in admin.delete_records(first).values():
        future.result(20)
    assert found > _same(yard, settings, following)


def test_each_record_is_read_once(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Any] = []
    original = reader.read_dead_letter
    monkeypatch.setattr(reader, "read_dead_letter", lambda *record: read.append(1) or original(*record))
    following = LetterFollower(yard.settings(CLEAR), print)
    assert [2, 2, 2] == [len(following.look().letters) for _ in range(3)]
    assert 2 == len(read)
    # After a long pause, compaction may have removed what ended a mark.
    monkeypatch.setattr(follower, "_MOST_SECONDS", -1.0)
    assert (2, 4) == (len(following.look().letters), len(read))


def test_a_failed_pass_is_read_again(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    following = LetterFollower(yard.settings(CLEAR), print)
    original = reader.read_dead_letter
    calls = iter([True, False])

    def broken(*record: Any) -> Any:
        return original(*record) if next(calls) else 1 / 0

    monkeypatch.setattr(reader, "read_dead_letter", broken)
    with pytest.raises(ZeroDivisionError):
        following.look()
    monkeypatch.setattr(reader, "read_dead_letter", original)
    assert 2 == len(following.look().letters)
