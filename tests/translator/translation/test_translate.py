"""The rules that all dialects share, with a dialect that returns prepared outcomes."""

import copy
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc_core.envelope import ChangeEvent, Column, Ddl, Issue, Origin, TableSchema, Tx
from tests.translator.examples import BLANK
from tests.translator.strategies import IMAGES, OFFSETS, TEXT
from translator.codecs.avro import AvroCodec
from translator.codecs.json import JsonCodec
from translator.codecs.record import Record
from translator.errors import ErrorCode, MessageError
from translator.message import (
    Changes,
    Image,
    Learned,
    Limits,
    Message,
    Needs,
    OtherChange,
    Outcome,
    RowChange,
    Skip,
    TableName,
    Writer,
)
from translator.translation.dead_letter import DeadLetter
from translator.translation.translate import Events, Result, Translator

WRITER = Writer("v3", "certain", "mysql", "db-1", "task-7")
ORDERS = TableName("shop", "dbo", "orders")
MESSAGE = Message("raw.shop", 3, 42, 1_700_000_000_500, b"k", b"{}", topic_id="dG9waWM")
PLACE = "(topic raw.shop, partition 3, offset 42)"
SECRET = "4111-1111-1111-1111"


@dataclass
class Scripted:
    """A dialect that returns what the test defines, whatever the bytes of the message."""

    outcome: Outcome | Exception
    name: str = "scripted"
    seen: list[Message] = field(default_factory=list)

    def decode(self, message: Message) -> Outcome:
        self.seen.append(message)
        if isinstance(self.outcome, Exception):
            raise self.outcome
        # A new one each time, as from a real dialect, because the core can add notes to it.
        return copy.deepcopy(self.outcome)

    def learn(self, key: str, document: bytes) -> object:
        return document


def translate(outcome: Outcome | Exception, message: Message = MESSAGE, limits: Limits | None = None) -> Result:
    """Return the core's result for an outcome."""
    return Translator("shop", Scripted(outcome), limits or Limits()).translate(message)


def events_of(*changes: RowChange | OtherChange, message: Message = MESSAGE) -> list[ChangeEvent]:
    """Return the events of a message with these changes."""
    result = translate(Changes(list(changes)), message)
    assert isinstance(result, Events), result
    return result.events


def event_of(op: str, before: Image | None = None, after: Image | None = None, **more: Any) -> ChangeEvent:
    """Return the event of one changed row of a table with the key `id`."""
    more = {"key_columns": ("id",), "key_kind": "primary", **more}
    (event,) = events_of(RowChange(op, ORDERS, WRITER, before, after, **more))
    return event


def dead_of(result: Result) -> DeadLetter:
    """Return the dead letter of a message."""
    assert isinstance(result, DeadLetter), result
    return result


def schema_of(*names: str) -> TableSchema:
    """Return a schema with these columns and the key `id`."""
    columns = [Column(name, "string", key=1 if name == "id" else None) for name in names]
    return TableSchema.of("shop", "shop", "dbo", "orders", columns, "primary")


class TestIdentity:
    @pytest.mark.requirement("qlik.headers.5")
    def test_row(self) -> None:
        """Id, position, scope, writer, table, times and origin depend only on the record and the change."""
        change = RowChange(
            *("d", ORDERS, WRITER),
            ts_commit_us=7,
            ts_capture_us=8,
            pos_native="binlog.1:4",
            tx=Tx("x"),
            row=2,
            rows=9,
        )
        (event,) = events_of(change)
        assert msgspec.structs.replace(
            BLANK,
            id="shop/raw.shop/3/42/0",
            kind="row",
            op="d",
            source="shop",
            dialect="scripted",
            variant="v3",
            variant_basis="certain",
            dbms="mysql",
            server="db-1",
            task="task-7",
            db="shop",
            schema="dbo",
            table="orders",
            pos="0000.00000000000000000000000000000000000000.0000000000000000042.000000",
            pos_scope="raw.shop:3@dG9waWM",
            pos_native="binlog.1:4",
            ts_commit_us=7,
            ts_capture_us=8,
            ts_origin_us=1_700_000_000_500_000,
            tx=Tx("x"),
            origin=Origin("raw.shop", 3, 42, 2, 9),
        ) == (event)

    def test_n_counts_all_events_of_the_message(self) -> None:
        """All events of a message, of any kind, are numbered, and their positions increase."""
        row = RowChange("t", ORDERS, WRITER)
        events = events_of(OtherChange("tx", WRITER), row, OtherChange("watermark", WRITER), row)
        assert [f"shop/raw.shop/3/42/{n}" for n in range(4)] == [event.id for event in events]
        positions = [event.pos for event in events]
        assert sorted(set(positions)) == positions

    @given(st.tuples(OFFSETS, OFFSETS).filter(lambda pair: pair[0] != pair[1]))
    def test_later_records_have_later_positions(self, offsets: tuple[int, int]) -> None:
        """Within a scope, the last event of a record comes before the first of any later record."""
        low, high = sorted(offsets)
        row = RowChange("t", ORDERS, WRITER)
        message = [Message("t", 0, offset, 0, None, b"") for offset in (low, high)]
        *_, last = events_of(row, row, message=message[0])
        (first, *_) = events_of(row, row, message=message[1])
        assert last.pos < first.pos
        assert last.pos_scope == first.pos_scope

    def test_a_recreated_topic_is_another_scope(self) -> None:
        """A recreated topic starts at offset 0, and its positions cannot be compared with the old ones."""
        scopes = {
            events_of(RowChange("t", ORDERS, WRITER), message=Message("t", 0, 0, 0, None, b"", topic_id=name))[
                0
            ].pos_scope
            for name in ("one", "two")
        }
        assert {"t:0@one", "t:0@two"} == scopes


