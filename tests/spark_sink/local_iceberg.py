"""Iceberg tables without Spark: their catalog is an SQLite file, and pyiceberg executes the orders by writing the whole
table again.

`tables/test_contract.py` holds this writer to the one on Spark. It does not notice concurrent writers, so tests with
several writers need Spark.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import SecretStr
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.table import Table
from pyiceberg.transforms import BucketTransform

from spark_sink.config.iceberg_catalog import CatalogAccess, CatalogType, IcebergCatalog
from spark_sink.config.table_rules import TableRules
from spark_sink.schema.column_types import arrow_type
from spark_sink.schema.evolution import TableColumn, TableShape
from spark_sink.schema.table_spec import Format, match_rule
from spark_sink.tables.changes import Marker
from spark_sink.tables.formats import FormatDdl, FormatTables
from spark_sink.tables.iceberg.ddl import creation_properties
from spark_sink.tables.iceberg.file_layout import bucket_column
from spark_sink.tables.iceberg.open_table import commit_properties, stored_type, types_of
from spark_sink.tables.meta_columns import (
    COMMIT_TS,
    CURRENT,
    DELETED_AT,
    END_OP,
    END_POS,
    END_SCOPE,
    END_TS,
    INCOMPLETE,
    POS,
    SCOPE,
    STATE,
    UPDATED_AT,
    new_columns,
)
from spark_sink.tables.protocols import TableDdl
from spark_sink.tables.spark_operations import (
    GONE,
    WRITTEN,
    Clear,
    CloseVersions,
    Merge,
    Order,
    OrderRunner,
    RaiseFloors,
    RemoveDeleted,
    Retire,
    SetProperties,
)
from spark_sink.tables.table_properties import FLOORS_PROPERTY, added_properties, is_of_source, missing_columns
from tests.spark_sink.lake import Lake
from tests.spark_sink.local import local_ddl

# pyiceberg writes tables of this format version.
_FORMAT_VERSION = 2

# pyiceberg does not delete single rows of a file.
_WHOLE_FILES = {"write.delete.mode": "copy-on-write"}

Row = dict[str, Any]


def sqlite_access(warehouse: Path) -> CatalogAccess:
    """Return the configuration of a catalog in a file of the warehouse."""
    uri = f"sqlite:///{warehouse / 'catalog.db'}"
    properties = {"type": "sql", "uri": uri, "warehouse": str(warehouse)}
    given = {name: SecretStr(value) for name, value in properties.items()}
    return IcebergCatalog(type=CatalogType.OTHER, properties=given).access(str(warehouse), {}, {})


class LocalCreation:
    """Creates and changes the Iceberg tables of a warehouse."""

    def __init__(self, tables: FormatTables) -> None:
        self._tables = tables

    def create(self, name: str, shape: TableShape) -> str:
        known = self._tables.iceberg_catalog
        present = known.spelled(name)
        if present is not None:
            return present
        *spaces, _ = known.path(name)[1:]
        for parts in range(len(spaces)):
            self._catalog.create_namespace_if_not_exists(tuple(spaces[: parts + 1]))
        schema = pa.schema([(column, stored_type(sql)) for column, sql in new_columns(shape).items()])
        table = self._catalog.create_table(
            known.path(name)[1:],
            schema,
            f"{self._tables.warehouse}/{'/'.join(name.split('.'))}",
            properties={**creation_properties(shape, _FORMAT_VERSION), **_WHOLE_FILES},
        )
        buckets, column = match_rule(name, self._tables.buckets), bucket_column(shape)
        if buckets is not None and column is not None:
            with table.update_spec() as update:
                update.add_field(column, BucketTransform(buckets), f"{column}_bucket")
        return name

    def replace(self, name: str, shape: TableShape) -> str:
        raise NotImplementedError("pyiceberg replaces no table in one commit: such a test is Spark's")

    def add_columns(self, name: str, columns: Sequence[TableColumn]) -> None:
        table = _loaded(self._tables, name)
        present = types_of(table.metadata)
        properties = added_properties(table.properties, present, columns)
        with table.transaction() as transaction:
            if properties:
                transaction.set_properties(properties)
            with transaction.update_schema() as update:
                *_, last = filter(is_of_source, present)
                for column in missing_columns(name, present, columns):
                    update.union_by_name(pa.schema([(column.name, arrow_type(column.type))]))
                    if is_of_source(column.name):
                        update.move_after(column.name, last)
                        last = column.name

    def widen(self, name: str, columns: Sequence[TableColumn], *, rewrites: bool = False) -> None:
        with _loaded(self._tables, name).update_schema() as update:
            for column in columns:
                update.union_by_name(pa.schema([(column.name, arrow_type(column.type))]))

    def set_properties(self, name: str, properties: Mapping[str, str]) -> None:
        _set(_loaded(self._tables, name), properties)

    @property
    def _catalog(self) -> Catalog:
        access = self._tables.catalog
        assert access is not None
        return load_catalog(access.name, **access.reader)


class LocalWriter:
    """Executes orders for Iceberg tables."""

    def __init__(self, tables: FormatTables) -> None:
        self._tables = tables

    def carry_out(self, orders: Mapping[str, Sequence[Order]]) -> Mapping[str, str]:
        for name, ordered in orders.items():
            for order in ordered:
                self._do(name, order)
        return {}

    def version(self, table: str) -> int:
        opened = self._tables.open(table)
        return 0 if opened is None else opened.version

    def discard(self) -> None:
        """Keep the staged files, which end with the warehouse."""

    def _do(self, name: str, order: Order) -> None:
        table = _loaded(self._tables, name)
        change = partial(_rewrite, table)
        match order:
            case RaiseFloors(floors):
                _set(table, {FLOORS_PROPERTY: json.dumps(floors, sort_keys=True)})
            case SetProperties(properties):
                _set(table, properties)
            case Merge():
                self._merge(table, order)
            case Clear(floors, marker):
                change([marker], lambda row: None if _is_under(row, floors) else row)
            case Retire(floors, deletion, marker):
                gone = dict(zip((DELETED_AT, COMMIT_TS, UPDATED_AT), map(_time, deletion), strict=True))
                ended = {**gone, STATE: None, INCOMPLETE: False}
                change([marker], lambda row: row | ended if _is_under(row, floors) and not row[DELETED_AT] else row)
            case CloseVersions(floors, at, marker):
                change([marker], lambda row: row | _end(row, floors, at) if _is_under(row, floors) else row)
            case RemoveDeleted(marker):
                change([marker], lambda row: None if row[DELETED_AT] else row)

    def _merge(self, table: Table, order: Merge) -> None:
        staging = self._tables.staging
        staged = pq.read_table(f"{staging.warehouse}/{staging.folder}/{order.path}").to_pylist()
        if order.at is not None:
            staged = [row | {UPDATED_AT: _time(order.at)} for row in staged]
        markers = () if order.marker is None else (order.marker, *order.others)
        if order.inserts_only:
            _commit(table, staged, markers, order.summary, adds=True)
            return
        rows = {tuple(row[name] for name in order.key): row for row in table.scan().to_arrow().to_pylist()}
        for new in staged:
            key = tuple(new[name] for name in order.key)
            if order.deletes and new[GONE]:
                rows.pop(key, None)
                continue
            old = rows.setdefault(key, {})
            old |= {name: value for name, value in new.items() if new.get(WRITTEN + name, True)}
        _commit(table, [*rows.values()], markers, order.summary)


class LocalIcebergLake(Lake):
    """The sink without Spark, with Iceberg tables."""

    def __init__(self, warehouse: Path) -> None:
        super().__init__(warehouse)
        self.catalog_of = sqlite_access
        self.catalog = sqlite_access(warehouse)
        self.formats = {"*": Format.ICEBERG}
        self.use(TableRules())

    def _ddl(self) -> TableDdl:
        tables = self._tables("")
        return FormatDdl(tables, local_ddl(self.warehouse), LocalCreation(tables))

    def _writer(self) -> OrderRunner:
        return LocalWriter(self.tables)


def _loaded(tables: FormatTables, name: str) -> Table:
    table = tables.iceberg_catalog.load(name)
    assert table is not None
    return table


def _set(table: Table, properties: Mapping[str, str]) -> None:
    with table.transaction() as transaction:
        transaction.set_properties(dict(properties))


def _rewrite(table: Table, markers: Sequence[Marker], change: Callable[[Row], Row | None]) -> None:
    """Replace each row with the result of the change, or remove the row if the result is None."""
    changed = map(change, table.scan().to_arrow().to_pylist())
    _commit(table, [row for row in changed if row is not None], markers, {})


def _commit(
    table: Table, rows: Sequence[Row], markers: Sequence[Marker], summary: Mapping[str, str], *, adds: bool = False
) -> None:
    properties = commit_properties(table.metadata, markers, summary)
    if properties is None:
        return
    named = [{name: row.get(name) for name in table.schema().column_names} for row in rows]
    stored = pa.Table.from_pylist(named, table.schema().as_arrow())
    if adds:
        table.append(stored, properties)
    else:
        table.overwrite(stored, snapshot_properties=properties)


def _is_under(row: Row, floors: Mapping[str, str]) -> bool:
    floor = floors.get(row[SCOPE])
    return floor is not None and row[POS] <= floor


def _end(row: Row, floors: Mapping[str, str], at: int) -> Row:
    if not row[CURRENT]:
        return {}
    return {END_OP: "t", END_SCOPE: row[SCOPE], END_POS: floors[row[SCOPE]], END_TS: _time(at), CURRENT: False}


def _time(micros: int | None) -> Any:
    return None if micros is None else pa.scalar(micros, pa.timestamp("us", "UTC")).as_py()
