"""`spark-sink verify`: compare a table with the canonical topic, or with its source."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NotRequired, TypedDict

import click
import msgspec

from cdc_core.command_line import json_option
from spark_sink.commands.configuration import config_option, configured, opened
from spark_sink.config import settings
from spark_sink.errors import ConfigError, FatalError

if TYPE_CHECKING:
    from spark_sink.operations.verify import Verified
    from spark_sink.tables.formats import FormatTables

_KINDS = ("missing", "extra", "different", "duplicated", "ranges")

_EXIT_CODES = {"equal": 0, "NOT EQUAL": 3, "INCONCLUSIVE": 4}

# The maximum number of keys that are printed of each kind.
_KEYS = 20


class VerifyReport(TypedDict):
    """The output of `spark-sink verify --json`; see `spark_sink.operations.verify.Verified`."""

    table: str
    batch: int
    version: int
    compared: int
    missing: int
    extra: int
    different: int
    columns: dict[str, int]
    duplicated: int
    ranges: int
    declared: int
    rejected: int
    inconclusive: int
    unknown: int
    statements: int
    unreadable: int
    equal: bool
    against: str
    columns_left_out: dict[str, str]
    keys: NotRequired[dict[str, list[Any]]]


@click.command()
@config_option
@click.argument("table")
@click.option(
    "--batch", type=int, help="Compare the table as it was right after this batch. Defaults to the newest batch."
)
@click.option(
    "--against",
    metavar="SOURCE",
    help=(
        "Compare the table with database:NAME (see the setting `sources`), file:PATH, table:NAME or checksums instead "
        "of the topic."
    ),
)
@click.option("--skip", multiple=True, metavar="COLUMN", help="With --against: do not compare this source column.")
@click.option(
    "--settle",
    type=click.FloatRange(0),
    default=60.0,
    show_default=True,
    help="With --against: how many seconds a change may take to reach the canonical topic.",
)
@click.option(
    "--forget", is_flag=True, help="Delete the recorded results without comparing anything. Their alerts then end."
)
@click.option(
    "--keys", is_flag=True, help=f"Also print the keys of the rows that differ, at most {_KEYS} of each kind."
)
@json_option
def verify(
    config: Path,
    table: str,
    batch: int | None,
    against: str | None,
    skip: tuple[str, ...],
    settle: float,
    forget: bool,
    keys: bool,
    as_json: bool,
) -> None:
    """Compare the rows of TABLE, a mirror, with the changes in the canonical topic or with a source.

    Without --against, the command reads the topic up to the batch and applies the table's changes with the reader for
    consumers. It then compares every cell. It needs no connection to the source.

    With --against, it compares digests of the rows. If rows differ, it waits until the sink has caught up, and compares
    these rows again. With --against checksums, it compares the table as it was when the source computed its newest
    checksums (`spark-sink checksums`).

    The running sink is not involved. All rows must fit into memory. The exit code is 3 if rows differ. It is 4 if a
    comparison with --against finds no difference, but is inconclusive for some rows.

    If TABLE, or the source of --against, no longer exists, --forget deletes the results that were recorded for it.
    """
    loaded = configured(config)
    if forget:
        _forget(loaded, table, against)
        return
    if against is None and skip:
        raise ConfigError("--skip requires --against")
    if against is not None and batch is not None:
        raise ConfigError("--batch cannot be combined with --against, because a source only has its current rows")
    from spark_sink.operations import status

    tables = opened(loaded)
    status.check_name(tables, loaded.pipeline, loaded.tables.pattern, table)
    keep_days = loaded.maintenance.keep_days
    cut: Mapping[str, Any] = status.cut(loaded.tables.warehouse, loaded.pipeline, loaded.input.topic, keep_days, batch)
    if table not in cut["tables"]:
        raise FatalError(f"batch {cut['batch']} had not written {table} yet")
    left_out: Mapping[str, str] = {}
    through = cut["ended_at"]
    if against is None:
        found = _against_topic(loaded, tables, table, cut)
    elif against == "checksums":
        from spark_sink.commands.verify_checksums import verify_checksums
        from spark_sink.commands.verify_source import catch_up

        if skip:
            raise ConfigError("--skip cannot be combined with --against checksums; use it with `spark-sink checksums`")
        found, cut, through, left_out = verify_checksums(
            loaded,
            tables,
            table,
            lambda: status.cut(loaded.tables.warehouse, loaded.pipeline, loaded.input.topic, keep_days, None),
            lambda: catch_up(loaded, table, settle),
        )
    else:
        from spark_sink.commands.verify_source import verify_against

        found, left_out = verify_against(loaded, tables, table, against, skip, settle)
    source = "topic" if against is None else _recorded(against)
    # Without --against, what depends on the order of partitions remains inconclusive in every comparison.
    outcome = "NOT EQUAL" if not found.is_equal else "INCONCLUSIVE" if against and found.inconclusive else "equal"
    _record(loaded, found, table, source, cut, through, is_conclusive=outcome != "INCONCLUSIVE")
    if as_json:
        report = _report(found, table, cut, source, left_out, is_equal=outcome == "equal")
        if keys:
            report["keys"] = {name: getattr(found, name)[:_KEYS] for name in _KINDS}
        click.echo(msgspec.json.encode(report).decode())
    else:
        with_source = "" if against is None else f" against {source}"
        click.echo(
            f"{table} at batch {cut['batch']} (version {cut['tables'][table]}){with_source}: {outcome}; {_told(found)}"
        )
        for name, why in left_out.items():
            click.echo(f"  column not compared: {name}: {why}")
        for kind in _KINDS if keys else ():
            for key in getattr(found, kind)[:_KEYS]:
                click.echo(f"  {kind}: {', '.join(map(str, key))}")
    sys.exit(_EXIT_CODES[outcome])


def _recorded(against: str) -> str:
    """Return a source's name in results. The path of a file may contain a date, so every day would look like a new
    source.
    """
    return "file" if against.startswith("file:") else against


def _forget(loaded: settings.Settings, table: str, against: str | None) -> None:
    from spark_sink.control_tables.verified import VerifiedTable

    source = None if against is None else _recorded(against)
    count = VerifiedTable(loaded.tables.warehouse, loaded.pipeline).forget(table, source)
    if not count:
        raise FatalError(f"no results of {table}{f' against {source}' if source else ''} are recorded")
    click.echo(f"{table}: {count} results were deleted; metrics and alerts follow within a minute")


def _against_topic(loaded: settings.Settings, tables: FormatTables, table: str, cut: Mapping[str, Any]) -> Verified:
    from spark_sink.control_tables.batches import ControlTables
    from spark_sink.operations.applied_topic import AppliedTopic
    from spark_sink.operations.verify import ExpectedRows, after_batch, compare

    control = ControlTables(loaded.tables.warehouse, loaded.pipeline, "", loaded.input.topic)
    mirror = after_batch(tables, table, cut["tables"][table], control.apps(cut["checkpoint"]))
    source = mirror.shape.table
    ends = {int(one): offset for one, offset in cut["parked"].get(table, cut)["offsets"].items()}
    topic = AppliedTopic(loaded)
    expected = ExpectedRows(mirror.shape, control.erased_keys().get(table, {}))
    expected.add(topic.changes(source, ends, expected.without_erased))
    found = compare(mirror, expected, complete=topic.is_complete, cuts_times=loaded.tables.rules.truncated_times)
    found.unreadable = topic.unreadable
    return found


def _record(
    loaded: settings.Settings,
    found: Verified,
    table: str,
    against: str,
    cut: Mapping[str, Any],
    through: datetime,
    *,
    is_conclusive: bool,
) -> None:
    """Record the result. If the user can only read the warehouse, print a warning.

    Args:
        through: if no row differs, the time up to which the table is verified.
    """
    from deltalake.exceptions import DeltaError

    from spark_sink.control_tables.verified import NAME, Verification, VerifiedTable

    is_verified = found.is_equal and not found.left_out and table not in cut["parked"]
    result = Verification(
        table=table,
        against=against,
        at=datetime.now(UTC),
        batch=cut["batch"],
        through=through if is_verified else None,
        compared=found.compared,
        differing=sum(len(getattr(found, kind)) for kind in _KINDS) if is_conclusive else None,
        left_out=found.left_out,
    )
    try:
        VerifiedTable(loaded.tables.warehouse, loaded.pipeline).write(result)
    except (DeltaError, OSError) as error:
        reason = str(error).strip().partition("\n")[0]
        click.echo(f"the result was not recorded in {NAME}: {reason}", err=True)


def _told(found: Verified) -> str:
    """Return the counts in one line."""
    columns = ", ".join(f"{name} {count}" for name, count in sorted(found.columns.items()))
    counts = {
        "rows compared": found.compared,
        "missing": len(found.missing),
        "extra": len(found.extra),
        f"with other values ({columns})" if columns else "with other values": len(found.different),
        "in the table more than once": len(found.duplicated),
        "ranges with several differing rows": len(found.ranges),
        "different, but marked as incomplete": found.declared,
        "different, but inconclusive": found.inconclusive,
        "not compared: the topic no longer has changes to them": found.unknown,
        "changes in quarantine": found.rejected,
        "unreadable records in quarantine": found.unreadable,
        "statements that changed rows without sending changes": found.statements,
    }
    return "; ".join(f"{what}: {count}" for what, count in counts.items() if count or what == "rows compared")


def _report(
    found: Verified, table: str, cut: Mapping[str, Any], against: str, left_out: Mapping[str, str], *, is_equal: bool
) -> VerifyReport:
    return {
        "table": table,
        "batch": cut["batch"],
        "version": cut["tables"][table],
        "compared": found.compared,
        "missing": len(found.missing),
        "extra": len(found.extra),
        "different": len(found.different),
        "columns": dict(found.columns),
        "duplicated": len(found.duplicated),
        "ranges": len(found.ranges),
        "declared": found.declared,
        "rejected": found.rejected,
        "inconclusive": found.inconclusive,
        "unknown": found.unknown,
        "statements": found.statements,
        "unreadable": found.unreadable,
        "equal": is_equal,
        "against": against,
        "columns_left_out": dict(left_out),
    }
