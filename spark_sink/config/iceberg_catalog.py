"""The catalog for the Iceberg tables, configured once for two clients. Iceberg in Spark writes the tables. Workers,
commands and the driver's merges read them with pyiceberg.

Some properties have the same name in both clients and are passed on. All others are translated here. Property values
may contain tokens and passwords, and are never shown.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Annotated
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from pydantic import BaseModel, ConfigDict, Field, SecretStr, model_validator

_PROPERTY_OF_TYPE = "type"

# Spark's default catalog name.
FOLDERS = "cdc_iceberg"
CatalogName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
ViewSuffix = Annotated[str, Field(pattern=r"^[A-Za-z0-9_]+$")]

_POSTGRES = "jdbc:postgresql:"

# A list of addresses, separated by commas, allows failover.
_METASTORES = re.compile(r"thrift://[^/@,?#]+:\d+(,thrift://[^/@,?#]+:\d+)*")

# Address parameters that both PostgreSQL's Java driver and libpq support.
_TLS = ("sslmode", "sslrootcert", "sslcert", "sslkey")


class CatalogType(StrEnum):
    """The kinds of catalogs."""

    REST = "rest"
    JDBC = "jdbc"
    HIVE = "hive"
    OTHER = "other"
    """A catalog that both Spark and pyiceberg support, with separate settings for each of them."""


@dataclass(frozen=True)
class CatalogAccess:
    """The settings with which both clients connect to a catalog. It is sent to the workers.

    Args:
        name: the catalog's name in Spark. A jdbc catalog also stores its tables under this name.
        address: the address to show in messages. It contains no secrets.
        spark: the Spark settings that define the catalog.
        reader: properties for pyiceberg's catalog.
    """

    name: str
    type: CatalogType
    address: str
    spark: Mapping[str, str] = field(repr=False)
    reader: Mapping[str, str] = field(repr=False)


class IcebergCatalog(BaseModel):
    """The catalog for Iceberg tables. If unset, the tables are folders in `tables.warehouse`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    type: CatalogType = Field(
        description="Type of the catalog. For the type `other`, configure the catalog in `spark.conf` and `properties`."
    )
    name: CatalogName = Field(
        default=FOLDERS,
        description="Name under which Spark knows the catalog. A jdbc catalog also stores its tables under this name.",
    )
    uri: str | None = Field(
        default=None,
        min_length=1,
        description="Address of the catalog: `https://HOST:PORT/PATH`, `jdbc:postgresql://HOST:PORT/DATABASE`, or "
        "`thrift://HOST:PORT`.",
    )
    warehouse: str | None = Field(
        default=None,
        min_length=1,
        description=(
            "Folder or URL for the tables. For the type `rest`, the name of a warehouse in the catalog. Defaults to "
            "tables.warehouse."
        ),
    )
    views: ViewSuffix | None = Field(
        default=None,
        description=(
            "Suffix such as `_views`. The sink keeps a view of each Iceberg table in this catalog, in a schema "
            "with this suffix. If unset, `catalog.views` also applies to Iceberg tables."
        ),
    )
    properties: dict[str, SecretStr] = Field(
        default_factory=dict,
        description=(
            "Additional properties for both clients of the catalog, such as `credential`. With the type `other`, "
            "only pyiceberg receives them."
        ),
    )

    @model_validator(mode="after")
    def _fits_its_type(self) -> IcebergCatalog:
        if self.name == "spark_catalog":
            raise ValueError(
                "name: spark_catalog is used for Delta tables; choose another name for the Iceberg catalog"
            )
        if self.type is CatalogType.OTHER:
            if self.uri is not None or self.warehouse is not None:
                raise ValueError(
                    "type other does not support uri and warehouse; set them in properties and in spark.conf"
                )
            if not {_PROPERTY_OF_TYPE, "py-catalog-impl"} & self.properties.keys():
                raise ValueError("type other requires properties.type, the name of the catalog type in pyiceberg")
            found = self.properties.get(_PROPERTY_OF_TYPE)
            if found is not None and found.get_secret_value() in (CatalogType.REST, CatalogType.HIVE):
                raise ValueError(
                    "type other is only for catalogs that have no type of their own; use type "
                    f"{found.get_secret_value()}"
                )
        elif self.uri is None:
            raise ValueError(f"type {self.type} requires a uri")
        elif self.type is CatalogType.REST:
            parts = urlsplit(self.uri)
            if parts.scheme not in ("http", "https") or not parts.hostname:
                raise ValueError("uri: expected http://HOST:PORT/PATH or https://HOST:PORT/PATH")
            if parts.username is not None or parts.password is not None or parts.query:
                raise ValueError("uri: expected only the address; set a credential or token in properties")
        elif self.type is CatalogType.HIVE:
            if not _METASTORES.fullmatch(self.uri):
                raise ValueError("uri: expected thrift://HOST:PORT, or several separated by commas")
        else:
            _postgres(self.uri)
        return self

    def access(self, warehouse: str, conf: Mapping[str, str], store: Mapping[str, str]) -> CatalogAccess:
        """Return the connection settings for both clients.

        Args:
            warehouse: the sink's warehouse.
            conf: the Spark settings from the file. Settings for this catalog take precedence.
            store: the properties with which pyiceberg finds the object store.
        """
        given = {name: value.get_secret_value() for name, value in self.properties.items()}
        prefix = f"spark.sql.catalog.{self.name}"
        # Always look up a table in the catalog, not in a session's cache.
        spark = {f"{prefix}.cache-enabled": "false"}
        reader = {**store, **given}
        if self.type is not CatalogType.OTHER:
            place = self.warehouse if self.type is CatalogType.REST else whole_place(self.warehouse or warehouse)
            common = {"uri": self.uri or "", **({"warehouse": place} if place else {})}
            ours = {_PROPERTY_OF_TYPE: self.type.value, **common, **_SPARK_DEFAULTS[self.type], **given}
            spark[prefix] = "org.apache.iceberg.spark.SparkCatalog"
            spark |= {f"{prefix}.{name}": value for name, value in ours.items()}
            reader = {**store, **common, **given}
        if self.type is CatalogType.JDBC:
            reader["uri"] = _for_sqlalchemy(reader["uri"], reader.get("jdbc.user"), reader.get("jdbc.password"))
            reader |= {"init_catalog_tables": "false", "pool_pre_ping": "true"}
        spark |= {name: value for name, value in conf.items() if f"{name}.".startswith(f"{prefix}.")}
        return CatalogAccess(self.name, self.type, self.uri or f"type {reader.get('type', 'other')}", spark, reader)


