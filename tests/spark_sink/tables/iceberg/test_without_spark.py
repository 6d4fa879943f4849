"""How workers and commands find Iceberg tables by name, open them, read them as of a time, and inspect them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.table.metadata import TableMetadata

from cdc_core.envelope import ChangeEvent
from cdc_core.table_id import TableId
from spark_sink.errors import FatalError, Refused
from spark_sink.schema.engine_choice import Engine, EngineRules
from spark_sink.schema.evolution import TableColumn, TableShape
from spark_sink.schema.table_spec import SOURCE, Mode
from spark_sink.tables.changes import Identity, LastSeen, Marker
from spark_sink.tables.formats import FormatMaintenance, FormatTables
from spark_sink.tables.iceberg.catalog_traits import CatalogTraits, TraitsMemory
from spark_sink.tables.iceberg.catalogs import FolderCatalog, quoted
from spark_sink.tables.iceberg.file_layout import bucket_column
from spark_sink.tables.iceberg.log import GREATEST_PROPERTY, IcebergLog
from spark_sink.tables.iceberg.maintenance import _first_to_keep
from spark_sink.tables.iceberg.mirror import IcebergMirror
from spark_sink.tables.iceberg.open_table import (
    MARKERS_PROPERTY,
    NO_SNAPSHOT,
    buckets_of,
    commit_properties,
    copy_of_markers,
    markers_of,
    types_of,
)
from spark_sink.tables.iceberg.spark import IcebergInSpark
from spark_sink.tables.protocols import MirrorTable
from tests.spark_sink.changes import change, schema_of
from tests.spark_sink.local_iceberg import LocalIcebergLake, sqlite_access
from tests.spark_sink.tables.iceberg.conftest import ICEBERG

NAME = "shop_sales.orders"
SHAPE = TableShape(
    TableId("s", "d", None, "t"),
    tuple(
        TableColumn(name, sql)
        for name, sql in {
            SOURCE: "string",
            "id": "bigint",
            "b": "string",
            "c": "string",
            "c_bucket": "string",
            "d": "decimal(9,0)",
        }.items()
    ),
    ("id",),
)
MARKER = f"test/checkpoint-1/{NAME}"
THIRD = 2 << 12
"""The marker of the third batch's first commit."""

APART = {"cdc.deleted": 0}
"""The marker of a table that keeps deleted rows apart, and has none."""


@pytest.fixture
def lake(tmp_path: Path) -> LocalIcebergLake:
    """A lake whose schema of orders is known."""
    made = LocalIcebergLake(tmp_path / "warehouse")
    made.announce(schema_of({"id": "int64", "a": "string"}))
    return made


def _new(*ids: int) -> list[ChangeEvent]:
    return [change("c", {"id": id}, {"a": "x"}, pos=id) for id in ids]


def _written(lake: LocalIcebergLake, batches: int = 3) -> TableMetadata:
    """Apply batches with one new row each, and return the table's metadata."""
    for batch in range(batches):
        lake.apply(batch, _new(batch + 1))
    return lake.iceberg().metadata


def _opened(lake: LocalIcebergLake) -> IcebergMirror:
    opened = lake.tables.open(NAME)
    assert isinstance(opened, IcebergMirror)
    return opened


def _roll_back(lake: LocalIcebergLake, snapshot: int) -> None:
    with lake.iceberg().manage_snapshots() as snapshots:
        snapshots.rollback_to_snapshot(snapshot)


def _expire_before(lake: LocalIcebergLake, at_ms: int) -> None:
    table = lake.iceberg()
    old = [one.snapshot_id for one in table.metadata.snapshots if one.timestamp_ms < at_ms]
    table.maintenance.expire_snapshots().by_ids(old).commit()


@pytest.mark.parametrize("mode", Mode)
def test_a_batch_that_comes_again(lake: LocalIcebergLake, mode: Mode) -> None:
    """It is not written twice, and the table has the marker of the newest batch."""
    lake.use(replace(ICEBERG, modes={"*": mode}))
    metadata = _written(lake)
    lake.applier = lake.new_applier("checkpoint-1")
    (report,) = lake.apply(2, _new(3))
    assert (0, 3) == (report.counters.commits, len(lake.stored()))
    assert THIRD == markers_of(metadata)[MARKER]


