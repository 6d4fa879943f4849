"""Tables that Spark writes, on the driver: what the workers ordered is done, each table in one thread."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Protocol

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from spark_sink.errors import Overtaken
from spark_sink.spark.session import follow_cores, hadoop_folder, sibling
from spark_sink.tables.spark_operations import Merge, Order
from spark_sink.tables.staging import Staging

# A MERGE of a small table is many short jobs with the driver's work between them: some tables at a time fill the cores.
THREADS = 4


class SparkTable(Protocol):
    """One table in one thread."""

    def do(self, order: Order) -> None: ...


class SparkFormat(Protocol):
    """The tables of one format, as Spark writes them."""

    def table(self, session: SparkSession, name: str) -> SparkTable: ...

    def version(self, name: str) -> int:
        """Return the version of a table, as it is now."""

    def refusal(self, error: str) -> str | None:
        """The part of Spark's error which says that the table takes none of these rows: trying again would not help.
        None where it says something else."""

    def is_overtaken(self, error: str) -> bool:
        """Tell whether another commit has made this one impossible, by Spark's error."""


class SparkWriter:
    """Writes staged changes with MERGE, in a session per thread: threads of one session would share their markers.

    Args:
        format_of: the format of a table, by its name.
        settings: of the sessions.
    """

    def __init__(
        self,
        spark: SparkSession,
        staging: Staging,
        format_of: Callable[[str], SparkFormat],
        settings: Mapping[str, str],
    ) -> None:
        self._spark = spark
        self._staging = staging
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
        """Carry out the orders of a table, and return why it does not take them; None if it does.

        Raises:
            Overtaken: somebody else has changed the table, or taken its staged files away, meanwhile.
        """
        format = self._format_of(name)
        try:
            table = format.table(self._session(), name)
            for order in orders:
                table.do(order)
        except (PySparkException, Py4JJavaError) as error:
            # Only what is the matter: the text of the error holds values of the row.
            broken = format.refusal(str(error))
            if broken is None:
                if format.is_overtaken(str(error)):
                    raise Overtaken(f"the table {name}") from None
                if self._is_staged_away(orders):
                    raise Overtaken(f"the staged files of the table {name}") from None
                raise
            return f"a row breaks a rule that the table was given: {broken}"
        return None

    def _is_staged_away(self, orders: Sequence[Order]) -> bool:
        """Tell whether a staged file is gone, which only another sink of this configuration discards before the batch
        is done here. Spark's error tells of it in as many ways as Spark has to read a file."""
        files, folder = hadoop_folder(self._spark, f"{self._staging.warehouse}/{self._staging.folder}")
        paths = (folder.suffix(f"/{order.path}") for order in orders if isinstance(order, Merge))
        return not all(files.exists(path) for path in paths)

    def _session(self) -> SparkSession:
        if not hasattr(self._local, "session"):
            self._local.session = sibling(self._spark, self._settings)
        session: SparkSession = self._local.session
        follow_cores(session)
        return session
