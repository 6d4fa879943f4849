"""Start the Spark session, with the settings that make the sink correct and fast."""

from __future__ import annotations

import glob
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.java_gateway import launch_gateway
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from spark_sink.config.settings import Spark
from spark_sink.config.storage import LOG_STORE
from spark_sink.errors import ConfigError, FatalError

_FIXED = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    # A timestamp with a zone must mean the same instant wherever the driver runs.
    "spark.sql.session.timeZone": "UTC",
    # Substitution is disabled, because a source table can be named `${x}`.
    "spark.sql.variable.substitute": "false",
    # Tasks write tables, so a second copy of a running task would be a second writer.
    "spark.speculation": "false",
    # The number of tasks that read a Delta log. With the default of 50, every statement for a small table is slow.
    "spark.databricks.delta.snapshotPartitions": "2",
    # With a limit in bytes, Spark recomputes the size of every column after every row, which takes 15 % of Spark's
    # time. This number of records, with 4 MiB each, stays within the 2 GiB limit for Arrow columns.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "512",
    "spark.sql.execution.arrow.maxBytesPerBatch": "2147483647",
    # With the default, other readers misread years before 1677 and after 2262.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # With a smaller code cache, the Java compiler stops compiling in long runs. In a batch of 500 000 changes, the
    # parallel collector saves about a tenth of the JVM's CPU time. Its pauses are longer, but nothing depends on short
    # pauses.
    "spark.driver.extraJavaOptions": "-XX:ReservedCodeCacheSize=256m -XX:+UseParallelGC",
    # The sink checks the checkpoint itself. Spark would never start again after a crash in which the first write to the
    # checkpoint left a temporary file.
    "spark.sql.streaming.verifyCheckpointDirectoryEmptyOnStart": "false",
    "spark.ui.showConsoleProgress": "false",
    # The rewrite of a table's layout has a pool of its own, and shares the cores with the batches.
    "spark.scheduler.mode": "FAIR",
    # Spark's web UI has no login. The web UI can end a job, and shows statements and settings.
    "spark.ui.enabled": "false",
    "spark.ui.killEnabled": "false",
    # The values that Spark hides in its web UI and its event log. Spark's default is extended to all secrets of
    # catalogs and object stores.
    "spark.redaction.regex": (
        r"(?i)secret|passw|token|(access|account|api|shared|sas)[._-]?key|credential|authorization|jaas|[.]header[.]|[?&]sig="
    ),
    # A supervisor that stops the sink may signal all of the sink's processes, but the running batch still needs its
    # workers.
    "spark.python.daemon.module": "spark_sink.spark.worker_daemon",
}

# If no executors run on other machines, nothing outside this machine needs the ports for remote calls and blocks.
_ON_THIS_MACHINE = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}

_SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"

# This logger writes each failed task's error, including its message, and Python's messages contain row values.
_TELLS_ROWS = "org.apache.spark.executor.Executor"

# PySpark's own loggers, which write the text of failed statements. The literals in a MERGE are row keys.
_TELL_STATEMENTS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")

# Components that Spark does not include. Each class shows whether its component is present.
_NEEDED: Mapping[str, str] = {
    "io.delta.sql.DeltaSparkSessionExtension": "Delta Lake",
    "org.apache.spark.sql.kafka010.KafkaSourceProvider": "Spark's Kafka source",
    "org.apache.spark.sql.avro.AvroDataToCatalyst": "Spark's Avro functions",
}

# The components that tables or a checkpoint on S3 need in addition. Without the second component, two writers to the
# same table lose commits.
_NEEDED_BY_S3: Mapping[str, str] = {
    "org.apache.hadoop.fs.s3a.S3AFileSystem": "Hadoop's S3A",
    LOG_STORE: "the sink (cdc-sink-*.jar)",
}

_NEEDED_BY_ICEBERG: Mapping[str, str] = {"org.apache.iceberg.spark.SparkCatalog": "Iceberg"}


