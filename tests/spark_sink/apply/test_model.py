"""The model check: random histories through the fold, the segments and the truncates of the sink, against the oracle.

`HISTORIES=20000` in the environment runs the number of an acceptance run.
"""

from __future__ import annotations

import os
from itertools import groupby

import pytest

from cdc_core.table_id import TableId
from spark_sink.apply.mirror import fold_into_changes
from spark_sink.apply.truncate import truncate
from spark_sink.schema.evolution import Plan, evolve
from spark_sink.tables.changes import Marker
from tests.sizes import count
from tests.spark_sink.changes import schema_of
from tests.spark_sink.histories import History, history
from tests.spark_sink.memory import MemoryTable
from tests.spark_sink.oracle import table_after

COUNT = int(os.environ.get("HISTORIES") or count(9))
PARTS = 3

SCHEMA = schema_of({"id": "int64", "a": "string", "b": "string", "c": "string"})
PLAN: Plan = evolve(None, TableId.of(SCHEMA), [], SCHEMA)


def applied(made: History, *, soft: bool = False) -> MemoryTable:
    """Return the table after all batches of a history."""
    table = MemoryTable(PLAN.shape)
    for number, batch in enumerate(made.batches):
        for truncates, group in groupby(batch, lambda event: event.op == "t"):
            if truncates:
                for event in group:
                    truncate(event, table, PLAN, Marker("app", number), 7, all_scopes=True, soft=soft)
            else:
                table.write(fold_into_changes(list(group), table, PLAN, soft=soft).changes, Marker("app", number))
    return table


def difference(made: History, table: MemoryTable) -> str | None:
    rows, incomplete = table_after(made.events)
    found = {key[0]: row for key, row in table.visible().items()}
    flagged = {key[0] for key in table.visible() if table.remembered[key].incomplete}
    if made.sure:
        return None if (rows, incomplete) == (found, flagged) else f"{rows} {incomplete} but {found} {flagged}"
    told = {id: row for id, row in rows.items() if id not in flagged}
    found_told = {id: row for id, row in found.items() if id not in flagged}
    if rows.keys() == found.keys() and told == found_told and incomplete <= flagged:
        return None
    return f"{rows} {incomplete} but {found} {flagged}"


@pytest.mark.parametrize("part", range(PARTS))
def test_any_delivery_gives_the_table(part: int) -> None:
    """However a history is reordered within its scopes, repeated and split into batches, the table is that of the
    history, and no complete row is marked.
    """
    wrong = {
        seed: what for seed in range(part, COUNT, PARTS) if (what := difference(history(seed), applied(history(seed))))
    }
    assert {} == wrong
