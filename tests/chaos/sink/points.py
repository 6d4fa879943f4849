"""The points at which the sink is killed. The product has no test hooks, so its functions are patched."""

from __future__ import annotations

import importlib
import itertools
import os
import signal
from collections.abc import Mapping
from functools import wraps
from typing import Any, Literal, NamedTuple

DEATH = "CHAOS_SINK_DEATH"
"""Environment variable: point and number of the call, such as `before the manifest:2`."""

GROUP = "CHAOS_SINK_GROUP"
"""Environment variable: the process group of the driver and its JVM."""


class Point(NamedTuple):
    """A point in a batch: before or after a call of `module:qualified name`, in the driver or a worker."""

    what: str
    side: Literal["driver", "worker"]
    call: str
    before: bool = False


_DDL = "spark_sink.tables.delta.ddl:DeltaDdl"
_MIRROR = "spark_sink.tables.delta.mirror:DeltaMirror"
_TABLES = "spark_sink.tables.delta.tables:DeltaTables"
_WRITER = "spark_sink.tables.spark_writer:SparkWriter"
_CONTROL = "spark_sink.control_tables.batches:ControlTables"

POINTS: Mapping[str, Point] = {
    point.what: point
    for point in (
        Point("schemas read", "driver", f"{_CONTROL}.begin", before=True),
        Point("batch begun", "driver", f"{_CONTROL}.begin"),
        Point("before a table is created", "driver", f"{_DDL}.create", before=True),
        Point("after a table is created", "driver", f"{_DDL}.create"),
        Point("after columns are added", "driver", f"{_DDL}.add_columns"),
        Point("folded", "worker", "spark_sink.apply.table_commits:fold_into_changes"),
        Point("deleted rows remembered", "worker", "spark_sink.tables.deleted_rows:DeletedRows._put"),
        Point("before a commit", "worker", f"{_MIRROR}.write", before=True),
        Point("after a commit", "worker", f"{_MIRROR}.write"),
        Point("after floors are raised", "worker", f"{_MIRROR}.raise_floors"),
        Point("after rows are cleared", "worker", f"{_MIRROR}.clear"),
        Point("before staged rows are merged", "driver", f"{_WRITER}.carry_out", before=True),
        Point("after staged rows are merged", "driver", f"{_WRITER}.carry_out"),
        Point("after quarantine", "worker", f"{_TABLES}.quarantine"),
        Point("after parking", "worker", f"{_TABLES}.park"),
        Point("before the manifest", "driver", f"{_CONTROL}.end", before=True),
        Point("after the manifest, before Spark's own commit", "driver", f"{_CONTROL}.end"),
    )
}


def arm(side: str) -> None:
    """Let this process die where the environment says, if the point is in this kind of process."""
    name, _, number = os.environ.get(DEATH, "").rpartition(":")
    if not name or POINTS[name].side != side:
        return
    point, calls = POINTS[name], itertools.count(1)
    module, _, path = point.call.partition(":")
    *owners, last = path.split(".")
    holder: Any = importlib.import_module(module)
    for owner in owners:
        holder = getattr(holder, owner)
    call = getattr(holder, last)

    @wraps(call)
    def counted(*args: Any, **kwargs: Any) -> Any:
        # Threads create tables in parallel. Each call has its own number, which decides whether it dies.
        last_one = next(calls) == int(number)
        if last_one and point.before:
            _die()
        result = call(*args, **kwargs)
        if last_one:
            _die()
        return result

    setattr(holder, last, counted)


def _die() -> None:
    os.killpg(int(os.environ[GROUP]), signal.SIGKILL)
    os.killpg(0, signal.SIGKILL)  # a worker and its daemon have their own process group
