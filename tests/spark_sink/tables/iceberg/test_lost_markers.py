"""The markers of an Iceberg table after another program has expired all snapshots that have them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pyiceberg.table.metadata import TableMetadata

from cdc_core.envelope import ChangeEvent
from spark_sink.schema.table_spec import Mode
from spark_sink.tables.formats import FormatMaintenance
from spark_sink.tables.iceberg.open_table import copy_of_markers, markers_of
from spark_sink.tables.iceberg.spark_catalog import java_table
from tests.spark_sink.changes import change
from tests.spark_sink.lake import MergingLake, rewrite_as_others
from tests.spark_sink.tables.iceberg.conftest import ICEBERG

# Slow: `make test` covers one such program in the test of maintenance.
pytestmark = pytest.mark.faults

NAME = "shop_sales.orders"


def _batch(number: int) -> list[ChangeEvent]:
    """Return a new row, and a change of the previous one."""
    pos = 10 * number
    return [
        change("c", {"id": number}, {"a": "new"}, pos=pos),
        change("u", {"id": number - 1}, {"a": f"changed by {number}"}, pos=pos + 1),
    ]


def _applied_again(lake: MergingLake, batch: int) -> int:
    """Apply a batch with a restarted sink and return its commits."""
    lake.applier = lake.new_applier("checkpoint-1")
    (report,) = lake.apply(batch, _batch(batch))
    return report.counters.commits


def _rows(lake: MergingLake) -> list[tuple[str, ...]]:
    stored = lake.stored().to_pylist()
    names = [name for name in stored[0] if name != "_cdc_updated_at"]
    return sorted(tuple(str(row[name]) for name in names) for row in stored)


def _metadata(lake: MergingLake) -> TableMetadata:
    table = lake.tables.iceberg_catalog.load(NAME)
    assert table is not None
    return table.metadata


def _let_go(lake: MergingLake) -> None:
    """Expire snapshots as another program does."""
    rewrite_as_others(lake.spark, lake, expires=True)
    assert copy_of_markers(_metadata(lake)) is None, "a snapshot has markers"


@pytest.mark.parametrize("mode", Mode)
def test_another_program_compacts_and_expires(lake: MergingLake, mode: Mode) -> None:
    """Maintenance keeps a copy of the markers. A batch after the copy is applied again without effect, because its rows
    are recognized by position.
    """
    lake.use(replace(ICEBERG, modes={"*": mode}))
    for batch in (1, 2):
        lake.apply(batch, _batch(batch))
    FormatMaintenance(lake.tables, lake.spark).vacuum(NAME, 7)
    markers = markers_of(_metadata(lake))
    _let_go(lake)
    assert (markers, 0) == (markers_of(_metadata(lake)), _applied_again(lake, 2))
    lake.apply(3, _batch(3))
    rows = _rows(lake)
    _let_go(lake)
    assert markers == markers_of(_metadata(lake))
    _applied_again(lake, 3)
    assert rows == _rows(lake)
    lake.apply(4, _batch(4))
    assert 0 == _applied_again(lake, 4)


def test_a_table_that_is_set_back(lake: MergingLake) -> None:
    """The copy is invalid for a rolled-back table, whose rows are gone too. The table waits for a resume."""
    lake.apply(1, _batch(1))
    _let_go(lake)
    before = lake.version()
    lake.apply(2, _batch(2))
    FormatMaintenance(lake.tables, lake.spark).vacuum(NAME, 7)
    rows = _rows(lake)
    session = lake.read().sparkSession
    java_table(session, lake.tables.iceberg_catalog, NAME).manageSnapshots().rollbackTo(before).commit()
    assert ({}, 0) == (markers_of(_metadata(lake)), _applied_again(lake, 2))
    assert "TABLE_SET_BACK" == lake.control.held()[NAME].reason
    lake.control.requests.ask("resume", NAME)
    assert not lake.requests().run()
    assert rows == _rows(lake)