class TestKinds:
    def test_schema(self) -> None:
        """DDL keeps its text. It is not a row, so it has neither operation nor rows."""
        ddl = Ddl("ALTER", "ALTER TABLE orders ADD x INT")
        (event,) = events_of(OtherChange("schema", WRITER, ORDERS, ddl=ddl))
        assert ("schema", None, ddl, "orders") == (event.kind, event.op, event.ddl, event.table)
        assert (0, 0) == (event.origin.row, event.origin.rows)

    def test_database_without_table(self) -> None:
        """An event about a whole database has its name and no table."""
        (event,) = events_of(OtherChange("watermark", WRITER, db="shop"))
        assert ("watermark", "shop", None, None) == (event.kind, event.db, event.schema, event.table)

    def test_transaction(self) -> None:
        """A transaction's begin or end is a separate kind of event."""
        (event,) = events_of(OtherChange("tx", WRITER, tx=Tx("5", last=True), notes=["N"], ext={"a": "b"}))
        assert ("tx", Tx("5", last=True), ["N"], {"a": "b"}) == (event.kind, event.tx, event.notes, event.ext)

    def test_truncate(self) -> None:
        """A truncate has no key and no images, even if the dialect knows the key columns."""
        event = event_of("t")
        assert ("t", None, "none", None, None) == (event.op, event.key, event.key_kind, event.before, event.after)

    @pytest.mark.parametrize(
        "outcome", [Skip("tombstone"), Learned("id", b"{}"), Needs("id")], ids=lambda o: type(o).__name__
    )
    def test_other_outcomes_pass(self, outcome: Skip | Learned | Needs) -> None:
        """Outcomes without changes are passed on unchanged."""
        assert outcome == translate(outcome)


