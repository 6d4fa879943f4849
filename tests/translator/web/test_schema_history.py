"""The history of a table's structure: each step says what changed."""

from cdc_core.envelope import Column, TableSchema
from translator.web.schema_history import timeline


def _schema(*columns: Column, table: str = "t") -> TableSchema:
    return TableSchema.of("shop", "db", None, table, columns, "primary")


ID = Column(name="id", type="int64", native="bigint", nullable=False, key=1)
FIRST = _schema(ID, Column(name="v", type="string", native="varchar(5)", nullable=True))
SECOND = _schema(ID, Column(name="v", type="string", native="varchar(10)", nullable=False))
THIRD = _schema(ID, Column(name="w", type="string", native=None))
OTHER = _schema(ID, table="u")
KNOWN = {one.topic_key: (at, one) for at, one in ((3, THIRD), (1, FIRST), (2, SECOND), (2, OTHER))}


def test_each_step_says_what_changed() -> None:
    steps = timeline(KNOWN, SECOND)
    assert [(3, THIRD.id), (2, SECOND.id), (1, FIRST.id)] == [(step.since_ms, step.schema.id) for step in steps]
    assert ["added w (string)", "removed v"] == steps[0].changes
    assert ["v: varchar(5) became varchar(10)", "v: nullable became not null"] == steps[1].changes
    assert () == steps[2].changes
    assert KNOWN[steps[0].key][1] is THIRD


def test_a_key_that_changed() -> None:
    new = _schema(Column(name="id", type="int64", native="bigint", nullable=False))
    (step, _) = timeline({FIRST.topic_key: (1, _schema(ID)), new.topic_key: (2, new)}, new)
    assert ["key: id became none"] == step.changes


def test_a_table_with_one_schema() -> None:
    assert [()] == [step.changes for step in timeline(KNOWN, OTHER)]
