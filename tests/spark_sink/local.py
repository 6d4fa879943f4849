"""The parts of the sink that are Spark's, in this process over deltalake: decoding, running tasks, changing tables.

`tables/test_ddl_contract.py` and `events/test_local_decoding.py` hold them to Spark.
"""

from __future__ import annotations

import io
import json
import pickle
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import fastavro
import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable, Field, Schema
from deltalake.schema import ArrayType, DataType, PrimitiveType

from spark_sink.apply.worker import Task
from spark_sink.events import quarantine
from spark_sink.events.wire_format import PLAIN_FIELDS, WRITER_SCHEMA, datum
from spark_sink.schema.evolution import TableColumn, TableShape
from spark_sink.schema.table_naming import TableId, TablePattern
from spark_sink.table_report import TableReport
from spark_sink.tables.delta.control_tables import ParkedBook
from spark_sink.tables.delta.ddl import quarantine_properties, source_properties, table_properties
from spark_sink.tables.delta.open_table import location
from spark_sink.tables.meta_columns import OWN_COLUMNS
from spark_sink.tables.spark_operations import Order

# Spark refuses a column of a Delta table that has one of them in its name.
_INVALID = frozenset(" ,;{}()\n\t=")

# So many records a task gets at a time: routes are cut at any place.
_CHUNK = 7

_BATCH_ORDER, _TURN_ORDER = ("route", "partition", "offset"), ("turn", "partition", "offset")

# The words of the Delta log for types of Spark SQL; the others are the same.
_DELTA = {"tinyint": "byte", "smallint": "short", "int": "integer", "bigint": "long"}


def decode(
    records: pa.Table, pattern: TablePattern, *extra_columns: str, carried: Collection[str] | None = None
) -> pa.Table:
    """What `events.source.decoded` gives, in order of the records; `route` is that of `TablePattern.route_sql`."""
    rows = [_decoded(row["value"]) for row in records.to_pylist()]
    routes = [_route(row, pattern) for row in rows]
    needed = (
        value if row["kind"] is None or (row["kind"] == "row" and (carried is None or route in carried)) else None
        for value, row, route in zip(records.column("value").to_pylist(), rows, routes, strict=True)
    )
    columns: dict[str, Any] = {name: records.column(name) for name in ("partition", "offset", *extra_columns)}
    columns["value"] = pa.array(needed, pa.binary())
    columns |= {name: pa.array([row[name] for row in rows], pa.string()) for name in PLAIN_FIELDS}
    columns["withholds"] = pa.array([row["withholds"] for row in rows], pa.bool_())
    columns |= {name: pa.array([row[name] for row in rows], pa.int64()) for name in ("ts", "committed")}
    columns |= {"route": pa.array(routes, pa.string()), "bucket": pa.array([0] * len(rows), pa.int32())}
    return pa.table(columns)


def _decoded(value: bytes | None) -> Mapping[str, Any]:
    body = None if value is None else datum(value)
    try:
        event = None if body is None else fastavro.schemaless_reader(io.BytesIO(body), WRITER_SCHEMA, None)
    except (EOFError, ValueError, IndexError, TypeError, OverflowError, MemoryError):
        event = None
    if not isinstance(event, dict):
        return {**dict.fromkeys((*PLAIN_FIELDS, "ts", "committed")), "withholds": False}
    commit = event["ts_commit_us"]
    times = {"ts": event["ts_origin_us"], "committed": event["ts_origin_us"] if commit is None else commit}
    return {**{name: event[name] for name in PLAIN_FIELDS}, **times, "withholds": _withholds(event)}


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
    return (parts if renamed is None else renamed).lower()


class LocalRunner:
    """Runs tasks in this process, as a worker would get them: shipped there, and their records in pieces."""

    def batch(
        self,
        records: pa.Table,
        task: Task,
        carried: Collection[str],
        weights: Mapping[int, int],
        only: Collection[str] | None = None,
    ) -> list[TableReport]:
        events = decode(records, task.pattern, carried=carried)
        if only is not None:
            events = events.filter(pc.is_in(events.column("route"), pa.array(only, pa.string())))
        return _reports(events.sort_by([(name, "ascending") for name in _BATCH_ORDER]), task)

    def turns(self, parked: ParkedBook, target: str, first: int, last: int, task: Task) -> list[TableReport]:
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


class LocalDdl:
    """Changes tables as DeltaDdl does, through deltalake; it widens no types, which deltalake could not write."""

    def __init__(self, warehouse: str) -> None:
        self._warehouse = warehouse

    def create(self, name: str, shape: TableShape) -> str:
        present = self._spelled(name)
        if present is not None and present != name:
            return present
        self._create(name, {**shape.types, **OWN_COLUMNS[shape.mode]}, table_properties(shape))
        return name

    def add_columns(self, name: str, columns: Sequence[TableColumn]) -> None:
        table = DeltaTable(location(self._warehouse, name))
        properties = source_properties(columns)
        if properties:
            table.alter.set_table_properties(properties, raise_if_not_exists=False)
        table.alter.add_columns(_fields({column.name: column.type for column in columns}))

    def widen(self, name: str, columns: Sequence[TableColumn]) -> None:
        raise NotImplementedError("deltalake writes no table of widened types: such a test is Spark's")

    def create_quarantine(self) -> None:
        self._create(quarantine.NAME, quarantine.COLUMNS, quarantine_properties())

    def _create(self, name: str, columns: Mapping[str, str], properties: Mapping[str, str]) -> None:
        path = location(self._warehouse, name)
        DeltaTable.create(
            path, Schema(_fields(columns)), mode="ignore", configuration=properties, raise_if_key_not_exists=False
        )

    def _spelled(self, name: str) -> str | None:
        found = [(Path(self._warehouse), "")]
        for folder in name.split("."):
            inside = [(path, f"{spelled}.{path.name}" if spelled else path.name) for path, spelled in _children(found)]
            found = [(path, spelled) for path, spelled in inside if path.name.lower() == folder.lower()]
        tables = [spelled for path, spelled in found if (path / "_delta_log").exists()]
        return name if name in tables else next(iter(tables), None)


def _children(folders: Sequence[tuple[Path, str]]) -> Iterator[tuple[Path, str]]:
    for folder, spelled in folders:
        if folder.exists():
            yield from ((path, spelled) for path in sorted(folder.iterdir()))


def _fields(columns: Mapping[str, str]) -> list[Field]:
    refused = [name for name in columns if set(name) & _INVALID]
    if refused:
        raise ValueError(f"INVALID_CHARACTERS in column names: {refused}")
    return [Field(name, _type(sql)) for name, sql in columns.items()]


def _type(sql: str) -> DataType:
    if sql == "array<string>":
        return ArrayType(PrimitiveType("string"), contains_null=True)
    return PrimitiveType(_DELTA.get(sql, sql))


class NoOrders:
    """In the place of the writer of tables that Spark writes: here there are none."""

    def carry_out(self, orders: Mapping[str, Sequence[Order]]) -> Mapping[str, str]:
        assert not orders, "a table that Spark writes is Spark's to test"
        return {}

    def version(self, table: str) -> int:
        raise NotImplementedError("asked only after orders, and here there are none")

    def discard(self) -> None:
        pass
