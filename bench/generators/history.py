"""Generate a seeded table history: which rows change, when and how. The history is independent of formats.

Each row looks like an order, with numbers, decimals, short and long strings, and times. Wide tables repeat these
columns.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple, TypeAlias

Cell: TypeAlias = int | str | None
"""Numbers are integers. Decimals and times are text: `123.45`, `2026-01-05 08:00:00.123`."""
StreamRow: TypeAlias = list[Cell]
"""The cells in column order. The first cell is the key."""

_START = datetime(2026, 1, 5, 8, tzinfo=UTC)
_CHANGES_PER_SECOND = 2_000
_CHANGED_COLUMNS = 3
_LEAST_ROWS = 20
"""The number of rows in a table before its first change. No table is empty when the history begins."""
MOVED_TABLE = "moved"
"""Only this table has key changes, so the translator's counters show how many there are."""


@dataclass(frozen=True)
class StreamSpec:
    """The parameters for a message stream.

    Args:
        messages: the number of messages.
        columns: the number of columns per table, including the key. It is at least two.
        tables: the number of tables.
        skew: the exponent for the tables' shares: 0 for equal shares, 1 for Zipf.
        inserts: the share of inserts in the usual messages.
        updates: the share of updates in the usual messages. All other usual messages are deletes.
        unusual: the share of messages that are not row changes, or that change the key.
        partitions: partitions in the raw topic.
    """

    messages: int
    columns: int = 12
    tables: int = 1
    skew: float = 1.0
    inserts: float = 0.2
    updates: float = 0.7
    unusual: float = 0.0
    partitions: int = 4
    seed: int = 7


class StreamColumn(NamedTuple):
    """A column. `kind` is bigint, int, decimal, text, datetime or datetime3."""

    name: str
    kind: str
    make: Callable[[random.Random], Cell]
    nulls: float


class StreamTable(NamedTuple):
    """A table. Its first column is the key."""

    name: str
    number: int
    columns: tuple[StreamColumn, ...]


class StreamChange(NamedTuple):
    """A change to write as a message.

    `kind` is insert, update, delete, moved (an update that changes the key), ddl, or blank (a message without content:
    a tombstone or a transaction marker).
    """

    kind: str
    table: StreamTable
    partition: int
    number: int
    at: datetime
    before: StreamRow | None
    after: StreamRow | None


