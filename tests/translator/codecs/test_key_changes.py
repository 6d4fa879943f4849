"""A changed key as two events: the exact fields, and the resulting rows of a reader."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from cdc_core.envelope import ChangeEvent, Column, ImageText, Issue, TableSchema
from cdc_core.reader import Change, ChangeReader, DictStore, TableId, apply
from dev.demo.sources import shop_sources
from tests.cdc_core.reader.sources import known, translated
from tests.repository.pages import page
from tests.sizes import examples
from tests.translator.codecs.debezium_rows import Case, cases
from tests.translator.examples import DDL, UPDATE
from translator.codecs import Codec, build
from translator.codecs.key_changes import halves
from translator.codecs.record import record_headers, record_key
from translator.errors import ConfigError, ErrorCode, MessageError
from translator.resolution.resolve import event_number

SCHEMA = TableSchema.of(
    "shop", "shop", "dbo", "orders", [Column("id", "int32", key=1), Column("price", "decimal(9,2)")], "primary"
)
MOVE = msgspec.structs.replace(UPDATE, unavailable=None, issues=None)
CODECS = st.sampled_from(["avro", "json"])


def split(name: str) -> Codec:
    return build(name, {"key_change": "two_events"})


def made(event: ChangeEvent, schema: TableSchema | None = SCHEMA) -> tuple[ChangeEvent, ChangeEvent]:
    return halves(event, schema)


class TestHalves:
    def test_fields(self) -> None:
        """A delete under the old key and an insert under the new one share all other fields of the event."""
        gone, new = made(MOVE)
        blank: dict[str, Any] = {"key_old": None, "changed": None}
        assert gone == msgspec.structs.replace(
            MOVE, id=f"{MOVE.id}/d", op="d", key='{"id":7}', after=None, after_state="none", **blank
        )
        assert new == msgspec.structs.replace(
            MOVE, id=f"{MOVE.id}/c", op="c", before=None, before_state="none", **blank
        )

    @pytest.mark.parametrize("name", ["avro", "json"])
    def test_records(self, name: str) -> None:
        """Each half has a normal record of its codec. The header is the half's id."""
        codec: Any = build(name, {})
        found = split(name).encode(MOVE, SCHEMA)
        assert [codec.decode(record.value) for record in found] == [*made(MOVE)]
        assert [(record_key(half), record_headers(half)) for half in made(MOVE)] == [
            (record.key, record.headers) for record in found
        ]
        assert [b"shop/raw.shop/3/42/0/d", b"shop/raw.shop/3/42/0/c"] == [
            dict(record.headers)["cdc-id"] for record in found
        ]

    @pytest.mark.parametrize("name", ["avro", "json"])
    def test_the_number_of_the_event(self, name: str) -> None:
        """Code that uses the number of an event, such as a topic for each table, finds it in both halves."""
        seventh = msgspec.structs.replace(MOVE, id="shop/raw.shop/3/42/7")
        assert [7, 7] == [event_number(record) for record in split(name).encode(seventh, SCHEMA)]

    def test_the_new_row_is_completed(self) -> None:
        """The new row is completed with the columns that the event says did not change."""
        sparse = msgspec.structs.replace(MOVE, after='{"id":8}', after_state="key", changed=["id"])
        _, new = made(sparse)
        assert ('{"id":8,"price":"9.90"}', "full") == (new.after, new.after_state)
        _, new = made(sparse, None)
        assert ('{"id":8,"price":"9.90"}', "merged") == (new.after, new.after_state)

    def test_no_old_image(self) -> None:
        """Without an old image, only the old row's key is known."""
        gone, _ = made(msgspec.structs.replace(MOVE, before=None, before_state="none"))
        assert ('{"id":7}', "key") == (gone.before, gone.before_state)

    def test_what_is_said_of_values_stays_with_the_image_that_lacks_them(self) -> None:
        """An issue of the old value does not affect the new row."""
        issue = Issue("price", "SCALE_EXCEEDED")
        fields: dict[str, Any] = {"issues": [issue], "unavailable": ["price"], "before": '{"id":7}'}
        gone, new = made(msgspec.structs.replace(MOVE, **fields))
        assert ([issue], ["price"]) == (gone.issues, gone.unavailable)
        assert (None, None) == (new.issues, new.unavailable)

    def test_a_row_that_loses_its_key(self) -> None:
        """The row continues without a key, and only that half has the note."""
        keyless = msgspec.structs.replace(MOVE, key=None, after='{"id":null,"price":"1.00"}', notes=["KEY_INCOMPLETE"])
        gone, new = made(keyless)
        assert ('{"id":7}', None) == (gone.key, gone.notes)
        assert (None, ["KEY_INCOMPLETE"]) == (new.key, new.notes)
        store = DictStore()
        account = apply([Change.of(half, None) for half in (gone, new)], store)
        assert (1, 1) == (account.applied, account.keyless)


