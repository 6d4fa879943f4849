"""`python -m tests.spark_sink.s3.racer WAY ENDPOINT TABLE NAME COUNT`: one of several processes that commit to one
table.

With the log store alone, it prints the version of each of its commits.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark import SparkContext

from dev.servers.small_spark import SMALL_SPARK
from spark_sink.config.settings import Spark
from spark_sink.config.storage import LOG_STORE, Storage
from spark_sink.spark import session as spark_session


def by_deltalake(storage: Storage, table: str, name: str, count: int) -> None:
    storage.enter(table, os.environ)
    for number in range(count):
        write_deltalake(table, pa.table({"by": [f"{name} {number}"]}), mode="append")


def by_spark(storage: Storage, table: str, name: str, count: int) -> None:
    settings = Spark(master="local[1]", memory="1g", conf=dict(SMALL_SPARK))
    spark = spark_session.build("racer", settings, table, storage.spark_conf(table, table))
    for number in range(count):
        spark.createDataFrame(pa.table({"by": [f"{name} {number}"]})).write.format("delta").mode("append").save(table)
    spark.stop()


def by_log_store(storage: Storage, table: str, name: str, count: int) -> None:
    """Commit with the log store alone, as Delta calls it."""
    commit = log_store(storage, table)
    version = 0
    for number in range(count):
        while not commit(version, f"{name} {number}"):
            version += 1
        print(version)


def log_store(storage: Storage, table: str) -> Callable[[int, str], bool]:
    """Return a function that writes a version of one line to a table's log and returns whether it succeeded."""
    conf = storage.spark_conf(table, table)
    if SparkContext._gateway is None:
        spark_session._start_java({"spark.master": "local[1]"}, spark_session._NEEDED_BY_S3)
    jvm = SparkContext._jvm
    assert jvm is not None
    hadoop = jvm.org.apache.hadoop.conf.Configuration()
    for setting, value in conf.items():
        hadoop.set(setting.removeprefix("spark.hadoop."), value)
    assert LOG_STORE == conf["spark.delta.logStore.s3a.impl"]
    store = jvm.cdc.sink.ConditionalLogStore(hadoop)

    def commit(version: int, line: str) -> bool:
        path = jvm.org.apache.hadoop.fs.Path(f"{table}/_delta_log/{version:020d}.json")
        try:
            store.write(path, jvm.java.util.List.of(line).iterator(), False, hadoop)
        except Py4JJavaError as error:
            if "java.nio.file.FileAlreadyExistsException" != error.java_exception.getClass().getName():
                raise
            return False
        return True

    return commit


WAYS: Mapping[str, Callable[[Storage, str, str, int], None]] = {
    "deltalake": by_deltalake,
    "spark": by_spark,
    "log store": by_log_store,
}


def rows(table: str, storage_options: dict[str, str]) -> tuple[list[str], int]:
    """Return the rows of a table and its version."""
    opened = DeltaTable(table, storage_options=storage_options)
    return sorted(opened.to_pyarrow_table().column("by").to_pylist()), opened.version()


if __name__ == "__main__":
    way, endpoint, table, name, count = sys.argv[1:]
    WAYS[way](Storage(endpoint=endpoint), table, name, int(count))
