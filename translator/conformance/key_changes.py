"""Test key changes: the old and new keys are correct, and no row is lost if keys shift into each other."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Sequence, Set
from typing import Any

import msgspec
from msgspec import Struct

from cdc_core.envelope import ChangeEvent
from cdc_core.position import position
from cdc_core.reader import ApplyError, ChangeReader, DictStore, KnownSchemas, apply
from translator.codecs.json import JsonCodec
from translator.conformance.json_edits import (
    Path,
    document_of,
    edited,
    likely_carriers,
    members,
    new_values,
    value_at,
    variants_of,
)
from translator.conformance.score import Failed, NotApplicable
from translator.conformance.trial import Subject, Trial, with_value
from translator.message import Message

_FIRST = 10
"""The offset of the first message with a move. Rows that already exist have earlier positions."""

_REMEDY = "Return the row's old values of the key columns in `before`, and the new ones in `after`"


class KeyChange(Struct, frozen=True):
    """A JSON message with one event that changes a key.

    Args:
        old, new: the members with the old and the new values of the changed columns, in column order.
    """

    name: str
    trial: Trial
    message: Message
    document: Any
    old: Sequence[Path]
    new: Sequence[Path]

    def values(self, paths: Sequence[Path]) -> tuple[Any, ...]:
        return tuple(value_at(self.document, path) for path in paths)

    def new_keys(self, count: int) -> list[tuple[Any, ...]]:
        """Return keys that are not in the message."""
        columns = [new_values(self.document, value, count) for value in self.values(self.new)]
        return list(zip(*columns, strict=True))

    def moved(self, old: Sequence[Any], new: Sequence[Any]) -> Any:
        """Return the document of a move between two keys."""
        return edited(self.document, {**dict(zip(self.old, old, strict=True)), **dict(zip(self.new, new, strict=True))})

    def events(self, document: Any, offset: int) -> list[ChangeEvent]:
        message = msgspec.structs.replace(with_value(self.message, document), offset=offset)
        return self.trial.events(message) or []


def key_changes(subject: Subject) -> None:
    """Check that every move has its old and its new key, and that no row is lost if rows move into each other's
    keys.
    """
    found = False
    for change in _each_change(subject):
        first, second, further = change.values(change.old), change.values(change.new), change.new_keys(3)
        if len(further) < 3:
            continue
        found = True
        third, *apart = further
        _check_messages(change, [(second, third), (first, second)])
        _check_messages(change, [(first, second), (second, first)], shift=False)
        for moves in ([(second, third), (first, second)], [(first, second), (second, third)]):
            _check_rows(change, moves, apart)
    if not found:
        raise NotApplicable(
            "no case has a JSON message that changes a row's key, or the plug-in rejects that message with any "
            "other key. Add such a case, or test this property in the plug-in's own tests"
        )


def _each_change(subject: Subject) -> Iterator[KeyChange]:
    for name, trial, message in subject.messages():
        document = document_of(message.value)
        events = trial.events(message) or []
        if document is None or len(events) != 1 or events[0].key is None or events[0].key_old is None:
            continue
        key, key_old = (json.loads(text) for text in (events[0].key, events[0].key_old))
        columns = [column for column in key if key[column] != key_old.get(column)]
        if any(len(new_values(document, key[column], 2)) < 2 for column in columns):
            continue  # such as a boolean, which has too few values
        moves: dict[tuple[str, str], Path] = {}
        for path in likely_carriers(document, events):
            variants = variants_of(trial, message, document, path, events)
            moves |= dict.fromkeys(_moved_by(variants), path)
        values = {("key", column): key[column] for column in columns}
        values |= {("key_old", column): key_old.get(column) for column in columns}
        missing = {str(value) for part, value in values.items() if part not in moves}
        if not missing:
            old, new = ([moves[which, column] for column in columns] for which in ("key_old", "key"))
            yield KeyChange(name, trial, message, document, old, new)
        elif not _rejects_others(trial, message, document, missing):
            raise Failed(f"{name}: the old or the new key is not a value in the message", _REMEDY)


def _rejects_others(trial: Trial, message: Message, document: Any, values: Set[str]) -> bool:
    """Return whether a message becomes a dead letter whenever a member with one of these values gets another value.

    A format may send a key twice, and a plug-in may compare the two.
    """
    paths = [path for path, value in members(document) if str(value) in values]
    edits = [{path: other} for path in paths for other in new_values(document, value_at(document, path), 2)]
    return bool(edits) and all(trial.rejects(with_value(message, edited(document, edit))) for edit in edits)


def _moved_by(variants: Sequence[Sequence[ChangeEvent]]) -> Iterator[tuple[str, str]]:
    """Return the part of the key that a member determines: `key` or `key_old`, and a column."""
    if any(len(events) != 1 or events[0].key is None or events[0].key_old is None for events in variants):
        return
    for which in ("key", "key_old"):
        keys = [json.loads(getattr(events[0], which)) for events in variants]
        yield from ((which, column) for column in keys[0] if len({repr(key.get(column)) for key in keys}) == 3)


Move = tuple[Sequence[Any], Sequence[Any]]


def _check_messages(change: KeyChange, moves: Sequence[Move], *, shift: bool = True) -> None:
    """Check key changes if each message contains one of them."""
    events = [event for n, move in enumerate(moves, _FIRST) for event in change.events(change.moved(*move), n)]
    _check_keys(change, moves, events, "messages of their own")
    if shift:
        _check_kept(change, events, len(moves))


def _check_rows(change: KeyChange, moves: Sequence[Move], apart: Sequence[Sequence[Any]]) -> None:
    """Check key changes within a single message. This requires a format with arrays of rows.

    Args:
        apart: two keys that occur in no move.
    """
    far_old, far_new = apart
    if len(change.events(_joined(change, [moves[0], (far_old, far_new)]), _FIRST)) != 2:
        return  # each message has one row
    events = change.events(_joined(change, moves), _FIRST)
    _check_keys(change, moves, events, "one message")
    _check_kept(change, [*_rows_before(events), *events], len(moves))


def _joined(change: KeyChange, moves: Sequence[Move]) -> Any:
    """Return one document for all moves. Every array with one object now has one object per move."""
    first, *others = (change.moved(*move) for move in moves)
    joined = copy.deepcopy(first)
    paths = [()] if isinstance(joined, list) else [path for path, value in members(first) if _is_rows(value)]
    for path in paths:
        for other in others:
            _at(joined, path).extend(_at(other, path))
    return joined


def _is_rows(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 1 and isinstance(value[0], dict)


def _at(document: Any, path: Path) -> Any:
    return value_at(document, path) if path else document


def _check_keys(change: KeyChange, moves: Sequence[Move], events: Sequence[ChangeEvent], where: str) -> None:
    if len(events) != len(moves):
        raise Failed(f"{change.name}: two moves in {where} are {len(events)} events", "Return a change for each row")
    texts = [(event.key_old, event.key) for event in events]
    if None in {text for pair in texts for text in pair}:
        raise Failed(f"{change.name}: a move in {where} has no old or no new key", _REMEDY)
    (one_old, one_new), (two_old, two_new) = texts
    # The end of one move is the start of the other.
    joined = one_old == two_new if moves[0][0] == moves[1][1] else True
    joined = joined and (one_new == two_old if moves[0][1] == moves[1][0] else True)
    if not joined or one_old == one_new or two_old == two_new:
        raise Failed(f"{change.name}: a move in {where} has another key than its message", _REMEDY)


def _rows_before(events: Sequence[ChangeEvent]) -> list[ChangeEvent]:
    """Return the rows that move, as inserts before the moves."""
    return [
        msgspec.structs.replace(
            event, op="c", id=f"before/{n}", pos=position(n, 0), key=event.key_old, key_old=None, after=event.key_old,
            before=None, before_state="none", changed=None, unavailable=None, notes=None, tx=None, ts_commit_us=n,
        )
        for n, event in enumerate(events)
    ]  # fmt: skip


def _check_kept(change: KeyChange, events: Sequence[ChangeEvent], expected: int) -> None:
    reader, codec, store = ChangeReader(KnownSchemas()), JsonCodec(), DictStore()
    records = [codec.encode(msgspec.structs.replace(event, schema_id=None))[0] for event in events]
    try:
        apply((reader.read(record.value or b"") for record in records), store)
    except ApplyError as error:
        raise Failed(f"{change.name}: a reader cannot apply the events: {type(error).__name__}", _REMEDY) from None
    found = sum(len(store.rows(table)) for table in store.tables())
    if found != expected:
        raise Failed(
            f"{change.name}: of two rows whose keys shift into each other, a reader keeps {found}",
            "Set `key_columns`, `tx` and `ts_commit_us` in every change",
        )