class TestOneEvent:
    @pytest.mark.parametrize("name", ["avro", "json"])
    @pytest.mark.parametrize(
        "fields", [{"key_old": None}, {"key_old": None, "op": "d", "after": None}, {"kind": "schema", "key_old": None}]
    )
    def test_what_moves_no_row(self, name: str, fields: dict[str, Any]) -> None:
        """Other events are the same as without the option, including an update that gives a row a key."""
        other = msgspec.structs.replace(MOVE, ddl=DDL, **fields)
        assert build(name, {}).encode(other, SCHEMA) == split(name).encode(other, SCHEMA)

    @pytest.mark.parametrize("name", ["avro", "json"])
    def test_by_default(self, name: str) -> None:
        assert 1 == len(build(name, {"key_change": "one_event"}).encode(MOVE, SCHEMA))

    def test_unknown_words(self) -> None:
        with pytest.raises(ConfigError, match="key_change"):
            build("avro", {"key_change": "two"})


def test_a_new_row_that_lacks_columns() -> None:
    """A new row that lacks columns is rejected, because an insert would lose them for good."""
    with pytest.raises(MessageError, match="lacks column 'price'") as caught:
        split("avro").encode(msgspec.structs.replace(MOVE, after='{"id":8}', before=None), SCHEMA)
    assert ErrorCode.KEY_CHANGE_INCOMPLETE == caught.value.code


@examples(3)
@given(cases() | cases(moving=True), CODECS)
def test_a_reader_has_the_row(case: Case, name: str) -> None:
    """A reader that had the old row ends with the same rows, marks and values from two events as from one."""
    change = case.event
    if change.key_old is None:
        assert build(name, {}).encode(change, case.schema) == split(name).encode(change, case.schema)
        return
    event("a changed key")
    if change.key is None:
        change = msgspec.structs.replace(change, notes=["KEY_INCOMPLETE"])
    try:
        written = split(name).encode(change, case.schema)
    except MessageError as error:
        event(f"refused: {error.code}")
        if error.code != ErrorCode.KEY_CHANGE_INCOMPLETE:
            raise
        return
    plain: Any = build(name, {})
    found = [DictStore(), DictStore()]
    for store, events in zip(found, ([change], [plain.decode(record.value) for record in written]), strict=True):
        apply([Change.of(one, None) for one in (_as_it_was(case), *events)], store)
    whole, halved = found
    table = TableId(change.source, change.db, change.schema, "t")
    assert whole.rows(table).keys() == halved.rows(table).keys()
    assert whole.incomplete(table) <= halved.incomplete(table)
    for key, row in halved.rows(table).items():
        # For the insert, the earlier value of a column without a form is unknown.
        assert row.items() <= whole.rows(table)[key].items()
        lost = whole.rows(table)[key].keys() - row.keys()
        assert lost <= {issue.col for issue in change.issues or ()} or case.schema is None


def _as_it_was(case: Case) -> ChangeEvent:
    text = msgspec.json.encode(case.old).decode()
    change = case.event
    blank: dict[str, Any] = {"key_old": None, "before": None, "before_state": "none", "schema_id": None}
    there = ImageText(text, "full")
    return msgspec.structs.replace(
        change,
        op="c",
        key=change.key_old,
        after=there.text,
        after_state=there.state,
        pos="0",
        issues=None,
        unavailable=None,
        **blank,
    )


@pytest.mark.parametrize("number", [0, 1, 3, 4], ids=["qlik", "dts", "canal", "legacy"])
@pytest.mark.parametrize("name", ["avro", "json"])
def test_shops(number: int, name: str) -> None:
    """The demo shops, whose tools send full rows, give the same tables, without updates that move rows."""
    source, codec = shop_sources(31)[number], split(name)
    events = translated(source, source.messages(300, grow=True))
    records = [record for one, schema in events for record in codec.encode(one, schema)]
    assert len(records) > len(events)
    reader, stores = ChangeReader(known(events)), [DictStore(), DictStore()]
    changes = [reader.read(record.value) for record in records if record.value is not None]
    assert {None} == {change.event.key_old for change in changes}
    assert len(changes) == len({change.event.id for change in changes})
    apply(changes, stores[0])
    apply([Change.of(one, known(events)) for one, _ in events], stores[1])
    assert {table: stores[1].rows(table) for table in stores[1].tables()} == {
        table: stores[0].rows(table) for table in stores[0].tables()
    }
    assert [] == [table for table in stores[0].tables() if stores[0].incomplete(table)]


def test_page() -> None:
    """docs/envelope/two-events.md has the option, its two values and the suffixes of the ids."""
    text = page("envelope/two-events.md")
    assert [] == [word for word in ("`key_change: two_events`", "`/d`", "`/c`") if word not in text]
