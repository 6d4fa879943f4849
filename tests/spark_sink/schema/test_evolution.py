"""The schema that a table evolves to, or the reason why it cannot."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc_core.envelope import TableSchema
from cdc_core.table_id import TableId
from spark_sink.errors import Reason, Refused
from spark_sink.schema.column_types import holds, sql_type
from spark_sink.schema.evolution import (
    DEFAULTS,
    AddColumns,
    Create,
    Plan,
    Policies,
    Policy,
    ShapeChange,
    TableColumn,
    TableShape,
    Widen,
    evolve,
)
from spark_sink.schema.table_spec import Mode, TableSpec
from tests.spark_sink.changes import schema_of

TABLE = TableId("shop", "sales", None, "orders")
STORED = TableShape(TABLE, (TableColumn("id", "bigint"), TableColumn("n", "int")), ("id",))


def evolved(columns: dict[str, str], key: tuple[str, ...] = ("id",), policies: Policies = DEFAULTS) -> Plan:
    """Return the stored table after one more schema."""
    return evolve(STORED, TABLE, [schema_of(columns, key)], policies=policies)


def places(plan: Plan, schema: TableSchema) -> dict[str, str | None]:
    return dict(plan.places[schema.id])


def test_no_table_is_created() -> None:
    """A missing table is created with all columns of the schemas, and the key in key order."""
    schema = schema_of({"b": "string", "a": "int32", "n": "decimal(40,2)"}, ("a", "b"))
    plan = evolve(None, TABLE, [schema])
    assert Create(plan.shape) == plan.step
    assert ({"b": "string", "a": "int", "n": "string"}, ("a", "b")) == (plan.shape.types, plan.shape.key)


def test_a_table_is_created_by_its_newest_schema() -> None:
    """Values of older events fit the newer types, so a backlog across a widening creates one column, not two."""
    old, new = schema_of({"id": "int64", "n": "int32"}), schema_of({"id": "int64", "n": "int64", "x": "date"})
    plan = evolve(None, TABLE, [old, new], new)
    assert {"id": "bigint", "n": "bigint", "x": "date"} == plan.shape.types
    assert {"id": "id", "n": "n"} == places(plan, old)


def test_new_columns_are_added() -> None:
    """Columns of any schema in the batch are added. Columns that the newest schema dropped remain."""
    plan = evolve(STORED, TABLE, [schema_of({"id": "int64", "x": "date"}), schema_of({"id": "int64", "y": "json"})])
    assert AddColumns((TableColumn("x", "date"), TableColumn("y", "string"))) == plan.step
    assert ["id", "n", "x", "y"] == list(plan.shape.types)


def test_nothing_to_do() -> None:
    """A schema that the table already covers causes no change, nor do columns of events without a schema."""
    schema = schema_of({"id": "int64", "n": "int32"})
    plan = evolve(STORED, TABLE, [schema], named=["n"], key=["id"])
    assert (STORED, None, {}) == (plan.shape, plan.step, plan.versions)
    assert {"id": "id", "n": "n"} == plan.places[None] == places(plan, schema)


def test_without_schema_columns_are_strings() -> None:
    """A column unknown to every schema is a string, unless the table has a type for it."""
    shape = evolve(None, TABLE, [], named=["v"], key=["id"]).shape
    assert ({"id": "string", "v": "string"}, ("id",)) == (shape.types, shape.key)
    plan = evolve(STORED, TABLE, [], named=["id", "n", "v"], key=["id"])
    assert AddColumns((TableColumn("v", "string"),)) == plan.step


def test_a_smaller_type_needs_nothing() -> None:
    """A column that holds every value of the new type is used for it."""
    plan = evolved({"id": "int32", "n": "int16"})
    assert (None, STORED) == (plan.step, plan.shape)


@pytest.mark.parametrize("type", ["int64", "string", "date", "decimal(20,4)", "bytes"])
def test_another_type_stands_beside(type: str) -> None:
    """C11, C12: a type that the column cannot hold gets a new column version. Old and new events of one batch use their
    own versions, and a value is not visible in the other one.
    """
    old, new = schema_of({"id": "int64", "n": "int32"}), schema_of({"id": "int64", "n": type})
    plan = evolve(STORED, TABLE, [old, new, old])
    assert isinstance(plan.step, AddColumns)
    ((name, sent_as),) = [(column.name, column.sent_as) for column in plan.step.columns]
    assert ("n__v2", "n") == (name, sent_as)
    assert "n__v2" == places(plan, new)["n"]
    assert {"n": ("n__v2",), "n__v2": ("n",)} == plan.versions
    again = evolve(plan.shape, TABLE, [old, new])
    assert (None, "n__v2") == (again.step, places(again, new)["n"])
    # The newest version that can hold an old value gets it.
    assert ("n" if type in ("date", "bytes") else "n__v2") == places(again, old)["n"]
    third = evolve(again.shape, TABLE, [schema_of({"id": "int64", "n": "geometry"})])
    assert ("bytes" == type) == (third.step is None)


def test_names_that_differ_by_case() -> None:
    """Delta Lake accepts only one of them. The other gets a different name and is found again."""
    schema = schema_of({"id": "int64", "N": "string", "n": "int32"})
    plan = evolve(STORED, TABLE, [schema])
    assert {"id": "id", "N": "N__v2", "n": "n"} == places(plan, schema)
    assert {} == plan.versions
    assert (None, plan.places) == (evolve(plan.shape, TABLE, [schema]).step, plan.places)


def test_names_that_delta_does_not_take() -> None:
    """Column names that Delta Lake or the sink reserves are escaped, including key columns, and never collide."""
    names = ["a b", "", "_cdc_pos", "_CDC_state", "x__v2", "x", "X", "a~20~b", "名", "sélect", "a.b", "`", "\n", "n;"]
    schema = schema_of(dict.fromkeys(names, "string"), ("a b",))
    plan = evolve(None, TABLE, [schema], schema)
    written = [column.name for column in plan.shape.columns]
    assert len(names) == len({name.lower() for name in written})
    assert not [name for name in written if name.lower().startswith("_cdc_") or set(name) & set(" ,;{}()\n\t=`")]
    assert names == [column.sent_as for column in plan.shape.columns]
    assert (("a~20~b",), ("a b",)) == (plan.shape.key, plan.shape.key_sent_as)
    again = evolve(plan.shape, TABLE, [schema], schema)
    assert (None, plan.places) == (again.step, again.places)


def test_a_thousand_columns() -> None:
    """All columns are laid out and found again."""
    schema = schema_of({f"c{n}": "int32" for n in range(1000)}, ("c7",))
    wider = schema_of({f"c{n}": "int64" for n in range(1000) if n != 7} | {"c7": "int32"}, ("c7",))
    plan = evolve(evolve(None, TABLE, [schema]).shape, TABLE, [schema, wider])
    assert 1999 == len(plan.shape.columns)
    assert "c999__v2" == places(plan, wider)["c999"]


CASES = [
    (ShapeChange.ADD, {"id": "int64", "n": "int32", "x": "date"}, "the column x is not in the table"),
    (ShapeChange.WIDEN, {"id": "int64", "n": "int64"}, "the column n is int, but its schema requires bigint"),
    (ShapeChange.RETYPE, {"id": "int64", "n": "string"}, "the column n is int, but its schema requires string"),
]


@pytest.mark.parametrize(("change", "columns", "message"), CASES)
def test_policies(change: ShapeChange, columns: dict[str, str], message: str) -> None:
    """`fail` rejects only its kind of change, `ignore` changes nothing, and `evolve` does what the engine can."""
    with pytest.raises(Refused, match=message) as refused:
        evolved(columns, policies=DEFAULTS | {change: Policy.FAIL})
    assert Reason.SCHEMA_REFUSED == refused.value.reason
    others = {other: Policy.FAIL for other in ShapeChange if other not in (change, ShapeChange.DROP)}
    assert evolved(columns, policies=DEFAULTS | others).step is not None
    ignored = evolved(columns, policies=DEFAULTS | {change: Policy.IGNORE})
    assert (None, STORED) == (ignored.step, ignored.shape)
    assert {"id": "id", "n": "n"} | ({"x": None} if change is ShapeChange.ADD else {}) == places(
        ignored, schema_of(columns)
    )
    assert evolved(columns) == evolved(columns, policies=DEFAULTS | {change: Policy.EVOLVE})


BESIDE = DEFAULTS | {ShapeChange.WIDEN: Policy.LENIENT}


@pytest.mark.parametrize("type", ["int64", "decimal(12,2)", "float64"])
def test_types_in_place(type: str) -> None:
    """By default, a column gets the wider type if the engine can change it. Other changes are requested after that."""
    old, new = schema_of({"id": "int64", "n": "int32"}), schema_of({"id": "int64", "n": type, "x": "date"})
    wider = TableColumn("n", sql_type(type))
    plan = evolve(STORED, TABLE, [old, new], in_place=True)
    assert (Widen((wider,)), "n", "n") == (plan.step, places(plan, old)["n"], places(plan, new)["n"])
    between = TableShape(TABLE, (STORED.columns[0], wider), ("id",))
    then = evolve(between, TABLE, [old, new], in_place=True)
    assert (AddColumns((TableColumn("x", "date"),)), "n") == (then.step, places(then, old)["n"])


def test_types_that_stand_beside_all_the_same() -> None:
    """A new version is added if the engine, Delta Lake or the policy does not allow the change in place."""
    for type in ("decimal(10,1)", "string", "date", "int64"):
        schema = schema_of({"id": "int64", "n": type})
        beside = evolve(STORED, TABLE, [schema])
        assert "n__v2" == places(beside, schema)["n"]
        assert beside == evolve(STORED, TABLE, [schema], policies=BESIDE, in_place=True)
        assert ("int64" == type) == (beside != evolve(STORED, TABLE, [schema], in_place=True))


def test_the_key_in_place() -> None:
    """A key column can be widened if its rows keep their keys. Any other policy stops the table."""
    narrow = TableShape(TABLE, (TableColumn("id", "int"), TableColumn("n", "int")), ("id",))
    schema = schema_of({"id": "int64", "n": "int32"})
    plan = evolve(narrow, TABLE, [schema], in_place=True)
    assert (Widen((TableColumn("id", "bigint"),)), {"id": "id", "n": "n"}) == (plan.step, places(plan, schema))
    with pytest.raises(Refused, match="the column id is int"):
        evolve(narrow, TABLE, [schema], policies=BESIDE, in_place=True)


@pytest.mark.parametrize("type", ["int64", "decimal(12,2)", "float64"])
def test_the_key_by_a_rewrite(type: str) -> None:
    """If the engine cannot widen in place, the table is rewritten for its key, and other columns get a new version.
    Events of the older schema still use the key.
    """
    narrow = TableShape(TABLE, (TableColumn("id", "int"), TableColumn("n", "int")), ("id",))
    old, schema = schema_of({"id": "int32", "n": "int32"}), schema_of({"id": type, "n": "int64"})
    plan = evolve(narrow, TABLE, [schema, old])
    assert Widen((TableColumn("id", sql_type(type)),), rewrites=True) == plan.step
    assert ({"id": "id", "n": "n__v2"}, "id") == (places(plan, schema), places(plan, old)["id"])


@pytest.mark.parametrize(("type", "policies"), [("string", DEFAULTS), ("int16", DEFAULTS), ("int64", BESIDE)])
def test_a_key_that_stays(type: str, policies: Policies) -> None:
    """A policy stops the table, and so does text or a type that does not hold the old keys. A type that fits is no
    change.
    """
    narrow = TableShape(TABLE, (TableColumn("id", "int"), TableColumn("n", "int")), ("id",))
    schema = schema_of({"id": type, "n": "int32"})
    if type == "int16":
        assert evolve(narrow, TABLE, [schema], policies=policies).step is None
        return
    with pytest.raises(Refused, match="the column id is int"):
        evolve(narrow, TABLE, [schema], policies=policies)


def test_a_changelog_is_not_rewritten() -> None:
    """A changelog has no key. The wider values go to an additional column."""
    log = TableShape(TABLE, (TableColumn("id", "int"),), (), Mode.CHANGELOG)
    schema = schema_of({"id": "int64"})
    plan = evolve(log, TABLE, [schema], form=TableSpec(Mode.CHANGELOG))
    assert (AddColumns((TableColumn("id__v2", "bigint", "id"),)), "id__v2") == (plan.step, places(plan, schema)["id"])


def test_a_wider_key_of_a_new_table() -> None:
    """A backlog across the change creates the table with the wider type, in any order of the schemas."""
    old, new = schema_of({"id": "int32"}), schema_of({"id": "int64"})
    for order in ([old, new], [new, old]):
        assert {"id": "bigint"} == evolve(None, TABLE, order).shape.types


def test_the_last_version_is_widened() -> None:
    """For a column with versions, the newest one is widened."""
    shape = TableShape(TABLE, (*STORED.columns, TableColumn("n__v2", "decimal(10,2)", "n")), ("id",))
    schema = schema_of({"id": "int64", "n": "decimal(12,4)"})
    plan = evolve(shape, TABLE, [schema], in_place=True)
    assert (Widen((TableColumn("n__v2", "decimal(12,4)", "n"),)), "n__v2") == (plan.step, places(plan, schema)["n"])
    assert {"n": ("n__v2",), "n__v2": ("n",)} == plan.versions


def test_a_new_table_needs_no_policy() -> None:
    """No policy prevents the creation of a table."""
    policies = dict.fromkeys(ShapeChange, Policy.FAIL)
    schema = schema_of({"id": "int64", "n": "int32"})
    assert evolve(None, TABLE, [schema], schema, policies=policies).step is not None


def test_a_dropped_column() -> None:
    """The column remains. With `fail`, the table stops if the newest schema lacks it, but not for an older one."""
    older, newest = schema_of({"id": "int64"}), schema_of({"id": "int64", "n": "int32"})
    fails = DEFAULTS | {ShapeChange.DROP: Policy.FAIL}
    assert STORED == evolve(STORED, TABLE, [older], newest, policies=fails).shape
    assert STORED == evolve(STORED, TABLE, [newest], older).shape
    with pytest.raises(Refused, match="the newest schema has no column n"):
        evolve(STORED, TABLE, [newest], older, policies=fails)


def test_another_key() -> None:
    """Rows cannot move to another key, so the table stops, or keeps its key with `ignore`. The order of key columns
    does not matter, and no key column can change to a type that does not hold its values.
    """
    with pytest.raises(Refused, match=r"the key changed from \(id\) to \(id, n\)"):
        evolved({"id": "int64", "n": "int32"}, ("id", "n"))
    ignored = evolved({"id": "int64", "n": "int32"}, ("id", "n"), DEFAULTS | {ShapeChange.KEY: Policy.IGNORE})
    assert ("id",) == ignored.shape.key
    two = TableShape(TABLE, STORED.columns, ("id", "n"))
    assert ("id", "n") == evolve(two, TABLE, [schema_of({"id": "int64", "n": "int32"}, ("n", "id"))]).shape.key
    for policy in Policy:
        with pytest.raises(Refused, match="the column id is bigint"):
            evolved({"id": "string"}, policies=DEFAULTS | {ShapeChange.RETYPE: policy})


def test_no_key_is_refused() -> None:
    """A table without a key column cannot be a mirror."""
    with pytest.raises(Refused, match=r"tables\.keys, or .* tables\.modes"):
        evolve(None, TABLE, [schema_of({"a": "string"}, ())])
    with pytest.raises(Refused, match="the key column id is missing from the columns"):
        evolve(TableShape(TABLE, (), ("id",)), TABLE, [])


TYPES = ["int8", "int16", "int32", "int64", "uint64", "decimal(10,2)", "decimal(38,0)", "string", "date", "bytes"]


@given(st.lists(st.sampled_from(TYPES), min_size=1, max_size=8))
def test_every_schema_stays_readable(types: list[str]) -> None:
    """Whatever types a column has had, events of each schema find a column version that holds their values."""
    schemas = [schema_of({"id": "int64", "n": type}) for type in types]
    plan = evolve(evolve(None, TABLE, schemas[:1]).shape, TABLE, schemas)
    for schema in schemas:
        place = places(plan, schema)["n"]
        assert place is not None
        assert holds(plan.shape.types[place], evolve(None, TABLE, [schema]).shape.types["n"])
