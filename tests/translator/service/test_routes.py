"""Both paths write a projection with a topic for each table, in order, and open each topic once."""

import asyncio
import json
import threading
from collections.abc import Callable
from typing import Any

import pytest

from tests.translator.native import needs_extension
from tests.translator.native.test_pipeline import Run, values
from tests.translator.service._pipeline import CANAL_ROW, Bench, record, soon
from translator.codecs.debezium import DebeziumCodec, Options
from translator.codecs.filtered import FilteredCodec
from translator.codecs.json import JsonCodec
from translator.config.table_filter import TableFilter
from translator.config.topic_template import TopicTemplate
from translator.errors import ConfigError, ErrorCode, FatalError, RetryableError
from translator.kafka.partitioner import output_partition
from translator.message import Message
from translator.resolution.resolve import EventOutput, OutputTopic, Resolver
from translator.resolution.routes import Routes, TopicRefused
from translator.translation.translate import Translator

TEMPLATE = TopicTemplate.parse("tables.{source}.{table}")
TABLES = {"tables.src.shop.orders": 3, "tables.src.shop.items": 5}
ONLY_TABLES = TableFilter(tables_only=True)


def of(table: str, **changed: Any) -> dict[str, Any]:
    return {**CANAL_ROW, "table": table, **changed}


def bench(open_topic: Callable[[str], int] = TABLES.__getitem__) -> Bench:
    return Bench(
        "canal",
        {"p": FilteredCodec(JsonCodec(), ONLY_TABLES)},
        options={"profile": "oss", "newline_batches": True},
        tables=TABLES,
        routes={"p": Routes(TEMPLATE, open_topic, 100)},
    )


def ids(found: Bench, topic: str) -> list[str]:
    """Return the ids. All partitions but that of the raw partition must be empty."""
    count = TABLES[topic]
    of_raw = output_partition("raw", 3, count)
    assert not any(found.read(topic, number) for number in range(count) if number != of_raw)
    return [
        dict(stored.headers())["cdc-id"].decode().removeprefix("src/raw/3/") for stored in found.read(topic, of_raw)
    ]


def test_each_table_has_its_topic() -> None:
    """Rows are in order, also for a message with several tables and for a separate one, such as a statement."""
    found = bench()
    both = b"\n".join(json.dumps(of(table)).encode() for table in ("items", "orders", "items"))
    ddl = of("orders", type="ALTER", isDdl=True, data=None, sql="ALTER TABLE orders ADD x INT")
    batch = [record(0, of("orders")), record(1, of("items")), record(2, of("orders"))]
    batch += [type(batch[0])(3, both), record(4, ddl), record(5, of("orders"))]
    asyncio.run(found.run(batch))
    assert ["0/0", "2/0", "3/1", "4/0", "5/0"] == ids(found, "tables.src.shop.orders")
    assert ["1/0", "3/0", "3/2"] == ids(found, "tables.src.shop.items")
    (account,) = found.accounted
    assert account.written["out.p"] == account.written["out"] == 8, "counted by the projection, not by its topics"


def test_each_topic_is_opened_once() -> None:
    """Topics are not opened in the service's thread, which must continue while brokers are slow."""
    asked: list[str] = []
    threads = set()

    def open_topic(topic: str) -> int:
        asked.append(topic)
        threads.add(threading.current_thread())
        return TABLES[topic]

    found = bench(open_topic)
    asyncio.run(found.run([record(0, of("orders"))], [record(1, of("orders")), record(2, of("items"))]))
    assert [*TABLES] == asked
    assert threading.main_thread() not in threads


def test_who_waits_for_the_same_topic_waits_for_one_answer() -> None:
    asked: list[str] = []
    may_answer = threading.Event()

    def open_topic(topic: str) -> int:
        asked.append(topic)
        assert may_answer.wait(60)
        return 3

    async def two() -> list[int]:
        routes = Routes(TEMPLATE, open_topic, 100)
        waiting = [asyncio.ensure_future(routes.partitions("t")) for _ in range(3)]
        await soon(lambda: bool(asked))
        waiting.pop().cancel()
        may_answer.set()
        return [*await asyncio.gather(*waiting)]

    assert [3, 3] == asyncio.run(two())
    assert ["t"] == asked


