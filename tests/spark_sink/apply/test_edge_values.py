"""C13 of the correctness suite (docs/sink-design.md §6): edge values from the batch to tables of each format."""

from __future__ import annotations

import math
from datetime import date, datetime
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from pyspark.sql import SparkSession

from spark_sink.config.table_rules import TableRules
from spark_sink.schema.table_spec import Mode
from tests.spark_sink.changes import change, schema_of
from tests.spark_sink.lake import Lake

COLUMNS = {
    "id": "uint64",
    "whole": "decimal(38,0)",
    "scaled": "decimal(38,19)",
    "tiny": "decimal(38,38)",
    "wide": "decimal(65,30)",
    "big": "int64",
    "real": "float32",
    "double": "float64",
    "day": "date",
    "local": "timestamp",
    "zoned": "timestamptz",
    "clock": "time",
    "number": "decimal",
}
FITS: list[dict[str, Any]] = [
    {"id": str(2**64 - 1), "whole": "9" * 38, "scaled": "-" + "9" * 19 + "." + "9" * 19, "tiny": "0." + "9" * 38},
    {"id": str(2**53 + 1), "big": 2**53 + 1, "double": 9007199254740992, "wide": "9" * 35 + "." + "9" * 30},
    {"id": "1", "big": -(2**63), "real": "NaN", "double": "NaN", "number": "1" * 60 + ".5"},
    {"id": "2", "big": 2**63 - 1, "real": "-Infinity", "double": 5e-324, "number": "NaN"},
    {"id": "3", "local": "9999-12-31T23:59:59.999999", "zoned": "0001-01-01T00:00:00Z", "day": "0001-01-01"},
    {"id": "4", "local": "1969-12-31T23:59:59.999999000", "clock": "-838:59:59.000001", "day": "9999-12-31"},
]
STORED: list[dict[str, Any]] = [
    {"whole": Decimal("9" * 38), "scaled": Decimal("-" + "9" * 19 + "." + "9" * 19), "tiny": Decimal("0." + "9" * 38)},
    {"big": 2**53 + 1, "double": 9007199254740992.0, "wide": "9" * 35 + "." + "9" * 30},
    {"big": -(2**63), "real": math.nan, "double": math.nan, "number": "1" * 60 + ".5"},
    {"big": 2**63 - 1, "real": -math.inf, "double": 5e-324, "number": "NaN"},
    {
        "local": datetime(9999, 12, 31, 23, 59, 59, 999999),
        "zoned": datetime(1, 1, 1, tzinfo=ZoneInfo("UTC")),
        "day": date(1, 1, 1),
    },
    {"local": datetime(1969, 12, 31, 23, 59, 59, 999999), "clock": "-838:59:59.000001", "day": date(9999, 12, 31)},
]
UNFIT: list[dict[str, Any]] = [
    {"whole": "9" * 39},
    {"whole": "0.5"},
    {"scaled": "0." + "0" * 19 + "1"},
    {"tiny": "1"},
    {"whole": "NaN"},
    {"big": 2**63},
    {"real": "1e39"},
    {"double": "1e309"},
    {"day": "0000-00-00"},
    {"day": "10000-01-01"},
    {"local": "0000-00-00T00:00:00"},
]


@pytest.mark.parametrize("mode", [Mode.MIRROR, Mode.HISTORY, Mode.CHANGELOG])
def test_values_at_the_edge(lake_of_format: Lake, mode: Mode) -> None:
    """In every mode, a value is stored exactly, or its event is quarantined. Nothing is rounded or wrongly NULL. A row
    is marked if an event could not be applied or a value had no faithful form.
    """
    lake = lake_of_format
    lake.use(TableRules(modes={"*": mode}))
    schema = lake.announce(schema_of(COLUMNS))
    events = [change("c", {"id": row["id"]}, row, pos=number, schema=schema) for number, row in enumerate(FITS)]
    events.append(change("c", {"id": "9"}, {}, pos=50, schema=schema, full=False, issues=["day"]))
    events += [
        change("u", {"id": "1"}, values, pos=100 + number, schema=schema, full=False)
        for number, values in enumerate(UNFIT)
    ]
    lake.apply(0, events)
    assert [("VALUE_INVALID", 7 + number) for number in range(len(UNFIT))] == [row[:2] for row in lake.quarantine()]
    rows = lake.stored().to_pylist()
    # For a history, the versions without gaps.
    by_id = {row["id"]: row for row in rows if row.get("_cdc_op", "c") is not None}
    found = [{name: by_id[Decimal(sent["id"])][name] for name in sent if name != "id"} for sent in FITS]
    assert [list(map(repr, row.items())) for row in STORED] == [list(map(repr, row.items())) for row in found]
    if mode == Mode.CHANGELOG:
        assert [["id"]] == [row["_cdc_set"] for row in rows if row["id"] == 9]
    else:
        flagged = {row["id"] for row in rows if row["_cdc_incomplete"]}
        assert {Decimal(1), Decimal(9)} == flagged


