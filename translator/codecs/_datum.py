"""Encode an event as an Avro datum. The code is specific to the envelope schema.

The tests compare its output with that of fastavro, which writes the same bytes. However, fastavro needs a mapping for
every record and looks up the branch of every union. This takes five times as long (docs/benchmarks.md). A cache saves
most of the time. Half of the fields have the same values in many events of a stream. A single look-up returns the bytes
of all these fields.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from cdc_core.envelope import ChangeEvent, Ddl, Issue, Tx
from translator.codecs._memo import Memo

FINGERPRINT = "1aa4b45bd6db449a"
"""CRC-64-AVRO of the schema that this module writes."""

_NULL = b"\x00"
_SOME = b"\x02"
"""Index of a union's second branch. The first branch is always null."""
_END = b"\x00"
_BOOLEAN: Mapping[bool, bytes] = {False: b"\x00", True: b"\x01"}


def encode_datum(event: ChangeEvent, header: bytes) -> bytes:
    """Return the header and the event, with fields in schema order.

    Raises:
        ValueError: text that UTF-8 cannot encode, or a number outside its Avro type.
    """
    origin = event.origin
    names, pos_scope, key_kind, states, schema_id, place = _SHARED[
        event.kind,
        event.op,
        event.source,
        event.dialect,
        event.variant,
        event.variant_basis,
        event.dbms,
        event.server,
        event.task,
        event.db,
        event.schema,
        event.table,
        event.pos_scope,
        event.key_kind,
        event.before_state,
        event.after_state,
        event.schema_id,
        origin.topic,
        origin.partition,
    ]
    return b"".join(
        (
            header,
            _INT[event.v],
            text(event.id),
            names,
            text(event.pos),
            pos_scope,
            maybe_text(event.pos_native),
            _maybe_long(event.ts_commit_us),
            _maybe_long(event.ts_capture_us),
            long(event.ts_origin_us),
            maybe_text(event.key),
            maybe_text(event.key_old),
            key_kind,
            maybe_text(event.before),
            maybe_text(event.after),
            states,
            _NULL if event.changed is None else _NAMES[tuple(event.changed)],
            _NULL if event.unavailable is None else _NAMES[tuple(event.unavailable)],
            _NULL if event.issues is None else _issues(event.issues),
            schema_id,
            _NULL if event.tx is None else _tx(event.tx),
            _NULL if event.ddl is None else _ddl(event.ddl),
            place,
            long(origin.offset),
            _INT[origin.row],
            _INT[origin.rows],
            _NULL if event.notes is None else _NAMES[tuple(event.notes)],
            _NULL if event.ext is None else _ext(event.ext),
        )
    )


# -- fields that events from the same table and partition share, cached together

_Shared: TypeAlias = tuple[
    *tuple[str, str | None, str, str],  # kind, op, source, dialect
    *tuple[str | None, str | None, str | None, str | None],  # variant, variant_basis, dbms, server
    *tuple[str | None, str | None, str | None, str | None],  # task, db, schema, table
    *tuple[str, str, str, str, str | None],  # pos_scope, key_kind, before_state, after_state, schema_id
    *tuple[str, int],  # origin.topic, origin.partition
]


class _SharedBytes(NamedTuple):
    names: bytes
    """Encode the fields from `kind` to `table`."""
    pos_scope: bytes
    key_kind: bytes
    states: bytes
    schema_id: bytes
    place: bytes
    """Encode the topic and partition in `origin`."""


def _shared(shared: _Shared) -> _SharedBytes:
    kind, op, source, dialect, *names, pos_scope, key_kind, before, after, schema_id, topic, partition = shared
    return _SharedBytes(
        names=shared_names(kind, op, source, dialect, names),
        pos_scope=text(pos_scope),
        key_kind=text(key_kind),
        states=text(before) + text(after),
        schema_id=maybe_text(schema_id),
        place=text(topic) + _INT[partition],
    )


def shared_names(kind: str, op: str | None, source: str, dialect: str, names: Iterable[str | None]) -> bytes:
    """Return the encoded fields from `kind` to `table`. `names` are the fields from `variant` on."""
    return b"".join((text(kind), maybe_text(op), text(source), text(dialect), *map(maybe_text, names)))


# -- records, arrays and maps in the envelope


def _issues(issues: Sequence[Issue]) -> bytes:
    items = (text(issue.col) + text(issue.code) + maybe_text(issue.raw) for issue in issues)
    return _SOME + _block(len(issues), items)


