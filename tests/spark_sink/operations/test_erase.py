"""`spark-sink erase` leaves nothing of a row in the warehouse, and nothing brings the row back."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import fastavro
import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from cdc_core.envelope import ChangeEvent
from spark_sink.config.table_rules import TableRules
from spark_sink.control_tables.erased import ErasedTable
from spark_sink.control_tables.requests import Request, State
from spark_sink.errors import ConfigError, FatalError
from spark_sink.events import quarantine
from spark_sink.operations.erase import parse_key
from spark_sink.schema.layout import FileLayout
from spark_sink.schema.table_spec import Format, Mode
from spark_sink.spark.session import session_settings
from spark_sink.tables.deleted_rows import DeletedRows
from spark_sink.tables.delta import erasure
from spark_sink.tables.delta.erasure import DeltaErasure
from spark_sink.tables.formats import FormatErasure
from spark_sink.tables.iceberg.erasure import IcebergErasure
from spark_sink.tables.iceberg.open_table import MARKERS_PROPERTY
from tests.spark_sink.changes import change, schema_of
from tests.spark_sink.lake import Lake, MergingLake, Topic
from tests.spark_sink.operations.rebuilt import copy
from tests.spark_sink.operations.test_verify import verified

NAME = "shop_sales.orders"
SCHEMA = schema_of({"id": "string", "n": "int32", "d": "date", "a": "string"})
ITEM = schema_of({"id": "string", "n": "int32"}, table="items")

KEY, VALUE = "c7nary-key", "c7nary-value"

CASES: Sequence[tuple[Format, dict[str, Any], Mode]] = [
    *((Format.DELTA, {}, mode) for mode in Mode),
    (Format.DELTA, {"partition": ["n", "d"]}, Mode.MIRROR),
    # Spark writes the tables from here on.
    (Format.DELTA, {"features": ["deletion_vectors", "change_data_feed"]}, Mode.MIRROR),
    *((Format.ICEBERG, {}, mode) for mode in (Mode.MIRROR, Mode.HISTORY)),
    (Format.ICEBERG, {"write_mode": "copy-on-write", "partition": ["bucket(2, id)"]}, Mode.MIRROR),
]


def _event(op: str, id: str, pos: int, a: str | None = None, **more: Any) -> ChangeEvent:
    after = None if a is None else {"n": pos, "d": "2024-01-31", "a": a}
    return change(op, {"id": id}, after, pos=pos, schema=SCHEMA, **more)


def _use(lake: Lake, format: Format, layout: dict[str, Any], mode: Mode, **more: Any) -> None:
    layouts = {NAME: FileLayout.of(layout)}
    lake.use(TableRules(formats={"*": format}, layouts=layouts, modes={NAME: mode}, **more))


BATCHES: Sequence[Sequence[ChangeEvent]] = [
    [_event("c", id, pos, "old") for pos, id in enumerate(("a", "b", "d"), 1)],
    [_event("c", KEY, 10, VALUE), _event("u", "a", 11, "new"), _event("d", "d", 12)],
    [_event("u", KEY, 20, f"{VALUE} 2"), _event("d", "b", 21), _event("c", "e", 22, "x")],
]


def _loaded(lake: Lake) -> Topic:
    lake.announce(SCHEMA)
    lake.announce(ITEM)
    topic = Topic(lake)
    for number, events in enumerate(BATCHES):
        topic.apply(number, events)
    return topic


def _erase(lake: Lake, key: str = KEY) -> Request:
    shape = lake.tables.shape(NAME)
    assert shape is not None
    row = parse_key(json.dumps({"id": key}), shape)
    return lake.command("erase", NAME, msgspec.json.encode(row).decode())


def _found(lake: Lake) -> list[str]:
    """Return the files in the warehouse that contain anything of the row, however they are encoded."""
    files = [path for path in lake.warehouse.rglob("*") if path.is_file()]
    found = [path for path in files if any(b"c7nary" in text for text in _texts(path))]
    return [str(path.relative_to(lake.warehouse)) for path in found]


def _texts(path: Path) -> Iterator[bytes]:
    content = path.read_bytes()
    yield str(path).encode()
    yield content
    if content.startswith(b"PAR1"):
        file = pq.ParquetFile(path)
        yield repr(file.read().to_pylist()).encode()
        yield repr(file.metadata.metadata).encode()
        for group in range(file.num_row_groups):
            yield repr(file.metadata.row_group(group).to_dict()).encode()
    elif content.startswith(b"Obj\x01"):
        with path.open("rb") as opened:
            records = fastavro.reader(opened)
            yield repr((records.metadata, list(records))).encode()


def _others(lake: MergingLake) -> list[dict[str, Any]]:
    rows = lake.read().toArrow().to_pylist()
    return sorted((row for row in rows if row["id"] != KEY), key=str)


@pytest.mark.parametrize(("format", "layout", "mode"), CASES, ids=str)
def test_nothing_is_left(merging_lake: MergingLake, format: Format, layout: dict[str, Any], mode: Mode) -> None:
    lake = merging_lake
    _use(lake, format, layout, mode)
    topic = _loaded(lake)
    assert _found(lake)
    others = _others(lake)
    done = _erase(lake)
    assert State.DONE == done.state, done.error
    assert [] == _found(lake)
    assert others == _others(lake)
    if mode is Mode.MIRROR:
        assert verified(lake, [event for events in BATCHES for event in events], SCHEMA).is_equal
    # The table has kept its markers, and repeated events do not bring the row back. A changelog compares events.
    lake.applier = lake.new_applier("checkpoint-1")
    assert [mode is not Mode.CHANGELOG] == [report.counters.skipped for report in lake.apply(2, BATCHES[2])]
    lake.applier = lake.new_applier("checkpoint-2")
    for number, events in enumerate(BATCHES):
        lake.apply(number, events)
    assert [] == _found(lake)
    assert others == _others(lake)
    topic.apply(3, [_event("u", "a", 30, "later"), _event("c", KEY, 31, "again")])
    assert {"later", "x"} <= {row["a"] for row in _others(lake)}
    assert ["again"] == [row["a"] for row in lake.read().toArrow().to_pylist() if row["id"] == KEY]


@pytest.mark.parametrize("format", Format)
def test_deleted_parked_and_quarantined(merging_lake: MergingLake, format: Format) -> None:
    """The row was deleted before. Events for it are in quarantine, and wait for the table to be resumed."""
    lake = merging_lake
    _use(lake, format, {}, Mode.MIRROR)
    topic = _loaded(lake)
    unfit = change("u", {"id": KEY}, {"n": "c7nary", "a": VALUE}, pos=30, schema=SCHEMA)
    topic.apply(3, [unfit])
    topic.apply(4, [_event("d", KEY, 31)])
    assert "done" == lake.command("park", NAME).state
    topic.apply(5, [_event("c", KEY, 40, VALUE), _event("u", "a", 41, "waited")])
    assert {"deleted", "parked", "quarantine"} <= {part for path in _found(lake) for part in Path(path).parts}
    done = _erase(lake)
    assert State.DONE == done.state, done.error
    assert [] == _found(lake)
    assert "done" == lake.command("resume", NAME).state
    assert [] == _found(lake)
    assert "waited" in {row["a"] for row in _others(lake)}


def test_a_topic_that_is_read_again_while_the_table_is_parked(lake: Lake) -> None:
    """The row's events are parked again, but they do not bring the row back."""
    topic, others = _loaded(lake), [_event("c", "f", 30, "f")]
    shape, batches = lake.tables.shape(NAME), lake.control.batches
    assert shape is not None
    lake.control.erased.add(NAME, parse_key(json.dumps({"id": KEY}), shape), batches.topic(), batches.reached())
    DeltaTable(lake.path()).delete(f"id = '{KEY}'")
    assert "done" == lake.command("park", NAME).state
    lake.applier = lake.new_applier("checkpoint-2")
    for number, (first, events) in enumerate(zip((0, 3, 6), BATCHES, strict=True)):
        lake.applier(lake.records(events, first), number)
    topic.apply(3, [*others, _event("d", "a", 31)])
    assert "done" == lake.command("resume", NAME).state
    assert ["e", "f"] == [row["id"] for row in lake.rows()]