class TestMarkers:
    def test_a_commit_brings_all(self, lake: LocalIcebergLake) -> None:
        """A commit repeats the markers of other apps, and never lowers one. It is not needed if its first marker is not
        newer.
        """
        metadata = _written(lake, 1)
        assert {MARKER: 0, **APART} == markers_of(metadata)
        made = commit_properties(metadata, [Marker("new", 0), Marker(MARKER, 0), Marker("day", 5)], {"more": "m"})
        assert made is not None
        assert ({MARKER: 0, **APART, "new": 0, "day": 5}, "m") == (json.loads(made[MARKERS_PROPERTY]), made["more"])
        assert commit_properties(metadata, [Marker(MARKER, 0), Marker("day", 5)], {}) is None
        assert {MARKERS_PROPERTY: "{}"} == commit_properties(None, [], {})

    def test_snapshots_without_markers(self, lake: LocalIcebergLake) -> None:
        """Other programs' snapshots come between. Once nothing else is left, the copy is used."""
        metadata = _written(lake)
        copy = copy_of_markers(metadata)
        assert copy is not None
        assert {"sequence_number": 3, "markers": {MARKER: THIRD, **APART}} == json.loads(copy)
        table = lake.iceberg()
        table.append(table.scan().to_arrow().slice(0, 0))
        metadata = lake.iceberg().metadata
        assert ({MARKER: THIRD, **APART}, copy) == (markers_of(metadata), copy_of_markers(metadata))
        lake.ddl.set_properties(NAME, {MARKERS_PROPERTY: copy})
        newest = metadata.current_snapshot()
        assert newest is not None
        _expire_before(lake, newest.timestamp_ms)
        metadata = lake.iceberg().metadata
        assert ([newest.snapshot_id], None) == ([s.snapshot_id for s in metadata.snapshots], copy_of_markers(metadata))
        assert {MARKER: THIRD, **APART} == markers_of(metadata)

    def test_a_copy_of_later_markers(self, lake: LocalIcebergLake) -> None:
        """A table that was rolled back to a snapshot before the copy has none of the copied markers."""
        metadata = _written(lake, 1)
        table = lake.iceberg()
        table.append(table.scan().to_arrow().slice(0, 0))
        bare = lake.iceberg().metadata
        _expire_before(lake, bare.snapshots[-1].timestamp_ms)
        bare = lake.iceberg().metadata
        later = json.dumps({"sequence_number": bare.snapshots[-1].sequence_number, "markers": {MARKER: 7}})
        lake.ddl.set_properties(NAME, {MARKERS_PROPERTY: later})
        assert {MARKER: 7} == markers_of(lake.iceberg().metadata)
        later = json.dumps({"sequence_number": bare.snapshots[-1].sequence_number + 1, "markers": {MARKER: 7}})  # type: ignore[operator]
        lake.ddl.set_properties(NAME, {MARKERS_PROPERTY: later})
        assert {} == markers_of(lake.iceberg().metadata)
        assert {MARKER: 0, **APART} == markers_of(metadata)

    def test_deleted_rows_without_markers(self, lake: LocalIcebergLake) -> None:
        """If the marker that names the deleted rows is lost, the newest file of this table counts."""
        lake.apply(0, _new(1, 2, 3))
        for batch in (1, 2):
            lake.apply(batch, [change("d", {"id": batch}, pos=10 + batch)])
        table = lake.iceberg()
        table.append(table.scan().to_arrow().slice(0, 0))
        _expire_before(lake, lake.iceberg().metadata.snapshots[-1].timestamp_ms)
        assert {} == markers_of(lake.iceberg().metadata)
        lake.apply(3, _new(1, 2, 3))
        assert [{"id": 3, "a": "x"}] == lake.rows()


