"""Histories keep the versions of rows: how a task turns events into versions."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from cdc_core.envelope import ChangeEvent
from cdc_core.position import position
from cdc_core.table_id import TableId
from spark_sink.config.table_rules import TableRules
from spark_sink.schema.evolution import evolve
from spark_sink.schema.table_spec import Mode, TableSpec
from tests.spark_sink.changes import OTHER_SCOPE, change, schema_of
from tests.spark_sink.memory import MemoryHistory, MemoryTables
from tests.spark_sink.records import conflict, reports

RULES = TableRules(modes={"*": Mode.HISTORY})
SCHEMA = schema_of({"id": "int64", "a": "string", "n": "int8"})
NATIVE = "native:shop/task"


def _table() -> MemoryHistory:
    return MemoryHistory(evolve(None, TableId.of(SCHEMA), [SCHEMA], form=TableSpec(Mode.HISTORY)).shape)


def _native(op: str, number: int, after: dict[str, Any] | None = None, *, id: int = 1) -> ChangeEvent:
    full = op in "cr"
    event = change(op, {"id": id}, after, pos=number, full=full, scope=NATIVE, schema=SCHEMA)
    return msgspec.structs.replace(event, pos=position(number, 0, native=0 if op == "r" else number))


def _spans(table: MemoryHistory, id: int = 1) -> list[tuple[Any, ...]]:
    """Return op, values, end op, current and incomplete flags, in order."""
    rows = [row for row in table.rows.values() if row["id"] == id]
    names = ("_cdc_op", "a", "n", "_cdc_end_op", "_cdc_current", "_cdc_incomplete")
    return [tuple(row[name] for name in names) for row in sorted(rows, key=lambda r: (r["_cdc_turn"], r["_cdc_pos"]))]


def test_every_version_of_a_batch_is_kept() -> None:
    """Each version ends where the next begins. A delete is a version without values and is not current."""
    table = _table()
    events = [
        change("c", {"id": 1}, {"a": "x", "n": 1}, pos=1, schema=SCHEMA),
        change("u", {"id": 1}, {"n": None}, pos=2, full=False, schema=SCHEMA),
        change("d", {"id": 1}, pos=3, schema=SCHEMA),
        change("c", {"id": 1}, {"a": "y", "n": 2}, pos=4, schema=SCHEMA),
    ]
    (report,) = reports(MemoryTables(orders=table), events, RULES, schemas=[SCHEMA])
    assert (4, 1) == (report.counters.rows, report.counters.commits)
    assert [
        ("c", "x", 1, "u", False, False),
        ("u", "x", None, "d", False, False),
        ("d", None, None, "c", False, False),
        ("c", "y", 2, None, True, False),
    ] == _spans(table)
    places = sorted((row["_cdc_pos"], row["_cdc_end_pos"]) for row in table.rows.values())
    assert [end for _, end in places[:-1]] == [start for start, _ in places[1:]]


def test_a_late_event_goes_to_its_place() -> None:
    """Values of a late patch appear in its version and in later ones until they are overwritten."""
    table = _table()
    sent = [_native("c", 1, {"a": "x", "n": 1}), _native("u", 5, {"a": "z"}), _native("u", 3, {"a": "y", "n": 3})]
    for batch, event in enumerate(sent):
        (report,) = reports(MemoryTables(orders=table), [event], RULES, batch=batch, schemas=[SCHEMA])
    assert (1, 3) == (report.counters.late, report.counters.rows)
    assert [
        ("c", "x", 1, "u", False, False),
        ("u", "y", 3, "u", False, False),
        ("u", "z", 3, None, True, False),
    ] == _spans(table)


def test_an_event_that_comes_again_writes_nothing() -> None:
    """A duplicate makes no commit, in any batch and however often it arrives."""
    table = _table()
    events = [_native("c", 1, {"a": "x"}), _native("u", 2, {"a": "y"}), _native("d", 3)]
    reports(MemoryTables(orders=table), events, RULES, schemas=[SCHEMA])
    (report,) = reports(MemoryTables(orders=table), [*events[1:], events[0]], RULES, batch=1, schemas=[SCHEMA])
    assert (0, {"duplicate": 3}) == (report.counters.commits, report.counters.stale)


def test_an_event_that_cannot_be_read_is_a_gap() -> None:
    """A version without an operation records the gap. The row is incomplete until an event sets all of it again."""
    table = _table()
    tables = MemoryTables(orders=table)
    events = [
        _native("c", 1, {"a": "x", "n": 1}),
        _native("u", 2, {"unheard": 1}),
        _native("u", 3, {"a": "y"}),
        _native("c", 4, {"a": "z"}),
        _native("u", 5, {"unheard": 1}, id=9),
    ]
    reports(tables, events, RULES, schemas=[SCHEMA])
    assert [["COLUMN_UNKNOWN", "COLUMN_UNKNOWN"]] == [reasons for _, reasons in tables.rejected]
    assert [
        ("c", "x", 1, None, False, False),
        (None, "x", 1, "u", False, True),
        ("u", "y", 1, "c", False, True),
        ("c", "z", None, None, True, False),
    ] == _spans(table)
    assert [] == _spans(table, 9)


def test_times_of_versions() -> None:
    """Versions have the source's commit time if known, otherwise the time of the raw record."""
    table = _table()
    first = msgspec.structs.replace(_native("c", 1, {}), ts_commit_us=7_000_000, ts_origin_us=9_000_000)
    second = msgspec.structs.replace(_native("u", 2, {}), ts_commit_us=None, ts_origin_us=9_000_000)
    reports(MemoryTables(orders=table), [first, second], RULES, schemas=[SCHEMA])
    times = sorted(row["_cdc_start_ts"] for row in table.rows.values())
    assert [datetime.fromtimestamp(seconds, UTC) for seconds in (7, 9)] == times


