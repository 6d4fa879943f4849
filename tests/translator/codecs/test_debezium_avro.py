"""Debezium as Avro: schemas and bytes, and Avro readers find what Debezium's JSON contains."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import fastavro
import msgspec
import pytest
from hypothesis import assume, event, given
from hypothesis import strategies as st

from cdc_core.envelope import ChangeEvent, Column, TableSchema
from tests.translator.codecs.debezium_rows import Case, cases
from tests.translator.examples import DDL, UPDATE
from translator.codecs.debezium import DebeziumCodec
from translator.codecs.debezium import Options as JsonOptions
from translator.codecs.debezium_avro import DebeziumAvroCodec, Options
from translator.codecs.record import Record
from translator.codecs.registered import TableSchemas, UnregisteredSchema, avro_name
from translator.errors import ErrorCode, MessageError

SCHEMA = TableSchema.of(
    "shop",
    "shop",
    "dbo",
    "orders",
    [Column("id", "int32", key=1), Column("price", "decimal(9,2)"), Column("qty", "int16"), Column("note", "string")],
    "primary",
)
ROW = '{"id":7,"price":"12.5","qty":3,"note":null}'
CHANGE = msgspec.structs.replace(
    UPDATE, key='{"id":7}', key_old=None, before=ROW, after=ROW, unavailable=None, issues=None, changed=None
)
DELETE = msgspec.structs.replace(CHANGE, op="d", after=None)


class Registry:
    """Assigns ids and decodes by them."""

    def __init__(self) -> None:
        self.texts: dict[tuple[str, str], int] = {}

    def id_of(self, subject: str, text: str) -> int:
        return self.texts.setdefault((subject, text), len(self.texts) + 1)

    @property
    def subjects(self) -> list[str]:
        return [subject for subject, _ in self.texts]

    def schema(self, data: bytes) -> dict[str, Any]:
        assert data[:1] == b"\x00"
        wanted = int.from_bytes(data[1:5], "big")
        (text,) = [text for (_, text), found in self.texts.items() if found == wanted]
        parsed: dict[str, Any] = json.loads(text)
        return parsed

    def read(self, data: bytes) -> Any:
        body = io.BytesIO(data[5:])
        found = fastavro.schemaless_reader(body, fastavro.parse_schema(self.schema(data)), None)
        assert body.read() == b""
        return found


def codec(registry: Registry, **options: Any) -> DebeziumAvroCodec:
    return DebeziumAvroCodec(TableSchemas(registry.id_of, lambda event: "out"), msgspec.convert(options, Options))


def records(
    registry: Registry, event: ChangeEvent, schema: TableSchema | None = SCHEMA, **options: Any
) -> list[Record]:
    return codec(registry, **options).encode(event, schema)


class TestForm:
    def test_key_schema(self) -> None:
        """A key has wide types, so records without a schema have the same key."""
        registry = Registry()
        ((key, other),) = [
            (one.key, two.key)
            for one, two in zip(
                records(registry, CHANGE), records(registry, DELETE, None, missing_before=["partial"]), strict=True
            )
        ]
        assert key == other == b"\x00\x00\x00\x00\x01\x0e"
        assert {
            "type": "record",
            "name": "Key",
            "namespace": "shop.shop.dbo.orders",
            "fields": [{"name": "id", "type": "long"}],
        } == registry.schema(key or b"")

    def test_row_schema(self) -> None:
        """Columns have the table's types and are nullable. Key columns are as in the key."""
        registry = Registry()
        (record,) = records(registry, CHANGE)
        before, after = registry.schema(record.value or b"")["fields"][:2]
        decimal = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
        assert [
            {"name": "id", "type": ["null", "long"], "default": None},
            {"name": "price", "type": ["null", decimal], "default": None},
            {"name": "qty", "type": ["null", {"type": "int", "connect.type": "int16"}], "default": None},
            {"name": "note", "type": ["null", "string"], "default": None},
        ] == before["type"][1]["fields"]
        assert ["null", "shop.shop.dbo.orders.Value"] == after["type"]

    def test_value(self) -> None:
        """The images are inside Debezium's envelope."""
        registry = Registry()
        (record,) = records(registry, CHANGE)
        found = registry.read(record.value or b"")
        row = {"id": 7, "price": Decimal("12.50"), "qty": 3, "note": None}
        assert (row, row, "u") == (found["before"], found["after"], found["op"])
        assert ["id"] == found["pkNames"]
        assert "orders" == found["source"]["table"]

    def test_subjects(self) -> None:
        """The subject is the topic, or topic and record if a topic has several tables."""
        registry = Registry()
        records(registry, CHANGE)
        assert ["out-key", "out-value"] == registry.subjects
        registry = Registry()
        records(registry, CHANGE, subject="topic_record")
        assert ["out-shop.shop.dbo.orders.Key", "out-shop.shop.dbo.orders.Envelope"] == registry.subjects

    def test_the_same_table_has_one_schema(self) -> None:
        """The schema's text depends only on the table, so every process requests the same one."""
        one, two = Registry(), Registry()
        assert records(one, CHANGE) == records(two, CHANGE)
        assert one.texts == two.texts

    def test_tombstone(self) -> None:
        """With the option, a delete is followed by its key without a value."""
        registry = Registry()
        delete, tombstone = records(registry, DELETE, tombstones=True)
        assert (delete.key, None) == (tombstone.key, tombstone.value)

    def test_key_change(self) -> None:
        """It becomes a delete and a create, each with its key and a header that refers to the other."""
        registry = Registry()
        moved = msgspec.structs.replace(CHANGE, key='{"id":8}', key_old='{"id":7}', after=ROW.replace("7", "8", 1))
        gone, new = records(registry, moved)
        assert ["d", "c"] == [registry.read(one.value or b"")["op"] for one in (gone, new)]
        assert [("__debezium.newkey", new.key)] == [pair for pair in gone.headers if pair[0].startswith("__")]
        assert [("__debezium.oldkey", gone.key)] == [pair for pair in new.headers if pair[0].startswith("__")]

    def test_other_kinds(self) -> None:
        """DDL has no record."""
        ddl = msgspec.structs.replace(CHANGE, kind="schema", op=None, ddl=DDL, after=None, before=None)
        assert [] == records(Registry(), ddl, None)

    def test_names(self) -> None:
        """A column with an invalid Avro name gets another, and the schema has the original."""
        schema = TableSchema.of(
            "shop", None, None, "t", [Column("id", "int64", key=1), Column("q-1", "string")], "primary"
        )
        registry = Registry()
        row = '{"id":7,"q-1":"x"}'
        (record,) = records(registry, msgspec.structs.replace(CHANGE, before=row, after=row), schema)
        assert "x" == registry.read(record.value or b"")["after"]["q_1"]
        fields = registry.schema(record.value or b"")["fields"][0]["type"][1]["fields"]
        assert "column q-1" == fields[1]["doc"]

    @pytest.mark.parametrize(
        ("name", "legal"), [("a", "a"), ("1a", "_1a"), ("", "_"), ("名", "_"), ("a b.c", "a_b_c"), ("_", "_")]
    )
    def test_avro_name(self, name: str, legal: str) -> None:
        """A name has ASCII letters, digits and underscores, and does not start with a digit."""
        assert legal == avro_name(name)