class TestVersions:
    def test_a_table_goes_on(self, lake: LocalIcebergLake) -> None:
        """A later state follows an earlier one, and the state of an empty table. A rolled-back one does not."""
        first, second, third = (one.snapshot_id for one in _written(lake).snapshots)
        now = _opened(lake)
        assert third == now.version
        assert [True] * 4 == [now.follows(LastSeen(seen)) for seen in (NO_SNAPSHOT, first, second, third)]
        _roll_back(lake, second)
        then = _opened(lake)
        assert second == then.version
        assert [True, True, False] == [then.follows(LastSeen(seen)) for seen in (first, second, third)]

    def test_a_snapshot_that_is_gone(self, lake: LocalIcebergLake) -> None:
        """It was expired by a commit after the batch that made it. In older metadata, it does not exist yet."""
        metadata = _written(lake, 1)
        at = metadata.last_updated_ms * 1000
        now = _opened(lake)
        assert [True, True, False] == [now.follows(LastSeen(1, at=seen)) for seen in (at - 1, at, at + 1)]

    def test_as_of(self, lake: LocalIcebergLake) -> None:
        """A mirror is read as of a time, up to the oldest snapshot that still exists. Before, it was empty."""
        metadata = _written(lake)
        times = [datetime.fromtimestamp(one.timestamp_ms / 1000, UTC) for one in metadata.snapshots]
        before, later = times[0] - timedelta(milliseconds=1), times[2] + timedelta(days=1)
        found = [lake.tables.as_of(NAME, moment) for moment in (*times, later)]
        assert [1, 2, 3, 3] == [len(set(one.written())) for one in found if isinstance(one, MirrorTable)]
        assert lake.tables.as_of(NAME, before) is None
        assert lake.tables.as_of("shop_sales.none", later) is None
        _expire_before(lake, metadata.snapshots[1].timestamp_ms)
        again = lake.tables.as_of(NAME, times[1])
        assert again is not None
        assert 2 == len(set(again.written()))
        with pytest.raises(FatalError, match=rf"the snapshots of {NAME} do not reach back to "):
            lake.tables.as_of(NAME, times[0])

    @pytest.mark.parametrize("mode", [Mode.CHANGELOG, Mode.HISTORY])
    def test_only_mirrors_are_read_as_of_a_time(self, lake: LocalIcebergLake, mode: Mode) -> None:
        lake.use(replace(ICEBERG, modes={"*": mode}))
        _written(lake)
        assert lake.tables.as_of(NAME, datetime.now(UTC)) is None


class TestNames:
    def test_spelling(self, lake: LocalIcebergLake) -> None:
        """A table is found in any case, in nested namespaces as well, and under the name that it has."""
        lake.use(ICEBERG, {"shop/sales//orders": "Outer.Inner.Orders"})
        lake.apply(0, _new(1))
        known = lake.tables.iceberg_catalog
        found = [known.spelled(name) for name in ("outer.inner.orders", "OUTER.INNER.ORDERS", "outer.inner.items")]
        stored = found[0]
        assert stored is not None
        assert [stored, stored, None] == found
        assert (True, False) == (known.exists(stored), known.exists("no.such.table"))
        assert known.load("no.such.table") is None

    def test_a_name_without_a_dot(self, lake: LocalIcebergLake) -> None:
        """It is in the default namespace, because catalogs have no tables outside a namespace."""
        lake.use(ICEBERG, {"shop/sales//orders": "orders"})
        lake.apply(0, _new(1))
        known = lake.tables.iceberg_catalog
        assert ("cdc_iceberg", "default", "orders") == known.path("orders")
        assert [("cdc_iceberg", "default")] == known.namespaces("orders")
        assert [("cdc_iceberg", "a"), ("cdc_iceberg", "a", "b")] == known.namespaces("a.b.c")
        assert "orders" == known.spelled("ORDERS")
        assert [{"id": 1, "a": "x"}] == lake.rows("orders")