class TestKey:
    @pytest.mark.parametrize("op", ["r", "c"])
    def test_from_after(self, op: str) -> None:
        """A new row has the key of its after image."""
        event = event_of(op, None, {"a": "x", "id": 7})
        assert ('{"id":7}', None, "primary") == (event.key, event.key_old, event.key_kind)

    def test_from_before(self) -> None:
        """A deleted row has the key of its before image."""
        event = event_of("d", {"a": "x", "id": 7})
        assert ('{"id":7}', None, "primary") == (event.key, event.key_old, event.key_kind)

    def test_order(self) -> None:
        """Key columns are in key order and not in row order."""
        event = event_of("c", None, {"a": 1, "b": "2", "c": "3"}, key_columns=("c", "a"), key_kind="unique")
        assert ('{"c":"3","a":1}', "unique") == (event.key, event.key_kind)

    def test_null(self) -> None:
        """A null in a key column identifies no row, especially in a unique key, where many rows can have it."""
        event = event_of("c", None, {"a": 1, "c": None}, key_columns=("c", "a"), key_kind="unique")
        assert (None, "none", ["KEY_INCOMPLETE"]) == (event.key, event.key_kind, event.notes)

    @pytest.mark.parametrize(
        ("before", "after", "key", "key_old", "notes"),
        [
            ({"a": 1, "c": 5}, {"a": 1, "c": None}, None, '{"c":5,"a":1}', ["KEY_INCOMPLETE", "PK_CHANGED"]),
            ({"a": 1, "c": None}, {"a": 1, "c": 5}, '{"c":5,"a":1}', None, ["PK_CHANGED"]),
            ({"c": None}, {"a": 1, "c": 5}, '{"c":5,"a":1}', None, ["PK_CHANGED"]),
            ({"a": 1, "c": None}, {"a": None, "c": None}, None, None, ["KEY_INCOMPLETE", "PK_CHANGED"]),
            ({"a": 1, "c": None, "x": 0}, {"a": 1, "c": None, "x": 1}, None, None, ["KEY_INCOMPLETE"]),
            ({"c": None}, {"a": 1}, None, None, ["KEY_INCOMPLETE"]),
        ],
        ids=["to null", "from null", "from null, as far as sent", "null to null", "null stays", "null stays, not sent"],
    )
    def test_null_and_back(
        self, before: Image, after: Image, key: str | None, key_old: str | None, notes: list[str]
    ) -> None:
        """A key with NULL counts as no key. A row that loses its key is still identified by the old one."""
        event = event_of("u", before, after, key_columns=("c", "a"), key_kind="unique")
        assert (key, key_old, notes) == (event.key, event.key_old, event.notes)

    @pytest.mark.parametrize("changed", [None, ["a", "c"]])
    def test_null_over_an_unknown_key(self, changed: list[str] | None) -> None:
        """If an update may have removed a key without saying which, the row of that key would remain forever."""
        change = RowChange(
            "u", ORDERS, WRITER, None, {"a": 1, "c": None}, changed=changed, key_columns=("c",), key_kind="unique"
        )
        dead = dead_of(translate(Changes([change])))
        assert ErrorCode.KEY_CHANGE_INCOMPLETE == dead.code
        assert f"scripted: the key changed, but the before image lacks key column 'c' at $ {PLACE}" == dead.reason

    def test_null_that_did_not_change(self) -> None:
        """If the message does not list the key column as changed, no row was removed."""
        event = event_of("u", None, {"a": 1, "c": None}, changed=["a"], key_columns=("c",), key_kind="unique")
        assert (None, None, ["KEY_INCOMPLETE"]) == (event.key, event.key_old, event.notes)

    def test_none_declared(self) -> None:
        """Rows of a table without a key have no key, and no note."""
        event = event_of("c", None, {"a": 1}, key_columns=(), key_kind="none")
        assert (None, "none", None) == (event.key, event.key_kind, event.notes)

    @pytest.mark.parametrize(
        ("op", "before", "after"),
        [
            ("c", None, {"a": 1}),
            ("r", None, {"a": 1}),
            ("d", {"a": 1}, None),
            ("d", None, None),
            ("u", None, {"a": 1}),
            ("u", {"a": 0}, {"a": 1}),
        ],
    )
    def test_incomplete(self, op: str, before: Image | None, after: Image | None) -> None:
        """A row that lacks a key column is translated without a key, with a note."""
        event = event_of(op, before, after)
        assert (None, "none", ["KEY_INCOMPLETE"]) == (event.key, event.key_kind, event.notes)

    def test_completed_from_before(self) -> None:
        """If the after image lacks the key, an update keeps the previous one."""
        event = event_of("u", {"id": 7, "a": 1}, {"a": 2})
        assert ('{"id":7}', None, None) == (event.key, event.key_old, event.notes)

    @pytest.mark.requirement("qlik.rows.3")
    @pytest.mark.parametrize(
        ("before", "after", "sparse"),
        [
            ({"id": 7, "a": 1}, {"id": 8, "a": 1}, False),
            ({"id": 7}, {"id": 8, "a": 1}, True),
        ],
        ids=["two images", "changed columns only"],
    )
    def test_change(self, before: Image, after: Image, sparse: bool) -> None:
        """An update that changes the key is one update with the new key, the old key and a note."""
        event = event_of("u", before, after, before_sparse=sparse)
        assert ("u", '{"id":8}', '{"id":7}') == (event.op, event.key, event.key_old)
        assert "PK_CHANGED" in (event.notes or ())

    def test_change_of_one_column_of_two(self) -> None:
        """Both keys are complete, even if only one of their columns was sent as changed."""
        event = event_of("u", {"b": 1}, {"a": 5, "b": 2}, before_sparse=True, key_columns=("a", "b"))
        assert ('{"a":5,"b":2}', '{"a":5,"b":1}') == (event.key, event.key_old)

    def test_no_change(self) -> None:
        """An update that does not change the key has no old key."""
        event = event_of("u", {"id": 7, "a": 1}, {"id": 7, "a": 2})
        assert ('{"id":7}', None, None) == (event.key, event.key_old, event.notes)

    def test_unchanged_as_far_as_sent(self) -> None:
        """A partial key in the before image that equals the new one is not a change."""
        event = event_of("u", {"a": 5}, {"a": 5, "b": 2}, key_columns=("a", "b"))
        assert ('{"a":5,"b":2}', None) == (event.key, event.key_old)

    def test_change_from_an_unknown_key(self) -> None:
        """A change from an unknown key becomes a dead letter, because the old row would remain forever."""
        change = RowChange("u", ORDERS, WRITER, {"a": 5}, {"a": 6, "b": 2}, key_columns=("a", "b"), key_kind="primary")
        dead = dead_of(translate(Changes([change])))
        assert ErrorCode.KEY_CHANGE_INCOMPLETE == dead.code
        assert f"scripted: the key changed, but the before image lacks key column 'b' at $ {PLACE}" == dead.reason

    @pytest.mark.requirement("canal.reject.6", "dts_avro.reject.6")
    @pytest.mark.parametrize("op", ["r", "c", "u", "d"])
    def test_column_with_an_issue(self, op: str) -> None:
        """A key value without a faithful form would identify another row, so it is a dead letter, without the value."""
        issues = [Issue("id", "BAD", SECRET)]
        change = RowChange(op, ORDERS, WRITER, {"a": 1}, {"a": 2}, key_columns=("a", "id"), issues=issues)
        dead = dead_of(translate(Changes([change])))
        assert ErrorCode.INVALID_FIELD == dead.code
        assert (
            f"scripted: key column 'id' has a value that cannot be represented exactly (BAD) at $ {PLACE}"
            == dead.reason
        )

    @pytest.mark.parametrize("assumption", ["TZ_OVERLAP", "TZ_GAP"])
    def test_column_with_two_readings(self, assumption: str) -> None:
        """When clocks are set back, two local times are one instant. As a key, it could be either of two rows."""
        change = RowChange("c", ORDERS, WRITER, after={"at": "x"}, key_columns=("at",), notes=[f"{assumption}=at"])
        dead = dead_of(translate(Changes([change])))
        assert ErrorCode.INVALID_FIELD == dead.code
        assert "key column 'at' contains a local time that occurs twice or never in its time zone" in dead.reason
        event = event_of("c", None, {"id": 7, "at": "x"}, notes=[f"{assumption}=at"])
        assert ('{"id":7}', [f"{assumption}=at"]) == (event.key, event.notes)

    def test_issue_elsewhere(self) -> None:
        """An issue of another column is kept and has no effect on the key."""
        issue = Issue("born", "ZERO_DATE", "0000-00-00")
        event = event_of("c", None, {"id": 7}, issues=[issue])
        assert ('{"id":7}', [issue]) == (event.key, event.issues)


