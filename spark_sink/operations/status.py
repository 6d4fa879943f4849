"""Read the state of a pipeline's tables from the sink's own tables, without Spark and without source rows."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any, TypedDict

from deltalake.exceptions import DeltaError

from cdc_core.table_id import TableId
from spark_sink.apply.existing_tables import other_layouts
from spark_sink.control_tables.batches import BatchTable
from spark_sink.control_tables.cut import fold, resume_offsets
from spark_sink.control_tables.requests import RequestTable
from spark_sink.control_tables.verified import Verification, VerifiedTable
from spark_sink.errors import ConfigError, FatalError
from spark_sink.events import parking, quarantine
from spark_sink.schema.table_naming import TablePattern
from spark_sink.tables.delta.control_tables import ParkedTables, rows_of
from spark_sink.tables.formats import FormatTables

# Most of the time that it takes to open a table is spent waiting for storage.
_LOOKS = 8


class ParkedInCut(TypedDict):
    """A parked table in a cut, with the offsets from which a reader continues for this table."""

    reason: str
    waiting: int
    offsets: dict[str, int]


class CutReport(TypedDict):
    """The output of `spark-sink cut`."""

    pipeline: str
    checkpoint: str
    batch: int
    ended_at: datetime
    readable_until: datetime
    topic: str
    offsets: dict[str, int]
    tables: dict[str, int]
    parked: dict[str, ParkedInCut]


class ConclusionStatus(TypedDict):
    """A comparison that could decide. `differing` is the number of rows that differ."""

    at: datetime
    differing: int


class VerificationStatus(TypedDict):
    """The last verification of a table against one source; see `spark_sink.control_tables.verified`."""

    table: str
    against: str
    at: datetime
    batch: int
    through: datetime | None
    compared: int
    differing: int | None
    left_out: int
    verified_through: datetime | None
    conclusive: ConclusionStatus | None


class TableStatus(TypedDict):
    """A table that is parked or that a batch has written."""

    table: str
    version: int | None
    parked: str | None
    detail: str | None
    since: datetime | None
    waiting: int
    beside: dict[str, str]
    layout: list[str]
    quarantined: dict[str, int]
    verified: dict[str, VerificationStatus]


class LastBatch(TypedDict):
    """The newest batch."""

    batch: int
    checkpoint: str
    ended_at: datetime


class StatusReport(TypedDict):
    """The output of `spark-sink status --json`."""

    pipeline: str
    last_batch: LastBatch | None
    tables: list[TableStatus]
    no_table: dict[str, int]
    open_commands: list[str]
    excluded: list[str]


class BatchReport(TypedDict):
    """A line of `spark-sink batches --json`. Without a number, it is a change between two batches."""

    batch: int | None
    checkpoint: str
    ended_at: datetime
    offsets: dict[str, tuple[int | None, int]]
    tables: dict[str, int]


def cut(
    warehouse: str, pipeline: str, topic: str, keep_days: int, batch: int | None = None, checkpoint: str | None = None
) -> CutReport:
    """Return the cut after a batch; see spark_sink.control_tables.cut.

    Args:
        keep_days: the number of days for which a version stays readable after the next one was written. The next
            version is never earlier than the cut.
    """
    found = fold(BatchTable(warehouse, pipeline, "", topic).rows(), topic, batch, checkpoint)
    versions = {name: version for name, version in found.versions.items() if name != parking.NAME}
    parked: dict[str, ParkedInCut] = {}
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


QUARANTINE_COLUMNS = tuple(name for name in quarantine.COLUMNS if name != "value")
"""The fields of `spark-sink quarantine ls --json`, in addition to `target`. `value` is row data."""


def _by_partition(offsets: Mapping[int, int]) -> dict[str, int]:
    return {str(partition): offset for partition, offset in sorted(offsets.items())}


def status(tables: FormatTables, pipeline: str, pattern: TablePattern, excluded: Sequence[str] = ()) -> StatusReport:
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
    last: LastBatch | None = None
    for row in written:
        if row["batch"] is not None:
            last = {"batch": row["batch"], "checkpoint": row["checkpoint"], "ended_at": row["ended_at"]}
    return {
        "pipeline": pipeline,
        "last_batch": last,
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
                        "table": last.table,
                        "against": last.against,
                        "at": last.at,
                        "batch": last.batch,
                        "through": last.through,
                        "compared": last.compared,
                        "differing": last.differing,
                        "left_out": last.left_out,
                        "verified_through": verified.through if verified else None,
                        "conclusive": _conclusion(conclusive),
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
        "excluded": list(excluded),
    }


def _conclusion(found: Verification | None) -> ConclusionStatus | None:
    return None if found is None or found.differing is None else {"at": found.at, "differing": found.differing}


def newest_batches(warehouse: str, pipeline: str, most: int) -> list[BatchReport]:
    """Return the last batches, newest first, each with its end time, the offsets that it applied, and the table
    versions.
    """
    columns = ["batch", "checkpoint", "ended_at", "from_offsets", "to_offsets", "versions"]
    written = BatchTable(warehouse, pipeline, "", "").read(columns).sort_by([("ended_at", "descending")])
    return [
        {
            "batch": row["batch"],
            "checkpoint": row["checkpoint"],
            "ended_at": row["ended_at"],
            "offsets": {
                str(partition): (dict(row["from_offsets"]).get(partition), end) for partition, end in row["to_offsets"]
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
    """Raise an error unless a command can refer to this table.

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
    """Return the events in quarantine, without their records. `target` is the table that an event was meant for."""
    for row in rows_of(warehouse, quarantine.NAME, QUARANTINE_COLUMNS):
        source = TableId(row["source"], row["db"], row["schema"], row["table"])
        yield {**row, "target": pattern.target(source) if row["table"] is not None else ""}
