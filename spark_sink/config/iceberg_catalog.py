"""The catalog of the Iceberg tables, said once for both of its clients: Spark, which writes the tables, and pyiceberg,
by which workers and commands read them.

Where a property has one name in both, it is said once; the others are translated here. Properties may hold tokens and
passwords, so that none of them is ever shown.
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

# The name in Spark, where nothing else is said.
FOLDERS = "cdc_iceberg"
CatalogName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]

_POSTGRES = "jdbc:postgresql:"

# Several, with commas between them, where one stands in for another.
_METASTORES = re.compile(r"thrift://[^/@,?#]+:\d+(,thrift://[^/@,?#]+:\d+)*")

# Words of the address that both PostgreSQL's driver for Java and libpq know.
_TLS = ("sslmode", "sslrootcert", "sslcert", "sslkey")


class CatalogType(StrEnum):
    """The kind of a catalog."""

    REST = "rest"
    JDBC = "jdbc"
    HIVE = "hive"
    OTHER = "other"
    """Any that Spark and pyiceberg both know, each by settings of its own."""


@dataclass(frozen=True)
class CatalogAccess:
    """The way of both clients to a catalog; it travels to the workers.

    Args:
        name: in Spark, and where the catalog keeps tables of several names, in the catalog.
        address: for people, without secrets.
        spark: settings of a session that knows it.
        reader: properties of pyiceberg's catalog.
    """

    name: str
    type: CatalogType
    address: str
    spark: Mapping[str, str] = field(repr=False)
    reader: Mapping[str, str] = field(repr=False)


class IcebergCatalog(BaseModel):
    """The catalog of the Iceberg tables; not set: they lie in folders of `tables.warehouse`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    type: CatalogType = Field(description="Its kind; `other` is said by spark.conf and `properties`.")
    name: CatalogName = Field(
        default=FOLDERS, description="Its name in Spark; with jdbc also the name under which it keeps the tables."
    )
    uri: str | None = Field(
        default=None,
        min_length=1,
        description="`https://HOST:PORT/PATH`, `jdbc:postgresql://HOST:PORT/DATABASE`, or `thrift://HOST:PORT`.",
    )
    warehouse: str | None = Field(
        default=None,
        min_length=1,
        description="rest: the name of a warehouse there. Else folder or URL of its tables, or tables.warehouse.",
    )
    properties: dict[str, SecretStr] = Field(
        default_factory=dict,
        description="Further properties, such as `credential`, for both clients; with `other` for pyiceberg alone.",
    )

    @model_validator(mode="after")
    def _fits_its_type(self) -> IcebergCatalog:
        if self.name == "spark_catalog":
            raise ValueError("name: spark_catalog holds Delta tables; give the catalog a name of its own")
        if self.type is CatalogType.OTHER:
            if self.uri is not None or self.warehouse is not None:
                raise ValueError("type other has no uri and no warehouse: say them in properties and in spark.conf")
            if not {_PROPERTY_OF_TYPE, "py-catalog-impl"} & self.properties.keys():
                raise ValueError("type other needs properties.type, which pyiceberg knows the catalog by")
            found = self.properties.get(_PROPERTY_OF_TYPE)
            if found is not None and found.get_secret_value() in (CatalogType.REST, CatalogType.HIVE):
                raise ValueError(f"type other is for what has no type here: say type {found.get_secret_value()}")
        elif self.uri is None:
            raise ValueError(f"type {self.type} needs a uri")
        elif self.type is CatalogType.REST:
            parts = urlsplit(self.uri)
            if parts.scheme not in ("http", "https") or not parts.hostname:
                raise ValueError("uri: not http://HOST:PORT/PATH or https://HOST:PORT/PATH")
            if parts.username is not None or parts.password is not None or parts.query:
                raise ValueError("uri: only the address; properties has room for a credential or token")
        elif self.type is CatalogType.HIVE:
            if not _METASTORES.fullmatch(self.uri):
                raise ValueError("uri: not thrift://HOST:PORT, or several with commas between them")
        else:
            _postgres(self.uri)
        return self

    def access(self, warehouse: str, conf: Mapping[str, str], store: Mapping[str, str]) -> CatalogAccess:
        """Return the way to the catalog.

        Args:
            warehouse: of the sink.
            conf: settings of Spark that the file has; those of this catalog win over ours.
            store: properties by which pyiceberg finds the object store.
        """
        given = {name: value.get_secret_value() for name, value in self.properties.items()}
        prefix = f"spark.sql.catalog.{self.name}"
        # A table is what the catalog says, not what a session remembers.
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
    """A folder or URL that does not depend on who reads it: metadata name all files by where they lie."""
    return folder if urlsplit(folder).scheme else str(Path(folder).absolute())


# Files are read and written by the file systems that Spark has, which are those of the other tables.
_HADOOP_IO = {"io-impl": "org.apache.iceberg.hadoop.HadoopFileIO"}
_SPARK_DEFAULTS: Mapping[CatalogType, Mapping[str, str]] = {
    CatalogType.REST: _HADOOP_IO,
    CatalogType.HIVE: _HADOOP_IO,
    # The newer of its two forms, which pyiceberg makes, too.
    CatalogType.JDBC: {**_HADOOP_IO, "jdbc.schema-version": "V1"},
}


def _postgres(uri: str) -> tuple[str, dict[str, str]]:
    """The host and database of the address of a PostgreSQL, and its words about encryption.

    Raises:
        ValueError: it is no such address.
    """
    if not uri.startswith(_POSTGRES + "//"):
        raise ValueError("uri: not jdbc:postgresql://HOST:PORT/DATABASE; any other catalog is type other")
    parts = urlsplit(uri.removeprefix("jdbc:"))
    words = dict(parse_qsl(parts.query))
    if not parts.hostname or not parts.path.strip("/") or parts.fragment:
        raise ValueError("uri: not jdbc:postgresql://HOST:PORT/DATABASE")
    if parts.username is not None or parts.password is not None or {"user", "password"} & words.keys():
        raise ValueError("uri: user and password stand in properties, as jdbc.user and jdbc.password")
    if unknown := sorted(words.keys() - set(_TLS)):
        raise ValueError(f"uri: {', '.join(unknown)}: only {', '.join(_TLS)} are known by both clients")
    return f"{parts.netloc}{parts.path}", words


def _for_sqlalchemy(uri: str, user: str | None, password: str | None) -> str:
    """The same address as SQLAlchemy has it, by which pyiceberg reaches a database."""
    place, words = _postgres(uri)
    login = "" if user is None else quote(user, safe="") + ("" if password is None else f":{quote(password, safe='')}")
    return f"postgresql+psycopg2://{login}{'@' if login else ''}{place}?{urlencode({'connect_timeout': '20', **words})}"