BAD, GOOD = "0000-00-00", "2026-01-01"
IN_PART: dict[str, list[tuple[str, dict[str, Any], bool]]] = {
    "the bad value is replaced by a later one": [
        ("c", {"a": 0, "t": GOOD}, True),
        ("u", {"a": 1, "t": BAD}, False),
        ("u", {"t": "2026-01-02"}, False),
    ],
    "the bad value is the last one": [("c", {"a": 0, "t": GOOD}, True), ("u", {"a": 1, "t": BAD}, False)],
    "a new row": [("c", {"a": 7, "t": BAD}, True), ("u", {"a": 8}, False)],
    "a full update": [("c", {"a": 0, "t": GOOD}, True), ("u", {"a": 1, "t": BAD}, True)],
    "a whole row heals it": [
        ("c", {"a": 0, "t": GOOD}, True),
        ("u", {"a": 1, "t": BAD}, False),
        ("u", {"a": 2, "t": GOOD}, True),
    ],
    "a deleted row comes again": [("c", {"a": 0, "t": BAD}, True), ("d", {}, False), ("c", {"a": 3, "t": BAD}, True)],
}
ENDS = [
    (1, date(2026, 1, 2), True),
    (1, date(2026, 1, 1), True),
    (8, None, True),
    (1, date(2026, 1, 1), True),
    (2, date(2026, 1, 1), False),
    (3, None, True),
]
OWN = ("_cdc_incomplete", "_cdc_pos", "_cdc_op", "_cdc_set", "_cdc_current", "_cdc_end_pos")


@pytest.mark.parametrize("mode", [Mode.MIRROR, Mode.HISTORY])
def test_one_bad_value(lake_of_format: Lake, mode: Mode) -> None:
    """The event's other values are applied, and the row is marked until a full row arrives. The event is quarantined.
    The table does not depend on how the events are split into batches.
    """
    lakes = [lake_of_format, lake_of_format.beside(lake_of_format.warehouse / "cut")]
    schema = schema_of({"id": "int32", "a": "int32", "t": "date"})
    events = [
        change(op, {"id": row}, None if op == "d" else image, pos=10 * row + number, schema=schema, full=full)
        for row, history in enumerate(IN_PART.values())
        for number, (op, image, full) in enumerate(history)
    ]
    for lake, cuts in zip(lakes, ([len(events)], range(1, len(events) + 1)), strict=True):
        lake.use(TableRules(modes={"*": mode}))
        lake.announce(schema)
        lake.apply(0, [change("c", {"id": 99}, {"a": 0, "t": GOOD}, pos=500, schema=schema)])
        start = 0
        for batch, end in enumerate(cuts, start=1):
            lake.apply(batch, events[start:end])
            start = end
    one, cut = (_sorted(lake) for lake in lakes)
    assert one == cut
    ends = [row for row in one if row.get("_cdc_current", True) and row["id"] != 99]
    assert ENDS == [(row["a"], row["t"], row["_cdc_incomplete"]) for row in ends]
    bad = [number for number, event in enumerate(events) if BAD in (event.after or "")]
    reasons = [reason for reason, *_ in lakes[1].quarantine()]
    assert ["VALUE_INVALID"] * len(bad) == reasons


def _sorted(lake: Lake) -> list[dict[str, Any]]:
    found = lake.stored()
    names = ["id", "a", "t", *(name for name in OWN if name in found.column_names)]
    return sorted(found.select(names).to_pylist(), key=lambda row: (row["id"], row["_cdc_pos"]))


def test_spark_reads_the_same(lake: Lake, spark: SparkSession) -> None:
    """Spark finds the rows by their values and reads the original values."""
    schema = lake.announce(schema_of(COLUMNS))
    lake.apply(0, [change("c", {"id": row["id"]}, row, pos=n, schema=schema) for n, row in enumerate(FITS)])
    table = spark.read.format("delta").load(lake.path())
    assert 1 == table.where(f"id = {2**64 - 1}BD AND whole = {'9' * 38}BD").count()
    assert 1 == table.where(f"big = {2**53 + 1}L").count()
    assert 1 == table.where("isnan(double) AND isnan(real)").count()
