"""Read the canonical topic as a data frame. This module requires PySpark, the `spark-avro` jar and, for Kafka, the
`spark-sql-kafka` jar.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from cdc_core.envelope import avro_schema
from cdc_core.wire_format import DATUM_SQL

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession

KAFKA_COLUMNS = ("topic", "partition", "offset")


def read_changes(spark: SparkSession, options: Mapping[str, str], *, stream: bool = False) -> DataFrame:
    """Return a topic's committed events in the format of `decoded`.

    Args:
        options: the options for Spark's Kafka source, such as `kafka.bootstrap.servers` and `subscribe`.
        stream: True for a streaming DataFrame.
    """
    reader = spark.readStream if stream else spark.read
    chosen = {"kafka.isolation.level": "read_committed", "startingOffsets": "earliest", **options}
    return decoded(reader.format("kafka").options(**chosen).load())


def decoded(records: DataFrame) -> DataFrame:
    """Decode Kafka records, as Spark reads them, into one column per envelope field. The columns `topic`, `partition`
    and `offset` come first, if present.

    Both Avro framings are supported. For any other value, including JSON, every field is null. `undecoded` then
    contains the value, so that you can keep it.
    """
    from pyspark.sql.avro.functions import from_avro
    from pyspark.sql.functions import col, expr, when

    event = from_avro(expr(DATUM_SQL), json.dumps(avro_schema()), {"mode": "PERMISSIVE"})
    places = [name for name in KAFKA_COLUMNS if name in records.columns]
    opened = records.select(*places, "value", event.alias("event"))
    undecoded = when(col("event.kind").isNull(), col("value")).alias("undecoded")
    return opened.select(*places, "event.*", undecoded)
