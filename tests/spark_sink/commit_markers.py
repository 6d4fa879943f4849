"""Read the markers of a table's commits in any format, to detect commits that were made twice."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from pyiceberg.table import StaticTable
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Operation

from spark_sink.tables.iceberg.open_table import MARKERS_PROPERTY, ancestors

# Kinds of Iceberg snapshots that change no row.
_NO_CHANGE = (Operation.REPLACE,)


def is_iceberg(folder: Path) -> bool:
    return (folder / "metadata").is_dir()


def commit_markers(folder: Path) -> list[tuple[str, int]]:
    """Return the app and version of each commit with a marker, in order, without the sink's own (`cdc.`)."""
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
    """A snapshot carries all markers so far, and its own is the one that its parent lacks. A snapshot that changes rows
    but adds no marker repeats an existing one, which is therefore reported again.
    """
    before: dict[str, int] = {}
    for snapshot in reversed(list(ancestors(metadata))):
        summary = snapshot.summary
        told = None if summary is None else summary.get(MARKERS_PROPERTY)
        if summary is None or told is None or summary.operation in _NO_CHANGE:
            continue
        markers: dict[str, int] = json.loads(told)
        yield from (markers.items() - before.items()) or markers.items()
        before = markers
