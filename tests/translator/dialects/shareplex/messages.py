"""Build SharePlex messages for the tests of this dialect."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.translator.dialects.made import made
from translator.dialects.shareplex import SharePlex
from translator.errors import MessageError
from translator.message import Change, Changes, DeclaredTable, Limits, Message, OtherChange, Outcome, RowChange, Setup

CASES = Path(__file__).parents[1] / "cases" / "shareplex"

BAND = DeclaredTable(
    "PHUNT1013U1.*",
    key=("BAND_NAME",),
    columns={"BAND_NAME": "string", "YEAR_START": "int32", "YEAR_END": "int32", "SORTED": "timestamp"},
)
"""The table of the real Quest lines, as an operator would declare it."""

KEYED = DeclaredTable("A.T", key=("ID",))
"""A key without columns."""


def sample(case: str) -> bytes:
    """Return the message of a case."""
    (file,) = (CASES / case).glob("message.*")
    return file.read_bytes()


def body(op: object, *, meta: dict[str, Any] | None = None, **members: Any) -> dict[str, Any]:
    """Return a change of A.T."""
    return {"meta": {"op": op, "table": "A.T", **(meta or {})}, **members}


def dialect(*tables: DeclaredTable, limits: Limits | None = None, **options: Any) -> SharePlex:
    """Return the dialect with these declarations and options."""
    return made(SharePlex, Setup("src", limits or Limits(), tables), options)


def outcome(reader: SharePlex, value: bytes | dict[str, Any] | None) -> Outcome:
    """Return the dialect's outcome for a value."""
    raw = json.dumps(value).encode() if isinstance(value, dict) else value
    return reader.decode(Message("t", 0, 0, 0, None, raw))


def changes(reader: SharePlex, value: bytes | dict[str, Any]) -> list[Change]:
    """Return the changes in a value."""
    made = outcome(reader, value)
    assert isinstance(made, Changes)
    return made.changes


def row(reader: SharePlex, value: bytes | dict[str, Any]) -> RowChange:
    """Return the only change in a value, a row."""
    (change,) = changes(reader, value)
    assert isinstance(change, RowChange)
    return change


def other(reader: SharePlex, value: bytes | dict[str, Any]) -> OtherChange:
    """Return the only change in a value, which is not a row."""
    (change,) = changes(reader, value)
    assert isinstance(change, OtherChange)
    return change


def refusal(reader: SharePlex, value: bytes | dict[str, Any]) -> tuple[str, str, str]:
    """Return the code, reason and path of a value's dead letter."""
    try:
        made = outcome(reader, value)
    except MessageError as error:
        return error.code.value, error.reason, error.path
    raise AssertionError(f"translated: {made}")
