"""What the tests of DTS Avro share: a message -> its one change, a cell -> its one value."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from tests.translator.dialects.dts_avro_composer import Cell, row
from translator.dialects.dts_avro import DtsAvro
from translator.errors import ErrorCode, MessageError
from translator.message import Changes, DeclaredTable, Message, OtherChange, Outcome, RowChange, Setup

MYSQL = ("MySQL", "5.7")
ORACLE = ("Oracle", "19.0")
POSTGRESQL = ("PostgreSQL", "14.8")
SQL_SERVER = ("SQLServer", "2019")


def decode(value: bytes | None, *, tables: Sequence[DeclaredTable] = (), **options: Any) -> Outcome:
    """The outcome of one message under these options."""
    return DtsAvro(Setup("src", tables=tuple(tables)), options).decode(Message("raw", 0, 0, 0, None, value))


def row_of(value: bytes, *, tables: Sequence[DeclaredTable] = (), **options: Any) -> RowChange:
    """The row that a message must carry."""
    outcome = decode(value, tables=tables, **options)
    assert isinstance(outcome, Changes)
    (change,) = outcome.changes
    assert isinstance(change, RowChange)
    return change


def statement_of(value: bytes) -> OtherChange:
    """The statement that a message must carry."""
    outcome = decode(value)
    assert isinstance(outcome, Changes)
    (change,) = outcome.changes
    assert isinstance(change, OtherChange)
    return change


def refused(value: bytes) -> tuple[ErrorCode, str]:
    """Code and path of the dead letter that a message must become."""
    with pytest.raises(MessageError) as caught:
        decode(value)
    return caught.value.code, caught.value.path


def value_of(
    source: tuple[str, str],
    number: int,
    cell: Cell,
    *,
    declared: str | None = None,
    options: Mapping[str, str] | None = None,
    **given: str,
) -> tuple[object, object]:
    """Type of a column with its value, or with the code and the raw text of its issue."""
    tables = [DeclaredTable("*", columns={"c": declared})] if declared else []
    change = row_of(row("INSERT", {"c": (number, cell)}, source=source, **given), tables=tables, **(options or {}))
    assert change.schema is not None
    assert change.after is not None
    (column,) = change.schema.columns
    if not change.issues:
        return column.type, change.after["c"]
    (issue,) = change.issues
    assert {} == change.after
    return column.type, (issue.code, issue.raw)
