"""Debezium records: the exact bytes, keys, headers, positions and times, and events without a record."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given

from cdc_core.envelope import ChangeEvent, Detail, Origin
from cdc_core.position import position
from tests.translator.codecs.debezium_readers import Image, root_of
from tests.translator.examples import CONTEXT, DDL, UPDATE
from tests.translator.strategies import events
from translator.codecs.debezium import DebeziumCodec, Options
from translator.codecs.record import Record, record_headers
from translator.errors import ErrorCode, MessageError

CHANGE = msgspec.structs.replace(UPDATE, key='{"id":7}', key_old=None, unavailable=None, issues=None)
CHANGE = msgspec.structs.replace(CHANGE, before='{"id":7,"price":"9.90"}', after='{"id":7,"price":"12.50"}')
MOVE = msgspec.structs.replace(UPDATE, unavailable=None, issues=None)
DELETE = msgspec.structs.replace(CHANGE, op="d", after=None, after_state="none")

SOURCE = (
    b'{"version":"1","connector":"canal","name":"shop","snapshot":"false","sequence":"[\\"raw.shop:3@'
    b'dGhlLXRvcGljLWlkLS0tLQ\\",\\"0000.00000000000000000000000000000000000000.0000000000000000042.000000\\"]",'
    b'"lsn":88080384,"ts_ms":1700000000000,"ts_us":1700000000000000,"ts_ns":1700000000000000000,'
    b'"db":"shop","schema":"dbo","table":"orders","server":"db-1","task":"task-7"}'
)
REST = (
    b',"source":' + SOURCE + b',"transaction":{"id":"gtid:5","total_order":1},"op":"%b",'
    b'"ts_ms":1700000000250,"ts_us":1700000000250000,"ts_ns":1700000000250000000,"pkNames":["id"]}'
)


def records(event: ChangeEvent, **options: Any) -> list[Record]:
    """Return the records of an event without a schema."""
    return DebeziumCodec(msgspec.convert(options, Options)).encode(event)


def roots(event: ChangeEvent, **options: Any) -> list[Image]:
    """Return the envelopes of an event."""
    return [root_of(record, block=False) for record in records(event, **options)]


class TestValue:
    def test_update(self) -> None:
        """An update is right byte for byte, with the images as in the event."""
        (record,) = records(CHANGE)
        images = b'{"before":{"id":7,"price":"9.90"},"after":{"id":7,"price":"12.50"}'
        assert record.value == images + REST % b"u"

    def test_delete(self) -> None:
        """A delete has a null new image."""
        (record,) = records(DELETE)
        assert record.value == b'{"before":{"id":7,"price":"9.90"},"after":null' + REST % b"d"

    @pytest.mark.parametrize("op", ["r", "c"])
    def test_new_row(self, op: str) -> None:
        """A row of a full load and an insert have no old image."""
        (root,) = roots(msgspec.structs.replace(CHANGE, op=op, before=None, before_state="none"))
        assert (op, None, {"id": 7, "price": "12.50"}) == (root["op"], root["before"], root["after"])
        assert {"r": "true", "c": "false"}[op] == root["source"]["snapshot"]

    def test_without_key(self) -> None:
        """A row without a key has no key columns."""
        (root,) = roots(msgspec.structs.replace(CHANGE, key=None))
        assert "pkNames" not in root

    def test_without_transaction(self) -> None:
        """The member is present but null, as in Debezium."""
        (root,) = roots(msgspec.structs.replace(CHANGE, tx=None))
        assert root["transaction"] is None


class TestSource:
    def test_scalars(self) -> None:
        """No member is null, an object or a list. Flink reads a map of strings; Iceberg routes by members."""
        bare = dict.fromkeys(("db", "schema", "server", "task", "ts_commit_us"))
        (root,) = roots(msgspec.structs.replace(CHANGE, **bare))
        assert ["version", "connector", "name", "snapshot", "sequence", "lsn", "table"] == list(root["source"])
        assert {str, int} == {type(value) for value in root["source"].values()}

    def test_sequence(self) -> None:
        """The sequence has the scope and the position, which sorts."""
        (root,) = roots(CHANGE)
        assert [CHANGE.pos_scope, CHANGE.pos] == json.loads(root["source"]["sequence"])


class TestOrdinal:
    def test_grows_along_the_partition(self) -> None:
        """It grows by offset, then by event of the record, then by half of the event. The largest fits 64 bits."""
        places = [(0, 0), (0, 1), (0, 999_999), (1, 0), (2**42 - 1, 0), (2**42 - 1, 999_999)]
        numbers = []
        for offset, n in places:
            at = {"origin": Origin("t", 0, offset, 0, 1), "pos": position(offset, n)}
            numbers += [root["source"]["lsn"] for root in roots(msgspec.structs.replace(MOVE, **at))]
        assert 2 * len(places) == len(set(numbers))
        assert sorted(numbers) == numbers
        assert numbers[-1] < 2**63

    def test_formula(self) -> None:
        """The formula is that of the operator's page."""
        at = {"origin": Origin("t", 0, 3, 0, 1), "pos": position(3, 5)}
        (root,) = roots(msgspec.structs.replace(CHANGE, **at))
        assert 3 * 2**21 + 5 * 2 == root["source"]["lsn"]

    def test_beyond(self) -> None:
        """An offset without an ordinal is rejected, because a wrapped number would sort before all others."""
        far = msgspec.structs.replace(CHANGE, origin=Origin("t", 0, 2**42, 0, 1))
        with pytest.raises(MessageError, match="offsets below 4398046511104") as refused:
            records(far)
        assert refused.value.code is ErrorCode.UNSUPPORTED_SHAPE


