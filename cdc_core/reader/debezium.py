"""Convert records of a Debezium projection to events, as far as the format allows (docs/debezium.md).

Fields that the format lacks are null or `none`: the key kind, the changed columns, issues, notes. A key change is
written as two records, a delete and a create. They are returned as two events with the same position, for different
rows.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from cdc_core.envelope import ChangeEvent, Origin, Tx

_Image = dict[str, Raw]


class _Source(Struct):
    version: str
    connector: str
    name: str
    sequence: str
    ts_us: int | None = None
    db: str | None = None
    schema: str | None = None
    table: str | None = None
    server: str | None = None
    task: str | None = None


class _Transaction(Struct):
    id: str
    total_order: int | None = None


class _Envelope(Struct):
    before: _Image | None
    after: _Image | None
    source: _Source
    transaction: _Transaction | None
    op: str
    ts_us: int


class _Members(Struct):
    """The JSON fields that distinguish the formats."""

    source: Raw | UnsetType = UNSET
    payload: Raw | UnsetType = UNSET


def is_debezium(value: bytes) -> bool:
    """Return whether a JSON object has this format, in which `source` is an object. In the envelope, `source` is a
    text.

    Raises:
        msgspec.DecodeError: the value is not a JSON object.
    """
    found = msgspec.json.decode(value, type=_Members)
    return found.payload is not UNSET if found.source is UNSET else bytes(found.source).startswith(b"{")


def event_of_debezium(value: bytes, key: bytes | None, headers: Mapping[str, bytes]) -> ChangeEvent:
    """Return the event in a record that has a value.

    Raises:
        msgspec.DecodeError: the value does not have this format.
        ValueError: the header `cdc-id` is missing or is not an event id.
    """
    is_block = msgspec.json.decode(value, type=_Members).source is UNSET
    told: _Envelope = msgspec.json.decode(_payload(value) if is_block else value, type=_Envelope)
    scope, pos = msgspec.json.decode(told.source.sequence, type=tuple[str, str])
    name, place = _identity(headers, told.source.name)
    missing = msgspec.json.decode(headers.get("cdc-unavailable", b"[]"), type=list[str])
    # A placeholder can represent a missing column. Such a placeholder is not a value.
    after = None if told.after is None else {k: v for k, v in told.after.items() if k not in missing}
    return ChangeEvent(
        v=int(told.source.version),
        id=name,
        kind="row",
        op=_operation(told.op, headers),
        source=told.source.name,
        dialect=told.source.connector,
        variant=None,
        variant_basis=None,
        dbms=None,
        server=told.source.server,
        task=told.source.task,
        db=told.source.db,
        schema=told.source.schema,
        table=told.source.table,
        pos=pos,
        pos_scope=scope,
        pos_native=None,
        ts_commit_us=told.source.ts_us,
        ts_capture_us=None,
        # This is either the time at which the tool wrote the change, or the raw record's time. The format does not
        # distinguish the two.
        ts_origin_us=told.ts_us,
        key=None if key is None else (_payload(key) if is_block else key).decode(),
        key_old=None,
        key_kind="none",
        before=_text(told.before),
        after=_text(after),
        before_state="none" if told.before is None else "partial",
        after_state=_state(after, missing, headers),
        changed=None,
        unavailable=missing or None,
        issues=None,
        schema_id=_header(headers, "cdc-schema-id"),
        tx=None if told.transaction is None else Tx(told.transaction.id, told.transaction.total_order),
        ddl=None,
        origin=place,
        # If no key is known, the format has no further information about the key.
        notes=None if key is not None or told.op == "t" else ["KEY_INCOMPLETE"],
        ext=None,
    )


def _operation(op: str, headers: Mapping[str, bytes]) -> str:
    """Return the operation at the source. An update is written as a create if the format requires an old image and it
    is missing.
    """
    is_half = "__debezium.oldkey" in headers
    return "u" if op == "c" and headers.get("cdc-op") == b"u" and not is_half else op


def _state(after: _Image | None, missing: list[str], headers: Mapping[str, bytes]) -> str:
    """Return the state of the after image. The list of missing columns is complete only if the schema is known."""
    if after is None:
        return "none"
    return "full" if not missing and "cdc-schema-id" in headers else "partial"


def _identity(headers: Mapping[str, bytes], source: str) -> tuple[str, Origin]:
    name = _header(headers, "cdc-id")
    if name is None:
        raise ValueError("the record has no header cdc-id, so it was not written by a projection of the translator")
    parts = name.removeprefix(f"{source}/").rsplit("/", 3)
    if len(parts) < 4 or not all(part.isdecimal() for part in parts[1:]):
        raise ValueError("the header cdc-id does not contain an event id")
    topic, partition, offset, _ = parts
    return name, Origin(topic, int(partition), int(offset), 0, 0)


def _header(headers: Mapping[str, bytes], name: str) -> str | None:
    found = headers.get(name)
    return None if found is None else found.decode()


def _payload(text: bytes) -> bytes:
    """Return the payload of a record that contains a schema block."""
    return bytes(msgspec.json.decode(text, type=dict[str, Raw])["payload"])


def _text(image: _Image | None) -> str | None:
    return None if image is None else msgspec.json.encode(image).decode()
