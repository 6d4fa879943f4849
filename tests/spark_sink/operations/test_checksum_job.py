"""The SQL job of `spark-sink checksums` on real databases, and the commands."""

from __future__ import annotations

import random
import re
import shlex
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec
import psycopg2
import pytest

from cdc_core.table_id import TableId
from dev.iceberg import postgres
from dev.servers import mariadb
from dev.servers.broker import Broker
from dev.servers.stack import wait_until
from spark_sink.config.source_database import DatabaseType
from spark_sink.errors import Reason
from spark_sink.operations import checksum_job
from spark_sink.operations.checksum_runs import TABLE, TOTAL
from spark_sink.operations.digest_sql import DigestSql
from spark_sink.operations.row_digests import ComparedColumns, key_hash
from spark_sink.operations.verify_source import compared_columns
from tests.repository.pages import page
from tests.spark_sink.changes import SCOPE, change, schema_of
from tests.spark_sink.checksum_source import checksum_events, compared
from tests.spark_sink.lake import Lake
from tests.spark_sink.operations.test_verify_source import (
    NAME,
    TYPES,
    Database,
    Row,
    created,
    fill,
    key_of,
    many_rows,
    mirror,
    rows_of_every_type,
    schema_of_orders,
    updated,
)
from tests.spark_sink.topic_lake import TopicLake

SOURCE = TableId("shop", "sales", None, "orders")
COLUMNS = ("run", "table_name", "key_range", "computed_at", "row_count", "digest", "weighted", "sent_columns")
PATIENCE = 600.0
"""Timeout in seconds that only a hang exceeds."""

READ = f"SELECT {', '.join(COLUMNS)} FROM {TABLE}"


class JobDatabase(Database):
    """A database in which the job runs.

    Args:
        read: returns the rows of a query.
        before_commit: executes the job up to its last statement, and then waits until the context ends.
        timeout: a statement after which writes do not wait for locks.
        force: executes statements, and continues after those that fail.
    """

    def __init__(
        self,
        type: DatabaseType,
        run: Callable[[str], Any],
        read: Callable[[str], list[tuple[Any, ...]]],
        before_commit: Callable[[str], AbstractContextManager[None]],
        timeout: str,
        force: Callable[[str], Any],
    ) -> None:
        super().__init__(type, run, {})
        self.read, self.before_commit, self._timeout, self.force = read, before_commit, timeout, force

    def is_blocked(self, sql: str) -> bool:
        try:
            self.run(f"{self._timeout}; {sql}")
        except (mariadb.MariaDbError, psycopg2.OperationalError) as error:
            return "lock" in str(error).lower()
        return False

    def literal_insert(self, row: Row) -> str:
        return f"INSERT INTO orders VALUES ({', '.join(self.literal(name, row[name]) for name in TYPES)})"

    def create(self) -> None:
        super().create()
        self.run(f"DROP TABLE IF EXISTS {TABLE}")
        self.run(checksum_job.creation(self.type, SOURCE))

    def columns(self, lake: Lake) -> ComparedColumns:
        shape = mirror(lake).shape
        return compared_columns(shape, checksum_job.ExpectedColumns(shape, DigestSql(self.type, SOURCE)), ())[0]

    def job(self, lake: Lake) -> str:
        return checksum_job.job(self.type, SOURCE, self.columns(lake), 1000)

    def checksums(self) -> list[Mapping[str, Any]]:
        """Return the rows of the table with the checksums, as events contain them."""
        rows = [dict(zip(COLUMNS, row, strict=True)) for row in self.read(READ)]
        numbers = ("digest", "weighted")
        return [{**row, **{name: str(row[name]) for name in numbers}} for row in rows]


@pytest.fixture(scope="module", params=DatabaseType)
def server(request: pytest.FixtureRequest) -> Iterator[JobDatabase]:
    yield from (_mariadb if request.param is DatabaseType.MARIADB else _postgres)()


