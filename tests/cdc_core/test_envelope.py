"""The contract with consumers, written as literals so that no release can change it unnoticed."""

import itertools
import json
from typing import Any

import fastavro
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc_core import envelope
from cdc_core.envelope import (
    ChangeEvent,
    Column,
    Detail,
    TableSchema,
    avro_schema,
    schema_text,
)
from cdc_core.position import position
from tests.translator.examples import AFTER, BEFORE, CONTEXT, DDL, DETAIL, KEY

# docs/design.md §4.1, row by row: name -> type, where `?` means "null or".
FIELDS = {
    "v": "int",
    "id": "string",
    "kind": "string",
    "op": "string?",
    "source": "string",
    "dialect": "string",
    "variant": "string?",
    "variant_basis": "string?",
    "dbms": "string?",
    "server": "string?",
    "task": "string?",
    "db": "string?",
    "schema": "string?",
    "table": "string?",
    "pos": "string",
    "pos_scope": "string",
    "pos_native": "string?",
    "ts_commit_us": "timestamp-micros?",
    "ts_capture_us": "timestamp-micros?",
    "ts_origin_us": "timestamp-micros",
    "key": "string?",
    "key_old": "string?",
    "key_kind": "string",
    "before": "string?",
    "after": "string?",
    "before_state": "string",
    "after_state": "string",
    "changed": "array of string?",
    "unavailable": "array of string?",
    "issues": "array of Issue{col: string, code: string, raw: string?}?",
    "schema_id": "string?",
    "tx": "Tx{id: string, seq: long?, size: long?, last: boolean?}?",
    "ddl": "Ddl{type: string, sql: string?, tables: array of string?, parsed: boolean}?",
    "origin": "Origin{topic: string, partition: int, offset: long, row: int, rows: int}",
    "notes": "array of string?",
    "ext": "map of string?",
}


def _spelled(avro_type: Any) -> str:
    """Return an Avro type in the notation of the table above."""
    if isinstance(avro_type, str):
        return avro_type
    if isinstance(avro_type, list):
        null, other = avro_type
        assert "null" == null
        return f"{_spelled(other)}?"
    if avro_type["type"] == "record":
        fields = ", ".join(f"{field['name']}: {_spelled(field['type'])}" for field in avro_type["fields"])
        return f"{avro_type['name']}{{{fields}}}"
    inner = avro_type.get("items") or avro_type.get("values")
    return f"{avro_type['type']} of {_spelled(inner)}" if inner else avro_type["logicalType"]


def _records(avro_type: Any) -> list[dict[str, Any]]:
    """Return every record type inside an Avro type, including the type itself."""
    if isinstance(avro_type, list):
        return [found for arm in avro_type for found in _records(arm)]
    if not isinstance(avro_type, dict):
        return []
    if avro_type["type"] == "record":
        return [avro_type, *(found for field in avro_type["fields"] for found in _records(field["type"]))]
    return _records(avro_type.get("items"))


class TestAvroSchema:
    def test_file(self) -> None:
        """The committed schema is the one that `python -m cdc_core.envelope` generates from the classes."""
        assert schema_text() == envelope.SCHEMA_FILE.read_text()

    def test_fields(self) -> None:
        """Names, order and types match the design."""
        schema = json.loads(schema_text())
        assert list(FIELDS.items()) == [(field["name"], _spelled(field["type"])) for field in schema["fields"]]

    def test_name(self) -> None:
        """The full name of the record is part of its fingerprint."""
        schema = avro_schema()
        assert "cdc.canonical.v1.ChangeEvent" == f"{schema['namespace']}.{schema['name']}"

    def test_null_defaults(self) -> None:
        """Every nullable field at any depth defaults to null, and no other field has a default."""
        fields = [field for record in _records(avro_schema()) for field in record["fields"]]
        assert {field["name"] for field in fields if isinstance(field["type"], list)} == {
            field["name"] for field in fields if field.get("default", "none") is None
        }
        assert [] == [field["name"] for field in fields if field.get("default") is not None]

    def test_every_field_is_explained(self) -> None:
        """The schema file documents each field of the event with a sentence."""
        assert [] == [field["name"] for field in avro_schema()["fields"] if not field.get("doc", "").endswith(".")]

    def test_logical_types_change_nothing_on_the_wire(self) -> None:
        """The parsing canonical form and therefore the fingerprint are the same with and without logical types."""
        forms = {fastavro.schema.to_parsing_canonical_form(avro_schema(logical=logical)) for logical in (True, False)}
        assert 1 == len(forms)

    def test_without_logical_types(self) -> None:
        """Without logical types, no time is converted to a datetime."""
        assert "logicalType" in schema_text()
        assert "logicalType" not in json.dumps(avro_schema(logical=False))


