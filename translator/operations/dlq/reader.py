"""Read the dead-letter topic to find its dead letters, and to find out which of them were replayed. Uses no consumer
group.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct, field

from translator.codecs.record import Record
from translator.config.settings import Settings
from translator.kafka import client_config
from translator.kafka.admin import TopicAdmin
from translator.kafka.topic_reader import TopicReader
from translator.resolution.builders import build_translators
from translator.state.state_reader import StateReader
from translator.state.state_record import state_record
from translator.state.table_holds import HELD, HeldTable, HoldMark, apply_mark, text
from translator.translation.dead_letter import Letter, read_dead_letter
from translator.translation.metadata_catalog import MetadataCatalog
from translator.translation.translate import Translator

PREFIX = "!replayed/"
"""Key prefix for replay marks in the metadata topic. Source names cannot contain `!`, so the prefix never collides."""

Identity: TypeAlias = tuple[str, str, int, int, str | None]


class LetterFilter(Struct, frozen=True):
    """A filter for dead letters. A field that is empty or None restricts nothing."""

    codes: Collection[str] = ()
    sources: Collection[str] = ()
    topics: Collection[str] = ()
    """Raw topics."""
    tables: Collection[str] = ()
    since_ms: int | None = None
    until_ms: int | None = None
    """Exclusive. Both times are compared with the time at which the dead letter was written, according to its record.
    """
    limit: int | None = None
    """Maximum number of dead letters. The first dead letters in replay order are selected."""

    def selects(self, found: StoredLetter) -> bool:
        """Return whether the filter selects a dead letter, apart from `limit`."""
        letter = found.letter
        named = (
            (self.codes, letter.code),
            (self.sources, letter.source),
            (self.topics, letter.message.topic),
        )
        if any(names and name not in names for names, name in named):
            return False
        if self.tables and not set(self.tables).intersection(found.tables):
            return False
        late_enough = self.since_ms is None or self.since_ms <= found.timestamp_ms
        return late_enough and (self.until_ms is None or found.timestamp_ms < self.until_ms)


class StoredLetter(Struct, frozen=True):
    """A dead letter, and its position in the dead-letter topic."""

    partition: int
    offset: int
    timestamp_ms: int
    letter: Letter
    tables: tuple[str, ...]
    """`db.schema.table` for each table that the message identifies, if any."""
    replayed: bool
    wanted: bool = True
    discarded: str | None = None
    """The operator's reason for discarding the dead letter. A discarded dead letter also counts as replayed, because
    there is nothing left to do.
    """

    @property
    def identity(self) -> Identity:
        """The message, and the output from which it is missing. Two dead letters for the same message have the same
        one. They result from a crash, or from reading a message twice.
        """
        message = self.letter.message
        return message.topic, message.topic_id, message.partition, message.offset, self.letter.output


class Dead(Struct):
    """The dead letters that a pass over the topic found."""

    topic_id: str
    letters: list[StoredLetter] = field(default_factory=list)
    """The dead letters in replay order: by raw topic, partition and offset. If a topic was recreated, its earlier
    records come first.
    """
    replayed: int = 0
    """The selected dead letters that were skipped because they had been replayed."""
    foreign: int = 0
    """Records that are not the translator's dead letters."""
    expired: list[str] = field(default_factory=list)
    """Keys of marks whose dead letters no longer exist in the topic."""
    held: dict[HeldTable, HoldMark] = field(default_factory=dict)
    """Tables that the service holds. Some of the dead letters may belong to these tables."""
    cut: bool = False
    """True if the filter selects more dead letters than `limit`."""
    read: dict[tuple[str, int], int] = field(default_factory=dict)
    """The offset of the next dead letter, by partition of the dead-letter topic."""

    def mark(self, found: StoredLetter, version: str, discarded: str | None = None) -> Record:
        """Return the record for the metadata topic that marks a dead letter as replayed, or as discarded for a
        reason.
        """
        message = found.letter.message
        origin = {"topic": message.topic, "partition": message.partition, "offset": message.offset}
        told = {"version": version, "origin": origin, **({} if discarded is None else {"discarded": discarded})}
        key = mark_key(self.topic_id, found.partition, found.offset)
        return state_record(key, msgspec.json.encode(told))


def mark_key(topic_id: str, partition: int, offset: int) -> str:
    """Return a key that identifies a dead letter by its position. Offsets restart when the dead-letter topic is
    recreated, so the key includes the topic id.
    """
    return f"{PREFIX}{topic_id}/{partition}/{offset}"


