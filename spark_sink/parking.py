"""Parked tables: a table that cannot go on is left as it is, and its events wait, in order, until it is resumed.

They wait in the table `_cdc.parked`, and a table is parked as long as rows of it are there. So there is no second place
that could disagree: one append parks a table together with its first events, one delete ends it with the last.

Rows wait in *turns*: what one batch brought. The number of a turn is the version that `_cdc.parked` had when the batch
began, which rises with every turn, whatever becomes of checkpoints and clocks. A turn never changes, so that its number
can mark the commits that replay it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import pyarrow as pa

from spark_sink import quarantine
from spark_sink.names import RESERVED, TableId
from spark_sink.quarantine import Rejected

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
    """Why a table is parked: `errors.Reason` and a sentence without row data; since when, and how many events wait."""

    reason: str
    detail: str
    since: int = 0
    events: int = 0


@dataclass(frozen=True)
class Parking:
    """What a batch must know of parked tables; it travels to the workers.

    Args:
        turn: of what this batch parks.
        at: when the batch began, in microseconds.
        held: the tables that are parked, by name.
        again: the batch may have been begun before, and have parked tables that were resumed since.
    """

    pipeline: str = ""
    turn: int = 0
    at: int = 0
    held: Mapping[str, Cause] = field(default_factory=dict)
    again: bool = False

    def rows(
        self, records: pa.Table, table: TableId | None, target: str, batch: int, parked: Sequence[Rejected]
    ) -> pa.Table:
        """Rows of `_cdc.parked` for those `records`."""
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