class TestCompletion:
    def test_before(self) -> None:
        """A before image with only the changed columns is completed from the after image, in its order."""
        event = event_of("u", {"b": "old"}, {"id": 7, "b": "new", "c": None}, before_sparse=True)
        assert ('{"id":7,"b":"old","c":null}', "merged") == (event.before, event.before_state)
        assert ('{"id":7,"b":"new","c":null}', "partial") == (event.after, event.after_state)
        assert ["BEFORE_MERGED"] == event.notes

    def test_before_null_is_a_value(self) -> None:
        """A null in the sparse image is the old value and not a gap."""
        event = event_of("u", {"b": None}, {"id": 7, "b": "new"}, before_sparse=True)
        assert '{"id":7,"b":null}' == event.before

    def test_before_without_its_column_in_after(self) -> None:
        """A changed column that the after image lacks keeps its old value, at the end."""
        event = event_of("u", {"z": "old"}, {"id": 7, "b": "new"}, before_sparse=True, unavailable=["z"])
        assert '{"id":7,"b":"new","z":"old"}' == event.before

    def test_before_keeps_its_gaps(self) -> None:
        """A column whose old value has an issue or was withheld is not filled with the new value."""
        issues = [Issue("b", "ZERO_DATE", "0000-00-00")]
        after: Image = {"id": 7, "b": "2024-01-01", "c": "new"}
        event = event_of("u", {}, after, before_sparse=True, issues=issues, unavailable=["c"])
        assert ('{"id":7}', "merged") == (event.before, event.before_state)

    @pytest.mark.parametrize("gap", [{"issues": [Issue("c", "BAD", "x")]}, {"unavailable": ["c"]}])
    def test_each_kind_of_gap_stays(self, gap: dict[str, Any]) -> None:
        """An issue alone leaves a gap, and so does a withheld value."""
        before = event_of("u", {"b": 1}, {"id": 7, "b": 2, "c": 3}, before_sparse=True, **gap).before
        after = event_of("u", {"id": 7, "b": 1, "c": 3}, {"b": 2}, after_sparse=True, **gap).after
        assert ('{"id":7,"b":1}', '{"id":7,"b":2}') == (before, after)

    def test_after(self) -> None:
        """An after image without unchanged columns is completed from the before image."""
        event = event_of("u", {"id": 7, "b": "old", "c": None}, {"b": "new"}, after_sparse=True)
        assert ('{"id":7,"b":"new","c":null}', "merged") == (event.after, event.after_state)
        assert ('{"id":7,"b":"old","c":null}', "partial") == (event.before, event.before_state)

    def test_after_keeps_its_gaps(self) -> None:
        """A column whose new value has an issue or was withheld is not filled with the old value."""
        issues = [Issue("b", "ZERO_DATE", "0000-00-00")]
        before: Image = {"id": 7, "b": "2024-01-01", "c": "old", "d": 1}
        event = event_of("u", before, {"d": 2}, after_sparse=True, issues=issues, unavailable=["c"])
        assert ('{"id":7,"d":2}', "merged") == (event.after, event.after_state)

    def test_after_completed_to_all_columns(self) -> None:
        """An after image is full exactly when it has every column of the schema, whatever their origin."""
        schema = schema_of("id", "b")
        event = event_of("u", {"id": 7, "b": "old"}, {"b": "new"}, after_sparse=True, schema=schema)
        assert ("full", "full") == (event.before_state, event.after_state)

    def test_both(self) -> None:
        """Two sparse images complete each other."""
        event = event_of("u", {"id": 7, "b": "old"}, {"b": "new", "c": 1}, before_sparse=True, after_sparse=True)
        assert ('{"b":"old","c":1,"id":7}', "merged") == (event.before, event.before_state)
        assert ('{"id":7,"b":"new","c":1}', "merged") == (event.after, event.after_state)

    def test_without_before(self) -> None:
        """Without a before image, nothing is completed."""
        event = event_of("u", None, {"id": 7}, before_sparse=True, after_sparse=True)
        assert (None, "none", "key", None) == (event.before, event.before_state, event.after_state, event.notes)

    @given(IMAGES, IMAGES)
    def test_completed_is_one_row(self, changed: Image, after: Image) -> None:
        """The completed image has the columns of both, and the sparse image's values take precedence."""
        event = event_of("u", changed, after, before_sparse=True, key_columns=(), key_kind="none")
        expected = event_of("d", {**after, **changed}, key_columns=(), key_kind="none")
        assert _columns(expected.before) == _columns(event.before)


