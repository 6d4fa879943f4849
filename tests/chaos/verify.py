"""Compare the messages fed with the records written."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import Consumer, KafkaError, TopicPartition

from tests.chaos.messages import DEAD, EVENT, EXPECT, NOTHING

Place = tuple[str, int, int]
"""(id of the raw topic, partition, offset)."""

_SHOWN = 5


@dataclass
class Verdict:
    """The faults as counts, with the first places of each in `examples`."""

    messages: int = 0
    events: int = 0
    dead_letters: int = 0
    lost: int = 0
    invented: int = 0  # without a fed message, or with other content
    duplicates: int = 0
    different: int = 0  # duplicates that differ from the first occurrence
    disorder: int = 0  # first occurrences of a key or of a raw partition that are out of order
    stale: int = 0  # keys whose last record in the topic is an older duplicate; readers compare `pos`
    examples: list[str] = field(default_factory=list)

    @property
    def good(self) -> bool:
        return (self.lost, self.invented, self.different, self.disorder) == (0, 0, 0, 0)

    def wrong(self, what: str, place: object) -> None:
        if len(self.examples) < _SHOWN:
            self.examples.append(f"{what} {place}")


def judge(
    required: Mapping[Place, str], allowed: Mapping[Place, str], events: Iterable[Any], letters: Iterable[Any]
) -> Verdict:
    """Count the faults.

    Args:
        required: expected results of the messages that a reader of the raw topic finds.
        allowed: expected results of everything that was fed, including messages that compaction may have removed.
        events, letters: records of the canonical and the dead-letter topic, each partition in order.
    """
    verdict = Verdict(messages=len(required))
    seen: dict[tuple[Place, int], bytes] = {}
    newest: dict[int, int] = {}  # sequence by key, for first occurrences
    last: dict[int, int] = {}  # sequence by key, for all occurrences
    reached: dict[tuple[str, int], tuple[int, int]] = {}
    for record in events:
        verdict.events += 1
        place, number, content = _event(json.loads(record.value()))
        if allowed.get(place) != content:
            verdict.invented += 1
            verdict.wrong(f"invented: {content}, expected {allowed.get(place)}, at", place)
            continue
        row = tuple(map(int, content.split("/")[1:])) if content != EVENT else None
        if row:
            last[row[0]] = row[1]
        if not _first(verdict, seen, (place, number), record):
            continue
        where, offset = place[:2], place[2]
        late = (offset, number) < reached.get(where, (-1, 0))
        reached[where] = max(reached.get(where, (-1, 0)), (offset, number))
        if row:
            late = late or row[1] < newest.get(row[0], -1)
            newest[row[0]] = max(newest.get(row[0], -1), row[1])
        if late:
            verdict.disorder += 1
            verdict.wrong("out of order", place)
    verdict.stale = sum(last[key] != sequence for key, sequence in newest.items())
    for record in letters:
        verdict.dead_letters += 1
        place = _letter(dict(record.headers()))
        if allowed.get(place) != DEAD:
            verdict.invented += 1
            verdict.wrong("dead letter of what is none", place)
            continue
        _first(verdict, seen, (place, 0), record)
    found = {place for place, _ in seen}
    for place, expect in required.items():
        if expect != NOTHING and place not in found:
            verdict.lost += 1
            verdict.wrong("lost", place)
    return verdict


def _first(verdict: Verdict, seen: dict[tuple[Place, int], bytes], name: tuple[Place, int], record: Any) -> bool:
    """Return whether this is the first record of that name, and count duplicates."""
    content = hashlib.sha256(repr((record.key(), record.value(), record.headers())).encode()).digest()
    if seen.setdefault(name, content) is content:
        return True
    verdict.duplicates += 1
    if seen[name] != content:
        verdict.different += 1
        verdict.wrong("not the same bytes", name)
    return False


def _event(event: dict[str, Any]) -> tuple[Place, int, str]:
    """Return the event's position, its number there, and the feeder's word for it."""
    topic_id = event["pos_scope"].rpartition("@")[2]
    origin = event["origin"]
    after = event["after"]
    content = f"row/{after['id']}/{after['seq']}" if event["kind"] == "row" else EVENT
    return (topic_id, origin["partition"], origin["offset"]), int(event["id"].rpartition("/")[2]), content


def _letter(headers: dict[str, bytes]) -> Place:
    names = ("cdc-origin-topic-id", "cdc-origin-partition", "cdc-origin-offset")
    topic_id, partition, offset = (headers[name].decode() for name in names)
    return topic_id, int(partition), int(offset)


def fed(topic_id: str, sent: Mapping[tuple[int, int], str]) -> dict[Place, str]:
    """Return what a feeder says it wrote."""
    return {(topic_id, partition, offset): expect for (partition, offset), expect in sent.items()}


def found(bootstrap: str, topic: str, topic_id: str) -> dict[Place, str]:
    """Return what a reader of the raw topic finds."""
    return {
        (topic_id, record.partition(), record.offset()): dict(record.headers())[EXPECT].decode()
        for record in records(bootstrap, topic)
    }


def records(bootstrap: str, topic: str) -> Iterator[Any]:
    """Return every committed record of a topic, each partition in order."""
    reader = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "unused",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
            "log_level": 0,
        }
    )
    partitions = reader.list_topics(topic, timeout=20).topics[topic].partitions
    reader.assign([TopicPartition(topic, number, 0) for number in partitions])
    left = set(partitions)
    try:
        while left:
            for record in reader.consume(5000, 0.5):
                error = record.error()
                if error is None:
                    yield record
                elif error.code() == KafkaError._PARTITION_EOF:
                    left.discard(record.partition())
                else:
                    raise AssertionError(f"cannot read {topic}: {error.str()}")
    finally:
        reader.close()
