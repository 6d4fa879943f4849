"""The sink's page: tables, parked tables, batches, quarantine."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple

from aiohttp import web

from translator.operations.duration import duration
from translator.web.render import asked, page
from translator.web.sink_view import SinkState, SinkTable, SinkView
from translator.web.templating import Nav

NAV = (("/sink", "Lakehouse"),)


class TableRow(NamedTuple):
    """A table, with what the batches and the verifications say about it.

    Args:
        changed: when a batch last changed it, and which.
        command: for a parked table, how to resume it once the cause is corrected. None for other tables.
        verified: a sentence for each source that the table was compared with.
        differs: whether the last conclusive comparison with any source found rows that differ.
    """

    table: SinkTable
    changed: str
    command: str | None
    verified: list[str]
    differs: bool


class SinkPages:
    """The request handlers."""

    def __init__(self, view: SinkView, nav: Nav) -> None:
        self._view = view
        self._nav = nav

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/sink", self._sink)]

    async def _sink(self, request: web.Request) -> web.Response:
        state = await asked(self._view.state, self._nav)
        if isinstance(state, web.Response):
            return state
        rows = [_row(table, state, self._view.config.name) for table in state.status.tables]
        # What needs attention comes first.
        rows.sort(key=lambda row: (row.table.parked is None, not row.differs))
        return page(
            "sink.html",
            title="Lakehouse",
            nav=self._nav,
            state=state,
            rows=rows,
            config=shlex.quote(self._view.config.name),
            newest=_ago(max(batch.ended_at for batch in state.batches)) if state.batches else None,
        )


def _row(table: SinkTable, state: SinkState, config: str) -> TableRow:
    by = next((batch for batch in state.batches if table.table in batch.tables), None)
    changed = "not in the newest batches"
    if by is not None:
        changed = _ago(by.ended_at) + ("" if by.batch is None else f", batch {by.batch}")
    command = None
    if table.parked is not None:
        name, file = shlex.quote(table.table), shlex.quote(config)
        # The name of the reason in `spark_sink.errors.Reason`, which this program does not import.
        what = f"reload {name} end" if table.parked == "RELOAD" else f"resume {name}"
        command = f"spark-sink {what} -c {file}"
    differs = any(found.differing for found in table.verified.values())
    return TableRow(table, changed, command, list(_verified(table)), differs)


def _verified(table: SinkTable) -> Iterator[str]:
    for against, found in table.verified.items():
        if found.conclusive is not None and found.differing:
            yield f"{found.differing} rows differ from {against} ({_ago(found.conclusive.at)})"
        elif found.verified_through is None:
            yield f"not verified against {against}: the last comparison was inconclusive ({_ago(found.at)})"
        else:
            left = f", {found.left_out} rows left out" if found.left_out else ""
            yield f"equal to {against} through {found.verified_through:%Y-%m-%d %H:%M} UTC{left}"


def _ago(at: datetime) -> str:
    return f"{duration(max(0.0, time.time() - at.timestamp()))} ago"
