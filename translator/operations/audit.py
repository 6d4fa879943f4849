"""Compare raw records with the records written for them. The ids and origins in the topics are compared, not
counters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from msgspec import Struct, field

from translator.kafka.offset_ranges import Partitions, Place, Range, message_of, narrowed, places_of
from translator.kafka.retry import retry_until
from translator.message import Learned, Skip
from translator.operations.audit_index import AuditIndex, Entry, IndexEntry, digest, event, letter
from translator.operations.offline_translator import OfflineTranslator
from translator.operations.progress import Progress
from translator.operations.record_origin import RecordOrigin, of_event, of_letter
from translator.resolution.resolve import Translation
from translator.translation.dead_letter import DeadLetter

EXAMPLES = 10

_WHOLE = 2**63 - 1


class AuditFinding(Struct, frozen=True):
    """A raw offset with a description of its problem, without row data."""

    offset: int
    what: str


class AuditFindings(Struct):
    """A count, with the first examples."""

    count: int = 0
    first: list[AuditFinding] = field(default_factory=list)

    def add(self, offset: int, what: str) -> None:
        self.count += 1
        if len(self.first) < EXAMPLES:
            self.first.append(AuditFinding(offset, what))


class Account(Struct):
    """The counts for a range: records = translated + dead + skipped + learned + lost."""

    topic: str
    partition: int
    first: int
    end: int
    records: int = 0
    translated: int = 0
    dead: dict[str, int] = field(default_factory=dict)
    skipped: dict[str, int] = field(default_factory=dict)
    learned: int = 0
    events: int = 0
    """Duplicate copies with different bytes."""
    duplicates: int = 0
    unequal: int = 0
    """Events whose copies do not all have the same bytes."""
    different: int = 0
    """Events that a new translation would write differently, because the release or the configuration is different."""
    misplaced: int = 0
    """Records whose events are not in the canonical partition that the current number of partitions requires."""
    revived: int = 0
    """Records that were translated but also have a dead letter, because they were replayed."""
    compacted: int = 0
    """Origins of events whose raw records may have been removed by Kafka's compaction."""
    lost: AuditFindings = field(default_factory=AuditFindings)
    invented: AuditFindings = field(default_factory=AuditFindings)


class AuditReport(Struct):
    """The audit result."""

    accounts: list[Account]
    foreign: int = 0
    """Events and dead letters that belong to other sources and topics."""
    nameless: AuditFindings = field(default_factory=AuditFindings)
    """Records in the written topics that refer to no raw record."""
    short: list[str] = field(default_factory=list)
    """Partitions of written topics whose beginning was deleted. If the output of a raw record was there, the record
    counts as lost.
    """

    @property
    def sound(self) -> bool:
        """Return whether no record was lost or invented."""
        wrong = (account.lost.count + account.invented.count for account in self.accounts)
        return not sum(wrong) and not self.nameless.count

    @property
    def same(self) -> bool:
        """Return whether every copy of every event equals the result of a translation now."""
        return not sum(account.different + account.unequal for account in self.accounts)


KnownTopics: TypeAlias = Mapping[tuple[str, str, int], int]
"""The number of each raw partition in the ledger, keyed by source, raw topic and partition."""


def audit(
    again: OfflineTranslator,
    topic: str | None,
    partition: int | None,
    first: int | None,
    end: int | None,
    say: Callable[[str], None],
) -> AuditReport:
    """Compare ranges of raw records with the canonical topic and the dead letters.

    Args:
        topic, partition, first, end: the only raw topic and partition to check, with the first offset and the end
            offset. By default, every raw partition is checked from its first record to the group's committed offset.

    Raises:
        ConfigError: a topic or range does not exist.
        FatalError: a topic cannot be read.
        RetryableError: no broker responds.
    """
    settings = again.settings
    partitions = Partitions(again.client, settings.group)
    ledger = AuditIndex()
    try:
        ranges = _ranges(again, partitions, topic, partition, first, end, say)
        report = AuditReport([Account(range_.topic, range_.partition, range_.first, range_.end) for range_ in ranges])
        known = {(again.raw_topics[range_.topic], *range_.place): number for number, range_ in enumerate(ranges)}
        output = settings.output
        written = [
            (part, origin_of)
            for name, origin_of in ((output.topic, of_event), (output.dead_letter_topic, of_letter))
            for part in _parts(again, partitions, name, ranges, everything=topic is None)
        ]
        to_read = [*ranges, *(part for part, _ in written)]
        progress = Progress("audit", sum(part.end - part.first for part in to_read), say)
        for part, origin_of in written:
            if part.first:
                report.short.append(f"{part.topic}/{part.partition} begins at offset {part.first}")
            ledger.add(_entries(report, known, _read(partitions, part, progress), origin_of))
        ledger.sort()
        for number, (range_, account) in enumerate(zip(ranges, report.accounts, strict=True)):
            _check(again, partitions, ledger, number, range_, account, progress)
        return report
    finally:
        ledger.close()
        partitions.close()


def _ranges(
    again: OfflineTranslator,
    partitions: Partitions,
    topic: str | None,
    partition: int | None,
    first: int | None,
    end: int | None,
    say: Callable[[str], None],
) -> list[Range]:
    """Return the ranges to check. The requested end may be beyond the committed offset."""
    topics = sorted(again.raw_topics) if topic is None else [topic]
    places: list[Place] = []
    for name in topics:
        again.translator(name)
        places += places_of(name, again.facts(name), partition)
    patience = again.settings.timing.broker_wait
    committed = retry_until("group coordinator", lambda _: partitions.committed(places), patience, say)
    ranges = []
    for place in places:
        whole = partitions.bounds(*place)
        default = min(max(committed.get(place, whole.first), whole.first), whole.end)
        ranges.append(narrowed(whole, first, default if end is None else end))
    return ranges


