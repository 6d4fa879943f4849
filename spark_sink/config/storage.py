"""Configure the object store for tables and checkpoint once, for two clients. Spark reads its S3A settings, and
deltalake reads environment variables.

Spark's web UI shows settings, so no setting contains credentials. Both clients read them from the environment, or use
the machine's or pod's role.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import Annotated
from urllib.parse import urlsplit, urlunsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

# S3A supports only its own scheme; deltalake and most readers support both.
_SCHEMES: Mapping[str, str] = {"s3": "s3a", "s3n": "s3a"}

# Most stores other than Amazon's ignore the region, but both clients require a region.
_REGION_ELSEWHERE = "us-east-1"

# These classes are in the sink's own jar (spark_sink/_java). The corresponding classes in Spark and Delta would
# overwrite another process's files.
LOG_STORE, CHECKPOINT_FILES = "cdc.sink.ConditionalLogStore", "cdc.sink.ConditionalCheckpointFiles"

# Use S3A for locations that a catalog stores as s3:// URLs.
S3_BY_ITS_OTHER_NAME: Mapping[str, str] = {"spark.hadoop.fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem"}


# Spark, deltalake and pyiceberg do not agree whether these characters belong to a name, or whether they are an escape,
# a separator, a pattern, or the end of the path. One of them would write where another does not read.
_AMBIGUOUS = frozenset("%\\[]^|{}*?#")


def _one_place(location: str) -> str:
    wrong = "".join(sorted(_AMBIGUOUS.intersection(location)))
    if wrong:
        raise ValueError(f"contains {wrong}, which Spark and deltalake do not read alike; use another folder")
    return location


def _one_scheme(location: str) -> str:
    scheme, separator, rest = location.partition("://")
    return _SCHEMES.get(scheme.lower(), scheme) + separator + rest


Location = Annotated[str, AfterValidator(_one_place), AfterValidator(_one_scheme)]
"""A folder, or the URL of one in an object store, in a format that both clients understand."""


def _address(value: str) -> str:
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("expected http://HOST:PORT or https://HOST:PORT")
    if parts.username is not None or parts.password is not None:
        raise ValueError(
            "credentials are not allowed here: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment"
        )
    if parts.path.strip("/") or parts.query or parts.fragment:
        raise ValueError("expected only the server's address; specify the bucket in tables.warehouse and checkpoint")
    return value.rstrip("/")


class Storage(BaseModel):
    """The object store for tables and checkpoint. Credentials come from the environment or from a role."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    endpoint: Annotated[str, AfterValidator(_address)] | None = Field(
        default=None,
        description="Address of an S3-compatible server that is not Amazon's, such as `https://minio:9000`.",
    )
    region: str | None = Field(default=None, min_length=1, description="Region of the bucket.")
    path_style: bool | None = Field(
        default=None,
        description=(
            "Put the bucket's name into the path instead of the host name. Defaults to true if you set an endpoint."
        ),
    )

    def enter(self, warehouse: str, environment: MutableMapping[str, str]) -> None:
        """Give deltalake in this process access to the store. The settings override the environment."""
        environment.update(self.environment(warehouse))

    def environment(self, warehouse: str) -> Mapping[str, str]:
        """Return the environment variables with which deltalake finds a warehouse's store. The result is empty for a
        folder.
        """
        if not is_s3(warehouse):
            return {}
        found = {"AWS_VIRTUAL_HOSTED_STYLE_REQUEST": str(not self._by_path).lower()}
        if self.endpoint is not None:
            bucket = urlsplit(warehouse).netloc
            found["AWS_ENDPOINT_URL"] = self.endpoint if self._by_path else _with_bucket(self.endpoint, bucket)
            found["AWS_ALLOW_HTTP"] = str(self.endpoint.startswith("http://")).lower()
        if self._region is not None:
            found["AWS_REGION"] = self._region
        return found

    def reader_properties(self, *locations: str) -> Mapping[str, str]:
        """Return the properties with which pyiceberg finds the store for these locations. The result is empty for
        folders.
        """
        if not any(map(is_s3, locations)):
            return {}
        found = {"s3.force-virtual-addressing": str(not self._by_path).lower()}
        if self.endpoint is not None:
            found["s3.endpoint"] = self.endpoint
        if self._region is not None:
            found["s3.region"] = self._region
        return found

    def spark_conf(self, warehouse: str, checkpoint: str, *others: str) -> Mapping[str, str]:
        """Return the settings with which Spark finds the store, on the driver and on executors."""
        if not any(map(is_s3, (warehouse, checkpoint, *others))):
            return {}
        found = {"fs.s3a.path.style.access": str(self._by_path).lower()}
        if self.endpoint is not None:
            found["fs.s3a.endpoint"] = self.endpoint
        if self._region is not None:
            found["fs.s3a.endpoint.region"] = self._region
        conf = {f"spark.hadoop.{name}": value for name, value in found.items()}
        conf |= {f"spark.executorEnv.{name}": value for name, value in self.environment(warehouse).items()}
        conf |= {f"spark.delta.logStore.{scheme}.impl": LOG_STORE for scheme in ("s3", "s3a")}
        if is_s3(checkpoint):
            conf["spark.sql.streaming.checkpointFileManagerClass"] = CHECKPOINT_FILES
        return conf

    @property
    def _by_path(self) -> bool:
        return self.endpoint is not None if self.path_style is None else self.path_style

    @property
    def _region(self) -> str | None:
        return self.region or (None if self.endpoint is None else _REGION_ELSEWHERE)


def is_s3(location: str) -> bool:
    """Return whether a folder is in an S3 store."""
    return urlsplit(_one_scheme(location)).scheme == "s3a"


def _with_bucket(endpoint: str, bucket: str) -> str:
    parts = urlsplit(endpoint)
    return urlunsplit(parts._replace(netloc=f"{bucket}.{parts.netloc}"))
