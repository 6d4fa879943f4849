"""Times with more than six fraction digits: datetime2(7) of SQL Server, TIMESTAMP(9) of Oracle and Db2."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from cdc_core.envelope import Column, TableSchema
from spark_sink.config.table_rules import TableRules
from spark_sink.events.fine_times import fine_columns, truncated
from spark_sink.schema.column_types import is_finer_than_microseconds
from spark_sink.schema.table_spec import Format, Mode
from tests.spark_sink.changes import change, folding, in_columns, schema_of
from tests.spark_sink.lake import Lake, MergingLake

FINE, MICRO = "2024-02-29T12:00:00.1234567", "2024-02-29T12:00:00.123456"
SCHEMA = schema_of({"id": "int64", "at": "timestamp", "zoned": "timestamptz"})


def declared(native: str) -> TableSchema:
    columns = [Column("id", "int64", key=1), Column("at", "timestamp", native=native)]
    return TableSchema.of("shop", "sales", None, "orders", columns, "primary")


def stored(lake: Lake) -> list[dict[str, Any]]:
    rows = lake.stored("shop_sales.orders").to_pylist()
    wanted = [{k: v for k, v in row.items() if not k.startswith("_cdc_")} for row in rows]
    return sorted(wanted, key=lambda row: row["id"])


@pytest.mark.parametrize("mode", [Mode.MIRROR, Mode.HISTORY, Mode.CHANGELOG])
def test_a_fine_time_is_kept_as_text(lake_of_format: Lake, mode: Mode) -> None:
    """Nothing is quarantined, and a column without such a value remains a time column."""
    lake = lake_of_format
    lake.use(TableRules(modes={"*": mode}))
    lake.announce(SCHEMA)
    lake.apply(0, [change("c", {"id": 1}, {"at": FINE, "zoned": f"{MICRO}Z"}, pos=1, schema=SCHEMA)])
    lake.apply(1, [change("c", {"id": 2}, {"at": MICRO, "zoned": f"{MICRO}Z"}, pos=2, schema=SCHEMA)])
    zoned = datetime(2024, 2, 29, 12, 0, 0, 123456, UTC)
    expected = [{"id": 1, "at": FINE, "zoned": zoned}, {"id": 2, "at": MICRO, "zoned": zoned}]
    assert expected == [{name: row[name] for name in ("id", "at", "zoned")} for row in stored(lake)]
    assert [] == lake.quarantine()


@pytest.mark.parametrize("format", Format)
def test_a_table_that_has_times_gets_a_column_of_text(merging_lake: MergingLake, format: Format) -> None:
    """Existing rows keep their times. Values that do not fit get an additional column, as after any type change."""
    lake = merging_lake
    lake.use(TableRules(formats={"*": format}))
    lake.announce(SCHEMA)
    lake.apply(0, [change("c", {"id": 1}, {"at": MICRO, "zoned": None}, pos=1, schema=SCHEMA)])
    lake.apply(1, [change("c", {"id": 2}, {"at": FINE, "zoned": None}, pos=2, schema=SCHEMA)])
    lake.apply(2, [change("u", {"id": 1}, {"at": FINE, "zoned": None}, pos=3, schema=SCHEMA)])
    assert [(None, FINE), (None, FINE)] == [(row["at"], row["at__v2"]) for row in stored(lake)]
    assert [] == lake.quarantine()


@pytest.mark.parametrize(
    "native", ["datetime2(7)", "DATETIME2", "datetimeoffset", "TIMESTAMP(9)", "timestamp(7) with time zone"]
)
def test_a_declared_precision_makes_the_column_text(lake: Lake, native: str) -> None:
    """The column is text from the first row, so the batch of the first fine value does not matter."""
    schema = lake.announce(declared(native))
    lake.apply(0, [change("c", {"id": 1}, {"at": MICRO}, pos=1, schema=schema)])
    assert [{"id": 1, "at": MICRO}] == stored(lake)


@pytest.mark.parametrize("native", ["datetime2(6)", "timestamp", "TIMESTAMP(0)", "datetime", None])
def test_other_precisions_stay_times(native: str | None) -> None:
    assert not is_finer_than_microseconds(native)


@pytest.mark.parametrize("native", ["datetime2(7)", None])
def test_times_that_are_cut_off(lake_of_format: Lake, native: str | None) -> None:
    """With the option, times are truncated. Values that lose digits are counted, and similar text is unchanged."""
    lake = lake_of_format
    lake.use(TableRules(truncated_times=True))
    columns = [Column("id", "int64", key=1), Column("at", "timestamp", native=native), Column("note", "string")]
    schema = lake.announce(TableSchema.of("shop", "sales", None, "orders", columns, "primary"))
    note = f'"at":"{FINE}"'
    lake.apply(
        0,
        [change("c", {"id": n}, {"at": at, "note": note}, pos=n, schema=schema) for n, at in enumerate((FINE, MICRO))],
    )
    at = datetime(2024, 2, 29, 12, 0, 0, 123456)
    assert [{"id": n, "at": at, "note": note} for n in (0, 1)] == stored(lake)
    assert 1 == lake.metrics.registry.get_sample_value("cdc_sink_truncated_times_total")


IMAGES = {
    "fine": {"at": FINE},
    "idle digits": {"at": f"{MICRO}000"},
    "inside a text": {"note": f'{{"at":"{FINE}"}}'},
    "another column": {"note": FINE},
    "null": {"at": None},
    "zoned": {"at": f"{FINE}Z"},
}


@pytest.mark.parametrize("name", IMAGES)
def test_events_and_columns_of_events_agree(name: str) -> None:
    """The paths for events and for columns find and truncate the same values."""
    events = [folding(change("c", {"id": 1}, IMAGES[name], pos=1))]
    apart, together = truncated(events, ["at"]), truncated(in_columns(events), ["at"])
    assert apart.values == together.values == (name in ("fine", "zoned"))
    assert [event.after for event in apart.events] == [event.after for event in together.events]
    found = fine_columns(events, ["at"])
    assert found == fine_columns(in_columns(events), ["at"]) == ({"at"} if name in ("fine", "zoned") else set())
    assert not fine_columns(apart.events, ["at"])


def test_a_broken_image_is_left_to_the_quarantine() -> None:
    event = msgspec.structs.replace(
        folding(change("c", {"id": 1}, {"at": FINE}, pos=1)), after=f'{{"at":"{FINE}'.encode()
    )
    assert frozenset() == fine_columns([event], ["at"])
    assert re.search("1234567", str(truncated([event], ["at"]).events[0].after))
