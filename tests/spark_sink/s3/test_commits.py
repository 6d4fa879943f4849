"""A table version on S3 is committed once, despite races and lost responses."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from dev.servers.object_store import BUCKET, ObjectStore
from tests.sizes import count
from tests.spark_sink.s3.lossy_gate import LossyGate
from tests.spark_sink.s3.racer import rows
from tests.spark_sink.s3.stored_sink import options
from tests.spark_sink.sink_process import PATIENCE_SECONDS

pytestmark = [pytest.mark.integration, pytest.mark.faults]

RACERS = 4


def race(way: str, store: ObjectStore, table: str, each: int) -> list[str]:
    """Return the output of each racer."""
    command = [sys.executable, "-m", "tests.spark_sink.s3.racer", way, store.endpoint, table]
    environment = {**os.environ, **store.credentials}
    racers = [
        subprocess.Popen([*command, str(name), str(each)], env=environment, stdout=subprocess.PIPE, text=True)
        for name in range(RACERS)
    ]
    printed = [racer.communicate(timeout=PATIENCE_SECONDS)[0] for racer in racers]
    assert [0] * RACERS == [racer.returncode for racer in racers]
    return printed


@pytest.mark.parametrize(("way", "weight"), [("deltalake", 1), ("spark", 0.05)])
def test_race(object_store: ObjectStore, way: str, weight: float) -> None:
    """Four processes append. Every append exists once, and each has its own version."""
    table, each = f"s3a://{BUCKET}/race-{way}", count(weight)
    write_deltalake(table, pa.table({"by": ["first"]}), storage_options=options(object_store))
    race(way, object_store, table, each)
    wanted = sorted([*(f"{name} {number}" for name in range(RACERS) for number in range(each)), "first"])
    assert (wanted, RACERS * each) == rows(table, options(object_store))


def test_race_of_log_stores(object_store: ObjectStore) -> None:
    """Four JVMs race for each version. One of them gets it, and no version is skipped."""
    each = count(1)
    printed = race("log store", object_store, f"s3a://{BUCKET}/race-log-store", each)
    won = Counter(int(version) for lines in printed for version in lines.split())
    assert Counter(range(RACERS * each)) == won


LOST_ANSWER = """
import sys
from spark_sink.config.storage import Storage
from tests.spark_sink.s3.racer import log_store
commit = log_store(Storage(endpoint=sys.argv[1]), sys.argv[2])
print(commit(0, "ours"), commit(0, "another's"))
"""


REJECTED = b"HTTP/1.1 412 Precondition Failed\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


@pytest.mark.parametrize("answer", [b"", REJECTED], ids=["lost", "rejected"])
def test_lost_answer(object_store: ObjectStore, answer: bytes) -> None:
    """If the store wrote the version but its response was lost, the version is ours and nobody else's. If the store
    rejected it because of a version that nobody can read, it is written again.
    """
    name = "rejected" if answer else "lost"
    table = f"s3a://{BUCKET}/{name}"
    command = [sys.executable, "-c", LOST_ANSWER]
    first = b"PUT /lake/%b/_delta_log/0" % name.encode()
    with LossyGate(object_store.settled_port(), first, answer=answer) as gate:
        gate.open()
        done = subprocess.run(
            [*command, f"http://127.0.0.1:{gate.port}", table],
            env={**os.environ, **object_store.credentials},
            capture_output=True,
            text=True,
            check=True,
            timeout=PATIENCE_SECONDS,
        )
    assert "True False" == done.stdout.strip()
    assert gate.requests.total() > 2  # requested again, with the other line
