"""A small shop in plain Python. The history of its tables is seeded, so their final content is known.

The history does not depend on the translator. `dev.demo.writers` writes this history in the four input formats. At the
end, `Shop.rows` has the content that the lakehouse tables should have.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

Row = dict[str, Any]
START = datetime(2026, 1, 5, 8, 0, 0)


@dataclass(frozen=True)
class ShopColumn:
    """A column; `kind` is bigint, int, decimal, varchar, datetime, date, double or blob."""

    name: str
    kind: str


@dataclass(frozen=True)
class ShopTable:
    """A table, with its key columns in key order."""

    name: str
    columns: tuple[ShopColumn, ...]
    key: tuple[str, ...]

    def with_column(self, column: ShopColumn) -> ShopTable:
        return ShopTable(self.name, (*self.columns, column), self.key)


def _table(name: str, key: tuple[str, ...], columns: str) -> ShopTable:
    """Parse a table from `name kind, name kind, …`."""
    pairs = (column.split() for column in columns.split(","))
    return ShopTable(name, tuple(ShopColumn(column, kind) for column, kind in pairs), key)


CUSTOMERS = _table(
    "customers",
    ("id",),
    "id bigint, name varchar, email varchar, credit decimal, score double, born date, created datetime",
)
ORDERS = _table(
    "orders",
    ("id",),
    "id bigint, customer_id bigint, state varchar, total decimal, placed datetime, signature blob",
)
LINES = _table("order_lines", ("order_id", "line"), "order_id bigint, line int, sku varchar, qty int, price decimal")
TABLES = (CUSTOMERS, ORDERS, LINES)
PHONE = ShopColumn("phone", "varchar")


@dataclass(frozen=True)
class ShopChange:
    """One table change.

    `op` is load, insert, update, delete or add_column. A key change is an update whose images have different keys.
    `table` is the table at the time of the change.
    """

    op: str
    table: ShopTable
    at: datetime
    before: Row | None = None
    after: Row | None = None


@dataclass
class Shop:
    """A shop's tables and their random changes. The same seed always gives the same history."""

    seed: int
    tables: tuple[ShopTable, ...] = TABLES
    rows: dict[str, dict[tuple[Any, ...], Row]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self._shapes = {shape.name: shape for shape in self.tables}
        self._now = START
        self._next_id = 1
        self.rows = {shape.name: {} for shape in self.tables}

    def history(self, changes: int, new_column_at: int | None = None) -> Iterator[ShopChange]:
        """Yield the requested number of changes. The first tenth is the initial load. A column can be added halfway."""
        for number in range(changes):
            self._now += timedelta(microseconds=self._random.choice((0, 1_000_000, 1_234_567, 250_000)))
            if number == new_column_at:
                yield self._add_column()
            elif number < changes // 10:
                yield self._insert("load")
            else:
                kind = self._random.choices(
                    (self._insert, self._update, self._delete, self._change_key), (30, 50, 16, 4)
                )[0]
                yield kind()

    def shape(self, name: str) -> ShopTable:
        """Return a table's current structure."""
        return self._shapes[name]

    def _add_column(self) -> ShopChange:
        shape = self._shapes["customers"].with_column(PHONE)
        self._shapes["customers"] = shape
        for row in self.rows["customers"].values():
            row[PHONE.name] = None
        return ShopChange("add_column", shape, self._now)

    def _insert(self, op: str = "insert") -> ShopChange:
        shape = self._shapes[self._random.choice(self.tables).name]
        row = {column.name: self._value(column) for column in shape.columns}
        row.update(self._new_key(shape))
        self.rows[shape.name][_key(shape, row)] = row
        return ShopChange(op, shape, self._now, None, dict(row))

    def _update(self) -> ShopChange:
        shape, row = self._pick()
        if row is None:
            return self._insert()
        before = dict(row)
        plain = [column for column in shape.columns if column.name not in shape.key]
        for column in self._random.sample(plain, self._random.randint(1, 2)):
            row[column.name] = self._value(column)
        return ShopChange("update", shape, self._now, before, dict(row))

    def _change_key(self) -> ShopChange:
        shape, row = self._pick()
        if row is None:
            return self._insert()
        before = dict(row)
        del self.rows[shape.name][_key(shape, row)]
        row.update(self._new_key(shape))
        self.rows[shape.name][_key(shape, row)] = row
        return ShopChange("update", shape, self._now, before, dict(row))

    def _delete(self) -> ShopChange:
        shape, row = self._pick()
        if row is None:
            return self._insert()
        del self.rows[shape.name][_key(shape, row)]
        return ShopChange("delete", shape, self._now, dict(row), None)

    def _pick(self) -> tuple[ShopTable, Row | None]:
        shape = self._shapes[self._random.choice(self.tables).name]
        rows = self.rows[shape.name]
        return shape, rows[self._random.choice(tuple(rows))] if rows else None

    def _new_key(self, shape: ShopTable) -> Row:
        self._next_id += 1
        parts = {"order_id": self._next_id // 3, "line": self._next_id} if len(shape.key) > 1 else {"id": self._next_id}
        return {name: parts[name] for name in shape.key}

    def _value(self, column: ShopColumn) -> Any:
        if column.name not in _NEVER_NULL and self._random.random() < 0.1:
            return None
        return _VALUES[column.kind](self._random, column.name)


_NEVER_NULL = {name for shape in TABLES for name in shape.key}
_WORDS = ("café", "Zoë", "北京", "O'Brien", 'say "hi"', "tab\there", "plain", "näive ☃", "back\\slash", "")


def _key(shape: ShopTable, row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in shape.key)


def _varchar(rng: random.Random, name: str) -> str:
    if name == "state":
        return rng.choice(("new", "paid", "sent", "returned"))
    return f"{rng.choice(_WORDS)} {rng.randint(1, 9999)}"


def _decimal(rng: random.Random, _name: str) -> Decimal:
    return Decimal(rng.randint(-(10**9), 10**11)).scaleb(-2)


def _datetime(rng: random.Random, _name: str) -> datetime:
    return START - timedelta(seconds=rng.randint(0, 10**8), microseconds=rng.randint(0, 999_999))


_VALUES: Mapping[str, Callable[[random.Random, str], Any]] = {
    "bigint": lambda rng, _name: rng.choice((rng.randint(1, 5000), rng.randint(-(2**63), 2**63 - 1))),
    "int": lambda rng, _name: rng.randint(-(2**31), 2**31 - 1),
    "decimal": _decimal,
    "varchar": _varchar,
    "datetime": _datetime,
    "date": lambda rng, _name: date(1900, 1, 1) + timedelta(days=rng.randint(0, 50_000)),
    "double": lambda rng, _name: rng.choice((0.1, 1e22, -2.5e-8, 3.0, rng.uniform(-1e6, 1e6))),
    "blob": lambda rng, _name: rng.randbytes(rng.randint(1, 12)),
}
