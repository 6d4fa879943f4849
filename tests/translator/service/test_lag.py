"""The lag of owned partitions, for ends and times set by the test. tests/integration covers a real broker."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping

import structlog
from prometheus_client.parser import text_string_to_metric_families

from translator.errors import RetryableError
from translator.kafka.offset_ranges import Place, Range
from translator.service.lag import RawTopicLag
from translator.service.metrics import BatchAccount, Metrics

RAW = ("raw", 0)


class Bench:
    """The lag of one partition read from offset 10."""

    def __init__(self, end: int) -> None:
        self.end: int | None = end
        self.times: dict[int, int] = {}
        self.asked: list[int] = []
        self.metrics = Metrics("test")
        self.reachable = False
        self.lag = RawTopicLag(
            self.metrics, lambda topic: f"source of {topic}", self._ends, self._time_of_first, self._reach
        )

    def _ends(self, places: Iterable[Place]) -> Mapping[Place, int]:
        if self.end is None:
            raise RetryableError("no broker answers")
        return dict.fromkeys(places, self.end)

    def _reach(self) -> None:
        if not self.reachable:
            raise RetryableError("no broker responds")

    def _time_of_first(self, unread: Range) -> int | None:
        self.asked.append(unread.first)
        return min((ms for offset, ms in self.times.items() if unread.first <= offset < unread.end), default=None)

    def look(self) -> tuple[int, float] | None:
        """Return the metrics after a check: offsets, and the age rounded to ten seconds, or None."""
        asyncio.run(self.lag.look({RAW: 10}))
        return self.told()

    def told(self) -> tuple[int, float] | None:
        found = {}
        for family in text_string_to_metric_families(self.metrics.exposition().decode()):
            for sample in family.samples:
                if sample.name.startswith("cdc_partition_lag"):
                    assert {"source": "source of raw", "topic": "raw", "partition": "0"} == sample.labels
                    found[sample.name] = sample.value
        if not found:
            return None
        return int(found["cdc_partition_lag_records"]), round(found["cdc_partition_lag_seconds"], -1)

    def acknowledge(self, next_offset: int, newest_ms: int | None) -> None:
        account = BatchAccount("erp", *RAW, 1)
        account.next_offset, account.newest_record_ms = next_offset, newest_ms
        self.lag.acknowledged(account)


def ago(seconds: float) -> int:
    """Return the time that many seconds ago, in milliseconds since 1970."""
    return int((time.time() - seconds) * 1000)


def test_at_rest_there_is_none() -> None:
    """The lag is zero, however old the last record is."""
    bench = Bench(end=10)
    assert (0, 0) == bench.look()
    bench.end = 20
    bench.acknowledge(20, ago(86_400))
    assert (0, 0) == bench.look()
    assert [] == bench.asked


def test_who_stands_still_grows_older() -> None:
    """The age counts from the first unacknowledged record, which is read once, even if no broker answers later."""
    bench = Bench(end=15)
    bench.times = {10: ago(500), 11: ago(100)}
    assert (5, 500) == bench.look()
    bench.end = 18
    assert (8, 500) == bench.look()
    bench.end = None
    assert (8, 500) == bench.look()
    assert [10] == bench.asked


def test_who_moves_is_as_old_as_its_last_record() -> None:
    """Nothing is read while it advances. When it stalls, the next record is read."""
    bench = Bench(end=100)
    bench.times = {10: ago(900), 50: ago(300)}
    bench.look()
    bench.acknowledge(50, ago(700))
    assert (50, 700) == bench.look()
    assert [10] == bench.asked
    assert (50, 300) == bench.look()
    assert [10, 50] == bench.asked


def test_offsets_without_records_are_no_delay() -> None:
    """Trailing transaction markers remain unread while nothing arrives and cause no lag. New records do."""
    bench = Bench(end=11)
    assert (1, 0) == bench.look()
    assert (1, 0) == bench.look()
    assert [10] == bench.asked
    bench.end, bench.times = 12, {11: ago(60)}
    assert (2, 60) == bench.look()
    assert [10, 10] == bench.asked


def test_what_was_given_up_is_not_told() -> None:
    """Otherwise two processes would report one partition. This includes a check in progress at that time."""
    bench = Bench(end=15)
    bench.look()
    bench.lag.forget()
    assert bench.told() is None
    assert (None, None) == (bench.lag.records, bench.lag.seconds)

    async def overtaken() -> None:
        look = asyncio.create_task(bench.lag.look({RAW: 10}))
        await asyncio.sleep(0)
        bench.lag.forget()
        await look

    asyncio.run(overtaken())
    assert bench.told() is None


def test_an_outage_is_two_lines_and_no_lag_of_zero() -> None:
    """The lag is unknown while no broker responds. The log reports its start and its end."""
    bench = Bench(end=10)
    with structlog.testing.capture_logs() as lines:
        bench.look()
        assert (0, 0.0, False) == (bench.lag.records, bench.lag.seconds, bench.lag.brokers.is_lost)
        bench.end = None
        for _ in range(3):
            bench.look()
            assert (None, None, True) == (bench.lag.records, bench.lag.seconds, bench.lag.brokers.is_lost)
        bench.end = 10
        bench.look()
        bench.look()
        assert (0, 0.0, False) == (bench.lag.records, bench.lag.seconds, bench.lag.brokers.is_lost)
    assert ["broker connection lost", "broker connection restored"] == [line["event"] for line in lines]
    assert "no broker responds" == lines[0]["error"]


def test_one_partition_without_an_answer_is_no_outage() -> None:
    """If brokers respond, the connection is not lost, and the reason is logged once."""
    bench = Bench(end=10)
    bench.end, bench.reachable = None, True
    with structlog.testing.capture_logs() as lines:
        bench.look()
        bench.look()
    assert (None, False) == (bench.lag.records, bench.lag.brokers.is_lost)
    assert ["lag check failed, will retry"] == [line["event"] for line in lines]
