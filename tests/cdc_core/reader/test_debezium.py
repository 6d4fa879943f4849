"""Reading a Debezium projection restores the rows of the source and invents nothing."""

from __future__ import annotations

from decimal import Decimal

import msgspec
import pytest
from hypothesis import assume, given

from cdc_core.envelope import ChangeEvent, Column, Detail, TableSchema
from cdc_core.reader import Change, ChangeReader, DictStore, KnownSchemas, Missing, ReadError, Value, apply
from dev.demo.sources import shop_sources
from tests.cdc_core.reader.sources import known, translated
from tests.translator.codecs.debezium_rows import Case, cases
from tests.translator.codecs.test_debezium import CHANGE, DELETE, MOVE
from tests.translator.codecs.test_debezium_readers import options
from tests.translator.examples import CONTEXT
from translator.codecs.debezium import DebeziumCodec, Options
from translator.codecs.record import Record
from translator.errors import MessageError

BLOCKS = pytest.mark.parametrize("block", [False, True], ids=["bare", "schema block"])


def read(reader: ChangeReader, records: list[Record]) -> list[Change]:
    found = (reader.read_record(record.value, record.key, record.headers) for record in records)  # type: ignore[arg-type]
    return [change for change in found if change is not None]


def changes(event: ChangeEvent, **chosen: bool) -> list[Change]:
    return read(ChangeReader(), DebeziumCodec(Options(**chosen)).encode(event))  # type: ignore[arg-type]


@BLOCKS
@pytest.mark.parametrize("number", [0, 1, 3, 4], ids=["qlik", "dts", "canal", "legacy"])
def test_shops(number: int, block: bool) -> None:
    """The reader restores the demo shops with their types, even with many duplicates. Native Quest is the exception:
    its messages lack the full row when a key changes, so the projection rejects them.
    """
    source = shop_sources(51)[number]
    events = translated(source, source.messages(300, grow=True))
    codec, reader, store = DebeziumCodec(Options(schema_block=block)), ChangeReader(known(events)), DictStore()
    found = [change for event, schema in events for change in read(reader, codec.encode(event, schema))]
    apply([*found[:200], *found[90:]], store)
    for table in store.tables():
        nulls: dict[str, Value] = {column.name: None for column in source.shop.shape(table.table).columns}
        assert source.shop.rows[table.table] == {key: nulls | {**row} for key, row in store.rows(table).items()}
    assert len(source.shop.rows) == len(store.tables())


@BLOCKS
def test_update(block: bool) -> None:
    """The reader restores everything that the form contains of an event."""
    (change,) = changes(CHANGE, schema_block=block)
    told = ("id", "op", "source", "dialect", "db", "schema", "table", "pos", "pos_scope", "server", "task", "key")
    assert {name: getattr(CHANGE, name) for name in told} == {name: getattr(change.event, name) for name in told}
    assert (CHANGE.ts_commit_us, CHANGE.ts_capture_us) == (change.event.ts_commit_us, change.event.ts_origin_us)
    assert ("raw.shop", 3, 42) == (change.event.origin.topic, change.event.origin.partition, change.event.origin.offset)
    assert (CHANGE.before, CHANGE.after) == (change.event.before, change.event.after)


SCHEMA = TableSchema.of("shop", "shop", "dbo", "orders", [Column("id", "int64"), Column("price", "decimal(9,2)")], "")


def test_types() -> None:
    """Types come from the schema that the header identifies."""
    schemas = KnownSchemas()
    schemas.add(SCHEMA)
    event = msgspec.structs.replace(CHANGE, schema_id=SCHEMA.id)
    (change,) = read(ChangeReader(schemas), DebeziumCodec().encode(event, SCHEMA))
    assert (Decimal("12.50"), True) == (change.new("price"), change.is_full)


