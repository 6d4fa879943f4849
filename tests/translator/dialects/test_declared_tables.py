"""`tables:` in every dialect, up to the event: a declaration applies as a whole if messages have no types.

SharePlex, Canal without `mysqlType` and Qlik without metadata say nothing about their columns. DTS Avro provides all
but the types that its numbers leave open.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from cdc_core.envelope import ChangeEvent, Column, TableSchema, fingerprint
from tests.translator.dialects.canal.messages import of_type
from tests.translator.dialects.dts_avro.composer import character, integer, row
from tests.translator.dialects.qlik.messages import bare
from tests.translator.dialects.shareplex.messages import body
from translator import dialects
from translator.message import DeclaredTable, Limits, Message, Setup
from translator.translation.translate import Events, Translator

Cells = Mapping[str, str]
"""A row as text, which each message below spells in its own way."""

DECLARED = DeclaredTable("A.T", ("ID",), {"ID": "int64", "NAME": "string", "PAID": "decimal(9,2)"})
COLUMNS = [Column("ID", "int64", key=1), Column("NAME", "string"), Column("PAID", "decimal(9,2)")]
ROW = {"ID": "7", "NAME": "a", "PAID": "1.5"}
TYPED = {"ID": 7, "NAME": "a", "PAID": "1.50"}
PART = {"ID": "7", "PAID": "1.5"}
"""The columns that an update sends if it sends only the key and the changes."""


def _canal(type_: str, after: Cells, before: Cells | None) -> dict[str, Any]:
    silent = {"database": "A", "table": "T", "mysqlType": None, "sqlType": None, "pkNames": None}
    return of_type(type_, [after], [before] if before else None, **silent)


def _shareplex_update(after: Cells, before: Cells) -> dict[str, Any]:
    return body("upd", data=after, key={"ID": after["ID"], **before})


INSERTS: Mapping[str, Callable[[Cells], dict[str, Any]]] = {
    "canal": lambda cells: _canal("INSERT", cells, None),
    "qlik": lambda cells: bare("INSERT", cells),
    "shareplex": lambda cells: body("ins", data=cells),
}
UPDATES: Mapping[str, Callable[[Cells, Cells], dict[str, Any]]] = {
    "canal": lambda after, before: _canal("UPDATE", after, before),
    "qlik": lambda after, before: bare("UPDATE", after, before),
    "shareplex": _shareplex_update,
}
OPTIONS: Mapping[str, Mapping[str, Any]] = {"qlik": {"topics": "A.T"}}
SILENT = sorted(INSERTS)
"""The dialects whose messages can lack types."""


def translated(dialect: str, value: bytes | Mapping[str, Any], *tables: DeclaredTable) -> Events:
    """Return the events of a message, as the service creates them."""
    built = dialects.build(dialect, Setup("src", tables=tables), OPTIONS.get(dialect, {}))
    raw = value if isinstance(value, bytes) else json.dumps(value).encode()
    result = Translator("src", built, Limits()).translate(Message("raw", 0, 0, 0, None, raw))
    assert isinstance(result, Events), result
    return result


def event_of(dialect: str, value: bytes | Mapping[str, Any], *tables: DeclaredTable) -> ChangeEvent:
    """Return the only event of a message."""
    (event,) = translated(dialect, value, *tables).events
    return event


def image(text: str | None) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(text or "null")
    return found


@pytest.mark.parametrize("dialect", SILENT)
class TestWithoutTypes:
    def test_declared(self, dialect: str) -> None:
        """Columns and key of the declaration provide the same types, key and schema in every dialect."""
        found = translated(dialect, INSERTS[dialect](ROW), DECLARED)
        (event,), (schema,) = found.events, found.schemas
        assert TYPED == image(event.after)
        assert ('{"ID":7}', "configured", "full") == (event.key, event.key_kind, event.after_state)
        assert TableSchema.of("src", event.db, event.schema, "T", COLUMNS, "configured") == schema
        assert fingerprint(COLUMNS, "configured") == event.schema_id

    def test_not_declared(self, dialect: str) -> None:
        """Without a declaration, columns are text as sent, without key and schema."""
        found = translated(dialect, INSERTS[dialect](ROW))
        (event,) = found.events
        assert (ROW, None, "none", None) == (image(event.after), event.key, event.key_kind, event.schema_id)
        assert [None] == found.schemas

    def test_declared_for_another_table(self, dialect: str) -> None:
        """A declaration applies to the tables that its pattern matches."""
        other = DeclaredTable("A.U*", DECLARED.key, DECLARED.columns)
        assert event_of(dialect, INSERTS[dialect](ROW)) == event_of(dialect, INSERTS[dialect](ROW), other)
        assert TYPED == image(event_of(dialect, INSERTS[dialect](ROW), other, DECLARED).after)

    def test_key_only(self, dialect: str) -> None:
        """A declared key identifies the row, without a schema and types."""
        event = event_of(dialect, INSERTS[dialect](ROW), DeclaredTable("A.*", ("ID",)))
        assert ('{"ID":"7"}', "configured", None) == (event.key, event.key_kind, event.schema_id)
        assert ROW == image(event.after)

    def test_a_column_that_is_not_declared(self, dialect: str) -> None:
        """The list is incomplete, so there is no schema. Declared columns keep their types."""
        event = event_of(dialect, INSERTS[dialect]({**ROW, "NEW": "x"}), DECLARED)
        assert ("c", '{"ID":7}', None) == (event.op, event.key, event.schema_id)
        assert {**TYPED, "NEW": "x"} == image(event.after)

    def test_a_part_of_the_row(self, dialect: str) -> None:
        """A partial image has the declared schema and does not count as the full row."""
        event = event_of(dialect, UPDATES[dialect](PART, {"PAID": "2"}), DECLARED)
        assert fingerprint(COLUMNS, "configured") == event.schema_id
        assert event.after_state not in ("full", "none")
        assert {"ID": 7, "PAID": "1.50"} == image(event.after)

    def test_a_part_makes_no_schema(self, dialect: str) -> None:
        """The columns of a message are never taken for those of the table."""
        found = translated(dialect, UPDATES[dialect](PART, {"PAID": "2"}), DeclaredTable("A.T", ("ID",)))
        assert [None] == found.schemas
        assert [None] == [event.schema_id for event in found.events]


@pytest.mark.parametrize("dialect", ["qlik", "shareplex"])
def test_a_column_of_the_old_row_that_is_not_declared(dialect: str) -> None:
    """The list is incomplete even if the new row lacks the column. (Canal never writes such a message.)"""
    event = event_of(dialect, UPDATES[dialect](ROW, {"NAME": "b", "OLD": "x"}), DECLARED)
    assert ("u", '{"ID":7}', None) == (event.op, event.key, event.schema_id)


def test_canal_delete_has_no_schema() -> None:
    """The image of a delete can be the key alone, so it is no column list. The declared types apply."""
    event = event_of("canal", _canal("DELETE", PART, None), DECLARED)
    assert (None, {"ID": 7, "PAID": "1.50"}) == (event.schema_id, image(event.before))


def test_canal_with_types() -> None:
    """If the message lists its columns, it overrides the declaration."""
    typed = of_type("INSERT", [ROW], database="A", table="T", mysqlType=dict.fromkeys(ROW, "varchar(9)"), pkNames=None)
    found = translated("canal", typed, DECLARED)
    (event,), (schema,) = found.events, found.schemas
    assert ROW == image(event.after)
    assert schema is not None
    assert ["string"] * 3 == [column.type for column in schema.columns]
    assert "configured" == event.key_kind, "and only the declaration knows a key"


def test_dts_avro() -> None:
    """DTS lists its columns with each row, so the schema is the message's, with declared types and key."""
    columns = {"ID": (3, integer(7)), "NAME": (253, character("a"))}
    declared = DeclaredTable("*", ("ID",), {"NAME": "uuid", "GONE": "int8", "ID": "int32"})
    plain, told = (translated("dts_avro", row("INSERT", columns), *tables) for tables in ((), (declared,)))
    for found, key, types in ((plain, [None, None], ["int64", "string"]), (told, [1, None], ["int32", "uuid"])):
        (event,), (schema,) = found.events, found.schemas
        assert schema is not None
        assert ["ID", "NAME"] == [column.name for column in schema.columns]
        assert (key, types) == ([c.key for c in schema.columns], [c.type for c in schema.columns])
        assert (schema.id, "full") == (event.schema_id, event.after_state)
    assert ("none", "configured") == (plain.events[0].key_kind, told.events[0].key_kind)