def whole_place(folder: str) -> str:
    """Return a folder or URL in a form that all readers can use. The metadata contains the location of every file."""
    return folder if urlsplit(folder).scheme else str(Path(folder).absolute())


# Spark's file systems access these files, as they do for all other tables.
_HADOOP_IO = {"io-impl": "org.apache.iceberg.hadoop.HadoopFileIO"}
_SPARK_DEFAULTS: Mapping[CatalogType, Mapping[str, str]] = {
    CatalogType.REST: _HADOOP_IO,
    CatalogType.HIVE: _HADOOP_IO,
    # The newer of the two database layouts. pyiceberg uses it as well.
    CatalogType.JDBC: {**_HADOOP_IO, "jdbc.schema-version": "V1"},
}


def _postgres(uri: str) -> tuple[str, dict[str, str]]:
    """Return the host, database and TLS parameters from a PostgreSQL address.

    Raises:
        ValueError: the address is not a PostgreSQL address.
    """
    if not uri.startswith(_POSTGRES + "//"):
        raise ValueError("uri: expected jdbc:postgresql://HOST:PORT/DATABASE; use type other for any other catalog")
    parts = urlsplit(uri.removeprefix("jdbc:"))
    words = dict(parse_qsl(parts.query))
    if not parts.hostname or not parts.path.strip("/") or parts.fragment:
        raise ValueError("uri: expected jdbc:postgresql://HOST:PORT/DATABASE")
    if parts.username is not None or parts.password is not None or {"user", "password"} & words.keys():
        raise ValueError("uri: set the user and password in properties, as jdbc.user and jdbc.password")
    if unknown := sorted(words.keys() - set(_TLS)):
        raise ValueError(f"uri: {', '.join(unknown)}: both clients support only {', '.join(_TLS)}")
    return f"{parts.netloc}{parts.path}", words


def _for_sqlalchemy(uri: str, user: str | None, password: str | None) -> str:
    """Return the same address in the format of SQLAlchemy, which pyiceberg uses to connect to the database."""
    place, words = _postgres(uri)
    login = "" if user is None else quote(user, safe="") + ("" if password is None else f":{quote(password, safe='')}")
    return f"postgresql+psycopg2://{login}{'@' if login else ''}{place}?{urlencode({'connect_timeout': '20', **words})}"
