"""The input for the killed sink: many histories, each for one table, with their expected results."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from cdc_core.envelope import ChangeEvent, TableSchema
from tests.chaos.sink.expected import Expected
from tests.spark_sink.changes import change, schema_of, sent
from tests.spark_sink.histories import history
from tests.spark_sink.key_shifts import Shifts, shifts

PARTITIONS = 2
COLUMNS = {"id": "int64", "a": "string", "b": "string", "c": "string"}


class Sent(NamedTuple):
    partition: int
    event: ChangeEvent


class Workload:
    """Histories from a seed, shifting keys, and five more tables: one has values that do not fit, one stops, one grows,
    one is dropped and recreated, and one loses a partition and therefore stops too.

    The growing table has no schema. Its third column is unknown until an event has it, and its columns are texts.
    """

    def __init__(self, seed: int, count: int) -> None:
        self._random = Random(seed)
        seeds = (seed * 10_000 + number for number in range(100 * count))
        self.histories = [made for made in map(history, seeds) if made.sure][:count]
        # A third as many: transactions that shift keys over each other.
        moving = (made for number in range(100 * count) if (made := shifts(seed * 10_000 + number)).told)
        self.shifts = [*islice(moving, -(-count // 3))]
        self._keyed = schema_of({"id": "int64", "n": "int64"}, table="stops")
        self._rekeyed = schema_of({"id": "int64", "n": "int64"}, ("n",), table="stops")
        self._dropped = schema_of({"id": "int64", "n": "int64"}, table="dropped")
        self._parted = schema_of({"id": "int64", "n": "int64"}, table="parted")
        self._broken = schema_of({"id": "int64", "n": "int64"}, table="broken")

    def schemas(self) -> list[TableSchema]:
        plain = [schema_of(COLUMNS, table=made.table) for made in self.histories]
        moving = [schema_of(COLUMNS, table=_shifted(made)) for made in self.shifts]
        return [*plain, *moving, self._keyed, self._rekeyed, self._broken, self._dropped, self._parted]

    def records(self) -> list[Sent]:
        """Return the records in topic order. Tables are interleaved, each in its own order."""
        queues = [
            [Sent(number % PARTITIONS, event) for event in events] for number, events in enumerate(self._tables())
        ]
        mixed = []
        while queues:
            queue = self._random.choice(queues)
            mixed.append(queue.pop(0))
            queues = [queue for queue in queues if queue]
        return mixed

    def expected(self) -> Expected:
        return Expected(
            {made.table: made.events for made in self.histories},
            {
                "grows": {str(n): {"id": str(n), "n": str(n), "more": None if n < 10 else "x"} for n in range(20)},
                "dropped": {n: {"id": n, "n": n} for n in range(10, 20)},
                "parted": {n: {"id": n, "n": n} for n in range(10)},
                **{_shifted(made): _rows(made) for made in self.shifts},
            },
            broken={n for n in range(20) if n % 4 == 3},
            stopped=10,
        )

    def tables(self, warehouse: Path) -> dict[str, Any]:
        """Return the `tables` section of the sink's configuration."""
        formats = dict.fromkeys(self.iceberg(), "iceberg")
        return {"warehouse": str(warehouse), "truncate": "all_scopes", "drops": "empty", "formats": formats}

    def iceberg(self) -> list[str]:
        """Return the Iceberg tables: every second history, except the first one with a truncate. The kill points around
        a truncate are in Delta tables.
        """
        ordered = sorted(self.histories, key=lambda made: all(event.op != "t" for event in made.events))
        names = [*(made.table for made in ordered[1::2]), *map(_shifted, self.shifts[1::2])]
        return [f"shop_sales.{name}" for name in names]

    def _tables(self) -> Iterator[list[ChangeEvent]]:
        for made in self.histories:
            yield [sent(event, made.table) for batch in made.batches for event in batch]
        for moving in self.shifts:
            yield [sent(event, _shifted(moving)) for batch in moving.batches for event in batch]
        yield [
            change("c", {"id": n}, {"n": n} if n < 10 else {"n": n, "more": "x"}, pos=n, table="grows")
            for n in range(20)
        ]
        for schema, note in ((self._dropped, "TABLE_DROPPED"), (self._parted, "STATEMENT_NOT_APPLIED")):
            statement = change(None, None, pos=10, kind="schema", table=schema.table, notes=[note])
            rows = [self._numbered(schema, n, pos=n + (n >= 10)) for n in range(20)]
            yield [*rows[:10], statement, *rows[10:]]
        for schema, later in ((self._keyed, self._rekeyed), (self._broken, self._broken)):
            yield [self._numbered(schema if n < 10 else later, n) for n in range(20)]

    def _numbered(self, schema: TableSchema, n: int, *, pos: int | None = None) -> ChangeEvent:
        columns = {"n": "no number" if schema.table == "broken" and n % 4 == 3 else n}
        key = dict.fromkeys(schema.key_columns, n)
        place = n if pos is None else pos
        return change("c", key, {"id": n, **columns}, pos=place, table=schema.table, schema=schema)


def _shifted(made: Shifts) -> str:
    return f"shifts{made.seed}"


def _rows(made: Shifts) -> dict[int, dict[str, Any]]:
    return {key: {"id": key, **row, "c": None} for key, row in made.rows.items()}