def _mariadb() -> Iterator[JobDatabase]:
    if not mariadb.is_installed():
        pytest.skip(f"{mariadb.MISSING}: checksums of MariaDB are NOT SHOWN")
    with mariadb.MariaDb() as running:
        running.run("CREATE DATABASE sales; SET GLOBAL time_zone = '+05:00'")
        utc = "SET time_zone = '+00:00'; USE sales; "

        def read(sql: str) -> list[tuple[Any, ...]]:
            cells = running.run(utc + sql)
            return [tuple(None if cell == "NULL" else cell for cell in row) for row in cells]

        @contextmanager
        def before_commit(job: str) -> Iterator[None]:
            held = job.replace("COMMIT;", "DO SLEEP(3600); COMMIT;")

            def run() -> None:
                with suppress(mariadb.MariaDbError):  # it is killed
                    running.run(utc + held)

            thread = threading.Thread(target=run)
            thread.start()
            sleeping = "SELECT id FROM information_schema.processlist WHERE info LIKE 'DO SLEEP%'"
            wait_until("the job", PATIENCE, lambda: bool(running.run(sleeping)))
            yield
            running.run(f"KILL {running.run(sleeping)[0][0]}")
            thread.join()

        timeout = "SET innodb_lock_wait_timeout = 1"

        def run(sql: str) -> list[list[str]]:
            return running.run(utc + sql)

        def force(sql: str) -> None:
            running.force(utc + sql)

        yield JobDatabase(DatabaseType.MARIADB, run, read, before_commit, timeout, force)


def _postgres() -> Iterator[JobDatabase]:
    if postgres.programs() is None:
        pytest.skip(f"{postgres.MISSING}: checksums of PostgreSQL are NOT SHOWN")
    with postgres.Postgres() as running:
        place = {"host": "127.0.0.1", "port": running.settled_port(), "dbname": postgres.DATABASE}
        login = {"user": postgres.USER, "password": postgres.PASSWORD}

        def read(sql: str) -> list[tuple[Any, ...]]:
            with closing(psycopg2.connect(**place, **login)) as connection, connection.cursor() as cursor:
                connection.autocommit = True
                cursor.execute(sql)
                return [] if cursor.description is None else cursor.fetchall()

        @contextmanager
        def before_commit(job: str) -> Iterator[None]:
            with closing(psycopg2.connect(**place, **login)) as connection, connection.cursor() as cursor:
                connection.autocommit = True
                cursor.execute(job.replace("COMMIT;", ""))
                yield

        yield JobDatabase(DatabaseType.POSTGRES, read, read, before_commit, "SET lock_timeout = 100", read)


@pytest.fixture
def database(server: JobDatabase) -> JobDatabase:
    server.create()
    return server


def test_every_type(lake: Lake, database: JobDatabase) -> None:
    """The database computes the same checksums as the sink."""
    rows = rows_of_every_type()
    fill(lake, rows)
    database.insert(rows)
    database.run(database.job(lake))
    checksums = checksum_events(database.checksums(), [SCOPE], 1000)
    delivered = [*created(rows, schema_of_orders(lake)), *checksums]
    found = compared(lake, "orders", delivered)
    assert (found.is_equal, found.left_out, found.compared) == (True, 0, len(rows))
    for name, (*_, values) in TYPES.items():
        if values and not (name in ("single", "precise") and database.type is DatabaseType.MARIADB):
            database.set(key_of(rows[0]), name, values[1])
            database.run(database.job(lake))
            delivered += checksum_events(database.checksums(), [SCOPE], 1000)
            assert compared(lake, "orders", delivered).different == [key_of(rows[0])], name
            database.set(key_of(rows[0]), name, rows[0][name])


