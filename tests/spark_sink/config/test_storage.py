"""The settings of the object store for both of its clients."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from spark_sink.config.settings import parse
from spark_sink.config.storage import Storage
from spark_sink.errors import ConfigError

WAREHOUSE, CHECKPOINT = "s3a://lake/tables", "s3a://lake/checkpoint"

SAFE = {
    "spark.delta.logStore.s3.impl": "cdc.sink.ConditionalLogStore",
    "spark.delta.logStore.s3a.impl": "cdc.sink.ConditionalLogStore",
    "spark.sql.streaming.checkpointFileManagerClass": "cdc.sink.ConditionalCheckpointFiles",
}


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("s3://lake/x", "s3a://lake/x"),
        ("s3n://lake/x", "s3a://lake/x"),
        ("S3://lake/x", "s3a://lake/x"),
        ("s3a://lake/x", "s3a://lake/x"),
        ("abfss://c@a.dfs.core.windows.net/x", "abfss://c@a.dfs.core.windows.net/x"),
        ("s3/x", "s3/x"),
        ("/lake", "/lake"),
    ],
)
def test_locations(given: str, found: str) -> None:
    """Both clients get the scheme that both support. Locations outside S3 are unchanged."""
    text = f"{{pipeline: p, kafka: {{bootstrap_servers: b}}, tables: {{warehouse: {given}}}, checkpoint: {given}}}"
    settings = parse(text, {}, "sink.yaml")
    assert (found, found) == (settings.tables.warehouse, settings.checkpoint)


@pytest.mark.parametrize("location", ["file:///my%20lake", "/lake[1]", "s3://lake/{a,b}", "/lake*", "C:\\lake", "/a#b"])
@pytest.mark.parametrize("setting", ["warehouse", "checkpoint"])
def test_a_location_that_the_clients_do_not_read_alike(location: str, setting: str) -> None:
    places = {"warehouse": "/lake", "checkpoint": "/checkpoint", setting: location}
    lines = ["pipeline: p", "kafka: {bootstrap_servers: b}", f"tables: {{warehouse: '{places['warehouse']}'}}"]
    with pytest.raises(ConfigError, match=rf"{setting}.* do not read alike"):
        parse("\n".join([*lines, f"checkpoint: '{places['checkpoint']}'"]), {}, "sink.yaml")


def test_a_server_that_is_not_amazons() -> None:
    """Both clients get its address and a region, which they require."""
    storage = Storage(endpoint="http://minio:9000/")
    variables = {
        "AWS_ENDPOINT_URL": "http://minio:9000",
        "AWS_ALLOW_HTTP": "true",
        "AWS_REGION": "us-east-1",
        "AWS_VIRTUAL_HOSTED_STYLE_REQUEST": "false",
    }
    assert variables == storage.environment(WAREHOUSE)
    assert {
        "spark.hadoop.fs.s3a.endpoint": "http://minio:9000",
        "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
        "spark.hadoop.fs.s3a.path.style.access": "true",
        **{f"spark.executorEnv.{name}": value for name, value in variables.items()},
        **SAFE,
    } == storage.spark_conf(WAREHOUSE, CHECKPOINT)


def test_amazon() -> None:
    """Without an endpoint, the bucket is part of the host name, and the region is that of the machine."""
    assert {"AWS_VIRTUAL_HOSTED_STYLE_REQUEST": "true"} == Storage().environment(WAREHOUSE)
    conf = Storage(region="eu-central-1").spark_conf(WAREHOUSE, CHECKPOINT)
    assert "eu-central-1" == conf["spark.hadoop.fs.s3a.endpoint.region"] == conf["spark.executorEnv.AWS_REGION"]
    assert "false" == conf["spark.hadoop.fs.s3a.path.style.access"]
    assert "spark.hadoop.fs.s3a.endpoint" not in conf


def test_a_bucket_in_the_name_of_the_host() -> None:
    """deltalake needs the bucket in the address, and S3A adds it."""
    storage = Storage(endpoint="https://s3.example:9000", path_style=False)
    assert "https://lake.s3.example:9000" == storage.environment(WAREHOUSE)["AWS_ENDPOINT_URL"]
    assert "https://s3.example:9000" == storage.spark_conf(WAREHOUSE, CHECKPOINT)["spark.hadoop.fs.s3a.endpoint"]


def test_what_lies_where() -> None:
    """Commits need protection if tables are on S3, and planned batches if the checkpoint is. Folders need nothing."""
    storage = Storage(endpoint="http://minio:9000")
    assert {} == storage.environment("/lake")
    assert {} == storage.spark_conf("/lake", "/checkpoint")
    assert SAFE.keys() - storage.spark_conf(WAREHOUSE, "/checkpoint").keys() == {
        "spark.sql.streaming.checkpointFileManagerClass"
    }
    assert "spark.executorEnv.AWS_ENDPOINT_URL" not in storage.spark_conf("/lake", CHECKPOINT)


@pytest.mark.parametrize(
    ("endpoint", "said"),
    [
        ("minio:9000", "expected http://HOST:PORT"),
        ("http://", "expected http://HOST:PORT"),
        ("http://key:secret@minio:9000", "credentials are not allowed here"),
        ("http://minio:9000/lake", "only the server's address"),
    ],
)
def test_addresses(endpoint: str, said: str) -> None:
    """A bad address is rejected without showing a key."""
    with pytest.raises(ValidationError) as caught:
        Storage(endpoint=endpoint)
    (mistake,) = caught.value.errors(include_input=False, include_url=False)
    assert said in mistake["msg"]
    assert "secret" not in mistake["msg"]
