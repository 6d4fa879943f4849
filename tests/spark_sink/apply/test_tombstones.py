"""Deleted rows of real tables: they are remembered outside the table, for some days, whatever fails in between."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest
from deltalake import write_deltalake

from cdc_core.envelope import ChangeEvent
from spark_sink.apply.table_commits import DAY
from spark_sink.tables import deleted_rows
from spark_sink.tables.delta import rows
from spark_sink.tables.formats import FormatMaintenance
from spark_sink.tables.maintenance import MaintenanceError
from tests.spark_sink.changes import change, schema_of
from tests.spark_sink.lake import Lake
from tests.spark_sink.local_iceberg import LocalIcebergLake, LocalWriter

SCHEMA = schema_of({"id": "int64", "name": "string"})
FAR_AHEAD = 47_482  # 2100-01-01


def test_a_record_far_ahead_brings_no_deleted_row_back(lake_of_format: Lake) -> None:
    """Row 1 is deleted, then a record of row 2 has a date in 2100. A repeated insert of row 1 is still stale."""
    lake = lake_of_format
    lake.announce(SCHEMA)
    insert = _on(19_000, change("c", {"id": 1}, {"name": "a"}, pos=1, schema=SCHEMA))
    lake.apply(0, [insert])
    lake.apply(1, [_on(19_001, change("d", {"id": 1}, pos=2, schema=SCHEMA))])
    lake.apply(2, [_on(FAR_AHEAD, change("c", {"id": 2}, {"name": "b"}, pos=3, schema=SCHEMA))])
    lake.apply(3, [insert])
    assert [{"id": 2, "name": "b"}] == lake.rows()


def _inserts(*ids: int) -> list[ChangeEvent]:
    return [change("c", {"id": id}, {"name": f"n{id}"}, pos=id, schema=SCHEMA) for id in ids]


def _stored(lake: Lake) -> dict[int, str | None]:
    """Return the names of all rows in the table, by id."""
    return {row["id"]: row["name"] for row in lake.stored().select(["id", "name"]).to_pylist()}


def _files(lake: Lake) -> list[Path]:
    return sorted(lake.warehouse.glob("_cdc/deleted/shop_sales/orders/*"))


def test_deleted_rows_change_their_place(lake_of_format: Lake) -> None:
    """With `deletes: soft`, as in earlier releases, deleted rows are in the table. They leave it with the first event
    under `hard`, and return under `soft`. An old event never brings one back.
    """
    lake = lake_of_format
    lake.announce(SCHEMA)
    soft, hard = replace(lake.rules, soft_deletes=True), lake.rules
    lake.use(soft)
    lake.apply(0, _inserts(1, 2, 3))
    lake.apply(10, [change("d", {"id": 1}, pos=10, schema=SCHEMA)])  # a file with deleted rows only
    assert ({1: "n1", 2: "n2", 3: "n3"}, []) == (_stored(lake), _files(lake))
    lake.use(hard)
    lake.apply(11, [*_inserts(1), change("d", {"id": 2}, pos=11, schema=SCHEMA)])
    assert {3: "n3"} == _stored(lake)
    lake.apply(12, [*_inserts(1, 2), change("d", {"id": 9}, pos=12, schema=SCHEMA)])
    assert {3: "n3"} == _stored(lake)
    lake.use(soft)
    lake.apply(13, [*_inserts(1, 2, 9), change("d", {"id": 3}, pos=13, schema=SCHEMA)])
    assert {1: None, 2: None, 9: None, 3: "n3"} == _stored(lake)
    assert [] == lake.rows()
    lake.use(hard)
    again = change("c", {"id": 2}, {"name": "again"}, pos=14, schema=SCHEMA)
    lake.apply(14, [*_inserts(1, 2, 3, 9), again])
    assert {2: "again"} == _stored(lake)


def test_a_commit_that_fails(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file that a failed commit would have named has no effect, also if the repeated batch has other events."""
    lake.announce(SCHEMA)
    lake.apply(0, _inserts(1, 2, 3))
    deletes = [change("d", {"id": id}, pos=10 + id, schema=SCHEMA) for id in (1, 2)]
    with monkeypatch.context() as broken:
        broken.setattr(rows, "committing", _killed)
        with pytest.raises(KeyboardInterrupt):
            lake.apply(1, deletes)
    assert ({1: "n1", 2: "n2", 3: "n3"}, 1) == (_stored(lake), len(_files(lake)))
    lake.apply(1, deletes[:1])
    assert ({2: "n2", 3: "n3"}, 2) == (_stored(lake), len(_files(lake)))
    lake.apply(2, [*_inserts(1), change("u", {"id": 2}, {"name": "later"}, pos=20, full=False)])
    assert {2: "later", 3: "n3"} == _stored(lake)


def _killed(*_: object) -> None:
    raise KeyboardInterrupt


def test_a_lost_file_parks_the_table(lake: Lake) -> None:
    """Without its deleted rows, the table cannot tell old events from new ones. The others continue."""
    lake.announce(SCHEMA)
    lake.apply(0, [*_inserts(1, 2), change("d", {"id": 1}, pos=10, schema=SCHEMA)])
    for file in _files(lake):
        file.unlink()
    other = change("c", {"id": 1}, {"name": "x"}, pos=1, table="customers")
    lake.apply(1, [*_inserts(3), other])
    assert [("TABLE_DAMAGED", 0)] == lake.parked()
    assert {2: "n2"} == _stored(lake)
    assert ["x"] == [row["name"] for row in lake.rows("shop_sales.customers")]