def test_rows_that_only_one_side_has(lake: Lake, database: JobDatabase) -> None:
    rows = many_rows(random.Random(5), 600)
    fill(lake, rows[1:])
    database.insert([*rows[:-1], {**rows[0], "id": 7_000_000}])
    database.run(database.job(lake))
    checksums = checksum_events(database.checksums(), [SCOPE], 1000)
    found = compared(lake, "orders", [*created(rows[1:], schema_of_orders(lake)), *checksums])
    hashed = [key_hash(key_of(row))[:8] for row in (rows[0], {**rows[0], "id": 7_000_000})]
    assert {(f"key hash {one}",) for one in hashed} == set(found.missing)
    assert [key_of(rows[-1])] == found.extra
    query = checksum_job.row_query(database.type, SOURCE, database.columns(lake), hashed[1])
    assert [("7000000", rows[0]["part"])] == [tuple(row) for row in database.read(query)]


def test_an_empty_table(lake: Lake, database: JobDatabase) -> None:
    rows = rows_of_every_type()[:1]
    fill(lake, rows)
    database.run(database.job(lake))
    checksums = checksum_events(database.checksums(), [SCOPE], 1000)
    assert compared(lake, "orders", [*created(rows, schema_of_orders(lake)), *checksums]).extra == [key_of(rows[0])]


def test_writers_wait_for_the_job(lake: Lake, database: JobDatabase) -> None:
    """Until the job commits, no row can be changed or inserted."""
    rows = many_rows(random.Random(5), 50)
    fill(lake, rows)
    database.insert(rows)
    write = database.literal_insert({**rows[0], "id": 7_000_000})
    changes = (write, f"UPDATE orders SET text = 'x' WHERE {database.where(key_of(rows[3]))}", "DELETE FROM orders")
    with database.before_commit(database.job(lake)):
        assert [database.is_blocked(sql) for sql in changes] == [True, True, True]
    assert not database.is_blocked(changes[0])


@pytest.mark.parametrize("lost", ["the rows", "the transaction"])
def test_a_client_that_continues_after_an_error(lake: Lake, database: JobDatabase, lost: str) -> None:
    """The run has no total, because it is not the table's."""
    if database.type is DatabaseType.POSTGRES:
        pytest.skip("PostgreSQL executes nothing in a transaction after an error")
    rows = many_rows(random.Random(5), 50)
    fill(lake, rows)
    database.insert(rows)
    job = database.job(lake).replace("timeout = 10", "timeout = 1")
    if lost == "the rows":
        with database.before_commit("START TRANSACTION; UPDATE orders SET text = 'x'; COMMIT;"):
            database.force(job)
    else:
        database.force(job.replace("DELETE FROM", "ROLLBACK; DELETE FROM"))
    assert TOTAL not in {row["key_range"] for row in database.checksums()}
    database.run(job)
    assert TOTAL in {row["key_range"] for row in database.checksums()}


def lake_with_checksums(broker: Broker, folder: Path, database: JobDatabase) -> tuple[TopicLake, list[Row]]:
    """Return a lake whose topic has rows and their checksums."""
    lake, rows = TopicLake(folder, broker), many_rows(random.Random(5), 30)
    lake.receive(0, [*created(rows, schema_of_orders(lake))])
    database.insert(rows)
    return lake, rows


