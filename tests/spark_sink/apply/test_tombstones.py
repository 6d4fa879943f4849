"""Tombstones of deleted rows in real tables: a record with a wrong date must not remove them."""

from __future__ import annotations

import msgspec

from cdc_core.envelope import ChangeEvent
from spark_sink.apply.table_commits import DAY
from tests.spark_sink.changes import change, schema_of
from tests.spark_sink.lake import Lake

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


def _on(day: int, event: ChangeEvent) -> ChangeEvent:
    return msgspec.structs.replace(event, ts_origin_us=day * DAY)
