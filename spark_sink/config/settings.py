"""The types for all of the sink's settings. cdc_core.config reads the file.

An unknown name is an error at startup. The error suggests the most similar known name.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator, model_validator

from cdc_core import config, table_contract
from cdc_core.lineage.settings import Lineage
from cdc_core.otlp import Otlp
from cdc_core.table_contract import TableContract
from cdc_core.table_id import TableId
from spark_sink.config.iceberg_catalog import CatalogAccess, CatalogType, IcebergCatalog, ViewSuffix
from spark_sink.config.layout_settings import LayoutSettings
from spark_sink.config.maintenance_rules import MaintenanceRules
from spark_sink.config.source_database import SourceDatabase
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

# Spark also unpacks other kinds of archives, but files from a .zip are not executable, and a .tar cannot link to the
# machine's Python.
Archive = Annotated[str, Field(pattern=r"^[^#,]+\.(tar\.gz|tgz)#[A-Za-z0-9._-]+$")]

ColumnName = Annotated[str, Field(min_length=1)]
TableName = Annotated[str, AfterValidator(plain_name)]
# A `source/db/schema/table` pattern with * and ?.
SourcePattern = Annotated[str, Field(pattern=r"^[^\[\]]+$")]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Input(_Section):
    """The input topics."""

    topic: TopicName = Field(default="cdc.canonical", description="Canonical topic.")
    schemas_topic: TopicName | None = Field(
        default=None, description="Topic that contains the table schemas. Defaults to `<topic>.schemas`."
    )

    starting_offsets: Literal["earliest", "latest"] | dict[int, Annotated[int, Field(ge=0)]] = Field(
        default="earliest",
        description=(
            "Where a new pipeline starts: earliest, latest, or offsets by partition. Partitions without an offset "
            "are read from the beginning."
        ),
    )
    fail_on_data_loss: bool = Field(
        default=True, description="Stop if the topic no longer contains the next records to read."
    )

    @property
    def schemas(self) -> str:
        return self.schemas_topic or f"{self.topic}.schemas"


class TablesSettings(_Section):
    """The tables to write."""

    warehouse: Location = Field(description="Folder or object store URL for the tables.")
    name: str = Field(
        default="{source}_{db}_{schema}.{table}",
        description=(
            "Pattern for table names. If a source table lacks one of these levels, the name leaves out that level and "
            "the text before it."
        ),
    )

    rename: dict[SourcePattern, TableName] = Field(
        default_factory=dict,
        description="Explicit names for tables. Each key is a pattern for `source/db/schema/table`.",
    )
    exclude: tuple[SourcePattern, ...] = Field(
        default=(), description="Source tables to ignore. Each entry is a pattern for `source/db/schema/table`."
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
                raise ValueError(
                    f"rename: {other} and {source} would both be named {name}; if this is intended, declare "
                    "the table in tables.shared"
                )
        return self

    max_tables: int = Field(
        default=10_000,
        ge=1,
        description=(
            "Maximum number of tables. Events determine table names, so the number of tables could otherwise grow "
            "without limit. Further tables are parked."
        ),
    )
    new: Literal["follow", "park"] = Field(
        default="follow",
        description=(
            "What to do if a table does not exist yet: create it, or park it until you run `spark-sink resume`."
        ),
    )
    contract: Path | None = Field(
        default=None,
        description=(
            "File or folder with contracts in the format that `translator contract export` writes. The sink parks "
            "a table that breaks its contract. If unset, the sink checks no contracts."
        ),
    )
    truncate: Literal["park", "all_scopes"] = Field(
        default="park",
        description=(
            "What to do if a table that several scopes write to is truncated: park the table, or delete the rows from "
            "all scopes."
        ),
    )
    statements: Literal["park", "count"] = Field(
        default="park",
        description=(
            "What to do if a statement changes rows without row events: park the table, or only count the statement."
        ),
    )
    drops: Literal["park", "keep", "empty"] = Field(
        default="park",
        description=(
            "What to do if the source table is dropped: park the table, keep its rows, or delete its rows as after "
            "a truncate."
        ),
    )
    rewrites: Literal["park", "mark"] = Field(
        default="mark",
        description=(
            "What to do if a statement changes values without row events: park the table, or mark its rows as "
            "incomplete."
        ),
    )
    cascades: Literal["warn", "park"] = Field(
        default="warn",
        description=(
            "What to do if a foreign key changes rows and the source does not log these changes: log a warning, or "
            "park the table."
        ),
    )
    tombstone_days: int = Field(
        default=7, ge=1, description="How many days the sink remembers deleted rows, measured in event time."
    )
    park_rejected: int | None = Field(
        default=None,
        ge=0,
        description=(
            "Maximum number of events per table and batch that can go to quarantine. If a batch exceeds this "
            "limit, the sink parks the table. No limit if unset."
        ),
    )
    times: Literal["exact", "microseconds"] = Field(
        default="exact",
        description=(
            "How to store times that are more precise than a microsecond: as text, or truncated to microseconds."
        ),
    )
    deletes: Literal["hard", "soft"] = Field(
        default="hard",
        description=(
            "With `hard`, deleted rows are removed from their mirror. With `soft`, they stay there with their values, "
            "and `_cdc_deleted_at` is set."
        ),
    )
    changes: dict[ShapeChange, Policy] = Field(
        default_factory=dict,
        description="What to do about each kind of schema change. See docs/sink/schema-changes.md.",
    )

    modes: dict[str, Mode] = Field(
        default_factory=dict,
        description="Mode of each table, keyed by table name or pattern. All other tables are mirrors.",
    )
    keys: dict[str, Annotated[tuple[ColumnName, ...], Field(min_length=1)]] = Field(
        default_factory=dict,
        description=(
            "Key columns of each table, keyed by table name or pattern. Use the names that the columns have in the "
            "events."
        ),
    )

    shared: dict[str, Annotated[tuple[str, ...], Field(min_length=1)]] = Field(
        default_factory=dict,
        description=(
            "Source tables that share a table. Each key is the name or pattern of a shared table, and each value lists "
            "patterns for `source/db/schema/table`."
        ),
    )

    formats: dict[str, Format] = Field(
        default_factory=dict,
        description="Format of each table, keyed by table name or pattern. All other tables are Delta tables.",
    )
    buckets: dict[str, Annotated[int, Field(ge=2, le=4096)]] = Field(
        default_factory=dict,
        description=(
            "Number of buckets in new Iceberg tables, keyed by table name or pattern. These tables are partitioned "
            "by a hash of the key."
        ),
    )
    layout: dict[str, LayoutSettings] = Field(
        default_factory=dict,
        description=(
            "File layout for new tables, keyed by table name or pattern. To apply it to an existing table, run "
            "`spark-sink relayout`."
        ),
    )
    iceberg_catalog: IcebergCatalog | None = Field(
        default=None, description="Catalog for Iceberg tables. If unset, Iceberg tables are folders in the warehouse."
    )
    engines: dict[str, Engine] = Field(
        default_factory=dict, description="Engine that writes mirrors, keyed by table name or pattern."
    )
    fused_megabytes: int = Field(
        default=1000,
        ge=0,
        description="Maximum size, in MB, of the tables that deltalake writes. Spark writes larger tables.",
    )

    @field_validator("changes")
    @classmethod
    def _key_stays(cls, value: dict[ShapeChange, Policy]) -> dict[ShapeChange, Policy]:
        if value.get(ShapeChange.KEY, Policy.FAIL) not in (Policy.FAIL, Policy.IGNORE):
            raise ValueError("key: only fail and ignore are allowed, because the existing rows cannot get another key")
        return value

    @property
    def contracts(self) -> dict[TableId, TableContract]:
        """The contracts by source table, read from the files.

        Raises:
            ConfigError: see cdc_core.table_contract.
        """
        return {} if self.contract is None else table_contract.read(self.contract)

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
            layouts={name: one.layout for name, one in self.layout.items()},
            max_tables=self.max_tables,
            parks_new=self.new == "park",
        )


class Batches(_Section):
    """The batch size, and the time between batches."""

    trigger_seconds: float = Field(default=10, ge=0, description="Seconds between the starts of two batches.")
    max_offsets: int = Field(default=500_000, ge=1, description="Maximum number of Kafka records in one batch.")
    target_seconds: float = Field(
        default=60,
        gt=0,
        description="Target duration of a batch in seconds. If a batch takes longer, the following batches are "
        "smaller.",
    )
    worker_megabytes: int = Field(
        default=1024,
        ge=1,
        description=(
            "Target memory for each worker process, in MiB. If a worker uses more memory, later batches are smaller."
        ),
    )


class MaintenanceSettings(_Section):
    """Maintenance of table files between batches."""

    enabled: bool = Field(
        default=True, description="Maintain all tables. If false, the sink maintains only its own tables."
    )
    every_seconds: float = Field(default=60, gt=0, description="Seconds between maintenance runs.")
    budget_seconds: float = Field(
        default=5, gt=0, description="Seconds after which a maintenance run begins no new steps."
    )
    small_files: int = Field(
        default=16, ge=2, description="Once a table has this many small files, the sink merges them."
    )
    # Delta keeps its log for 30 days.
    keep_days: int = Field(
        default=7,
        ge=7,
        le=30,
        description="How many days old table versions remain available for cuts, sweeps and readers.",
    )
    commands_days: int = Field(
        default=30, ge=1, description="How many days the sink keeps finished commands and verification results."
    )

    @property
    def rules(self) -> MaintenanceRules:
        return MaintenanceRules(**self.model_dump())


class CatalogSettings(_Section):
    """A catalog in which Delta tables are registered. The setting for Iceberg tables is tables.iceberg_catalog."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]+$")] = Field(
        default="spark_catalog", description="Name of the catalog in Spark. See docs/sink/tables.md."
    )
    views: ViewSuffix | None = Field(
        default=None,
        description=(
            "Suffix for schemas that contain a view of each table. With `_views`, the view of `shop_sales.orders` is "
            "`shop_sales_views.orders`. If unset, the sink keeps no views."
        ),
    )


