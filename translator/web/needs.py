"""Find what needs attention now, by applying the rules of the charts' alerts to the data that the desk reads.

An alert that needs a metric's history, such as growing lag, has no rule here. A test compares the rules with the
charts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Literal, NamedTuple, TypeAlias

from msgspec import Struct

from translator.operations.dlq.reader import StoredLetter
from translator.operations.duration import duration
from translator.operations.status import Status
from translator.web.sink_view import SinkState

LAG_SECONDS = 300
"""A source is late if its oldest unread record is older than this. It is the default of `prometheusRule.lagSeconds`."""

Severity: TypeAlias = Literal["critical", "warning"]
Part: TypeAlias = Literal["sources", "translator", "topic", "projections", "tables"]


class Facts(Struct, frozen=True):
    """The state of the service and its sink.

    Args:
        letters: the dead letters in any state.
        sink: None if no sink is configured, or if it does not respond.
    """

    status: Status
    letters: Sequence[StoredLetter] = ()
    sink: SinkState | None = None


class NeedRule(NamedTuple):
    """A reason to act.

    Args:
        alert: the alert with the same condition, or None if there is none. Its runbook has the same name.
        part: the part of the pipeline that is affected.
        page: the page of the desk that shows details.
        advice: what to do, in a single sentence.
        find: returns a sentence without row data for each case.
    """

    alert: str | None
    severity: Severity
    part: Part
    page: str
    advice: str
    find: Callable[[Facts], Iterator[str]]


class Need(NamedTuple):
    """A case of a rule."""

    rule: NeedRule
    what: str


def needs(facts: Facts) -> list[Need]:
    """Return what needs attention, critical cases first."""
    found = [Need(rule, what) for rule in RULES for what in rule.find(facts)]
    return sorted(found, key=lambda need: need.rule.severity != "critical")


def by_rule(found: Sequence[Need]) -> list[tuple[NeedRule, list[str]]]:
    """Return the cases of each rule in the same order. All cases of a rule have the same advice."""
    return [(rule, [need.what for need in cases]) for rule, cases in groupby(found, lambda need: need.rule)]


def _down(facts: Facts) -> Iterator[str]:
    if facts.status.members is not None and not facts.status.members:
        yield f"No process runs in group {facts.status.group}."


def _stopped(facts: Facts) -> Iterator[str]:
    for found in facts.status.stopped:
        yield f"Partition {found.topic}/{found.partition} is stopped at offset {found.offset}: {found.code}."


def _missing(facts: Facts) -> Iterator[str]:
    yield from (f"{sentence}." for sentence in facts.status.missing)


def _behind(facts: Facts) -> Iterator[str]:
    behind: dict[str, float] = {}
    for found in facts.status.partitions:
        behind[found.source] = max(behind.get(found.source, 0.0), found.behind_seconds)
    for source, seconds in behind.items():
        if seconds > LAG_SECONDS:
            yield f"Raw records of source {source} have been waiting for {duration(seconds)}."


def _held(facts: Facts) -> Iterator[str]:
    for found in facts.status.held:
        yield f"Table {found.table} is held since offset {found.since_offset}: {found.code}."


def _dead(facts: Facts) -> Iterator[str]:
    for found in facts.status.dead:
        yield f"Open dead letters of source {found.source}: {found.count} with {found.code}."


def _projection_refused(facts: Facts) -> Iterator[str]:
    open_ = (found.letter for found in facts.letters if not found.replayed)
    counts = Counter((letter.output, letter.source, letter.code) for letter in open_ if letter.output is not None)
    for (output, source, code), count in sorted(counts.items()):
        yield f"Topic {output} lacks events of source {source}: {count} open dead letters with {code}."


def _parked(facts: Facts) -> Iterator[str]:
    for found in facts.sink.status.tables if facts.sink else ():
        if found.parked:
            yield f"Table {found.table} is parked with {found.parked}. Waiting events: {found.waiting}."


def _differs(facts: Facts) -> Iterator[str]:
    for table in facts.sink.status.tables if facts.sink else ():
        for against, found in table.verified.items():
            if found.differing:
                yield f"Table {table.table} differs from {against}: {found.differing} rows."


def _quarantined(facts: Facts) -> Iterator[str]:
    counts = Counter(event.reason for event in facts.sink.quarantine) if facts.sink else {}
    for reason, count in sorted(counts.items()):
        yield f"Events in quarantine: {count} with {reason}."


_LETTERS = "/letters"

RULES: Sequence[NeedRule] = (
    NeedRule(
        "TranslatorDown",
        "critical",
        "translator",
        "/status",
        "Read the last line in the log of the stopped process, which shows the reason, and start it again.",
        _down,
    ),
    NeedRule(
        "TranslatorPartitionStopped",
        "critical",
        "translator",
        "/status",
        "Correct the options that the reason names, and restart the service, which then reads the message again.",
        _stopped,
    ),
    NeedRule(
        None,
        "critical",
        "sources",
        "/status",
        "Create the topic or correct its name, or start the service if it has never run.",
        _missing,
    ),
    NeedRule(
        "TranslatorBehind",
        "warning",
        "translator",
        "/status",
        "Look for one slow partition, and otherwise add processes, up to the number of raw partitions.",
        _behind,
    ),
    NeedRule(
        "TranslatorTablesHeld",
        "warning",
        "topic",
        _LETTERS,
        "Correct the cause of the first dead letter of the table, then replay.",
        _held,
    ),
    NeedRule(
        "TranslatorDeadLetters",
        "warning",
        "topic",
        _LETTERS,
        "Read the reason in the list, correct options, tables or metadata, then replay.",
        _dead,
    ),
    NeedRule(
        "TranslatorProjectionRefused",
        "warning",
        "projections",
        _LETTERS,
        "Change the setting or the limit that the reason names, then replay.",
        _projection_refused,
    ),
    NeedRule(
        "SinkTablesParked",
        "warning",
        "tables",
        "/sink",
        "Correct the cause, then run spark-sink resume with the name of the table.",
        _parked,
    ),
    NeedRule(
        "SinkTableDiffers",
        "critical",
        "tables",
        "/sink",
        "Make sure that no other program writes the table, then run spark-sink rebuild and verify it again.",
        _differs,
    ),
    NeedRule(
        "SinkQuarantine",
        "warning",
        "tables",
        "/sink",
        "Act on the reason: a later event with all of the row's columns repairs it.",
        _quarantined,
    ),
)
