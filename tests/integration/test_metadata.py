"""When metadata is late, in another topic or read by another worker, no row is lost and no type is guessed."""

from __future__ import annotations

import copy
import json
import random
import subprocess
import sys
import threading
import time
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from cdc_core.envelope import ChangeEvent
from dev.servers.broker import LOOPBACK, Broker
from dev.servers.stack import Account, Stack, wait_until
from tests.integration._workers import PATIENCE, STEADY, Workers, dumps, identity
from tests.translator.dialects.made import made
from tests.translator.service.test_pipeline import METADATA, QLIK_ROW
from translator.codecs.avro import AvroCodec
from translator.dialects.qlik import Qlik
from translator.message import Learned, Message, Setup

pytestmark = pytest.mark.integration

SOURCE = {"name": "erp", "dialect": "qlik", "topics": ["erp.data", "erp.md"]}
PATIENT = {"metadata_wait": 600}

TABLES = 50
VERSIONS = 3
PARTITIONS = 4
DELAY = 5.0


def columns(version: int) -> list[str]:
    """Return the columns of a version. Each version adds one."""
    return ["ID", *(f"C{number}" for number in range(1, version + 1))]


def schema_id(table: int, version: int) -> str:
    return f"{table:03}{version:03}"


def metadata(table: int, version: int) -> bytes:
    message: Any = copy.deepcopy(METADATA)
    message["messageSchemaId"] = message["message"]["schemaId"] = schema_id(table, version)
    message["message"]["lineage"] |= {"table": f"T{table}", "tableVersion": version}
    id_column = message["message"]["tableStructure"]["tableColumns"]["ID"]
    text_column = {**id_column, "type": "STRING", "length": 40, "primaryKeyPosition": 0, "nullable": True}
    message["message"]["tableStructure"]["tableColumns"] = {
        name: {**(id_column if name == "ID" else text_column), "ordinal": place}
        for place, name in enumerate(columns(version), 1)
    }
    return dumps(message)


def change(table: int, version: int, operation: str, row: dict[str, Any]) -> bytes:
    message: Any = copy.deepcopy(QLIK_ROW)
    message["messageSchemaId"] = schema_id(table, version)
    message["message"]["data"] = row
    message["message"]["headers"]["operation"] = operation
    return dumps(message)