class MetricsSettings(_Section):
    """The metrics for Prometheus and OpenTelemetry."""

    host: str = Field(default="127.0.0.1", description="Address to listen on. Use 0.0.0.0 in a container.")
    port: int | None = Field(
        default=None,
        ge=0,
        le=65535,
        description="Port on the driver that serves metrics and probes. Disabled when unset.",
    )
    max_tables: int = Field(
        default=100,
        ge=0,
        description="Number of tables that get their own metric label. All other tables share the label `other`.",
    )
    otlp: Otlp | None = Field(
        default=None,
        description="OpenTelemetry receiver for metrics. If unset, metrics are available only at /metrics.",
    )


class Spark(_Section):
    """The Spark session. Settings that are passed to spark-submit apply unless this section also sets them."""

    master: str | None = Field(
        default=None,
        pattern=r"^(local(\[(\*|[1-9][0-9]*)(, *[0-9]+)?\])?|local-cluster\[.+\]|spark://.+|k8s://.+|yarn)$",
        description="Spark master, such as `local[2]`. If unset, the master comes from spark-submit.",
    )
    memory: str | None = Field(
        default=None, description="Driver memory, such as `4g`. Applies only if this process starts Spark."
    )
    python: str | None = Field(
        default=None,
        description="Path to Python on the worker machines. Defaults to the path of the Python that runs the sink.",
    )
    archives: tuple[Archive, ...] = Field(
        default=(), description="Archives for every executor to unpack, each written as `FILE#FOLDER`."
    )
    jars: tuple[str, ...] = Field(
        default=(),
        description=(
            "Jar files, or patterns that match them. Not needed if Spark already has the jars, as it does in the image."
        ),
    )
    conf: dict[str, str] = Field(
        default_factory=dict,
        description="Additional Spark settings. They override the sink's own Spark settings.",
    )

    @field_validator("conf")
    @classmethod
    def _has_no_python(cls, value: dict[str, str]) -> dict[str, str]:
        if "spark.pyspark.python" in value:
            raise ValueError("spark.pyspark.python: use spark.python instead; only spark-submit reads this name")
        return value