@pytest.mark.parametrize("mode", Mode)
def test_a_rebuild(merging_lake: MergingLake, mode: Mode) -> None:
    """A rebuild reads the row's events again. A row whose key was the erased one before keeps its values."""
    lake = merging_lake
    _use(lake, Format.DELTA, {}, mode)
    topic = _loaded(lake)
    moved = change("u", {"id": "g"}, {"n": 1, "a": "g"}, pos=30, schema=SCHEMA, key_old={"id": KEY})
    taken = change("u", {"id": KEY}, {"n": 1, "a": VALUE}, pos=31, schema=SCHEMA, key_old={"id": "a"})
    unfit = change("u", {"id": KEY}, {"n": "c7nary", "a": VALUE}, pos=32, schema=SCHEMA)
    topic.apply(3, [moved, taken, unfit])
    assert State.DONE == _erase(lake).state
    assert [] == _found(lake)
    others = _others(lake)
    assert "done" == lake.command("rebuild", NAME).state
    assert [] == _found(lake)
    copied = copy(lake, into="shop_sales.copy")
    assert State.DONE == copied.state, copied.error
    assert [] == _found(lake)
    if mode is Mode.MIRROR:
        assert {"e": "x", "g": "g"} == {row["id"]: row["a"] for row in lake.rows()}
    assert [row["id"] for row in others] == [row["id"] for row in _others(lake)]


