"""The markers that the commits of a table carry, whatever its format: what was committed twice is told by them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from pyiceberg.table import StaticTable
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Operation

from spark_sink.tables.iceberg.open_table import MARKERS_PROPERTY, ancestors

# Iceberg's kinds of snapshots in which no row changes.
_NO_CHANGE = (Operation.REPLACE,)


def is_iceberg(folder: Path) -> bool:
    return (folder / "metadata").is_dir()


def commit_markers(folder: Path) -> list[tuple[str, int]]:
    """App and version of each commit that has one, in their order; not those of the sink's own (`cdc.`)."""
    if is_iceberg(folder):
        return list(of_snapshots(StaticTable.from_metadata(str(folder)).metadata))
    return list(_of_delta(folder))


def _of_delta(folder: Path) -> Iterator[tuple[str, int]]:
    for path in sorted((folder / "_delta_log").glob("*.json")):
        for line in path.read_text(encoding="utf-8").splitlines():
            mark = json.loads(line).get("txn")
            if mark is not None and not mark["appId"].startswith("cdc."):
                yield mark["appId"], mark["version"]


def of_snapshots(metadata: TableMetadata) -> Iterator[tuple[str, int]]:
    """A snapshot carries the markers of all works: its own is the one that its parent does not have. One that changes
    rows and has none of its own was made for a marker that was there already: it is told again."""
    before: dict[str, int] = {}
    for snapshot in reversed(list(ancestors(metadata))):
        summary = snapshot.summary
        told = None if summary is None else summary.get(MARKERS_PROPERTY)
        if summary is None or told is None or summary.operation in _NO_CHANGE:
            continue
        markers: dict[str, int] = json.loads(told)
        yield from (markers.items() - before.items()) or markers.items()
        before = markers
