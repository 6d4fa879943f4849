"""One stream with three outputs: the canonical topic, a Debezium projection, and one with a topic for each table.

The process that writes them dies along the way.
"""

import json
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient

from dev.demo.bad_input import bad_input
from dev.demo.sources import interleaved, shop_sources
from dev.servers.broker import Broker
from dev.servers.stack import CANONICAL, DEAD_LETTERS, Stack, wait_until
from tests.integration._workers import PATIENCE

pytestmark = pytest.mark.integration

PROJECTION = "cdc.debezium"
PREFIX = "tables."
BY_TABLE = f"{PREFIX}{{source}}.{{table}}"
CHANGES = 600
ORIGIN = ("cdc-origin-topic", "cdc-origin-partition", "cdc-origin-offset")
KILL_AFTER = 500  # records that the process has accounted for


@dataclass
class Run:
    """The final contents of the topics."""

    events: list[Any]
    projected: list[Any]
    dead_letters: list[Any]
    by_table: dict[str, list[Any]]
    """The records of each table's topic."""


@pytest.fixture(scope="module")
def run(module_broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Feed half of the changes, kill the process, then feed bad input and the other half."""
    sources = shop_sources(7)
    good = list(interleaved([source.messages(CHANGES, grow=True) for source in sources]))
    first, second = good[: len(good) // 2], [*(bad.message for bad in bad_input()), *good[len(good) // 2 :]]
    stack = Stack(
        module_broker.bootstrap,
        tmp_path_factory.mktemp("projections"),
        [source.settings for source in sources],
        projections=[
            {"topic": PROJECTION, "codec": "debezium"},
            {"topic": BY_TABLE, "codec": "debezium", "partitions": 2, "config": {"retention.ms": "-1"}},
        ],
    )
    try:
        stack.create_raw_topics()
        stack.feed(first)
        stack.start("translator")
        wait_until("the translator works", PATIENCE, lambda: _accounted(stack) >= KILL_AFTER, stack)
        stack.kill("translator")
        stack.feed(second)
        stack.start("translator")
        total = len(first) + len(second)
        wait_until("all is committed", PATIENCE, lambda: sum(stack.committed().values()) == total, stack)
        assert 0 == stack.stop("translator")
        names = AdminClient({"bootstrap.servers": module_broker.bootstrap}).list_topics(timeout=20).topics
        by_table = {topic: stack.records(topic) for topic in names if topic.startswith(PREFIX)}
        return Run(*(stack.records(topic) for topic in (CANONICAL, PROJECTION, DEAD_LETTERS)), by_table)
    finally:
        stack.close()


def _accounted(stack: Stack) -> int:
    return sum(counts["in"] for counts in stack.account().values())


def _headers(record: Any) -> dict[str, str]:
    return {name: value.decode() for name, value in record.headers() or ()}


def test_every_row_is_in_both(run: Run) -> None:
    """Every row of the canonical topic is in the projection or was rejected there, despite the crash."""
    rows = {found["cdc-id"] for found in map(_headers, run.events) if found.get("cdc-op", "t") != "t"}
    projected = {_headers(record)["cdc-id"] for record in run.projected}
    assert len(rows) > 4 * CHANGES
    assert projected <= rows
    messages = [{identity.rpartition("/")[0] for identity in identities} for identities in (rows, projected)]
    assert _messages(run.dead_letters, PROJECTION) == messages[0] - messages[1]
    assert set() == messages[1] & _messages(run.dead_letters, PROJECTION), "all of a message or nothing"


def test_order_is_kept_per_raw_partition(run: Run) -> None:
    """Records of one raw partition are in one partition of the projection, in raw order."""
    order: dict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
    seen = set()
    for record in run.projected:
        identity = _headers(record)["cdc-id"]
        _, topic, partition, offset, n = identity.split("/")
        if identity not in seen:
            seen.add(identity)
            order[topic, partition].append((int(offset), int(n)))
    assert {1} == {len(found) for found in _by_raw_partition(run.projected).values()}
    assert all(found == sorted(found) for found in order.values())


def test_each_table_has_its_topic(run: Run) -> None:
    """The table topics together equal the single topic. Each has the rows of one table, in two partitions."""
    assert len(run.by_table) > 4
    tables = []
    for records in run.by_table.values():
        headers = [*map(_headers, records)]
        tables += {(found["cdc-source"], found["cdc-table"]) for found in headers}
        assert {0, 1} >= {record.partition() for record in records}
        assert {1} == {len(partitions) for partitions in _by_raw_partition(records).values()}
    assert len(tables) == len(set(tables)) == len(run.by_table)
    everywhere = [record for records in run.by_table.values() for record in records]
    assert {_headers(record)["cdc-id"] for record in everywhere} == {
        _headers(record)["cdc-id"] for record in run.projected
    }
    assert _messages(run.dead_letters, BY_TABLE) == _messages(run.dead_letters, PROJECTION)


def test_what_a_reader_of_debezium_asks_for(run: Run) -> None:
    """Every value is an envelope with one of the four operations. An update or delete has an old row."""
    values = [json.loads(record.value()) for record in run.projected]
    operations = Counter(value["op"] for value in values)
    assert {"c", "u", "d", "r"} >= operations.keys() >= {"c", "u", "d"}
    assert all(value["before"] is not None for value in values if value["op"] in "ud")
    assert all(value["after"] is not None for value in values if value["op"] in "cru")


def test_bad_input_is_one_dead_letter(run: Run) -> None:
    """An untranslatable message becomes one dead letter, however many outputs exist, and appears in none of them."""
    found = [headers for headers in map(_headers, run.dead_letters) if "cdc-error-output" not in headers]
    expected = Counter(bad.code for bad in bad_input() if bad.code is not None)
    # A process that loses its partitions can write a dead letter twice; count it once.
    codes = {tuple(headers[name] for name in ORIGIN): headers["cdc-error-code"] for headers in found}
    assert expected == Counter(codes.values())
    written = {_headers(record)["cdc-id"].rpartition("/")[0] for record in (*run.events, *run.projected)}
    assert set() == written & _messages(run.dead_letters, None)


def _by_raw_partition(records: list[Any]) -> dict[tuple[str, str], set[int]]:
    """Return, for each raw partition, the partitions that contain its records."""
    found: dict[tuple[str, str], set[int]] = defaultdict(set)
    for record in records:
        _, topic, partition, _, _ = _headers(record)["cdc-id"].split("/")
        found[topic, partition].add(record.partition())
    return found


def _messages(dead_letters: list[Any], output: str | None) -> set[str]:
    """Return the messages that are dead for one or all outputs, named like their events."""
    found = [headers for headers in map(_headers, dead_letters) if headers.get("cdc-error-output") == output]
    return {f"{headers['cdc-error-source']}/{'/'.join(headers[name] for name in ORIGIN)}" for headers in found}
