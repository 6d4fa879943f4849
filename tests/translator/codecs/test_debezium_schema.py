"""The schema block: what it declares and what it omits."""

import json
from typing import Any

import msgspec
import pytest

from cdc_core.envelope import ChangeEvent, Column, TableSchema
from tests.translator.codecs.debezium_readers import connect
from tests.translator.codecs.test_debezium import CHANGE, DELETE
from translator.codecs.debezium import DebeziumCodec, Options
from translator.codecs.debezium.connect import TYPES
from translator.codecs.debezium.form import _MAX_BLOCK_BYTES, _MAX_TABLES
from translator.codecs.record import Record
from translator.errors import ErrorCode, MessageError
from translator.values import CANONICAL_TYPES

BLOCK = Options(schema_block=True)


def table(*columns: Column) -> TableSchema:
    """Return a schema of the examples' table."""
    return TableSchema.of("shop", "shop", "dbo", "orders", columns, "primary")


def encode(event: ChangeEvent, schema: TableSchema | None = None) -> Record:
    """Return the only record of an event, with its schema."""
    (record,) = DebeziumCodec(BLOCK).encode(event, schema)
    return record


def members(record: Record) -> dict[str, Any]:
    """Return the envelope members that the block of a value declares."""
    assert record.value is not None
    return {field["field"]: field for field in json.loads(record.value)["schema"]["fields"]}


def row(**values: Any) -> ChangeEvent:
    """Return an insert of such a row."""
    text = json.dumps({"id": 7, **values})
    return msgspec.structs.replace(CHANGE, op="c", before=None, before_state="none", after=text)


GOLDEN = table(Column("id", "int32", key=1), Column("price", "decimal(9,2)"), Column("at", "timestamptz"))


class TestGolden:
    def test_key(self) -> None:
        """The key block declares the key columns, none of them optional."""
        assert encode(CHANGE, GOLDEN).key == (
            b'{"schema":{"type":"struct","fields":[{"type":"int64","optional":false,"field":"id"}],'
            b'"optional":false,"name":"shop.shop.dbo.orders.Key"},"payload":{"id":7}}'
        )

    def test_value(self) -> None:
        """Both images share a declaration, named as in Debezium and surrounded by the envelope."""
        record = encode(row(price="12.50", at="2023-11-14T00:00:00Z"), GOLDEN)
        assert record.value is not None
        assert record.value.startswith(
            b'{"schema":{"type":"struct","fields":[{"type":"struct","fields":['
            b'{"type":"int32","optional":true,"field":"id"},{"type":"string","optional":true,"field":"price"},'
            b'{"type":"string","optional":true,"name":"io.debezium.time.ZonedTimestamp","version":1,"field":"at"}],'
            b'"optional":true,"name":"shop.shop.dbo.orders.Value","field":"before"},'
        )
        assert (
            b'{"type":"struct","fields":[{"type":"string","optional":false,"field":"id"},'
            b'{"type":"int64","optional":true,"field":"total_order"}],"optional":true,"name":"event.block",'
            b'"version":1,"field":"transaction"},{"type":"string","optional":false,"field":"op"},'
            b'{"type":"int64","optional":false,"field":"ts_ms"},{"type":"int64","optional":false,"field":"ts_us"},'
            b'{"type":"int64","optional":true,"field":"ts_ns"},'
            b'{"type":"array","items":{"type":"string","optional":false},"optional":true,"field":"pkNames"}],'
            b'"optional":false,"name":"shop.shop.dbo.orders.Envelope","version":1},'
            b'"payload":{"before":null,"after":{"id":7,"price":"12.50","at":"2023-11-14T00:00:00Z"},"source":{'
        ) in record.value

    def test_payload_is_the_bare_envelope(self) -> None:
        """If no value needs another form, the payload is the bare envelope."""
        (bare,) = DebeziumCodec().encode(CHANGE, GOLDEN)
        record = encode(CHANGE, GOLDEN)
        assert bare.value is not None
        assert record.value is not None
        assert record.value.endswith(b',"payload":' + bare.value + b"}")
        assert bare.headers == record.headers


