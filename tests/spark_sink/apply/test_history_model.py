"""The model check of versions: random histories through timelines, segments and truncates, against the oracle.

`HISTORIES=20000` in the environment runs the number of an acceptance run.
"""

from __future__ import annotations

import os
from itertools import groupby
from typing import Any

import pytest

from cdc_core.table_id import TableId
from spark_sink.apply.history import build_versions, end_versions
from spark_sink.schema.evolution import Plan, evolve
from spark_sink.schema.table_spec import Mode, TableSpec
from spark_sink.tables.changes import Marker
from tests.sizes import count
from tests.spark_sink.changes import schema_of
from tests.spark_sink.histories import COLUMNS, History, history
from tests.spark_sink.memory import MemoryHistory, micros
from tests.spark_sink.oracle_history import versions_after

COUNT = int(os.environ.get("HISTORIES") or count(9))
PARTS = 3

SCHEMA = schema_of({"id": "int64", "a": "string", "b": "string", "c": "string"})
PLAN: Plan = evolve(None, TableId.of(SCHEMA), [], SCHEMA, form=TableSpec(Mode.HISTORY))


def applied(made: History) -> MemoryHistory:
    """Return the table after all batches of a history."""
    table = MemoryHistory(PLAN.shape)
    for number, batch in enumerate(made.batches):
        for truncates, group in groupby(batch, lambda event: event.op == "t"):
            if truncates:
                for event in group:
                    end_versions(event, table, PLAN.shape, Marker("app", number), all_scopes=True)
            else:
                chapter = build_versions(list(group), table, PLAN)
                assert [] == chapter.rejected
                table.write(chapter.rows, chapter.adds_only, Marker("app", number))
    return table


def difference(made: History, rows: list[dict[str, Any]]) -> str | None:
    """Compare the versions, except those that are marked as unknown."""
    wanted = {}
    for span in versions_after(made.events):
        exists = span.values is not None
        values = span.values or dict.fromkeys(COLUMNS)
        wanted[span.key, span.start] = (values, exists, span.unsure, span.end, exists and span.end is None)
    found = {}
    for row in rows:
        end = None if row["_cdc_end_ts"] is None else micros(row["_cdc_end_ts"])
        values = {name: row[name] for name in COLUMNS}
        told = (values, row["_cdc_op"] != "d", row["_cdc_incomplete"], end, row["_cdc_current"])
        found[row["id"], micros(row["_cdc_start_ts"])] = told
    if not made.sure:
        flagged = {place for place, told in found.items() if told[2]}
        # A deleted version is never marked.
        if not {place for place, told in wanted.items() if told[2]} <= flagged:
            return f"not flagged: {wanted} but {found}"
        wanted = {place: told[:2] + told[3:] if place not in flagged else told[3:] for place, told in wanted.items()}
        found = {place: told[:2] + told[3:] if place not in flagged else told[3:] for place, told in found.items()}
    return None if wanted == found and len(rows) == len(found) else f"{wanted} but {found}"


@pytest.mark.parametrize("part", range(PARTS))
def test_any_delivery_gives_the_versions(part: int) -> None:
    """However a history is reordered within its scopes, repeated and split into batches, the versions are those of the
    history: the values of each row, from where to where.
    """
    wrong = {}
    for seed in range(part, COUNT, PARTS):
        made = history(seed)
        what = difference(made, list(applied(made).rows.values()))
        if what is not None:
            wrong[seed] = what
    assert {} == wrong
