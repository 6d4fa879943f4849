"""The state of a pipeline's tables, read only from the sink's own tables, without Spark and without source rows."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

from deltalake.exceptions import DeltaError

from cdc_core.table_id import TableId
from spark_sink.apply.existing_tables import other_layouts
from spark_sink.control_tables.batches import BatchTable
from spark_sink.control_tables.cut import fold, resume_offsets
from spark_sink.control_tables.requests import RequestTable
from spark_sink.control_tables.verified import VerifiedTable
from spark_sink.errors import ConfigError, FatalError
from spark_sink.events import parking, quarantine
from spark_sink.schema.table_naming import TablePattern
from spark_sink.tables.delta.control_tables import ParkedTables, rows_of
from spark_sink.tables.formats import FormatTables

# Most of the time that it takes to open a table is spent waiting for storage.
_LOOKS = 8


def cut(
    warehouse: str, pipeline: str, topic: str, keep_days: int, batch: int | None = None, checkpoint: str | None = None
) -> dict[str, Any]:
    """Return the cut after a batch; see spark_sink.control_tables.cut.

    Args:
        keep_days: the number of days for which a version stays readable after the next version was written. The next
            version is not earlier than the cut.
    """
    found = fold(BatchTable(warehouse, pipeline, "", topic).rows(), topic, batch, checkpoint)
    versions = {name: version for name, version in found.versions.items() if name != parking.NAME}
    parked: dict[str, Any] = {}
    at = found.versions.get(parking.NAME)
    if at is not None:
        control_table = ParkedTables(warehouse, pipeline)
        try:
            held, first = control_table.held(at), control_table.first_waiting(at)
        except (DeltaError, OSError) as error:
            raise FatalError(f"version {at} of {parking.NAME} is no longer readable: {error}") from None
        parked = {
            name: {
                "reason": cause.reason,
                "waiting": cause.events,
                "offsets": _by_partition(resume_offsets(found, first.get(name, {}))),
            }
            for name, cause in sorted(held.items())
        }
    return {
        "pipeline": pipeline,
        "checkpoint": found.checkpoint,
        "batch": found.batch,
        "ended_at": found.ended_at,
        "readable_until": found.ended_at + timedelta(days=keep_days),
        "topic": topic,
        "offsets": _by_partition(found.offsets),
        "tables": dict(sorted(versions.items())),
        "parked": parked,
    }


def _by_partition(offsets: Mapping[int, int]) -> dict[str, int]:
    return {str(partition): offset for partition, offset in sorted(offsets.items())}


def status(tables: FormatTables, pipeline: str, pattern: TablePattern) -> dict[str, Any]:
    """Return every table that is parked or that a batch has written, and the newest batch. Times are in UTC."""
    warehouse = tables.warehouse
    batches = BatchTable(warehouse, pipeline, "", "")
    written = batches.read(["batch", "checkpoint", "ended_at", "versions"]).sort_by("ended_at").to_pylist()
    held = ParkedTables(warehouse, pipeline).held()
    broken = Counter((row["target"], row["reason"]) for row in quarantined(warehouse, pattern))
    versions: dict[str, int] = {}
    for row in written:
        versions |= {name: version for name, version in row["versions"] if name != parking.NAME}
    names = sorted({*versions, *held, *(target for target, _ in broken if target)})
    standings = VerifiedTable(warehouse, pipeline).standings()
    beside, laid_out = _columns_beside(tables, versions), other_layouts(versions, tables)
    return {
        "pipeline": pipeline,
        "last_batch": next(({**row, "versions": None} for row in reversed(written) if row["batch"] is not None), None),
        "tables": [
            {
                "table": name,
                "version": versions.get(name),
                "parked": held[name].reason if name in held else None,
                "detail": held[name].detail if name in held else None,
                "since": datetime.fromtimestamp(held[name].since / 1e6, UTC) if name in held else None,
                "waiting": held[name].events if name in held else 0,
                "beside": beside.get(name, {}),
                "layout": laid_out.get(name, []),
                "quarantined": {reason: count for (target, reason), count in sorted(broken.items()) if target == name},
                "verified": {
                    last.against: {
                        **last._asdict(),
                        "verified_through": verified.through if verified else None,
                        "conclusive": {"at": conclusive.at, "differing": conclusive.differing} if conclusive else None,
                    }
                    for last, verified, conclusive in standings
                    if last.table == name
                },
            }
            for name in names
        ],
        "no_table": {reason: count for (target, reason), count in sorted(broken.items()) if not target},
        "open_commands": [
            f"{request.command} {request.target}: {request.state}"
            for request in RequestTable(warehouse, pipeline).requests()
            if not request.ended
        ],
    }


def newest_batches(warehouse: str, pipeline: str, most: int) -> list[dict[str, Any]]:
    """Return the last batches, newest first, each with its end time, applied offsets and table versions."""
    columns = ["batch", "checkpoint", "ended_at", "from_offsets", "to_offsets", "versions"]
    written = BatchTable(warehouse, pipeline, "", "").read(columns).sort_by([("ended_at", "descending")])
    return [
        {
            "batch": row["batch"],
            "checkpoint": row["checkpoint"],
            "ended_at": row["ended_at"],
            "offsets": {
                str(partition): [dict(row["from_offsets"]).get(partition), end] for partition, end in row["to_offsets"]
            },
            "tables": {name: version for name, version in sorted(row["versions"]) if name != parking.NAME},
        }
        for row in written.slice(0, most).to_pylist()
    ]


def _columns_beside(tables: FormatTables, names: Collection[str]) -> dict[str, dict[str, str]]:
    """Return, for each table, the columns that were added with a suffix, each with the name of its source column."""

    def of(name: str) -> dict[str, str]:
        try:
            shape = tables.shape(name)
        except Exception:
            return {}  # the problem is reported when the table is written
        return {column.name: column.sent_as for column in shape.columns if column.is_version} if shape else {}

    with ThreadPoolExecutor(_LOOKS) as pool:
        return dict(zip(names, pool.map(of, names), strict=True))


def check_name(tables: FormatTables, pipeline: str, pattern: TablePattern, name: str) -> None:
    """Make sure that a command can address a table.

    Raises:
        ConfigError: no table has this name, and no events are parked under this name.
    """
    held = ParkedTables(tables.warehouse, pipeline).held()
    names = BatchTable(tables.warehouse, pipeline, "", "").tables() | held.keys()
    if name in names or ("/" not in name and tables.exists(name)):
        return
    waiting = [other for other, cause in held.items() if name in map(pattern.target, cause.sources)]
    near = waiting or difflib.get_close_matches(name, names, n=1)
    hint = f" (did you mean {near[0]}?)" if near else ""
    raise ConfigError(f"table {name!r} does not exist{hint}; `spark-sink status` lists all tables")


def quarantined(warehouse: str, pattern: TablePattern) -> Iterator[dict[str, Any]]:
    """Return the events in quarantine, without their records. `target` is the table for which an event was intended."""
    names = [name for name in quarantine.COLUMNS if name != "value"]
    for row in rows_of(warehouse, quarantine.NAME, names):
        source = TableId(row["source"], row["db"], row["schema"], row["table"])
        yield {**row, "target": pattern.target(source) if row["table"] is not None else ""}
