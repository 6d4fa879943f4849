"""Translate the newest raw records again, and compare the results with the output of the running release."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct, field

from translator.kafka.offset_ranges import Partitions, Place, Range, message_of, places_of
from translator.kafka.retry import retry_until
from translator.operations.offline_translator import OfflineTranslator
from translator.operations.output_search import DeadLetterSearch, EventSearch
from translator.operations.release_notes import ReleaseNotes
from translator.operations.rewritten import Rewritten, Written, differences, rewritten

# Number of places in each group of differences.
EXAMPLES = 10


class DifferenceGroup(Struct):
    """Raw records of a source whose results differ in the same way.

    Args:
        fields: the fields that differ, or other differences in parentheses.
        announced: whether the notes of the releases announce all of these fields for the source's dialect.
        first: the first raw records, as topic/partition@offset.
    """

    source: str
    dialect: str
    fields: tuple[str, ...]
    announced: bool
    count: int = 0
    first: list[str] = field(default_factory=list)


class UpgradeReport(Struct):
    """The result. `records` = `equal` + `different` + `not_found` + `not_compared`.

    Args:
        not_found: the number of records whose output no longer exists, for example because the topic did not retain it.
        not_compared: the number of dead letters that were not caused by their message, and that nobody has replayed.
    """

    since: str
    steps: list[str]
    records: int = 0
    equal: int = 0
    different: int = 0
    not_found: int = 0
    not_compared: int = 0
    groups: list[DifferenceGroup] = field(default_factory=list)

    @property
    def as_announced(self) -> bool:
        return all(group.announced for group in self.groups)


def upgrade_check(
    again: OfflineTranslator,
    since: str,
    notes: Sequence[ReleaseNotes],
    count: int,
    say: Callable[[str], None],
) -> UpgradeReport:
    """Compare the newest records that the group has committed.

    Args:
        since: the running release.
        notes: the notes of all later releases.
        count: number of records in each raw partition.

    Raises:
        FatalError: a topic cannot be read, or contains records other than events.
        RetryableError: no broker responds.
    """
    report = UpgradeReport(since, [step for one in notes for step in one.steps])
    partitions = Partitions(again.client, again.settings.group)
    try:
        ranges = list(_newest(again, partitions, count, say))
        letters = DeadLetterSearch(again, partitions, [range_.place for range_ in ranges])
        for range_ in ranges:
            say(f"comparing {range_.topic}/{range_.partition}, offsets {range_.first} to {range_.end - 1}")
            _compare(again, partitions, range_, letters, notes, report)
    finally:
        partitions.close()
    report.groups.sort(key=lambda group: (group.announced, -group.count))
    return report


def _newest(
    again: OfflineTranslator, partitions: Partitions, count: int, say: Callable[[str], None]
) -> Iterator[Range]:
    """Yield the range of the newest committed records in each raw partition."""
    places: list[Place] = [
        place for topic in sorted(again.raw_topics) for place in places_of(topic, again.facts(topic), None)
    ]
    patience = again.settings.timing.broker_wait
    committed = retry_until("group coordinator", lambda _: partitions.committed(places), patience, say)
    for place in places:
        whole = partitions.bounds(*place)
        end = min(committed.get(place, whole.first), whole.end)
        if end > whole.first:
            yield Range(*place, max(whole.first, end - count), end)


def _compare(
    again: OfflineTranslator,
    partitions: Partitions,
    range_: Range,
    letters: DeadLetterSearch,
    notes: Sequence[ReleaseNotes],
    report: UpgradeReport,
) -> None:
    source, dialect = again.raw_topics[range_.topic], again.translator(range_.topic).dialect.name
    sample = _sample(again, partitions, range_)
    codes, canonical = letters.of(range_.place), again.settings.output.topic
    events = EventSearch(
        partitions,
        partitions.bounds(canonical, again.partition_in(canonical, *range_.place)),
        source,
        range_,
        again.facts(range_.topic).id,
        codes,
        is_compacted=again.topics.is_compacted(canonical),
    )
    events.read({offset: now.events.keys() for offset, now in sample.items()})
    for offset, now in sample.items():
        report.records += 1
        before = Written(events.of(offset), codes.get(offset, set()))
        if _may_be_gone(before, now, events.is_complete(offset), letters.is_complete(range_.place, offset)):
            report.not_found += 1
            continue
        found = differences(before, now)
        if found is None:
            report.not_compared += 1
        elif not found:
            report.equal += 1
        else:
            report.different += 1
            group = _group(report, notes, source, dialect, tuple(sorted(found)))
            group.count += 1
            if len(group.first) < EXAMPLES:
                group.first.append(f"{range_.topic}/{range_.partition}@{offset}")


def _sample(again: OfflineTranslator, partitions: Partitions, range_: Range) -> Mapping[int, Rewritten]:
    """Return the new results by offset."""
    topic_id = again.facts(range_.topic).id
    messages = (message_of(record, topic_id) for record in partitions.read(range_))
    return {message.offset: rewritten(again.translate(message)) for message in messages}


def _may_be_gone(before: Written, now: Rewritten, has_all_events: bool, has_all_letters: bool) -> bool:
    """Return whether the running release may have written something that its topic no longer contains."""
    if before.events.keys() < now.events.keys() and not has_all_events:
        return True
    has_output = bool(now.events) or now.letter is not None
    return has_output and not before.events and not before.letters and not has_all_letters


def _group(
    report: UpgradeReport, notes: Iterable[ReleaseNotes], source: str, dialect: str, fields: tuple[str, ...]
) -> DifferenceGroup:
    for group in report.groups:
        if (group.source, group.fields) == (source, fields):
            return group
    announced = {
        name for one in notes for change in one.changes if dialect in change.dialects for name in change.fields
    }
    group = DifferenceGroup(source, dialect, fields, announced.issuperset(fields))
    report.groups.append(group)
    return group
