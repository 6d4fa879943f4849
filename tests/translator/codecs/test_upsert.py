"""The upsert form: the exact bytes, and the rows of a reader that keeps the latest value of each key."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import assume, event, given
from hypothesis import strategies as st

from cdc_core.envelope import ChangeEvent, Column, Detail, Issue, TableSchema
from cdc_core.reader import Change, DictStore, TableId, apply
from dev.demo.sources import shop_sources
from tests.cdc_core.reader.sources import translated
from tests.repository.pages import names, page, table
from tests.translator.codecs.debezium_readers import connect
from tests.translator.codecs.debezium_rows import Case, Image, cases
from tests.translator.examples import CONTEXT, DDL, UPDATE
from translator.codecs.record import Record, record_headers
from translator.codecs.upsert import Options, UpsertCodec
from translator.errors import ErrorCode, MessageError

SCHEMA = TableSchema.of(
    "shop", "shop", "dbo", "orders", [Column("id", "int32", key=1), Column("price", "decimal(9,2)")], "primary"
)
CHANGE = msgspec.structs.replace(
    UPDATE, key='{"id":7}', key_old=None, before=None, unavailable=None, issues=None, after='{"id":7,"price":"12.50"}'
)
MOVE = msgspec.structs.replace(UPDATE, unavailable=None, issues=None)
DELETE = msgspec.structs.replace(CHANGE, op="d", after=None)
NAME = b'"shop","shop","dbo","orders"'


def records(event: ChangeEvent, schema: TableSchema | None = SCHEMA, **options: Any) -> list[Record]:
    return UpsertCodec(msgspec.convert(options, Options)).encode(event, schema)


def pairs(event: ChangeEvent, schema: TableSchema | None = SCHEMA, **options: Any) -> list[tuple[Any, Any]]:
    return [(record.key, record.value) for record in records(event, schema, **options)]


class TestBytes:
    @pytest.mark.parametrize("op", ["r", "c", "u"])
    def test_row(self, op: str) -> None:
        """A row is its key and its columns."""
        found = pairs(msgspec.structs.replace(CHANGE, op=op))
        assert [(b"[" + NAME + b',{"id":7}]', b'{"id":7,"price":"12.50"}')] == found

    def test_delete(self) -> None:
        """A deleted row is a key without a value."""
        assert [(b"[" + NAME + b',{"id":7}]', None)] == pairs(DELETE)

    def test_key_change(self) -> None:
        """The old key's row is deleted first, then the new key's row is written."""
        found = pairs(MOVE, key="columns")
        assert [(b'{"id":7}', None), (b'{"id":8}', b'{"id":8,"price":"12.50"}')] == found

    def test_schema_block(self) -> None:
        """The block is the one that Kafka Connect's JSON converter reads."""
        ((key, value),) = pairs(CHANGE, key="columns", schema_block=True)
        columns = (
            b'{"type":"string","optional":true,"field":"price"}],"optional":false,"name":"shop.shop.dbo.orders.Value"}'
        )
        assert (
            b'{"schema":{"type":"struct","fields":[{"type":"int64","optional":false,"field":"id"}],"optional":false,'
            b'"name":"shop.shop.dbo.orders.Key"},"payload":{"id":7}}'
        ) == key
        assert (
            b'{"schema":{"type":"struct","fields":[{"type":"int32","optional":true,"field":"id"},'
            + columns
            + b',"payload":{"id":7,"price":"12.50"}}'
        ) == value

    def test_headers(self) -> None:
        """The headers are those of the canonical topic, and the list of unknown columns."""
        (record,) = records(CHANGE)
        assert record_headers(CHANGE) == record.headers
        (record,) = records(
            msgspec.structs.replace(CHANGE, after='{"id":7}', unavailable=["price"]), unavailable="omit"
        )
        assert ("cdc-unavailable", b'["price"]') == record.headers[-1]
        assert b'{"id":7}' == record.value

    def test_what_the_key_names_is_in_the_row(self) -> None:
        """The row has the key columns even if the image does not repeat them."""
        ((_, value),) = pairs(msgspec.structs.replace(CHANGE, op="c", after='{"price":"1.00"}'), unavailable="omit")
        assert b'{"id":7,"price":"1.00"}' == value

    def test_what_did_not_change_is_taken_from_the_old_row(self) -> None:
        """They are completed if the event lists the changed columns."""
        sparse = msgspec.structs.replace(CHANGE, after='{"id":7}', before='{"id":7,"price":"9.90"}', changed=["id"])
        ((_, value),) = pairs(sparse)
        assert {"id": 7, "price": "9.90"} == json.loads(value)


class TestNoRecord:
    def test_other_kinds(self) -> None:
        """DDL, transactions and watermarks have no record."""
        assert [] == records(ChangeEvent.schema_change(CONTEXT, DDL, Detail()))

    def test_truncate_dropped(self) -> None:
        assert [] == records(ChangeEvent.truncate(CONTEXT, Detail()), truncate="drop")

    def test_a_row_without_a_key(self) -> None:
        """Its key contains NULL. Readers have exactly the rows with a key."""
        keyless = msgspec.structs.replace(CHANGE, key=None, notes=["KEY_INCOMPLETE"])
        assert [] == records(keyless)
        assert [(b'{"id":7}', None)] == pairs(msgspec.structs.replace(keyless, key_old='{"id":7}'), key="columns")

    def test_a_row_that_gets_a_key(self) -> None:
        """Readers had no such row before."""
        gains = msgspec.structs.replace(CHANGE, before='{"id":null,"price":"9.90"}')
        assert [(b'{"id":7}', b'{"id":7,"price":"12.50"}')] == pairs(gains, key="columns")


