"""The service picks up topics created while it runs, without loss or duplicates."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from dev.servers.broker import Broker
from dev.servers.stack import wait_until
from tests.integration._workers import PATIENCE, STEADY, Feeding, Workers, dumps, identity
from tests.translator.service._pipeline import CANAL_ROW

pytestmark = pytest.mark.integration

SOURCE = {"name": "shop", "dialect": "canal", "topics": ["shop.*"], "options": {"profile": "oss"}}


def rows(begin: int, end: int) -> Iterator[bytes]:
    for number in range(begin, end):
        yield dumps(CANAL_ROW | {"data": [{"id": str(number), "name": "a"}], "id": number})


@pytest.mark.parametrize("count", [1, 2])
def test_new_topics_are_taken_on(empty_broker: Broker, tmp_path: Path, count: int) -> None:
    """Two topics are created while data flows. Every row of every topic becomes one event, in order."""
    workers = Workers(empty_broker, tmp_path, count, [SOURCE], timing=STEADY | {"topic_refresh": 1})
    workers.create(shop_a=2, other=1)
    try:
        workers.start()
        for number in range(count):
            workers.wait_up(number)
        workers.feed("shop.a", rows(0, 500), partition=1)
        workers.wait_committed("shop.a", 500, partition=1)
        with Feeding(partial(workers.feed, "shop.a"), rows, at_once=100) as feeding:
            workers.wait_committed("shop.a", 500)
            workers.create(shop_b=2)
            workers.feed("shop.b", rows(0, 500))
            workers.wait_committed("shop.b", 500)
            workers.create(shop_c=1)
            workers.feed("shop.c", rows(0, 500))
            workers.wait_committed("shop.c", 500)
        workers.wait_committed("shop.a", feeding.count)
        assert [0] * count == [stack.stop("translator") for stack in workers.stacks]
        found = [identity(record) for record in workers.events()]
        expected = {f"shop/shop.{topic}/0/{offset}/0" for topic in "bc" for offset in range(500)}
        expected |= {f"shop/shop.a/1/{offset}/0" for offset in range(500)}
        expected |= {f"shop/shop.a/0/{offset}/0" for offset in range(feeding.count)}
        assert expected == set(found), "nothing is lost, nothing invented"
        assert len(expected) == len(found), "nothing is repeated"
        offsets = [int(name.split("/")[3]) for name in found if name.startswith("shop/shop.a/0/")]
        assert offsets == sorted(offsets)
    finally:
        workers.close()


def test_a_topic_that_two_sources_claim(empty_broker: Broker, tmp_path: Path) -> None:
    """A running service ignores and reports the topic. The next start exits with code 2 and names both sources."""
    other = {**SOURCE, "name": "till", "topics": ["till", "*.x"]}
    workers = Workers(empty_broker, tmp_path, 1, [SOURCE, other], timing=STEADY | {"topic_refresh": 1})
    workers.create(shop_a=1, till=1)
    try:
        workers.start()
        workers.feed("shop.a", rows(0, 10))
        workers.wait_committed("shop.a", 10)
        workers.create(shop_x=1)
        workers.feed("shop.x", rows(0, 10))
        claim = "topic shop.x is claimed by more than one source: shop (shop.*) and till (*.x)"
        wait_until("it is said", PATIENCE, lambda: workers.said(claim), workers.stacks[0])
        workers.feed("shop.a", rows(10, 20))
        workers.wait_committed("shop.a", 20)
        assert 0 == workers.stacks[0].stop("translator")
        assert 20 == len(workers.events())
        assert 2 == workers.stacks[0].start("translator").wait(PATIENCE)
        assert workers.said(f'"error": "{claim}')
    finally:
        workers.close()


def test_nothing_to_read_yet(empty_broker: Broker, tmp_path: Path) -> None:
    """If a pattern matches no topic, the start logs that and waits. A later topic is read from its beginning."""
    workers = Workers(empty_broker, tmp_path, 1, [SOURCE], timing=STEADY | {"topic_refresh": 1})
    try:
        workers.start()
        waiter = "waiting for a raw topic: no topic matches shop.*"
        wait_until("it is said", PATIENCE, lambda: workers.said(waiter), workers.stacks[0])
        workers.create(shop_a=1)
        workers.feed("shop.a", rows(0, 10))
        workers.wait_committed("shop.a", 10)
        assert 10 == len(workers.events())
    finally:
        workers.close()
