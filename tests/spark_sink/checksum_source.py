"""A source that computes checksums like the SQL job, and a replication tool that makes mistakes.

`test_checksums` shows that the databases compute the same checksums.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from cdc_core.envelope import ChangeEvent, TableSchema
from spark_sink.operations.checksum_runs import TABLE, TOTAL, Checksum, ChecksumColumns, newest_run, summed
from spark_sink.operations.checksums import LaterChanges, RunComparison
from spark_sink.operations.row_digests import ComparedColumns, key_hash, row_digests
from spark_sink.operations.verify import ExpectedRows, Verified, change_of, typed_values
from spark_sink.tables.protocols import MirrorTable
from tests.spark_sink.changes import change
from tests.spark_sink.lake import Lake

Row = dict[str, Any]

FAULTS = ("dropped", "doubled", "swapped", "altered")
SCOPES = ("raw:0@t", "raw:1@t", "raw:2@t")
COLUMNS = {"id": "int64", "a": "string", "b": "int32", "c": "decimal(20,4)"}
TYPES = {"id": "bigint", "a": "string", "b": "int", "c": "decimal(20,4)"}


def checksum_events(texts: Iterable[Mapping[str, Any]], scopes: Sequence[str], pos: int) -> list[ChangeEvent]:
    """Return the events for the rows that the job has inserted. The tool spreads them over the scopes."""
    return [
        change(
            "c",
            {"run": row["run"], "key_range": row["key_range"]},
            {name: value for name, value in row.items() if name not in ("run", "key_range")},
            pos=pos,
            table=TABLE,
            scope=scopes[n % len(scopes)],
        )
        for n, row in enumerate(texts)
    ]


def checksum_rows(rows: Mapping[int, Row], columns: ComparedColumns, table: str, number: int) -> list[Row]:
    """Return the rows that the job inserts."""
    every = (*columns.key, *columns.values)
    values = {one.name: typed_values([row[one.name] for row in rows.values()], one.type) for one in every}
    ranges: dict[str, list[Checksum]] = {}
    for texts, digest in row_digests(columns, {one: one.name for one in every}, values):
        hashed = key_hash(texts)
        ranges.setdefault(hashed[:2], []).append(Checksum(1, digest, digest * int(hashed[:8], 16)))
    sums = {begin: summed(of) for begin, of in sorted(ranges.items())}
    fixed = {"run": f"run {number}", "table_name": table, "computed_at": f"2026-01-31T12:00:{number:02d}.000000"}
    written = [_row(fixed, begin, checksum, None) for begin, checksum in sums.items()]
    sent = msgspec.json.encode(ChecksumColumns.of(columns)).decode()
    return [*written, _row(fixed, TOTAL, summed(sums.values()), sent)]


def _row(fixed: Row, begin: str, checksum: Checksum, sent: str | None) -> Row:
    numbers = {"row_count": checksum.rows, "digest": str(checksum.total), "weighted": str(checksum.weighted)}
    return {**fixed, "key_range": begin, **numbers, "sent_columns": sent}


@dataclass
class Workload:
    """Random changes of a table.

    Args:
        scopes: the places of the table's rows, by key.
        rows: the rows after the changes.
        events: the changes in the order of the source, as they arrive without mistakes.
    """

    rng: random.Random
    table: str
    schema: TableSchema
    scopes: Sequence[str]
    rows: dict[int, Row] = field(default_factory=dict)
    events: list[ChangeEvent] = field(default_factory=list)

    @property
    def next_pos(self) -> int:
        return 10 * (len(self.events) + 1)

    def change(self, times: int) -> None:
        for _ in range(times):
            self.events.append(self._change(self.next_pos))

    def _change(self, pos: int) -> ChangeEvent:
        op = self.rng.choices("cud", (4, 5, 1))[0] if self.rows else "c"
        if op == "c":
            key = self.rng.randrange(10**6)
            op = "u" if key in self.rows else "c"
        else:
            key = self.rng.choice(list(self.rows))
        scope = self.scopes[key % len(self.scopes)]
        if op == "d":
            del self.rows[key]
            return change("d", {"id": key}, pos=pos, table=self.table, schema=self.schema, scope=scope)
        row = {"a": f"ü{self.rng.random()}", "b": self.rng.randrange(9), "c": f"{self.rng.randrange(10**6)}.5000"}
        self.rows[key] = {"id": key, **row}
        return change(op, {"id": key}, row, pos=pos, table=self.table, schema=self.schema, scope=scope)


def with_fault(rng: random.Random, fault: str, events: Sequence[ChangeEvent]) -> list[ChangeEvent]:
    """Return the events as a tool with one mistake would send them. Positions follow the order of arrival."""
    found = list(events)
    place = rng.randrange(len(found))
    if fault == "dropped":
        del found[place]
    elif fault == "doubled":
        found.append(found[place])
    elif fault == "swapped":
        keys: dict[str | None, int] = {}
        pairs = []
        for n, event in enumerate(found):
            if event.key in keys:
                pairs.append((keys[event.key], n))
            keys[event.key] = n
        one, other = rng.choice(pairs)
        found[one], found[other] = found[other], found[one]
    else:
        while found[place].after is None:
            place = rng.randrange(len(found))
        after = {**json.loads(found[place].after or ""), "b": 77}
        found[place] = msgspec.structs.replace(found[place], after=json.dumps(after))
    positions = [*sorted({event.pos for event in events}), f"{events[-1].pos[:-1]}5"]
    return [msgspec.structs.replace(event, pos=pos) for event, pos in zip(found, positions, strict=False)]


def rows_after(events: Iterable[ChangeEvent]) -> dict[int, Row]:
    """Return the rows after the events."""
    rows: dict[int, Row] = {}
    for event in events:
        key = json.loads(event.key or "")["id"]
        rows.pop(key, None)
        if event.after is not None:
            rows[key] = json.loads(event.after)
    return rows


def compared(lake: Lake, table: str, delivered: Iterable[ChangeEvent], *, complete: bool = True) -> Verified:
    """Compare a table with the newest run among the delivered events."""
    mirror = lake.tables.open(f"shop_sales.{table}")
    assert isinstance(mirror, MirrorTable)
    changes = [change_of(event) for event in delivered]
    run = newest_run((one for one in changes if one.event.table == TABLE), table)
    assert run is not None
    assert run.columns is not None
    assert run.is_complete
    expected = ExpectedRows(mirror.shape)
    later = LaterChanges(run.places, expected)
    later.add(one for one in changes if one.event.table == table)
    columns = run.columns.in_table(mirror.shape)
    comparison = RunComparison(mirror, run, columns, expected, later, complete=complete, cuts_times=False)
    return comparison.result()
