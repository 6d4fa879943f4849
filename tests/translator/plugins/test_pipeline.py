"""Failures of a plug-in in the service's pipeline: counted dead letters, and the messages after them."""

import asyncio
from pathlib import Path

import pytest

from tests.translator.plugins.installed import install
from tests.translator.service._pipeline import Bench, record
from translator.dialects import _time_limit
from translator.service.metrics import Metrics

CARD = "4111-1111-1111-1111"


def test_failures_are_counted_dead_letters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither exceptions nor hangs stop the partition, and no header contains the row."""
    install(tmp_path, monkeypatch)
    monkeypatch.setattr(_time_limit, "SECONDS", 1)
    failures = [record(n, {"do": do, "card": CARD, "id": n}) for n, do in enumerate(["raise", "loop", "exit", "op"], 1)]
    bench = Bench("pairs")
    asyncio.run(bench.run([record(0, {"id": 0}), *failures, record(5, {"id": 5})]))
    (account,) = bench.accounted
    assert (2, {"DIALECT_FAILED": 4}) == (account.translated, dict(account.dead))
    letters = [letter for n in range(4) for letter in bench.read("out.dlq", n)]
    assert 4 == len(letters)
    assert CARD not in str([letter.headers() for letter in letters])


def test_the_loop_turns_between_messages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The event loop runs after each message. Otherwise, many slow messages would look like a blocked loop."""
    install(tmp_path, monkeypatch)
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def run() -> None:
        counter = asyncio.create_task(count())
        await Bench("pairs").process(3, [record(n, {"id": n}) for n in range(20)])
        counter.cancel()

    asyncio.run(run())
    assert turns >= 20


def test_the_metric_names_plugins() -> None:
    page = Metrics("1.0", plugins="pairs (cdc-pairs 1.2)").exposition().decode()
    assert 'cdc_build_info{plugins="pairs (cdc-pairs 1.2)",version="1.0"} 1.0' in page
