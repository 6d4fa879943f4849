"""A proposed statement breaks a contract only if readers would notice, and is never passed without being understood."""

import pytest

from cdc_core.table_contract import ContractColumn, TableContract
from cdc_core.table_id import TableId
from translator.errors import ConfigError
from translator.operations.proposed_ddl import breaches_by_statements

COLUMNS = (
    ContractColumn("id", "int64", native="bigint", required=True, key=1),
    ContractColumn("Note", "string", native="varchar(10)", required=True),
    ContractColumn("price", "decimal(10,2)"),
    ContractColumn("secret", "string", native="int", masked=True),
    ContractColumn("odd", "string", native="geometry"),
)
ORDERS = TableContract(TableId("shop", "sales", None, "orders"), COLUMNS)
CLOSED = TableContract(ORDERS.table, COLUMNS, closed=True)
ITEMS = TableContract(TableId("shop", "sales", None, "items"), COLUMNS[:1])


def _said(sql: str, dialect: str = "mysql", contract: TableContract = ORDERS) -> list[str]:
    found, _ = breaches_by_statements([contract, ITEMS], sql, dialect)
    assert all(breach.table == "shop/sales//orders" for breach in found)
    return [breach.breach for breach in found]


@pytest.mark.parametrize(
    "sql",
    [
        "ALTER TABLE orders ADD COLUMN more INT NOT NULL, ADD INDEX i (more)",
        "ALTER TABLE orders MODIFY note VARCHAR(99) NOT NULL",
        "ALTER TABLE orders MODIFY id INT NOT NULL",
        "ALTER TABLE orders MODIFY price DECIMAL(8,2)",
        "ALTER TABLE orders MODIFY secret BIGINT, MODIFY odd GEOMETRY",
        "ALTER TABLE orders CHANGE note note TEXT NOT NULL",
        "ALTER TABLE orders DROP PRIMARY KEY, ADD PRIMARY KEY (id)",
        "ALTER TABLE orders DROP COLUMN more; ALTER TABLE orders COMMENT = 'x'",
        "CREATE TABLE orders (id BIGINT PRIMARY KEY, note TEXT NOT NULL, price DEC(10,2), secret INT, odd GEOMETRY)",
        "CREATE INDEX i ON orders (note)",
        "DROP TABLE orders; CREATE TABLE orders (id BIGINT, note CHAR(3) NOT NULL, price NUMERIC(10,2), secret INT, "
        "odd GEOMETRY, PRIMARY KEY (id), KEY k (note))",
        "ALTER TABLE other.orders DROP COLUMN id",
        "ALTER TABLE customers DROP COLUMN id",
    ],
)
def test_compatible(sql: str) -> None:
    assert [] == _said(sql)


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("ALTER TABLE sales.orders DROP COLUMN NOTE", ["the column 'Note' is missing"]),
        ("ALTER TABLE Orders RENAME COLUMN id TO id2", ["the column 'id' is missing"]),
        ("ALTER TABLE orders CHANGE price cost DECIMAL(10,2)", ["the column 'price' is missing"]),
        (
            "ALTER TABLE orders MODIFY price DOUBLE",
            ["the column 'price' has the type float64, but the contract has decimal(10,2)"],
        ),
        (
            "ALTER TABLE orders MODIFY id BIGINT UNSIGNED NOT NULL",
            ["the column 'id' has the type uint64, but the contract has int64"],
        ),
        ("ALTER TABLE orders MODIFY note TEXT", ["the column 'Note' can be NULL"]),
        ("ALTER TABLE orders DROP PRIMARY KEY", ["the key is (), but the contract has (id)"]),
        (
            "ALTER TABLE orders DROP PRIMARY KEY, ADD PRIMARY KEY (id, note)",
            ["the key is (id, Note), but the contract has (id)"],
        ),
        ("DROP TABLE orders", ["the table is dropped or renamed"]),
        ("ALTER TABLE orders RENAME TO old", ["the table is dropped or renamed"]),
        (
            "CREATE TABLE orders (id BIGINT, note TEXT NOT NULL, price DECIMAL(10,2), secret INT)",
            ["the column 'odd' is missing", "the key is (), but the contract has (id)", "the column 'id' can be NULL"],
        ),
    ],
)
def test_broken(sql: str, said: list[str]) -> None:
    assert said == _said(sql)


@pytest.mark.parametrize(
    ("dialect", "sql", "said"),
    [
        ("postgres", "ALTER TABLE orders ALTER COLUMN id TYPE TEXT", ["the column 'id' has the type string"]),
        ("postgres", "ALTER TABLE orders ALTER COLUMN id TYPE INT, ALTER COLUMN price SET NOT NULL", []),
        ("postgres", 'ALTER TABLE orders ALTER COLUMN "Note" DROP NOT NULL', ["the column 'Note' can be NULL"]),
        ("tsql", "ALTER TABLE sales.orders ALTER COLUMN note NVARCHAR(20)", ["the column 'Note' can be NULL"]),
        ("tsql", "ALTER TABLE sales.orders ALTER COLUMN note NVARCHAR(20) NOT NULL", []),
        ("oracle", "ALTER TABLE orders ADD (more NUMBER(10))", []),
        ("oracle", "ALTER TABLE orders RENAME COLUMN note TO more", ["the column 'Note' is missing"]),
    ],
)
def test_other_sources(dialect: str, sql: str, said: list[str]) -> None:
    found = _said(sql, dialect)
    assert len(said) == len(found)
    assert all(map(str.startswith, found, said))


def test_a_closed_contract() -> None:
    expected = ["the contract does not allow the additional column 'more'"]
    assert expected == _said("ALTER TABLE orders ADD more INT", contract=CLOSED)


def test_the_number_of_statements() -> None:
    for sql, concerned in (("ALTER TABLE orders ADD a INT; ALTER TABLE items ADD a INT", 2), ("DROP TABLE x", 0)):
        assert ([], concerned) == breaches_by_statements([ORDERS, ITEMS], sql, "mysql")


@pytest.mark.parametrize(
    ("dialect", "sql"),
    [
        ("oracle", "ALTER TABLE orders MODIFY (id NUMBER(5))"),
        ("oracle", "ALTER TABLE orders DROP (note)"),
        ("mysql", "ALTER TABLE orders PARTITION BY HASH(id) PARTITIONS 4"),
        ("mysql", "CREATE TABLE orders AS SELECT 1"),
        ("mysql", "ALTER TABLE orders ALTER INDEX i INVISIBLE"),
        ("mysql", "DELETE FROM orders"),
        ("mysql", "ALTER TABLE orders ADD"),
        ("mysql", "not SQL"),
    ],
)
def test_a_statement_that_is_not_understood(dialect: str, sql: str) -> None:
    """No text is logged, and no warning is printed."""
    with pytest.raises(ConfigError):
        _said(sql, dialect)
