"""Apply changes with the pattern that the documentation of table formats recommends, for comparison with the sink."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from pyspark.sql import SparkSession
from pyspark.sql.functions import col, expr

from bench.sink.events import COLUMNS, KEY
from cdc_core.envelope import TableSchema
from spark_sink.events.source import decoded
from spark_sink.schema.column_types import sql_type


class Pattern:
    """Cache the batch, select the last event for each key, and run one MERGE per table, one table after another.

    The pattern does not cover updates that contain only some columns. This version therefore adds a mask that shows
    which columns an update contains. If a batch has two such updates to a row, only the last one takes effect.

    Args:
        target: returns the SQL name for a schema's table.
    """

    def __init__(
        self,
        spark: SparkSession,
        bootstrap: str,
        topic: str,
        schemas: Sequence[TableSchema],
        target: Callable[[TableSchema], str],
    ) -> None:
        self._spark = spark
        self._bootstrap = bootstrap
        self._topic = topic
        self._schemas = schemas
        self._target = target

    def run(self, first: list[int], end: list[int]) -> None:
        """Apply the records between these offsets."""
        starts, ends = ({self._topic: {str(n): at for n, at in enumerate(offsets)}} for offsets in (first, end))
        options = {
            "kafka.bootstrap.servers": self._bootstrap,
            "subscribe": self._topic,
            "startingOffsets": json.dumps(starts),
            "endingOffsets": json.dumps(ends),
            "kafka.max.poll.records": "20000",
        }
        records = self._spark.read.format("kafka").options(**options).load()
        batch = decoded(records, "table").select("table", "op", "pos", "key", "after", "after_state").persist()
        types = {name: sql_type(canonical) for name, canonical in COLUMNS.items()}
        ddl = ", ".join(f"`{name}` {type}" for name, type in types.items())
        try:
            for schema in self._schemas:
                last = (
                    batch.where(col("table") == schema.table)
                    .groupBy("key")
                    .agg(expr("max(struct(pos, op, after, after_state)) as last"))
                )
                last.selectExpr(
                    f"from_json(key, '{KEY} {types[KEY]}').{KEY} as merge_key",
                    "last.pos as pos",
                    "last.op = 'd' as deleted",
                    "if(last.after_state = 'partial', json_object_keys(last.after), null) as sent",
                    f"from_json(last.after, '{ddl}') as row",
                ).createOrReplaceTempView("changes")
                self._merge(self._target(schema))
        finally:
            batch.unpersist()

    def _merge(self, target: str) -> None:
        names = [name for name in COLUMNS if name != KEY]
        updates = ", ".join(
            f"`{n}` = if(s.sent is null or array_contains(s.sent, '{n}'), s.row.`{n}`, t.`{n}`)" for n in names
        )
        columns = ", ".join(f"`{name}`" for name in COLUMNS)
        values = ", ".join(["s.merge_key", *(f"s.row.`{name}`" for name in names)])
        self._spark.sql(
            f"""
            MERGE INTO {target} t USING changes s ON t.`{KEY}` = s.merge_key
            WHEN MATCHED AND s.deleted THEN DELETE
            WHEN MATCHED AND s.pos > t.`_cdc_pos` THEN UPDATE SET {updates}, `_cdc_pos` = s.pos
            WHEN NOT MATCHED AND NOT s.deleted THEN INSERT ({columns}, `_cdc_pos`) VALUES ({values}, s.pos)
            """  # noqa: S608  names of this file's own table
        ).collect()