IDENTITY = {
    name: getattr(CONTEXT, name)
    for name in (
        *("id", "source", "dialect", "variant", "variant_basis", "dbms", "server", "task", "db", "schema", "table"),
        *("pos", "pos_scope", "pos_native", "ts_commit_us", "ts_capture_us", "ts_origin_us", "schema_id", "tx"),
        "origin",
    )
}
EMPTY = {
    **dict.fromkeys(("key", "key_old", "before", "after", "ddl", "changed", "unavailable", "issues", "notes", "ext")),
    "op": None,
    "key_kind": "none",
    "before_state": "none",
    "after_state": "none",
}
KEYED = {"key": '{"id":8}', "key_old": '{"id":7}', "key_kind": "primary"}
WITH_BEFORE = {"before": BEFORE.text, "before_state": "partial"}
WITH_AFTER = {"after": AFTER.text, "after_state": "full"}


class TestConstructors:
    @pytest.mark.parametrize(
        ("event", "expected"),
        [
            pytest.param(
                ChangeEvent.snapshot(CONTEXT, KEY, AFTER, Detail()),
                {"kind": "row", "op": "r", **KEYED, **WITH_AFTER},
                id="snapshot",
            ),
            pytest.param(
                ChangeEvent.insert(CONTEXT, KEY, AFTER, Detail()),
                {"kind": "row", "op": "c", **KEYED, **WITH_AFTER},
                id="insert",
            ),
            pytest.param(
                ChangeEvent.update(CONTEXT, KEY, BEFORE, AFTER, Detail()),
                {"kind": "row", "op": "u", **KEYED, **WITH_BEFORE, **WITH_AFTER},
                id="update",
            ),
            pytest.param(
                ChangeEvent.update(CONTEXT, KEY, None, AFTER, Detail()),
                {"kind": "row", "op": "u", **KEYED, **WITH_AFTER},
                id="update without before",
            ),
            pytest.param(
                ChangeEvent.delete(CONTEXT, KEY, BEFORE, Detail()),
                {"kind": "row", "op": "d", **KEYED, **WITH_BEFORE},
                id="delete",
            ),
            pytest.param(
                ChangeEvent.delete(CONTEXT, KEY, None, Detail()),
                {"kind": "row", "op": "d", **KEYED},
                id="delete by key only",
            ),
            pytest.param(ChangeEvent.truncate(CONTEXT, Detail()), {"kind": "row", "op": "t"}, id="truncate"),
            pytest.param(
                ChangeEvent.schema_change(CONTEXT, DDL, Detail()), {"kind": "schema", "ddl": DDL}, id="schema"
            ),
            pytest.param(ChangeEvent.transaction(CONTEXT, Detail()), {"kind": "tx"}, id="tx"),
            pytest.param(ChangeEvent.watermark(CONTEXT, Detail()), {"kind": "watermark"}, id="watermark"),
        ],
    )
    def test_sets_its_fields_only(self, event: ChangeEvent, expected: dict[str, Any]) -> None:
        """A constructor sets the fields of its operation and leaves all others null or `none`."""
        assert {"v": 1, **IDENTITY, **EMPTY, **expected} == msgspec.structs.asdict(event)

    def test_detail_goes_along(self) -> None:
        """Any operation can have changed, unavailable, issues, notes and leftovers."""
        event = ChangeEvent.truncate(CONTEXT, DETAIL)
        names = ("changed", "unavailable", "issues", "notes", "ext")
        assert [getattr(DETAIL, name) for name in names] == [getattr(event, name) for name in names]

    def test_empty_is_null(self) -> None:
        """An empty list is written as null, except in `changed`, where null means unknown and empty no changes."""
        event = ChangeEvent.truncate(CONTEXT, Detail([], [], [], [], {}))
        assert [None] * 4 == [event.unavailable, event.issues, event.notes, event.ext]
        assert [] == event.changed

    def test_an_event_does_not_change(self) -> None:
        """An event is immutable."""
        with pytest.raises(AttributeError):
            ChangeEvent.watermark(CONTEXT, Detail()).op = "d"  # type: ignore[misc]


class TestPosition:
    def test_form(self) -> None:
        """A position has the form epoch(4).native(38).offset(19).n(6), zero-padded."""
        assert "0000.00000000000000000000000000000000000000.0000000000000000042.000007" == position(42, 7)
        assert "0002.00020230911032325000000000000000000005.0000000000000000042.000007" == position(
            42, 7, native=20230911032325000000000000000000005, epoch=2
        )

    @given(*[st.tuples(*(st.integers(0, 10**width - 1) for width in (4, 38, 19, 6)))] * 2)
    def test_sorts_as_numbers(self, one: tuple[int, ...], other: tuple[int, ...]) -> None:
        """Positions compare as text like their numbers: by epoch, then native, offset and n."""
        texts = [position(offset, n, native=native, epoch=epoch) for epoch, native, offset, n in (one, other)]
        assert (one < other, one == other) == (texts[0] < texts[1], texts[0] == texts[1])

    def test_fits_every_offset(self) -> None:
        """The highest Kafka offset fits the width."""
        assert len(position(0, 0)) == len(position(2**63 - 1, 999_999))


