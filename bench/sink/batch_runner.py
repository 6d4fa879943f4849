"""Run the sink one micro-batch at a time. Each batch has all new records in the topic."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from bench.sink.feeder import TOPIC
from cdc_core.envelope import TableSchema
from cdc_core.table_id import TableId
from spark_sink.apply.driver import Applier
from spark_sink.apply.spark_runner import SparkRunner
from spark_sink.config.settings import Input, Settings, TablesSettings
from spark_sink.config.spark_kafka_options import SparkKafka
from spark_sink.control_tables.batches import ControlTables
from spark_sink.events.source import stream
from spark_sink.metrics import Metrics
from spark_sink.schema.catalog import SchemaCatalog
from spark_sink.schema.table_spec import Format
from spark_sink.tables.formats import FormatTables, spark_ddl, spark_writer
from spark_sink.tables.locations import location

_APP = "bench/1"


class BatchRunner:
    """Applies new records from the topic to tables in a folder.

    Args:
        format: the format for all tables.
    """

    def __init__(
        self,
        spark: SparkSession,
        bootstrap: str,
        folder: Path,
        schemas: Iterable[TableSchema],
        topic: str = TOPIC,
        format: Format = Format.DELTA,
    ) -> None:
        self._spark = spark
        self.warehouse = folder / "warehouse"
        self._settings = Settings(
            pipeline="bench",
            kafka=SparkKafka(bootstrap_servers=bootstrap),
            input=Input(topic=topic),
            tables=TablesSettings(warehouse=str(self.warehouse), formats={"*": format}),
            checkpoint=str(folder / "checkpoint"),
        )
        warehouse, rules = str(self.warehouse), self._settings.tables.rules
        tables = FormatTables(warehouse, _APP, rules.engines, rules.formats)
        ddl = spark_ddl(spark, tables)
        ddl.create_quarantine()
        control = ControlTables(warehouse, "bench", "1", topic)
        control.create()
        self._applier = Applier(
            _Announced(schemas),
            tables,
            ddl,
            self._settings.tables.pattern,
            _APP,
            rules,
            control,
            Metrics(tables=0),
            SparkRunner(spark),
            spark_writer(spark, tables),
        )

    def apply(self, measure: Callable[[Callable[[], object]], None], limit: int) -> None:
        """Apply the new records, at most `limit` of them, in one micro-batch. The start and the end of the query are
        not measured.

        Args:
            measure: called with a function that does the batch's work. `measure` must call that function.
        """

        def measured(records: DataFrame, batch: int) -> None:
            measure(partial(self._applier, records, batch))

        source = stream(self._spark, self._settings, "earliest", limit)
        writer = source.writeStream.foreachBatch(measured).option("checkpointLocation", self._settings.checkpoint)
        writer.trigger(availableNow=True).start().awaitTermination()

    def name(self, schema: TableSchema) -> str:
        """Return the lakehouse name for a schema's table."""
        return self._settings.tables.pattern.target(TableId.of(schema))

    def table(self, schema: TableSchema) -> str:
        """Return the folder for a schema's table."""
        return location(str(self.warehouse), self.name(schema))


class _Announced:
    """The schemas topic, as the sink would have read it."""

    def __init__(self, schemas: Iterable[TableSchema]) -> None:
        self._catalog = SchemaCatalog()
        for schema in schemas:
            self._catalog.add(schema)

    def refresh(self) -> SchemaCatalog:
        return self._catalog