class TestRefusals:
    @pytest.mark.parametrize(
        ("change", "schema", "options", "reason"),
        [
            ({}, None, {}, "declare the columns of the table"),
            (
                {"after": '{"id":7,"price":"1.00","qty":3}'},
                SCHEMA,
                {"missing_before": ["partial"]},
                "column 'note' has no",
            ),
            (
                {"after": ROW.replace("12.5", "12.555")},
                SCHEMA,
                {},
                "column 'price' has a value that does not fit its type",
            ),
            (
                {"after": ROW.replace("12.5", "12345678.5")},
                SCHEMA,
                {},
                "column 'price' has a value that does not fit its type",
            ),
            ({"after": ROW[:-1] + ',"new":1}'}, SCHEMA, {}, "column 'new' is not in the table's schema"),
        ],
    )
    def test_refused(
        self, change: Mapping[str, Any], schema: TableSchema | None, options: Mapping[str, Any], reason: str
    ) -> None:
        """The error for a value without a faithful form names its column and never shows the value."""
        with pytest.raises(MessageError, match=f"^debezium_avro: .*{reason}") as refused:
            records(Registry(), msgspec.structs.replace(CHANGE, **change), schema, **options)
        assert ErrorCode.UNSUPPORTED_SHAPE == refused.value.code
        assert "12" not in refused.value.reason

    def test_two_columns_of_one_name(self) -> None:
        """Two columns with the same Avro name could not be told apart."""
        schema = TableSchema.of("shop", None, None, "t", [Column("a-b", "string"), Column("a b", "string")], "none")
        with pytest.raises(MessageError, match="two columns of the table would have the same name in Avro,"):
            records(Registry(), msgspec.structs.replace(CHANGE, key=None), schema)

    def test_a_key_that_changes_its_type(self) -> None:
        """For an undeclared column, a single schema would turn the old key into one that the row never had."""
        schema = TableSchema.of("shop", None, None, "t", [Column("a", "unknown", key=1)], "primary")
        moved = msgspec.structs.replace(
            CHANGE, key='{"a":"x"}', key_old='{"a":false}', before='{"a":false}', after='{"a":"x"}'
        )
        with pytest.raises(MessageError, match=r"key column 'a' changes from boolean to string;"):
            records(Registry(), moved, schema)

    def test_unregistered(self) -> None:
        """A codec never waits. It reports the schema that it needs until the id is known."""

        def unknown(subject: str, text: str) -> int:
            raise UnregisteredSchema(subject, text)

        with pytest.raises(UnregisteredSchema) as wanted:
            DebeziumAvroCodec(TableSchemas(unknown, lambda event: "out")).encode(CHANGE, SCHEMA)
        assert "out-key" == wanted.value.subject

    def test_null_may_stand_for_it(self) -> None:
        """With the option, NULL replaces the value, and a header lists the columns."""
        registry = Registry()
        sent = msgspec.structs.replace(CHANGE, before=None, after='{"id":7,"price":"1.00","qty":3}')
        (record,) = records(registry, sent, unavailable="null")
        assert registry.read(record.value or b"")["after"]["note"] is None
        assert ("cdc-unavailable", b'["note"]') in record.headers


