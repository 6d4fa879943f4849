"""The whole configuration as types; how the file is read is cdc_core.config.

A name that is not known is an error at start, with the nearest known one.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator, model_validator

from cdc_core import config
from cdc_core.otlp import Otlp
from spark_sink.config.iceberg_catalog import CatalogAccess, CatalogType, IcebergCatalog
from spark_sink.config.maintenance_rules import MaintenanceRules
from spark_sink.config.spark_kafka_options import SparkKafka
from spark_sink.config.storage import S3_BY_ITS_OTHER_NAME, Location, Storage
from spark_sink.config.table_rules import TableRules
from spark_sink.schema.engine_choice import Engine, EngineRules
from spark_sink.schema.evolution import DEFAULTS, Policy, ShapeChange
from spark_sink.schema.statement_rules import StatementRules
from spark_sink.schema.table_naming import TablePattern, plain_name
from spark_sink.schema.table_spec import Format, Mode, match_rule

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,128}$")]
TopicName = Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,249}$")]

# Spark unpacks others, too, but of a .zip no file may be executed, and in a .tar none may link to the machine's Python.
Archive = Annotated[str, Field(pattern=r"^[^#,]+\.(tar\.gz|tgz)#[A-Za-z0-9._-]+$")]

ColumnName = Annotated[str, Field(min_length=1)]
TableName = Annotated[str, AfterValidator(plain_name)]
# Over `source/db/schema/table`, with * and ?.
SourcePattern = Annotated[str, Field(pattern=r"^[^\[\]]+$")]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Input(_Section):
    """The topics that are read."""

    topic: TopicName = Field(default="cdc.canonical", description="The canonical topic.")
    schemas_topic: TopicName | None = Field(default=None, description="`<topic>.schemas` when not set.")

    starting_offsets: Literal["earliest", "latest"] | dict[int, Annotated[int, Field(ge=0)]] = Field(
        default="earliest",
        description="Where a pipeline that has done nothing yet begins; or offsets by partition, the others earliest.",
    )
    fail_on_data_loss: bool = Field(
        default=True, description="Stop when the topic no longer has what was to be read next."
    )

    @property
    def schemas(self) -> str:
        return self.schemas_topic or f"{self.topic}.schemas"


class TablesSettings(_Section):
    """The tables that are written."""

    warehouse: Location = Field(description="Folder or object store URL of the tables.")
    name: str = Field(
        default="{source}_{db}_{schema}.{table}",
        description="Pattern of table names; a part that a table does not have goes, and the text before it.",
    )

    rename: dict[SourcePattern, TableName] = Field(
        default_factory=dict, description="Names of single tables, by patterns of `source/db/schema/table`."
    )
    exclude: tuple[SourcePattern, ...] = Field(
        default=(), description="Patterns of `source/db/schema/table`: what is left out."
    )

    @field_validator("name")
    @classmethod
    def _is_pattern(cls, value: str) -> str:
        TablePattern.parse(value)
        return value

    @property
    def pattern(self) -> TablePattern:
        return TablePattern.parse(self.name, self.rename)

    @model_validator(mode="after")
    def _names_are_of_one_table(self) -> TablesSettings:
        given: dict[str, str] = {}
        for source, name in self.rename.items():
            other = given.setdefault(name.lower(), source)
            if other != source and match_rule(name, self.shared) is None:
                raise ValueError(f"rename: {other} and {source} have one name, {name}; declare it in tables.shared")
        return self

    truncate: Literal["park", "all_scopes"] = Field(
        default="park",
        description="A truncate of a table that several scopes feed: the table stops, or is emptied of all of them.",
    )
    statements: Literal["park", "count"] = Field(
        default="park",
        description="A statement changed rows and no event has them: the table is parked, or the statement counted.",
    )
    drops: Literal["park", "keep", "empty"] = Field(
        default="park",
        description="The source table was dropped: the table is parked, keeps its rows, or is emptied as by truncate.",
    )
    rewrites: Literal["park", "mark"] = Field(
        default="mark",
        description="A statement changed values that no event has: the table is parked, or its rows are incomplete.",
    )
    cascades: Literal["warn", "park"] = Field(
        default="warn",
        description="A foreign key changes rows and the source does not log it: a warning, or the table is parked.",
    )
    tombstone_days: int = Field(
        default=7, ge=1, description="So long a deleted row is remembered, by the times of the events."
    )
    park_rejected: int | None = Field(
        default=None,
        ge=0,
        description="A table of which more events of one batch would go to quarantine is parked; not set: never.",
    )
    times: Literal["exact", "microseconds"] = Field(
        default="exact",
        description="A column of times finer than a microsecond becomes text, or its values end at the microsecond.",
    )
    deletes: Literal["hard", "soft"] = Field(
        default="hard",
        description="A deleted row of a mirror is NULL and goes later, or keeps its values and stays.",
    )
    changes: dict[ShapeChange, Policy] = Field(
        default_factory=dict, description="Policy for each kind of schema change; see docs/sink/schema-changes.md."
    )

    modes: dict[str, Mode] = Field(
        default_factory=dict, description="What tables hold, by name or pattern; the others are mirrors."
    )
    keys: dict[str, Annotated[tuple[ColumnName, ...], Field(min_length=1)]] = Field(
        default_factory=dict, description="Key columns as events name them, by name or pattern of tables."
    )

    shared: dict[str, Annotated[tuple[str, ...], Field(min_length=1)]] = Field(
        default_factory=dict,
        description="Patterns of `source/db/schema/table`: what goes to one table, by its name or pattern.",
    )

    formats: dict[str, Format] = Field(
        default_factory=dict, description="The format of tables, by name or pattern; the others are Delta Lake tables."
    )
    buckets: dict[str, Annotated[int, Field(ge=2, le=4096)]] = Field(
        default_factory=dict,
        description="Parts of new Iceberg tables, by hash of the key; by name or pattern.",
    )
    iceberg_catalog: IcebergCatalog | None = Field(
        default=None, description="The catalog of Iceberg tables; not set: they are folders of the warehouse."
    )
    engines: dict[str, Engine] = Field(default_factory=dict, description="The engine of mirrors, by name or pattern.")
    fused_megabytes: int = Field(
        default=1000, ge=0, description="A table of more data in its files is written by Spark, not by deltalake."
    )

    @field_validator("changes")
    @classmethod
    def _key_stays(cls, value: dict[ShapeChange, Policy]) -> dict[ShapeChange, Policy]:
        if value.get(ShapeChange.KEY, Policy.FAIL) not in (Policy.FAIL, Policy.IGNORE):
            raise ValueError("key: allowed are fail and ignore; the rows of the table are no rows of another key")
        return value

    @property
    def rules(self) -> TableRules:
        return TableRules(
            all_scopes=self.truncate == "all_scopes",
            tombstone_days=self.tombstone_days,
            policies={**DEFAULTS, **self.changes},
            park_rejected=self.park_rejected,
            statements=StatementRules(
                park_statements=self.statements == "park",
                drops=self.drops,
                park_rewrites=self.rewrites == "park",
                park_cascades=self.cascades == "park",
            ),
            soft_deletes=self.deletes == "soft",
            truncated_times=self.times == "microseconds",
            modes=self.modes,
            keys=self.keys,
            shared=self.shared,
            exclude=self.exclude,
            engines=EngineRules(self.engines, self.fused_megabytes),
            formats=self.formats,
            buckets=self.buckets,
        )


class Batches(_Section):
    """The size of batches, and how often they begin."""

    trigger_seconds: float = Field(default=10, ge=0, description="Time between the starts of two batches.")
    max_offsets: int = Field(default=500_000, ge=1, description="Kafka records in one batch, at most.")
    target_seconds: float = Field(default=60, gt=0, description="A longer batch is followed by smaller ones.")
    worker_megabytes: int = Field(
        default=1024, ge=1, description="Smaller batches follow when a worker process held more, in MiB."
    )


class MaintenanceSettings(_Section):
    """The files of tables, which the sink keeps few between batches."""

    enabled: bool = Field(default=True, description="Off: only the sink's own tables are maintained.")
    every_seconds: float = Field(default=60, gt=0, description="Time between two turns.")
    budget_seconds: float = Field(default=5, gt=0, description="After so long a turn begins no further step.")
    small_files: int = Field(default=16, ge=2, description="So many small files of a table are made one.")
    # Delta keeps its log for 30 days.
    keep_days: int = Field(
        default=7, ge=7, le=30, description="So far back cuts, sweeps and readers of old versions reach."
    )
    commands_days: int = Field(default=30, ge=1, description="So long commands that have ended are remembered.")

    @property
    def rules(self) -> MaintenanceRules:
        return MaintenanceRules(**self.model_dump())


class CatalogSettings(_Section):
    """A catalog that Delta tables are made known to; Iceberg tables are known to theirs, tables.iceberg_catalog."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]+$")] = Field(
        default="spark_catalog", description="Its name in Spark; see docs/sink/tables.md."
    )


