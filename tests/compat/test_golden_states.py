"""This release continues the states that earlier releases have left behind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable

from dev.demo.compare import differences
from dev.demo.sources import shop_sources
from dev.servers.broker import Broker
from dev.servers.stack import CANONICAL, Stack, source_rows, wait_until
from tests.compat import golden
from tests.compat.golden import is_history

RELEASES = sorted(golden.HERE.glob("*.zip"))

pytestmark = pytest.mark.integration


@pytest.fixture(params=RELEASES, ids=lambda path: path.stem)
def states(request: pytest.FixtureRequest) -> Iterator[tuple[Stack, golden.Golden]]:
    """The states of a release, with a running broker."""
    with golden.alone() as place:
        left = golden.unpack(request.param)
        with Broker(directory=place / "broker", settings=golden.BROKER) as broker:
            running = golden.stack(broker, shop_sources(golden.SEED))
            try:
                yield running, left
            finally:
                running.close()


def test_states_are_continued(states: tuple[Stack, golden.Golden]) -> None:
    """The old events stay, each new message is translated once, the held table and the parked table are released, and
    all tables equal their sources. A new translation of all messages gives the bytes that the topic already has.
    """
    running, left = states
    before = _places(running.records(CANONICAL))
    running.start("translator")
    running.start("spark-sink")
    running.feed(left.messages)
    _settle(running, left)
    after = running.records(CANONICAL)
    assert before.items() <= _places(after).items()
    repeated = [id for id, count in Counter(dict(one.headers())["cdc-id"] for one in after).items() if count > 1]
    assert [] == repeated
    golden.command(running, "translator", "audit", "--strict")
    for table in left.tables:
        if not is_history(table):
            assert "equal" in golden.command(running, "spark-sink", "verify", table)
    assert [0, 0] == [running.stop("translator"), running.stop("spark-sink")]


def _settle(running: Stack, left: golden.Golden) -> None:
    fed = len(left.messages)
    wait_until("translation", golden.SECONDS, lambda: _handled(running) == fed, running)
    discarded = ["--code", golden.HELD_CODE, "--reason", "made for a test", "--execute"]
    golden.command(running, "translator", "dlq", "discard", *discarded)
    golden.command(running, "translator", "dlq", "replay", "--execute")
    golden.command(running, "spark-sink", "resume", golden.PARKED, "--wait", "300")
    wait_until("tables", golden.SECONDS, lambda: not _wrong(running, left), running)


def _handled(running: Stack) -> int:
    return sum(count["in"] for count in running.account().values())


def _wrong(running: Stack, left: golden.Golden) -> list[str]:
    return [
        line
        for name, (shape, rows) in left.tables.items()
        for line in differences(shape, rows, _present(running, name))
    ]


def _present(running: Stack, name: str) -> list[dict[str, Any]]:
    """Return a table's rows, or the current versions of a history's rows."""
    if not is_history(name):
        return running.rows(name)
    table = DeltaTable(str(running.folder(name))).to_pyarrow_table()
    return source_rows(table.filter(pc.field("_cdc_current")))


def _places(records: list[Any]) -> dict[tuple[int, int], tuple[bytes, bytes]]:
    return {(one.partition(), one.offset()): (one.key(), one.value()) for one in records}
