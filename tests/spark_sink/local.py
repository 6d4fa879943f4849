"""The parts of the sink that use Spark, in this process: decoding, which `events/test_local_decoding.py` compares with
Spark, and running tasks. There is no replacement for what only Spark can do to tables.
"""

from __future__ import annotations

import io
import json
import pickle
from collections.abc import Collection, Mapping, Sequence
from contextlib import nullcontext
from threading import Lock
from typing import Any

import fastavro
import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable

from cdc_core.table_id import TableId
from cdc_core.wire_format import WRITER_SCHEMA, datum
from spark_sink.apply.worker import Task
from spark_sink.events import event_columns
from spark_sink.events.wire_format import PLAIN_FIELDS
from spark_sink.schema.evolution import TableColumn
from spark_sink.schema.layout import NO_LAYOUTS, FileLayout, FileLayouts
from spark_sink.schema.table_naming import TablePattern
from spark_sink.table_report import TableReport
from spark_sink.tables.delta import rows as delta_rows
from spark_sink.tables.delta.control_tables import ParkedTables
from spark_sink.tables.delta.ddl import DeltaDdl
from spark_sink.tables.spark_operations import Order

# Number of records that a task gets at a time, so that routes are split anywhere.
_CHUNK = 7

_BATCH_ORDER, _TURN_ORDER = ("route", "partition", "offset"), ("turn", "partition", "offset")


def decode(
    records: pa.Table, pattern: TablePattern, *extra_columns: str, carried: Collection[str] | None = None
) -> pa.Table:
    """Return what `events.source.decoded` returns, in record order. `route` is that of `TablePattern.route_sql`."""
    rows = [_decoded(row["value"]) for row in records.to_pylist()]
    routes = [_route(row, pattern) for row in rows]
    needed = (
        value
        if row["kind"] is None
        or ((row["kind"] == "row" or row["notes"] is not None) and (carried is None or route in carried))
        else None
        for value, row, route in zip(records.column("value").to_pylist(), rows, routes, strict=True)
    )
    columns: dict[str, Any] = {name: records.column(name) for name in ("partition", "offset", *extra_columns)}
    columns["value"] = pa.array(needed, pa.binary())
    columns |= {name: pa.array([row[name] for row in rows], pa.string()) for name in PLAIN_FIELDS}
    columns["notes"] = pa.array([row["notes"] for row in rows], pa.string())
    columns["withholds"] = pa.array([row["withholds"] for row in rows], pa.bool_())
    columns |= {name: pa.array([row[name] for row in rows], pa.int64()) for name in ("ts", "committed")}
    columns["tx"] = pa.array([row["tx"] for row in rows], pa.string())
    columns |= {"route": pa.array(routes, pa.string()), "bucket": pa.array([0] * len(rows), pa.int32())}
    return pa.table(columns)


def _decoded(value: bytes | None) -> Mapping[str, Any]:
    body = None if value is None else datum(value)
    try:
        event = None if body is None else fastavro.schemaless_reader(io.BytesIO(body), WRITER_SCHEMA, None)
    except (EOFError, ValueError, IndexError, TypeError, OverflowError, MemoryError):
        event = None
    if not isinstance(event, dict):
        return {**dict.fromkeys((*PLAIN_FIELDS, "notes", "ts", "committed", "tx")), "withholds": False}
    times = {"ts": event["ts_origin_us"], "committed": event["ts_commit_us"]}
    notes = event["notes"] if event["kind"] == "schema" else None
    told = {"notes": None if notes is None else msgspec.json.encode(notes).decode(), "withholds": _withholds(event)}
    tx = None if event["tx"] is None else event["tx"]["id"]
    return {**{name: event[name] for name in PLAIN_FIELDS}, **times, **told, "tx": tx}


def _withholds(event: Mapping[str, Any]) -> bool:
    if event["unavailable"] is None and event["issues"] is None:
        return False
    if event["op"] != "u":
        return True
    names = [*(event["unavailable"] or ()), *(issue["col"] for issue in event["issues"] or ())]
    sent = json.loads(event["after"] or "{}")
    return any(name not in sent and (event["changed"] is None or name in event["changed"]) for name in names)


def _route(event: Mapping[str, Any], pattern: TablePattern) -> str:
    if event["table"] is None:
        return ""
    table = TableId(event["source"], event["db"], event["schema"], event["table"])
    renamed = next((name for wanted, name in pattern.renamed if table.fits(wanted)), None)
    parts = "".join(literal + part for literal, field in pattern.parts if (part := event[field]) is not None)
    return (parts.lstrip(".") if renamed is None else renamed).lower()


