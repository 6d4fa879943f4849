"""Contracts are read as they were written, and a table breaks one only if its readers would notice."""

from pathlib import Path

import pytest
import yaml

from cdc_core.envelope import Column, TableSchema
from cdc_core.errors import ConfigError
from cdc_core.table_contract import ContractColumn, TableContract, accepts, breaches, document, read
from cdc_core.table_id import TableId

ORDERS = TableSchema.of(
    "shop",
    "sales",
    None,
    "orders",
    [
        Column("id", "int64", nullable=False, key=1, native="bigint"),
        Column("region", "string", nullable=False, key=2),
        Column("note", "string", nullable=True, native="varchar(10)"),
        Column("price", "decimal(10,2)"),
        Column("no", "timestamptz"),
    ],
    "primary",
)


def _read(folder: Path, *texts: str) -> list[TableContract]:
    for number, text in enumerate(texts):
        (folder / f"{number}.yaml").write_text(text, encoding="utf-8")
    return [*read(folder).values()]


def test_a_document_is_read_as_it_was_written(tmp_path: Path) -> None:
    """The text has only names that ODCS defines, and the same schema always has the same text."""
    text = document(ORDERS, {"note": "hash"})
    assert text == document(ORDERS, {"note": "hash"})
    assert text.startswith("apiVersion: v3.1.0\nkind: DataContract\nid: shop/sales//orders\n")
    (table,) = yaml.safe_load(text)["schema"]
    assert {"name": "id", "logicalType": "integer", "physicalType": "bigint", "required": True} | {
        "primaryKey": True,
        "primaryKeyPosition": 1,
        "customProperties": [{"property": "canonicalType", "value": "int64"}],
    } == table["properties"][0]
    allowed = {
        "name",
        "logicalType",
        "physicalType",
        "required",
        "primaryKey",
        "primaryKeyPosition",
        "customProperties",
    }
    assert set().union(*table["properties"]) == allowed
    (contract,) = _read(tmp_path, text)
    assert TableId.of(ORDERS) == contract.table
    assert (("id", "region"), ("id", "region"), False) == (contract.key, contract.required, contract.closed)
    assert ["int64", "string", "string", "decimal(10,2)", "timestamptz"] == [column.type for column in contract.columns]
    assert ["note"] == [column.name for column in contract.columns if column.masked]
    assert [] == breaches(contract, ORDERS.column_types, ORDERS.key_columns)


def test_names_with_a_slash(tmp_path: Path) -> None:
    odd = TableSchema.of("shop", "a/b", "50%", "on", [Column("yes", "int8")], "none")
    (contract,) = _read(tmp_path, document(odd))
    assert (TableId("shop", "a/b", "50%", "on"), "yes") == (contract.table, contract.columns[0].name)


def test_a_mounted_config_map(tmp_path: Path) -> None:
    """Kubernetes keeps the files in a hidden folder, and links to them."""
    (hidden := tmp_path / "..2026").mkdir()
    (hidden / "orders.yaml").write_text(document(ORDERS))
    (tmp_path / "..data").symlink_to(hidden)
    (tmp_path / "orders.yaml").symlink_to(tmp_path / "..data" / "orders.yaml")
    assert [TableId.of(ORDERS)] == [*read(tmp_path)]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ((": DataContract", ": Other"), "expected kind DataContract"),
        (("v3.1.0", "v2.2.2"), "apiVersion that starts with v3."),
        (("value: shop/sales//orders", "value: orders"), "sourceTable"),
        (("name: region", "name: id"), "lists a column twice"),
        (("properties:", "columns:"), "not an ODCS contract"),
        (("kind:", "kind: ["), "not valid YAML"),
    ],
)
def test_a_file_that_is_not_a_contract(change: tuple[str, str], said: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=said):
        _read(tmp_path, document(ORDERS).replace(*change))


def test_contracts_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="contains no contracts"):
        read(tmp_path)
    with pytest.raises(ConfigError, match="cannot read the contract"):
        read(tmp_path / "missing.yaml")
    with pytest.raises(ConfigError, match="another contract for the table shop/sales//orders"):
        _read(tmp_path, document(ORDERS), document(ORDERS))


CONTRACT = TableContract(
    TableId.of(ORDERS),
    (ContractColumn("id", "int64", required=True, key=1), ContractColumn("note", "string"), ContractColumn("n")),
)
TYPES = {"id": "int64", "note": "string", "n": "float32"}


@pytest.mark.parametrize(
    ("types", "key", "said"),
    [
        (TYPES, ("id",), []),
        ({**TYPES, "more": "date"}, ("id",), []),
        ({**TYPES, "id": "int32"}, ("id",), []),
        ({**TYPES, "id": None}, ("id",), []),
        ({**TYPES, "id": "string"}, ("id",), ["the column 'id' has the type string, but the contract has int64"]),
        ({"id": "int64", "n": "date"}, ("id",), ["the column 'note' is missing"]),
        ({"note": "string", "n": "date"}, ("id",), ["the column 'id' is missing"]),
        (TYPES, ("id", "note"), ["the key is (id, note), but the contract has (id)"]),
        (TYPES, (), ["the key is (), but the contract has (id)"]),
    ],
)
def test_breaches(types: dict[str, str | None], key: tuple[str, ...], said: list[str]) -> None:
    assert said == breaches(CONTRACT, types, key)


def test_a_closed_contract() -> None:
    closed = TableContract(CONTRACT.table, CONTRACT.columns, closed=True)
    expected = ["the contract does not allow the additional column 'more'"]
    assert expected == breaches(closed, {**TYPES, "more": "date"}, ("id",))


def test_an_older_schema() -> None:
    """A column that was added to table and contract is missing from older schemas. Only required columns matter."""
    assert [] == breaches(CONTRACT, {"id": "int64"}, ("id",), older=True)
    assert ["the column 'id' is missing"] == breaches(CONTRACT, {"note": "string"}, ("id",), older=True)


@pytest.mark.parametrize(
    ("sent", "wanted", "fits"),
    [
        ("int8", "int16", True),
        ("int16", "int8", False),
        ("uint32", "int64", True),
        ("uint32", "int32", False),
        ("int8", "uint64", False),
        ("uint8", "uint16", True),
        ("int64", "decimal(20,0)", True),
        ("uint64", "decimal(19,0)", False),
        ("uint64", "decimal(20,0)", True),
        ("int32", "decimal(10,2)", False),
        ("decimal(8,2)", "decimal(10,4)", True),
        ("decimal(8,2)", "decimal(9,4)", False),
        ("decimal(10,0)", "int64", False),
        ("float32", "float64", True),
        ("float64", "float32", False),
        ("int32", "string", False),
        ("timestamp", "timestamptz", False),
    ],
)
def test_types_that_fit(sent: str, wanted: str, *, fits: bool) -> None:
    assert fits == accepts(ContractColumn("n", wanted), sent)


def test_a_contract_written_by_hand() -> None:
    """Without a canonical type, the logical type decides, and without any type, every type is accepted."""
    assert accepts(ContractColumn("n", logical="number"), "decimal(38,10)")
    assert not accepts(ContractColumn("n", logical="number"), "int8")
    assert accepts(ContractColumn("n", logical="string"), "json")
    assert accepts(ContractColumn("n"), "geometry")