def _parts(
    again: OfflineTranslator, partitions: Partitions, written: str, ranges: Iterable[Range], *, everything: bool
) -> list[Range]:
    """Return a written topic's partitions that contain records for the ranges. A full audit reads all partitions."""
    numbers = {again.partition_in(written, *range_.place) for range_ in ranges}
    if everything:
        numbers = set(range(again.facts(written).partitions))
    return [partitions.bounds(written, number) for number in sorted(numbers)]


def _read(partitions: Partitions, range_: Range, progress: Progress) -> Iterator[Any]:
    place = f"{range_.topic}/{range_.partition}"
    return progress.through(place, range_.first, range_.end, partitions.read(range_), _offset)


def _offset(record: Any) -> int:
    return int(record.offset())


# -- what was written


def _entries(
    report: AuditReport, known: KnownTopics, records: Iterable[Any], origin_of: Callable[[Any], RecordOrigin | None]
) -> Iterator[Entry]:
    """Add the entries for the checked raw partitions. Entries without a raw partition are counted."""
    for record in records:
        origin = origin_of(record)
        if origin is None:
            report.nameless.add(record.offset(), f"{record.topic()}/{record.partition()} refers to no raw record")
            continue
        raw = known.get((origin.source, origin.topic, origin.partition))
        if raw is None:
            report.foreign += 1
        elif origin.n is not None:
            yield event(raw, origin.offset, origin.n, origin.content, record.partition())
        elif not origin.refused:
            yield letter(raw, origin.offset, origin.content, record.partition())


# -- what should have been written


def _check(
    again: OfflineTranslator,
    partitions: Partitions,
    ledger: AuditIndex,
    number: int,
    range_: Range,
    account: Account,
    progress: Progress,
) -> None:
    """Compare raw records and entries in parallel. Both are sorted by offset."""
    place = again.partition_in(again.settings.output.topic, *range_.place)
    topic_id = again.facts(range_.topic).id
    without_record = _Orphans(account, compacted=again.topics.is_compacted(range_.topic))
    entries = ledger.of(number, range_.first, range_.end)
    ahead = next(entries, None)
    for record in _read(partitions, range_, progress):
        while ahead is not None and ahead.offset < record.offset():
            without_record.take(ahead)
            ahead = next(entries, None)
        message = message_of(record, topic_id)
        found = IndexEntry(message.offset)
        if ahead is not None and ahead.offset == message.offset:
            found, ahead = ahead, next(entries, None)
        judge(account, again.translate(message), found, place)
    while ahead is not None:
        without_record.take(ahead)
        ahead = next(entries, None)
    beyond = partitions.bounds(*range_.place).end  # queried last, because records can arrive during the run
    for found in ledger.of(number, beyond, _WHOLE):
        account.invented.add(found.offset, f"it is past the end of the raw partition, {beyond}")


class _Orphans:
    """Count entries that refer to an offset without a record."""

    def __init__(self, account: Account, *, compacted: bool) -> None:
        self._account = account
        self._compacted = compacted

    def take(self, found: IndexEntry) -> None:
        if self._compacted:
            self._account.compacted += 1
        else:
            self._account.invented.add(found.offset, "no raw record exists there")


def judge(account: Account, translation: Translation, found: IndexEntry, place: int) -> None:
    """Count a raw record.

    Args:
        translation: the result of translating the record now.
        place: the canonical partition in which its events should be.
    """
    account.records += 1
    events, wanted = found.events, len(translation.canonical)
    left_out = translation.left_out
    account.events += len(events)
    account.duplicates += sum(len(copies) - 1 for copies in events.values())
    account.unequal += sum(len(set(copies)) > 1 for copies in events.values())
    account.different += _different(translation, events)
    account.misplaced += bool(found.partitions - {place})
    missing = set(range(max(wanted + len(left_out), max(events, default=-1) + 1))) - events.keys() - left_out
    if (events or (left_out and not found.letters)) and not missing:
        account.revived += bool(found.letters)
        if isinstance(translation.outcome, Learned):
            account.learned += 1
        else:
            account.translated += 1
    elif found.letters:
        _count(account.dead, found.letters[0])
    elif events:
        account.lost.add(found.offset, f"{len(missing)} of its events are missing; the first is n={min(missing)}")
    elif isinstance(translation.outcome, DeadLetter):
        account.lost.add(
            found.offset,
            (
                "it has neither events nor a dead letter; translating it now results in a dead letter "
                f"{translation.outcome.code}"
            ),
        )
    elif wanted:
        account.lost.add(
            found.offset, f"it has neither events nor a dead letter; translating it now results in {wanted} events"
        )
    elif isinstance(translation.outcome, Skip):
        _count(account.skipped, translation.outcome.reason)
    else:
        account.learned += 1


def _different(translation: Translation, events: Mapping[int, list[bytes]]) -> int:
    """Count the events with a copy that differs from the result of a translation now."""
    now = {n: {digest(record.key, record.value, record.headers)} for n, record in translation.by_event.items()}
    return sum(set(copies) != now.get(n) for n, copies in events.items())


def _count(counts: dict[str, int], name: str) -> None:
    counts[name] = counts.get(name, 0) + 1
