"""The reader's rules: random histories compared with an oracle, in memory and in SQL, and single cases."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from decimal import Decimal
from typing import Any

import msgspec
import pytest

from cdc_core.envelope import ChangeEvent, Issue, Tx
from cdc_core.position import position
from cdc_core.reader import ApplyError, Change, DictStore, KnownSchemas, RowStore, SqlStore, TableId, apply
from spark_sink.model.event import Event
from tests.spark_sink.histories import COLUMNS, History, history
from tests.spark_sink.oracle import table_after
from tests.translator.examples import BLANK

COUNT = int(os.environ.get("HISTORIES", "900"))
TABLE = TableId("shop", "sales", None, "t")
Rows = dict[Any, dict[str, Any]]


def event_of(event: Event) -> ChangeEvent:
    """Return an event of the sink's histories as it appears in the topic."""
    return msgspec.structs.replace(
        BLANK,
        id=str(event.index),
        kind="row",
        op=event.op,
        source=TABLE.source,
        db=TABLE.db,
        table=TABLE.table,
        pos=event.pos,
        pos_scope=event.scope,
        key=None if event.op == "t" else event.key,
        key_old=event.key_old,
        after=None if event.after is None else event.after.decode(),
        after_state="full" if event.full else "partial",
        unavailable=["withheld"] if event.withholds else None,
        ts_commit_us=event.committed,
        tx=None if event.tx is None else Tx(event.tx),
    )


def delivered(made: History) -> Iterator[Change]:
    for batch in made.batches:
        yield from (Change.of(event_of(event), None) for event in batch)


def in_memory(store: DictStore) -> tuple[Rows, set[Any]]:
    """Return the rows and the ids of incomplete rows as the oracle does, with NULL for columns that were never sent."""
    blank = dict.fromkeys(COLUMNS)
    rows = {key[0]: blank | {**row} for key, row in store.rows(TABLE).items()}
    return rows, {key[0] for key in store.incomplete(TABLE)}


def in_sql(connection: sqlite3.Connection) -> tuple[Rows, set[Any]]:
    if not connection.execute("SELECT * FROM sqlite_master WHERE name = 'shop_sales_t'").fetchall():
        return {}, set()  # created with the first row
    cursor = connection.execute("SELECT * FROM shop_sales_t")
    names = [column[0] for column in cursor.description]
    found = [dict(zip(names, row, strict=True)) for row in cursor]
    blank = dict.fromkeys(COLUMNS)
    rows = {row["id"]: blank | {name: row[name] for name in names if not name.startswith("_cdc_")} for row in found}
    return rows, {row["id"] for row in found if row["_cdc_incomplete"]}


def difference(made: History, found: tuple[Rows, set[Any]]) -> str | None:
    rows, incomplete = table_after(made.events)
    if made.sure:
        return None if (rows, incomplete) == found else f"{rows} {incomplete} but {found}"
    told, found_told = ({id: row for id, row in some.items() if id not in found[1]} for some in (rows, found[0]))
    if rows.keys() == found[0].keys() and told == found_told and incomplete <= found[1]:
        return None
    return f"{rows} {incomplete} but {found}"


@pytest.mark.parametrize("part", range(3))
def test_any_delivery_gives_the_rows(part: int) -> None:
    """However a history is reordered within its scopes, repeated or split, it produces the rows of the source. No
    complete row is marked as incomplete.
    """
    wrong = {}
    for seed in range(part, COUNT, 3):
        made, store = history(seed), DictStore()
        apply(delivered(made), store)
        if what := difference(made, in_memory(store)):
            wrong[seed] = what
    assert {} == wrong


