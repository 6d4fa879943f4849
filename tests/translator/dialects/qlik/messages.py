"""Build Qlik messages for the tests of this dialect."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from cdc_core.envelope import ChangeEvent
from tests.translator.dialects.made import made
from translator.dialects.qlik import Qlik
from translator.errors import MessageError
from translator.message import Changes, DeclaredTable, Learned, Limits, Message, Outcome, RowChange, Setup
from translator.translation.translate import Events, Translator

CASES = Path(__file__).parents[1] / "cases" / "qlik"
SCHEMA_ID = "8FB9D3C10EA4B25751DF9CC8318F0A02"
SEQUENCE = "20230911032325000000000000000000005"


def message(value: bytes | dict[str, Any] | None, topic: str = "t") -> Message:
    """Return a record with that value."""
    raw = json.dumps(value).encode() if isinstance(value, dict) else value
    return Message(topic, 0, 0, 0, None, raw)


def bare(operation: Any = "INSERT", data: Any = None, before: Any = None, **headers: Any) -> dict[str, Any]:
    """Return a bare data message."""
    return {"data": data, "beforeData": before, "headers": {"operation": operation, **headers}}


def enveloped(body: dict[str, Any], schema_id: str | None = None, kind: str = "DT") -> dict[str, Any]:
    """Return a message in the Replicate envelope."""
    return {
        "magic": "atMSG",
        "type": kind,
        "headers": None,
        "messageSchemaId": schema_id,
        "messageSchema": None,
        "message": body,
    }


def metadata(columns: dict[str, dict[str, Any]], **lineage: Any) -> dict[str, Any]:
    """Return a metadata message. Columns without an ordinal get one in order."""
    numbered = {name: {"ordinal": n, "type": "STRING", **told} for n, (name, told) in enumerate(columns.items(), 1)}
    body = {
        "schemaId": SCHEMA_ID,
        "lineage": {"schema": "S", "table": "T", **lineage},
        "tableStructure": {"tableColumns": numbered},
        "dataSchema": "{}",
    }
    return enveloped(body, SCHEMA_ID, "MD")


def dialect(known: dict[str, object] | None = None, tables: tuple[DeclaredTable, ...] = (), **options: Any) -> Qlik:
    """Return the dialect, by default with `topics: S.T`."""
    setup = Setup("src", Limits(columns=20, schema_text_bytes=10_000), tables, ({} if known is None else known).get)
    return made(Qlik, setup, {"topics": "S.T", **options})


def taught(columns: dict[str, dict[str, Any]], tables: tuple[DeclaredTable, ...] = (), **lineage: Any) -> Qlik:
    """Return the dialect after a metadata message."""
    known: dict[str, object] = {}
    reader = dialect(known, tables)
    learned = reader.decode(message(metadata(columns, **lineage)))
    assert isinstance(learned, Learned)
    known[learned.key] = reader.learn(learned.key, learned.document)
    return reader


def change(reader: Qlik, value: bytes | dict[str, Any]) -> RowChange:
    """Return the only row change of a message."""
    outcome = reader.decode(message(value))
    assert isinstance(outcome, Changes)
    (only,) = outcome.changes
    assert isinstance(only, RowChange)
    return only


def events(reader: Qlik, value: bytes | dict[str, Any] | Message) -> list[ChangeEvent]:
    """Return the events of a message."""
    record = value if isinstance(value, Message) else message(value)
    result = Translator("src", reader, Limits()).translate(record)
    assert isinstance(result, Events)
    return result.events


def refusal(reader: Qlik, value: bytes | dict[str, Any]) -> tuple[str, str]:
    """Return the code and path of the error that a message raises."""
    try:
        outcome: Outcome = reader.decode(message(value))
    except MessageError as error:
        return error.code.value, error.path
    raise AssertionError(f"translated to {outcome!r}")


def sample(case: str, name: str = "message.json") -> bytes:
    """Return the bytes of a case."""
    return (CASES / case / name).read_bytes()
