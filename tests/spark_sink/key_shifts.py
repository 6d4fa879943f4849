"""Random transactions that move keys as SQL allows: keys are unique after each statement, but not during it."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

import msgspec

from cdc_core.position import position
from spark_sink.model.event import Event
from tests.spark_sink.changes import SCOPE, text

KEYS = range(1, 8)
COLUMNS = ("a", "b")

Rows = dict[int, dict[str, Any]]


@dataclass(frozen=True)
class Shifts:
    """The events in source order, their batches, and the final rows of the source.

    `told`: whether every event identifies its transaction.
    """

    seed: int
    told: bool
    events: list[Event]
    batches: list[list[Event]]
    rows: Rows


def shifts(seed: int) -> Shifts:
    """Return the transactions of a seed."""
    source = _Source(Random(seed))
    source.run()
    return Shifts(seed, source.told, source.events, _batches(source.random, source.events), source.rows)


@dataclass
class _Source:
    random: Random
    rows: Rows = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    number: int = 0

    def __post_init__(self) -> None:
        # How the tool captures the change: full rows, some columns or the key only. A moved key becomes two events.
        self.image = self.random.choice(("full", "partial", "key"))
        self.pairs = self.random.random() < 0.3
        self.told = self.random.random() < 0.8

    def run(self) -> None:
        for key in self.random.sample(KEYS, self.random.randint(2, 5)):
            self.rows[key] = self.columns()
            self.make("r", key, self.rows[key], full=True, tx=None)
        for number in range(1, self.random.randint(2, 4)):
            self.number = number
            for _ in range(self.random.randint(1, 3)):
                self.statement()

    def statement(self) -> None:
        """Change each row once, in any order. In the end, no two rows have the same key."""
        random = self.random
        gone = {key for key in self.rows if random.random() < 0.15}
        moved = [key for key in self.rows if key not in gone and random.random() < 0.7]
        staying = self.rows.keys() - gone - set(moved)
        free = [key for key in KEYS if key not in staying]
        if random.random() < 0.5:  # shift all by one if possible
            step = random.choice((1, -1))
            targets = [key + step for key in moved]
            if not set(targets) <= set(free):
                targets = random.sample(free, len(moved))
        else:
            targets = random.sample(free, len(moved))
        fresh = [key for key in free if key not in targets and random.random() < 0.2]
        steps: list[tuple[str, int, int]] = [("d", key, key) for key in gone]
        steps += [("u", old, new) for old, new in zip(moved, targets, strict=True)]
        steps += [("c", key, key) for key in fresh]
        random.shuffle(steps)
        before, after = self.rows, {key: self.rows[key] for key in staying}
        for op, old, new in steps:
            if op == "d":
                self.make("d", old)
            elif op == "c":
                after[new] = self.columns()
                self.make("c", new, after[new], full=True)
            else:
                after[new] = self.update(old, new, before[old])
        self.rows = after

    def update(self, old: int, new: int, row: dict[str, Any]) -> dict[str, Any]:
        changed = self.columns() if self.image != "key" and self.random.random() < 0.5 else {}
        if self.image == "partial":
            changed = {name: value for name, value in changed.items() if self.random.random() < 0.5}
        written = {**row, **changed}
        if old == new:
            self.make("u", new, written if self.image == "full" else changed, full=self.image == "full")
        elif self.pairs:
            self.make("d", old)
            self.make("c", new, written, full=True)
        else:
            self.make("u", new, written if self.image == "full" else changed, old=old, full=self.image == "full")
        return written

    def columns(self) -> dict[str, Any]:
        return {name: f"{name}{len(self.events)}" for name in COLUMNS}

    def make(
        self,
        op: str,
        key: int,
        columns: dict[str, Any] | None = None,
        *,
        old: int | None = None,
        full: bool = False,
        tx: str | None = "",
    ) -> None:
        number = len(self.events)
        self.events.append(
            Event(
                index=number,
                op=op,
                key=text({"id": key}),
                key_old=None if old is None else text({"id": old}),
                scope=SCOPE,
                pos=position(number + 1, 0),
                after=None if columns is None else text({"id": key, **columns}).encode(),
                full=full,
                withholds=False,
                schema_id=None,
                ts=self.number,
                committed=self.number,
                tx=f"tx{self.number}" if self.told and tx is not None else None,
            )
        )


def _batches(random: Random, events: list[Event]) -> list[list[Event]]:
    """Return randomly split batches, even within a transaction. After a restart, earlier events repeat."""
    delivered: list[Event] = []
    for number, event in enumerate(events):
        delivered.append(event)
        if random.random() < 0.05:
            delivered += events[random.randint(0, number) : number + 1]
    batches: list[list[Event]] = [[]]
    cut = random.choice((0.0, 0.1, 0.3, 1.0))
    for event in delivered:
        if batches[-1] and random.random() < cut:
            batches.append([])
        batches[-1].append(msgspec.structs.replace(event, index=len(batches[-1])))
    return batches
