"""Seeded messages with key and sequence, each with a header that states the expected result."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

PARTITIONS = 4
KEYS = 2000
EXPECT = "expect"
"""The header: `row/<key>/<sequence>` or one of the words below. The translator ignores it."""

DEAD = "dead"
EVENT = "event"  # not a row
NOTHING = "nothing"


@dataclass(frozen=True)
class Fed:
    """A raw message and its expected result."""

    partition: int
    key: bytes
    value: bytes
    expect: str


@dataclass(frozen=True)
class Input:
    """An endless stream of messages and the source that reads it."""

    source: dict[str, Any]
    messages: Callable[[random.Random], Iterator[Fed]]


def _rows(dice: random.Random) -> Iterator[tuple[int, int]]:
    """Return changes of rows as key and sequence within the key. A key stays in its partition."""
    sequences = [0] * KEYS
    while True:
        key = dice.randrange(KEYS)
        yield key, sequences[key]
        sequences[key] += 1


def canal(dice: random.Random) -> Iterator[Fed]:
    """Return inserts and then updates of one table in Canal's format, which the native path accepts."""
    for key, sequence in _rows(dice):
        yield Fed(key % PARTITIONS, b"%d" % key, _canal(key, sequence, dice), f"row/{key}/{sequence}")


def _canal(key: int, sequence: int, dice: random.Random) -> bytes:
    message = {
        "data": [{"id": str(key), "seq": str(sequence), "pad": f"{dice.getrandbits(512):0128x}"}],
        "old": [{"seq": str(sequence - 1)}] if sequence else None,
        "database": "shop",
        "table": "orders",
        "type": "UPDATE" if sequence else "INSERT",
        "isDdl": False,
        "sql": "",
        "es": 1_776_000_000_000 + sequence * 1000,
        "ts": 1_776_000_000_000 + sequence * 1000,
        "id": sequence + 1,
        "mysqlType": {"id": "bigint", "seq": "bigint", "pad": "varchar(200)"},
        "pkNames": ["id"],
    }
    return json.dumps(message, separators=(",", ":")).encode()


def poisoned(dice: random.Random) -> Iterator[Fed]:
    """Like `canal`, with one unreadable message in a hundred."""
    for row in canal(dice):
        yield row
        if dice.randrange(99) == 0:
            value = dice.choice(_POISON)(row.value, dice)
            # A record without a value does not count as unreadable.
            yield Fed(dice.randrange(PARTITIONS), b"poison", value, DEAD if value else NOTHING)


_POISON: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    lambda value, dice: dice.randbytes(64),
    lambda value, dice: value[: dice.randrange(1, len(value) - 1)],
    lambda value, dice: b"\xff" + value,
    lambda value, dice: value.replace(b'"data"', b'"date"'),
    lambda value, dice: value.replace(b'"type":"', b'"type":"?'),
    lambda value, dice: b"[" * 5000,
    lambda value, dice: b"",
)


METADATA_EVERY = 100  # messages of one partition


def qlik(dice: random.Random) -> Iterator[Fed]:
    """Return one table per partition. A metadata message with a new version follows every hundred messages."""
    version = [0] * PARTITIONS
    in_partition = [0] * PARTITIONS
    for key, sequence in _rows(dice):
        partition = key % PARTITIONS
        if in_partition[partition] % METADATA_EVERY == 0:
            version[partition] += 1
            # The first version creates the table. Later ones change it, which is announced.
            expect = NOTHING if version[partition] == 1 else EVENT
            yield Fed(partition, b"metadata", _qlik_metadata(partition, version[partition]), expect)
        in_partition[partition] += 1
        value = _qlik_row(partition, version[partition], key, sequence, dice)
        yield Fed(partition, b"%d" % key, value, f"row/{key}/{sequence}")


def _schema_id(table: int, version: int) -> str:
    return f"{table:04}{version:06}"


def _qlik_metadata(table: int, version: int) -> bytes:
    number = {"type": "INT8", "length": 10, "precision": 0, "scale": 0, "nullable": False}
    columns = {
        "id": {**number, "ordinal": 1, "primaryKeyPosition": 1},
        "seq": {**number, "ordinal": 2, "primaryKeyPosition": 0},
        "pad": {**number, "ordinal": 3, "primaryKeyPosition": 0, "type": "STRING", "length": 100 + version},
    }
    lineage = {"server": "s", "task": "t", "schema": "HR", "table": f"T{table}"}
    lineage |= {"tableVersion": version, "timestamp": "2026-01-01T00:00:00.000"}
    message = {"schemaId": _schema_id(table, version), "lineage": lineage}
    message |= {"tableStructure": {"tableColumns": columns}, "dataSchema": "{}"}
    return _qlik("MD", table, version, message)


def _qlik_row(table: int, version: int, key: int, sequence: int, dice: random.Random) -> bytes:
    headers = {"operation": "UPDATE" if sequence else "INSERT", "changeSequence": "", "timestamp": ""}
    headers |= {"streamPosition": "", "transactionId": "", "changeMask": None, "columnMask": None}
    row = {"id": key, "seq": sequence, "pad": f"{dice.getrandbits(256):064x}"}
    return _qlik("DT", table, version, {"data": row, "beforeData": None, "headers": headers})


def _qlik(kind: str, table: int, version: int, message: dict[str, Any]) -> bytes:
    envelope = {"magic": "atMSG", "type": kind, "headers": None}
    envelope |= {"messageSchemaId": _schema_id(table, version), "messageSchema": None, "message": message}
    return json.dumps(envelope).encode()


_CANAL = {"dialect": "canal", "options": {"profile": "oss"}}

INPUTS = {
    "canal": Input(_CANAL, canal),
    "poisoned": Input(_CANAL, poisoned),
    "qlik": Input({"dialect": "qlik"}, qlik),
}