class TestLog:
    @pytest.fixture
    def log(self, lake: LocalIcebergLake) -> LocalIcebergLake:
        lake.use(replace(ICEBERG, modes={"*": Mode.CHANGELOG}))
        lake.apply(0, _new(1, 2, 3))
        return lake

    def test_events_are_found(self, log: LocalIcebergLake) -> None:
        """An event is the same if id, scope and position are."""
        rows = log.stored().sort_by("_cdc_pos").to_pylist()
        first, second, _ = (Identity(row["_cdc_id"], row["_cdc_scope"], row["_cdc_pos"]) for row in rows)
        others = [second._replace(scope="another"), second._replace(pos=first.pos), second._replace(id="other")]
        opened = log.tables.open(NAME)
        assert isinstance(opened, IcebergLog)
        assert {first, second} == opened.known([first, second, *others])

    def test_greatest(self, log: LocalIcebergLake) -> None:
        """It comes from the last commit, or from the rows if no snapshot has it."""
        rows = log.stored().to_pylist()
        expected = {rows[0]["_cdc_scope"]: max(row["_cdc_pos"] for row in rows)}
        opened = log.tables.open(NAME)
        assert isinstance(opened, IcebergLog)
        assert expected == opened.greatest()
        newest = log.iceberg().metadata.current_snapshot()
        assert newest is not None
        assert newest.summary is not None
        assert expected == json.loads(newest.summary.additional_properties.pop(GREATEST_PROPERTY))
        assert expected == IcebergLog(log.iceberg(), opened.shape, opened.choice, NAME, log.tables.staging).greatest()


class TestBuckets:
    def test_of_a_table(self, lake: LocalIcebergLake) -> None:
        """A new table has the configured buckets, and an existing table keeps its own, which its choice of engine
        explains.
        """
        for buckets, wanted in ((4, 8), (None, 4)):
            name = f"a.of{buckets}"
            lake.use(replace(ICEBERG, buckets={"*": buckets} if buckets else {}))
            lake.ddl.create(name, SHAPE)
            said = []
            for now in (buckets or 1, wanted):
                lake.use(replace(ICEBERG, buckets={"*": now}))
                opened = lake.tables.open(name)
                assert opened is not None
                said.append("only applies to new tables" in opened.choice.reason)
            assert (buckets or 1, [False, True]) == (buckets_of(lake.iceberg(name).metadata), said)

    @pytest.mark.parametrize(
        ("changes", "column"),
        [
            ({}, "id"),
            ({"key": ("d", "b")}, "b"),
            ({"key": (SOURCE, "b", "id")}, "b"),
            ({"key": ("c", "id")}, "id"),
            ({"key": ("d",)}, None),
            ({"key": ()}, None),
            ({"mode": Mode.HISTORY}, "id"),
            ({"mode": Mode.CHANGELOG}, None),
        ],
    )
    def test_column(self, changes: Mapping[str, Any], column: str | None) -> None:
        """It is the first key column with a type that has exact statistics, but not the source column, and not one
        whose bucket would have the name of another column.
        """
        assert column == bucket_column(msgspec.structs.replace(SHAPE, **changes))


def test_another_engine(lake: LocalIcebergLake) -> None:
    """deltalake does not write Iceberg tables."""
    _written(lake, 1)
    lake.use(replace(ICEBERG, engines=EngineRules({"*": Engine.FUSED})))
    with pytest.raises(Refused):
        lake.tables.open(NAME)
    with pytest.raises(Refused):
        lake.tables.as_of(NAME, datetime.now(UTC))


class TestFiles:
    def test_inspected(self, lake: LocalIcebergLake) -> None:
        metadata = _written(lake)
        files = FormatMaintenance(lake.tables, None)
        found = files.files(NAME)
        assert found is not None
        assert (3, (), 0) == (len(found.sizes), found.partitions, found.unsaved)
        assert (_opened(lake).version, metadata.snapshots[0].timestamp_ms / 1000) == (found.version, found.created)
        assert files.files("no.such_table") is None

    def test_snapshots_that_must_stay(self, lake: LocalIcebergLake) -> None:
        """The one that was current at the limit stays, and the newest one with markers."""
        metadata = _written(lake)
        first, second, third = (one.timestamp_ms for one in metadata.snapshots)
        assert [None, first, second, third] == [
            _first_to_keep(metadata, limit) for limit in (first - 1, first, second, third + 1)
        ]
        table = lake.iceberg()
        table.append(table.scan().to_arrow().slice(0, 0))
        later = lake.iceberg().metadata
        assert third == _first_to_keep(later, later.snapshots[-1].timestamp_ms)


