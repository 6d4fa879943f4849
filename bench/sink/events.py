"""Generate input for the sink's benchmark: tables with Pareto-distributed sizes, which are loaded and changed, and
their expected content.

20 % of the changes are inserts, 73 % updates (half of them with only the changed columns) and 7 % deletes, over ten
columns with the usual types (lakehouse W1).
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from cdc_core.envelope import ChangeEvent, Column, Origin, TableSchema
from cdc_core.position import position
from translator.codecs.avro import AvroCodec

PARTITIONS = 4

COLUMNS: Mapping[str, str] = {
    "id": "int64",
    "number": "int32",
    "quantity": "int64",
    "flag": "boolean",
    "amount": "decimal(18,4)",
    "price": "decimal(18,4)",
    "at": "timestamp",
    "day": "date",
    "name": "string",
    "note": "string",
}
"""Canonical type by column."""

KEY = "id"

_PARETO = 1.16
_INSERTS, _UPDATES = 0.20, 0.73
_WORDS = ("alpha", "béta", "gamma", "delta", "omega", "日本", "quick", "brown", "fox", "lazy", "dog", "x" * 20)
_SPARE = 2000  # number of texts of each kind that are generated beforehand


class Feed(NamedTuple):
    """A canonical topic record."""

    partition: int
    key: bytes
    value: bytes


class Workload:
    """A seeded history of `tables` tables. The workload keeps the rows, so that they can be compared with the sink's
    tables.
    """

    def __init__(self, tables: int, seed: int = 7) -> None:
        self._random = random.Random(seed)
        self.schemas = [_schema(number) for number in range(tables)]
        weights = [1 / (number + 1) ** _PARETO for number in range(tables)]
        self._until = list(itertools.accumulate(weights))
        self.rows: list[dict[int, dict[str, Any]]] = [{} for _ in range(tables)]
        self._ids: list[list[int]] = [[] for _ in range(tables)]
        self._next = itertools.count()
        self._values = self._makers()
        self._codec = AvroCodec()

    def load(self, count: int) -> Iterator[Feed]:
        """Yield rows for a full load."""
        for _ in range(count):
            yield self._inserted(self._table(), "r")

    def rows_of(self, table: int, count: int) -> Iterator[Feed]:
        """Yield rows for a full load into one table."""
        for _ in range(count):
            yield self._inserted(table, "r")

    def changes(self, count: int) -> Iterator[Feed]:
        """Yield inserts, updates and deletes."""
        for _ in range(count):
            table, chance = self._table(), self._random.random()
            if chance < _INSERTS or not self._ids[table]:
                yield self._inserted(table, "c")
            elif chance < _INSERTS + _UPDATES:
                yield self.updated(table)
            else:
                yield self._deleted(table)

    def _table(self) -> int:
        (table,) = self._random.choices(range(len(self.schemas)), cum_weights=self._until)
        return table

    def _inserted(self, table: int, op: str) -> Feed:
        row = {
            "id": len(self.rows[table]) + len(self._ids[table]) + 1,
            **{n: make() for n, make in self._values.items()},
        }
        while row["id"] in self.rows[table]:
            row["id"] += 1
        self.rows[table][row["id"]] = row
        self._ids[table].append(row["id"])
        return self._record(table, op, row["id"], row, "full")

    def updated(self, table: int) -> Feed:
        """Return an update of a random row."""
        row = self.rows[table][self._random.choice(self._ids[table])]
        names = self._random.sample(tuple(self._values), self._random.randint(1, 4))
        sent = {name: self._values[name]() for name in names}
        row.update(sent)
        if self._random.random() < 0.5:
            return self._record(table, "u", row["id"], {"id": row["id"], **sent}, "partial")
        return self._record(table, "u", row["id"], row, "full")

    def _deleted(self, table: int) -> Feed:
        ids = self._ids[table]
        place = self._random.randrange(len(ids))
        ids[place], ids[-1] = ids[-1], ids[place]
        id = ids.pop()
        del self.rows[table][id]
        return self._record(table, "d", id, None, "none")

    def _record(self, table: int, op: str, id: int, image: Mapping[str, Any] | None, state: str) -> Feed:
        number = next(self._next)
        schema = self.schemas[table]
        partition = (table * 7 + id) % PARTITIONS
        key = f'{{"id":{id}}}'
        after = None if image is None else msgspec.json.encode(image).decode()
        event = ChangeEvent(
            **_CONSTANT,
            id=f"bench/raw/{partition}/{number}/0",
            op=op,
            table=schema.table,
            pos=position(number, 0),
            pos_scope=f"raw:{partition}@bench",
            ts_commit_us=_FIRST_US + 10 * number,
            ts_origin_us=_FIRST_US + 10 * number,
            key=key,
            after=after,
            after_state=state,
            before_state="key" if op == "d" else "none",
            before=key if op == "d" else None,
            schema_id=schema.id,
            origin=Origin("raw", partition, number, 0, 1),
        )
        (record,) = self._codec.encode(event, schema)
        return Feed(partition, record.key or b"", record.value or b"")

    def _makers(self) -> dict[str, Callable[[], Any]]:
        chance, whole = self._random.random, self._random.randrange

        def text(words: tuple[int, int]) -> list[str]:
            return [" ".join(self._random.choices(_WORDS, k=self._random.randint(*words))) for _ in range(_SPARE)]

        names, notes = text((2, 2)), text((3, 14))
        times = [
            f"2026-{whole(1, 13):02}-{whole(1, 29):02}T{whole(24):02}:{whole(60):02}:00.{whole(10**6):06}"
            for _ in names
        ]
        return {
            "number": lambda: whole(10**6),
            "quantity": lambda: whole(2**60) if chance() > 0.02 else None,
            "flag": lambda: chance() < 0.5,
            "amount": lambda: f"{whole(10**12)}.{whole(10**4):04}" if chance() > 0.02 else None,
            "price": lambda: f"{whole(10**12)}.{whole(10**4):04}" if chance() > 0.02 else None,
            "at": lambda: times[whole(_SPARE)],
            "day": lambda: times[whole(_SPARE)][:10],
            "name": lambda: names[whole(_SPARE)],
            "note": lambda: notes[whole(_SPARE)] if chance() > 0.1 else None,
        }


_FIRST_US = 1_764_000_000_000_000

# Fields that all events share.
_CONSTANT: Mapping[str, Any] = {
    "v": 1,
    "kind": "row",
    "source": "bench",
    "dialect": "canal",
    "variant": "oss",
    "variant_basis": "declared",
    "dbms": "mysql",
    "db": "shop",
    "key_kind": "primary",
    **dict.fromkeys(("server", "task", "schema", "pos_native", "ts_capture_us", "key_old", "changed", "unavailable")),
    **dict.fromkeys(("issues", "tx", "ddl", "notes", "ext")),
}


def _schema(number: int) -> TableSchema:
    columns = [Column(name, type, key=1 if name == "id" else None) for name, type in COLUMNS.items()]
    return TableSchema.of("bench", "shop", None, f"t{number:02}", columns, "primary")