class TestTimes:
    def test_commit_unknown(self) -> None:
        """An unknown commit time is absent, and no other time replaces it."""
        (root,) = roots(msgspec.structs.replace(CHANGE, ts_commit_us=None))
        assert [] == [name for name in root["source"] if name.startswith("ts_")]

    def test_capture_unknown(self) -> None:
        """Without a capture time, the raw record's time is used and never a clock."""
        (root,) = roots(msgspec.structs.replace(CHANGE, ts_capture_us=None))
        assert (1700000000500, 1700000000500000) == (root["ts_ms"], root["ts_us"])

    @pytest.mark.parametrize(("us", "ns"), [(2**63 // 1000, 2**63 // 1000 * 1000), (2**63 // 1000 + 1, None)])
    def test_nanoseconds(self, us: int, ns: int | None) -> None:
        """Nanoseconds that do not fit a reader's integer are omitted."""
        (root,) = roots(msgspec.structs.replace(CHANGE, ts_capture_us=us))
        assert ns == root.get("ts_ns")

    def test_before_1970(self) -> None:
        """Milliseconds are rounded down, so that they sort like the microseconds."""
        (root,) = roots(msgspec.structs.replace(CHANGE, ts_capture_us=-1))
        assert (-1, -1, -1000) == (root["ts_ms"], root["ts_us"], root["ts_ns"])


class TestKey:
    def test_is_the_key_of_the_row(self) -> None:
        """The key has only the key columns, because Debezium's readers use it as the primary key."""
        (record,) = records(msgspec.structs.replace(CHANGE, key='{"b":"2","id":7}'))
        assert record.key == b'{"b":"2","id":7}'

    def test_unknown(self) -> None:
        """A row without a key has no record key."""
        (record,) = records(msgspec.structs.replace(CHANGE, key=None))
        assert record.key is None

    def test_change(self) -> None:
        """A key change is a delete of the old key and a create of the new one, linked by Debezium's headers."""
        gone, new = records(MOVE)
        assert (b'{"id":7}', b'{"id":8}') == (gone.key, new.key)
        assert ("__debezium.newkey", b'{"id":8}') == gone.headers[-1]
        assert ("__debezium.oldkey", b'{"id":7}') == new.headers[-1]
        assert gone.value is not None
        assert gone.value.startswith(b'{"before":{"id":7,"price":"9.90"},"after":null')
        assert new.value is not None
        assert new.value.startswith(b'{"before":null,"after":{"id":8,"price":"12.50"}')
        assert ["d", "c"] == [root["op"] for root in roots(MOVE)]


class TestHeaders:
    def test_are_those_of_the_event(self) -> None:
        """All codecs share these headers. `cdc-op` is the operation at the source, whatever the form here."""
        (record,) = records(msgspec.structs.replace(CHANGE, before=None, changed=None))
        assert record_headers(CHANGE) == record.headers
        assert dict(record.headers)["cdc-op"] == b"u"
        assert record.value is not None
        assert b'"op":"c"' in record.value

    def test_missing_columns(self) -> None:
        """The header lists columns without a value in the new image. Readers that ignore it take them for NULL."""
        (record,) = records(msgspec.structs.replace(CHANGE, unavailable=["photo"], issues=UPDATE.issues))
        assert ("cdc-unavailable", b'["born","photo"]') == record.headers[-1]


class TestTombstones:
    def test_follow_a_delete(self) -> None:
        """A tombstone has the same key and no value. It also follows the delete of a key change, as in Debezium."""
        _, tombstone = records(DELETE, tombstones=True)
        assert (b'{"id":7}', None) == (tombstone.key, tombstone.value)
        values = [record.value and json.loads(record.value)["op"] for record in records(MOVE, tombstones=True)]
        assert ["d", None, "c"] == values

    def test_need_a_key(self) -> None:
        """Without a key, a compacted topic has nothing to delete."""
        assert 1 == len(records(msgspec.structs.replace(DELETE, key=None), tombstones=True))

    def test_are_asked_for(self) -> None:
        """There are none by default."""
        assert 1 == len(records(DELETE))


class TestTruncate:
    EVENT = ChangeEvent.truncate(CONTEXT, Detail())

    def test_dropped(self) -> None:
        """Flink fails on a truncate, and Iceberg's transform takes it for an insert without a row."""
        assert [] == records(self.EVENT)

    def test_emitted(self) -> None:
        """The record has neither key nor image, as in Debezium."""
        (record,) = records(self.EVENT, truncate="emit")
        root = root_of(record, block=False)
        assert (None, "t", None, None) == (record.key, root["op"], root["before"], root["after"])


@pytest.mark.parametrize(
    "event",
    [
        ChangeEvent.schema_change(CONTEXT, DDL, Detail()),
        ChangeEvent.transaction(CONTEXT, Detail()),
        ChangeEvent.watermark(CONTEXT, Detail()),
    ],
    ids=lambda event: event.kind,
)
def test_what_is_no_row_has_no_record(event: ChangeEvent) -> None:
    """Debezium has other topics for these, and no reader of rows wants them."""
    assert [] == records(event)


def outcome(event: ChangeEvent, *, block: bool) -> list[Record] | Exception:
    """Return the records of an event, or the error that rejects it."""
    try:
        return records(event, schema_block=block, truncate="emit")
    except (MessageError, ValueError) as error:
        return error


@given(events())
def test_any_event(event: ChangeEvent) -> None:
    """Any event is written as JSON or rejected. Other errors mean that a case is not handled."""
    for block in (False, True):
        match outcome(event, block=block):
            case MessageError():
                assert event.kind == "row"
            case list() as written:
                assert (event.kind == "row") == bool(written)
                assert all(root_of(record, block=block) for record in written)
            case _:
                assert event.op is None or event.after is None


class TestOptions:
    def test_defaults(self) -> None:
        """The defaults produce the expected records."""
        expected = Options(
            schema_block=False,
            missing_before=("merge", "as_create", "partial"),
            unavailable="omit",
            truncate="drop",
            tombstones=False,
        )
        assert expected == msgspec.convert({}, Options)

    @pytest.mark.parametrize(
        ("given_options", "reason"),
        [
            ({"missing_before": ["merge", "merge"]}, "lists a policy twice"),
            ({"missing_before": ["fail", "merge"]}, "another policy after drop_event or fail"),
            ({"missing_before": ["drop_event", "fail"]}, "another policy after drop_event or fail"),
            ({"missing_before": ["invent"]}, "Invalid enum value 'invent'"),
            ({"unavailable": "null"}, "Invalid enum value 'null'"),
            ({"truncate": "yes"}, "Invalid enum value 'yes'"),
            ({"tombstone": True}, "unknown field `tombstone`"),
        ],
    )
    def test_refuses(self, given_options: dict[str, Any], reason: str) -> None:
        """An unknown or impossible choice is an error at startup."""
        with pytest.raises(msgspec.ValidationError, match=reason):
            msgspec.convert(given_options, Options)
