"""A sixth shop for the demo. Its changes are SQL statements on a real MariaDB, and a real Canal replicates them."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Self

from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from dev.demo.shop import TABLES, Row, Shop, ShopChange, ShopTable
from dev.demo.sources import ShopSource
from dev.demo.writers import Raw
from dev.demo.writers.canal import COLUMN_TYPES
from dev.servers.canal import TIME_ZONE, CanalError, CanalServer, CanalTopics
from dev.servers.mariadb import MariaDb

NAME, TOPIC = "mariadb", "raw.mariadb"

# Canal sends this table's rows after everything that came before them. The sink writes it like any other table.
_MARKS = "marks.sent"

_LIMIT_SECONDS = 120.0


class RealCanal:
    """A database, and a Canal that follows it. `write` collects a shop's changes, and `send` executes them."""

    def __init__(self) -> None:
        self._database = MariaDb()
        self._canal: CanalServer | None = None
        self._reader: Consumer | None = None
        self._statements: list[str] = []
        self._marks = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._reader is not None:
            self._reader.close()
        if self._canal is not None:
            self._canal.close()
        self._database.close()

    def source(self, seed: int) -> ShopSource:
        """Return a shop in this database, with the translator's configuration for it."""
        options = {"profile": "oss", "timezone": TIME_ZONE}
        settings = {"name": NAME, "dialect": "canal", "topics": [TOPIC], "options": options}
        return ShopSource(NAME, settings, self, Shop(seed), f"{NAME}_shop")

    def start(self, bootstrap: str) -> None:
        """Start both servers. The topic must exist."""
        self._database.start()
        self._database.run("CREATE DATABASE shop; CREATE DATABASE marks;")
        self._database.run(f"CREATE TABLE {_MARKS} (id int PRIMARY KEY); USE shop; {_created(TABLES)}")
        topics = CanalTopics(TOPIC, dynamic="", partition_hash="", partitions=1)
        self._canal = CanalServer(self._database, bootstrap, topics, self._database.position())
        self._canal.start()
        self._reader = Consumer({"bootstrap.servers": bootstrap, "group.id": "unused", "enable.auto.commit": False})
        self._reader.assign([TopicPartition(TOPIC, 0, OFFSET_BEGINNING)])

    def write(self, change: ShopChange) -> Iterator[Raw]:
        """Collect a change. It has no messages yet, because Canal writes them."""
        self._statements.append(_statement(change))
        yield from ()

    def send(self) -> list[Raw]:
        """Execute the collected changes, and return the messages that Canal has written for them.

        Raises:
            CanalError: Canal has not sent the changes in time.
        """
        self._marks += 1
        mark = f"INSERT INTO {_MARKS} SET id = {self._marks}"
        self._database.run(";\n".join(["USE shop", *self._statements, mark]))
        self._statements.clear()
        sent: list[Raw] = []
        deadline = time.monotonic() + _LIMIT_SECONDS
        while self._reader is not None and time.monotonic() < deadline:
            for record in self._reader.consume(1000, 0.1):
                sent.append(Raw(TOPIC, record.partition() or 0, record.key(), record.value()))
                if _mark(record.value()) == self._marks:
                    return sent
        raise CanalError(f"Canal has not sent all changes after {_LIMIT_SECONDS:g} s")


def _mark(value: bytes | None) -> int | None:
    """Return the mark that a message of Canal contains."""
    message = json.loads(value or b"{}")
    is_mark = message.get("database") == "marks" and message.get("type") == "INSERT"
    return int(message["data"][0]["id"]) if is_mark else None


def _created(tables: tuple[ShopTable, ...]) -> str:
    statements = []
    for table in tables:
        columns = [f"{column.name} {COLUMN_TYPES[column.kind]}" for column in table.columns]
        columns.append(f"PRIMARY KEY ({', '.join(table.key)})")
        statements.append(f"CREATE TABLE {table.name} ({', '.join(columns)});")
    return " ".join(statements)


def _statement(change: ShopChange) -> str:
    name, before, after = change.table.name, change.before, change.after
    if change.op == "add_column":
        added = change.table.columns[-1]
        return f"ALTER TABLE {name} ADD COLUMN {added.name} {COLUMN_TYPES[added.kind]}"
    if before is None:
        return f"INSERT INTO {name} SET {_assigned(after or {}, ', ')}"
    which = _assigned({column: before[column] for column in change.table.key}, " AND ")
    if after is None:
        return f"DELETE FROM {name} WHERE {which}"  # noqa: S608 - literals of the shop
    return f"UPDATE {name} SET {_assigned(after, ', ')} WHERE {which}"  # noqa: S608 - literals of the shop


def _assigned(row: Row, separator: str) -> str:
    return separator.join(f"{name} = {_literal(value)}" for name, value in row.items())


def _literal(value: Any) -> str:
    match value:
        case None:
            return "NULL"
        case bytes():
            return f"x'{value.hex()}'"
        case str():
            escaped = value.replace("\\", "\\\\").replace("'", "\\'")
            return f"'{escaped}'"
        case datetime():
            return f"'{value.isoformat(' ')}'"
        case date():
            return f"'{value.isoformat()}'"
        case int() | float() | Decimal():
            return repr(value) if isinstance(value, float) else str(value)
    raise TypeError(f"a shop has no values of type {type(value).__name__}")
