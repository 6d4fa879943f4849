"""Canal messages for tests: one well-formed UPDATE, and ways to modify it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from tests.translator.dialects.made import made
from translator.dialects.canal import Canal
from translator.errors import MessageError
from translator.message import Changes, DeclaredTable, Limits, Message, OtherChange, Outcome, RowChange, Setup

UPDATE: Mapping[str, Any] = {
    "data": [{"id": "7", "name": "new", "n": None}],
    "database": "shop",
    "es": 1700000000000,
    "gtid": "",
    "id": 3,
    "isDdl": False,
    "mysqlType": {"id": "bigint(20)", "name": "varchar(50)", "n": "int(11)"},
    "old": [{"name": "old"}],
    "pkNames": ["id"],
    "sql": "",
    "sqlType": {"id": -5, "name": 12, "n": 4},
    "table": "orders",
    "ts": 1700000000123,
    "type": "UPDATE",
}
FULL = {"id": "7", "name": "old", "n": "1"}
"""A row with all columns and other values."""


def message(value: bytes | None) -> Message:
    return Message("raw.shop", 0, 5, 1700000000500, None, value)


def canal(*tables: DeclaredTable, limits: Limits | None = None, **options: Any) -> Canal:
    return made(Canal, Setup("s", limits=limits or Limits(), tables=tables), options)


def spelled(body: Any) -> bytes:
    """Return a message in the shortest spelling, as its writer sends it."""
    return json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode()


def decode(body: Any, dialect: Canal | None = None, **options: Any) -> Outcome:
    return (dialect or canal(**options)).decode(message(json.dumps(body).encode()))


def rows(body: Any, dialect: Canal | None = None, **options: Any) -> list[RowChange]:
    """Return the row changes of a message that contains nothing else."""
    outcome = decode(body, dialect, **options)
    assert isinstance(outcome, Changes)
    assert all(isinstance(change, RowChange) for change in outcome.changes)
    return [change for change in outcome.changes if isinstance(change, RowChange)]


def row(body: Any, dialect: Canal | None = None, **options: Any) -> RowChange:
    (change,) = rows(body, dialect, **options)
    return change


def other(body: Any, **options: Any) -> OtherChange:
    outcome = decode(body, **options)
    assert isinstance(outcome, Changes)
    (change,) = outcome.changes
    assert isinstance(change, OtherChange)
    return change


def others(body: Any, **options: Any) -> dict[str | None, tuple[str | None, list[str] | None]]:
    """Return the events of a statement: database and notes by table."""
    outcome = decode(body, **options)
    assert isinstance(outcome, Changes)
    assert all(isinstance(change, OtherChange) for change in outcome.changes)
    return {
        None if change.table is None else change.table.table: (change.db, change.notes)
        for change in outcome.changes
        if isinstance(change, OtherChange)
    }


def refused(body: Any, dialect: Canal | None = None, **options: Any) -> MessageError:
    with pytest.raises(MessageError) as caught:
        decode(body, dialect, **options)
    return caught.value


def update(**members: Any) -> dict[str, Any]:
    """Return the UPDATE with other members."""
    return {**UPDATE, **members}


def of_type(type_: str, data: Any = None, old: Any = None, **members: Any) -> dict[str, Any]:
    """Return a message of that type with these images."""
    return update(type=type_, data=data, old=old, **members)
