"""The catalog of Iceberg tables: the configuration and what both clients get from it."""

from __future__ import annotations

import pytest

from spark_sink.config.iceberg_catalog import CatalogAccess
from spark_sink.config.settings import parse
from spark_sink.errors import ConfigError

FILE = """
pipeline: shop
kafka: {{bootstrap_servers: "localhost:9092"}}
tables:
  warehouse: {warehouse}
  formats: {{"*": iceberg}}
  iceberg_catalog: {catalog}
checkpoint: /checkpoint
{more}
"""

SECRET = {"SECRET": "a very secret thing"}
PREFIX = "spark.sql.catalog.cdc_iceberg"


def access(catalog: str, warehouse: str = "/lake", more: str = "") -> CatalogAccess:
    found = parse(FILE.format(catalog=catalog, warehouse=warehouse, more=more), SECRET, "sink.yaml").iceberg_catalog
    assert found is not None
    return found


def test_rest() -> None:
    """Properties reach both clients, secrets appear in no text, and a table can be in an object store."""
    catalog = '{type: rest, uri: "https://catalog:8181/api", warehouse: prod, properties: {credential: "${SECRET}"}}'
    found = access(catalog, "s3://lake/tables", 'storage: {endpoint: "http://minio:9000"}')
    common = {"uri": "https://catalog:8181/api", "warehouse": "prod", "credential": SECRET["SECRET"]}
    assert {f"{PREFIX}.{name}": value for name, value in common.items()}.items() <= found.spark.items()
    assert {f"{PREFIX}.type": "rest", f"{PREFIX}.cache-enabled": "false"}.items() <= found.spark.items()
    store = {"s3.endpoint": "http://minio:9000", "s3.region": "us-east-1", "s3.force-virtual-addressing": "false"}
    assert {**common, **store} == found.reader
    assert SECRET["SECRET"] not in repr(found)
    text = FILE.format(catalog=catalog, warehouse="/lake", more="")
    assert SECRET["SECRET"] not in repr(parse(text, SECRET, "sink.yaml"))


def test_jdbc() -> None:
    """Its tables are below the warehouse. The two clients use different URLs for the same database."""
    properties = '{jdbc.user: "sink@x", jdbc.password: "${SECRET}"}'
    uri = "jdbc:postgresql://db:5432/catalog?sslmode=verify-full&sslrootcert=/ca.pem"
    found = access(f'{{type: jdbc, name: prod, uri: "{uri}", properties: {properties}}}')
    prefix = "spark.sql.catalog.prod"
    expected = {"type": "jdbc", "uri": uri, "warehouse": "/lake", "jdbc.schema-version": "V1"}
    assert {f"{prefix}.{name}": value for name, value in expected.items()}.items() <= found.spark.items()
    assert found.reader["uri"] == (
        "postgresql+psycopg2://sink%40x:a%20very%20secret%20thing@db:5432/catalog"
        "?connect_timeout=20&sslmode=verify-full&sslrootcert=%2Fca.pem"
    )
    assert ("prod", uri) == (found.name, found.address)
    beside = access('{type: jdbc, uri: "jdbc:postgresql://db/x"}', warehouse="/lake")
    assert "/lake" == beside.reader["warehouse"] == beside.spark[f"{PREFIX}.warehouse"]


def test_what_the_file_says_of_spark_wins() -> None:
    more = f"spark: {{conf: {{{PREFIX}.io-impl: com.example.IO, spark.sql.catalog.cdc_iceberg2.x: y}}}}"
    found = access('{type: rest, uri: "http://catalog"}', more=more)
    assert "com.example.IO" == found.spark[f"{PREFIX}.io-impl"]
    assert not any("cdc_iceberg2" in name for name in found.spark)


def test_hive() -> None:
    """Its tables are below the warehouse or another location. A second metastore can stand in for the first."""
    uri = "thrift://ms1:9083,thrift://ms2:9083"
    found = access(f"{{type: hive, uri: '{uri}'}}", warehouse="/lake")
    told = {"uri": uri, "warehouse": "/lake"}
    assert told == found.reader
    assert {
        f"{PREFIX}.{name}": value for name, value in {**told, "type": "hive"}.items()
    }.items() <= found.spark.items()
    beside = access(f"{{type: hive, uri: '{uri}', warehouse: 's3a://tables'}}")
    assert "s3a://tables" == beside.reader["warehouse"] == beside.spark[f"{PREFIX}.warehouse"]


def test_any_other() -> None:
    """Each client gets its own settings."""
    conf = f"{PREFIX}: org.apache.iceberg.spark.SparkCatalog, {PREFIX}.type: glue"
    found = access("{type: other, properties: {type: glue, glue.region: x}}", more=f"spark: {{conf: {{{conf}}}}}")
    assert {"type": "glue", "glue.region": "x"} == found.reader
    assert "glue" == found.spark[f"{PREFIX}.type"]
    assert "org.apache.iceberg.spark.SparkCatalog" == found.spark[PREFIX]


@pytest.mark.parametrize(
    ("catalog", "said"),
    [
        ("{type: rest}", "type rest requires a uri"),
        ("{type: rest, uri: 'thrift://x'}", "uri: expected http://HOST:PORT/PATH"),
        ("{type: rest, uri: 'https://u:${SECRET}@x'}", "only the address"),
        ("{type: jdbc, uri: 'jdbc:mysql://x/y'}", "uri: expected jdbc:postgresql://HOST:PORT/DATABASE"),
        ("{type: jdbc, uri: 'jdbc:postgresql://x'}", "uri: expected jdbc:postgresql://HOST:PORT/DATABASE"),
        ("{type: jdbc, uri: 'jdbc:postgresql://x/y?password=${SECRET}'}", "in properties"),
        (
            "{type: jdbc, uri: 'jdbc:postgresql://x/y?currentSchema=z'}",
            "uri: currentSchema: both clients support only sslmode",
        ),
        ("{type: other, uri: 'http://x'}", "type other does not"),
        ("{type: other}", "type other requires properties.type"),
        ("{type: other, properties: {type: glue}}", "type other requires spark.sql.catalog.cdc_iceberg"),
        ("{type: rest, uri: 'http://x', name: spark_catalog}", "spark_catalog is used for Delta tables"),
        (
            "{type: other, properties: {type: hive}}",
            "type other is only for catalogs that have no type of their own; use type hive",
        ),
        ("{type: hive, uri: 'thrift://ms'}", "uri: expected thrift://HOST:PORT, or several"),
        ("{type: hive, uri: 'thrift://ms:1, thrift://ms:2'}", "uri: expected thrift://HOST:PORT, or several"),
        ("{type: hadoop}", "expected rest, jdbc, hive or other"),
    ],
)
def test_mistakes(catalog: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        access(catalog)
    assert said in str(caught.value)
    assert SECRET["SECRET"] not in str(caught.value)
