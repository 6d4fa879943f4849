"""`spark-sink verify --against checksums`: compare a table with the checksums that its source has sent."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from spark_sink.config.settings import Settings
from spark_sink.control_tables.batches import ControlTables
from spark_sink.errors import FatalError, Reason
from spark_sink.operations.applied_topic import AppliedTopic
from spark_sink.operations.checksum_runs import TABLE, ChecksumColumns, newest_run
from spark_sink.operations.checksums import LaterChanges, RunComparison
from spark_sink.operations.verify import ExpectedRows, Verified, after_batch
from spark_sink.schema.business_view import versions
from spark_sink.schema.evolution import TableShape
from spark_sink.tables.protocols import MirrorTable

if TYPE_CHECKING:
    from spark_sink.tables.formats import FormatTables

Cut = Mapping[str, Any]


class AgainstChecksums(NamedTuple):
    """The result of a comparison.

    Args:
        cut: the cut whose version of the table was compared.
        at: when the source computed the checksums.
        columns_left_out: the reason for each column that was not compared.
    """

    found: Verified
    cut: Cut
    at: datetime
    columns_left_out: Mapping[str, str]


def verify_checksums(
    loaded: Settings, tables: FormatTables, table: str, newest_cut: Callable[[], Cut], catch_up: Callable[[], bool]
) -> AgainstChecksums:
    """Compare a mirror with the newest checksums. If rows differ, compare again once the sink has caught up, because
    the checksums may arrive before earlier changes in other partitions.
    """
    result = _compared(loaded, tables, table, newest_cut())
    if result.found.is_equal and not result.found.inconclusive:
        return result
    is_settled = catch_up()
    result = _compared(loaded, tables, table, newest_cut())
    return result if is_settled else result._replace(found=_inconclusive(result.found))


def _inconclusive(found: Verified) -> Verified:
    differing = len(found.missing) + len(found.extra) + len(found.different) + len(found.duplicated) + len(found.ranges)
    return Verified(compared=found.compared, declared=found.declared, inconclusive=found.inconclusive + differing)


def _compared(loaded: Settings, tables: FormatTables, table: str, cut: Cut) -> AgainstChecksums:
    control = ControlTables(loaded.tables.warehouse, loaded.pipeline, "", loaded.input.topic)
    mirror = _mirror(loaded, tables, table, cut, control)
    source = mirror.shape.table
    ends = {int(partition): offset for partition, offset in cut["offsets"].items()}
    topic = AppliedTopic(loaded)
    run = newest_run(topic.changes(source._replace(table=TABLE), ends, lambda change, *_: change), source.table)
    if run is None:
        raise FatalError(
            f"{loaded.input.topic} has no checksums of {table}. Run the job that `spark-sink checksums` prints, and "
            f"replicate its table {TABLE} in the same task as the table"
        )
    if run.columns is None or not run.is_complete:
        return AgainstChecksums(Verified(inconclusive=max(1, run.total.rows)), cut, run.at, {})
    columns = run.columns.in_table(mirror.shape)
    expected = ExpectedRows(mirror.shape, control.erased_keys().get(table, {}))
    later = LaterChanges(run.places, expected)
    later.add(topic.changes(source, ends, expected.without_erased))
    comparison = RunComparison(
        mirror,
        run,
        columns,
        expected,
        later,
        complete=topic.is_complete,
        cuts_times=loaded.tables.rules.truncated_times,
    )
    return AgainstChecksums(comparison.result(), cut, run.at, _left_out(mirror.shape, run.columns))


def _mirror(loaded: Settings, tables: FormatTables, table: str, cut: Cut, control: ControlTables) -> MirrorTable:
    mirror = after_batch(tables, table, cut["tables"][table], control.apps(cut["checkpoint"]))
    if table in cut["parked"]:
        raise FatalError(_told_parked(table, cut["parked"][table]["reason"]))
    return mirror


def _told_parked(table: str, reason: str) -> str:
    lacks = "so it lacks events from before the checksums"
    if reason == Reason.RELOAD:
        command = f"spark-sink reload {shlex.quote(table)}"
        return f"{table} is being reloaded, {lacks}. Run `{command} end` or `{command} cancel` first"
    return f"{table} is parked, {lacks}. Resume it first"


def _left_out(shape: TableShape, columns: ChecksumColumns) -> dict[str, str]:
    compared = {name for name, _ in (*columns.key, *columns.values)}
    names = versions([one for one in shape.columns if one.name not in shape.foreign])
    return dict.fromkeys(sorted(names.keys() - compared), "not in the checksums")
