"""Two translators change to this release one after another, and back, while messages arrive."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from dev.servers.broker import Broker
from dev.servers.stack import wait_until
from tests.compat.earlier_release import BEFORE_0_1_0, install, is_known
from tests.integration._workers import PATIENCE, STEADY, Feeding, Workers, identity
from tests.translator.operations._replay import CLEAR, update

pytestmark = [
    pytest.mark.faults,
    pytest.mark.integration,
    pytest.mark.skipif(not is_known(BEFORE_0_1_0), reason="a shallow clone does not contain the earlier release"),
]

SOURCE = {"name": "shop", "dialect": "canal", "topics": ["shop", "held"], "options": CLEAR}
BAD = b'{"database":"shop","table":"h","type":"INSERT","isDdl":false,"data":null}'


@pytest.mark.parametrize("delivery", ["at_least_once", "exactly_once"])
def test_nothing_is_lost_repeated_or_out_of_order(delivery: str, tmp_path: Path) -> None:
    """The earlier release also continues from the offsets and the held table that this release has written."""
    earlier = install(BEFORE_0_1_0, tmp_path)
    with Broker() as broker:
        workers = Workers(
            *(broker, tmp_path, 2, [SOURCE]),
            delivery=delivery,
            timing=STEADY,
            on_error={"MISSING_FIELD": "hold_table"},
        )
        workers.create(shop=2, held=1)
        try:
            for number in (0, 1):
                _start(workers, number, earlier)
            with _fed(workers, 0) as first, _fed(workers, 1) as second:
                for number in (0, 1):
                    _replace(workers, number, None)
                workers.feed("held", [BAD])
                workers.wait_committed("held", 1)
                for number in (0, 1):
                    _replace(workers, number, earlier)
                workers.feed("held", [update(1, both=False, table="h")])
            for place, fed in enumerate((first, second)):
                workers.wait_committed("shop", fed.count, place)
            workers.wait_committed("held", 2)
            assert {0: [*range(first.count)], 1: [*range(second.count)]} == _offsets(workers.events())
            assert ["MISSING_FIELD", "HELD"] == [_code(letter) for letter in workers.dead_letters()]
            assert [0, 0] == [stack.stop("translator") for stack in workers.stacks]
        finally:
            workers.close()


def _start(workers: Workers, number: int, program: Path | None) -> None:
    """Start a translator, and wait until it is processing."""
    workers.stacks[number].start("translator", program=program)
    workers.wait_up(number)


def _replace(workers: Workers, number: int, program: Path | None) -> None:
    """Replace a translator, and wait until messages of both partitions that arrived after that are committed."""
    assert 0 == workers.stacks[number].stop("translator")
    before = [workers.committed("shop", place) for place in (0, 1)]
    _start(workers, number, program)
    for place, offset in enumerate(before):
        what = f"partition {place} continues after offset {offset}"
        stack = workers.stacks[number]
        wait_until(what, PATIENCE, lambda: workers.committed("shop", place) > offset, stack)  # noqa: B023 called here


def _fed(workers: Workers, place: int) -> Feeding:
    def rows(first: int, end: int) -> Iterator[bytes]:
        return (update(1 + number % 7, both=False, name=str(number)) for number in range(first, end))

    return Feeding(partial(workers.feed, "shop", partition=place), rows)


def _offsets(events: Iterable[Any]) -> dict[int, list[int]]:
    """Return the raw offsets of the events in order, by raw partition."""
    found: dict[int, list[int]] = defaultdict(list)
    for event in events:
        _, topic, number, offset, _ = identity(event).split("/")
        assert "shop" == topic
        found[int(number)].append(int(offset))
    return found


def _code(letter: Any) -> str:
    return str(dict(letter.headers())["cdc-error-code"].decode())
