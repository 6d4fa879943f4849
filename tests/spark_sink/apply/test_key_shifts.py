"""Keys that move within a transaction: random statements shift, swap and rotate keys. The sink's fold and histories
must produce the rows of the source.

`SHIFTS=100000` in the environment runs the number of transactions of an acceptance run.
"""

from __future__ import annotations

import os
from typing import Any

import msgspec
import pytest

from cdc_core.table_id import TableId
from spark_sink.apply.history import build_versions
from spark_sink.apply.mirror import fold_into_changes
from spark_sink.model.event import Event
from spark_sink.schema.evolution import Plan, evolve
from spark_sink.tables.changes import Marker
from tests.sizes import count
from tests.spark_sink.apply.test_model import PARTS
from tests.spark_sink.changes import SCOPE, in_columns, schema_of
from tests.spark_sink.key_shifts import Shifts, shifts
from tests.spark_sink.memory import MemoryHistory, MemoryTable

COUNT = int(os.environ.get("SHIFTS") or count(15))

SCHEMA = schema_of({"id": "int64", "a": "string", "b": "string"})
PLAN: Plan = evolve(None, TableId.of(SCHEMA), [], SCHEMA)

Found = tuple[dict[int, dict[str, Any]], set[int]]


def mirrored(made: Shifts, *, columns: bool) -> tuple[Found, MemoryTable]:
    table = MemoryTable(PLAN.shape)
    for number, batch in enumerate(made.batches):
        events = in_columns(batch) if columns else batch
        table.write(fold_into_changes(events, table, PLAN).changes, Marker("app", number))
    rows = {key[0]: {name: row[name] for name in ("a", "b")} for key, row in table.visible().items()}
    return (rows, {key[0] for key in table.visible() if table.remembered[key].incomplete}), table


def difference(made: Shifts, found: Found) -> str | None:
    rows, incomplete = found
    if made.told:
        return None if (made.rows, set()) == (rows, incomplete) else f"{made.rows} but {rows} {incomplete}"
    unflagged = {key: row for key, row in rows.items() if key not in incomplete}
    told = {key: row for key, row in made.rows.items() if key not in incomplete}
    return None if told == unflagged and made.rows.keys() <= rows.keys() else f"{made.rows} but {rows} {incomplete}"


@pytest.mark.parametrize("columns", [False, True])
@pytest.mark.parametrize("part", range(PARTS))
def test_a_mirror_ends_with_the_rows_of_the_source(part: int, columns: bool) -> None:
    """If events identify their transaction, every row is right and complete. Otherwise each wrong row is incomplete."""
    wrong = {}
    # Building Arrow columns for so few events takes ten times as long as applying them.
    for seed in range(part, -(-COUNT // 10) if columns else COUNT, PARTS):
        made = shifts(seed)
        found, _ = mirrored(made, columns=columns)
        if (what := difference(made, found)) is not None:
            wrong[seed] = what
    assert {} == wrong


def repeated(tx: str | None) -> Shifts:
    """A tool that restarts during a transaction repeats an insert with a new position before the delete."""
    image = b'{"id":1,"a":"x","b":null}'
    events = [
        Event(number, op, '{"id":1}', None, SCOPE, str(number), None if op == "d" else image, op == "c", False, None, 0)
        for number, op in enumerate("ccd")
    ]
    told = [msgspec.structs.replace(event, committed=1, tx=tx) for event in events]
    return Shifts(0, tx is not None, told, [told[:1], told[1:2], told[2:]], {})


@pytest.mark.parametrize("tx", ["t", None])
@pytest.mark.parametrize("together", [True, False])
def test_a_repeated_insert_is_no_second_row(tx: str | None, together: bool) -> None:
    made = repeated(tx)
    if together:
        made = Shifts(0, made.told, made.events, [made.events], {})
    assert ({}, set()) == mirrored(made, columns=False)[0] == mirrored(made, columns=True)[0] == kept(made)


def kept(made: Shifts) -> Found:
    history = MemoryHistory(PLAN.shape)
    for number, batch in enumerate(made.batches):
        built = build_versions(batch, history, PLAN)
        history.write(built.rows, built.adds_only, Marker("app", number))
    current = {key[0]: row for (key, _, _), row in history.rows.items() if row["_cdc_current"]}
    rows = {key: {name: row[name] for name in ("a", "b")} for key, row in current.items()}
    return rows, {key for key, row in current.items() if row["_cdc_incomplete"]}


@pytest.mark.parametrize("part", range(PARTS))
def test_the_current_versions_of_a_history_are_the_rows_of_the_source(part: int) -> None:
    wrong = {
        seed: what
        for seed in range(part, COUNT, PARTS)
        if (what := difference(made := shifts(seed), kept(made))) is not None
    }
    assert {} == wrong
