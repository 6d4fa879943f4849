"""`translator schema` on the real broker shows what the service stored about tables."""

import json

from confluent_kafka import Producer

from cdc_core.envelope import Column, TableSchema
from tests.translator.commands._bench import Bench
from translator.resolution.resolve import schema_record
from translator.state.metadata_topic import document_record

ORDERS = TableSchema.of(
    "shop", "sales", None, "orders", [Column("id", "int64", key=1), Column("a", "string")], "primary"
)
ITEMS = TableSchema.of("shop", "sales", None, "items", [Column("id", "int64", key=1)], "primary")


def fill(shop: Bench) -> None:
    producer = Producer(shop.client)
    for schema in (ORDERS, ITEMS, ORDERS):
        record = schema_record(schema)
        producer.produce(f"{shop.canonical}.schemas", record.value, record.key)
    for key, document in (("gone", b"{}"), ("one", b'{"x":1}'), ("two", b"{}"), ("gone", None)):
        record = document_record("shop", key, document)
        producer.produce(shop.metadata, record.value, record.key)
    producer.produce(shop.metadata, b"{}", b"!gap/x")
    assert 0 == producer.flush(20)


def test_schemas_by_table(shop: Bench) -> None:
    """Each schema is listed once, with its key. A pattern limits the list."""
    fill(shop)
    ran = shop.run("schema ls", "--json")
    assert 0 == ran.returncode, ran.stderr
    assert [ITEMS.topic_key, ORDERS.topic_key] == [json.loads(line)["key"] for line in ran.stdout.splitlines()]
    ran = shop.run("schema ls", "--table", "*.ord*", "--json")
    (line,) = map(json.loads, ran.stdout.splitlines())
    assert (2, "id", "primary") == (line["columns"], line["key columns"], line["key kind"])
    assert "sales//items" in shop.run("schema ls").stdout


def test_documents(shop: Bench) -> None:
    """The latest document of each key is listed, without deleted ones and marks of other kinds."""
    fill(shop)
    ran = shop.run("schema ls", "--metadata", "--json")
    assert ["shop/one", "shop/two"] == [json.loads(line)["key"] for line in ran.stdout.splitlines()]
    assert '{"x":1}' == shop.run("schema show", "shop/one").stdout.strip()


def test_nothing_is_said_to_be_nothing(shop: Bench) -> None:
    """The terminal output says why the list is empty. JSON output has no lines then."""
    for arguments, said in (
        ([], "no schema has been published"),
        (["--table", "*.ord*"], "there is no schema for a table that matches *.ord*"),
        (
            ["--metadata"],
            "no metadata was learned; only Qlik's metadata messages and the schemas in its registry are learned",
        ),
    ):
        ran = shop.run("schema ls", *arguments)
        assert (0, "", f"translator: {said}\n") == (ran.returncode, ran.stdout, ran.stderr)
        assert ("", "") == ((ran := shop.run("schema ls", "--json", *arguments)).stdout, ran.stderr)


def test_one_whole(shop: Bench) -> None:
    """A schema is shown by its key or id."""
    fill(shop)
    for name in (ORDERS.topic_key, ORDERS.id):
        assert "orders" == json.loads(shop.run("schema show", name).stdout)["table"]
    ran = shop.run("schema show", "nothing")
    assert (2, True) == (ran.returncode, "nothing" in ran.stderr)