def test_events_that_the_sink_had_not_read(merging_lake: MergingLake) -> None:
    """Other tables' events had been read up to later positions. An event of the row that arrives after the command
    counts, whatever its position.
    """
    lake = merging_lake
    _use(lake, Format.DELTA, {}, Mode.MIRROR)
    topic = _loaded(lake)
    topic.apply(3, [change("c", {"id": "x"}, {"n": 1}, pos=100, table="items", schema=ITEM)])
    assert State.DONE == _erase(lake).state
    topic.apply(4, [_event("c", KEY, 50, "again")])
    assert ["again"] == [row["a"] for row in lake.read().toArrow().to_pylist() if row["id"] == KEY]


def test_a_copy_that_becomes_a_live_table(merging_lake: MergingLake) -> None:
    lake = merging_lake
    _use(lake, Format.DELTA, {}, Mode.MIRROR)
    _loaded(lake)
    assert State.DONE == _erase(lake).state
    assert State.DONE == copy(lake, into="shop_sales.copy").state
    lake.use(lake.rules, {"shop/sales//orders": "shop_sales.copy"})
    done = lake.command("rebuild", "shop_sales.copy")
    assert State.DONE == done.state, done.error
    assert [] == _found(lake)
    assert ["a", "e"] == [row["id"] for row in lake.rows("shop_sales.copy")]


def test_events_of_others(merging_lake: MergingLake) -> None:
    """Another table of this name, read from another topic, has an event in quarantine at the same offset."""
    lake = merging_lake
    _use(lake, Format.DELTA, {}, Mode.MIRROR)
    topic = _loaded(lake)
    topic.apply(3, [change("u", {"id": KEY}, {"n": "unfit", "a": VALUE}, pos=30, schema=SCHEMA)])
    path = lake.path(quarantine.NAME)
    (own,) = DeltaTable(path).to_pyarrow_table().to_pylist()
    others = [{**own, "source": "other"}, {**own, "db": None}, {**own, "event_id": None}]
    for other in others:
        other["value"] = b"x"
    write_deltalake(path, pa.Table.from_pylist(others, quarantine.ARROW), mode="append")
    done = _erase(lake)
    assert "stored events erased: 1; " in str(done.result)
    assert "may contain the row: 3" in str(done.result)
    assert len(others) == DeltaTable(path).count()


