"""`translator contract` on the real broker exports contracts, and reports schemas and statements that break them."""

import json
from pathlib import Path

import yaml
from confluent_kafka import Producer

from cdc_core.envelope import Column, TableSchema
from cdc_core.table_contract import document, read
from tests.translator.commands._bench import Bench
from tests.translator.commands._program import run
from translator.resolution.resolve import schema_record

ID = Column("id", "int64", nullable=False, key=1, native="bigint")
NOTE = Column("note", "string", nullable=False, native="varchar(10)")
FIRST = TableSchema.of("shop", "sales", None, "orders", [ID], "primary")
ORDERS = TableSchema.of("shop", "sales", None, "orders", [ID, NOTE], "primary")
ITEMS = TableSchema.of("shop", "sales", None, "odd items", [ID], "primary")


def announce(shop: Bench, *schemas: TableSchema) -> None:
    producer = Producer(shop.client)
    for schema in schemas:
        record = schema_record(schema)
        producer.produce(f"{shop.canonical}.schemas", record.value, record.key, timestamp=1_700_000_000_000)
    assert 0 == producer.flush(20)


def test_export(shop: Bench, tmp_path: Path) -> None:
    """Each table has one file, with its newest schema. Exporting again writes the same bytes."""
    announce(shop, ORDERS, FIRST, ITEMS, ORDERS)
    folder = tmp_path / "contracts"
    ran = shop.run("contract export", "--out", str(folder))
    assert 0 == ran.returncode, ran.stderr
    files = [Path(line) for line in ran.stdout.splitlines()]
    assert sorted(files) == sorted(folder.iterdir())
    assert ["shop.sales..odd_items-53450a78.yaml", "shop.sales..orders.yaml"] == sorted(file.name for file in files)
    found = {contract.table.table: contract for contract in read(folder).values()}
    assert {"orders": ("id", "note"), "odd items": ("id",)} == {name: one.required for name, one in found.items()}
    before = {file: file.read_bytes() for file in files}
    assert 0 == shop.run("contract export", "--out", str(folder)).returncode
    assert before == {file: file.read_bytes() for file in files}


def test_an_edited_contract_is_kept(shop: Bench, tmp_path: Path) -> None:
    announce(shop, ORDERS, ITEMS)
    (edited := tmp_path / "shop.sales..orders.yaml").write_text("edited")
    ran = shop.run("contract export", "--out", str(tmp_path))
    assert (2, True) == (ran.returncode, "already exists with other content" in ran.stderr)
    assert "edited" == edited.read_text()
    assert [edited] == [*tmp_path.glob("shop.*")]


def test_one_table_is_printed(shop: Bench) -> None:
    """The output is the contract and nothing else, with the masks in the configuration."""
    announce(shop, ORDERS, ITEMS)
    shop.document["masks"] = {"rules": [{"column": "note", "mask": "truncate", "length": 1}]}
    shop.config.write_text(yaml.safe_dump(shop.document))
    ran = shop.run("contract export", "--table", "sales.orders")
    assert 0 == ran.returncode, ran.stderr
    (table,) = yaml.safe_load(ran.stdout)["schema"]
    custom = [{one["property"]: one["value"] for one in column["customProperties"]} for column in table["properties"]]
    assert [{"canonicalType": "int64"}, {"canonicalType": "string", "mask": "truncate"}] == custom
    for pattern, said in (("*", "2 tables match *"), ("x", "no schema for a table that matches x")):
        ran = shop.run("contract export", "--table", pattern)
        assert (2, "", True) == (ran.returncode, ran.stdout, said in ran.stderr)


def test_check_a_statement(tmp_path: Path) -> None:
    """The command needs no broker and no configuration. It exits with 1 if a contract is broken."""
    (contract := tmp_path / "orders.yaml").write_text(document(ORDERS))
    (ddl := tmp_path / "change.sql").write_text("ALTER TABLE sales.orders DROP COLUMN note")
    ran = run("contract", "check", str(contract), "--ddl", str(ddl))
    assert (1, "shop/sales//orders: the column 'note' is missing\n", "") == (ran.returncode, ran.stdout, ran.stderr)
    ran = run("contract", "check", str(contract), "--ddl", str(ddl), "--json")
    breach = {"table": "shop/sales//orders", "breach": "the column 'note' is missing"}
    assert (1, {"compatible": False, "breaches": [breach]}) == (ran.returncode, json.loads(ran.stdout))
    ddl.write_text("ALTER TABLE sales.items ADD COLUMN note INT")
    ran = run("contract", "check", str(contract), "--ddl", str(ddl))
    assert (0, "", True) == (ran.returncode, ran.stdout, "no statement changes a table with a contract" in ran.stderr)
    ddl.write_text("ALTER TABLE")
    ran = run("contract", "check", str(contract), "--ddl", str(ddl))
    assert (2, "", True) == (ran.returncode, ran.stdout, "the DDL cannot be parsed as mysql" in ran.stderr)


def test_check_the_newest_schemas(shop: Bench, tmp_path: Path) -> None:
    (tmp_path / "contracts").mkdir()
    for name, schema in (("orders", ORDERS), ("items", ITEMS)):
        (tmp_path / "contracts" / f"{name}.yaml").write_text(document(schema))
    nullable = Column("note", "string", nullable=True)
    announce(shop, ORDERS)
    orders = str(tmp_path / "contracts" / "orders.yaml")
    assert (0, "") == ((ran := shop.run("contract check", orders)).returncode, ran.stdout)
    announce(shop, TableSchema.of("shop", "sales", None, "orders", [ID, nullable], "primary"))
    ran = shop.run("contract check", str(tmp_path / "contracts"))
    said = ["shop/sales//odd items: the schemas topic has no schema for the table"]
    assert (1, [*said, "shop/sales//orders: the column 'note' can be NULL"]) == (
        ran.returncode,
        ran.stdout.splitlines(),
    )
    ran = shop.run("contract check", orders, orders)
    assert (2, True) == (ran.returncode, "another contract for the table" in ran.stderr)
