"""Compare what another release and this one write for a raw record."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from translator.codecs.record import Record
from translator.errors import ErrorCode
from translator.operations.diff import EventRecord, differing
from translator.resolution.resolve import Translation
from translator.translation.dead_letter import DeadLetter

EVENTS, OUTCOME, CODE = "(number of events)", "(outcome)", "(code of the dead letter)"
REJECTED = "(events became a dead letter)"
"""If a release announces other outcomes, it does not announce this one."""

# Dead letters with these codes depend on other messages or on topics, and not only on the message.
_NOT_OF_THE_MESSAGE = frozenset({ErrorCode.HELD, ErrorCode.TOPIC_REFUSED})


class Written(Struct, frozen=True):
    """The running release's output for a raw record: all copies of each event by number, and dead letters."""

    events: Mapping[int, list[EventRecord]]
    letters: set[str]


class Rewritten(Struct, frozen=True):
    """The output of this release for a raw record."""

    events: Mapping[int, EventRecord]
    letter: str | None


def rewritten(translation: Translation) -> Rewritten:
    """Return those parts of a translation that are compared."""
    outcome = translation.outcome
    events = {number: _as_read(record) for number, record in translation.by_event.items()}
    return Rewritten(events, outcome.code if isinstance(outcome, DeadLetter) else None)


def _as_read(record: Record) -> EventRecord:
    headers = [(name, value.encode() if isinstance(value, str) else value) for name, value in record.headers]
    return EventRecord(record.key, record.value or b"", headers, "the new translation")


def differences(before: Written, now: Rewritten) -> frozenset[str] | None:
    """Return how two results for a raw record differ. The differences are envelope fields, or descriptions in
    parentheses.

    Return None if they cannot be compared, because the message is not the reason for the dead letter.
    """
    if before.events:
        if now.letter is not None:
            return frozenset({REJECTED})
        found = {EVENTS} if before.events.keys() != now.events.keys() else set()
        for number in before.events.keys() & now.events.keys():
            for copy in before.events[number]:
                found |= differing(copy, now.events[number]).keys()
        return frozenset(found)
    if before.letters:
        if before.letters & _NOT_OF_THE_MESSAGE:
            return None
        changed = {OUTCOME} if now.letter is None else {CODE} if now.letter not in before.letters else set()
        return frozenset(changed)
    return frozenset({OUTCOME} if now.events or now.letter is not None else ())
