"""Test properties of whole messages: golden cases, masked copies, damaged messages, determinism, and silence about
rows.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence

from cdc_core.envelope import ChangeEvent
from translator.conformance.cases import plain_reason, result_of
from translator.conformance.fresh_process import digests, digests_elsewhere
from translator.conformance.heard import heard
from translator.conformance.json_edits import document_of, edited, image_of, members
from translator.conformance.mutants import mutants
from translator.conformance.row_values import each_carrier
from translator.conformance.score import Failed, NotApplicable
from translator.conformance.trial import Subject, Trial, with_value
from translator.dialects import MaskedValues, check_maskable
from translator.errors import ConfigError, ErrorCode, Unmaskable
from translator.message import Learned, Message
from translator.operations.masked_copy import RecordMasker
from translator.translation.dead_letter import DeadLetter

_TELLING = 6
"""Minimum number of characters in a recognizable value. Shorter strings may appear in a message by chance."""

_KEY = b"conformance"
"""The key for masks. With the same masks, every run has the same result."""

_CANARIES = ("Canary of a row", 7310465521)
"""Values that no message contains by chance."""


def golden_cases(subject: Subject) -> None:
    """Check that every message has the result that its case expects, and that the dialect can learn from its own
    metadata messages.
    """
    refused: str | None = None
    learns = False
    for case in subject.cases:
        if case.expected is None:
            raise Failed(
                f"case {case.name} has no expected results",
                "Write them with `translator dialect test --write`, then check them",
            )
        trial = Trial(subject.plugin, case)
        for number, (message, expected) in enumerate(zip(case.messages, case.expected, strict=True), 1):
            translation = trial.translate(message)
            if isinstance(translation.read, Learned):
                learns |= translation.outcome is translation.read
                refused = refused or f"case {case.name}, message {number}"
            found = result_of(translation)
            if found != expected:
                raise Failed(
                    f"case {case.name}, message {number}: {_difference(expected, found)}",
                    "Correct the plug-in. If the new result is correct, delete `expected` and use --write",
                )
    if refused is not None and not learns:
        raise Failed(
            f"{refused}: `decode` returns Learned, but `learn` rejects this and every other document",
            "Let `learn` parse the documents in metadata messages, or return Skip",
        )


def _difference(expected: object, found: object) -> str:
    if not isinstance(expected, list) or not isinstance(found, list):
        kinds = ("events" if isinstance(result, list) else json.dumps(result)[:200] for result in (expected, found))
        return "expected {}, found {}".format(*kinds)
    if len(expected) != len(found):
        return f"expected {len(expected)} events, found {len(found)}"
    for number, (one, other) in enumerate(zip(expected, found, strict=True), 1):
        names = [name for name in {**one, **other} if one.get(name) != other.get(name)]
        if names:
            return f"event {number} differs in {', '.join(names)}"
    return "the results differ"


def masked_copies(subject: Subject) -> None:
    """Check that a masked copy is translated like the original and contains no row values."""
    copied = False
    for name, trial, message in subject.messages():
        try:
            check_maskable(trial.dialect)
        except ConfigError:
            raise NotApplicable(
                "without `masked_value`, `translator capture --mask` refuses the plug-in's topics"
            ) from None
        events = trial.events(message)
        if events is None:
            continue
        try:
            copy = RecordMasker(trial.translate, _KEY).copy(message, trial.dialect)
        except Unmaskable as error:
            raise Failed(f"{name} has no masked copy: {error}", "Mask row values and nothing else") from None
        copied = True
        written = [*_texts_in(copy.value or b""), *_texts_in(copy.key or b"")]
        if _contains(written, _row_texts(events)):
            raise Failed(f"the masked copy of {name} contains a row value", "Mask all row values")
    if not copied:
        raise NotApplicable("no message in the cases produces events")


def _row_texts(events: Sequence[ChangeEvent]) -> Iterator[str]:
    """Return the recognizable row values that masks change, except those that also appear elsewhere in the events."""
    masks = MaskedValues(_KEY)
    for event in events:
        around = " ".join(map(str, (event.db, event.table, event.ts_commit_us, event.ts_capture_us, event.pos_native)))
        for image in (image_of(event, "before"), image_of(event, "after")):
            for value in image.values():
                text = value if isinstance(value, str) else json.dumps(value)
                if len(text) >= _TELLING and masks.text(text) != text and text not in around:
                    yield text


def _texts_in(data: bytes) -> Iterator[str]:
    """Return data as text. If it is JSON, also return its names and strings, including those in nested JSON strings."""
    yield data.decode(errors="replace")
    document = document_of(data)
    for path, member in () if document is None else members(document):
        yield str(path[-1])
        if isinstance(member, str):
            yield from _texts_in(member.encode(errors="replace"))


def _contains(texts: Sequence[str], values: Iterable[str]) -> bool:
    """Return whether one of the strings contains a value, either unchanged or as JSON or Python escapes it."""
    forms = {
        form
        for value in values
        for form in (value, json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1], repr(value)[1:-1])
    }
    return any(form in text for form in forms for text in texts)


def hostile_messages(subject: Subject) -> None:
    """Check that a damaged message produces events, a skip, or a dead letter with a reason from the plug-in."""
    for name, trial, message in subject.messages():
        for what, mutant in mutants(message):
            outcome = trial.translate(mutant).outcome
            if isinstance(outcome, DeadLetter) and outcome.code == ErrorCode.DIALECT_FAILED:
                raise Failed(
                    f"{name}, {what}: {plain_reason(outcome.reason)}",
                    "Raise MessageError for messages that the plug-in does not read",
                )


def determinism(subject: Subject) -> None:
    """Check that the same messages give the same bytes in any order, and in a process with a different hash seed."""
    plugin, package, cases = subject.plugin, subject.package, subject.cases
    here = digests(plugin, cases)
    others = {
        "a second time": digests(plugin, cases),
        "in the opposite order": digests(plugin, cases, backward=True),
        "in another process": digests_elsewhere(package, cases, seed="1", backward=False),
        "in another process, and in reverse order": digests_elsewhere(package, cases, seed="4242", backward=True),
    }
    names = [f"case {case.name}, message {n}" for case in cases for n in range(1, len(case.messages) + 1)]
    for where, there in others.items():
        if there is None:
            raise Failed(f"{where}, the plug-in fails or hangs", "Import nothing that depends on the process")
        for name, one, other in zip(names, here, there, strict=True):
            if one != other:
                raise Failed(
                    f"{name} gives other bytes {where}",
                    "Do not depend on a clock, randomness, the order of a set, or earlier messages",
                )


def silence(subject: Subject) -> None:
    """Check that no reason, log, warning or output contains a row value."""
    with heard() as said:
        for name, trial, message in subject.messages():
            secrets = [*_row_texts(trial.events(message) or [])]
            for what, mutant in mutants(message):
                _check_silent(f"{name}, {what}", trial, mutant, secrets, said)
        with contextlib.suppress(NotApplicable):
            for carrier in each_carrier(subject):
                for canary in _CANARIES:
                    message = with_value(carrier.message, edited(carrier.document, {carrier.path: canary}))
                    name = f"{carrier.place()} with another value"
                    _check_silent(name, carrier.trial, message, [str(canary)], said)


def _check_silent(name: str, trial: Trial, message: Message, secrets: Sequence[str], said: Callable[[], str]) -> None:
    said()
    outcome = trial.translate(message).outcome
    if isinstance(outcome, DeadLetter) and _contains([outcome.reason], secrets):
        raise Failed(f"{name}: the dead letter's reason contains a row value", "Name the place instead")
    if _contains([said()], secrets):
        raise Failed(f"{name}: a log line, a warning or the output contains a row value", "Log nothing in a dialect")
