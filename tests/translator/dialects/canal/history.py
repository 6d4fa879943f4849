"""A changing table as Canal messages of one partition, and the translator's output."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import strategies as st

from dev.demo.shop import START, Row, ShopChange, ShopColumn, ShopTable
from dev.demo.writers.canal import DTS_LEGACY, CanalForm, CanalWriter
from tests.reading import ReadTable, decode
from tests.translator.dialects.canal.messages import canal
from translator.codecs.json import JsonCodec
from translator.errors import ContradictionError
from translator.message import Limits, Message
from translator.translation.dead_letter import DeadLetter
from translator.translation.partition_guards import Guards
from translator.translation.translate import Events, Translator

TABLE = ShopTable("t", (ShopColumn("id", "bigint"), ShopColumn("a", "int"), ShopColumn("b", "varchar")), ("id",))
RESTARTED = START + timedelta(days=1)
"""Later than all histories that use one form before it and another after it."""


@dataclass
class History:
    """A table and its changes so far, one or more seconds apart by default."""

    rows: dict[int, Row] = field(default_factory=dict)
    changes: list[ShopChange] = field(default_factory=list)
    now: datetime = START

    def _add(self, op: str, before: Row | None, after: Row | None, seconds: int) -> None:
        self.now += timedelta(seconds=seconds)
        self.changes.append(ShopChange(op, TABLE, self.now, before, after))
        if before is not None:
            del self.rows[before["id"]]
        if after is not None:
            self.rows[after["id"]] = after

    def new(self, key: int, a: int | None, b: str | None = "x", *, load: bool = False, seconds: int = 1) -> None:
        self._add("load" if load else "insert", None, {"id": key, "a": a, "b": b}, seconds)

    def update(self, key: int, seconds: int = 1, **values: Any) -> None:
        """Update a row. `id` among the values changes the key, and no values leave the row unchanged."""
        row = self.rows[key]
        self._add("update", row, row | values, seconds)

    def delete(self, key: int, seconds: int = 1) -> None:
        self._add("delete", self.rows[key], None, seconds)


@st.composite
def histories(draw: st.DrawFn, *, unique: bool = False, key_changes: bool = True) -> History:
    """Random histories. `unique`: no row returns after a change, and no two changes share a second."""
    history = History()
    numbers = iter(range(1, 10_000))
    values = st.none() | st.integers(0, 1)
    for _ in range(draw(st.integers(1, 14))):
        key, seconds = draw(st.integers(1, 3)), 1 if unique else draw(st.integers(0, 1))
        value = next(numbers) if unique else draw(values)
        if key not in history.rows:
            history.new(key, value, load=draw(st.booleans()), seconds=seconds)
            continue
        kind = draw(st.sampled_from(["update", "update", "update", "null", "noop", "delete", "key"]))
        if kind == "delete":
            history.delete(key, seconds)
        elif kind == "noop":
            history.update(key, seconds)
        elif kind == "key" and key_changes and (free := [new for new in (1, 2, 3, 4) if new not in history.rows]):
            history.update(key, seconds, id=draw(st.sampled_from(free)))
        else:
            both = {"b": None if kind == "null" else draw(st.sampled_from(["x", "y"]))}
            history.update(key, seconds, a=value, **(both if draw(st.booleans()) else {}))
    return history


@dataclass(frozen=True)
class Sent:
    """A message, its change, and whether its images are in the order from before March 2022."""

    message: Message
    change: ShopChange
    legacy: bool

    @property
    def two_images(self) -> bool:
        """Whether it can be read in two different ways."""
        return self.change.op == "update" and self.change.before != self.change.after


def sent(changes: Iterable[tuple[ShopChange, CanalForm, datetime | None]], topic: str = "raw.t") -> list[Sent]:
    """Return changes in their forms as the messages of one partition, sent immediately or at the given times."""
    writers: dict[CanalForm, CanalWriter] = {}
    messages = []
    for offset, (change, form, at) in enumerate(changes):
        writer = writers.setdefault(form, CanalWriter(topic, form))
        (raw,) = writer.write(change, at)
        messages.append(Sent(Message(topic, 0, offset, 0, None, raw.value), change, form.legacy))
    return messages


def swapped(changes: Sequence[ShopChange], swap: int, again: int, current: CanalForm) -> list[Sent]:
    """Return the topic of an instance that restarts after `swap` changes and resends the last `again` of them."""
    since = [
        (change, current, RESTARTED + timedelta(seconds=1 + n)) for n, change in enumerate(changes[swap - again :])
    ]
    return sent([*((change, DTS_LEGACY, None) for change in changes[:swap]), *since])


RIGHT: dict[str, Any] = {
    "profile": "dts",
    "restart_tolerance": 0,
    "instance": {"created": "2021-06-01T00:00Z", "restarted": [RESTARTED.replace(tzinfo=UTC).isoformat()]},
}
"""Return the declaration of the writer of `swapped`."""


@dataclass
class Result:
    """The result of messages: events, dead letters, warnings, and the error that stopped them."""

    events: list[dict[str, Any]] = field(default_factory=list)
    dead: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    stopped: str | None = None

    @property
    def offsets(self) -> list[int]:
        return [event["origin"]["offset"] for event in self.events]

    @property
    def rows(self) -> dict[str, Any]:
        """Return the rows that a consumer derives from the events."""
        table = ReadTable()
        for event in self.events:
            table.apply(event)
        return dict(table.rows)


def translated(messages: Iterable[Message], **options: Any) -> Result:
    """Translate messages one by one, as the service does."""
    result, codec = Result(), JsonCodec()
    translator = Translator("s", canal(**options), Limits())
    guards = Guards(translator.dialect, result.warnings.append)
    for message in messages:
        outcome = translator.translate(message)
        try:
            guards.inspect(message, outcome)
        except ContradictionError as error:
            result.stopped = str(error)
            break
        if isinstance(outcome, DeadLetter):
            result.dead.append(outcome.reason)
        if isinstance(outcome, Events):
            records = translator.encode(codec, message, outcome)
            assert not isinstance(records, DeadLetter)
            result.events += [decode(record.value) for record in records]
    return result


def table_of(history: History) -> dict[str, Any]:
    """Return the final rows of the table at a consumer."""
    return {f'{{"id": {key}}}': row for key, row in history.rows.items()}


def messages(sent_: Sequence[Sent]) -> list[Message]:
    return [one.message for one in sent_]


def offsets_named(text: str) -> list[int]:
    """Return the offsets that an error lists for repair."""
    found = re.search(r"without confirmation: offsets ([\d, -]+)\.", text)
    runs = [[int(end) for end in run.split("-")] for run in found[1].split(", ")] if found else []
    return [offset for run in runs for offset in range(run[0], run[-1] + 1)]


def legacy(history: History) -> list[Message]:
    """Return a history as a DTS instance from before March 2022 sends it."""
    return messages(sent((change, DTS_LEGACY, None) for change in history.changes))
