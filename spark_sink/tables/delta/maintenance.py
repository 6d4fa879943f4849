"""Maintain the files in Delta tables, through deltalake."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from spark_sink.schema.engine_choice import FUSED_FEATURES
from spark_sink.tables.delta.open_table import REMEMBERED_PROPERTY, storage_of
from spark_sink.tables.delta.tables import features_of
from spark_sink.tables.locations import location
from spark_sink.tables.maintenance import Compacted, MaintenanceError, TableFiles, target_of
from spark_sink.tables.table_properties import layout_from

# https://github.com/delta-io/delta/blob/master/PROTOCOL.md#last-checkpoint-file
_LAST_CHECKPOINT = "_delta_log/_last_checkpoint"

# The default if a table does not set it; https://docs.delta.io/latest/table-properties.html
_REMEMBERED_DAYS = 7.0

_UNITS = {"week": 7.0, "day": 1.0, "hour": 1 / 24, "minute": 1 / 1440, "second": 1 / 86_400}

_INTERVAL = re.compile(rf"interval (\d+) ({'|'.join(_UNITS)})s?")


class DeltaMaintenance:
    """Maintains the Delta tables in a warehouse.

    Vacuum needs no list of versions to keep: it keeps every file that was part of the table within the retention
    period. It removes only files that the log lists, because a table's folder may contain another table.
    """

    def __init__(self, warehouse: str) -> None:
        self._warehouse = warehouse

    def files(self, name: str) -> TableFiles | None:
        with maintaining(name):
            try:
                table = self._open(name)
            except TableNotFoundError:
                return None
            actions = pa.table(table.get_add_actions())
            sizes = actions.column("size_bytes").to_pylist()
            parted = table.metadata().partition_columns
            partitions = _partitions(actions) if parted else ()
            version = table.version()
            foreign = tuple(sorted(features_of(table) - FUSED_FEATURES))
            remembered = _days(table.metadata().configuration.get(REMEMBERED_PROPERTY))
            created_ms = table.metadata().created_time
            created = None if created_ms is None else created_ms / 1000
            target = target_of(layout_from(table.metadata().configuration))
            unsaved = version - _checkpointed(table)
            return TableFiles(version, sizes, unsaved, remembered, foreign, partitions, created, target)

    def compact(self, name: str, target_bytes: int) -> Compacted:
        with maintaining(name):
            done = self._open(name).optimize.compact(target_size=target_bytes)
        return Compacted(done["numFilesRemoved"], done["numFilesAdded"])

    def checkpoint(self, name: str) -> None:
        with maintaining(name):
            table = self._open(name)
            table.create_checkpoint()
            table.cleanup_metadata()  # the log need not keep commits that the checkpoint includes

    def remember(self, name: str, days: int) -> None:
        with maintaining(name):
            self._open(name).alter.set_table_properties({REMEMBERED_PROPERTY: f"interval {days} days"})

    def vacuum(self, name: str, days: float) -> int:
        with maintaining(name):
            # The retention check is disabled, because the property is deliberately longer than this time, so that a
            # vacuum finds the files to delete.
            hours = int(timedelta(days=days) / timedelta(hours=1))
            return len(self._open(name).vacuum(hours, dry_run=False, enforce_retention_duration=False))

    def _open(self, name: str) -> DeltaTable:
        return DeltaTable(location(self._warehouse, name))


@contextmanager
def maintaining(name: str) -> Iterator[None]:
    """Convert errors from deltalake and its storage to MaintenanceError."""
    try:
        yield
    except (DeltaError, OSError) as error:
        raise MaintenanceError(f"{name}: {str(error).strip().partition(chr(10))[0]}") from error


def _partitions(actions: pa.Table) -> list[str]:
    """Return the partition of each file. Dates are numbers, because Python lacks some of them."""
    values = actions.column("partition").combine_chunks().flatten()
    columns = [one.cast(pa.int32()) if pa.types.is_date32(one.type) else one for one in values]
    columns = [one.cast(pa.int64()) if pa.types.is_timestamp(one.type) else one for one in columns]
    return [str(row) for row in zip(*(column.to_pylist() for column in columns), strict=True)]


def _checkpointed(table: DeltaTable) -> int:
    """Return the version of the last checkpoint. If none exists, return -1, because version 0 is also a commit."""
    storage = storage_of(table)
    try:
        with storage.open_input_file(_LAST_CHECKPOINT) as file:
            return int(json.loads(file.read())["version"])
    except FileNotFoundError:
        return -1


def _days(interval: str | None) -> float:
    """Return the number of days in a string such as `interval 2 weeks`, or the default for any other format."""
    found = _INTERVAL.fullmatch((interval or "").lower())
    return int(found[1]) * _UNITS[found[2]] if found else _REMEMBERED_DAYS
