"""Tables with layouts, of both formats. Whatever the layout, a table has the rows of a table without one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from spark_sink.config.table_rules import TableRules
from spark_sink.schema.layout import FileLayout
from spark_sink.schema.table_spec import Format, Mode
from spark_sink.tables.formats import FormatMaintenance
from spark_sink.tables.table_properties import layout_from
from tests.spark_sink.changes import change, schema_of
from tests.spark_sink.lake import Lake, MergingLake, Topic

NAME = "shop_sales.orders"
TYPES = {"id": "int64", "c": "string", "n": "int32", "d": "date", "t": "timestamp", "a": "string"}

# FileLayouts of tables that deltalake writes, and of tables that Spark writes.
FUSED: Sequence[dict[str, Any]] = [
    {"partition": ["n"]},
    {"partition": ["d", "n"], "file_megabytes": 1},
    {"partition": ["id"]},
    {"features": ["change_data_feed"], "partition": ["n"]},
]
BY_SPARK: Sequence[tuple[Format, dict[str, Any]]] = [
    (Format.DELTA, {"features": ["deletion_vectors"], "partition": ["n"]}),
    (Format.DELTA, {"features": ["column_mapping", "change_data_feed"]}),
    (Format.DELTA, {"cluster": ["c", "n"]}),
    (Format.ICEBERG, {"partition": ["bucket(4, c)"], "format_version": 2}),
    (Format.ICEBERG, {"partition": ["day(t)", "bucket(2, c)", "n"], "sort": ["c desc", "n"]}),
    (Format.ICEBERG, {"partition": ["month(d)"], "write_mode": "copy-on-write", "format_version": 2}),
    (Format.ICEBERG, {"write_mode": "copy-on-write", "file_megabytes": 1}),
]


def _rules(format: Format, layout: Mapping[str, Any], **more: Any) -> TableRules:
    return TableRules(formats={"*": format}, layouts={"*": FileLayout.of(layout)}, **more)


def _row(id: int, c: str | None, n: int | None, d: str | None, a: str) -> dict[str, Any]:
    return {"id": id, "c": c, "n": n, "d": d, "t": None if d is None else f"{d}T23:59:59.999999", "a": a}


def _loaded(lake: Lake) -> Topic:
    """Write rows to several partitions, whose values include NULL, an empty text and times before 1970."""
    lake.announce(schema_of(TYPES))
    topic = Topic(lake)
    places = [("", 1, "1969-12-31"), ("x", -2, "2024-02-29"), (None, None, None), ("a/b=c %", 2**31 - 1, "9999-12-31")]
    rows = [_row(id, *places[id % 4], "old") for id in range(8)]
    topic.apply(0, [change("c", {"id": row["id"]}, row, pos=1 + row["id"]) for row in rows])
    return topic


def _changed(topic: Topic) -> None:
    """Delete a row by its key alone, move rows to other partitions, and patch rows without naming a partition."""
    topic.apply(
        1,
        [
            change("d", {"id": 0}, pos=20),
            change("u", {"id": 1}, _row(1, "y", 7, "2025-01-01", "moved"), pos=21),
            change("u", {"id": 2}, {"a": "patched"}, pos=22, full=False),
            change("u", {"id": 99}, _row(99, "", 1, "1969-12-31", "rekeyed"), pos=23, key_old={"id": 4}),
        ],
    )
    topic.apply(
        2, [change("u", {"id": 3}, _row(3, None, None, None, "to null"), pos=30), change("d", {"id": 7}, pos=31)]
    )
    topic.apply(3, [change("d", {"id": 1}, pos=40), change("u", {"id": 0}, {"a": "late"}, pos=19, full=False)])


def _rows(lake: Lake) -> list[dict[str, Any]]:
    """Return the rows as Spark reads them, if Spark writes the table."""
    if not isinstance(lake, MergingLake):
        return lake.rows()
    read = lake.read().toArrow()
    plain = read.drop_columns([name for name in read.column_names if name.startswith("_cdc_")])
    return sorted(plain.to_pylist(), key=lambda row: str(row["id"]))


def _plain(folder: Path) -> Lake:
    """Return a lake whose table has no layout."""
    lake = Lake(folder)
    _changed(_loaded(lake))
    return lake


def _check(lake: Lake, rules: TableRules, folder: Path) -> Topic:
    lake.use(rules)
    topic = _loaded(lake)
    _changed(topic)
    plain = _plain(folder)
    assert plain.rows() == _rows(lake)
    assert [] == lake.parked()
    return topic


def _stored(lake: Lake) -> FileLayout:
    if lake.tables.format(NAME) is Format.ICEBERG:
        return layout_from(lake.iceberg().properties)
    return layout_from(DeltaTable(lake.path()).metadata().configuration)


@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("layout", FUSED, ids=str)
def test_rows_of_tables_that_deltalake_writes(
    lake: Lake, layout: dict[str, Any], tmp_path: Path, *, soft: bool
) -> None:
    _check(lake, _rules(Format.DELTA, layout, soft_deletes=soft), tmp_path / "plain")
    table = DeltaTable(lake.path())
    assert layout.get("partition", []) == table.metadata().partition_columns
    assert layout == _stored(lake).settings()
    # Spark would reject every later change of such a table's properties.
    with_statistics = table.metadata().configuration["delta.dataSkippingStatsColumns"].split(",")
    assert not {*layout.get("partition", [])} & {*with_statistics}


@pytest.mark.parametrize(("format", "layout"), BY_SPARK, ids=str)
def test_rows_of_tables_that_spark_writes(
    merging_lake: MergingLake, format: Format, layout: dict[str, Any], tmp_path: Path
) -> None:
    """The rows are the same after a rebuild, and after compaction. The rebuilt table has the layout too."""
    lake = merging_lake
    topic = _check(lake, _rules(format, layout), tmp_path / "plain")
    expected = _rows(lake)
    _assert_has(lake, layout)
    if format is Format.ICEBERG:
        assert expected == lake.rows()
        FormatMaintenance(lake.tables, lake.spark).compact(NAME, 1 << 20)
        assert expected == _rows(lake)
    assert "done" == lake.command("rebuild").state
    assert expected == _rows(lake)
    _assert_has(lake, layout)
    topic.apply(9, [change("d", {"id": 5}, pos=90)])
    assert [row for row in expected if row["id"] != 5] == _rows(lake)


def _assert_has(lake: MergingLake, layout: dict[str, Any]) -> None:
    """The table itself has the layout, not only its property."""
    assert FileLayout.of(layout) == _stored(lake)
    if lake.tables.format(NAME) is Format.DELTA:
        table = DeltaTable(lake.path())
        detail = lake.spark.sql(f"DESCRIBE DETAIL delta.`{lake.path()}`").collect()[0]
        assert layout.get("partition", []) == table.metadata().partition_columns
        assert layout.get("cluster", []) == list(detail["clusteringColumns"] or [])
        names = {"deletion_vectors": "deletionVectors", "column_mapping": "columnMapping"}
        wanted = {names[one] for one in layout.get("features", []) if one in names}
        assert wanted <= set(table.protocol().writer_features or ())
        return
    metadata = lake.iceberg().metadata
    mode = layout.get("write_mode", "merge-on-read")
    assert layout.get("format_version", 3) == metadata.format_version
    assert {mode} == {metadata.properties[f"write.{one}.mode"] for one in ("merge", "update", "delete")}
    deletes = [file for task in lake.iceberg().scan().plan_files() for file in task.delete_files]
    assert mode == "merge-on-read" or not deletes
    columns = metadata.schema().find_column_name
    parts = [str(field.transform).replace("[", f"({columns(field.source_id)}, ") for field in metadata.spec().fields]
    assert len(layout.get("partition", [])) == len(parts)
    for wanted, part in zip(layout.get("partition", []), parts, strict=True):
        assert part == "identity" or part.partition("(")[0] == wanted.partition("(")[0]
    order = [(columns(field.source_id), field.direction.name) for field in metadata.sort_order().fields]
    assert layout.get("sort", []) == [f"{name} desc" if way == "DESC" else name for name, way in order]


@pytest.mark.parametrize("mode", Mode)
def test_modes(lake: Lake, mode: Mode, tmp_path: Path) -> None:
    """Histories and changelogs can be partitioned as well."""
    rules = _rules(Format.DELTA, {"partition": ["n"]}, modes={"*": mode})
    lake.use(rules)
    _changed(_loaded(lake))
    plain = Lake(tmp_path / "plain")
    plain.use(replace(rules, layouts={}))
    _changed(_loaded(plain))
    assert sorted(map(str, plain.rows())) == sorted(map(str, lake.rows()))
    assert ["n"] == DeltaTable(lake.path()).metadata().partition_columns


def test_a_rebuild_gives_the_configured_layout(lake: Lake) -> None:
    """A rebuild creates the table again, so it also changes the layout."""
    lake.use(_rules(Format.DELTA, {"partition": ["n"]}))
    _changed(_loaded(lake))
    expected = lake.rows()
    lake.use(_rules(Format.DELTA, {"partition": ["d"]}))
    assert "done" == lake.command("rebuild").state
    assert (["d"], expected) == (DeltaTable(lake.path()).metadata().partition_columns, lake.rows())
    lake.use(_rules(Format.DELTA, {}))
    assert "done" == lake.command("rebuild").state
    assert ([], expected, {}) == (
        DeltaTable(lake.path()).metadata().partition_columns,
        lake.rows(),
        _stored(lake).settings(),
    )


def test_compaction_of_partitions(lake: Lake) -> None:
    """Each partition is compacted separately, including the partition of NULL."""
    lake.use(_rules(Format.DELTA, {"partition": ["n"]}))
    lake.announce(schema_of(TYPES))
    for batch in range(4):
        rows = [_row(10 * batch + i, "c", n, None, "x") for i, n in enumerate((1, 2, None))]
        lake.apply(batch, [change("c", {"id": row["id"]}, row, pos=1 + row["id"]) for row in rows])
    before = lake.rows()
    files = FormatMaintenance(lake.tables, None)
    found = files.files(NAME)
    assert found is not None
    assert (12, 3) == (len(found.sizes), len({*found.partitions}))
    files.compact(NAME, 1 << 20)
    after = files.files(NAME)
    assert after is not None
    assert (3, 3) == (len(after.sizes), len({*after.partitions}))
    assert before == lake.rows()


@pytest.mark.parametrize(
    ("format", "partition"),
    [(Format.DELTA, ["n"]), (Format.ICEBERG, ["n"]), (Format.ICEBERG, ["bucket(4, n)", "bucket(2, c)"])],
    ids=str,
)
def test_a_partition_column_with_another_type(merging_lake: MergingLake, format: Format, partition: list[str]) -> None:
    """Iceberg widens a partition column in place. Otherwise, values with a new type go to a second column, and their
    rows to the partition of NULL. All rows are still found.
    """
    lake = merging_lake
    lake.use(_rules(format, {"partition": partition}))
    lake.announce(schema_of(TYPES))
    lake.apply(0, [change("c", {"id": id}, _row(id, "x", id % 2, None, "old"), pos=1 + id) for id in range(4)])
    wider = lake.announce(schema_of(TYPES | {"n": "int64"}))
    lake.apply(1, [change("u", {"id": 0}, _row(0, "x", 2**40, None, "wide"), pos=20, schema=wider)])
    lake.apply(
        2, [change("d", {"id": 1}, pos=21, schema=wider), change("u", {"id": 2}, {"a": "z"}, pos=22, full=False)]
    )
    numbers = {row["id"]: (row["n"], row.get("n__v2"), row["a"]) for row in _rows(lake)}
    found = {id: (n if wide is None else wide, a) for id, (n, wide, a) in numbers.items()}
    assert {0: (2**40, "wide"), 2: (0, "z"), 3: (1, "old")} == found
    other = lake.announce(schema_of(TYPES | {"n": "string"}))
    lake.apply(3, [change("u", {"id": 3}, {"n": "text"}, pos=30, schema=other), change("d", {"id": 0}, pos=31)])
    assert [] == lake.parked()
    assert {2, 3} == {row["id"] for row in _rows(lake)}


def test_a_column_named_like_a_partition(merging_lake: MergingLake) -> None:
    """Iceberg rejects a column with the name of a partition. The table is parked, and others continue."""
    lake = merging_lake
    lake.use(_rules(Format.ICEBERG, {"partition": ["day(d)"]}))
    lake.announce(schema_of(TYPES))
    lake.announce(schema_of(TYPES, table="items"))
    lake.apply(0, [change("c", {"id": 1}, _row(1, "x", 1, "2024-01-01", "x"), pos=1)])
    newer = lake.announce(schema_of(TYPES | {"d_day": "int32"}))
    items = [change("c", {"id": 1}, _row(1, "x", 1, "2024-01-01", "x"), pos=1, table="items")]
    lake.apply(1, [change("u", {"id": 1}, {"d_day": 7}, pos=2, full=False, schema=newer), *items])
    assert {NAME} == lake.control.held().keys()
    assert 1 == len(lake.rows("shop_sales.items"))


@pytest.mark.parametrize("layout", [{"features": ["deletion_vectors"]}, {"features": ["column_mapping"]}], ids=str)
def test_a_wider_type_that_the_table_cannot_have_in_place(merging_lake: MergingLake, layout: dict[str, Any]) -> None:
    """With these features, a table with widened types could no longer be read. The values go to a second column."""
    lake = merging_lake
    lake.use(_rules(Format.DELTA, layout))
    lake.announce(schema_of(TYPES))
    lake.apply(0, [change("c", {"id": 1}, _row(1, "x", 1, None, "x"), pos=1)])
    wider = lake.announce(schema_of(TYPES | {"n": "int64"}))
    lake.apply(1, [change("u", {"id": 1}, {"n": 2**40}, pos=2, full=False, schema=wider)])
    lake.apply(2, [change("u", {"id": 1}, {"a": "y"}, pos=3, full=False)])
    assert [] == lake.parked()
    (row,) = _rows(lake)
    assert (2**40, "y") == (row["n__v2"], row["a"])


def test_a_table_that_cannot_have_its_layout(lake: Lake) -> None:
    """The table is parked with the reason. Other tables continue."""
    lake.use(replace(TableRules(), layouts={"*.orders": FileLayout.of({"partition": ["c"]})}))
    for table in ("orders", "items"):
        lake.announce(schema_of(TYPES, table=table))
    lake.apply(0, [change("c", {"id": 1}, {"a": "x"}, pos=1), change("c", {"id": 1}, {"a": "x"}, pos=1, table="items")])
    (cause,) = lake.control.held().values()
    assert "c has the type string, but identity partitions of tables with format delta need one of" in cause.detail
    assert 1 == len(lake.rows("shop_sales.items"))
    lake.use(TableRules())
    assert "1 events replayed" == lake.command("resume").result
    assert 1 == len(lake.rows())


def test_the_change_data_feed_has_the_changes(lake: Lake) -> None:
    """deltalake records every change of a merge in the change data feed."""
    lake.use(_rules(Format.DELTA, {"features": ["change_data_feed"]}))
    topic = _loaded(lake)
    before = lake.version()
    topic.apply(1, [change("d", {"id": 0}, pos=20), change("u", {"id": 1}, {"a": "new"}, pos=21, full=False)])
    feed = DeltaTable(lake.path()).load_cdf(starting_version=before + 1).read_all()
    kinds = sorted((row["_change_type"], row["id"], row["a"]) for row in pa.table(feed).to_pylist())
    assert [("delete", 0, "old"), ("update_postimage", 1, "new"), ("update_preimage", 1, "old")] == kinds
