"""Parked tables. A parked table does not change. Its events are stored in order until it is resumed.

The events are stored in the table `_cdc.parked`, and a table is parked while it has rows there. Nothing else records
that a table is parked, so no other record can contradict it. One append parks a table together with its first events.
When the table's last row is deleted, the table is no longer parked.

Parked rows are grouped in *turns*, one per batch. A turn's number is the version that `_cdc.parked` had when the batch
began. The number rises with every turn, whatever the checkpoints and clocks. A turn never changes, so its number can
mark the commits that replay it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import pyarrow as pa

from cdc_core.table_id import TableId
from spark_sink.events import quarantine
from spark_sink.events.quarantine import Rejected
from spark_sink.schema.table_naming import RESERVED

NAME = f"{RESERVED}.parked"

ARROW = pa.schema(
    [
        *quarantine.ARROW,
        pa.field("pipeline", pa.string()),
        pa.field("target", pa.string()),
        pa.field("turn", pa.int64()),
        pa.field("batch", pa.int64()),
        pa.field("parked_at", pa.timestamp("us", "UTC")),
    ]
)


class Cause(NamedTuple):
    """The reason why a table is parked: a code (`errors.Reason`), and a sentence without row data.

    It also has the time, the number of parked events, and their source tables.
    """

    reason: str
    detail: str
    since: int = 0
    events: int = 0
    sources: tuple[TableId, ...] = ()


@dataclass(frozen=True)
class Parking:
    """The information about parked tables that a batch needs. It is sent to the workers.

    Args:
        turn: the turn under which this batch parks events.
        at: when the batch began, in microseconds.
        held: the parked tables by name. If another table owns the name, the events are parked under the source table's
            name.
        again: whether the batch may be a repeated one. It may then have parked tables that have been resumed since.
    """

    pipeline: str = ""
    turn: int = 0
    at: int = 0
    held: Mapping[str, Cause] = field(default_factory=dict)
    again: bool = False

    @cached_property
    def _names(self) -> Mapping[TableId, str]:
        return {source: name for name, cause in self.held.items() for source in cause.sources}

    @cached_property
    def _sources(self) -> Mapping[str, tuple[TableId, ...]]:
        return {name.lower(): cause.sources for name, cause in self.held.items()}

    def name_of(self, table: TableId) -> str | None:
        """Return the name under which a source table's events are parked."""
        return self._names.get(table)

    def sources(self, name: str) -> tuple[TableId, ...]:
        """Return the source tables that have parked events for a lakehouse table. Case is ignored."""
        return self._sources.get(name.lower(), ())

    def rows(
        self, records: pa.Table, table: TableId | None, target: str, batch: int, parked: Sequence[Rejected]
    ) -> pa.Table:
        """Convert the `records` that `parked` lists to rows for `_cdc.parked`."""
        rows = quarantine.rows(records, table, parked)
        ours = {
            "pipeline": self.pipeline,
            "target": target,
            "turn": self.turn,
            "batch": batch,
            "parked_at": self.at,
        }
        for name, value in ours.items():
            rows = rows.append_column(ARROW.field(name), pa.array([value] * len(rows), ARROW.field(name).type))
        return rows


NOTHING_PARKED = Parking()