@pytest.mark.parametrize("error", [ConfigError, FatalError])
def test_a_topic_that_cannot_be_made(error: type[FatalError]) -> None:
    """The name comes from a message. Only this projection of this table gets dead letters, and nobody asks again for
    each message.
    """
    asked: list[str] = []

    def open_topic(topic: str) -> int:
        asked.append(topic)
        if topic.endswith("orders"):
            raise error(f"cannot create topic {topic}: it collides")
        return TABLES[topic]

    found = bench(open_topic)
    both = b"\n".join(json.dumps(of(table)).encode() for table in ("items", "orders"))
    single = [record(0, of("orders")), record(1, of("items")), record(2, of("orders")), record(4, of("items"))]
    asyncio.run(found.run([*single[:3], type(single[0])(3, both), single[3]]))
    written = [one for number in range(4) for one in found.read("out", number)]
    assert 6 == len(written), "the canonical topic has all"
    assert ["1/0", "4/0"] == ids(found, "tables.src.shop.items")
    assert ["tables.src.shop.items", "tables.src.shop.orders"] == sorted(asked)
    letters = [dict(one.headers()) for number in range(4) for one in found.read(found.output.dead_letter_topic, number)]
    assert [b"0", b"2", b"3"] == [letter["cdc-origin-offset"] for letter in letters]
    assert {(b"TOPIC_REFUSED", b"out.p")} == {(one["cdc-error-code"], one["cdc-error-output"]) for one in letters}
    (account,) = found.accounted
    assert {("out.p", ErrorCode.TOPIC_REFUSED): 3} == account.refused
    assert 5 == account.translated


def test_a_topic_that_is_made_later() -> None:
    """After a minute, the topic is requested again."""
    now, made = [0.0], [False]

    def open_topic(topic: str) -> int:
        if not made[0]:
            raise ConfigError(f"missing topics: {topic}")
        return 3

    async def ask() -> int:
        return await routes.partitions("t")

    routes = Routes(TEMPLATE, open_topic, 100, lambda: now[0])
    for moment, there in ((0.0, False), (59.0, True)):
        now[0], made[0] = moment, there
        with pytest.raises(TopicRefused, match="missing topics: t"):
            asyncio.run(ask())
    now[0] = 60.0
    assert 3 == asyncio.run(ask())


def test_brokers_that_are_away() -> None:
    """Then nothing is refused: the message waits for them."""

    def open_topic(topic: str) -> int:
        raise RetryableError("no broker")

    found = bench(open_topic)
    with pytest.raises(RetryableError):
        asyncio.run(found.run([record(0, of("orders"))]))
    assert not any(found.read("out", number) for number in range(4))


def test_a_dry_run_opens_nothing() -> None:
    def open_topic(topic: str) -> int:
        raise AssertionError(topic)

    routes = Routes(TEMPLATE, open_topic, 100).without_brokers()
    assert 1 == asyncio.run(routes.partitions("t"))


@needs_extension
@pytest.mark.usefixtures("short_runs")
def test_both_ways_leave_the_same_behind() -> None:
    """The native path also writes routed topics."""
    codec = FilteredCodec(DebeziumCodec(Options(tombstones=True)), ONLY_TABLES)
    opened: list[str] = []

    def open_topic(topic: str) -> int:
        opened.append(topic)
        return 3

    runs = []
    for native in (True, False):
        routed = EventOutput(
            codec, OutputTopic("tables.src.shop.orders", 3, 1_000_000), Routes(TEMPLATE, open_topic, 100)
        )
        runs.append(Run(native=native, projections=(routed,)))
        runs[-1].of(values(60))
    with_path, plain = runs
    assert with_path.left == plain.left
    assert with_path.taken > 20
    assert {"tables.src.shop.orders"} == set(opened)
    assert sum(len(with_path.delivery.written("tables.src.shop.orders", n)) for n in range(3)) >= 60


@needs_extension
def test_only_refused_messages_are_translated_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table without a topic does not slow down the other tables. Both paths leave the same behind, in order."""
    batch = [value.replace(b'"orders"', b'"items"') if n % 23 == 5 else value for n, value in enumerate(values(100))]

    def open_topic(topic: str) -> int:
        if topic.endswith("items"):
            raise ConfigError(f"missing topics: {topic}")
        return 3

    again: list[int] = []
    resolve = Resolver.resolve

    def counted(resolver: Resolver, translator: Translator, message: Message) -> Any:
        again.append(message.offset)
        return resolve(resolver, translator, message)

    runs = []
    for native in (True, False):
        routed = EventOutput(
            FilteredCodec(JsonCodec(), ONLY_TABLES),
            OutputTopic("tables.src.shop.orders", 3, 1_000_000),
            Routes(TEMPLATE, open_topic, 100),
        )
        run = Run(native=native, projections=(routed,))
        run.of(batch)  # the first messages of each table take the plain path, which announces its schema
        with monkeypatch.context() as patched:
            if native:
                patched.setattr(Resolver, "resolve", counted)
            run.of(batch, 100)
        runs.append(run)
    with_path, plain = runs
    assert with_path.left == plain.left
    refused = [105, 128, 151, 174, 197]
    assert refused == again
    assert {("tables.src.shop.orders", ErrorCode.TOPIC_REFUSED): len(refused)} == with_path.accounts[1].refused
