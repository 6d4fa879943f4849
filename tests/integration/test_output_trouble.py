"""During an output outage, memory stays bounded, nothing is lost, and the service reports the problem."""

import os
import random
import signal
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from dev.jars import broker_jars
from dev.java import find_java
from dev.servers.broker import JVM_OPTIONS, LOOPBACK, Broker
from dev.servers.stack import Stack, wait_until
from tests.integration._workers import PATIENCE, STEADY, Feeding, Workers, dumps, identity
from tests.translator.service._pipeline import CANAL_ROW

pytestmark = pytest.mark.integration

SOURCE = {"name": "raw", "dialect": "canal", "topics": ["raw"], "options": {"profile": "oss"}}
GAUGES = ("cdc_batches_in_flight", "cdc_events_in_flight", "cdc_bytes_waiting")
FETCH = 1024 * 1024  # a batch is one fetch, so the limit on bytes can be exceeded by one


def rows(begin: int, end: int, width: int = 1) -> Iterator[bytes]:
    """Return rows that do not compress."""
    noise = random.Random(1)
    for number in range(begin, end):
        name = noise.randbytes(width // 2).hex()
        yield dumps(CANAL_ROW | {"data": [{"id": str(number), "name": name}], "id": number})


def quota(broker: Broker, change: str, value: str) -> None:
    """Set or remove a limit on the bytes per second that librdkafka's producers can write."""
    class_path = os.pathsep.join(map(str, broker_jars()))
    where = ["--bootstrap-server", broker.bootstrap, "--alter", "--entity-type", "clients", "--entity-name", "rdkafka"]
    java = [find_java().executable, *JVM_OPTIONS, "-cp", class_path]
    command = [*java, "kafka.admin.ConfigCommand", *where, change, value]
    subprocess.run(command, check=True, capture_output=True, cwd=broker.directory)


def gauges(stack: Stack) -> dict[str, float]:
    try:
        with urllib.request.urlopen(f"http://{LOOPBACK}:{stack.web_port}/metrics", timeout=5) as answer:
            text = answer.read().decode()
    except OSError:
        return {}
    return {family.name: family.samples[0].value for family in text_string_to_metric_families(text) if family.samples}


def ready(stack: Stack) -> str:
    """Return the text of /readyz."""
    try:
        with urllib.request.urlopen(f"http://{LOOPBACK}:{stack.web_port}/readyz", timeout=30) as answer:
            return str(answer.read().decode())
    except urllib.error.HTTPError as error:
        return error.read().decode()


def offsets(workers: Workers) -> list[int]:
    return [int(identity(event).split("/")[3]) for event in workers.events()]


def test_slow_outputs_hold_reading_within_the_bounds(tmp_path: Path) -> None:
    """While delivery is slow, the records in flight stay within `bounds`. In the end each arrives once, in order."""
    bounds = {"batches": 5, "events": 700, "bytes": 1_500_000}
    count = 5_000
    with Broker() as broker:
        timing = STEADY | {"delivery": 90, "rebalance": 120}
        workers = Workers(broker, tmp_path, 1, [SOURCE], timing=timing, bounds=bounds)
        (stack,) = workers.stacks
        workers.create(raw=2)
        try:
            for partition in (0, 1):
                workers.feed("raw", rows(0, count, width=1000), partition)
            quota(broker, "--add-config", "producer_byte_rate=50000")
            workers.start()
            wait_until("reading is held", PATIENCE, lambda: gauges(stack).get("cdc_events_in_flight", 0) >= 500, stack)
            seen: list[dict[str, float]] = []
            end = time.monotonic() + 4
            while time.monotonic() < end or not seen:
                seen += [found for found in [gauges(stack)] if found]  # no figures without an answer in time
                time.sleep(0.1)
            most = {name: max(found[name] for found in seen) for name in GAUGES}
            assert 0 < most["cdc_batches_in_flight"] <= bounds["batches"] + 2, "one more for each partition"
            assert 500 <= most["cdc_events_in_flight"] <= bounds["events"]
            assert 0 < most["cdc_bytes_waiting"] <= bounds["bytes"] + FETCH
            assert len(workers.events()) < count, "it was slow all the while"
            quota(broker, "--delete-config", "producer_byte_rate")
            for partition in (0, 1):
                workers.wait_committed("raw", count, partition)
            assert 0 == stack.stop("translator")
            places = [tuple(map(int, identity(event).split("/")[2:4])) for event in workers.events()]
            for partition in (0, 1):
                expected = [(partition, offset) for offset in range(count)]
                assert expected == [place for place in places if place[0] == partition]
        finally:
            workers.close()


@pytest.mark.faults
def test_a_broker_that_is_away_during_work(tmp_path: Path) -> None:
    """After the broker is killed and restarted, the same process resumes without loss or reordering."""
    with Broker() as broker:
        workers = Workers(broker, tmp_path, 1, [SOURCE], timing=STEADY | {"delivery": 280, "rebalance": 300})
        (stack,) = workers.stacks
        workers.create(raw=1)
        count = 30_000
        feeding = threading.Thread(target=workers.feed, args=("raw", slow(count)))
        try:
            process = stack.start("translator")
            feeding.start()
            workers.wait_committed("raw", 2_000)
            broker.kill()
            lost, restored = (f'"event": "broker connection {state}"' for state in ("lost", "restored"))
            wait_until("the outage is logged", PATIENCE, lambda: bool(workers.said(lost)), stack)
            assert "not ready: no broker responds\n" == ready(stack)
            broker.start()
            wait_until("its end is logged", PATIENCE, lambda: bool(workers.said(restored)), stack)
            assert "ok\n" == ready(stack)
            feeding.join()
            workers.wait_committed("raw", count)
            assert process.poll() is None, "it continued on its own"
            assert 0 == stack.stop("translator")
            found = offsets(workers)
            first = list(dict.fromkeys(found))
            assert list(range(count)) == first
        finally:
            feeding.join()
            workers.close()


def slow(count: int) -> Iterator[bytes]:
    """Return rows for several seconds, so that something is always in flight."""
    for number, row in enumerate(rows(0, count)):
        if number % 200 == 0:
            time.sleep(0.05)
        yield row


@pytest.mark.faults
def test_a_broker_that_hangs(tmp_path: Path) -> None:
    """If a broker keeps connections open but never answers, the process exits with code 1 within the set times."""
    with Broker() as broker:
        timing = {"delivery": 10, "rebalance": 15, "stuck": 20}
        workers = Workers(broker, tmp_path / "hurried", 1, [SOURCE], timing=timing)
        after = Workers(broker, tmp_path / "after", 1, [SOURCE])
        (stack,) = workers.stacks
        workers.create(raw=1)

        def hangs_in_work() -> bool:
            os.kill(broker.pid, signal.SIGSTOP)
            time.sleep(0.2)
            # Only records in flight can be late.
            if gauges(stack).get("cdc_events_in_flight", 0) > 0:
                return True
            os.kill(broker.pid, signal.SIGCONT)
            return False

        try:
            process: Any = stack.start("translator")
            with Feeding(lambda values: workers.feed("raw", values), rows, 20) as feeding:
                try:
                    workers.wait_committed("raw", 500)
                    wait_until("it hangs", PATIENCE, hangs_in_work, stack)
                    assert 1 == process.wait(PATIENCE)
                finally:
                    os.kill(broker.pid, signal.SIGCONT)
            assert workers.said('"event": "stopping"')
            after.start()
            after.wait_committed("raw", feeding.count)
            assert list(range(feeding.count)) == list(dict.fromkeys(offsets(workers)))
        finally:
            workers.close()
            after.close()