def test_a_move_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The table is parked with all of its events, also those that quarantine would have received."""
    lake = LocalIcebergLake(tmp_path / "warehouse")
    lake.announce(SCHEMA)
    lake.use(replace(lake.rules, soft_deletes=True))
    lake.apply(0, [*_inserts(1, 2), change("d", {"id": 1}, pos=10, schema=SCHEMA)])
    lake.use(replace(lake.rules, soft_deletes=False))
    events = [*_inserts(1), change("c", None, {"name": "no key"}, pos=11, schema=SCHEMA)]
    with monkeypatch.context() as broken:
        broken.setattr(LocalWriter, "carry_out", lambda _, orders: dict.fromkeys(orders, "a rule of the table"))
        lake.apply(1, events)
    assert ([("TABLE_REFUSED", 0), ("TABLE_REFUSED", 1)], []) == (lake.parked(), lake.quarantine())
    assert "2 events replayed" == lake.command("resume").result
    assert ({2: "n2"}, [], 1) == (_stored(lake), lake.parked(), len(lake.quarantine()))


def test_a_deleted_row_in_both_places(lake: Lake) -> None:
    """An older release wrote a deleted row into the table. It returns to the table once."""
    lake.announce(SCHEMA)
    lake.use(replace(lake.rules, soft_deletes=True))
    lake.apply(0, _inserts(1, 2))
    lake.use(replace(lake.rules, soft_deletes=False))
    lake.apply(1, [change("d", {"id": 1}, pos=10, schema=SCHEMA)])
    older = lake.stored().to_pylist()[0] | {"id": 1, "name": None, "_cdc_deleted_at": datetime(2026, 1, 1, tzinfo=UTC)}
    write_deltalake(lake.path(), pa.Table.from_pylist([older], lake.stored().schema), mode="append")
    lake.use(replace(lake.rules, soft_deletes=True))
    lake.apply(2, _inserts(3))
    assert {1: True, 2: False, 3: False} == {
        row["id"]: row["_cdc_deleted_at"] is not None for row in lake.stored().to_pylist()
    }


def test_lost_markers_before_the_first_delete(tmp_path: Path) -> None:
    """A table without a column for delete times keeps no deleted row, even if nothing says that they are apart."""
    lake = LocalIcebergLake(tmp_path / "warehouse")
    lake.announce(SCHEMA)
    lake.apply(0, _inserts(1, 2))
    table = lake.iceberg()
    table.overwrite(table.scan().to_arrow())
    newest = table.metadata.current_snapshot_id
    others = [one.snapshot_id for one in table.metadata.snapshots if one.snapshot_id != newest]
    table.maintenance.expire_snapshots().by_ids(others).commit()
    assert "2 rows deleted" == lake.command("sweep", argument=datetime.now(UTC).isoformat()).result
    assert {} == _stored(lake)


def test_a_row_that_was_deleted_long_before_its_batch(lake: Lake) -> None:
    """The batch in which days pass remembers its own deletes, even if they are older than `tombstone_days`."""
    lake.announce(SCHEMA)
    lake.apply(0, [_on(19_000, event) for event in _inserts(1, 2)])
    for batch, day in enumerate((19_020, 19_021), start=1):
        lake.apply(batch, [_on(day, change("u", {"id": 2}, {"name": "b"}, pos=10 + batch, schema=SCHEMA))])
    delete = _on(19_001, change("d", {"id": 1}, pos=20, schema=SCHEMA))
    lake.apply(3, [delete, _on(19_022, change("u", {"id": 2}, {"name": "c"}, pos=21, schema=SCHEMA))])
    lake.apply(4, [_on(19_022, change("u", {"id": 1}, {"name": "late"}, pos=19, full=False, schema=SCHEMA))])
    assert {2: "c"} == _stored(lake)


def test_a_damaged_file_delays_the_vacuum(lake: Lake) -> None:
    """Maintenance reports it and continues with other tables."""
    lake.announce(SCHEMA)
    lake.apply(0, [*_inserts(1), change("d", {"id": 1}, pos=10, schema=SCHEMA)])
    for file in _files(lake):
        file.write_bytes(b"PAR1")
    with pytest.raises(MaintenanceError, match=r"shop_sales\.orders: the files of deleted rows were not cleaned"):
        FormatMaintenance(lake.tables, lake.session).vacuum("shop_sales.orders", 1)


def test_a_vacuum_removes_old_files(lake_of_format: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """It keeps the files that a version of the last days needs."""
    monkeypatch.setattr(deleted_rows, "_UNCOMMITTED_DAYS", 0)
    monkeypatch.setattr(deleted_rows, "_LINK", 1)
    lake = lake_of_format
    lake.announce(SCHEMA)
    lake.apply(0, _inserts(1, 2, 3))
    for batch, id in enumerate((1, 2), start=1):
        lake.apply(batch, [change("d", {"id": id}, pos=10 + id, schema=SCHEMA)])
    assert 2 == len(_files(lake))
    for days, left in ((1.0, 2), (0.0, 1)):
        FormatMaintenance(lake.tables, lake.session).vacuum("shop_sales.orders", days)
        assert left == len(_files(lake))
    lake.apply(3, _inserts(1, 2))
    assert {3: "n3"} == _stored(lake)


def _on(day: int, event: ChangeEvent) -> ChangeEvent:
    return msgspec.structs.replace(event, ts_origin_us=day * DAY)