def test_the_commands_on_the_page(broker: Broker, tmp_path: Path, database: JobDatabase) -> None:
    """The commands on docs/sink/checksums.md find a row that differs."""
    text = page("sink/checksums.md").replace("--for postgres", f"--for {database.type.value}")
    commands = re.findall(r"^ *spark-sink (.+?) -c sink\.yaml", text, re.MULTILINE)
    create, job, verify = (shlex.split(command) for command in commands)
    lake, rows = lake_with_checksums(broker, tmp_path, database)
    verify += ["--settle", "0"]
    code, told = lake.run(*verify)
    assert (code, "has no checksums of shop_sales.orders. Run the job" in told) == (1, True)
    database.run(f"DROP TABLE {TABLE}")
    database.run(lake.run(*create)[1])
    code, told = lake.run(*job, "--skip", "small")
    assert (code, "column not compared: small: skipped\n" in told) == (0, True)
    database.run("".join(line for line in told.splitlines(True) if not line.startswith("column not compared")))
    checksums = checksum_events(database.checksums(), [SCOPE], 1000)
    lake.receive(1, [*checksums])
    code, told = lake.run(*verify)
    assert (code, "against checksums: equal; rows compared: 30\n" in told) == (0, True), told
    assert "column not compared: small: not in the checksums\n" in told
    computed = str(database.checksums()[-1]["computed_at"])
    assert f"verified through {computed[:10]} {computed[11:19]} UTC against checksums" in lake.run("status")[1]
    altered = updated(key_of(rows[3]), "canary", 999, schema_of_orders(lake))
    lake.receive(2, [msgspec.structs.replace(altered, key=created(rows[3:4], schema_of_orders(lake))[0].key)])
    code, told = lake.run(*verify)
    assert (code, f"  different: {', '.join(key_of(rows[3]))}\n" in told, "canary" in told) == (3, True, False), told
    lake.command("park")
    assert lake.run(*verify)[0] == 4
    lake.receive(3, [*created(rows[:1], schema_of_orders(lake))])
    code, told = lake.run(*verify)
    assert (code, "shop_sales.orders is parked" in told) == (1, True), told


@pytest.mark.parametrize("lacking", [0, -1])
def test_a_run_that_has_not_arrived_completely(
    broker: Broker, tmp_path: Path, database: JobDatabase, lacking: int
) -> None:
    lake, _ = lake_with_checksums(broker, tmp_path, database)
    database.run(database.job(lake))
    checksums = checksum_events(database.checksums(), [SCOPE], 1000)
    del checksums[lacking]
    lake.receive(1, [*checksums])
    code, told = lake.verify("--against", "checksums", "--settle", "0")
    assert (code, "checksums: INCONCLUSIVE" in told) == (4, True), told


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        (Reason.COMMAND, "is parked, so it lacks events from before the checksums. Resume it first"),
        (Reason.RELOAD, f"Run `spark-sink reload {NAME} end` or `spark-sink reload {NAME} cancel` first"),
    ],
)
def test_a_table_whose_events_wait(broker: Broker, tmp_path: Path, reason: Reason, told: str) -> None:
    lake = TopicLake(tmp_path, broker)
    schema = lake.announce(schema_of({"id": "int64"}))
    lake.receive(0, [change("c", {"id": 1}, {}, pos=1, schema=schema)])
    lake.control.parked.park(NAME, reason, "it waits")
    lake.control.changed()
    lake.receive(1, [change("c", {"id": 2}, {}, pos=2, schema=schema)])
    code, found = lake.verify("--against", "checksums", "--settle", "0")
    assert (code, told in found) == (1, True), found


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (("checksums", "--for", "oracle"), "'oracle' is not one of 'mariadb', 'postgres'"),
        (("checksums", "--for", "postgres", "--row", "x'"), "expected up to 32 hexadecimal digits"),
        (("checksums", "--for", "postgres", "--row", "a", "--create"), "--create cannot be combined with --row"),
        (("verify", "--against", "checksums", "--skip", "a"), "use it with `spark-sink checksums`"),
        (("verify", "--against", "checksums", "--batch", "0"), "--batch cannot be combined with --against"),
    ],
)
def test_wrong_options(broker: Broker, tmp_path: Path, command: tuple[str, ...], told: str) -> None:
    lake = TopicLake(tmp_path, broker)
    schema = lake.announce(schema_of({"id": "int64"}))
    lake.receive(0, [change("c", {"id": 1}, {}, pos=1, schema=schema)])
    name, *options = command
    code, found = lake.run(name, NAME, *options)
    assert (code, told in found) == (2, True), found
