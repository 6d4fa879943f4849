"""The one seam from the format of a table to what reads and writes it: the rest of the sink asks here, by name."""

from __future__ import annotations

from pyspark.sql import SparkSession

from spark_sink.tables.delta.spark import SETTINGS, DeltaInSpark
from spark_sink.tables.spark_writer import SparkWriter
from spark_sink.tables.staging import Staging


def spark_writer(spark: SparkSession, staging: Staging) -> SparkWriter:
    """Return the writer of the tables that Spark writes."""
    delta = DeltaInSpark(staging)
    return SparkWriter(spark, staging, lambda _: delta, SETTINGS)
