"""The report of a failed Spark job: its cause in one line, without values of rows."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from spark_sink.errors import Overtaken
from spark_sink.spark.failures import SPARK_ERRORS, cause, failure, overtaken
from tests.spark_sink.sink_process import PATIENCE_SECONDS


def _raises(make: Callable[[], BaseException]) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches
        raise make()

    return task


def _failed(spark: SparkSession, make: Callable[[], BaseException]) -> str:
    with pytest.raises(SPARK_ERRORS) as failed:
        spark.range(1).mapInArrow(_raises(make), "id long").collect()
    return str(failure(failed.value))


def test_a_worker_without_credentials(spark: SparkSession) -> None:
    """The worker's message about what a machine lacks is reported in one line."""
    told = _failed(spark, lambda: OSError("S3 error\n  loading credentials"))
    assert told.startswith("a Spark job failed: OSError: S3 error loading credentials (in a Python worker, at ")
    assert "test_failures.py:" in told
    assert "\n" not in told


def test_overtaken(spark: SparkSession) -> None:
    """A worker's report of another sink keeps its text and class. Spark reports checkpoints, and Delta tables."""
    theirs = Overtaken("the table shop.orders")
    with pytest.raises(SPARK_ERRORS) as failed:
        spark.range(1).mapInArrow(_raises(lambda: Overtaken("the table shop.orders")), "id long").collect()
    told = failure(failed.value)
    assert (Overtaken, str(theirs)) == (type(told), str(told))
    assert isinstance(failure(PySparkException("x: io.delta.exceptions.ConcurrentAppendException: y")), Overtaken)
    assert overtaken(PySparkException("[OTHER] x"), "s3a://c") is None


def test_an_overtaken_checkpoint(spark: SparkSession) -> None:
    """Spark has two messages: the entry existed when this query checked, or both wrote it at the same time."""
    jvm: Any = spark._jvm
    errors = jvm.org.apache.spark.sql.errors.QueryExecutionErrors
    there = jvm.org.apache.hadoop.fs.FileAlreadyExistsException("s3a://c/offsets/1")
    for error in (
        errors.concurrentStreamLogUpdate(1),
        errors.multiStreamingQueriesUsingPathConcurrentlyError("s3a://c/offsets", there),
    ):
        told = overtaken(
            PySparkException(f"[STREAM_FAILED] terminated with exception: {error.getMessage()}"), "s3a://c"
        )
        assert "the checkpoint s3a://c" in str(told), error.getMessage()


def test_a_value_of_a_row(spark: SparkSession) -> None:
    """For an error whose text can contain values, only its kind and place are reported."""
    told = _failed(spark, lambda: ValueError("'4711 Main Street' is no number"))
    assert "4711" not in told
    assert told.startswith("a Spark job failed: ValueError in a Python worker, at ")


_LOST = (
    "An error occurred while calling o169.collectToPython.\n: org.apache.spark.SparkException: Job aborted due to "
    "stage failure: Task 0 in stage 3.0 failed 4 times, most recent failure: Lost task 0.3 in stage 3.0 (TID 30) "
    "(10.0.0.7 executor 3): {why}\nDriver stacktrace:\n\tat org.apache.spark.scheduler.DAGScheduler.x(D.scala:1)"
)


@pytest.mark.parametrize(
    ("why", "told"),
    [
        (
            "ExecutorLostFailure (executor 3 exited unrelated to the running tasks) Reason: worker lost",
            "ExecutorLostFailure (executor 3 exited unrelated to the running tasks) Reason: worker lost (10.0.0.7 "
            "executor 3)",
        ),
        (
            'java.io.IOException: Cannot run program "./env/bin/python": error=2, No such file or directory',
            'java.io.IOException: Cannot run program "./env/bin/python": error=2, No such file or directory (10.0.0.7 '
            "executor 3)",
        ),
        ("java.lang.NumberFormatException: For input string: 4711", "java.lang.NumberFormatException"),
    ],
)
def test_a_lost_task(why: str, told: str) -> None:
    """A lost machine is named. For a Java error whose text can contain values, its class is reported."""
    assert told == cause(_LOST.format(why=why))


def test_nothing_that_may_be_repeated() -> None:
    """An error without a trace is reported by its kind."""
    assert cause("4711 is too much") is None
    assert "a Spark job failed: PySparkException" == str(failure(PySparkException("4711 is too much")))


_SCRIPT = """
from dev.servers.small_spark import SMALL_SPARK
from dev.jars import spark_jars
from spark_sink.spark import session as spark_session
from spark_sink.config.settings import Spark
from spark_sink.errors import FatalError

def task(batches):
    yield from batches
    raise ValueError("4711 Main Street")

def build(master):
    jars = tuple(map(str, spark_jars()))
    return spark_session.build("failures", Spark(master=master, jars=jars, conf=SMALL_SPARK), "warehouse")

spark = build("local[1]")
try:
    spark.range(1).mapInArrow(task, "id long").collect()
except Exception as error:
    print("failed:", "4711" in str(error))
spark.stop()
try:
    build("local-cluster[no such master]")
except FatalError as error:
    print(error)
"""


@pytest.mark.integration
def test_spark_itself_repeats_nothing(tmp_path: Path) -> None:
    """Spark's own log lines for a failed task are suppressed. An invalid master is reported in one line."""
    root = Path(__file__).parents[3]
    ended = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(root)!r})\n{_SCRIPT}"],
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
        cwd=tmp_path,
    )
    assert "failed: True" == ended.stdout.splitlines()[0]
    assert "4711" not in ended.stderr
    assert ended.stdout.splitlines()[1].startswith("Spark did not start: org.apache.spark.SparkException: ")