def _columns(text: str | None) -> set[tuple[str, str]]:
    image = msgspec.json.decode(text or "{}", type=dict[str, msgspec.Raw])
    return {(name, bytes(raw).decode()) for name, raw in image.items()}


class TestStates:
    @pytest.mark.parametrize(
        ("image", "schema", "expected"),
        [
            ({"id": 7, "b": None}, schema_of("id", "b"), "full"),
            ({"id": 7, "b": 1, "x": 2}, schema_of("id", "b"), "full"),
            ({"id": 7, "b": 1}, schema_of("id", "b", "c"), "partial"),
            ({"id": 7, "b": 1}, None, "partial"),
            ({"id": 7}, schema_of("id", "b"), "key"),
            ({"id": 7}, None, "key"),
            ({"id": 7}, schema_of("id"), "full"),
            ({"b": 1}, None, "partial"),
            ({}, None, "partial"),
        ],
        ids=["all", "more than all", "some", "no schema", "key", "key, no schema", "key is all", "no key", "nothing"],
    )
    def test_table(self, image: Image, schema: TableSchema | None, expected: str) -> None:
        """On either side, full means every declared column, key means only the key, and partial means anything else."""
        insert = event_of("c", None, dict(image), schema=schema)
        update = event_of("u", dict(image), dict(image), schema=schema)
        delete = event_of("d", dict(image), schema=schema)
        assert ("none", expected) == (insert.before_state, insert.after_state)
        assert (expected, expected) == (update.before_state, update.after_state)
        assert (expected, "none") == (delete.before_state, delete.after_state)

    def test_no_key_is_no_key_state(self) -> None:
        """An empty image of a table without a key does not have the state `key`."""
        assert "partial" == event_of("c", None, {}, key_columns=(), key_kind="none").after_state

    def test_an_issue_is_a_gap(self) -> None:
        """An image that lost a value to an issue is not full."""
        event = event_of("c", None, {"id": 7}, schema=schema_of("id", "b"), issues=[Issue("b", "BAD")])
        assert "key" == event.after_state


