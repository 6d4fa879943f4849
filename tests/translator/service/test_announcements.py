"""Metadata announced to consumers, in a pipeline."""

import asyncio
import json
from typing import Any

import pytest

from tests.translator.service._lessons import BUG, HOSTILE, Lessons
from tests.translator.service._pipeline import PARTITION, Bench
from tests.translator.service.test_metadata_wait import letters, need, teach


def make(**limits: int) -> Bench:
    """Return a pipeline for `Lessons`, with limits by the last part of a topic's name, `_` for the canonical one."""
    return Bench(Lessons, limits={name.rstrip("_"): size for name, size in limits.items()})


def events(bench: Bench) -> list[Any]:
    return [json.loads(event.value()) for event in bench.read(bench.output.topic, PARTITION)]


def test_learned_and_told() -> None:
    """The message counts as learned. Its event precedes the rows and references a schema in its topic."""
    bench = make()
    asyncio.run(bench.run([teach(0, announce="rows"), need(1)]))
    announced, row = events(bench)
    assert ("schema", None, "rows", "metadata") == (
        announced["kind"],
        announced["op"],
        announced["table"],
        announced["ddl"]["type"],
    )
    assert ("src/raw/3/0/0", "src/raw/3/1/0") == (announced["id"], row["id"])
    (schema,) = bench.read(bench.output.schemas_topic, 0)
    assert announced["schema_id"] == json.loads(schema.value())["id"]
    (account,) = bench.accounted
    assert (2, 1, 1, {"schema": 1, "c": 1}) == (account.records, account.learned, account.translated, account.events)


def test_again_with_the_same_bytes() -> None:
    """A replayed announcement is the same event, whatever was learned before it."""
    bench = make()
    asyncio.run(bench.run([teach(0, "longer text", announce="rows")]))
    asyncio.run(bench.run([teach(0, "longer text", announce="rows")]))
    first, second = bench.read(bench.output.topic, PARTITION)
    assert first.value() == second.value()


@pytest.mark.parametrize(
    ("limits", "more"),
    [({"_": 900}, {"sql": "x" * 1000}), ({"schemas": 900}, {"native": "x" * 1000})],
    ids=["the event", "its schema"],
)
def test_what_cannot_be_told_is_not_learned(limits: dict[str, int], more: dict[str, str]) -> None:
    """An announcement that does not fit becomes a dead letter before anything is written or learned."""
    bench = make(**limits)
    asyncio.run(bench.run([teach(0, announce="rows", **more), need(1)]))
    assert ["TOO_LARGE", "SCHEMA_MISSING"] == [code for code, _ in letters(bench)]
    assert [] == events(bench)
    assert [] == bench.read(bench.output.schemas_topic, 0)
    assert [] == bench.read(bench.output.metadata_topic, 0)


def test_an_older_document_is_not_kept() -> None:
    """The newest document of an id is kept, also in the topic. An older message counts as learned and is announced."""
    bench = make()
    asyncio.run(bench.run([teach(0, "newest"), teach(1, "old", announce="rows"), need(2)]))
    assert [b"newest"] == [found.value() for found in bench.read(bench.output.metadata_topic, 0)]
    announced, row = events(bench)
    assert ("schema", "newest") == (announced["kind"], row["after"]["by"])
    assert 2 == bench.accounted[0].learned


@pytest.mark.parametrize(("text", "code"), [(HOSTILE, "LIMIT_EXCEEDED"), (BUG, "INTERNAL")])
def test_a_hostile_document_is_a_dead_letter(text: str, code: str) -> None:
    """A document that the dialect rejects or crashes on is not announced, and the stream continues."""
    bench = make()
    asyncio.run(bench.run([teach(0, text, announce="rows"), teach(1, key="other"), need(2, "other")]))
    assert [code] == [found for found, _ in letters(bench)]
    assert [b"src/other"] == [found.key() for found in bench.read(bench.output.metadata_topic, 0)]
    assert [2] == [event["origin"]["offset"] for event in events(bench)]
