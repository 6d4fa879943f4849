"""Messages with markers as values, and everything that a service with masks writes for them."""

from __future__ import annotations

import asyncio
import base64
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from structlog.testing import capture_logs

from tests.translator.dialects.case import opened
from tests.translator.service._pipeline import Record
from translator.codecs.avro import AvroCodec
from translator.codecs.debezium import DebeziumCodec
from translator.codecs.debezium import Options as DebeziumOptions
from translator.codecs.json import JsonCodec
from translator.codecs.upsert import Options as UpsertOptions
from translator.codecs.upsert import UpsertCodec
from translator.config.mask_rules import MaskRule
from translator.config.settings import Source
from translator.errors import ErrorCode, MessageError
from translator.message import Changes, Dialect, Limits, Message
from translator.resolution.resolve import EventOutput, Outputs, OutputTopic
from translator.service.delivery.memory import InMemoryDelivery
from translator.service.metadata_wait import MetadataWaiter
from translator.service.pipeline import Pipeline, Route, Target
from translator.state.contradiction_marks import Contradictions
from translator.translation.masking import SourceMasks
from translator.translation.metadata_catalog import MetadataCatalog
from translator.translation.native_path import NativePath, native_path
from translator.translation.translate import Events, Translator

KEY = b"a key of thirty-two random bytes"
ROOMY = 1_000_000
CODECS = {
    "avro": AvroCodec(),
    "json": JsonCodec(),
    "debezium": DebeziumCodec(DebeziumOptions(schema_block=True, truncate="emit", tombstones=True)),
    "placeholders": DebeziumCodec(DebeziumOptions(missing_before=("merge", "partial"), unavailable="placeholder")),
    "upsert": UpsertCodec(),
    "upsert columns": UpsertCodec(UpsertOptions(key="columns", schema_block=True, unavailable="omit", truncate="drop")),
    "refusing": DebeziumCodec(DebeziumOptions(missing_before=("fail",), unavailable="fail")),
}
NATIVE = ("avro", "debezium", "placeholders", "refusing")
"""The codecs that the native path writes."""

SHORT = 3
"""Markers are longer than one character, because a mask can keep one."""

SHORT_NUMBER = 5
"""Numeric markers are longer, because hashes and times also contain digits."""

OUTSIDE_ROWS = ("key", "key_old", "before", "after", "issues", "ext", "ddl")
"""The fields of an event that contain no name of a table, place or writer."""


def _opened(case: Path) -> tuple[Dialect, Message]:
    """Return the dialect and message of a case. Under a wrong declaration, it warns instead of stopping."""
    return opened(case, **({"continuity": {"action": "warn"}} if "read_as" in case.name else {}))


def rules(action: str, keys: Iterable[str]) -> list[MaskRule]:
    """Mask every column. Key columns can only be hashed."""
    hashed = [MaskRule("hash", column=name) for name in keys]
    return [*hashed, MaskRule(action, length=1, text="***")]  # type: ignore[arg-type]  # one of the actions


class Service:
    """A pipeline from one raw partition to every output, in memory."""

    def __init__(
        self, dialect: Dialect, masks: SourceMasks | None, *, native: bool = False, holds: bool = False
    ) -> None:
        names = NATIVE if native else tuple(CODECS)
        to = {name: OutputTopic(name, 1, ROOMY) for name in (*names, "schemas", "metadata", "letters")}
        self.translator = Translator("src", dialect, Limits(), None, masks)
        outputs = Outputs(tuple(EventOutput(CODECS[name], to[name]) for name in names), to["schemas"], to["metadata"])
        paths = {}
        if native:
            path = native_path(self.translator, [(output.codec, ROOMY) for output in outputs.events])
            if isinstance(path, NativePath):
                paths = {"src": path}
        self._taken = 0
        self._topics = tuple(to)
        self._delivery = InMemoryDelivery(self._account, dict.fromkeys(to, 1))
        catalog = MetadataCatalog()
        codes = frozenset(ErrorCode) - {ErrorCode.HELD} if holds else frozenset()
        self._pipeline = Pipeline(
            {"topic": Route(self.translator, "topic-id")},
            Target(outputs, to["letters"], "0", holds=codes),
            catalog,
            self._delivery,
            Contradictions([Source(name="src", dialect=dialect.name, topics=("topic",))]),
            MetadataWaiter(catalog, 0.0, None, print),
            native=paths,
        )
        self._logged: list[Any] = []

    def _account(self, account: Any) -> None:
        self._taken += account.native["taken"]

    @property
    def taken(self) -> int:
        """Return how many messages the native path handled."""
        return self._taken

    def process(self, messages: Sequence[Message]) -> None:
        """Process messages as one batch."""
        records = [
            Record(number, message.value, key=message.key, headers=message.headers)  # type: ignore[arg-type]
            for number, message in enumerate(messages)
        ]

        async def through() -> None:
            assert await self._pipeline.process("topic", 0, records, lambda: None)
            self._delivery.reap()

        with capture_logs() as logged:
            asyncio.run(through())
        self._logged += logged

    def letters(self) -> list[Any]:
        """Return the dead letters."""
        return self._delivery.written("letters", 0)

    def written(self) -> bytes:
        """Return all bytes of all records and the log."""
        parts = []
        for topic in self._topics:
            for record in self._delivery.written(topic, 0):
                parts += [record.key or b"", record.value or b""]
                parts += [part for name, value in record.headers for part in (name.encode(), _bytes(value))]
        return b"\n".join([*parts, repr(self._logged).encode()])