class Counting(Scripted):
    """A dialect that returns the outcome at the message's offset."""

    def decode(self, message: Message) -> Outcome:
        self.outcome = self.script[message.offset]
        return super().decode(message)

    def __init__(self, script: list[Outcome | Exception]) -> None:
        super().__init__(script[0])
        self.script = script


class TestRuns:
    ROW = Changes([RowChange("t", ORDERS, WRITER)])
    SCRIPT: tuple[Outcome | Exception, ...] = (
        ROW,
        Skip("empty"),
        MessageError(ErrorCode.MALFORMED_JSON, "bad"),
        ROW,
        RuntimeError("bug"),
        Changes([]),
        ROW,
    )

    def run(self, *script: Outcome | Exception) -> tuple[list[Result], list[Result]]:
        """Return the results of a run, and of its messages one by one."""
        messages = [Message("raw.shop", 3, offset, 0, None, b"") for offset in range(len(script))]
        translator = Translator("shop", Counting(list(script)), Limits())
        return translator.translate_run(messages), [translator.translate(message) for message in messages]

    def test_is_one_by_one(self) -> None:
        """A run gives the results of its single messages, in order. A bad message affects no other."""
        together, alone = self.run(*self.SCRIPT)
        assert alone == together
        assert [Events, Skip, DeadLetter, Events, DeadLetter, DeadLetter, Events] == [type(found) for found in together]

    @pytest.mark.parametrize("halt", [Learned("A1", b"{}"), Needs("A1")])
    def test_ends_with_metadata(self, halt: Outcome) -> None:
        """Later messages can depend on the metadata that is learned or awaited, so they are not read yet."""
        together, alone = self.run(self.ROW, halt, self.ROW)
        assert alone[:2] == together
        assert halt == together[-1]

    def test_of_nothing(self) -> None:
        """No messages give no results."""
        assert [] == Translator("shop", Scripted(self.ROW), Limits()).translate_run([])


class TestSchemas:
    def test_one_for_each_event(self) -> None:
        """Each event comes with its schema or none."""
        one, other = schema_of("id", "b"), schema_of("id", "c")
        rows = [RowChange("c", ORDERS, WRITER, after={"id": 7}, schema=schema) for schema in (one, other, one)]
        result = translate(Changes([*rows, RowChange("c", ORDERS, WRITER, after={"id": 7})]))
        assert isinstance(result, Events)
        assert [one, other, one, None] == result.schemas
        assert [one.id, other.id, one.id, None] == [event.schema_id for event in result.events]

    def test_same_columns_in_two_tables(self) -> None:
        """Two tables with equal columns have two schemas, although the fingerprint is the same."""
        tables = [TableName("shop", None, name) for name in ("a", "b")]
        columns = [Column("id", "int64")]
        schemas = [TableSchema.of("shop", "shop", None, table.table, columns, "none") for table in tables]
        rows = [
            RowChange("c", table, WRITER, after={}, schema=schema)
            for table, schema in zip(tables, schemas, strict=True)
        ]
        result = translate(Changes(list(rows)))
        assert isinstance(result, Events)
        assert schemas == result.schemas


