"""Random histories of a small table as sources produce them, and random ways to deliver them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from random import Random
from typing import Any

import msgspec

from cdc_core.position import position
from spark_sink.model.event import Event
from tests.spark_sink.changes import text

KEYS = range(5)
COLUMNS = ("a", "b", "c")


@dataclass(frozen=True)
class History:
    """The events in source order without duplicates, and the batches that deliver them, some of them repeatedly."""

    seed: int
    native: bool
    events: list[Event]
    batches: list[list[Event]]

    @property
    def table(self) -> str:
        """A name that no other history has."""
        return f"t{self.seed}"

    @property
    def sure(self) -> bool:
        """Whether every row can be known. Under native order, a key change with a partial row makes that impossible."""
        return not (self.native and any(event.key_old and not event.full for event in self.events))


def history(seed: int) -> History:
    """Return the history of a seed, with one or several scopes and arrival or native positions."""
    random = Random(seed)
    native = random.random() < 0.6
    scopes = [_scope(native, number) for number in range(random.choice((1, 1, 2, 3)))]
    events = _Source(random, native, scopes).run(random.randint(1, 30))
    batches = _any_order(random, events) if native else _in_order(random, events)
    return History(seed, native, events, batches)


def _scope(native: bool, number: int) -> str:
    return f"native:shop/task{number}" if native else f"raw:{number}@topic-id"


class _Source:
    """A source that emits events of existing rows. Keys change only to free keys."""

    def __init__(self, random: Random, native: bool, scopes: list[str]) -> None:
        self.random = random
        self.native = native
        self.scopes = scopes
        self.scope = scopes[0]
        self.alive: set[int] = set()
        self.events: list[Event] = []
        self.whole_moves = random.random() < 0.8

    def run(self, count: int) -> list[Event]:
        for key in sorted(self.random.sample(KEYS, self.random.randint(0, 3))):
            self.make("r", key, self.columns(1.0), full=True)
            self.alive.add(key)
        while len(self.events) < count:
            # Under native order, a scope is a task, and tasks alternate. With arrival order, partitions interleave
            # freely.
            if self.random.random() < (0.1 if self.native else 0.5):
                self.scope = self.random.choice(self.scopes)
            self.step()
        return self.events

    def step(self) -> None:
        random, key = self.random, self.random.choice(KEYS)
        free = [other for other in KEYS if other not in self.alive]
        draw = random.random()
        if draw < 0.03:
            self.make("t", None)
            self.alive.clear()
        elif key not in self.alive:
            withheld = random.random() < 0.1
            self.make("c", key, self.columns(0.5 if withheld else 1.0), full=not withheld, withholds=withheld)
            self.alive.add(key)
        elif draw < 0.2:
            self.make("d", key)
            self.alive.discard(key)
        elif draw < 0.35 and free:
            full = self.whole_moves or random.random() < 0.5
            withheld = not full and random.random() < 0.2
            columns = self.columns(1.0 if full else 0.5)
            self.make("u", random.choice(free), columns, old=key, full=full, withholds=withheld)
            self.alive ^= {key, json.loads(self.events[-1].key)["id"]}
        else:
            full = random.random() < 0.3
            withheld = not full and random.random() < 0.1
            self.make("u", key, self.columns(1.0 if full else 0.4), full=full, withholds=withheld)

    def columns(self, share: float) -> dict[str, Any]:
        number = len(self.events)
        sent = [name for name in COLUMNS if self.random.random() < share]
        return {name: self.random.choice((None, f"{name}{number}")) for name in sent}

    def make(
        self,
        op: str,
        key: int | None,
        columns: dict[str, Any] | None = None,
        *,
        old: int | None = None,
        full: bool = False,
        withholds: bool = False,
    ) -> None:
        number = len(self.events)
        # A later scope has lower positions than an earlier one, because positions of different scopes are not
        # comparable.
        reached = number + 1000 * (len(self.scopes) - self.scopes.index(self.scope))
        place = position(reached, 0)
        if self.native:
            place = position(self.random.randint(0, 99), number, native=0 if op == "r" else 10**34 + reached)
        self.events.append(
            Event(
                index=number,
                op=op,
                key=text({"id": key}),
                key_old=None if old is None else text({"id": old}),
                scope=self.scope,
                pos=place,
                after=None if columns is None else text({"id": key, **columns}).encode(),
                full=full,
                withholds=withholds,
                schema_id=None,
                ts=number,
                committed=None if number % 5 == 0 else number,
            )
        )


def _in_order(random: Random, events: list[Event]) -> list[list[Event]]:
    """Return randomly split batches. Each scope sometimes restarts at an earlier event, as after a restart."""
    delivered: list[Event] = []
    for number, event in enumerate(events):
        delivered.append(event)
        if random.random() < 0.1:
            start = random.randint(0, number)
            delivered += [again for again in events[start : number + 1] if again.scope == event.scope]
    return _cut(random, delivered)


def _any_order(random: Random, events: list[Event]) -> list[list[Event]]:
    """Return a random order within a scope's turn. Any event can repeat, even after another scope has taken over.

    The load comes first, because a loaded row among changes would look like an unannounced reload.
    """
    delivered = [event for event in events if event.op == "r"]
    truncates = any(event.op == "t" for event in events)
    turn: list[Event] = []
    for event in events[len(delivered) :]:
        if turn and turn[-1].scope != event.scope:
            delivered += random.sample(turn, len(turn))
            turn = []
        turn.append(event)
    delivered += random.sample(turn, len(turn))
    for event in random.sample(events, len(events) // 4):
        if event.op != "r" or not truncates:
            first = delivered.index(event)
            delivered.insert(random.randint(first, len(delivered)), event)
    return _cut(random, delivered)


def _cut(random: Random, delivered: list[Event]) -> list[list[Event]]:
    batches: list[list[Event]] = [[]]
    for event in delivered:
        if random.random() < 0.2:
            batches.append([])
        batches[-1].append(msgspec.structs.replace(event, index=len(batches[-1])))
    return [batch for batch in batches if batch]
