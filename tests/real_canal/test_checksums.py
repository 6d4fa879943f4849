"""Checksums that a real Canal replicates, while writers change the tables: each fault is found, and nothing else."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from cdc_core.table_id import TableId
from dev.demo.writers import Raw
from dev.servers.broker import Broker
from dev.servers.canal import TIME_ZONE, CanalServer, CanalTopics
from dev.servers.mariadb import MariaDb, MariaDbError
from dev.servers.stack import Stack, wait_until
from spark_sink.config.source_database import DatabaseType
from spark_sink.operations import checksum_job
from spark_sink.operations.row_digests import ComparedColumns
from spark_sink.schema.evolution import TableColumn
from tests.real_canal.pipeline import PATIENCE, STEADY

pytestmark = [pytest.mark.integration, pytest.mark.faults]

CLEAN = ("busy", "quiet")
FAULTED = ("dropped", "doubled", "swapped", "altered")
TABLES = (*CLEAN, *FAULTED)
RAW, COPY = "checksums.raw", "checksums.copy"
PARTITIONS = 3
WRITERS, ROUNDS = 3, 6

COLUMNS = ComparedColumns(
    (TableColumn("id", "int"),),
    (TableColumn("word", "string"), TableColumn("price", "decimal(12,4)"), TableColumn("at", "timestamp_ntz")),
)

CREATION = """CREATE TABLE sales.{table} (
  id int PRIMARY KEY, word varchar(50), price decimal(12,4), at datetime(6)) CHARACTER SET utf8mb4;
"""


class Run(NamedTuple):
    """The result of a run, and the number of changes that writers made while a job ran."""

    stack: Stack
    concurrent: int


class Source:
    """The database, its writers and its Canal. All tables are spread over the partitions by key."""

    def __init__(self, broker: Broker, database: MariaDb) -> None:
        self._database = database
        tables = "".join(CREATION.format(table=table) for table in TABLES)
        checksums = checksum_job.creation(DatabaseType.MARIADB, TableId("shop", "sales", None, "busy"))
        marks = "CREATE DATABASE marks; CREATE TABLE marks.ends (id int PRIMARY KEY);"
        database.run(f"CREATE DATABASE sales; {tables}{checksums}{marks}")
        topics = CanalTopics(RAW, "", r"sales\..*:$pk$", PARTITIONS)
        self.canal = CanalServer(database, broker.bootstrap, topics, database.position())
        self.changes = 0
        self._counting = threading.Lock()

    def write(self, stop: threading.Event, seed: int) -> None:
        """Change random rows of all tables but `quiet`, in transactions, until stopped."""
        rng = random.Random(seed)
        while not stop.is_set():
            statements = []
            for _ in range(10):
                table = rng.choice([one for one in TABLES if one != "quiet"])
                statements += ["BEGIN", *(self._statement(rng, table) for _ in range(3))]
                statements.append(rng.choices(("COMMIT", "ROLLBACK"), (9, 1))[0])
            # A deadlock with another writer or the job ends a transaction.
            self._committed(";\n".join(["USE sales", *statements]))
            with self._counting:
                self.changes += 30

    def _statement(self, rng: random.Random, table: str) -> str:
        key = rng.randrange(100, 400)
        values = f"word = 'ü{rng.random()}', price = {rng.randrange(10**6)}.25, at = NOW(6)"
        insert = f"INSERT INTO {table} SET id = {key}, {values} ON DUPLICATE KEY UPDATE {values}"
        return rng.choice((insert, insert, f"DELETE FROM {table} WHERE id = {key}"))

    def prepare(self) -> None:
        """Write a row of each table that no writer touches, so that a fault in it lasts."""
        for table in TABLES:
            self._database.run(f"INSERT IGNORE INTO sales.{table} SET id = 5")
            for word in ("first", "second", "third"):
                self._database.run(f"UPDATE sales.{table} SET word = '{word}', at = NOW(6) WHERE id = 5")

    def compute_checksums(self) -> None:
        for table in TABLES:
            name = TableId("shop", "sales", None, table)
            job = checksum_job.job(DatabaseType.MARIADB, name, COLUMNS, 300)
            wait_until(f"the job of {table}", PATIENCE, lambda job=job: self._committed(job))

    def _committed(self, sql: str) -> bool:
        try:
            self._database.run(sql)
        except MariaDbError:
            return False
        return True

    def mark(self, number: int) -> None:
        self._database.run(f"INSERT INTO marks.ends VALUES ({number})")


@pytest.fixture(scope="module")
def run(tools: None, broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    topics = [NewTopic(name, PARTITIONS, 1) for name in (RAW, COPY)]
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    for created in admin.create_topics(topics).values():
        created.result(PATIENCE)
    options = {"profile": "oss", "timezone": TIME_ZONE}
    shop = {"name": "shop", "dialect": "canal", "topics": [COPY], "options": options}
    stack = Stack(broker.bootstrap, tmp_path_factory.mktemp("checksums"), [shop])
    stack.change("translator", timing=STEADY)
    with MariaDb() as database:
        source = Source(broker, database)
        with source.canal:
            concurrent = _work(source)
            for number in (1, 2):  # what Canal sends before the second mark was complete when the first one arrived
                source.mark(number)
                wait_until("the mark", PATIENCE, lambda number=number: number in _marks(stack))
            messages = [Raw(COPY, one.partition(), one.key(), one.value()) for one in _with_faults(stack.records(RAW))]
    try:
        _replicate(stack, messages)
        yield Run(stack, concurrent)
    finally:
        stack.close()


def _work(source: Source) -> int:
    """Let writers change the tables while the jobs run several times."""
    stop = threading.Event()
    writers = [threading.Thread(target=source.write, args=(stop, seed)) for seed in range(WRITERS)]
    for writer in writers:
        writer.start()
    try:
        for _ in range(ROUNDS):
            source.prepare()
            before = source.changes
            source.compute_checksums()
            concurrent = source.changes - before
        ends = source.changes + 100
        wait_until("later changes", PATIENCE, lambda: source.changes >= ends)
    finally:
        stop.set()
        for writer in writers:
            writer.join()
    return concurrent


def _marks(stack: Stack) -> set[int]:
    messages = [json.loads(record.value()) for record in stack.records(RAW)]
    return {int(row["id"]) for message in messages if message["table"] == "ends" for row in message["data"] or ()}


class Copied(NamedTuple):
    """A message of the copy, with the methods of the client's messages."""

    where: int
    named: Any
    content: bytes

    def partition(self) -> int:
        return self.where

    def key(self) -> Any:
        return self.named

    def value(self) -> bytes:
        return self.content