class TestDeadLetters:
    def test_message_error(self) -> None:
        """A refusal has the dialect, reason, path and position."""
        error = MessageError(ErrorCode.UNKNOWN_OPERATION, "unknown operation 'X'", path="$.type")
        dead = dead_of(translate(error))
        assert DeadLetter(ErrorCode.UNKNOWN_OPERATION, f"scripted: unknown operation 'X' at $.type {PLACE}") == dead

    def test_unexpected_exception(self) -> None:
        """A bug is reported as INTERNAL with the type and our line. The exception's text can contain row data."""
        dead = dead_of(translate(ValueError(f"cannot read {SECRET}")))
        assert ErrorCode.INTERNAL == dead.code
        assert dead.reason.startswith("scripted: ValueError in translation/translate.py:")
        assert dead.reason.endswith(PLACE)
        assert SECRET not in dead.reason

    @pytest.mark.parametrize(
        "change",
        [
            RowChange("x", ORDERS, WRITER),
            RowChange("c", ORDERS, WRITER),
            RowChange("r", ORDERS, WRITER),
            RowChange("u", ORDERS, WRITER, before={}),
            OtherChange("x", WRITER),
            OtherChange("schema", WRITER),
        ],
        ids=["operation", "insert", "snapshot", "update", "kind", "schema"],
    )
    def test_a_dialect_that_breaks_its_contract(self, change: RowChange | OtherChange) -> None:
        """An impossible change is our bug and not an event."""
        assert ErrorCode.INTERNAL == dead_of(translate(Changes([change]))).code

    def test_no_changes(self) -> None:
        """A message without any change would vanish without a trace, so it is our bug."""
        assert ErrorCode.INTERNAL == dead_of(translate(Changes([]))).code

    def test_the_message_is_the_unit(self) -> None:
        """One bad row makes the whole message a dead letter, without any event."""
        good = RowChange("c", ORDERS, WRITER, after={"id": 7})
        bad = RowChange("c", ORDERS, WRITER, after={}, key_columns=("id",), issues=[Issue("id", "BAD")])
        assert ErrorCode.INVALID_FIELD == dead_of(translate(Changes([good, bad]))).code

    def test_interrupts_pass(self) -> None:
        """A request to stop the process is not a bad message."""
        translator = Translator("shop", Scripted(Skip("x")), Limits())
        translator.dialect.decode = _interrupted  # type: ignore[method-assign]
        with pytest.raises(KeyboardInterrupt):
            translator.translate(MESSAGE)

    @pytest.mark.requirement("qlik.metadata.2")
    def test_missing(self) -> None:
        """The reason names the missing metadata and what to do."""
        dead = Translator("shop", Scripted(Skip("x")), Limits()).missing(MESSAGE, Needs("8FB9"))
        assert ErrorCode.SCHEMA_MISSING == dead.code
        assert (
            "metadata '8FB9' was not learned in time. Replay this message once its metadata message has arrived"
        ) in dead.reason

    def test_missing_schema_of_a_registry(self) -> None:
        """No message provides it."""
        dead = Translator("shop", Scripted(Skip("x")), Limits()).missing(MESSAGE, Needs("registry/7", 7))
        assert ErrorCode.SCHEMA_MISSING == dead.code
        assert "schema 7 of the schema registry is unknown; provide it with --schemas FILE (topic raw" in dead.reason

    def test_a_reason_is_bounded(self) -> None:
        """However long a name in a message is, its dead letter is short and still has the position."""
        dead = Translator("shop", Scripted(Skip("x")), Limits()).missing(MESSAGE, Needs("8" * 3_000_000))
        assert dead.reason.startswith("scripted: metadata '888")
        assert dead.reason.endswith(f"8… {PLACE}")
        assert 1_100 > len(dead.reason)

    def test_too_large(self) -> None:
        """The error for a record that does not fit its topic has the topic and both sizes."""
        dead = Translator("shop", Scripted(Skip("x")), Limits()).too_large(MESSAGE, "out", 11, 10)
        assert ErrorCode.TOO_LARGE == dead.code
        assert "a record has 11 bytes, but topic out only allows 10 (max.message.bytes) (topic raw" in dead.reason


def _interrupted(message: Message) -> Outcome:
    raise KeyboardInterrupt


class TestSizeLimit:
    @pytest.mark.parametrize("size", [0, 9, 10])
    def test_within(self, size: int) -> None:
        """A value up to the limit is read."""
        message = Message("t", 0, 0, 0, None, b"x" * size)
        assert Skip("x") == translate(Skip("x"), message, Limits(value_bytes=10))

    @pytest.mark.requirement("canal.reject.1", "shareplex.reject.1")
    def test_beyond(self) -> None:
        """A value above the limit is not even parsed, and the error states the limit."""
        dialect = Scripted(Skip("x"))
        message = Message("t", 0, 0, 0, None, b"x" * 11)
        dead = dead_of(Translator("shop", dialect, Limits(value_bytes=10)).translate(message))
        assert ErrorCode.LIMIT_EXCEEDED == dead.code
        assert "the value has 11 bytes, 10 are allowed (limits.value_bytes)" in dead.reason
        assert [] == dialect.seen

    def test_no_value(self) -> None:
        """A tombstone has no size, and the dialect decides its meaning."""
        assert Skip("tombstone") == translate(Skip("tombstone"), Message("t", 0, 0, 0, b"k", None))