class TestDeclaration:
    def test_every_canonical_type(self) -> None:
        """Each canonical type has a Connect type, and there are no others."""
        assert sorted(CANONICAL_TYPES) == sorted(TYPES)

    def test_only_what_is_there(self) -> None:
        """A column that was not sent is not declared, because Connect would pass it to its sinks as NULL."""
        declared = members(encode(row(price="12.50"), GOLDEN))
        for image in ("before", "after"):
            assert ["id", "price"] == [field["field"] for field in declared[image]["fields"]]

    def test_source(self) -> None:
        """The same holds for `source`: a declared null `schema` would send Iceberg's rows to a table `null.orders`."""
        record = encode(msgspec.structs.replace(CHANGE, schema=None, server=None, ts_commit_us=None), GOLDEN)
        names = [field["field"] for field in members(record)["source"]["fields"]]
        assert names == list(json.loads(record.value or b"")["payload"]["source"])
        assert "schema" not in names

    def test_delete(self) -> None:
        """A null new image is declared like the old one, because some readers get the table's columns from it."""
        declared = members(encode(DELETE, GOLDEN))
        for image in ("before", "after"):
            assert ["id", "price"] == [field["field"] for field in declared[image]["fields"]]

    def test_truncate(self) -> None:
        """Without any image, the block declares the table's columns."""
        event = msgspec.structs.replace(CHANGE, op="t", key=None, before=None, after=None)
        (record,) = DebeziumCodec(Options(schema_block=True, truncate="emit")).encode(event, GOLDEN)
        assert ["id", "price", "at"] == [field["field"] for field in members(record)["after"]["fields"]]

    def test_absent_levels(self) -> None:
        """Names have the levels of the source."""
        record = encode(msgspec.structs.replace(CHANGE, schema=None))
        assert json.loads(record.value or b"")["schema"]["name"] == "shop.shop.orders.Envelope"


