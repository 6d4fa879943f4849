"""Messages as Debezium's connectors write them, and what the translator makes of them."""

import base64
import json
from typing import Any

import pytest
from cdc_debezium_json import PLUGIN

from translator.dialect_api import MaskedValues, Message
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


DECIMAL = {
    "name": "org.apache.kafka.connect.data.Decimal",
    "parameters": {"scale": "2", "connect.decimal.precision": "9"},
}
POINT = {"field": "name", "type": "struct", "name": "io.debezium.data.geometry.Point"}
BITS = {"name": "io.debezium.data.Bits"}


@pytest.mark.parametrize(
    ("column", "sent", "type_", "canonical"),
    [
        ({"type": "string"}, "Anne", "string", "Anne"),
        ({"type": "bytes", **DECIMAL}, "/xs=", "decimal(9,2)", "-2.29"),
        ({"type": "bytes", **BITS, "parameters": {"length": "9"}}, "AQE=", "uint16", 257),
        ({"type": "bytes", **BITS, "parameters": {"length": "64"}}, "/////////38=", "uint64", str(2**63 - 1)),
        ({"type": "int32", "name": "io.debezium.time.Time"}, 500, "time", "00:00:00.5"),
        ({"type": "int64", "name": "io.debezium.time.MicroTime"}, -3020399_000001, "time", "-838:59:59.000001"),
        ({"type": "struct", "name": "io.debezium.data.geometry.Point"}, {"wkb": "AQ==", "x": 1.0}, "geometry", "AQ=="),
    ],
)
def test_the_schema(column: dict[str, Any], sent: object, type_: str, canonical: object) -> None:
    """A record's schema is the table's: its columns with their types, and the key."""
    body = with_schema([{"type": "int32", "field": "id"}, {**column, "field": "c"}], {"id": 1, "c": sent})
    found = translated(body, {"id": 1})
    assert json.loads(found.events[0].after) == {"id": 1, "c": canonical}
    columns = [(listed.name, listed.type, listed.key) for listed in found.schemas[0].columns]
    assert columns == [("id", "int32", 1), ("c", type_, None)]


def test_bytes_that_were_not_sent() -> None:
    """A column with bytes has the placeholder as base64."""
    after = {"id": 1004, "photo": base64.b64encode(b"__debezium_unavailable_value").decode()}
    columns = [{"field": "id", "type": "int32"}, {"field": "photo", "type": "bytes"}]
    found = event(with_schema(columns, after), {"id": 1004})
    assert (found.unavailable, json.loads(found.after)) == (["photo"], {"id": 1004})


def test_a_value_that_neither_image_has() -> None:
    """It is listed once."""
    row = {**ROW, "note": "__debezium_unavailable_value"}
    assert ["note"] == event({**CREATE, "op": "u", "before": row, "after": row}, {"id": 1004}).unavailable


@pytest.mark.parametrize(
    ("key", "columns"),
    [
        ({"payload": 1}, {"payload": 1}),
        ({"schema": 1, "payload": 2}, {"schema": 1, "payload": 2}),
        ({"schema": None, "payload": {"payload": 1}}, {"payload": 1}),
    ],
)
def test_a_key_column_called_payload(key: object, columns: dict[str, int]) -> None:
    found = event({**CREATE, "after": {**ROW, **columns}}, key)
    assert columns == json.loads(found.key)


@pytest.mark.parametrize(
    "body",
    [
        {**CREATE, "source": {**SOURCE, "query": "INSERT INTO customers VALUES ('Anne')"}},
        {"source": SOURCE, "ddl": "CREATE TABLE t (name TEXT DEFAULT 'Anne')"},
        {**ROW, "op": {"of": "Anne"}},
        {"op": "m", "message": {"prefix": "Anne", "content": "QW5uZQ=="}},
        {"payload": ROW},
        with_schema([{"field": "name", "type": "string", "default": "Anne"}], ROW),
        with_schema([{"field": "name", "type": "string", "default": {"type": "Anne"}}], ROW),
        with_schema([{"field": "name", "type": "string", "parameters": {"allowed": "Anne"}}], ROW),
        {"id": 1, "op": "Anne", "source": {"name": "Anne"}},
        {"schema": None, "payload": {"op": "Anne", "ts_ms": 1, "source": "QW5uZQ"}},
        [{"op": "c", "source": {"name": "Anne"}}],
    ],
)
def test_no_value_is_in_a_masked_copy(body: dict[str, Any] | list[Any]) -> None:
    """Neither from statements, defaults, logical messages, nor from records that a transform has unwrapped."""
    masked_value = PLUGIN.masked_value
    assert masked_value is not None
    copy = masked_value(json.dumps(body).encode(), MaskedValues(b"key"))
    assert b"Anne" not in copy
    assert b"QW5uZQ" not in copy


