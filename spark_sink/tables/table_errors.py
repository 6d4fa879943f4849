"""Decide whether an error affects a single table, which is then parked, or all tables, so that the sink stops."""

from __future__ import annotations

import shlex
from pathlib import Path

from deltalake.exceptions import CommitFailedError, DeltaProtocolError, TableNotFoundError

from spark_sink.errors import ConfigError, FatalError, Overtaken, Reason, Refused
from spark_sink.events.wire_format import RawRecordMissing
from spark_sink.spark.failures import SPARK_ERRORS, cause, concerns_one_table, concerns_statement
from spark_sink.spark.foreign_errors import reason
from spark_sink.tables.protocols import Tables

OF_EVERYTHING = (Overtaken, ConfigError, MemoryError, RawRecordMissing)
"""Errors that always affect more than one table."""

# Errors whose messages are about files and logs. The messages of other errors can contain row values.
_TELLING = (OSError, FatalError, TableNotFoundError, DeltaProtocolError, CommitFailedError)


def as_refusal(error: Exception, name: str, tables: Tables, *, is_statement: bool = False) -> Refused:
    """Convert an error from work on one table.

    The storage has already retried the request. If the sink's own tables can still be read, the error is about this
    table.

    Args:
        is_statement: whether the work was a statement that creates or changes the table.

    Raises:
        Exception: `error` itself if it affects everything, or another error if the storage does not respond.
    """
    if isinstance(error, Refused):
        return error
    concerns = concerns_statement if is_statement else concerns_one_table
    if isinstance(error, OF_EVERYTHING) or (isinstance(error, SPARK_ERRORS) and not concerns(error)):
        raise error
    tables.check_storage(name)
    quoted = shlex.quote(name)
    return Refused(
        Reason.TABLE_DAMAGED,
        f"the table {name} cannot be read, written or changed: {told(error)}. Repair it and run `spark-sink resume "
        f"{quoted}`, or run `spark-sink rebuild {quoted}`, which rereads the topic for this table",
    )


def told(error: Exception) -> str:
    """Describe an error without values from rows. If it is about files, use its message, and otherwise its location."""
    if isinstance(error, SPARK_ERRORS):
        return f"Spark: {cause(str(error)) or type(error).__name__}"
    kind = type(error).__name__
    if isinstance(error, _TELLING):
        return f"{kind}: {reason(error)}"
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return kind
    file = Path(trace.tb_frame.f_code.co_filename)
    return f"{kind} at {'/'.join(file.parts[-2:])}:{trace.tb_lineno}"