def test_sql_as_memory() -> None:
    """SQLite ends with the same rows and marks, even if the store is reopened for each batch."""
    wrong = {}
    for seed in range(COUNT // 3):
        made, store, connection = history(seed), DictStore(), sqlite3.connect(":memory:")
        for batch in made.batches:
            changes = [Change.of(event_of(event), None) for event in batch]
            accounts = apply(changes, store), apply(changes, SqlStore(connection))
            assert accounts[0] == accounts[1]
        if in_memory(store) != in_sql(connection):
            wrong[seed] = f"{in_memory(store)} but {in_sql(connection)}"
        connection.close()
    assert {} == wrong


def test_what_was_read_changes_nothing() -> None:
    """Reading the whole topic again, as a reader without offsets does, changes nothing where scopes keep order."""
    for seed in range(COUNT // 3):
        made, store = history(seed), DictStore()
        if made.native:
            continue
        apply(delivered(made), store)
        rows = in_memory(store)
        again = apply(delivered(made), store)
        assert (0, rows) == (again.applied, in_memory(store)), seed


class Story:
    """Successive changes of one table."""

    def __init__(self, store: RowStore | None = None) -> None:
        self.store = store or DictStore()
        self.number = 0

    def tell(self, op: str | None, key: Any = None, after: Any = None, **fields: Any) -> Any:
        self.number += 1
        scope, pos = fields.pop("scope", "raw:0@id"), fields.pop("pos", position(self.number, 0))
        event = msgspec.structs.replace(
            BLANK,
            **{
                "id": f"e{self.number}",
                "kind": "row",
                "op": op,
                "source": TABLE.source,
                "db": TABLE.db,
                "table": TABLE.table,
                "pos": pos,
                "pos_scope": scope,
                "key": key and json.dumps(key),
                "after": after and json.dumps(after),
                "after_state": "full" if op in ("c", "r") else "partial",
                **fields,
            },
        )
        return apply([Change.of(event, None)], self.store)

    @property
    def rows(self) -> list[Any]:
        assert isinstance(self.store, DictStore)
        return [*self.store.rows(TABLE).values()]

    @property
    def incomplete(self) -> set[Any]:
        assert isinstance(self.store, DictStore)
        return self.store.incomplete(TABLE)


class TestRules:
    def test_whole_row(self) -> None:
        """A full image replaces the whole row, even in an update. A column that it lacks was dropped from the table."""
        story = Story()
        story.tell("c", {"id": 1}, {"id": 1, "a": 1, "b": 1})
        story.tell("u", {"id": 1}, {"id": 1, "a": 2}, after_state="full")
        assert [{"id": 1, "a": 2}] == story.rows

    def test_patch(self) -> None:
        """A partial image sets the columns that it has. NULL is a value, but an absent column is not."""
        story = Story()
        story.tell("c", {"id": 1}, {"id": 1, "a": 1, "b": 1, "c": 1})
        story.tell("u", {"id": 1}, {"a": None, "b": 2})
        assert [{"id": 1, "a": None, "b": 2, "c": 1}] == story.rows
        assert set() == story.incomplete

    def test_a_new_state_of_an_image(self) -> None:
        """An image state from a later release is treated as partial."""
        story = Story()
        story.tell("c", {"id": 1}, {"id": 1, "a": 1})
        story.tell("u", {"id": 1}, {"b": 2}, after_state="later")
        assert [{"id": 1, "a": 1, "b": 2}] == story.rows

    def test_truncate(self) -> None:
        """A truncate empties the table once. A duplicate neither deletes later rows nor restores earlier ones."""
        story = Story()
        story.tell("c", {"id": 1}, {"id": 1})
        story.tell("t")
        assert [] == story.rows
        story.tell("c", {"id": 1}, {"id": 1, "a": "after"})
        assert 1 == story.tell("t", pos=position(2, 0)).stale
        assert 1 == story.tell("c", {"id": 2}, {"id": 2}, pos=position(1, 1)).stale
        assert [{"id": 1, "a": "after"}] == story.rows

    def test_key_change(self) -> None:
        """The row moves from one key to the other and keeps the columns that the image lacks."""
        story = Story()
        story.tell("c", {"id": 1}, {"id": 1, "a": 1, "b": 1})
        story.tell("u", {"id": 2}, {"id": 2, "a": 2}, key_old='{"id":1}')
        assert [{"id": 2, "a": 2, "b": 1}] == story.rows
        assert 1 == story.tell("c", {"id": 1}, {"id": 1}, pos=position(1, 0)).stale

    def test_key_change_of_a_row_that_nobody_has(self) -> None:
        """If the old row is unknown, columns missing from the image are unknown too, and the row is marked."""
        story = Story()
        story.tell("u", {"id": 2}, {"a": 2}, key_old='{"id":1}')
        assert ([{"id": 2, "a": 2}], {(2,)}) == (story.rows, story.incomplete)

    def test_a_key_that_holds_null(self) -> None:
        """The row of the old key is deleted. The row with a null key is counted and not stored."""
        story = Story()
        story.tell("c", {"id": 5}, {"id": 5})
        account = story.tell("u", None, {"id": None}, key_old='{"id":5}', notes=["KEY_INCOMPLETE"])
        assert ([], 1) == (story.rows, account.keyless)

    def test_keys_by_value(self) -> None:
        """Two spellings of one number are the same key."""
        with closing(sqlite3.connect(":memory:")) as connection:
            for store in (DictStore(), SqlStore(connection)):
                one, other = (
                    Change.of(
                        msgspec.structs.replace(
                            BLANK, kind="row", op="c", table="t", after_state="full", pos=position(n, 0)
                        ),
                        None,
                    )
                    for n in (1, 2)
                )
                for change, key in ((one, Decimal("7.00")), (other, 7)):
                    apply([msgspec.structs.replace(change, key={"id": key}, after={"id": key})], store)
                assert 1 == len([*store.keys(TableId("s", None, None, "t"))])

    @pytest.mark.parametrize("withheld", [{"unavailable": ["b"]}, {"issues": [Issue("b", "ZERO_DATE")]}])
    def test_withheld(self, withheld: dict[str, Any]) -> None:
        """A withheld column keeps its value, and the row is marked. A full row makes it complete again."""
        story = Story()
        story.tell("c", {"id": 1}, {"id": 1, "a": 1, "b": 1})
        story.tell("u", {"id": 1}, {"a": 2}, **withheld)
        assert ([{"id": 1, "a": 2, "b": 1}], {(1,)}) == (story.rows, story.incomplete)
        story.tell("u", {"id": 1}, {"id": 1, "a": 3, "b": 3}, after_state="full")
        assert ([{"id": 1, "a": 3, "b": 3}], set()) == (story.rows, story.incomplete)

    def test_withheld_but_not_changed(self) -> None:
        """A column that the update did not change is known, and so is one whose new value is in the image."""
        story = Story()
        story.tell("c", {"id": 1}, {"id": 1, "a": 1, "b": 1})
        story.tell("u", {"id": 1}, {"a": 2}, unavailable=["b"], changed=["a"])
        story.tell("u", {"id": 1}, {"a": 3}, issues=[Issue("a", "ZERO_DATE")])
        assert ([{"id": 1, "a": 3, "b": 1}], set()) == (story.rows, story.incomplete)

    @pytest.mark.parametrize("fields", [{"unavailable": ["b"]}, {"schema_id": "0" * 16}])
    def test_new_row_that_lacks_columns(self, fields: dict[str, Any]) -> None:
        """In a new row, withheld columns and columns missing from the image are unknown, not NULL."""
        story = Story()
        story.tell("c", {"id": 1}, {"id": 1}, after_state="partial", **fields)
        assert ([{"id": 1}], {(1,)}) == (story.rows, story.incomplete)

    def test_snapshot_and_changes(self) -> None:
        """With native positions, an unannounced load stops the reader and does not revert any change."""
        story, native = Story(), "native:shop/task"
        story.tell("u", {"id": 1}, {"id": 1, "a": 2}, after_state="full", scope=native, pos=position(9, 0, native=5))
        story.tell("d", {"id": 2}, scope=native, pos=position(9, 0, native=6))
        with pytest.raises(ApplyError, match="reloaded"):
            story.tell("r", {"id": 1}, {"id": 1, "a": 1}, scope=native, pos=position(3, 0))
        assert [{"id": 1, "a": 2}] == story.rows

    def test_snapshot_of_a_new_epoch(self) -> None:
        """An announced reload has a higher position than everything before it."""
        story, native = Story(), "native:shop/task"
        story.tell("u", {"id": 1}, {"id": 1, "a": 2}, after_state="full", scope=native, pos=position(9, 0, native=5))
        story.tell("r", {"id": 1}, {"id": 1, "a": 1}, scope=native, pos=position(10, 0, epoch=1))
        assert [{"id": 1, "a": 1}] == story.rows

    def native(self, story: Story, at: int, op: str, key: int, after: Any = None, **fields: Any) -> Any:
        """Return a change with a native position."""
        place = {"scope": "native:shop/task", "pos": position(story.number, 0, native=at), **fields}
        return story.tell(op, {"id": key}, after, **place)

    def test_a_patch_again(self) -> None:
        """With native positions, a repeated patch is stale, and so is one from before a full row."""
        story = Story()
        self.native(story, 5, "c", 1, {"id": 1, "a": 1, "b": 1})
        self.native(story, 9, "u", 1, {"a": 9}, pos=(patch := position(0, 0, native=9)))
        assert [{"id": 1, "a": 9, "b": 1}] == story.rows
        assert 1 == self.native(story, 9, "u", 1, {"a": 9}, pos=patch).stale
        assert 1 == self.native(story, 3, "u", 1, {"a": 3}).stale

    def test_a_late_key_change(self) -> None:
        """Later values of the new key's row take precedence over those from the old row."""
        story = Story()
        self.native(story, 1, "c", 1, {"id": 1, "a": 1, "b": 1})
        self.native(story, 9, "u", 2, {"b": 9})
        self.native(story, 6, "u", 2, {"a": 6}, key_old='{"id":1}')
        assert ([{"id": 2, "a": 6, "b": 9}], {(2,)}) == (story.rows, story.incomplete)

    def test_a_key_change_of_a_row_that_came_again(self) -> None:
        """Nothing is copied from the row that has the old key now, because it is a different row."""
        story = Story()
        self.native(story, 8, "c", 1, {"id": 1, "a": 8, "b": 8})
        self.native(story, 6, "u", 2, {"a": 6}, key_old='{"id":1}')
        assert ([{"id": 1, "a": 8, "b": 8}, {"id": 2, "a": 6}], {(2,)}) == (story.rows, story.incomplete)

    def test_a_key_change_before_an_earlier_patch(self) -> None:
        """An earlier change of the old row can still be on its way and would be lost, so the row is marked."""
        story = Story()
        self.native(story, 1, "c", 1, {"id": 1, "a": 1, "b": 1})
        self.native(story, 6, "u", 2, {"a": 6}, key_old='{"id":1}')
        assert ([{"id": 2, "a": 6, "b": 1}], {(2,)}) == (story.rows, story.incomplete)

    def test_an_undecided_removal(self) -> None:
        """If two rows had a key at the same commit time, a removal is counted, because it can be for either row."""
        story = Story()
        accounts = [
            story.tell("c", {"id": 1}, {"id": 1, "a": 1}, ts_commit_us=5),
            story.tell("c", {"id": 1}, {"id": 1, "a": 2}, ts_commit_us=5),
            story.tell("d", {"id": 1}, ts_commit_us=5),
        ]
        assert [0, 0, 1] == [account.undecided for account in accounts]
        assert ([{"id": 1, "a": 2}], {(1,)}) == (story.rows, story.incomplete)
        later = [story.tell("d", {"id": 1}, ts_commit_us=6), story.tell("d", {"id": 2}, ts_commit_us=6)]
        assert ([0, 0], []) == ([account.undecided for account in later], story.rows)

    def test_another_kind(self) -> None:
        """Other kinds are skipped and counted. The report includes those that changed rows without an event."""
        story = Story()
        story.tell(None, kind="later")
        account = story.tell(None, kind="schema", notes=["STATEMENT_NOT_APPLIED"])
        assert (1, ["e2"]) == (account.announcements, account.not_applied)

    @pytest.mark.parametrize(
        ("note", "named"),
        [
            ("TABLE_DROPPED", True),
            ("COLUMN_REWRITTEN=a", True),
            ("COLUMN_RETYPED=a:varchar(9)", True),
            ("CASCADE_NOT_LOGGED", False),
            ("SQL_NAMES_ANOTHER_TABLE", False),
        ],
    )
    def test_statements_that_nobody_can_apply(self, note: str, *, named: bool) -> None:
        """The reader reports such statements for any table."""
        account = Story().tell(None, kind="schema", notes=[note])
        assert (["e1"] if named else []) == account.not_applied

    def test_the_default_of_a_new_column(self) -> None:
        """Existing rows get the default, and later rows bring their own value."""
        story = Story()
        story.tell("c", {"id": 1}, {"id": 1, "a": 1})
        story.tell("c", {"id": 2}, {"id": 2, "a": 1})
        story.tell("d", {"id": 2})
        story.tell("c", {"id": 7}, {"id": 7, "a": 1}, scope="raw:1@id")
        story.tell("c", {"id": 8}, {"id": 8, "n": "9.00"}, scope="raw:1@id")
        account = story.tell(None, None, {"n": "1.50"}, kind="schema", notes=["DEFAULT_FILLED=n:decimal(9,2)"])
        assert (2, []) == (account.filled, account.not_applied)
        story.tell("c", {"id": 3}, {"id": 3, "a": 1})
        assert [
            {"id": 1, "a": 1, "n": "1.50"},
            {"id": 7, "a": 1, "n": "1.50"},
            {"id": 8, "n": "9.00"},
            {"id": 3, "a": 1},
        ] == story.rows
        event = msgspec.structs.replace(
            BLANK, kind="schema", table="t", after='{"n":"1.50"}', notes=["DEFAULT_FILLED=n:decimal(9,2)"]
        )
        assert {"n": Decimal("1.50")} == Change.of(event, KnownSchemas()).after

    @pytest.mark.parametrize(
        ("op", "key", "why"), [("later", {"id": 1}, "unknown operation 'later'"), ("c", None, "a key")]
    )
    def test_what_it_does_not_know(self, op: str, key: Any, why: str) -> None:
        """An unknown operation or a row without a name stops the reader. No message contains a value."""
        with pytest.raises(ApplyError, match=why) as caught:
            Story().tell(op, key, {"id": 1, "a": "secret"})
        assert "secret" not in str(caught.value)
