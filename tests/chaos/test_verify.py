"""The verification finds every kind of fault that it is meant to find."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.chaos.messages import DEAD, EVENT, NOTHING
from tests.chaos.verify import Place, Verdict, judge

FED: dict[Place, str] = {
    ("t", 0, 0): "row/1/0",
    ("t", 0, 1): "row/2/0",
    ("t", 0, 2): DEAD,
    ("t", 0, 3): "row/1/1",
    ("t", 0, 4): NOTHING,
    ("t", 0, 5): EVENT,
}


@dataclass
class Record:
    """The fields read from a record of the client library."""

    document: Any
    headers_of: list[tuple[str, bytes]] = field(default_factory=list)

    def key(self) -> bytes:
        return b"k"

    def value(self) -> bytes:
        return json.dumps(self.document).encode()

    def headers(self) -> list[tuple[str, bytes]]:
        return self.headers_of

    def partition(self) -> int:
        return 0


def event(offset: int, content: str | None = None, **more: Any) -> Record:
    """Return the event that the translator writes for the message at that offset."""
    said = content or FED["t", 0, offset]
    kind, after = "schema", None
    if said != EVENT:
        _, key, sequence = said.split("/")
        kind, after = "row", {"id": int(key), "seq": int(sequence)}
    origin = {"partition": 0, "offset": offset}
    document = {"id": f"s/r/0/{offset}/0", "pos_scope": "r:0@t", "kind": kind, "after": after, "origin": origin}
    return Record(document | more)


def letter(offset: int) -> Record:
    places = {"cdc-origin-topic-id": "t", "cdc-origin-partition": "0", "cdc-origin-offset": str(offset)}
    return Record("?", [(name, text.encode()) for name, text in places.items()])


ALL = [event(0), event(1), event(3), event(5)]


def judged(events: list[Record], letters: list[Record] | None = None) -> Verdict:
    return judge(FED, FED, events, [letter(2)] if letters is None else letters)


def test_all_is_well() -> None:
    """If each event exists once and in order, every count is zero."""
    verdict = judged(ALL)
    assert verdict.good
    assert (6, 4, 1, 0) == (verdict.messages, verdict.events, verdict.dead_letters, verdict.duplicates)


@pytest.mark.parametrize("offset", [0, 1, 3, 5])
def test_lost(offset: int) -> None:
    """A missing event counts as lost."""
    verdict = judged([record for record in ALL if record.document["origin"]["offset"] != offset])
    assert (1, False, [f"lost ('t', 0, {offset})"]) == (verdict.lost, verdict.good, verdict.examples)


def test_a_dead_letter_is_lost() -> None:
    """An unreadable message without a dead letter counts as lost."""
    assert 1 == judged(ALL, []).lost


def test_invented() -> None:
    """Events without a message, of a dead one or with other content, and dead letters of good messages are counted."""
    assert 1 == judged([*ALL, event(7, "row/9/9")]).invented
    assert 1 == judged([*ALL, event(2, "row/9/9")]).invented
    assert 1 == judged([event(0, "row/1/7"), *ALL]).invented
    assert 1 == judged(ALL, [letter(2), letter(3)]).invented


def test_duplicates() -> None:
    """Duplicates are counted. Those with other bytes are wrong. The last record of a key can be an older one."""
    verdict = judged([*ALL, event(0), event(1)], [letter(2), letter(2)])
    assert (3, 0, 0, 1, True) == (
        *(verdict.duplicates, verdict.different, verdict.disorder, verdict.stale),
        verdict.good,
    )
    verdict = judged([*ALL, event(1, ts=5)])
    assert (1, 1, False) == (verdict.duplicates, verdict.different, verdict.good)


def test_out_of_order() -> None:
    """The order of first occurrences is checked within a key and within a raw partition."""
    of_key = judged([event(1), event(3), event(0), event(5)])
    assert (1, False) == (of_key.disorder, of_key.good)
    of_partition = judged([event(1), event(0), event(3), event(5)])
    assert (1, False) == (of_partition.disorder, of_partition.good)


def test_what_compaction_took_is_not_lost() -> None:
    """A message is required if a reader finds it. An event from before its compaction is not invented either."""
    required = {place: expect for place, expect in FED.items() if place != ("t", 0, 0)}
    assert judge(required, FED, ALL, [letter(2)]).good
    assert judge(required, FED, ALL[1:], [letter(2)]).good
