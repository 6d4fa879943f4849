"""One Spark session for all tests of the sink, and tables in a folder of each test."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from dev.jars import spark_jars
from dev.small_spark import SMALL_SPARK
from spark_sink import spark_session
from spark_sink.config.settings import Spark
from tests.spark_sink.lake import Lake


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A local session, made as the product makes it; one core, because what costs here is starting Python workers."""
    settings = Spark(
        master="local[1]",
        memory="2g",
        jars=tuple(map(str, spark_jars())),
        conf=SMALL_SPARK,
    )
    running = spark_session.build("tests", settings, str(tmp_path_factory.mktemp("warehouse")))
    yield running
    running.stop()


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Iterator[Lake]:
    """A warehouse of its own, and the batches written to it."""
    yield Lake(spark, tmp_path / "warehouse")
    # PySpark leaves the sockets of results to the garbage collector: not in somebody else's test.
    gc.collect()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """PySpark does not close the sockets through which results come."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"))
            item.add_marker(pytest.mark.integration)