@dataclass
class Model:
    """50 tables that change through three versions, and their final contents."""

    rows: dict[tuple[str, int], dict[str, Any]] = field(default_factory=dict)
    messages: dict[int, list[bytes]] = field(default_factory=dict)  # by partition

    def play(self, seed: int) -> None:
        """Interleave the versions of a table, so that rows of an old version still come after the new one has begun."""
        dice = random.Random(seed)
        for step in range(VERSIONS * 6):
            for table in range(TABLES):
                version = max(1, min(VERSIONS, step // 6 + dice.choice([0, 1, 1, 1])))
                self._change(table, version, dice)

    def _change(self, table: int, version: int, dice: random.Random) -> None:
        key = (f"T{table}", dice.randrange(5))
        row = {name: f"{name}-{dice.randrange(10_000)}" for name in columns(version)} | {"ID": key[1]}
        operation = dice.choice(["UPDATE", "UPDATE", "DELETE"]) if key in self.rows else "INSERT"
        if operation == "DELETE":
            del self.rows[key]
        else:
            self.rows[key] = row
        self.messages.setdefault(table % PARTITIONS, []).append(change(table, version, operation, row))


def tables_of(events: list[ChangeEvent]) -> dict[tuple[str, int], dict[str, Any]]:
    """Return the tables that the events produce, read as docs/reading.md describes, without duplicates."""
    rows: dict[tuple[str, int], dict[str, Any]] = {}
    for event in events:
        if event.kind != "row":
            continue
        key = (str(event.table), json.loads(event.key or "")["ID"])
        if event.op == "d":
            del rows[key]
        else:
            rows[key] = json.loads(event.after or "")
    return rows


def unique(records: list[Any]) -> list[ChangeEvent]:
    """Return the events by first occurrence."""
    found: dict[str, ChangeEvent] = {}
    for record in records:
        found.setdefault(identity(record), AvroCodec().decode(record.value()))
    return list(found.values())


def lake_of(stack: Stack) -> dict[tuple[str, int], dict[str, Any]]:
    """Return the rows of all tables in the lakehouse. Every row has every column, with null if it was not sent."""
    return {
        (name, row["ID"]): {column: cell for column, cell in row.items() if cell is not None}
        for name in (f"T{number}" for number in range(TABLES))
        for row in stack.rows(f"erp_HR.{name}")
    }


def waiting(stack: Stack) -> int:
    """Return how many partitions of a worker wait for metadata."""
    return metric(stack, "cdc_partitions_waiting")


def metric(stack: Stack, name: str) -> int:
    """Return a value from a worker's /metrics, or 0 if it does not answer."""
    try:
        with urllib.request.urlopen(f"http://{LOOPBACK}:{stack.web_port}/metrics", timeout=5) as answer:
            lines = answer.read().decode().splitlines()
    except OSError:
        return 0
    return next((int(float(line.split()[1])) for line in lines if line.startswith(f"{name} ")), 0)


def told_lag(workers: Workers, unit: str) -> float:
    """Return the lag of all partitions reported by both workers, or a negative number if one reports nothing."""
    found = [values(stack, f"cdc_partition_lag_{unit}") for stack in workers.stacks]
    return sum(map(sum, found)) if all(found) else -1


def values(stack: Stack, name: str) -> list[float]:
    """Return the values of all series of a worker's metric, or none if it does not answer."""
    try:
        with urllib.request.urlopen(f"http://{LOOPBACK}:{stack.web_port}/metrics", timeout=5) as answer:
            lines = answer.read().decode().splitlines()
    except OSError:
        return []
    return [float(line.split()[-1]) for line in lines if line.startswith(f"{name}{{")]


def test_a_worker_that_never_sees_the_metadata_message(empty_broker: Broker, tmp_path: Path) -> None:
    """With metadata on one partition and data on four, both workers translate rows, but only one reads metadata."""
    workers = Workers(empty_broker, tmp_path, 2, [SOURCE], timing=PATIENT | STEADY, output={"codec": "json"})
    workers.create(erp_data=PARTITIONS, erp_md=1)
    first, second = workers.stacks
    try:
        workers.start()
        for partition in range(PARTITIONS):
            rows = [change(1, 1, "INSERT", {"ID": number, "C1": "x"}) for number in range(50)]
            workers.feed("erp.data", rows, partition)

        def all_wait() -> bool:
            found = waiting(first), waiting(second)
            return min(found) > 0 and sum(found) == PARTITIONS

        wait_until("both workers wait, and all partitions", PATIENCE, all_wait, first)
        wait_until("they tell what waits", PATIENCE, lambda: 50 * PARTITIONS == told_lag(workers, "records"), first)
        assert 0 < told_lag(workers, "seconds")
        assert all(workers.said("waiting for metadata", number) for number in range(2))
        workers.feed("erp.md", [metadata(1, 1)])
        for partition in range(PARTITIONS):
            workers.wait_committed("erp.data", 50, partition)
        wait_until("nothing waits any more", PATIENCE, lambda: told_lag(workers, "records") == 0, first)
        assert 0 == told_lag(workers, "seconds")
        accounts: list[Account] = []

        def both_answer() -> bool:
            accounts[:] = (stack.account() for stack in workers.stacks)
            return all(accounts)

        wait_until("both say what they did", PATIENCE, both_answer, first)
        learned = [sum(counts["learned"] for counts in account.values()) for account in accounts]
        translated = [sum(counts["translated"] for counts in account.values()) for account in accounts]
        assert [0, 1] == sorted(learned)
        assert 0 < min(translated)
        assert 50 * PARTITIONS == sum(translated)
        assert [] == workers.dead_letters()
    finally:
        workers.close()


@pytest.mark.faults
def test_fifty_tables_of_three_versions(empty_broker: Broker, tmp_path: Path) -> None:
    """Metadata comes five seconds after its rows. The worker is killed during the wait and again during the work.

    The sink reads the events once, at the end, with duplicates and all table versions in one batch.
    """
    model = Model()
    model.play(seed=6)
    workers = Workers(empty_broker, tmp_path, 1, [SOURCE], timing=PATIENT)
    workers.create(erp_data=PARTITIONS, erp_md=1)
    (stack,) = workers.stacks

    def announce() -> None:
        for version in range(1, VERSIONS + 1):
            time.sleep(DELAY)
            workers.feed("erp.md", [metadata(table, version) for table in range(TABLES)])

    announcing = threading.Thread(target=announce)
    try:
        workers.start()
        for partition, messages in model.messages.items():
            workers.feed("erp.data", messages, partition)
        wait_until("all partitions wait", PATIENCE, lambda: waiting(stack) == PARTITIONS, stack)
        stack.kill("translator")
        assert [0] * PARTITIONS == [workers.committed("erp.data", partition) for partition in range(PARTITIONS)]
        announcing.start()
        stack.start("translator")
        wait_until("rows become events", PATIENCE, lambda: len(workers.events()) > 0, stack)
        stack.kill("translator")
        stack.start("translator")
        announcing.join()
        for partition, messages in model.messages.items():
            workers.wait_committed("erp.data", len(messages), partition)
        records = workers.events()
        assert [] == workers.dead_letters()
        events = unique(records)
        origins = {(event.origin.partition, event.origin.offset) for event in events}
        fed = {(partition, offset) for partition, sent in model.messages.items() for offset in range(len(sent))}
        rows = {name for name in map(identity, records) if name.startswith("erp/erp.data/")}
        assert len(fed) == len(rows)
        assert fed <= origins
        assert model.rows == tables_of(events)
        assert 0 == stack.stop("translator")
        stack.start("spark-sink", "--available-now")
        assert 0 == stack.wait("spark-sink", 900), "60 s on a machine of two cores, a second for each table"
        assert model.rows == lake_of(stack)
    finally:
        workers.close()


def test_a_wait_does_not_hold_up_others(empty_broker: Broker, tmp_path: Path) -> None:
    """A waiting worker hands its partitions to a new one without delay, stops without delay, and writes nothing."""
    workers = Workers(empty_broker, tmp_path, 2, [SOURCE], timing=PATIENT | STEADY, output={"codec": "json"})
    workers.create(erp_data=PARTITIONS, erp_md=1)
    first, second = workers.stacks
    try:
        first.start("translator")
        for partition in range(PARTITIONS):
            workers.feed("erp.data", [change(1, 1, "INSERT", {"ID": 1, "C1": "x"})], partition)
        wait_until("all partitions wait", PATIENCE, lambda: waiting(first) == PARTITIONS, first)
        second.start("translator")
        wait_until("both wait", PATIENCE, lambda: 0 < waiting(second) < PARTITIONS, second)
        assert 0 == first.stop("translator")
        wait_until("the second has all", PATIENCE, lambda: waiting(second) == PARTITIONS, second)
        assert [] == workers.events()
        workers.feed("erp.md", [metadata(1, 1)])
        for partition in range(PARTITIONS):
            wait_until("it is committed", PATIENCE, lambda p=partition: workers.committed("erp.data", p) == 1, second)
        assert PARTITIONS == len({identity(record) for record in workers.events()})
        assert PARTITIONS == len([record for record in workers.events() if b"erp.data" in record.value()])
        assert [] == workers.dead_letters()
    finally:
        workers.close()


def test_the_newest_document_is_not_forgotten(empty_broker: Broker, tmp_path: Path) -> None:
    """If the last document of an id is an outdated one, at start or later, the newest document is written again."""
    qlik = made(Qlik, Setup("erp"), {})
    newest, older = (_document(qlik, version) for version in (2, 1))
    workers = Workers(empty_broker, tmp_path, 2, [SOURCE])
    workers.create(erp_data=1, erp_md=1, cdc_canonical_metadata=1)
    (first, second), topic = workers.stacks, "cdc.canonical.metadata"

    def kept() -> list[bytes]:
        return [record.value() for record in first.records(topic)]

    try:
        workers.feed(topic, [newest, older], key=b"erp/same")
        first.start("translator")
        wait_until("it is written again", PATIENCE, lambda: kept() == [newest, older, newest], first)
        second.start("translator")
        wait_until("the second works", PATIENCE, lambda: workers.said("prepared", 1), second)
        workers.feed(topic, [older], key=b"erp/same")
        wait_until("again", PATIENCE, lambda: kept()[3:4] == [older] and kept()[-1] == newest, first)
        time.sleep(2)
        assert {newest} == set(kept()[4:]), "and that is all that they write"
        assert len(kept()) <= 6
        conflicts = 'cdc_metadata_conflicts_total{source="erp"}'
        wait_until("it is counted", PATIENCE, lambda: metric(first, conflicts) > 0, first)
    finally:
        workers.close()


def _document(qlik: Qlik, version: int) -> bytes:
    """Return the document stored for two metadata messages that disagree about one id."""
    message: Any = json.loads(metadata(1, version))
    message["messageSchemaId"] = message["message"]["schemaId"] = "same"
    learned = qlik.decode(Message("erp.md", 0, 0, 0, None, dumps(message)))
    assert isinstance(learned, Learned)
    return learned.document


IMPATIENT_CLIENT = """
import sys
from translator.commands import main
from translator.service import app
settings = app.faust_settings
app.faust_settings = lambda *given: {**settings(*given), "broker_max_poll_interval": 8.0}
sys.argv = ["translator", "run", "-c", sys.argv[1]]
main()
"""
"""The service, with a client library that considers a consumer dead after 8 s without a fetch instead of 300 s."""


def test_a_long_wait_does_not_leave_the_group(empty_broker: Broker, tmp_path: Path) -> None:
    """A worker stays in its group even if all its partitions wait and it fetches nothing."""
    source = {**SOURCE, "topics": ["erp.data"]}
    workers = Workers(empty_broker, tmp_path, 1, [source], timing=PATIENT | STEADY)
    workers.create(erp_data=1)
    (stack,) = workers.stacks
    config = stack.directory / "translator.yaml"
    with stack.log("translator").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-c", IMPATIENT_CLIENT, config], stdout=log, stderr=subprocess.STDOUT
        )
    try:
        workers.feed("erp.data", [change(1, 1, "INSERT", {"ID": 0, "C1": "x"})])
        wait_until("it waits", PATIENCE, lambda: waiting(stack) == 1)
        for number in range(8):  # more fetches than a partition can have waiting
            workers.feed("erp.data", [change(1, 1, "INSERT", {"ID": number, "C1": "x"})])
            time.sleep(0.5)
        time.sleep(15)
        assert 1 == workers.members()
        process.terminate()
        assert 0 == process.wait(PATIENCE)
    finally:
        process.kill()
        workers.close()