def _tx(tx: Tx) -> bytes:
    last = _NULL if tx.last is None else _SOME + _BOOLEAN[tx.last]
    return _SOME + text(tx.id) + _maybe_long(tx.seq) + _maybe_long(tx.size) + last


def _ddl(ddl: Ddl) -> bytes:
    return (
        _SOME
        + text(ddl.type)
        + maybe_text(ddl.sql)
        + (_NULL if ddl.tables is None else _NAMES[tuple(ddl.tables)])
        + _BOOLEAN[ddl.parsed]
    )


def _ext(ext: Mapping[str, str]) -> bytes:
    return _SOME + _block(len(ext), (text(name) + text(value) for name, value in ext.items()))


def maybe_names(names: tuple[str, ...]) -> bytes:
    """Encode an array of text, in a union with null."""
    return _names(names) if names else _NULL


def _names(names: tuple[str, ...]) -> bytes:
    return _SOME + _block(len(names), map(text, names))


def _block(count: int, items: Iterable[bytes]) -> bytes:
    """Encode an array or a map: one block with all items, if there are any, followed by the end marker."""
    return _INT[count] + b"".join(items) + _END if count else _END


# -- text


def text(value: str) -> bytes:
    """Encode text."""
    data = value.encode()
    return _INT[len(data)] + data


def maybe_text(value: str | None) -> bytes:
    """Encode text, in a union with null."""
    if value is None:
        return _NULL
    data = value.encode()
    return _SOME_LENGTH[len(data)] + data


# -- numbers: zig-zag, then groups of seven bits, lowest first; all groups but the last have the high bit set

_PAIRS = [bytes((low | 0x80, high | 0x80)) for high in range(128) for low in range(128)]
"""Every 14-bit value, encoded as two groups after which more groups follow."""
_LOW = _PAIRS[::2]
"""The encoding of the lowest thirteen bits of each non-negative number. Zig-zag encoding doubles a number, so only
every second pair is used.
"""
_SOME_LOW = [_SOME + low for low in _LOW]


def integer(number: int) -> bytes:
    """Encode an `int`.

    Raises:
        ValueError: the number has more than 32 bits.
    """
    return _INT[number]


def long(number: int) -> bytes:
    """Encode a `long`.

    Raises:
        ValueError: the number has more than 64 bits.
    """
    # Times and offsets grow slowly, so their upper bits stay the same for 8 ms or 8192 records, and a cache is useful.
    # A number takes 0.18 us if its upper bits are cached, and 0.7 us otherwise. A loop over the groups would take 0.9
    # us, and each event contains three points in time.
    if number > 0x1FFF:
        return _LOW[number & 0x1FFF] + _HIGH[number >> 13]
    return _SIGNED[number]


def _maybe_long(number: int | None) -> bytes:
    if number is None:
        return _NULL
    if number > 0x1FFF:
        return _SOME_LOW[number & 0x1FFF] + _HIGH[number >> 13]
    return _SOME + _SIGNED[number]


def _high(bits: int) -> bytes:
    if bits >= 1 << 50:
        raise ValueError("a number with more than 64 bits does not fit into an Avro long")
    return _PAIRS[bits & 0x3FFF] + _HIGH[bits >> 14] if bits > 0x3FFF else _groups(bits)


def _signed(number: int) -> bytes:
    if number < -(1 << 63):
        raise ValueError("a number with more than 64 bits does not fit into an Avro long")
    return _groups(number << 1 ^ number >> 63)


def _int(number: int) -> bytes:
    if not -(1 << 31) <= number < 1 << 31:
        raise ValueError(f"{number} does not fit into an Avro int, which has 32 bits")
    return _groups(number << 1 ^ number >> 31)


def _groups(bits: int) -> bytes:
    groups = bytearray()
    while bits > 0x7F:
        groups.append(bits & 0x7F | 0x80)
        bits >>= 7
    groups.append(bits)
    return bytes(groups)


_INT = Memo(_int)
_SIGNED = Memo(_signed)
_HIGH = Memo(_high)
_SOME_LENGTH: Memo[int, bytes] = Memo(lambda length: _SOME + _int(length))
# The same few columns in a table tend to change together. Encoding three names takes 0.1 us with the memo, and 1.0 us
# without it.
_NAMES = Memo(_names)
_SHARED = Memo(_shared)
