"""Delta tables that Spark writes, on the driver: what the workers ordered is done, each table in one thread."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager

from deltalake import DeltaTable
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import expr

from spark_sink.errors import Overtaken
from spark_sink.spark_session import follow_cores, hadoop_folder, sibling
from spark_sink.tables.delta.open_table import (
    FLOORS_PROPERTY,
    location,
)
from spark_sink.tables.delta.spark_ddl import literal, quoted
from spark_sink.tables.delta.staged import Staging
from spark_sink.tables.meta_columns import (
    COMMIT_TS,
    DELETED_AT,
    INCOMPLETE,
    POS,
    SCOPE,
    STATE,
    UPDATED_AT,
)
from spark_sink.tables.protocols import Marker
from spark_sink.tables.spark_operations import (
    WRITTEN,
    Clear,
    Forget,
    Merge,
    Order,
    RaiseFloors,
    Retire,
    WriteMarker,
    merged,
)

# A MERGE of a small table is many short jobs with the driver's work between them: some tables at a time fill the cores.
THREADS = 4

_STAGED = "cdc_staged"

_APP, _VERSION = "spark.databricks.delta.write.txnAppId", "spark.databricks.delta.write.txnVersion"

# A staged file never changes, so that Spark need not keep a copy of it before it joins.
_SETTINGS = {"spark.databricks.delta.merge.materializeSource": "none"}

# Delta's exceptions for a commit that another one made impossible.
_OVERTAKEN = re.compile(r"\bio\.delta\.exceptions\.\w+")

# What tells that the table takes none of these rows: trying again would not help.
_REFUSALS = re.compile(r"\b(DELTA_VIOLATE_CONSTRAINT_WITH_VALUES|DELTA_NOT_NULL_CONSTRAINT_VIOLATED)\b")


class DeltaWriter:
    """Writes staged changes with MERGE, in a session per thread: threads of one session would share their markers."""

    def __init__(self, spark: SparkSession, staging: Staging) -> None:
        self._spark = spark
        self._staging = staging
        self._local = threading.local()
        self._pool = ThreadPoolExecutor(THREADS, "merge")

    def carry_out(self, orders: Mapping[str, Sequence[Order]]) -> Mapping[str, str]:
        futures = {name: self._pool.submit(self._table, name, ordered) for name, ordered in orders.items()}
        wait(futures.values())
        found = ((name, future.result()) for name, future in futures.items())
        return {name: why for name, why in found if why is not None}

    def version(self, table: str) -> int:
        return DeltaTable(location(self._staging.warehouse, table)).version()

    def discard(self) -> None:
        files, folder = hadoop_folder(self._spark, f"{self._staging.warehouse}/{self._staging.folder}")
        files.delete(folder, True)

    def _table(self, name: str, orders: Sequence[Order]) -> str | None:
        """Carry out the orders of a table, and return why it does not take them; None if it does.

        Raises:
            Overtaken: somebody else has changed the table meanwhile.
        """
        table = _Table(self._session(), self._staging, name)
        try:
            for order in orders:
                table.do(order)
        except (PySparkException, Py4JJavaError) as error:
            # Only what is the matter: the text of the error holds values of the row.
            broken = _REFUSALS.search(str(error))
            if broken is None:
                if _OVERTAKEN.search(str(error)):
                    raise Overtaken(f"the table {name}") from None
                raise
            return f"a row breaks a rule that the table was given: {broken[0]}"
        return None

    def _session(self) -> SparkSession:
        if not hasattr(self._local, "session"):
            self._local.session = sibling(self._spark, _SETTINGS)
        session: SparkSession = self._local.session
        follow_cores(session)
        return session


class _Table:
    """One table in one thread."""

    def __init__(self, session: SparkSession, staging: Staging, name: str) -> None:
        self._session = session
        self._staging = staging
        self._path = location(staging.warehouse, name)
        self._quoted = quoted(self._path)

    def do(self, order: Order) -> None:
        match order:
            case Merge():
                self._merge(order)
            case WriteMarker(marker):
                self._append(self._session.read.format("delta").load(self._path).limit(0), marker)
            case RaiseFloors(floors):
                stored = literal(json.dumps(floors, sort_keys=True))
                self._session.sql(
                    f"ALTER TABLE {self._quoted} SET TBLPROPERTIES ({literal(FLOORS_PROPERTY)} = {stored})"
                )
            case Clear(floors, marker):
                with self._marked(marker):
                    self._delete(_under(floors))
            case Retire(floors, deletion, marker):
                times = zip((DELETED_AT, COMMIT_TS, UPDATED_AT), deletion, strict=True)
                gone = ", ".join(f"{name} = {_instant(time)}" for name, time in times)
                gone += f", {STATE} = NULL, {INCOMPLETE} = false"
                where = f"{DELETED_AT} IS NULL AND ({_under(floors)})"
                with self._marked(marker):
                    self._session.sql(f"UPDATE {self._quoted} SET {gone} WHERE {where}")  # noqa: S608 - literals
            case Forget(before):
                self._delete(f"{DELETED_AT} < {_instant(before)}")

    def _delete(self, condition: str) -> None:
        self._session.sql(f"DELETE FROM {self._quoted} WHERE {condition}")  # noqa: S608 - quoted, and made of literals

    def _merge(self, order: Merge) -> None:
        staged = self._staged(order)
        if order.inserts_only:
            self._append(staged, order.marker)
            return
        staged.createOrReplaceTempView(_STAGED)
        same = [f"t.`{name}` = s.`{name}`" for name in order.key]
        same += [f"t.`{name}` BETWEEN {_value(low)} AND {_value(high)}" for name, (low, high) in order.bounds.items()]
        columns = [*order.columns, *([] if order.at is None else [UPDATED_AT])]
        updates = ", ".join(f"t.`{name}` = {merged(name, order.kept)}" for name in columns)
        names = ", ".join(f"`{name}`" for name in columns)
        values = ", ".join(f"s.`{name}`" for name in columns)
        # No positions in the conditions: the fold has compared them.
        matched = f"WHEN MATCHED THEN UPDATE SET {updates}"
        missing = f"WHEN NOT MATCHED THEN INSERT ({names}) VALUES ({values})"  # noqa: S608 - quoted
        merge = f"MERGE INTO {self._quoted} AS t USING {_STAGED} AS s ON {' AND '.join(same)}"
        with self._marked(order.marker):
            self._session.sql(f"{merge} {matched} {missing}")

    def _staged(self, order: Merge) -> DataFrame:
        flags = {WRITTEN + name: "boolean" for name in order.kept}
        declared = ", ".join(f"`{name}` {sql}" for name, sql in {**order.columns, **flags}.items())
        path = f"{self._staging.warehouse}/{self._staging.folder}/{order.path}"
        staged = self._session.read.schema(declared).parquet(path)
        return staged if order.at is None else staged.withColumn(UPDATED_AT, expr(_instant(order.at)))

    def _append(self, rows: DataFrame, marker: Marker | None) -> None:
        options = {} if marker is None else {"txnAppId": marker.app, "txnVersion": str(marker.version)}
        rows.write.format("delta").mode("append").options(**options).save(self._path)

    @contextmanager
    def _marked(self, marker: Marker | None) -> Iterator[None]:
        """Statements carry the marker in their commit, and do nothing if the table has it."""
        settings = {} if marker is None else {_APP: marker.app, _VERSION: str(marker.version)}
        for name, value in settings.items():
            self._session.conf.set(name, value)
        try:
            yield
        finally:
            for name in settings:
                self._session.conf.unset(name)


def _under(floors: Mapping[str, str]) -> str:
    return " OR ".join(f"({SCOPE} = {literal(scope)} AND {POS} <= {literal(pos)})" for scope, pos in floors.items())


def _instant(time: int | None) -> str:
    return "NULL" if time is None else f"timestamp_micros({time})"


def _value(value: str | int) -> str:
    return str(value) if isinstance(value, int) else literal(value)