ORDERS = (
    Column("id", "int64", False, 1, "bigint(20)"),
    Column("price", "decimal(9,2)", True, None, "decimal(9,2)"),
    Column("名", "string", None, None, "varchar", 40, "utf8mb4"),
)


class TestTableSchema:
    def test_golden_fingerprint(self) -> None:
        """The fingerprint of a column list never changes, because rows from older releases reference it.

        Computed by hand: the first 16 hex digits of `sha256sum` over
        ["primary",[["id","int64",false,1,"bigint(20)",null,null],
        ["price","decimal(9,2)",true,null,"decimal(9,2)",null,null],
        ["\\u540d","string",null,null,"varchar",40,"utf8mb4"]]] without the line breaks.
        """
        assert "483e08809647bd7c" == TableSchema.of("shop", "shop", None, "orders", ORDERS, "primary").id

    def test_names_the_columns_and_not_the_table(self) -> None:
        """Equal column lists have equal fingerprints in any table."""
        one = TableSchema.of("shop", "shop", None, "orders", ORDERS, "primary")
        other = TableSchema.of("till", None, "x", "copies", list(ORDERS), "primary")
        assert one.id == other.id

    @pytest.mark.parametrize(
        "columns",
        [
            (ORDERS[1], ORDERS[0], ORDERS[2]),
            ORDERS[:2],
            (*ORDERS[:2], Column("name", "string", None, None, "varchar", 40, "utf8mb4")),
            (*ORDERS[:2], Column("名", "json", None, None, "varchar", 40, "utf8mb4")),
            (*ORDERS[:2], Column("名", "string", True, None, "varchar", 40, "utf8mb4")),
            (*ORDERS[:2], Column("名", "string", None, 2, "varchar", 40, "utf8mb4")),
            (*ORDERS[:2], Column("名", "string", None, None, "text", 40, "utf8mb4")),
            (*ORDERS[:2], Column("名", "string", None, None, "varchar", 41, "utf8mb4")),
            (*ORDERS[:2], Column("名", "string", None, None, "varchar", 40, "gbk")),
        ],
        ids=["order", "fewer", "name", "type", "nullable", "key", "native", "length", "charset"],
    )
    def test_every_property_counts(self, columns: tuple[Column, ...]) -> None:
        """A different order or any different column property makes a different schema."""
        assert envelope.fingerprint(ORDERS, "primary") != envelope.fingerprint(columns, "primary")

    def test_kind_of_key_counts(self) -> None:
        """Changing a key from unique to primary makes a different schema."""
        assert envelope.fingerprint(ORDERS, "unique") != envelope.fingerprint(ORDERS, "primary")

    @given(st.permutations(["name", "type", "nullable", "key", "native", "length", "charset"]))
    def test_order_of_members(self, members: list[str]) -> None:
        """A reader of the schemas topic computes the same fingerprint for any order of the members."""
        written = [{name: getattr(column, name) for name in members} for column in ORDERS]
        read = msgspec.json.decode(msgspec.json.encode(written), type=list[Column])
        assert envelope.fingerprint(ORDERS, "primary") == envelope.fingerprint(read, "primary")

    def test_key_columns(self) -> None:
        """Key columns are in key order, which can differ from table order."""
        columns = [Column("a", "int8", key=2), Column("b", "int8"), Column("c", "int8", key=1)]
        assert ("c", "a") == TableSchema.of("s", None, None, "t", columns, "unique").key_columns

    @pytest.mark.parametrize(
        ("db", "schema", "expected"),
        [
            ("shop", None, "src/shop//orders/"),
            (None, "OWNER", "src//OWNER/orders/"),
            ("shop", "dbo", "src/shop/dbo/orders/"),
            (None, None, "src///orders/"),
            ("shop/eu", "100%", "src/shop%2Feu/100%25/orders/"),
        ],
    )
    def test_topic_key(self, db: str | None, schema: str | None, expected: str) -> None:
        """A key of the schemas topic is source/db/schema/table/id, with missing levels empty and / and % encoded."""
        found = TableSchema.of("src", db, schema, "orders", ORDERS, "primary")
        assert expected + found.id == found.topic_key

    def test_topic_key_is_unambiguous(self) -> None:
        """Two tables never share a key. Otherwise compaction would delete the schema of one of them."""
        names = ["".join(letters) for length in (1, 2) for letters in itertools.product("a/%2F", repeat=length)]
        tables = list(itertools.product((None, *names), (None, *names), names))
        keys = {TableSchema("src", db, schema, table, (), id="0").topic_key for db, schema, table in tables}
        assert len(tables) == len(keys)