def look(
    settings: Settings,
    wanted: LetterFilter,
    say: Callable[[str], None],
    *,
    pending: bool = False,
    beside: Collection[str] = (),
    before: Dead | None = None,
) -> Dead:
    """Read the whole dead-letter topic.

    Args:
        pending: whether to find only the dead letters that were not replayed. Then only these count towards `limit`.
        beside: the codes of additional dead letters to find, even if the filter does not select them.
        before: the result of an earlier pass. Only newer dead letters are read. None of them counts as replayed yet.

    Raises:
        ConfigError: the topic does not exist, or one of a dialect's options is invalid.
        RetryableError: no broker responded in time.
        FatalError: the topic cannot be read.
    """
    client = client_config.librdkafka(settings.kafka)
    topics = TopicAdmin(client)
    topics.wait_for_broker(settings.timing.broker_wait, say)
    output = settings.output
    facts = topics.describe([output.dead_letter_topic, output.metadata_topic])
    dead = Dead(facts[output.dead_letter_topic].id)
    marks: dict[str, ReplayMark] = {}
    if before is None:
        state = StateReader(client, {output.metadata_topic: facts[output.metadata_topic]})
        apply_marks(state, marks, dead.held)
        state.close()
    reader = TopicReader(
        client, {output.dead_letter_topic: facts[output.dead_letter_topic]}, before.read if before else {}
    )
    translators = build_translators(settings, MetadataCatalog())
    born: dict[str, int] = {}  # raw topic id -> time of its first letter
    replayed: set[Identity] = set()
    for found in stored_letters(reader, dead, marks, translators):
        topic_id = found.letter.message.topic_id
        born[topic_id] = min(born.get(topic_id, found.timestamp_ms), found.timestamp_ms)
        if found.replayed:
            replayed.add(found.identity)
        if wanted.selects(found):
            dead.letters.append(found)
        elif found.letter.code in beside:
            dead.letters.append(msgspec.structs.replace(found, wanted=False))
    parts = range(facts[output.dead_letter_topic].partitions)
    dead.read = {place: reader.next_offset(*place) for place in ((output.dead_letter_topic, part) for part in parts)}
    reader.close()
    dead.expired = sorted(marks)
    # A dead letter is done if its duplicate is done.
    letters = [msgspec.structs.replace(found, replayed=found.identity in replayed) for found in dead.letters]
    dead.letters = [found for found in letters if not (pending and found.replayed)]
    dead.replayed = sum(found.wanted for found in letters) - sum(found.wanted for found in dead.letters)
    dead.letters.sort(key=lambda found: replay_order(found, born))
    if wanted.limit is not None:
        _cut(dead, wanted.limit)
    return dead


def _cut(dead: Dead, limit: int) -> None:
    """Drop all dead letters except the first selected ones and the additional ones."""
    places = [place for place, found in enumerate(dead.letters) if found.wanted]
    dead.cut = len(places) > limit
    if dead.cut:
        del dead.letters[places[limit] :]


class ReplayMark(Struct, frozen=True):
    """A mark that a dead letter needs no more work. If the dead letter was discarded, the mark has the reason."""

    discarded: str | None = None


def apply_marks(reader: TopicReader, marks: dict[str, ReplayMark], held: dict[HeldTable, HoldMark]) -> None:
    """Apply records from the metadata topic to the current marks, by key, and to the current holds."""
    for record in reader.to_end():
        key = (record.key() or b"").decode()
        if key.startswith(HELD):
            apply_mark(held, key, record.value())
        elif key.startswith(PREFIX):
            value = record.value()
            if value is None:
                marks.pop(key, None)
            else:
                marks[key] = msgspec.json.decode(value, type=ReplayMark)


def stored_letters(
    reader: TopicReader, dead: Dead, marks: dict[str, ReplayMark], translators: Mapping[str, Translator]
) -> Iterator[StoredLetter]:
    """Yield every dead letter that the reader finds. Removes the marks of existing dead letters from `marks`."""
    record: Any
    for record in reader.to_end():
        letter = read_dead_letter(record.key(), record.value(), record.headers() or ())
        if letter is None:
            dead.foreign += 1
            continue
        key = mark_key(dead.topic_id, record.partition(), record.offset())
        mark = marks.pop(key, None)
        translator = translators.get(letter.source)
        known = translator.tables(letter.message) if translator is not None else None
        tables = tuple(sorted(map(text, known or ())))
        yield StoredLetter(
            record.partition(),
            record.offset(),
            record.timestamp()[1],
            letter,
            tables,
            replayed=mark is not None,
            discarded=None if mark is None else mark.discarded,
        )


def replay_order(found: StoredLetter, born: Mapping[str, int]) -> tuple[Any, ...]:
    """Return a sort key.

    Args:
        born: the time of the first dead letter by raw topic id.
    """
    message = found.letter.message
    incarnation = born[message.topic_id], message.topic_id
    return message.topic, incarnation, message.partition, message.offset, found.letter.output or "", found.offset