def build(
    name: str, settings: Spark, warehouse: str, store: Mapping[str, str] | None = None, *, iceberg: bool = False
) -> SparkSession:
    """Return a session. If spark-submit has started a session, return it.

    Args:
        store: the settings that Spark needs to find the object store for tables and checkpoint (`config/storage.py`).
        iceberg: whether some tables are Iceberg tables.

    Raises:
        ConfigError: Java does not start, or does not have the jars.
        FatalError: Spark does not start because of its master, a file or a port.
    """
    # PySpark reads the path to Python only from the environment. Workers run the Python that has this package.
    if settings.python:
        os.environ["PYSPARK_PYTHON"] = settings.python
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    # Spark creates this folder when it starts, by default in the working directory, which may be read-only.
    conf = {**_FIXED, "spark.sql.warehouse.dir": warehouse, **(store or {})}
    if settings.master and settings.master.startswith("local"):
        conf |= _ON_THIS_MACHINE
    if settings.memory:
        conf["spark.driver.memory"] = settings.memory
    jars = _expanded(settings.jars)
    if jars:
        conf["spark.jars"] = ",".join(jars)
    if settings.archives:
        conf["spark.archives"] = ",".join(settings.archives)
    conf |= settings.conf
    builder = SparkSession.builder.appName(name)
    if settings.master:
        builder = builder.master(settings.master)
    for key, value in conf.items():
        builder = builder.config(key, value)
    needed = _needed(store, iceberg=iceberg)
    if SparkContext._gateway is None:
        _start_java(conf, needed)
    elif beyond := {name: what for name, what in needed.items() if name not in _NEEDED}:
        _check_jars(SparkContext._gateway, beyond)
    try:
        session = builder.getOrCreate()
    except Py4JJavaError as error:
        what = str(error.java_exception).splitlines()[0]
        raise FatalError(f"Spark did not start: {what}") from None
    session.sparkContext.setLogLevel("ERROR")
    log_level(session, _TELLS_ROWS, "OFF")
    for name in _TELL_STATEMENTS:
        PySparkLogger.getLogger(name).disabled = True
    _write_no_checksum_files(session)
    follow_cores(session)
    return session


def _write_no_checksum_files(session: SparkSession) -> None:
    """Let this JVM write files on a local disk without a separate checksum file for each of them. Only Hadoop reads
    these checksum files, and it starts a process (chmod) for each one. If deltalake or pyiceberg deletes a file, its
    checksum file stays. Files of the checkpoint keep theirs, because Spark writes them through another class.
    """
    java: Any = session._jvm
    local = java.org.apache.hadoop.fs.FileSystem.get(java.java.net.URI("file:///"), session._jsc.hadoopConfiguration())
    local.setWriteChecksum(False)


def follow_cores(session: SparkSession) -> int:
    """Distribute shuffles over the cores that the executors have at the moment, unless configured otherwise. Return the
    number of cores.

    In a cluster, executors may register during the first batch or later.
    """
    context = session.sparkContext
    cores: int = context.defaultParallelism
    if not context.getConf().contains(_SHUFFLE_PARTITIONS):
        session.conf.set(_SHUFFLE_PARTITIONS, str(2 * cores))
    return cores


def check_java(settings: Spark, store: Mapping[str, str], *, iceberg: bool = False) -> None:
    """Start a JVM just as a session does, and stop it. `store` and `iceberg` are the same as for the session.

    Raises:
        ConfigError: Java does not start, or does not have the jars.
    """
    jars = _expanded(settings.jars)
    conf = {**({"spark.jars": ",".join(jars)} if jars else {}), **settings.conf}
    gateway = _java(conf, _needed(store, iceberg=iceberg))
    gateway.shutdown()
    if gateway.proc is not None:
        gateway.proc.stdin.close()  # closing the JVM's input makes it exit
        gateway.proc.wait()


