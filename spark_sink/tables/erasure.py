"""Find the rows of a table with an erased key, and delete them through Spark, in either format."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col

from spark_sink.events.erased_keys import RowKey, digest_of, digests_of
from spark_sink.schema.evolution import TableShape
from spark_sink.schema.table_spec import Mode
from spark_sink.tables.meta_columns import KEY_OLD

_KEYS = "cdc_erased_keys"


class TableErasure(Protocol):
    """Erases rows of the tables in one format."""

    def erase(self, name: str, shape: TableShape, key: RowKey, properties: Mapping[str, str]) -> int:
        """Set properties, delete the rows with this key from the newest version, and return how many were deleted."""

    def purge(self, name: str) -> int:
        """Delete everything that only earlier versions need, and return how many data files were deleted."""


def delete_rows(session: SparkSession, table: str, rows: DataFrame, shape: TableShape, key: RowKey) -> int:
    """Delete the rows with this key, in at most two commits. Their conditions contain no values, because a commit
    records its condition.

    Args:
        table: the table in SQL, quoted.
        rows: the rows of the table.
    """
    keyed = key.within(shape)
    if keyed is None:
        return 0
    keys = rows.select(*(col(f"`{column}`") for column in key.columns)).distinct()

    def matching(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            values = zip(*(column.to_pylist() for column in batch.columns), strict=True)
            yield batch.filter(pa.array([key.digest == digest_of(one) for one in values], pa.bool_()))

    deleted = _delete(session, table, rows, keys.mapInArrow(matching, keys.schema))
    if shape.mode is not Mode.CHANGELOG:
        return deleted
    texts = rows.select(KEY_OLD).distinct()

    def matching_texts(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            known = batch.column(0).to_pylist()
            digests = digests_of({text for text in known if text is not None}, keyed)
            yield batch.filter(pa.array([key.digest == digests.get(text) for text in known], pa.bool_()))

    return deleted + _delete(session, table, rows, texts.mapInArrow(matching_texts, texts.schema))


def _delete(session: SparkSession, table: str, rows: DataFrame, keys: DataFrame) -> int:
    found = session.createDataFrame(keys.toArrow(), keys.schema)
    count = rows.join(found, found.columns, "left_semi").count()
    if count:
        found.createOrReplaceTempView(_KEYS)
        same = " AND ".join(f"t.`{column}` = s.`{column}`" for column in found.columns)
        session.sql(f"MERGE INTO {table} AS t USING {_KEYS} AS s ON {same} WHEN MATCHED THEN DELETE")
        session.catalog.dropTempView(_KEYS)
    return count