def _bytes(value: str | bytes | None) -> bytes:
    return value.encode() if isinstance(value, str) else value or b""


class Marked(msgspec.Struct):
    """A message whose values were replaced with markers of the same length."""

    case: Path
    message: Message
    markers: list[bytes]
    keys: list[str]

    def dialect(self) -> Dialect:
        return _opened(self.case)[0]


def marked(case: Path) -> Marked:
    """Return a golden case with markers in place of all its values."""
    dialect, message = _opened(case)
    message = msgspec.structs.replace(message, topic_id="topic-id")
    value = message.value or b""
    texts = sorted(filter(_is_long, _texts(dialect, message)), key=len, reverse=True)
    markers = {}
    for number, text in enumerate(texts):
        sent = text.encode()
        if sent in value:
            markers[sent] = _marker(number, sent)
    if markers:
        any_of = re.compile(b"|".join(map(re.escape, markers)))
        message = msgspec.structs.replace(message, value=any_of.sub(lambda found: markers[found[0]], value))
        if message.key:
            message = msgspec.structs.replace(message, key=any_of.sub(lambda found: markers[found[0]], message.key))
    dialect, _ = _opened(case)
    legitimate = outside_rows(dialect, message)
    found = [marker for marker in markers.values() if marker not in legitimate]
    return Marked(case, message, found, sorted(_keys(_opened(case)[0], message)))


def _is_long(text: str) -> bool:
    return len(text) > (SHORT_NUMBER if text.isdigit() else SHORT)


def _marker(number: int, sent: bytes) -> bytes:
    alphabet = b"9182736450" if sent.isdigit() else b"QZXJVKWY"
    first = number % len(alphabet)
    return ((alphabet[first:] + alphabet) * len(sent))[: len(sent)]


def _translated(dialect: Dialect, message: Message) -> Events | None:
    result = Translator("src", dialect, Limits()).translate(message)
    return result if isinstance(result, Events) else None


def _texts(dialect: Dialect, message: Message) -> set[str]:
    """Return all texts in the rows or statements of a message."""
    found: set[str] = set()
    events = _translated(dialect, message)
    for event in events.events if events else ():
        for image in (event.before, event.after, event.key, event.key_old):
            found |= {str(value) for value in json.loads(image or "{}").values() if value is not None}
        found |= {issue.raw for issue in event.issues or () if issue.raw}
    return found


def _keys(dialect: Dialect, message: Message) -> set[str]:
    try:
        outcome = dialect.decode(message)
    except MessageError:
        return set()
    changes = outcome.changes if isinstance(outcome, Changes) else ()
    return {name for change in changes for name in getattr(change, "key_columns", ())}


def outside_rows(dialect: Dialect, message: Message) -> bytes:
    """Return what masks keep: names, places, positions, and column names."""
    events = _translated(dialect, message)
    parts: list[Any] = []
    for event, schema in zip(events.events, events.schemas, strict=True) if events else ():
        parts.append({name: field for name, field in msgspec.to_builtins(event).items() if name not in OUTSIDE_ROWS})
        parts += [list(json.loads(image or "{}")) for image in (event.before, event.after)]
        parts += [issue.col for issue in event.issues or ()]
        parts.append(msgspec.to_builtins(schema) if schema else None)
        parts.append(event.ddl.tables if event.ddl else None)
    return json.dumps(parts, ensure_ascii=False).encode()


def spellings(marker: bytes) -> Iterator[bytes]:
    """Return a marker's possible spellings: plain, in base64 at each possible alignment, or in hex."""
    yield marker
    yield marker.hex().encode()
    if len(marker) > 8:
        for shift in range(3):
            yield base64.b64encode(b"\0" * shift + marker)[4 * (shift > 0) + 2 : -4]


def leaves(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Return the path of every text and number in a JSON document."""
    items: Iterable[tuple[Any, Any]] = ()
    if isinstance(node, Mapping):
        items = node.items()
    elif isinstance(node, list):
        items = enumerate(node)
    elif node is not None and not isinstance(node, bool):
        yield path
    for name, member in items:
        yield from leaves(member, (*path, name))


def with_leaf(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    """Return the document with another value at one path."""
    if not path:
        return value
    copied = {**document} if isinstance(document, dict) else [*document]
    copied[path[0]] = with_leaf(document[path[0]], path[1:], value)
    return copied