class MetricsSettings(_Section):
    """The metrics for Prometheus."""

    port: int | None = Field(default=None, ge=0, le=65535, description="Answers /metrics on the driver; not set: none.")
    max_tables: int = Field(default=100, ge=0, description="Tables with a label of their own; the rest is `other`.")
    otlp: Otlp | None = Field(default=None, description="Not set: nothing is reported; Prometheus asks at /metrics.")


class Spark(_Section):
    """The Spark session. What spark-submit was given stands, where this says nothing."""

    master: str | None = Field(default=None, description="Such as `local[2]`; spark-submit's when not set.")
    memory: str | None = Field(default=None, description="Of the driver, `4g`; where this process starts Spark.")
    python: str | None = Field(
        default=None, description="The Python of the workers, where it lies there; not set: where ours lies here."
    )
    archives: tuple[Archive, ...] = Field(
        default=(), description="Archives that every executor unpacks, each as `FILE#FOLDER`."
    )
    jars: tuple[str, ...] = Field(default=(), description="Files or patterns; none when the image has them.")
    conf: dict[str, str] = Field(default_factory=dict, description="Further settings of Spark; they win over ours.")

    @field_validator("conf")
    @classmethod
    def _has_no_python(cls, value: dict[str, str]) -> dict[str, str]:
        if "spark.pyspark.python" in value:
            raise ValueError("spark.pyspark.python: say spark.python; only spark-submit hears it under this name")
        return value