@st.composite
def row_changes(draw: st.DrawFn) -> RowChange:
    """Generate row changes as dialects can return them."""
    op = draw(st.sampled_from("rcudt"))
    before = draw(IMAGES | st.none()) if op in "ud" else None
    return RowChange(
        op,
        TableName(draw(TEXT | st.none()), draw(TEXT | st.none()), draw(TEXT)),
        WRITER,
        before,
        draw(IMAGES) if op in "rcu" else None,
        before_sparse=draw(st.booleans()),
        after_sparse=draw(st.booleans()),
        key_columns=tuple(sorted(before or {})[:1]),
        key_kind="configured",
        unavailable=draw(st.lists(TEXT, max_size=2)),
        notes=draw(st.none() | st.just(["N"])),
    )


CHANGES = st.lists(row_changes(), min_size=1, max_size=4)


class TestPurity:
    @pytest.mark.parametrize("codec", [AvroCodec(), JsonCodec()], ids=lambda codec: codec.name)
    @given(changes=CHANGES, others=CHANGES)
    def test_same_input_same_bytes(self, codec: AvroCodec | JsonCodec, changes: list[Any], others: list[Any]) -> None:
        """A replay gives the same records, whatever was translated before."""
        fresh, used = (Translator("shop", Scripted(Changes(changes)), Limits()) for _ in range(2))
        used.dialect = Scripted(Changes(others))
        used.translate(MESSAGE)
        used.dialect = Scripted(Changes(changes))
        assert _records(fresh, codec) == _records(used, codec)

    def test_the_message_stays_as_it_is(self) -> None:
        """The input bytes are unchanged, because a dead letter would contain them."""
        message = Message("t", 0, 0, 0, b"k", b"v", (("h", b"1"),))
        before = copy.deepcopy(message)
        translate(Changes([RowChange("t", ORDERS, WRITER)]), message)
        assert before == message


def _records(translator: Translator, codec: AvroCodec | JsonCodec) -> list[Record]:
    result = translator.translate(MESSAGE)
    assert isinstance(result, Events)
    records = translator.encode(codec, MESSAGE, result)
    assert isinstance(records, list)
    return records


class TestEncode:
    def test_one_record_an_event(self) -> None:
        """The records are in the order of the events."""
        row = RowChange("t", ORDERS, WRITER)
        translator = Translator("shop", Scripted(Changes([row, row])), Limits())
        headers = [dict(record.headers) for record in _records(translator, JsonCodec())]
        assert [b"shop/raw.shop/3/42/0", b"shop/raw.shop/3/42/1"] == [header["cdc-id"] for header in headers]

    def test_what_the_codec_cannot_write(self) -> None:
        """An event that cannot be encoded is INTERNAL, and no record of its message remains."""
        row = RowChange("c", ORDERS, WRITER, after={"id": 7}, ts_commit_us=2**63)
        translator = Translator("shop", Scripted(Changes([row])), Limits())
        result = translator.translate(MESSAGE)
        assert isinstance(result, Events)
        dead = translator.encode(AvroCodec(), MESSAGE, result)
        assert isinstance(dead, DeadLetter)
        assert ErrorCode.INTERNAL == dead.code
        assert "ValueError in codecs/_datum.py:" in dead.reason


class TestAnnouncement:
    def test_events(self) -> None:
        """What a metadata message announces are normal events of its record, for the table that it declares."""
        schema = schema_of("id", "name")
        change = OtherChange("schema", WRITER, ORDERS, ddl=Ddl("metadata"), schema=schema)
        translator = Translator("shop", Scripted(Skip("unused")), Limits())
        announced = translator.announcement(MESSAGE, Learned("8FB9", b"{}", (change, change)))
        assert isinstance(announced, Events)
        assert ["shop/raw.shop/3/42/0", "shop/raw.shop/3/42/1"] == [event.id for event in announced.events]
        assert {("schema", "orders", schema.id)} == {(e.kind, e.table, e.schema_id) for e in announced.events}

    def test_a_bug(self) -> None:
        """An announcement that fails becomes a dead letter, like an event."""
        translator = Translator("shop", Scripted(Skip("unused")), Limits())
        bad = Learned("8FB9", b"{}", (OtherChange("schema", WRITER, ORDERS),))
        assert ErrorCode.INTERNAL == dead_of(translator.announcement(MESSAGE, bad)).code  # type: ignore[arg-type]