class Settings(_Section):
    """The settings of `spark-sink run -c FILE`."""

    pipeline: Name = Field(description="Name that identifies this sink in the tables that it writes. Never change it.")
    kafka: SparkKafka
    input: Input = Input()
    tables: TablesSettings
    checkpoint: Location = Field(description="Folder or object store URL in which Spark stores its progress.")
    storage: Storage = Storage()
    batches: Batches = Batches()
    maintenance: MaintenanceSettings = MaintenanceSettings()
    catalog: CatalogSettings | None = Field(
        default=None, description="Catalog in which to register the tables. If unset, tables are not registered."
    )
    metrics: MetricsSettings = MetricsSettings()
    lineage: Lineage | None = Field(
        default=None,
        description=(
            "OpenLineage receiver for events about the canonical topic, the tables and their columns. If unset, "
            "nothing is reported."
        ),
    )
    spark: Spark = Spark()
    sources: dict[Name, SourceDatabase] = Field(
        default_factory=dict,
        description="Databases that `spark-sink verify --against database:NAME` can read, keyed by name.",
    )
    log_level: Literal["info", "warning", "error"] = Field(
        default="info", description="Lowest level that the sink logs. Spark's loggers have levels of their own."
    )

    @model_validator(mode="after")
    def _lineage_is_apart(self) -> Settings:
        topic = None if self.lineage is None else self.lineage.topic
        if topic in (self.input.topic, self.input.schemas):
            raise ValueError(f"lineage.to: the topic {topic} is already an input of this configuration")
        return self

    @model_validator(mode="after")
    def _iceberg_goes_there(self) -> Settings:
        catalog = self.tables.iceberg_catalog
        if catalog is not None and catalog.type is CatalogType.OTHER:
            prefix = f"spark.sql.catalog.{catalog.name}"
            if prefix not in self.spark.conf:
                raise ValueError(f"tables.iceberg_catalog: type other requires {prefix} and its settings in spark.conf")
        if not self.has_iceberg:
            return self
        if catalog is None and urlsplit(self.tables.warehouse).scheme not in ("", "file"):
            raise ValueError(
                "tables.formats: tables.warehouse is a URL, but without tables.iceberg_catalog, Iceberg tables can "
                "only be written to local folders"
            )
        if self.catalog is not None and catalog is None:
            raise ValueError(
                "catalog: Iceberg tables in folders would always appear in the catalog as they were when "
                "registered; configure tables.iceberg_catalog for them, or remove `catalog`"
            )
        if self.catalog is not None and catalog is not None and self.catalog.name == catalog.name:
            raise ValueError(
                f"catalog.name and tables.iceberg_catalog.name are both {catalog.name}, but Delta and Iceberg "
                "tables need separate catalogs in Spark, even if both use the same metastore"
            )
        return self

    @property
    def iceberg_catalog(self) -> CatalogAccess | None:
        """The connection to the catalog for Iceberg tables, or None if these tables are folders."""
        catalog, warehouse = self.tables.iceberg_catalog, self.tables.warehouse
        if catalog is None:
            return None
        store = self.storage.reader_properties(warehouse, catalog.warehouse or "")
        return catalog.access(warehouse, self.spark.conf, store)

    @property
    def registered(self) -> str | None:
        """The Spark catalog in which Delta tables are registered, or None if they are not registered."""
        return None if self.catalog is None else self.catalog.name

    @property
    def store(self) -> Mapping[str, str]:
        """Return the settings with which Spark finds the object store. The result is empty if everything is in
        folders.
        """
        catalog = self.tables.iceberg_catalog
        if catalog is None:
            return self.storage.spark_conf(self.tables.warehouse, self.checkpoint)
        found = self.storage.spark_conf(self.tables.warehouse, self.checkpoint, catalog.warehouse or "")
        return {**found, **S3_BY_ITS_OTHER_NAME} if found else {}

    @property
    def has_iceberg(self) -> bool:
        """Return whether any table is an Iceberg table."""
        return Format.ICEBERG in self.tables.formats.values()


def load(path: Path, environment: Mapping[str, str] = os.environ) -> Settings:
    """Return the settings in a YAML file.

    Raises:
        ConfigError: see cdc_core.config.
    """
    return config.load(Settings, path, environment)


def parse(text: str, environment: Mapping[str, str], where: str) -> Settings:
    """Return the settings in a YAML text. Errors refer to the text by `where`."""
    return config.parse(Settings, text, environment, where)
