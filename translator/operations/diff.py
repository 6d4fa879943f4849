"""Compare two event topics, to see how two releases translate the same raw records."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
from msgspec import Struct, field

from cdc_core.envelope import ChangeEvent
from cdc_core.wire_format import MARKER
from translator.codecs.avro import AvroCodec
from translator.codecs.json import JsonCodec
from translator.config.settings import Settings
from translator.errors import FatalError
from translator.kafka import client_config
from translator.kafka.admin import TopicAdmin
from translator.kafka.offset_ranges import Partitions, places_of
from translator.operations.audit_index import digest

EXAMPLES = 5

_FIELDS = ChangeEvent.__struct_fields__
_KEY, _HEADERS, _BYTES = "(key of the record)", "(headers of the record)", "(bytes of the value)"


class Example(Struct, frozen=True, omit_defaults=True):
    """An event that differs. The values are row data, and None unless requested."""

    id: str
    values: tuple[str, str] | None = None


class Difference(Struct):
    """A count, with the first examples."""

    count: int = 0
    first: list[Example] = field(default_factory=list)

    def add(self, example: Example) -> None:
        self.count += 1
        if len(self.first) < EXAMPLES:
            self.first.append(example)


class Comparison(Struct):
    """The result of the comparison."""

    a: str
    b: str
    equal: int = 0
    different: int = 0
    duplicates: tuple[int, int] = (0, 0)
    """Records that repeat an id in the same topic. If an id is repeated, only the first record with it is compared."""
    fields: dict[str, Difference] = field(default_factory=dict)
    only_a: Difference = field(default_factory=Difference)
    only_b: Difference = field(default_factory=Difference)

    @property
    def same(self) -> bool:
        return not (self.different or self.only_a.count or self.only_b.count)


class EventRecord(Struct, frozen=True, array_like=True):
    """An event's record, as stored in the temporary file."""

    key: bytes | None
    value: bytes
    headers: list[tuple[str, bytes | None]]
    place: str


def compare(settings: Settings, a: str, b: str, say: Callable[[str], None], *, values: bool) -> Comparison:
    """Match the events in two topics by id. The first topic is stored in a temporary file, so the command needs little
    memory.

    Args:
        values: whether examples contain values.

    Raises:
        ConfigError: a topic does not exist.
        FatalError: a topic cannot be read, or contains records other than events.
        RetryableError: no broker responds.
    """
    client = client_config.librdkafka(settings.kafka)
    topics = TopicAdmin(client)
    topics.wait_for_broker(settings.timing.broker_wait, say)
    facts = topics.describe({a, b})
    partitions = Partitions(client, settings.group)
    # Without a name, SQLite uses a file in the temporary directory and deletes it on close.
    shelf = sqlite3.connect("", isolation_level=None)

    def forms(topic: str) -> Iterator[tuple[str, EventRecord]]:
        for place in places_of(topic, facts[topic], None):
            for record in partitions.read(partitions.bounds(*place)):
                yield _form(record)

    try:
        shelf.executescript("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; BEGIN;")
        shelf.execute("CREATE TABLE a (id TEXT PRIMARY KEY, form BLOB)")
        shelf.execute("CREATE TABLE b (id TEXT PRIMARY KEY)")
        say(f"reading {a}")
        repeated = _fill(shelf, forms(a))
        say(f"reading {b}")
        return _held_against(shelf, Comparison(a, b, duplicates=(repeated, 0)), forms(b), values=values)
    finally:
        shelf.close()
        partitions.close()


def _form(record: Any) -> tuple[str, EventRecord]:
    place = f"{record.topic()}/{record.partition()} at offset {record.offset()}"
    headers = record.headers() or []
    identity, value = dict(headers).get("cdc-id"), record.value()
    if identity is None or value is None:
        raise FatalError(f"the record in {place} is not an event")
    return identity.decode(), EventRecord(record.key(), value, headers, place)


def _fill(shelf: sqlite3.Connection, forms: Iterator[tuple[str, EventRecord]]) -> int:
    """Store the first topic, and return how many of its records repeat an id."""
    insert = "INSERT OR IGNORE INTO a VALUES (?, ?)"
    return sum(1 - shelf.execute(insert, (id_, msgspec.msgpack.encode(form))).rowcount for id_, form in forms)


def _held_against(
    shelf: sqlite3.Connection, found: Comparison, forms: Iterator[tuple[str, EventRecord]], *, values: bool
) -> Comparison:
    for id_, form in forms:
        if not shelf.execute("INSERT OR IGNORE INTO b VALUES (?)", (id_,)).rowcount:
            found.duplicates = found.duplicates[0], found.duplicates[1] + 1
            continue
        row = shelf.execute("SELECT form FROM a WHERE id = ?", (id_,)).fetchone()
        if row is None:
            found.only_b.add(Example(id_))
            continue
        fields = differing(msgspec.msgpack.decode(row[0], type=EventRecord), form)
        found.equal += not fields
        found.different += bool(fields)
        for name, pair in fields.items():
            found.fields.setdefault(name, Difference()).add(Example(id_, pair if values else None))
    for (id_,) in shelf.execute("SELECT id FROM a WHERE id NOT IN (SELECT id FROM b) ORDER BY rowid"):
        found.only_a.add(Example(id_))
    return found


def differing(a: EventRecord, b: EventRecord) -> dict[str, tuple[str, str]]:
    """Return the fields in which an event's two records differ, with both values."""
    if digest(a.key, a.value, a.headers) == digest(b.key, b.value, b.headers):
        return {}
    of_a, of_b = event_of(a), event_of(b)
    pairs = {name: (getattr(of_a, name), getattr(of_b, name)) for name in _FIELDS}
    pairs |= {_KEY: (a.key, b.key), _HEADERS: (a.headers, b.headers)}
    differing = {name: (repr(left), repr(right)) for name, (left, right) in pairs.items() if left != right}
    if not differing and a.value[:1] == b.value[:1]:  # the codec is the same, so equal events have equal bytes
        differing[_BYTES] = a.value.hex(), b.value.hex()
    return differing


def event_of(form: EventRecord) -> ChangeEvent:
    """Return the event in a record.

    Raises:
        FatalError: the record is not an event that this release can read.
    """
    try:
        return _decoded(form.value)
    except (ValueError, msgspec.ValidationError):
        raise FatalError(f"the record in {form.place} is not an event that this release can read") from None


def _decoded(value: bytes) -> ChangeEvent:
    """Return the event in a value. Its first byte shows which of the two codecs wrote it."""
    if value.startswith(b"{"):
        return JsonCodec().decode(value)
    if value.startswith(MARKER):
        return AvroCodec().decode(value)
    return AvroCodec(value[:_CONFLUENT]).decode(value)


_CONFLUENT = 5
"""Size of a header with a registry id."""