class TestFolders:
    """A warehouse without a catalog, as Iceberg's own writer for folders leaves it."""

    @pytest.fixture
    def folder(self, lake: LocalIcebergLake) -> Path:
        """The metadata folder of a table with three versions, each with one row more."""
        made = lake.warehouse / "in" / "folders" / "metadata"
        made.mkdir(parents=True)
        for version in range(1, 4):
            lake.apply(version, _new(version))
            shutil.copy(lake.iceberg().metadata_location.removeprefix("file://"), made / f"v{version}.metadata.json")
        (made / "version-hint.text").write_text("3")
        return made

    @pytest.mark.parametrize("hint", ["3", "1", None])
    def test_the_newest_version(self, lake: LocalIcebergLake, folder: Path, hint: str | None) -> None:
        """It is found even if the writer died before it updated the hint."""
        known = FolderCatalog(str(lake.warehouse))
        (folder / "version-hint.text").unlink() if hint is None else (folder / "version-hint.text").write_text(hint)
        found = known.load("in.folders")
        assert found is not None
        assert 3 == len(found.metadata.snapshots)
        assert (True, "in.folders") == (known.exists("in.folders"), known.spelled("IN.Folders"))

    def test_no_table(self, lake: LocalIcebergLake) -> None:
        known = FolderCatalog(str(lake.warehouse))
        assert (None, False, None) == (known.load("in.none"), known.exists("in.none"), known.spelled("in.none"))

    def test_names(self, lake: LocalIcebergLake) -> None:
        """A folder needs no namespace."""
        known = FolderCatalog(str(lake.warehouse))
        assert ("cdc_iceberg", "in", "folders") == known.path("in.folders")
        assert [] == known.namespaces("in.folders")
        assert "`cdc_iceberg`.`in`.`folders`" == quoted(known, "in.folders")


class TestTraits:
    def test_they_are_stored(self, lake: LocalIcebergLake) -> None:
        """Each catalog has its own traits, for as long as they count as known."""
        memory = TraitsMemory(str(lake.warehouse), sqlite_access(lake.warehouse))
        other = TraitsMemory(str(lake.warehouse), replace(memory.access, name="other"))
        assert memory.recall() is None
        traits = CatalogTraits(2, keeps_snapshots=False, can_expire=False)
        memory.keep(traits)
        assert (traits, traits, None) == (memory.recall(), memory.recall(3_600.0), memory.recall(0.0))
        assert other.recall() is None
        assert [lake.tables.catalog_traits, FormatTables(str(lake.warehouse)).catalog_traits] == [
            traits,
            CatalogTraits(3, keeps_snapshots=True, can_expire=True),
        ]


@pytest.mark.parametrize(
    ("error", "overtaken"),
    [
        ("o.apache.spark.SparkException: Job aborted", False),
        ("Caused by: org.apache.iceberg.exceptions.ValidationException: Found conflicting files", True),
        ("org.apache.iceberg.exceptions.CommitFailedException: Version 3 already exists", True),
        ("org.apache.iceberg.exceptions.CommitStateUnknownException: Cannot determine", False),
        ("a row with the text CommitFailedException", False),
    ],
)
def test_conflicts_with_other_commits(lake: LocalIcebergLake, error: str, *, overtaken: bool) -> None:
    in_spark = IcebergInSpark(lake.tables.iceberg_catalog, CatalogTraits, lake.tables.staging)
    assert (overtaken, None) == (in_spark.is_overtaken(error), in_spark.refusal(error))


def test_types_of_columns(lake: LocalIcebergLake) -> None:
    """Types that an event can have are Spark's, and others keep Iceberg's name."""
    types = {
        "a": (pa.bool_(), "boolean"),
        "b": (pa.int32(), "int"),
        "c": (pa.int64(), "bigint"),
        "d": (pa.float32(), "float"),
        "e": (pa.float64(), "double"),
        "f": (pa.string(), "string"),
        "g": (pa.binary(), "binary"),
        "h": (pa.date32(), "date"),
        "i": (pa.timestamp("us"), "timestamp_ntz"),
        "j": (pa.timestamp("us", "UTC"), "timestamp"),
        "k": (pa.decimal128(12, 3), "decimal(12,3)"),
        "l": (pa.time64("us"), "time"),
    }
    access = sqlite_access(lake.warehouse)
    catalog = load_catalog(access.name, **access.reader)
    catalog.create_namespace("all")
    table = catalog.create_table("all.types", pa.schema([(name, type) for name, (type, _) in types.items()]))
    assert {name: sql for name, (_, sql) in types.items()} == types_of(table.metadata)
