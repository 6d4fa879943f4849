"""Key and headers of a Kafka record, by which consumers partition, compact and filter."""

import itertools
import json

import msgspec
import pytest
from hypothesis import given

from cdc_core.envelope import ChangeEvent, Detail
from tests.sizes import examples
from tests.translator.examples import CONTEXT, UPDATE
from tests.translator.strategies import events
from translator.codecs.record import Record, record_headers, record_key, record_size


class TestKey:
    @pytest.mark.parametrize(
        ("fields", "expected"),
        [
            ({}, b'["shop","shop","dbo","orders",{"id":8}]'),
            ({"schema": None}, b'["shop","shop",null,"orders",{"id":8}]'),
            ({"key": '{"b":"2","a":null}'}, b'["shop","shop","dbo","orders",{"b":"2","a":null}]'),
            ({"key": None}, b'["shop","shop","dbo","orders"]'),
            ({"table": '名"'}, '["shop","shop","dbo","名\\"",{"id":8}]'.encode()),
        ],
        ids=["full", "no schema", "key order", "no key", "escapes"],
    )
    def test_table(self, fields: dict[str, str | None], expected: bytes) -> None:
        """The key is compact JSON [source,db,schema,table,{key}], without the last part if no key is known."""
        assert expected == record_key(msgspec.structs.replace(UPDATE, **fields))

    def test_without_table(self) -> None:
        """An event without a table also has a key, so that it keeps its partition."""
        event = ChangeEvent.watermark(msgspec.structs.replace(CONTEXT, db=None, schema=None, table=None), Detail())
        assert b'["shop",null,null,null]' == record_key(event)

    @given(events())
    def test_names_the_row(self, event: ChangeEvent) -> None:
        """The key identifies table and row exactly, whatever characters they contain."""
        expected = [event.source, event.db, event.schema, event.table]
        if event.key is not None:
            expected.append(json.loads(event.key))
        assert expected == json.loads(record_key(event))


def _plain_headers(event: ChangeEvent) -> list[tuple[str, bytes]]:
    """Return the headers as the design defines them, without a cache."""
    table = ".".join(part for part in (event.db, event.schema, event.table) if part)
    headers = [
        ("cdc-kind", event.kind),
        ("cdc-op", event.op),
        ("cdc-table", table or None),
        ("cdc-source", event.source),
        ("cdc-id", event.id),
        ("cdc-schema-id", event.schema_id),
    ]
    return [(name, text.encode()) for name, text in headers if text is not None]


class TestHeaders:
    @examples(3)
    @given(events())
    def test_any_event(self, event: ChangeEvent) -> None:
        """The cache of earlier events does not change a byte."""
        assert _plain_headers(event) == record_headers(event)

    def test_names_in_other_places(self) -> None:
        """The same names at other levels, null or empty, are other tables."""
        for db, schema, table in itertools.product((None, "", "a", "b", "a.b"), repeat=3):
            event = msgspec.structs.replace(UPDATE, db=db, schema=schema, table=table)
            assert _plain_headers(event) == record_headers(event)

    def test_lists_of_their_own(self) -> None:
        """Adding a header to one record does not add it to others."""
        record_headers(UPDATE).append(("extra", b""))
        assert _plain_headers(UPDATE) == record_headers(UPDATE)

    def test_row(self) -> None:
        """A row can be filtered by kind, operation, table, source and schema without decoding it."""
        assert [
            ("cdc-kind", b"row"),
            ("cdc-op", b"u"),
            ("cdc-table", b"shop.dbo.orders"),
            ("cdc-source", b"shop"),
            ("cdc-id", b"shop/raw.shop/3/42/0"),
            ("cdc-schema-id", b"0123456789abcdef"),
        ] == record_headers(UPDATE)

    def test_null_is_left_out(self) -> None:
        """If its field is null, a header is absent and not empty."""
        at = msgspec.structs.replace(CONTEXT, db=None, schema=None, table=None, schema_id=None)
        headers = record_headers(ChangeEvent.watermark(at, Detail()))
        assert ["cdc-kind", "cdc-source", "cdc-id"] == [name for name, _ in headers]

    @pytest.mark.parametrize(
        ("db", "schema", "expected"),
        [("shop", None, b"shop.orders"), (None, "dbo", b"dbo.orders"), (None, None, b"orders")],
    )
    def test_table(self, db: str | None, schema: str | None, expected: bytes) -> None:
        """The table header has the levels of the source."""
        headers = dict(record_headers(msgspec.structs.replace(UPDATE, db=db, schema=schema)))
        assert expected == headers["cdc-table"]


def _varint(number: int) -> int:
    """Return the number of bytes of a zig-zag varint in Kafka's record format."""
    return max(1, -(-(number * 2).bit_length() // 7))


def _on_the_wire(record: Record) -> int:
    """Return the size of a record batch (magic 2) with this one record: 61 bytes of batch header, then the record."""
    body = 1 + 10 + 5  # attributes, timestamp delta and offset delta at their maximum
    for part in (record.key, record.value):
        body += _varint(len(part or b"")) + len(part or b"")
    body += _varint(len(record.headers))
    for name, value in record.headers:
        body += _varint(len(name)) + len(name) + _varint(len(value or b"")) + len(value or b"")
    return 61 + _varint(body) + body


RECORDS = {
    "null": Record(None, None, []),
    "empty": Record(b"", b"", []),
    "large": Record(b"k" * 70_000, b"v" * 3_000_000, []),
    "headers": Record(b"k", b"v", [(f"h{n}", b"x" * n) for n in range(500)]),
    "empty headers": Record(b"k", b"v", [("", None)] * 1000),
}


@pytest.mark.parametrize("record", RECORDS.values(), ids=list(RECORDS))
def test_record_size_is_an_upper_bound(record: Record) -> None:
    """A record that is said to fit a topic does fit, including framing."""
    assert _on_the_wire(record) <= record_size(record)