def _needed(store: Mapping[str, str] | None, *, iceberg: bool) -> Mapping[str, str]:
    return {**_NEEDED, **(_NEEDED_BY_S3 if store else {}), **(_NEEDED_BY_ICEBERG if iceberg else {})}


def _start_java(conf: Mapping[str, str], needed: Mapping[str, str] = _NEEDED) -> None:
    """Start the JVM before the session does, because an error from the session would be hundreds of lines of Java."""
    gateway = _java(conf, needed)
    if gateway.proc is not None:
        # The JVM belongs to the sink, not to spark-submit. A signal to the whole process group, or to all processes in
        # a service, must not stop the JVM directly. The JVM stops after the running batch, or when the sink has exited.
        signals = gateway.jvm.sun.misc
        signals.Signal.handle(signals.Signal("TERM"), signals.SignalHandler.SIG_IGN)
    SparkContext._ensure_initialized(gateway=gateway)


def _java(conf: Mapping[str, str], needed: Mapping[str, str]) -> Any:
    """Return the gateway to a JVM that has the required jars."""
    try:
        gateway: Any = launch_gateway(SparkConf().setAll(list(conf.items())))  # type: ignore[no-untyped-call]
    except PySparkRuntimeError as error:
        raise ConfigError(
            f"Java did not start ({error.getCondition()}); its output is above. Spark requires Java 17 or 21, found "
            "through JAVA_HOME or as `java`"
        ) from None
    try:
        _check_jars(gateway, needed)
    except ConfigError:
        gateway.shutdown()
        raise
    return gateway


def _check_jars(gateway: Any, needed: Mapping[str, str]) -> None:
    loader = gateway.jvm.java.lang.Thread.currentThread().getContextClassLoader()
    path = {name.replace(".", "/") + ".class": what for name, what in needed.items()}
    missing = [what for file, what in path.items() if loader.getResource(file) is None]
    if missing:
        raise ConfigError(
            f"Spark has no jars for: {', '.join(missing)}. Set spark.jars to the files, or put them in Spark's "
            "`jars` folder (docs/sink/running.md). In a checkout, `make setup` downloads them and makes them the "
            "default"
        )


def sibling(session: SparkSession, settings: Mapping[str, str]) -> SparkSession:
    """Return another session with its own settings and views. It takes over the sink's settings from the given
    session.
    """
    fresh = session.newSession()
    set_there = {name: session.conf.get(name) for name in _FIXED if session.conf.isModifiable(name)}
    for name, value in {**set_there, **settings}.items():
        if value is not None:
            fresh.conf.set(name, value)
    return fresh


@contextmanager
def session_settings(session: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Set additional settings on a session within the block."""
    for name, value in settings.items():
        session.conf.set(name, value)
    try:
        yield
    finally:
        for name in settings:
            session.conf.unset(name)


def log_level(spark: SparkSession, logger: str, level: str) -> None:
    """Set the level for one of Spark's own loggers, such as `OFF` or `ERROR`."""
    log4j: Any = spark._jvm.org.apache.logging.log4j  # type: ignore[union-attr]
    log4j.core.config.Configurator.setLevel(logger, log4j.Level.toLevel(level))


def hadoop_folder(spark: SparkSession, folder: str) -> tuple[Any, Any]:
    """Return Hadoop's file system for a folder or URL, and the path in this file system, as Java objects."""
    jvm: Any = spark._jvm
    path = jvm.org.apache.hadoop.fs.Path(folder)
    return path.getFileSystem(spark._jsc.hadoopConfiguration()), path


def _expanded(patterns: tuple[str, ...]) -> list[str]:
    found = []
    for pattern in patterns:
        # Path.glob does not support absolute patterns.
        matches = sorted(glob.glob(pattern))  # noqa: PTH207
        if not matches:
            raise ConfigError(f"spark.jars: no file matches {pattern}")
        found += matches
    return found
