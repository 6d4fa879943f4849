"""Messages with missing values, through the translator into real tables, leave no false values there."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from deltalake import DeltaTable

from cdc_core.envelope import ChangeEvent
from tests.spark_sink.lake import Lake
from translator.dialects import build
from translator.message import DeclaredTable, Learned, Limits, Message, Setup
from translator.translation.translate import Events, Translator


class Source:
    """Send messages of one topic through the translator to the tables of a lake."""

    def __init__(self, lake: Lake, dialect: str, *tables: DeclaredTable, **options: Any) -> None:
        self.learned: dict[str, object] = {}
        self.translator = Translator(
            "shop", build(dialect, Setup("shop", tables=tables, lookup=self.learned.get), options), Limits()
        )
        self.lake = lake
        self.offset = self.batch = 0

    def send(self, *values: Mapping[str, Any] | str) -> list[ChangeEvent]:
        """Translate messages, apply their events as one batch, and return them. All must be translatable."""
        events = [event for value in values for event in self._translated(value)]
        self.lake.apply(self.batch, events)
        self.batch += 1
        return events

    def refused(self, value: Mapping[str, Any]) -> str:
        """Return the code of a dead letter."""
        return self.translator.translate(self._message(value)).code  # type: ignore[union-attr]

    def _message(self, value: Mapping[str, Any] | str) -> Message:
        self.offset += 1
        text = value if isinstance(value, str) else json.dumps(value)
        return Message("raw", 0, self.offset, 0, None, text.encode())

    def _translated(self, value: Mapping[str, Any] | str) -> Iterable[ChangeEvent]:
        result = self.translator.translate(self._message(value))
        if isinstance(result, Learned):
            self.learned[result.key] = self.translator.dialect.learn(result.key, result.document)
            return []
        assert isinstance(result, Events), result
        for schema in result.schemas:
            if schema is not None:
                self.lake.announce(schema)
        return result.events


def rows(lake: Lake, table: str) -> list[tuple[Any, ...]]:
    """Return the values of each row without the key, and whether it is incomplete, by key."""
    read = DeltaTable(lake.path(table)).to_pyarrow_table()
    names = [name for name in read.column_names if not name.startswith("_cdc_")]
    listed = sorted(read.to_pylist(), key=lambda row: int(row[names[0]]))
    return [(*(row[name] for name in names[1:]), row["_cdc_incomplete"]) for row in listed]


COMMIT = 445644800032243714


def ticdc(type_: str, row: dict[str, str | None], *, key_only: bool = False) -> dict[str, Any]:
    """Return a TiCDC message with this row, for a change that keeps its key."""
    types = {"id": "bigint", "title": "varchar", "image": "text"}
    return {
        "id": 0,
        "database": "shop",
        "table": "photos",
        "pkNames": ["id"],
        "isDdl": False,
        "type": type_,
        "es": 1700000000123,
        "ts": 1700000000456,
        "sql": "",
        "sqlType": None,
        "mysqlType": {name: types[name] for name in row},
        "data": [row],
        "old": [row] if type_ == "UPDATE" else None,
        "_tidb": {"commitTs": COMMIT, **({"onlyHandleKey": True} if key_only else {})},
    }


PHOTOS = DeclaredTable("shop.photos", columns={"id": "int64", "title": "string", "image": "string"})


def test_rows_of_which_the_key_alone_was_sent(lake: Lake) -> None:
    """If only the key was sent, a new row has no NULL that looks known, and a changed row no old value that looks
    current. Both are marked until a full row comes.
    """
    source = Source(lake, "canal", PHOTOS, profile="ticdc", handle_key_only="unavailable")
    table = "shop_shop.photos"
    source.send(ticdc("INSERT", {"id": "2"}, key_only=True))
    assert [(None, None, True)] == rows(lake, table)
    whole = [ticdc("INSERT", {"id": str(id), "title": "old", "image": None}) for id in (1, 3)]
    source.send(*whole)
    assert [("old", None, False), (None, None, True), ("old", None, False)] == rows(lake, table)
    source.send(ticdc("UPDATE", {"id": "1"}, key_only=True), ticdc("DELETE", {"id": "3"}, key_only=True))
    assert [("old", None, True), (None, None, True)] == rows(lake, table)
    source.send(*(ticdc("UPDATE", {"id": id, "title": "new", "image": "x"}) for id in ("1", "2")))
    assert [("new", "x", False), ("new", "x", False)] == rows(lake, table)
    assert ([], []) == (lake.quarantine(), lake.parked())


def test_a_table_that_begins_without_the_option(lake: Lake) -> None:
    """By default, nothing of such a row is written."""
    source = Source(lake, "canal", PHOTOS, profile="ticdc")
    assert "ROW_NOT_SENT" == source.refused(ticdc("INSERT", {"id": "2"}, key_only=True))
    source.send(ticdc("INSERT", {"id": "1", "title": "t", "image": "x"}))
    assert "ROW_NOT_SENT" == source.refused(ticdc("UPDATE", {"id": "1"}, key_only=True))
    assert [("t", "x", False)] == rows(lake, "shop_shop.photos")


PEOPLE = {"ID": {"primaryKeyPosition": 1}, "NAME": {}, "PAY": {}}
SCHEMA_ID = "8FB9D3C10EA4B25751DF9CC8318F0A02"


def qlik(operation: str, row: dict[str, Any], **masks: str) -> dict[str, Any]:
    """Return a Replicate message with this row and no old row."""
    return {
        "magic": "atMSG",
        "type": "DT",
        "messageSchemaId": SCHEMA_ID,
        "message": {"data": row, "beforeData": None, "headers": {"operation": operation, **masks}},
    }


def metadata() -> dict[str, Any]:
    columns = {name: {"ordinal": n, "type": "STRING", **told} for n, (name, told) in enumerate(PEOPLE.items(), 1)}
    body = {
        "schemaId": SCHEMA_ID,
        "lineage": {"schema": "HR", "table": "PEOPLE"},
        "tableStructure": {"tableColumns": columns},
        "dataSchema": "{}",
    }
    return {"magic": "atMSG", "type": "MD", "messageSchemaId": SCHEMA_ID, "message": body}


def test_nulls_beside_a_mask_that_the_row_disproves(lake: Lake) -> None:
    """Mask 05 says that NAME was not captured, although it has a value. So PAY, null with its bit set, is unknown too.
    A new row is marked, and a changed one keeps its pay and is marked. A consistent mask is trusted.
    """
    source = Source(lake, "qlik")
    source.send(
        metadata(),
        qlik("INSERT", {"ID": "1", "NAME": "a", "PAY": "10"}, columnMask="07", changeMask="07"),
        qlik("INSERT", {"ID": "2", "NAME": "b", "PAY": "20"}, columnMask="07", changeMask="07"),
        qlik("INSERT", {"ID": "3", "NAME": "c", "PAY": None}, columnMask="05", changeMask="05"),
    )
    table = "shop_HR.PEOPLE"
    assert [("a", "10", False), ("b", "20", False), ("c", None, True)] == rows(lake, table)
    source.send(
        qlik("UPDATE", {"ID": "1", "NAME": "A", "PAY": None}, columnMask="05", changeMask="02"),
        # In Oracle without full supplemental logging, unchanged columns are not captured and keep their value.
        qlik("UPDATE", {"ID": "2", "NAME": "B", "PAY": None}, columnMask="03", changeMask="02"),
        qlik("UPDATE", {"ID": "3", "NAME": "C", "PAY": None}, columnMask="07", changeMask="06"),
    )
    assert [("A", "10", True), ("B", "20", False), ("C", None, False)] == rows(lake, table)


def test_a_cell_that_no_column_can_have(lake: Lake) -> None:
    """The column is omitted and marked where it can be outdated. The event contains exactly what was sent."""
    table = DeclaredTable("shop.orders", ("id",), {"id": "int64", "day": "date", "n": "int32"})
    source = Source(lake, "canal", table, profile="flink_cdc")

    def insert(cells: str, type_: str = "INSERT") -> str:
        return f'{{"data":[{{{cells}}}],"type":"{type_}","database":"shop","table":"orders"}}'

    source.send(insert('"id":1,"day":"2026-01-01","n":1'))
    first = source.send(insert('"id":2,"day":{"y" : 2026.0},"n":2'))
    second = source.send(insert('"id":1,"day":[1e3, null],"n":3', "UPDATE"))
    told = [(issue.col, issue.raw) for event in (*first, *second) for issue in event.issues or ()]
    assert [("day", '{"y" : 2026.0}'), ("day", "[1e3, null]")] == told
    found = [(None if day is None else day.isoformat(), n, flag) for day, n, flag in rows(lake, "shop_shop.orders")]
    assert [("2026-01-01", 3, True), (None, 2, True)] == found
