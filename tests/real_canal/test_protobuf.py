"""Canal's Protobuf contains the same flat messages as its JSON, for the whole workload on a real database."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import msgspec
import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from dev.servers.broker import Broker
from dev.servers.canal import CanalServer, CanalTopics
from dev.servers.mariadb import MariaDb
from tests.real_canal.pipeline import PARTITIONS, PATIENCE, WORKLOAD
from translator.dialects.canal.decode import Canal
from translator.dialects.canal.options import Options
from translator.dialects.canal.protobuf import flat_messages
from translator.errors import MessageError
from translator.message import Changes, Message, RowChange, Setup

pytestmark = [pytest.mark.integration, pytest.mark.faults]

TOPICS = {True: "forms_json", False: "forms_protobuf"}
_OWN = ("id", "ts", "sqlType")
"""Fields of the batch and of the server that made the message, and the types of the message's last row."""

_ROLLED_BACK = "XAROLLBACK"

Flat = dict[str, Any]


@pytest.fixture(scope="module")
def raw(tools: None, broker: Broker) -> dict[bool, dict[int, list[bytes]]]:
    """The records of both topics, by partition."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    for created in admin.create_topics([NewTopic(name, PARTITIONS, 1) for name in TOPICS.values()]).values():
        created.result(PATIENCE)
    with MariaDb() as database, ExitStack() as servers:
        database.run("CREATE DATABASE marks; CREATE TABLE marks.ends (id INT PRIMARY KEY);")
        for flat, topic in TOPICS.items():
            topics = CanalTopics(topic, "", r"hashed\..*:$pk$", PARTITIONS, flat)
            servers.enter_context(CanalServer(database, broker.bootstrap, topics, database.position()))
        for file in sorted(WORKLOAD.glob("1_*.sql")):
            database.run(file.read_text(encoding="utf-8"))
        database.run("INSERT INTO marks.ends VALUES (1)")
        return {flat: _until_mark(broker, topic) for flat, topic in TOPICS.items()}


def _until_mark(broker: Broker, topic: str) -> dict[int, list[bytes]]:
    reader = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "unused", "log_level": 0})
    reader.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in range(PARTITIONS)])
    found: dict[int, list[bytes]] = {number: [] for number in range(PARTITIONS)}
    ends: dict[int, int] = {}
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        for record in reader.consume(1000, 0.1):
            value = record.value() or b""
            found[record.partition() or 0].append(value)
            if b"marks" in value:
                places = [TopicPartition(topic, number) for number in range(PARTITIONS)]
                ends = {place.partition: reader.get_watermark_offsets(place, PATIENCE)[1] for place in places}
        if ends and all(len(found[number]) >= end for number, end in ends.items()) and _has_mark(found[0]):
            reader.close()
            return found
    raise AssertionError(f"the mark did not arrive in {topic}")


def _has_mark(values: list[bytes]) -> bool:
    return any(flat["table"] == "ends" and flat["type"] == "INSERT" for flat in _flats(values[-20:]))


def _flats(values: list[bytes]) -> Iterator[Flat]:
    for value in values:
        for text in [value] if value.startswith(b"{") else flat_messages(value):
            yield msgspec.json.decode(text)


def test_the_rows_are_equal(raw: dict[bool, dict[int, list[bytes]]]) -> None:
    """Every partition has the same rows and statements in the same order. If Canal partitions rows by their keys, each
    row of its Protobuf is an entry of its own. In JSON, `old` can repeat columns that other rows changed.
    """
    for number in range(PARTITIONS):
        json, protobuf = ([row for flat in _flats(raw[flat][number]) for row in _rows(flat)] for flat in (True, False))
        assert json == protobuf
        assert len(json) > 300


def _rows(flat: Flat) -> Iterator[Flat]:
    shared = {name: value for name, value in flat.items() if name not in _OWN}
    for number, row in enumerate(flat["data"] or [None]):
        old = flat["old"][number] if flat["old"] else None
        changed = None if old is None else {name: cell for name, cell in old.items() if cell != row[name]}
        yield {**shared, "data": row, "old": changed}


def test_the_changes_are_equal(raw: dict[bool, dict[int, list[bytes]]]) -> None:
    """The dialect reads the same changes from both."""
    json, protobuf = ([*_changes(flat, raw[flat])] for flat in (True, False))
    assert json == protobuf
    assert len(json) > 2000


def _changes(flat: bool, values: dict[int, list[bytes]]) -> Iterator[tuple[Any, ...]]:
    """Return the changes. A record with the end of an XA transaction that was rolled back is a dead letter, so its
    other messages are read on their own.
    """
    dialect = Canal(Setup("shop"), Options(protobuf=not flat, timezone="UTC"))
    single = Canal(Setup("shop"), Options(timezone="UTC"))
    for record in (record for records in values.values() for record in records):
        if _ROLLED_BACK not in {one["type"] for one in _flats([record])}:
            yield from _rows_of(dialect, record)
            continue
        with pytest.raises(MessageError, match="the XA transaction was rolled back"):
            dialect.decode(Message("raw", 0, 0, 0, None, record))
        for one in _flats([record]):
            if one["type"] != _ROLLED_BACK:
                yield from _rows_of(single, msgspec.json.encode(one))


def _rows_of(dialect: Canal, record: bytes) -> Iterator[tuple[Any, ...]]:
    outcome = dialect.decode(Message("raw", 0, 0, 0, None, record))
    for change in outcome.changes if isinstance(outcome, Changes) else ():
        if isinstance(change, RowChange):
            before, after = change.before, change.after
            if before is not None and after is not None:
                before = {name: cell for name, cell in before.items() if cell != after[name]}
            yield change.op, change.table, before, after, change.key_columns, change.issues