class _AsIfLarge:
    """Treat small tables and small batches like large ones, until the last of the batches that want it ends.

    Two batches can run at once. If each of them restored what it had found, the second would restore what the first
    one set.
    """

    def __init__(self) -> None:
        self._lock, self._batches, self._patch = Lock(), 0, pytest.MonkeyPatch()

    def __enter__(self) -> None:
        with self._lock:
            self._batches += 1
            if self._batches == 1:
                self._patch.setattr(delta_rows, "SMALL", -1)
                self._patch.setattr(event_columns, "FEW", 0)

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._batches -= 1
            if not self._batches:
                self._patch.undo()


_AS_IF_LARGE = _AsIfLarge()


class LocalRunner:
    """Run tasks in this process as a worker would: serialized, and with their records in pieces.

    Small tables and small batches have ways of their own, so every second batch treats them like large ones.
    """

    def batch(
        self,
        records: pa.Table,
        task: Task,
        carried: Collection[str],
        weights: Mapping[int, int],
        only: Collection[str] | None = None,
    ) -> list[TableReport]:
        with nullcontext() if task.batch % 2 else _AS_IF_LARGE:
            return self._batch(records, task, carried, only)

    def _batch(
        self, records: pa.Table, task: Task, carried: Collection[str], only: Collection[str] | None
    ) -> list[TableReport]:
        events = decode(records, task.pattern, carried=carried)
        if only is not None:
            events = events.filter(pc.is_in(events.column("route"), pa.array(only, pa.string())))
        return _reports(events.sort_by([(name, "ascending") for name in _BATCH_ORDER]), task)

    def turns(self, parked: ParkedTables, target: str, first: int, last: int, task: Task) -> list[TableReport]:
        names = ["pipeline", "target", "turn", "value", "kafka_partition", "kafka_offset"]
        rows = DeltaTable(parked.path).to_pyarrow_table(columns=names).to_pylist()
        mine = [
            {"turn": row["turn"], "value": row["value"], "partition": row["kafka_partition"], "offset": offset}
            for row in rows
            if (offset := row["kafka_offset"]) is not None
            and (row["pipeline"], row["target"]) == (parked.pipeline, target)
            if first <= row["turn"] <= last
        ]
        types = {"turn": pa.int64(), "value": pa.binary(), "partition": pa.int32(), "offset": pa.int64()}
        waiting = pa.Table.from_pylist(mine, pa.schema(types.items()))
        events = decode(waiting, task.pattern, "turn").sort_by([(name, "ascending") for name in _TURN_ORDER])
        turns = events.column("turn").cast(pa.string())
        return _reports(events.set_column(events.column_names.index("route"), "route", turns), task)


def _reports(events: pa.Table, task: Task) -> list[TableReport]:
    shipped: Task = pickle.loads(pickle.dumps(task))
    answers = shipped(iter(events.to_batches(max_chunksize=_CHUNK)))
    return [msgspec.msgpack.decode(row, type=TableReport) for batch in answers for row in batch.column(0).to_pylist()]


class NoAlterations:
    """A replacement for the changes that Spark makes to tables, which does nothing."""

    def add_columns(self, name: str, columns: Sequence[TableColumn]) -> None:
        raise NotImplementedError("deltalake does not add them exactly: such a test is Spark's")

    def create(self, name: str, columns: Mapping[str, str], properties: Mapping[str, str], layout: FileLayout) -> None:
        raise NotImplementedError("deltalake does not write such a table: such a test is Spark's")

    def replace(self, name: str, columns: Mapping[str, str], properties: Mapping[str, str], layout: FileLayout) -> None:
        raise NotImplementedError("deltalake does not write such a table: such a test is Spark's")

    def set_properties(self, name: str, properties: Mapping[str, str]) -> None:
        raise NotImplementedError("deltalake does not set them exactly: such a test is Spark's")

    def widen(self, name: str, columns: Sequence[TableColumn], *, rewrites: bool = False) -> None:
        raise NotImplementedError("deltalake writes no table of widened types: such a test is Spark's")


def local_ddl(warehouse: object, layouts: FileLayouts = NO_LAYOUTS) -> DeltaDdl:
    """Return what creates and changes the tables of a warehouse without Spark."""
    return DeltaDdl(str(warehouse), NoAlterations(), layouts)


class NoOrders:
    """A replacement for the writer of Spark's tables, which writes nothing."""

    def carry_out(self, orders: Mapping[str, Sequence[Order]]) -> Mapping[str, str]:
        assert not orders, "a table that Spark writes is Spark's to test"
        return {}

    def version(self, table: str) -> int:
        raise NotImplementedError("asked only after orders, and here there are none")

    def discard(self) -> None:
        pass
