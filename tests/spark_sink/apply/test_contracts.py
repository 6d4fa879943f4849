"""A table that breaks its contract is parked with its events, and the others continue."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from cdc_core.envelope import ChangeEvent, TableSchema
from cdc_core.table_contract import ContractColumn, TableContract, document, read
from cdc_core.table_id import TableId
from spark_sink.config.settings import TablesSettings
from spark_sink.config.table_rules import TableRules
from spark_sink.schema.table_spec import Mode
from spark_sink.table_report import Done, Parked
from tests.spark_sink.changes import change, schema_of
from tests.spark_sink.lake import Lake

ORDERS, ITEMS = "shop_sales.orders", "shop_sales.items"
SCHEMA = schema_of({"id": "int64", "name": "string", "n": "int32"})
ITEM = schema_of({"id": "int64", "name": "string"}, table="items")
CONTRACT = TableContract(
    TableId.of(SCHEMA),
    (
        ContractColumn("id", "int64", required=True, key=1),
        ContractColumn("name", "string", required=True),
        ContractColumn("n", "int64"),
    ),
)
GOOD = {"name": "a", "n": 1}


def _rules(*contracts: TableContract, mode: Mode = Mode.MIRROR) -> TableRules:
    return TableRules(modes={"*": mode}, contracts={contract.table: contract for contract in contracts})


def _event(pos: int, after: dict[str, object], schema: TableSchema | None = SCHEMA, op: str = "c") -> ChangeEvent:
    return change(op, {"id": pos}, after, pos=pos, schema=schema)


def _refusal(lake: Lake, batch: int, *events: ChangeEvent) -> str | None:
    """Apply events of the table and one of another table, and return why the table was parked."""
    other = change("c", {"id": batch}, {"name": "b"}, pos=1000 + batch, schema=ITEM, table="items")
    outcomes = {report.table: report.outcome for report in lake.apply(batch, [*events, other])}
    assert Done() == outcomes[ITEMS]
    outcome = outcomes[ORDERS]
    return outcome.refusal if isinstance(outcome, Parked) else None


def _begin(lake: Lake, rules: TableRules) -> None:
    lake.announce(SCHEMA)
    lake.announce(ITEM)
    lake.use(rules)
    assert _refusal(lake, 0, _event(1, GOOD)) is None


@pytest.mark.parametrize("mode", Mode)
def test_until_the_contract_allows_it(each_lake_of_rows: Lake, mode: Mode) -> None:
    """The events wait in order, in every mode and format. `resume` applies them once the contract was changed."""
    lake = each_lake_of_rows
    _begin(lake, _rules(CONTRACT, mode=mode))
    said = _refusal(lake, 1, _event(2, GOOD), _event(3, {"name": None, "n": 12345}))
    assert said is not None
    assert said.endswith("(tables.contract) is broken: an event has NULL in the required column 'name'")
    assert "12345" not in said
    lake.apply(2, [_event(4, GOOD)])
    assert [("CONTRACT_BROKEN", 0), ("CONTRACT_BROKEN", 1), ("CONTRACT_BROKEN", 0)] == lake.parked()
    assert [1] == [row["id"] for row in lake.rows()]
    assert said in str(lake.command("resume").error)
    optional = replace_column(CONTRACT, ContractColumn("name", "string"))
    lake.use(_rules(optional, mode=mode))
    assert lake.command("resume").error is None
    assert [1, 2, 3, 4] == [row["id"] for row in lake.rows()]
    assert [] == lake.parked()


def replace_column(contract: TableContract, column: ContractColumn) -> TableContract:
    columns = tuple(column if one.name == column.name else one for one in contract.columns)
    return TableContract(contract.table, columns, contract.closed)


ADDED = schema_of({"id": "int64", "name": "string", "n": "int32", "more": "date"})
WIDER = schema_of({"id": "int64", "name": "string", "n": "decimal(30,0)"})
LESS = schema_of({"id": "int64", "name": "string"})
NAMELESS = schema_of({"id": "int64", "n": "int32"})
OTHER_KEY = schema_of({"id": "int64", "name": "string", "n": "int32"}, key=("id", "n"))


@pytest.mark.parametrize(
    ("contract", "schema", "said"),
    [
        (CONTRACT, ADDED, None),
        (
            TableContract(CONTRACT.table, CONTRACT.columns, closed=True),
            ADDED,
            "does not allow the additional column 'more'",
        ),
        (CONTRACT, WIDER, "the column 'n' has the type decimal(30,0), but the contract has int64"),
        (CONTRACT, LESS, "the column 'n' is missing"),
        (CONTRACT, NAMELESS, "the column 'name' is missing"),
        (CONTRACT, OTHER_KEY, "the key is (id, n), but the contract has (id)"),
    ],
)
def test_schemas(lake: Lake, contract: TableContract, schema: TableSchema, said: str | None) -> None:
    """A schema breaks the contract when the first event uses it. `tables.changes` would allow all of them but one."""
    _begin(lake, _rules(contract))
    lake.announce(schema)
    assert _refusal(lake, 1, _event(2, GOOD)) is None
    found = _refusal(lake, 2, _event(3, {"name": "a"}, schema))
    assert (said is None) == (found is None)
    assert said is None or said in str(found)


def test_an_older_schema(lake: Lake) -> None:
    """A column that was added to the table and its contract is missing from older events, which are still applied."""
    lake.announce(LESS)
    _begin(lake, _rules(CONTRACT))
    assert _refusal(lake, 1, _event(2, {"name": "a"}, LESS)) is None


def test_an_event_without_a_schema(lake: Lake) -> None:
    """The newest schema applies to it."""
    _begin(lake, _rules(CONTRACT))
    assert _refusal(lake, 1, _event(2, GOOD, None)) is None
    lake.announce(WIDER)
    assert "decimal(30,0)" in str(_refusal(lake, 2, _event(3, GOOD, None)))


@pytest.mark.parametrize(
    ("after", "breaks"),
    [
        ({"name": 'n":null,"name', "n": None}, False),
        ({"name": '"name":null'}, False),
        ({"n": 1}, False),
        ({"name": None}, True),
        ({"n": None, "name": None}, True),
    ],
)
def test_values(lake: Lake, after: dict[str, object], *, breaks: bool) -> None:
    """Only NULL breaks the contract. A text that looks like it does not, nor does a column that was not sent."""
    _begin(lake, _rules(CONTRACT))
    event = change("u", {"id": 1}, after, pos=2, schema=SCHEMA, full=False)
    assert breaks == (_refusal(lake, 1, event) is not None)


def test_a_name_that_images_escape(lake: Lake) -> None:
    """Such a name cannot be found in the text of an image."""
    name = 'a"b'
    schema = lake.announce(schema_of({"id": "int64", name: "string"}))
    lake.announce(ITEM)
    lake.use(_rules(TableContract(TableId.of(schema), (ContractColumn(name, "string", required=True),))))
    assert _refusal(lake, 0, _event(1, {name: "x"}, schema)) is None
    assert _refusal(lake, 1, _event(2, {name: None}, schema)) is not None


def test_deletes_and_the_rows_before(lake: Lake) -> None:
    """A delete has no new values, even in a changelog, which keeps the values before it."""
    _begin(lake, _rules(CONTRACT, mode=Mode.CHANGELOG))
    event = change("d", {"id": 1}, pos=2, schema=SCHEMA)
    assert _refusal(lake, 1, replace_before(event)) is None


def replace_before(event: ChangeEvent) -> ChangeEvent:
    return msgspec.structs.replace(event, before='{"id":1,"name":null}', before_state="full")


def test_a_shared_table(lake: Lake) -> None:
    """Each source table has its own contract."""
    other = schema_of({"id": "int64", "name": "string", "n": "int32", "more": "date"}, table="archive")
    for schema in (SCHEMA, other, ITEM):
        lake.announce(schema)
    rules = replace(_rules(CONTRACT), shared={ORDERS: ("shop/sales//orders", "shop/sales//archive")})
    lake.use(rules, {"shop/sales//archive": ORDERS})
    archived = change("c", {"id": 1}, {"name": None}, pos=1, schema=other, table="archive")
    assert _refusal(lake, 0, archived, _event(2, GOOD)) is None
    assert _refusal(lake, 1, _event(3, {"name": None})) is not None


def test_the_setting(tmp_path: Path) -> None:
    """The setting names a folder of exported contracts. Without it, no table has a contract."""
    (tmp_path / "orders.yaml").write_text(document(SCHEMA))
    settings = TablesSettings(warehouse=str(tmp_path), contract=tmp_path)
    assert read(tmp_path) == settings.contracts
    assert [TableId.of(SCHEMA)] == [*settings.contracts]
    assert {} == TablesSettings(warehouse=str(tmp_path)).contracts