class TestRefused:
    @pytest.mark.parametrize(
        ("fields", "options", "why"),
        [
            ({"op": "t", "after": None}, {}, "this format cannot represent a truncate"),
            ({"key": None}, {}, "the table's key is unknown"),
            ({"after": '{"id":7}'}, {}, "'price' has no value"),
            ({"issues": [Issue("price", "SCALE_EXCEEDED")], "after": '{"id":7}'}, {}, "'price' has no value"),
        ],
    )
    def test_what_has_no_form(self, fields: dict[str, Any], options: dict[str, Any], why: str) -> None:
        """The message is rejected, and the reason names this form."""
        with pytest.raises(MessageError, match=rf"^upsert: .*{why}"):
            records(msgspec.structs.replace(CHANGE, **fields), **options)

    def test_nobody_knows_whether_it_is_whole(self) -> None:
        """An update without a schema is rejected, unless readers are allowed to see less than the row."""
        with pytest.raises(MessageError, match=r"upsert: without a schema, the row may be incomplete"):
            records(CHANGE, None)
        assert 1 == len(records(CHANGE, None, unavailable="omit"))

    @pytest.mark.parametrize("unavailable", ["fail", "omit"])
    def test_a_key_change_that_lacks_columns(self, unavailable: str) -> None:
        """The missing columns would be NULL for good, whatever readers know."""
        with pytest.raises(MessageError, match=r"lacks column 'price'|'price' has no value"):
            records(msgspec.structs.replace(MOVE, after='{"id":8}', before=None), unavailable=unavailable)

    def test_options_that_do_not_fit(self) -> None:
        with pytest.raises(msgspec.ValidationError, match="schema_block requires key: columns"):
            msgspec.convert({"schema_block": True}, Options)


OPTIONS = st.builds(
    lambda key, block, unavailable: Options(key, key == "columns" and block, unavailable),
    st.sampled_from(["table", "columns"]),
    st.booleans(),
    st.sampled_from(["fail", "omit"]),
)


@given(cases(), OPTIONS)
def test_a_reader_has_the_row(case: Case, chosen: Options) -> None:
    """A reader that keeps the latest value of each key has exactly the current rows. Missing columns are listed."""
    row_event = case.event
    if row_event.key is None:
        row_event = msgspec.structs.replace(row_event, notes=["KEY_INCOMPLETE"])
    try:
        written = UpsertCodec(chosen).encode(row_event, case.schema)
    except MessageError as error:
        event(f"refused: {error.code}")
        assume(error.code not in (ErrorCode.UNSUPPORTED_SHAPE, ErrorCode.KEY_CHANGE_INCOMPLETE))
        raise
    kept: dict[bytes | None, Image | None] = {}
    for key in (row_event.key_old, row_event.key if row_event.op in "ud" else None):
        if key is not None:
            old = UpsertCodec(chosen).encode(
                msgspec.structs.replace(row_event, op="d", key=key, key_old=None, after=None), case.schema
            )
            kept[old[0].key] = case.old
    for record in written:
        missing = set(json.loads(dict(record.headers).get("cdc-unavailable") or b"[]"))
        if record.value is None:
            del kept[record.key]
            continue
        row = json.loads(record.value)
        if chosen.schema_block:
            row = connect(row["schema"], row["payload"])
        if chosen.unavailable == "fail" and case.schema is not None:
            assert case.new is not None
            assert case.new.keys() == row.keys()
        kept[record.key] = row
        assert case.new is not None
        if not chosen.schema_block:
            assert row.items() <= case.new.items()
        if case.schema is not None:
            assert case.new.keys() == {*row, *missing}
    assert (0 if case.new is None or row_event.key is None else 1) == len(kept)


@pytest.mark.parametrize("number", [0, 1, 3, 4], ids=["qlik", "dts", "canal", "legacy"])
def test_shops(number: int) -> None:
    """For the demo shops, whose tools send full rows, the latest values of a topic are their rows."""
    source, codec, topic, store = shop_sources(31)[number], UpsertCodec(), dict[bytes | None, bytes](), DictStore()
    for row_event, schema in translated(source, source.messages(300, grow=True)):
        apply([Change.of(row_event, None)], store)
        for record in codec.encode(row_event, schema):
            topic.pop(record.key, None)
            if record.value is not None:
                topic[record.key] = record.value
    found: dict[TableId, dict[Any, Any]] = {}
    for key, value in topic.items():
        *name, columns = json.loads(key or b"")
        found.setdefault(TableId(*name), {})[tuple(columns.values())] = json.loads(value)
    assert sorted(map(len, source.shop.rows.values())) == sorted(map(len, found.values()))
    assert {table: store.rows(table) for table in store.tables()} == found


class TestPage:
    """The page docs/upsert.md."""

    def test_options(self) -> None:
        """The table lists all options in order with their defaults."""
        rows = table(page("upsert.md"), "option")
        fields = msgspec.structs.fields(Options)
        assert [field.name for field in fields] == names(rows)
        assert [f"`{str(field.default).lower()}`" for field in fields] == [default for _, default, _ in rows]

    def test_records(self) -> None:
        """The codec writes the records on the page."""
        ((key, value),) = pairs(CHANGE)
        ((columns, _),) = pairs(CHANGE, key="columns")
        text = page("upsert.md")
        assert [] == [part for part in (key, value, columns) if f"`{part.decode()}`" not in text]
