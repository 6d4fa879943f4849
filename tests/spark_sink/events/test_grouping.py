"""Group records into events with keys. The fast path gives the same result as the plain one."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from cdc_core.table_id import TableId
from spark_sink.events import event_columns
from spark_sink.events.event_columns import EventColumns
from spark_sink.events.grouping import OPERATIONS, _one_table, intake, plain_intake, typed_keys
from spark_sink.model.event import Event
from spark_sink.schema.evolution import TableColumn, TableShape

SEEDS = range(400)

# The values that most records of a route have, and rare ones for a single field. None comes first where it is common.
USUAL: Mapping[str, tuple[Any, ...]] = {
    "kind": ("row",),
    "op": (*sorted(OPERATIONS - {"t"}), "t"),
    "source": ("shop",),
    "db": ("sales",),
    "schema": (None,),
    "table": ("orders",),
    "pos": ("1", "2"),
    "pos_scope": ("raw:0@x", "raw:1@x"),
    "key": ('{"id":1}', '{"id":2}', None),
    "key_old": (None, '{"id":3}'),
    "after": ("{}", '{"id":1,"a":"日本"}'),
    "after_state": ("full", "partial", "none", None),
    "schema_id": ("s1", None),
    "withholds": (False, True, None),
    "notes": (None,),
    "ts": (7, -1),
    "committed": (6, None),
    "tx": ("7", None),
}
ODD: Mapping[str, tuple[Any, ...]] = {
    "kind": (None, "heartbeat", "schema"),
    "notes": ('["TABLE_DROPPED"]', '["OTHER"]', "[]"),
    "op": (None, "x"),
    "source": ("other", None),
    "db": (None,),
    "schema": ("dbo",),
    "table": (None, "Orders"),
    "after": (None,),
    "key_old": ('{"id":3}',),
}
TYPES = {"withholds": pa.bool_(), "ts": pa.int64(), "committed": pa.int64()}


def records(seed: int) -> pa.Table:
    """Return records of one route, with rare values in single records, in one, or in all of them."""
    random = Random(seed)
    rows = [{name: random.choice(values) for name, values in USUAL.items()} for _ in range(random.randint(1, 12))]
    for row in rows:
        if row["op"] in ("d", "t"):
            row["after"] = None
        if row["op"] != "u":
            row["key_old"] = None
    odd = random.choice(([], [random.choice(rows)], rows))
    for name in random.sample(sorted(ODD), random.randint(1, 2)):
        value = random.choice(ODD[name])
        for row in odd:
            row[name] = value
    cut = random.randrange(len(rows))
    columns = {
        name: pa.chunked_array(
            [pa.array([row[name] for row in part], TYPES.get(name, pa.string())) for part in (rows[:cut], rows[cut:])]
        )
        for name in USUAL
    }
    return pa.table(columns)


def test_any_records(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both paths return the same tables, events, rejected and ignored records, in the same order."""
    monkeypatch.setattr(event_columns, "FEW", 0)
    for seed in SEEDS:
        came = records(seed)
        assert plain_intake(came) == intake(came), seed
        assert list(plain_intake(came)) == list(intake(came)), seed


def test_few_records_become_single_events(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{**{name: values[0] for name, values in USUAL.items()}, "after": f'{{"id":{n}}}'} for n in range(3)]
    came = pa.Table.from_pylist(rows, pa.schema([(name, TYPES.get(name, pa.string())) for name in USUAL]))
    for few, kind in ((3, list), (2, EventColumns)):
        monkeypatch.setattr(event_columns, "FEW", few)
        (found,) = intake(came).values()
        assert (3, kind) == (len(found.events), type(found.events))


def test_both_ways_are_taken() -> None:
    """Both paths are used. Otherwise the comparison would prove nothing."""
    short = sum(_one_table(records(seed)) is not None for seed in SEEDS)
    assert 100 < short < len(SEEDS) - 100


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ('{"b":1,"a":"x"}', None),
        ('{"a":"x"}', "KEY_DIFFERS"),
        ('{"a":"x","b":1,"c":2}', "KEY_DIFFERS"),
        ('{"a":"x","c":1}', "KEY_DIFFERS"),
        ('{"a":null,"b":1,"c":2}', "KEY_DIFFERS"),
        ('{"a":"x","b":null}', "KEY_UNKNOWN"),
        ('{"a":"x","b":0.5}', "KEY_INVALID"),
        ('["x",1]', "KEY_INVALID"),
    ],
)
def test_a_key_has_the_columns_of_the_table(text: str, wrong: str | None) -> None:
    """A key has exactly the columns of the table in any order, also as the previous key of its row."""
    table = TableId("shop", "sales", None, "orders")
    shape = TableShape(table, (TableColumn("a", "string"), TableColumn("b", "int")), ("a", "b"))
    for key, key_old in ((text, None), ('{"a":"y","b":2}', text)):
        event = Event(0, "u", key, key_old, "raw:0@x", "1", b"{}", True, False, None, 0)
        keys, found = typed_keys([event], shape)
        assert (keys.get(text), found[text][0].value if found else None) == (None if wrong else ("x", 1), wrong)