def test_key_change() -> None:
    """A delete and a create move the row from one key to the other, and duplicates leave it there."""
    store, moved = DictStore(), changes(MOVE)
    insert = msgspec.structs.replace(
        CHANGE, op="c", before=None, after='{"id":7,"price":"1.00"}', pos=CHANGE.pos.replace("42", "41")
    )
    apply([*changes(insert), *moved], store)
    (table,) = store.tables()
    assert {(8,): {"id": 8, "price": "12.50"}} == store.rows(table)
    assert (2, 0) == ((account := apply(moved, store)).stale, account.applied)


def test_the_halves_of_a_key_change() -> None:
    """Both halves are full images, so no column of an earlier row with the new key remains."""
    assert ["d", "c"] == [change.op for change in changes(MOVE)]


def test_without_a_schema() -> None:
    """Without a schema, the reader cannot know whether a row is complete."""
    (change,) = changes(msgspec.structs.replace(CHANGE, schema_id=None))
    assert "partial" == change.event.after_state


def test_names_with_slashes() -> None:
    """The name of an event is parsed from both ends."""
    (change,) = changes(msgspec.structs.replace(CHANGE, id="a/b/raw/3/42/0", source="a/b"))
    assert ("a/b/raw/3/42/0", "raw") == (change.event.id, change.event.origin.topic)


def test_an_update_that_is_written_as_a_create() -> None:
    """Such a create counts as an update: a column that was not sent keeps its value."""
    sparse = msgspec.structs.replace(CHANGE, before=None, before_state="none", after='{"id":7}', schema_id=SCHEMA.id)
    (change,) = read(ChangeReader(), DebeziumCodec().encode(sparse, SCHEMA))
    assert ("u", False) == (change.op, change.is_full)


@pytest.mark.parametrize("unavailable", ["omit", "placeholder"])
def test_unavailable(unavailable: str) -> None:
    """A placeholder is not a value."""
    event = msgspec.structs.replace(CHANGE, unavailable=["photo"])
    (change,) = read(ChangeReader(), DebeziumCodec(Options(unavailable=unavailable)).encode(event))  # type: ignore[arg-type]
    assert (Missing.UNAVAILABLE, "12.50") == (change.new("photo"), change.new("price"))


def test_tombstones_and_truncates() -> None:
    """A record without a value repeats a delete. A truncate is a truncate."""
    assert ["d"] == [change.op for change in changes(DELETE, tombstones=True)]
    truncate = ChangeEvent.truncate(CONTEXT, Detail())
    (change,) = read(ChangeReader(), DebeziumCodec(Options(truncate="emit")).encode(truncate))
    assert ("t", None) == (change.op, change.event.notes)


@pytest.mark.parametrize(
    ("value", "headers", "why"),
    [
        (b'{"payload":1}', {}, "the record was not written by a Debezium"),
        (b'{"source":{}}', {}, "the record was not written by a Debezium"),
        (None, {}, "no header cdc-id"),
        (None, {"cdc-id": b"shop/raw/x/1/0"}, "does not contain an event"),
        (b'{"id":7,"price":"12.50"}', {}, "is not an event"),
        (b"{", {}, "the record was not written by a Debezium"),
    ],
)
def test_what_is_none(value: bytes | None, headers: dict[str, bytes], why: str) -> None:
    """The reader rejects values that are not Debezium changes, including rows by key."""
    (record,) = DebeziumCodec().encode(CHANGE)
    with pytest.raises(ReadError, match=why):
        ChangeReader().read_record(value or record.value, record.key, headers.items())


@given(cases(), options())
def test_nothing_is_invented(case: Case, chosen: Options) -> None:
    """With any options, the reader restores only old and new values of the row, under its keys."""
    try:
        records = DebeziumCodec(chosen).encode(case.event, case.schema)
    except MessageError:
        assume(False)
    for change in read(ChangeReader(), records):
        if not chosen.schema_block:  # it converts values without a declared type to text
            assert {**(change.after or {})}.items() <= (case.new or {}).items()
            assert {**(change.before or {})}.items() <= (case.old or {}).items()
        assert change.op in {case.event.op, "d", "c"}
        assert case.event.pos == change.event.pos