def test_a_truncate_of_one_of_several_scopes() -> None:
    """As in a mirror, it parks the table or ends the rows of all scopes. After a crash it is applied again."""
    table = _table()
    tables = MemoryTables(orders=table)
    events = [
        change("c", {"id": 1}, {"a": "x"}, pos=1, schema=SCHEMA),
        change("c", {"id": 2}, {"a": "x"}, pos=9, scope=OTHER_SCOPE, schema=SCHEMA),
        change("t", None, pos=2, schema=SCHEMA),
    ]
    (report,) = reports(tables, events, RULES, schemas=[SCHEMA])
    assert (1, []) == (report.parked, table.truncates)
    rules = TableRules(all_scopes=True, modes={"*": Mode.HISTORY})
    done = [reports(tables, events[2:], rules, batch=batch, schemas=[SCHEMA])[0] for batch in (1, 2)]
    # One commit stores the truncate, and one ends the versions.
    assert [2, 0] == [report.counters.commits for report in done]
    assert (1, []) == (len(table.truncates), [row for row in table.rows.values() if row["_cdc_current"]])


def test_an_event_from_before_a_truncate_ends_nothing() -> None:
    """If another scope has written the row since, an event from before the truncate does not override it."""
    table = _table()
    other = msgspec.structs.replace(_native("c", 1, {"a": "new"}), pos_scope="native:shop/other")
    events = [_native("c", 5, {"a": "x"}, id=2), change("t", None, pos=6, scope=NATIVE), other]
    events[1] = msgspec.structs.replace(events[1], pos=position(6, 0, native=6))
    reports(MemoryTables(orders=table), events, RULES, schemas=[SCHEMA])
    late = [_native("c", 3, {"a": "late"})]
    (report,) = reports(MemoryTables(orders=table), late, RULES, batch=1, schemas=[SCHEMA])
    assert ({"truncated": 1}, ["new"]) == (
        report.counters.stale,
        [row["a"] for row in table.rows.values() if row["id"] == 1],
    )


def test_an_unannounced_reload_parks_the_table() -> None:
    """As in a mirror, a snapshot row without a position among its row's changes parks the table."""
    table = _table()
    tables = MemoryTables(orders=table)
    reports(tables, [_native("r", 1, {"a": "x"}), _native("u", 2, {"a": "y"})], RULES, schemas=[SCHEMA])
    (report,) = reports(tables, [_native("r", 3, {"a": "z"})], RULES, batch=1, schemas=[SCHEMA])
    assert 1 == report.parked
    (report,) = reports(tables, [_native("r", 1, {"a": "x"})], RULES, batch=2, schemas=[SCHEMA])
    assert {"duplicate": 1} == report.counters.stale


@pytest.mark.parametrize("wanted", [Mode.MIRROR, Mode.CHANGELOG])
def test_the_mode_of_a_table_stays(wanted: Mode) -> None:
    """A history cannot be converted to another mode."""
    event = _native("c", 1, {"a": "x"})
    (report,) = reports(MemoryTables(orders=_table()), [event], TableRules(modes={"*": wanted}), schemas=[SCHEMA])
    assert "was created with mode history" in conflict(report)


def test_a_taken_key_of_a_narrower_type() -> None:
    """If a transaction spans a key type change, its delete finds the row that its insert overwrote."""
    table = _table()
    wide = schema_of({"id": "decimal(20,0)", "a": "string", "n": "int8"})
    first = [
        change("c", {"id": 1}, {"a": "x"}, pos=1, schema=SCHEMA, tx="one"),
        change("c", {"id": 1}, {"a": "y"}, pos=2, schema=SCHEMA, tx="two"),
    ]
    reports(MemoryTables(orders=table), first, RULES, schemas=[SCHEMA])
    assert 1 == len(table.taken_keys)
    table.shape = evolve(None, TableId.of(wide), [wide], form=TableSpec(Mode.HISTORY)).shape
    left = change("d", {"id": "1"}, pos=3, schema=wide, tx="two")
    reports(MemoryTables(orders=table), [left], RULES, batch=1, schemas=[SCHEMA, wide])
    assert ["y"] == [row["a"] for row in table.rows.values() if row["_cdc_current"]]