def _with_faults(records: list[Any]) -> list[Copied]:
    """Return the messages with one fault in each table in FAULTED, in the last messages of the row 5."""
    found = [Copied(one.partition(), one.key(), one.value()) for one in records]
    for table in FAULTED:
        places = [n for n, one in enumerate(found) if _writes_row_5(json.loads(one.content), table)]
        *_, earlier, last = places
        match table:
            case "dropped":
                del found[last]
            case "doubled":
                found.insert(last + 1, found[earlier])
            case "swapped":
                found[earlier], found[last] = found[last], found[earlier]
            case "altered":
                altered = found[last].content.replace(b'"third"', b'"wrong"')
                assert altered != found[last].content
                found[last] = found[last]._replace(content=altered)
    return found


def _writes_row_5(message: dict[str, Any], table: str) -> bool:
    return message["table"] == table and any(row["id"] == "5" for row in message["data"] or ())


def _replicate(stack: Stack, messages: list[Raw]) -> None:
    stack.feed(messages)
    stack.start("translator")

    def settled() -> int:
        counts = sum(stack.account().values(), Counter[str]())
        return sum(counts[outcome] for outcome in ("translated", "dead", "skipped", "learned"))

    wait_until("all outcomes", PATIENCE, lambda: settled() >= len(messages), stack)
    assert stack.stop("translator") == 0
    stack.start("spark-sink", "--available-now")
    assert stack.wait("spark-sink", PATIENCE) == 0, stack.log("spark-sink").read_text()


def _verified(run: Run, table: str) -> tuple[int, str]:
    """Return the exit code and the output of `spark-sink verify`."""
    program = Path(sys.executable).with_name("spark-sink")
    options = ("--against", "checksums", "--settle", "0", "--keys", "-c", run.stack.directory / "sink.yaml")
    done = subprocess.run([program, "verify", f"shop_sales.{table}", *options], capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("table", CLEAN)
def test_no_alarm(run: Run, table: str) -> None:
    code, told = _verified(run, table)
    assert (code, "against checksums: equal" in told, run.concurrent > 0) == (0, True, True), told


@pytest.mark.parametrize("table", FAULTED)
def test_a_fault_is_narrowed_to_its_key(run: Run, table: str) -> None:
    code, told = _verified(run, table)
    *_, key = told.splitlines()
    assert (code, key) == (3, "  different: 5"), told