def legal_names(case: Case) -> bool:
    columns = case.schema.columns if case.schema else ()
    return len({avro_name(column.name) for column in columns}) == len(columns)


@given(cases(), st.booleans())
def test_it_says_what_json_says(case: Case, tombstones: bool) -> None:
    """Records, operations and images match Debezium's JSON. Additional columns of Avro are NULL.

    A column that JSON omits is NULL here, and an event without a schema has its key.
    """
    assume(legal_names(case))
    registry = Registry()
    try:
        found = records(registry, case.event, case.schema, unavailable="null", tombstones=tombstones)
    except MessageError:
        event("refused")
        return
    expected = DebeziumCodec(JsonOptions(tombstones=tombstones)).encode(case.event, case.schema)
    assert len(expected) == len(found)
    types = case.schema.column_types if case.schema else {}
    event(f"op {case.event.op}, schema {case.schema is not None}")
    # The old key also shows the types of key columns, if the new one is NULL.
    shown = json.loads(case.event.key or case.event.key_old or "{}")
    for one, plain in zip(found, expected, strict=True):
        assert (plain.key is None, plain.value is None) == (one.key is None, one.value is None)
        if plain.key is not None and one.key is not None:
            key = json.loads(plain.key)
            assert {avro_name(name): as_key(value) for name, value in key.items()} == registry.read(one.key)
        if plain.value is None or one.value is None:
            continue
        payload, datum = json.loads(plain.value), registry.read(one.value)
        keyed = payload.get("pkNames") or []
        for side in ("before", "after"):
            if case.schema is None and payload[side] is not None:
                payload[side] = {name: value for name, value in payload[side].items() if name in keyed}
            image = (
                None
                if payload[side] is None
                else {
                    avro_name(name): as_avro(types.get(name, "unknown"), value, keyed=name in shown)
                    for name, value in payload[side].items()
                }
            )
            assert image == plain_image(datum[side], image)
        rest = {name: value for name, value in datum.items() if name not in ("before", "after")}
        source = {name: value for name, value in rest.pop("source").items() if value is not None}
        assert payload["source"] == source
        assert {name: value for name, value in rest.items() if value is not None} | {"transaction": None} == {
            name: value for name, value in payload.items() if name not in ("before", "after", "source")
        } | {"transaction": None}


def plain_image(found: dict[str, Any] | None, expected: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return the image without the NULLs of columns that JSON omits."""
    if found is None or expected is None:
        return found
    return {
        name: value if value == value else "NaN"
        for name, value in found.items()
        if name in expected or value is not None
    }


def as_key(value: Any) -> Any:
    return value


def as_avro(canonical: str, value: Any, *, keyed: bool) -> Any:
    """Return an image value as an Avro reader gets it."""
    if value is None or keyed:
        return value
    if canonical == "bytes":
        return base64.b64decode(value)
    if canonical.startswith("decimal("):
        return Decimal(value)
    if canonical.startswith("float"):
        return "NaN" if value == "NaN" else float(value)
    if canonical == "unknown" and not isinstance(value, str):
        return json.dumps(value)
    return value
