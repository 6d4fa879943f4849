"""New rows of Iceberg tables are appended without a MERGE, and two sinks never append them twice."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

import msgspec
import pytest
from pyspark.sql import SparkSession

from cdc_core.envelope import ChangeEvent
from dev.iceberg.rest_catalog import RestCatalogServer
from spark_sink.apply.table_commits import DAY, FORGOTTEN
from spark_sink.errors import Overtaken
from spark_sink.schema.table_spec import Mode
from spark_sink.tables.formats import ask_catalog
from spark_sink.tables.iceberg.open_table import MARKERS_PROPERTY
from spark_sink.tables.spark_operations import Order, OrderRunner
from tests.spark_sink.changes import change
from tests.spark_sink.conftest import rest_access
from tests.spark_sink.lake import MergingLake, rewrite_as_others
from tests.spark_sink.tables.iceberg.altering_proxy import altering, newest_snapshot_only
from tests.spark_sink.tables.iceberg.conftest import ICEBERG

NAME = "shop_sales.orders"


class Meanwhile:
    """A driver with a hook after the workers have read the table and before it writes."""

    def __init__(self, writer: OrderRunner, happens: Callable[[], object]) -> None:
        self._writer, self._happens = writer, happens

    def carry_out(self, orders: Mapping[str, Sequence[Order]]) -> Mapping[str, str]:
        if orders:
            self._happens()
        return self._writer.carry_out(orders)

    def version(self, table: str) -> int:
        return self._writer.version(table)

    def discard(self) -> None:
        self._writer.discard()


def _apply(lake: MergingLake, batch: int, ids: Sequence[int], meanwhile: Callable[[], object]) -> None:
    """Apply new rows with a restarted sink."""
    lake.applier = lake.new_applier("checkpoint-1")
    lake.applier._writer = Meanwhile(lake.applier._writer, meanwhile)
    lake.apply(batch, _new(ids))


def _new(ids: Sequence[int]) -> list[ChangeEvent]:
    return [change("c", {"id": id}, {"a": "x"}, pos=id) for id in ids]


def _other(lake: MergingLake) -> MergingLake:
    """Return a second sink for the same tables."""
    other = lake.beside(lake.warehouse)
    other.schemas = lake.schemas
    other.use(lake.rules)
    other.applier = other.new_applier("checkpoint-2")
    return other


def _ids(lake: MergingLake, table: str = NAME) -> list[int]:
    return sorted(lake.stored(table).column("id").to_pylist())


@pytest.mark.parametrize("mode", Mode)
def test_two_sinks_add_the_same_rows(lake: MergingLake, mode: Mode) -> None:
    """No row is duplicated, even if the table has no snapshot yet. The second sink is rejected and restarts."""
    lake.use(replace(ICEBERG, modes={"*": mode}))
    other = _other(lake)
    for batch, ids in enumerate(([1, 2], [3, 4])):
        with suppress(Overtaken):
            _apply(lake, batch, ids, partial(other.apply, batch, _new(ids)))
        lake.applier = lake.new_applier("checkpoint-1")
        lake.apply(batch, _new(ids))
        assert list(range(1, ids[-1] + 1)) == _ids(lake)


def test_one_commit_brings_all_markers(lake: MergingLake) -> None:
    """The snapshot of the rows also shows where deleted rows are, and the day up to which they are forgotten."""
    lake.apply(0, [msgspec.structs.replace(event, ts_origin_us=100 * DAY) for event in _new([1])])
    table = lake.tables.iceberg_catalog.load(NAME)
    assert table is not None
    (snapshot,) = table.metadata.snapshots
    assert snapshot.summary is not None
    markers = {"cdc.deleted": 0, FORGOTTEN: 93, f"test/checkpoint-1/{NAME}": 0}
    assert markers == json.loads(snapshot.summary[MARKERS_PROPERTY])


def test_what_adds_no_rows_refuses_none(lake: MergingLake) -> None:
    """A concurrent compaction by another program does not reject new rows."""
    lake.apply(0, _new([1]))
    lake.apply(1, _new([2]))
    _apply(lake, 2, [3], lambda: rewrite_as_others(lake.spark, lake))
    assert [1, 2, 3] == _ids(lake)


@pytest.mark.faults  # slow, like those of other catalogs
def test_a_catalog_that_shows_the_newest_snapshot(
    spark: SparkSession, rest_server: RestCatalogServer, lake: MergingLake
) -> None:
    """New rows are merged with such a catalog, because it hides whether commits since the lookup added some of them."""
    with altering(rest_server.url, answer=newest_snapshot_only) as url:
        lake.catalog = rest_access(url)
        lake.use(ICEBERG)
        ask_catalog(spark, lake.tables)
        lake.use(ICEBERG, {"shop/sales//orders": "hidden.orders"})
        lake.apply(0, _new([1]))

        def put_together_twice() -> None:
            for _ in range(2):
                rewrite_as_others(spark, lake, "hidden.orders")

        _apply(lake, 1, [2], put_together_twice)
        assert [1, 2] == _ids(lake, "hidden.orders")
