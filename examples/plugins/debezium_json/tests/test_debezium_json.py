"""Messages as Debezium's connectors write them, and what the translator makes of them."""

import json
from typing import Any

import pytest

from translator.dialect_api import Message
from translator.operations.file_translator import of_dialect

SOURCE = {"connector": "mysql", "name": "dbserver1", "ts_ms": 1465491411815, "db": "inventory", "table": "customers"}
ROW = {"id": 1004, "name": "Anne", "note": None}
CREATE = {"before": None, "after": ROW, "source": SOURCE, "op": "c", "ts_ms": 1465491411820}


def translated(body: object, key: object = None) -> Any:
    """Return the outcome for a message."""
    value = body if isinstance(body, bytes) else json.dumps(body).encode()
    translator = of_dialect("debezium_json", {}, "s", [], lambda text: None)
    message = Message("raw", 0, 0, 0, None if key is None else json.dumps(key).encode(), value)
    return translator.translate(message).outcome


def event(body: object, key: object = None) -> Any:
    """Return the only event of a message."""
    (found,) = translated(body, key).events
    return found


def with_schema(columns: list[dict[str, Any]], row: dict[str, Any]) -> dict[str, Any]:
    """Return a message with the schema of Kafka Connect's JSON converter."""
    images = [{"type": "struct", "fields": columns, "field": name} for name in ("before", "after")]
    return {"schema": {"type": "struct", "fields": images}, "payload": {**CREATE, "after": row}}


def test_a_create() -> None:
    found = event(CREATE, {"id": 1004})
    assert (found.op, found.db, found.table, json.loads(found.after)) == ("c", "inventory", "customers", ROW)
    assert (found.key, found.ts_commit_us) == ('{"id":1004}', 1465491411815_000)


def test_a_value_that_was_not_sent() -> None:
    """Debezium's placeholder is not a value."""
    after = {**ROW, "note": "__debezium_unavailable_value"}
    found = event({**CREATE, "op": "u", "after": after}, {"id": 1004})
    assert (found.unavailable, json.loads(found.after)) == (["note"], {"id": 1004, "name": "Anne"})


def test_types() -> None:
    """Numbers that stand for dates, times and decimals become canonical text."""
    columns = [
        {"field": "d", "type": "int32", "name": "io.debezium.time.Date"},
        {"field": "t", "type": "int64", "name": "io.debezium.time.Timestamp"},
        {
            "field": "p",
            "type": "bytes",
            "name": "org.apache.kafka.connect.data.Decimal",
            "parameters": {"scale": "2"},
        },
    ]
    image = json.loads(event(with_schema(columns, {"d": 19000, "t": 1465491411815, "p": "/xs="})).after)
    assert image == {"d": "2022-01-08", "t": "2016-06-09T16:56:51.815", "p": "-2.29"}


def test_a_truncate() -> None:
    assert event({**CREATE, "op": "t", "after": None}).op == "t"


def test_a_tombstone() -> None:
    assert translated(b"").reason == "tombstone"


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"{", "MALFORMED_JSON"),
        ({**CREATE, "op": "Anne"}, "UNKNOWN_OPERATION"),
        ({**CREATE, "after": None}, "MISSING_FIELD"),
        ({**CREATE, "after": {"name": ["Anne"]}}, "UNSUPPORTED_SHAPE"),
        ({**CREATE, "source": "Anne"}, "INVALID_FIELD"),
        (with_schema([{"field": "name", "type": "Anne"}], ROW), "UNSUPPORTED_SHAPE"),
        (with_schema([{"field": "name", "type": "int32", "name": "io.debezium.time.Date"}], ROW), "INVALID_FIELD"),
        ({"schema": {"fields": ["Anne"]}, "payload": CREATE}, "UNSUPPORTED_SHAPE"),
    ],
)
def test_what_is_rejected(body: object, code: str) -> None:
    """The reason never contains a value."""
    found = translated(body)
    assert code == found.code
    assert "Anne" not in found.reason