@pytest.mark.parametrize("digits", [38, 65])
@pytest.mark.parametrize("sign", ["", "-"])
def test_a_long_decimal(digits: int, sign: str) -> None:
    """No digit is lost. MySQL's decimals have up to 65 digits."""
    whole = ("1234567890" * 7)[: digits - 4]
    unscaled = int(f"{sign}{whole}8901")
    column = {"field": "p", "type": "bytes", "name": "org.apache.kafka.connect.data.Decimal"}
    encoded = base64.b64encode(unscaled.to_bytes(28, signed=True)).decode()
    found = event(with_schema([{**column, "parameters": {"scale": "4"}}], {"p": encoded}))
    assert json.loads(found.after) == {"p": f"{sign}{whole}.8901"}


@pytest.mark.parametrize(
    ("sent", "canonical"),
    [
        ("2020-01-01T00:00:00.100+02:00", "2019-12-31T22:00:00.1Z"),
        ("2020-01-01T00:00:00.123456789Z", "2020-01-01T00:00:00.123456789Z"),
        ("2020-01-01T00:00:00.000Z", "2020-01-01T00:00:00Z"),
    ],
)
def test_a_time_with_an_offset(sent: str, canonical: str) -> None:
    columns = [{"field": "z", "type": "string", "name": "io.debezium.time.ZonedTimestamp"}]
    assert json.loads(event(with_schema(columns, {"z": sent})).after) == {"z": canonical}


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("int32", True),
        ("int64", "Anne"),
        ("boolean", 1),
        ("string", 1),
        ("bytes", 1),
        ("bytes", "Anne!"),
        ("int8", 128),
        ("int8", -129),
        ("int16", 1 << 15),
        ("int32", 1 << 31),
        ("int64", 1 << 63),
        ("double", "NaN"),
        ("float", True),
    ],
)
def test_a_value_of_another_type(kind: str, value: object) -> None:
    assert translated(with_schema([{"field": "name", "type": kind}], {"name": value})).code == "INVALID_FIELD"


def test_a_number_that_no_double_holds() -> None:
    body = json.dumps({**CREATE, "after": {"id": 1}}).replace('"id": 1', '"id": 1.5e999')
    assert translated(body.encode()).code == "INVALID_FIELD"


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
        (
            with_schema([{"field": "name", "type": "bytes", **DECIMAL, "parameters": {"scale": "Anne"}}], ROW),
            "UNSUPPORTED_SHAPE",
        ),
        *(
            (
                with_schema([{"field": "name", "type": "bytes", **DECIMAL, "parameters": parameters}], ROW),
                "UNSUPPORTED_SHAPE",
            )
            for parameters in (
                {"scale": 2},
                {"scale": "1_0"},
                {"scale": "2", "connect.decimal.precision": "-5"},
                {"scale": "2", "connect.decimal.precision": "99999999999"},
            )
        ),
        (
            b'{"schema": {"fields": [{"field": "after", "fields": [{"field": "name", "type": "bytes", "name": '
            b'"org.apache.kafka.connect.data.Decimal", "parameters": {"scale": 1e999999}}]}]}, "payload": {}}',
            "UNSUPPORTED_SHAPE",
        ),
        (
            with_schema([{"field": "name", "type": "bytes", **BITS, "parameters": {"length": "65"}}], ROW),
            "UNSUPPORTED_SHAPE",
        ),
        (
            with_schema([{"field": "name", "type": "bytes", **BITS, "parameters": {"length": "2"}}], ROW),
            "INVALID_FIELD",
        ),
        (with_schema([POINT], {"name": {"wkb": ["Anne"]}}), "INVALID_FIELD"),
        (with_schema([POINT], {"name": "Anne"}), "INVALID_FIELD"),
    ],
)
def test_what_is_rejected(body: object, code: str) -> None:
    """The reason never contains a value."""
    found = translated(body)
    assert code == found.code
    assert "Anne" not in found.reason
