"""Tables that Spark writes. Execute the workers' orders on the driver, with one thread per table."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Protocol

from pyspark.sql import SparkSession

from spark_sink.errors import Overtaken
from spark_sink.spark.session import follow_cores, hadoop_folder, sibling
from spark_sink.tables.protocols import Tables
from spark_sink.tables.spark_operations import Merge, Order
from spark_sink.tables.staging import Staging
from spark_sink.tables.table_errors import as_refusal

# Merging a small table takes many short jobs with driver work in between, so only several tables together use all
# cores.
THREADS = 4


class SparkTable(Protocol):
    """One table that Spark writes, used by one thread."""

    def do(self, order: Order) -> None: ...


class SparkFormat(Protocol):
    """The tables in one format, written by Spark."""

    def table(self, session: SparkSession, name: str) -> SparkTable: ...

    def version(self, name: str) -> int:
        """Return a table's current version."""

    def refusal(self, error: str) -> str | None:
        """If Spark's error shows that the table will never accept these rows, return the part of it that says so. A
        retry would not help. Return None for any other error.
        """

    def is_overtaken(self, error: str) -> bool:
        """Return whether Spark's error means that the commit conflicts with another commit."""


class SparkWriter:
    """Writes staged changes, with or without MERGE. Each thread has its own session. Threads with the same session
    would share their markers.

    Args:
        tables: the tables. They show whether the storage responds.
        format_of: returns a table's format by its name.
        settings: the session settings.
    """

    def __init__(
        self,
        spark: SparkSession,
        staging: Staging,
        tables: Tables,
        format_of: Callable[[str], SparkFormat],
        settings: Mapping[str, str],
    ) -> None:
        self._spark = spark
        self._staging = staging
        self._tables = tables
        self._format_of = format_of
        self._settings = settings
        self._local = threading.local()
        self._pool = ThreadPoolExecutor(THREADS, "merge")

    def carry_out(self, orders: Mapping[str, Sequence[Order]]) -> Mapping[str, str]:
        futures = {name: self._pool.submit(self._table, name, ordered) for name, ordered in orders.items()}
        wait(futures.values())
        found = ((name, future.result()) for name, future in futures.items())
        return {name: why for name, why in found if why is not None}

    def version(self, table: str) -> int:
        return self._format_of(table).version(table)

    def discard(self) -> None:
        files, folder = hadoop_folder(self._spark, f"{self._staging.warehouse}/{self._staging.folder}")
        files.delete(folder, True)

    def _table(self, name: str, orders: Sequence[Order]) -> str | None:
        """Execute a table's orders. Return why the table rejects them, or None if it accepts them.

        Raises:
            Overtaken: another writer has changed the table, or deleted its staged files, in the meantime.
        """
        format = self._format_of(name)
        try:
            table = format.table(self._session(), name)
            for order in orders:
                table.do(order)
        except Exception as error:
            # Only the error class is reported, because the text contains row values.
            broken = format.refusal(str(error))
            if broken is None:
                if format.is_overtaken(str(error)):
                    raise Overtaken(f"the table {name}") from None
                if self._is_staged_away(orders):
                    raise Overtaken(f"the staged files of the table {name}") from None
                return str(as_refusal(error, name, self._tables))
            return f"a row violates a constraint of the table: {broken}"
        return None

    def _is_staged_away(self, orders: Sequence[Order]) -> bool:
        """Return whether a staged file is missing.

        Until the batch is done, nothing but another sink with the same configuration can delete a staged file. Spark
        reads files in several ways, and each has its own error for a missing file.
        """
        files, folder = hadoop_folder(self._spark, f"{self._staging.warehouse}/{self._staging.folder}")
        paths = (folder.suffix(f"/{order.path}") for order in orders if isinstance(order, Merge))
        return not all(files.exists(path) for path in paths)

    def _session(self) -> SparkSession:
        if not hasattr(self._local, "session"):
            self._local.session = sibling(self._spark, self._settings)
        session: SparkSession = self._local.session
        follow_cores(session)
        return session