class Settings(_Section):
    """`spark-sink run -c FILE`."""

    pipeline: Name = Field(description="Names this sink in the tables it writes; never change it.")
    kafka: SparkKafka
    input: Input = Input()
    tables: TablesSettings
    checkpoint: Location = Field(description="Folder or object store URL where Spark remembers how far it has read.")
    storage: Storage = Storage()
    batches: Batches = Batches()
    maintenance: MaintenanceSettings = MaintenanceSettings()
    catalog: CatalogSettings | None = Field(default=None, description="Not set: no table is registered anywhere.")
    metrics: MetricsSettings = MetricsSettings()
    spark: Spark = Spark()
    log_level: Literal["info", "warning", "error"] = Field(
        default="info", description="Lines of ours below it are not written; those of Spark have levels of their own."
    )

    @model_validator(mode="after")
    def _iceberg_goes_there(self) -> Settings:
        catalog = self.tables.iceberg_catalog
        if catalog is not None and catalog.type is CatalogType.OTHER:
            prefix = f"spark.sql.catalog.{catalog.name}"
            if prefix not in self.spark.conf:
                raise ValueError(f"tables.iceberg_catalog: type other needs {prefix} in spark.conf, and its settings")
        if not self.has_iceberg:
            return self
        if catalog is None and urlsplit(self.tables.warehouse).scheme not in ("", "file"):
            raise ValueError(
                "tables.formats: without tables.iceberg_catalog Iceberg tables are written to folders only; "
                "tables.warehouse is a URL"
            )
        if self.catalog is not None and catalog is None:
            raise ValueError(
                "catalog: it would show an Iceberg table of a folder as it was when it was registered, for ever; give "
                "the Iceberg tables a catalog of their own (tables.iceberg_catalog), or leave `catalog` out"
            )
        if self.catalog is not None and catalog is not None and self.catalog.name == catalog.name:
            raise ValueError(
                f"catalog.name and tables.iceberg_catalog.name are both {catalog.name}: the one gets Delta tables, the "
                "other one Iceberg tables; in Spark they are two, even if one metastore is behind both"
            )
        return self

    @property
    def iceberg_catalog(self) -> CatalogAccess | None:
        """The way to the catalog of the Iceberg tables; None where they are folders."""
        catalog, warehouse = self.tables.iceberg_catalog, self.tables.warehouse
        if catalog is None:
            return None
        store = self.storage.reader_properties(warehouse, catalog.warehouse or "")
        return catalog.access(warehouse, self.spark.conf, store)

    @property
    def store(self) -> Mapping[str, str]:
        """The settings by which Spark finds the object store; none where everything lies in folders."""
        catalog = self.tables.iceberg_catalog
        if catalog is None:
            return self.storage.spark_conf(self.tables.warehouse, self.checkpoint)
        found = self.storage.spark_conf(self.tables.warehouse, self.checkpoint, catalog.warehouse or "")
        return {**found, **S3_BY_ITS_OTHER_NAME} if found else {}

    @property
    def has_iceberg(self) -> bool:
        """Tell whether some tables are Iceberg tables."""
        return Format.ICEBERG in self.tables.formats.values()


def load(path: Path, environment: Mapping[str, str] = os.environ) -> Settings:
    """The settings of a YAML file.

    Raises:
        ConfigError: see cdc_core.config.
    """
    return config.load(Settings, path, environment)


def parse(text: str, environment: Mapping[str, str], where: str) -> Settings:
    """The settings of a YAML text; `where` names it in errors."""
    return config.parse(Settings, text, environment, where)
