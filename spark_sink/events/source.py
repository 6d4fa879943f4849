"""Read the canonical topic as a data frame of decoded envelopes. No other file uses Spark's Kafka source."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.avro.functions import from_avro
from pyspark.sql.functions import col, expr, lit, to_json, when

from cdc_core.wire_format import DATUM_SQL
from spark_sink.config.settings import Settings
from spark_sink.events.wire_format import NEEDED, PLAIN_FIELDS, reader_schema_text, writer_schema_text

# The number of buckets into which tables are hashed. Buckets are assigned to tasks by their number of events: see
# apply/spark_runner.py.
BUCKETS = 512

_FETCH_BYTES = str(16 * 2**20)

# The connector asks the broker for the offset range after every poll. With Kafka's default of 500 records per poll,
# these requests make up three quarters of the reading cost.
_TUNING = {
    "kafka.max.poll.records": "20000",
    "kafka.max.partition.fetch.bytes": _FETCH_BYTES,
    "kafka.fetch.max.bytes": _FETCH_BYTES,
    # A broker delays an empty response by this time, which is half a second by default. Every batch receives an empty
    # response after its last record.
    "kafka.fetch.max.wait.ms": "10",
}


# Whether an event omits a column that it may have changed. If an update lists its changed columns, no other columns
# changed. An issue can also affect only a column's old value, while the new value is good.
WITHHOLDS_SQL = """
    case
        when event.unavailable is null and event.issues is null then false
        when event.op <=> 'u' then exists(
            concat(ifnull(event.unavailable, array()), ifnull(event.issues.col, array())),
            name -> (changed is null or array_contains(changed, name))
                and not ifnull(array_contains(json_object_keys(event.after), name), false)
        )
        else true
    end
"""


def stream(spark: SparkSession, settings: Settings, starting: str, limit: int) -> DataFrame:
    """Return the canonical topic in batches of at most `limit` records. It begins at the checkpoint's offsets or, if
    there are none, at `starting`.
    """
    options = {
        **_TUNING,
        **settings.kafka.spark_options(),
        "subscribe": settings.input.topic,
        "startingOffsets": starting,
        "kafka.isolation.level": "read_committed",
        "failOnDataLoss": str(settings.input.fail_on_data_loss).lower(),
        "maxOffsetsPerTrigger": str(limit),
        # If there are more tasks than partitions, several tasks read one partition. The sort before the fold restores
        # the order.
        "minPartitions": str(spark.sparkContext.defaultParallelism),
    }
    return spark.readStream.format("kafka").options(**options).load()


class TopicRange:
    """Reads ranges of the canonical topic again.

    Args:
        begins: returns the first available offset in each partition.
    """

    def __init__(self, spark: SparkSession, settings: Settings, begins: Callable[[], Mapping[int, int]]) -> None:
        self._spark = spark
        self._settings = settings
        self.begins = begins

    def read(self, begin: Mapping[int, int], end: Mapping[int, int]) -> DataFrame:
        """Return the records of each partition from `begin` up to, but not including, `end`."""
        topic = self._settings.input.topic
        options = {
            **_TUNING,
            **self._settings.kafka.spark_options(),
            "assign": json.dumps({topic: sorted(begin)}),
            "startingOffsets": json.dumps({topic: {str(partition): offset for partition, offset in begin.items()}}),
            "endingOffsets": json.dumps({topic: {str(partition): offset for partition, offset in end.items()}}),
            "kafka.isolation.level": "read_committed",
            "failOnDataLoss": "true",
            "minPartitions": str(self._spark.sparkContext.defaultParallelism),
        }
        return self._spark.read.format("kafka").options(**options).load()


def _fields(names: Collection[str]) -> Column:
    """Return these envelope fields from the `value` column. The result is null for a value that cannot be decoded."""
    options = {"avroSchema": reader_schema_text(names), "mode": "PERMISSIVE"}
    return from_avro(expr(DATUM_SQL), writer_schema_text(), options)


def decoded(
    records: DataFrame, route_sql: str, *extra_columns: str, carried: Collection[str] | None = None
) -> DataFrame:
    """Return the records with the fields that the sink needs. `kind` is null if a record cannot be decoded.

    `value` is the raw record for the quarantine. It is present if the record cannot be decoded, and for rows on the
    routes in `carried` (on all routes if `carried` is None). All records with the same `route` or `bucket` must be in
    one task. `extra_columns` are passed through.
    """
    opened = records.select("partition", "offset", "value", _fields(NEEDED).alias("event"), *extra_columns)
    # Few events need the list of changed columns, so the list is decoded only for those events.
    names_columns = col("event.unavailable").isNotNull() | col("event.issues").isNotNull()
    opened = opened.withColumn("changed", when(names_columns, _fields({"changed"})["changed"]))
    # Only statements, which are rare, need their notes.
    is_statement = col("event.kind") == "schema"
    opened = opened.withColumn("notes", when(is_statement, to_json(_fields({"notes"})["notes"])))
    plain = [f"event.{name}" for name in PLAIN_FIELDS]
    # Records without a table also share a task, because they are quarantined under one marker.
    route = f"if(table is null, '', {route_sql})"
    plainly = opened.selectExpr(
        "partition",
        "offset",
        *extra_columns,
        "value",
        *plain,
        "notes",
        f"{WITHHOLDS_SQL} as withholds",
        "unix_micros(event.ts_origin_us) as ts",
        "unix_micros(event.ts_commit_us) as committed",
        "event.tx.id as tx",
    ).selectExpr("*", f"{route} as route", f"pmod(hash({route}), {BUCKETS}) as bucket")
    is_carried = lit(True) if carried is None else col("route").isin(*carried)
    may_wait = (col("kind") == "row") | col("notes").isNotNull()
    is_needed = col("kind").isNull() | (may_wait & is_carried)
    return plainly.withColumn("value", when(is_needed, col("value")))