class History:
    """A history of changes to tables. The same spec always gives the same history.

    Args:
        unusual: the kinds of unusual changes, with their weights.
    """

    def __init__(self, spec: StreamSpec, unusual: Mapping[str, int]) -> None:
        self._spec = spec
        self._random = random.Random(spec.seed)
        self._kinds = tuple(unusual)
        self._weights = [*itertools.accumulate(unusual.values())]
        *self._tables, self._moved = tables_of(spec)
        self._shares = [*itertools.accumulate((number + 1) ** -spec.skew for number in range(spec.tables))]
        self._rows: dict[str, list[StreamRow]] = {table.name: [] for table in (*self._tables, self._moved)}
        self._next_id = 1_000_000

    def changes(self) -> Iterator[StreamChange]:
        """Yield all changes in order."""
        for number in range(self._spec.messages):
            at = _START + timedelta(seconds=number // _CHANGES_PER_SECOND, milliseconds=number % 1000)
            yield self._unusual(number, at) if self._random.random() < self._spec.unusual else self._usual(number, at)

    def _usual(self, number: int, at: datetime) -> StreamChange:
        (table,) = self._random.choices(self._tables, cum_weights=self._shares)
        chance = self._random.random()
        if chance < self._spec.inserts:
            row = self._insert(table)
            return self._change("insert", table, number, at, None, row)
        rows, place = self._pick(table)
        if chance < self._spec.inserts + self._spec.updates:
            before = rows[place]
            rows[place] = after = self._updated(table, before)
            return self._change("update", table, number, at, before, after)
        rows[place], rows[-1] = rows[-1], rows[place]
        return self._change("delete", table, number, at, rows.pop(), None)

    def _unusual(self, number: int, at: datetime) -> StreamChange:
        (kind,) = self._random.choices(self._kinds, cum_weights=self._weights)
        if kind != "moved":
            return StreamChange(kind, self._tables[0], number % self._spec.partitions, number, at, None, None)
        rows, place = self._pick(self._moved)
        before = rows[place]
        rows[place] = after = self._updated(self._moved, before)
        after[0] = self._key_beside(before)
        return self._change(kind, self._moved, number, at, before, after)

    def _change(
        self,
        kind: str,
        table: StreamTable,
        number: int,
        at: datetime,
        before: StreamRow | None,
        after: StreamRow | None,
    ) -> StreamChange:
        key = (before or after or [0])[0]
        assert isinstance(key, int)
        return StreamChange(kind, table, (key + table.number) % self._spec.partitions, number, at, before, after)

    def _insert(self, table: StreamTable) -> StreamRow:
        row = [_cell(column, self._random) for column in table.columns]
        self._next_id += 1
        row[0] = self._next_id
        self._rows[table.name].append(row)
        return row

    def _pick(self, table: StreamTable) -> tuple[list[StreamRow], int]:
        rows = self._rows[table.name]
        while len(rows) < _LEAST_ROWS:
            self._insert(table)
        return rows, self._random.randrange(len(rows))

    def _updated(self, table: StreamTable, row: StreamRow) -> StreamRow:
        after = [*row]
        for place in self._random.sample(range(1, len(row)), min(_CHANGED_COLUMNS, len(row) - 1)):
            after[place] = _cell(table.columns[place], self._random)
        return after

    def _key_beside(self, row: StreamRow) -> int:
        """Return a new key in the same partition, because changes to a row have no order across partitions."""
        partitions, old = self._spec.partitions, row[0]
        assert isinstance(old, int)
        self._next_id += 2 * partitions
        return self._next_id - self._next_id % partitions - partitions + old % partitions


def tables_of(spec: StreamSpec) -> Sequence[StreamTable]:
    """Return the tables for a spec. The last one has the key changes."""
    columns = tuple(
        column._replace(name=f"{column.name}_{turn}" if turn else column.name)
        for number, column in enumerate(itertools.islice(itertools.cycle(_COLUMNS), spec.columns))
        for turn in (number // len(_COLUMNS),)
    )
    names = [f"orders_{number}" if number else "orders" for number in range(spec.tables)]
    return [StreamTable(name, number, columns) for number, name in enumerate((*names, MOVED_TABLE))]


def _cell(column: StreamColumn, rng: random.Random) -> Cell:
    return None if column.nulls and rng.random() < column.nulls else column.make(rng)


_words = random.Random(11)
_WORDS = ["".join(_words.choices("abcdefghijklmnopqrstuvwxyz", k=_words.randint(3, 9))) for _ in range(3_000)]
_STATES = ("NEW", "PAID", "PACKED", "SHIPPED", "DELIVERED", "RETURNED")


def _note(rng: random.Random) -> str:
    text = " ".join(rng.choices(_WORDS, k=rng.randint(8, 24)))
    return f'{text[:20]} "quoted" 中文 é' if rng.random() < 0.02 else text


def _time(rng: random.Random) -> str:
    return (_START - timedelta(seconds=rng.randrange(10**7))).strftime("%Y-%m-%d %H:%M:%S")


_COLUMNS = (
    StreamColumn("id", "bigint", lambda rng: rng.randrange(10**9), 0),
    StreamColumn("order_no", "text", lambda rng: f"SO{rng.randrange(10**12):012d}", 0),
    StreamColumn("customer_id", "bigint", lambda rng: rng.randrange(10**9), 0),
    StreamColumn("status", "text", lambda rng: rng.choice(_STATES), 0),
    StreamColumn("amount", "decimal", lambda rng: f"{rng.randrange(10**5)}.{rng.randrange(100):02d}", 0),
    StreamColumn("currency", "text", lambda rng: "EUR", 0),
    StreamColumn("quantity", "int", lambda rng: rng.randrange(1, 99), 0),
    StreamColumn("warehouse", "text", lambda rng: f"WH-{rng.choice(_WORDS)}", 0),
    StreamColumn("note", "text", _note, 0),
    StreamColumn("tracking_no", "text", lambda rng: f"{rng.getrandbits(128):032x}", 0.05),
    StreamColumn("created_at", "datetime", _time, 0),
    StreamColumn("updated_at", "datetime3", lambda rng: f"{_time(rng)}.{rng.randrange(1000):03d}", 0),
)
