"""Benchmark messages depend only on the seed, are all translatable, and are as unusual and skewed as requested."""

from __future__ import annotations

import asyncio
import json
from collections import Counter

import pytest

from bench.generators import WRITERS, MessageStream, generate
from bench.generators.history import MOVED_TABLE, StreamSpec
from bench.steps.pipeline import MemoryPipeline
from translator.dialects import DIALECTS
from translator.service.metrics import BatchAccount

SPEC = StreamSpec(messages=600, columns=12, tables=3, unusual=0.25)


def _account(stream: MessageStream) -> BatchAccount:
    """Return the pipeline's own account of all messages."""
    pipeline = MemoryPipeline(stream)
    asyncio.run(pipeline.process(pipeline.batches(stream.messages)))
    total = BatchAccount("bench", "raw", 0)
    for account in pipeline.accounts:
        total.records += account.records
        total.translated += account.translated
        for name in ("dead", "skipped", "changes", "written"):
            getattr(total, name).update(getattr(account, name))
    return total


def test_every_dialect_is_measured() -> None:
    """Every dialect has messages. A new dialect needs some too."""
    assert DIALECTS.keys() == {writer.dialect for writer in WRITERS.values()}


@pytest.mark.parametrize("name", WRITERS)
def test_same_seed_same_bytes(name: str) -> None:
    """The same seed gives the same bytes, and another seed gives others."""
    first, again = (generate(name, SPEC) for _ in range(2))
    assert first == again
    other = generate(name, StreamSpec(messages=600, columns=12, tables=3, unusual=0.25, seed=8))
    assert [message.value for message in first.messages] != [message.value for message in other.messages]


@pytest.mark.parametrize("name", WRITERS)
def test_every_message_is_translated_and_the_account_tells_which_are_unusual(name: str) -> None:
    """No message becomes a dead letter. The translator counts the requested skips, structure and key changes."""
    stream = generate(name, SPEC)
    account = _account(stream)
    assert (600, Counter()) == (account.records, account.dead)
    rows = sum(
        count
        for counted, count in account.changes.items()
        if counted.table != MOVED_TABLE and counted.op in ("c", "u", "d")
    )
    unusual = account.records - rows
    assert sum(message.unusual for message in stream.messages) == unusual
    assert 0.2 < unusual / account.records < 0.3
    assert sum(message.skipped for message in stream.messages) == account.skipped.total()


@pytest.mark.parametrize("name", WRITERS)
def test_usual_messages_are_changes_of_rows(name: str) -> None:
    """The changes have the requested shares and number of columns. Updates have both images, except in SharePlex."""
    stream = generate(name, StreamSpec(messages=1000, columns=5, inserts=0.5, updates=0.3))
    account = _account(stream)
    ops = Counter[str]()
    for counted, count in account.changes.items():
        assert counted.table == "orders"
        ops[counted.op] += count
    assert ops.total() == 1000
    assert 450 < ops["c"] < 550
    assert 250 < ops["u"] < 350
    assert ops["u"] == sum(message.updates for message in stream.messages)


def test_skew() -> None:
    """With many tables, each has messages, and the first has the most."""
    even, skewed = (
        _account(generate("canal", StreamSpec(messages=3000, tables=20, columns=2, skew=skew))) for skew in (0.0, 1.0)
    )
    tables = [Counter[str](), Counter[str]()]
    for counts, account in zip(tables, (even, skewed), strict=True):
        for counted, count in account.changes.items():
            counts[str(counted.table)] += count
        assert len(counts) == 20
    assert tables[0]["orders"] < 250 < 500 < tables[1]["orders"]


def test_partitions() -> None:
    """All partitions are used, and a row's changes share one partition under both the old and the new key."""
    stream = generate("canal", StreamSpec(messages=2000, columns=2, tables=3, partitions=8, unusual=0.2))
    assert set(range(8)) == {message.partition for message in stream.messages}
    homes: dict[tuple[str, str], int] = {}
    for message in stream.messages:
        body = json.loads(message.value or b"{}")
        for row in (*(body.get("data") or ()), *(body.get("old") or ())):
            if "id" in row:
                assert message.partition == homes.setdefault((body["table"], row["id"]), message.partition)
    assert len(homes) > 500