def test_partitions_whose_names_are_encoded(tmp_path: Path) -> None:
    """The log encodes the names of folders, which already contain encoded values."""
    for rows in ([1, 2], [3, 4]):
        write_deltalake(
            tmp_path / "t", pa.table({"id": rows, "at": ["a b/c", "x%y"]}), partition_by=["at"], mode="overwrite"
        )
    assert 2 == erasure.purge_own(str(tmp_path), "t")
    assert {3, 4} == set(DeltaTable(tmp_path / "t").to_pyarrow_table().column("id").to_pylist())


def test_statistics_that_python_lacks(tmp_path: Path) -> None:
    """A checkpoint contains the statistics of other writers' columns, such as a date in the year 10000."""
    for id in (1, 2):
        rows = pa.table({"id": [id], "on": pa.array([2_932_897], pa.int32()).cast(pa.date32())})
        typed = {"delta.checkpoint.writeStatsAsStruct": "true"}
        write_deltalake(tmp_path / "t", rows, mode="overwrite", configuration=typed if id == 1 else None)
        DeltaTable(tmp_path / "t").create_checkpoint()
    assert 1 == erasure.purge_own(str(tmp_path), "t")
    assert 1 == DeltaTable(tmp_path / "t").count()


def test_a_commit_during_the_purge(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another pipeline adds to the quarantine after the purge has seen which files are in use."""
    path, listing = lake.path(quarantine.NAME), erasure._files
    rows = pa.Table.from_pylist([{"reason": "X"}], quarantine.ARROW)
    write_deltalake(path, rows, mode="append")

    def appending(storage: Any, folder: str) -> Any:
        if not folder:
            write_deltalake(path, rows, mode="append")
        return listing(storage, folder)

    monkeypatch.setattr(erasure, "_files", appending)
    erasure.purge_own(str(lake.warehouse), quarantine.NAME)
    assert 2 == DeltaTable(path).to_pyarrow_table().num_rows


@pytest.mark.parametrize("format", Format)
def test_a_purge_that_is_interrupted(
    merging_lake: MergingLake, monkeypatch: pytest.MonkeyPatch, format: Format
) -> None:
    """The properties that the purge changes have their former values after the command has been repeated."""
    lake = merging_lake
    _use(lake, format, {}, Mode.MIRROR)
    _loaded(lake)
    before = _properties(lake)
    with monkeypatch.context() as patch:
        for kind in (DeltaErasure, IcebergErasure):
            # As if the process ended before it could restore the properties.
            setting = kind._set

            def once(self: Any, *arguments: Any, setting: Any = setting) -> None:
                if "interrupted" in vars(self):
                    raise FatalError("killed")
                self.interrupted = True
                setting(self, *arguments)

            patch.setattr(kind, "_set", once)
        assert State.FAILED == _erase(lake).state
    assert before != _properties(lake)
    assert State.DONE == _erase(lake).state
    assert before == _properties(lake)
    assert [] == _found(lake)


def _properties(lake: Lake) -> dict[str, str]:
    if lake.tables.format(NAME) is Format.DELTA:
        return DeltaTable(lake.path()).metadata().configuration
    return {name: text for name, text in lake.iceberg().properties.items() if name != MARKERS_PROPERTY}


def test_a_checkpoint_in_parts(merging_lake: MergingLake) -> None:
    lake = merging_lake
    _use(lake, Format.DELTA, {}, Mode.MIRROR)
    _loaded(lake)
    DeltaTable(lake.path()).create_checkpoint()
    size = "spark.databricks.delta.checkpoint.partSize"
    with session_settings(lake.spark, {size: "1"}):
        assert State.DONE == _erase(lake).state
    assert [] == _found(lake)
    assert ["a", "e"] == [row["id"] for row in _others(lake)]


def test_files_that_nobody_committed(merging_lake: MergingLake) -> None:
    """Files of a sink that was killed, more than an hour ago, next to those of the table and of another checkpoint."""
    lake = merging_lake
    _use(lake, Format.ICEBERG, {}, Mode.MIRROR)
    _loaded(lake)
    left = lake.warehouse.joinpath("_cdc", "staging", "0", NAME, "x.parquet")
    left.parent.mkdir(parents=True)
    pq.write_table(pa.table({"id": [KEY]}), left)
    os.utime(left, (0, 0))
    assert State.DONE == _erase(lake).state
    assert [] == _found(lake)


TYPES = {
    "b": ("bool", True),
    "d": ("date", "2024-02-29"),
    "f": ("float64", "0.1"),
    "i": ("int64", -(2**63)),
    "m": ("decimal(20,4)", "1.5"),
    "s": ("string", 'c7nary "\u00e9'),
    "t": ("timestamp", "2024-02-29T23:59:59.000001"),
    "x": ("binary", "Yzdu"),
    "z": ("timestamptz", "2024-02-29T23:59:59.5Z"),
}


@pytest.mark.parametrize("format", Format)
def test_keys_of_all_types(merging_lake: MergingLake, format: Format) -> None:
    """The sink recognizes the row by the digest of its key, in events, in files and as the operator writes it."""
    lake = merging_lake
    schema = lake.announce(schema_of({name: type for name, (type, _) in TYPES.items()} | {"a": "string"}))
    _use(lake, format, {}, Mode.MIRROR)
    key = {name: value for name, (_, value) in TYPES.items()}
    rows = [key, key | {"m": "1.5001"}]
    lake.apply(0, [change("c", row, {"a": VALUE}, pos=n, schema=schema) for n, row in enumerate(rows)])
    shape = lake.tables.shape(NAME)
    assert shape is not None
    erased = parse_key(json.dumps(key | {"m": "1.50", "i": str(key["i"])}), shape)
    assert State.DONE == lake.command("erase", NAME, msgspec.json.encode(erased).decode()).state
    assert ["1.5001"] == [str(row["m"]) for row in lake.read().toArrow().to_pylist()]


STEPS = ((ErasedTable, "add"), (FormatErasure, "erase"), (DeletedRows, "erase"), (FormatErasure, "purge"))


@pytest.mark.faults
@pytest.mark.parametrize(("kind", "step"), STEPS)
def test_a_command_that_is_interrupted(
    merging_lake: MergingLake, monkeypatch: pytest.MonkeyPatch, kind: type, step: str
) -> None:
    """The next attempt finishes it, and batches in between do not bring the row back."""
    lake = merging_lake
    _use(lake, Format.DELTA, {}, Mode.MIRROR)
    topic = _loaded(lake)
    topic.apply(3, [_event("d", KEY, 30)])
    others = _others(lake)
    carried_out = getattr(kind, step)

    def interrupted(*arguments: Any) -> Any:
        carried_out(*arguments)
        raise FatalError("interrupted")

    with monkeypatch.context() as patch:
        patch.setattr(kind, step, interrupted)
        assert State.FAILED == _erase(lake).state
    lake.applier = lake.new_applier("checkpoint-2")
    for number, events in enumerate(BATCHES):
        lake.apply(number, events)
    assert State.DONE == _erase(lake).state
    assert [] == _found(lake)
    assert others == _others(lake)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("id=1", "JSON object with the table's key columns \\(id\\)"),
        ('{"id": "x", "a": "y"}', "JSON object with the table's key columns \\(id\\)"),
        ('{"id": null}', "does not fit the table's columns \\(id string\\)"),
    ],
)
def test_invalid_keys(lake: Lake, text: str, why: str) -> None:
    _loaded(lake)
    shape = lake.tables.shape(NAME)
    assert shape is not None
    with pytest.raises(ConfigError, match=why):
        parse_key(text, shape)