class TestValues:
    @pytest.mark.parametrize(
        ("value", "kind"),
        [
            (1, "int64"),
            (-1, "int64"),
            (-1.5, "double"),
            (1e300, "double"),
            (True, "boolean"),
            (False, "boolean"),
            ("text", "string"),
            ("", "string"),
            ("1", "string"),
            (None, "string"),
        ],
    )
    @pytest.mark.parametrize("schema", [None, table(Column("x", "unknown"))], ids=["no schema", "unknown"])
    def test_undeclared_type(self, value: Any, kind: str, schema: TableSchema | None) -> None:
        """The block declares the value's own type, because Connect reads a number declared as text as NULL."""
        record = encode(row(x=value), schema)
        document = json.loads(record.value or b"")
        assert [kind] == [field["type"] for field in members(record)["after"]["fields"] if field["field"] == "x"]
        assert (
            value == document["payload"]["after"]["x"] == connect(document["schema"], document["payload"])["after"]["x"]
        )

    @pytest.mark.parametrize(("old", "new"), [("NaN", 1.5), (1.5, "NaN"), (True, "maybe"), (1, 1.5)])
    def test_undeclared_types_that_differ(self, old: Any, new: Any) -> None:
        """One declaration serves both images, so it is text if their values have different types."""
        event = msgspec.structs.replace(
            row(x=new), op="u", before=json.dumps({"id": 7, "x": old}), before_state="partial"
        )
        record = encode(event)
        payload = json.loads(record.value or b"")["payload"]
        written = [value if isinstance(value, str) else json.dumps(value) for value in (old, new)]
        assert written == [payload["before"]["x"], payload["after"]["x"]]
        assert [7, 7] == [payload["before"]["id"], payload["after"]["id"]]
        assert ["int64", "string"] == [field["type"] for field in members(record)["after"]["fields"]]

    def test_null_has_no_type(self) -> None:
        """A column that is NULL in one image gets its type from the other."""
        event = msgspec.structs.replace(row(x=1.5), op="u", before='{"id":7,"x":null}', before_state="partial")
        assert "double" == members(encode(event))["before"]["fields"][1]["type"]

    @pytest.mark.parametrize(
        ("canonical", "value"),
        [("int8", 7), ("uint8", 7), ("int32", 7), ("int64", 7), ("float32", 1.5), ("string", "7")],
    )
    def test_a_key_is_the_same_without_a_schema(self, canonical: str, value: Any) -> None:
        """Canal's deletes have no schema. With another key, a tombstone would remove nothing."""
        event = msgspec.structs.replace(CHANGE, key=json.dumps({"x": value}), key_old=None)
        assert encode(event, table(Column("x", canonical, key=1))).key == encode(event).key

    @pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity"])
    @pytest.mark.parametrize("canonical", ["float32", "float64"])
    def test_not_finite(self, canonical: str, value: str) -> None:
        """Connect reads the text NaN as the number 0, so the column is omitted and listed."""
        record = encode(row(x=value), table(Column("id", "int32", key=1), Column("x", canonical)))
        assert {"id": 7} == json.loads(record.value or b"")["payload"]["after"]
        assert b'["x"]' == dict(record.headers)["cdc-unavailable"]

    def test_not_finite_in_the_old_image(self) -> None:
        """An old value that cannot be expressed does not make the old image incomplete."""
        event = msgspec.structs.replace(row(x=1.5), op="u", before='{"id":7,"x":"NaN"}', before_state="full")
        codec = DebeziumCodec(Options(schema_block=True, missing_before=("fail",)))
        (record,) = codec.encode(event, table(Column("id", "int32", key=1), Column("x", "float64")))
        payload = json.loads(record.value or b"")["payload"]
        assert ({"id": 7}, {"id": 7, "x": 1.5}) == (payload["before"], payload["after"])

    def test_not_finite_in_a_key(self) -> None:
        """A key without its value is not a key."""
        event = msgspec.structs.replace(row(x=1.5), key='{"x":"NaN"}')
        with pytest.raises(MessageError, match="key column 'x'") as refused:
            encode(event, table(Column("x", "float64", key=1)))
        assert refused.value.code is ErrorCode.UNSUPPORTED_SHAPE

    def test_null_float(self) -> None:
        """NULL is not a text and is kept."""
        record = encode(row(x=None), table(Column("id", "int32", key=1), Column("x", "float64")))
        assert {"id": 7, "x": None} == json.loads(record.value or b"")["payload"]["after"]


class TestKeptBlocks:
    """Blocks are cached by table and columns. The cache is bounded and does not affect the output."""

    def test_more_tables_than_are_kept(self) -> None:
        """A table that returns after many others is written as before."""
        codec = DebeziumCodec(BLOCK)
        first = codec.encode(CHANGE, GOLDEN)
        for number in range(_MAX_TABLES + 1):
            codec.encode(msgspec.structs.replace(CHANGE, table=f"t{number}"))
        assert first == codec.encode(CHANGE, GOLDEN)

    def test_more_shapes_than_are_kept(self) -> None:
        """A row that returns after rows with many other sets of columns is written as before."""
        codec = DebeziumCodec(BLOCK)
        first = codec.encode(row(x=1))
        for number in range(_MAX_BLOCK_BYTES // 1000):
            (record,) = codec.encode(row(**{f"c{number}": number}))
            assert f"c{number}" in [field["field"] for field in members(record)["after"]["fields"]]
        assert first == codec.encode(row(x=1))

    def test_one_table_two_schemas(self) -> None:
        """A changed table has other types under the same names."""
        codec = DebeziumCodec(BLOCK)
        types = []
        for canonical in ("int32", "string", "int32"):
            schema = table(Column("id", "int32", key=1), Column("price", canonical))
            (record,) = codec.encode(CHANGE, schema)
            types.append(members(record)["after"]["fields"][1]["type"])
        assert ["int32", "string", "int32"] == types
