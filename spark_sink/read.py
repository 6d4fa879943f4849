"""The canonical topic as a DataFrame of decoded envelopes: the only file that knows Spark's Kafka source."""

from __future__ import annotations

from collections.abc import Collection

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.avro.functions import from_avro
from pyspark.sql.functions import col, expr, lit, when

from spark_sink.framing import DATUM_SQL, PLAIN_FIELDS, reader_schema_text, writer_schema_text
from spark_sink.settings import Settings

# Tables are spread over this many buckets, and buckets over tasks by how many events they had: see apply.py.
BUCKETS = 512

_FETCH_BYTES = str(16 * 2**20)

# The connector asks the broker for the offset range after every poll: with Kafka's 500 records a poll, that is three
# quarters of the cost of reading.
_TUNING = {
    "kafka.max.poll.records": "20000",
    "kafka.max.partition.fetch.bytes": _FETCH_BYTES,
    "kafka.fetch.max.bytes": _FETCH_BYTES,
}


def stream(spark: SparkSession, settings: Settings, starting: str, limit: int) -> DataFrame:
    """The canonical topic from where the checkpoint stands, else from `starting`, in batches of at most `limit`."""
    options = {
        **_TUNING,
        **settings.kafka.spark_options(),
        "subscribe": settings.input.topic,
        "startingOffsets": starting,
        "kafka.isolation.level": "read_committed",
        "failOnDataLoss": str(settings.input.fail_on_data_loss).lower(),
        "maxOffsetsPerTrigger": str(limit),
        # More tasks than partitions read one partition together; the order is restored by the sort before the fold.
        "minPartitions": str(spark.sparkContext.defaultParallelism),
    }
    return spark.readStream.format("kafka").options(**options).load()


def decoded(records: DataFrame, route_sql: str, *beside: str, carried: Collection[str] | None = None) -> DataFrame:
    """Records of the canonical topic with the fields that the sink needs; `kind` is null where one does not decode.

    `value` is the record as it came, for the quarantine: of what does not decode, and of rows of the routes `carried`;
    None: of all. `route` and `bucket` say which events must meet in a task. Columns `beside` stay as they are.
    """
    options = {"avroSchema": reader_schema_text(), "mode": "PERMISSIVE"}
    opened = records.select(
        "partition",
        "offset",
        "value",
        from_avro(expr(DATUM_SQL), writer_schema_text(), options).alias("event"),
        *beside,
    )
    plain = [f"event.{name}" for name in PLAIN_FIELDS]
    # What names no table meets in one task too: it is quarantined under one marker.
    route = f"if(table is null, '', {route_sql})"
    plainly = opened.selectExpr(
        "partition",
        "offset",
        *beside,
        "value",
        *plain,
        "event.unavailable is not null or event.issues is not null as withholds",
        "unix_micros(event.ts_origin_us) as ts",
        "unix_micros(ifnull(event.ts_commit_us, event.ts_origin_us)) as committed",
    ).selectExpr("*", f"{route} as route", f"pmod(hash({route}), {BUCKETS}) as bucket")
    is_carried = lit(True) if carried is None else col("route").isin(*carried)
    is_needed = col("kind").isNull() | ((col("kind") == "row") & is_carried)
    return plainly.withColumn("value", when(is_needed, col("value")))
