"""Follow the dead-letter topic. Every pass after the first one reads only new records."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from msgspec import structs

from translator.config.settings import Settings
from translator.kafka import client_config
from translator.kafka.admin import TopicAdmin, TopicFacts
from translator.kafka.topic_reader import TopicReader
from translator.operations.dlq.reader import (
    Dead,
    ReplayMark,
    StoredLetter,
    apply_marks,
    mark_key,
    replay_order,
    stored_letters,
)
from translator.resolution.builders import build_translators
from translator.state.state_reader import StateReader
from translator.state.table_holds import HeldTable, HoldMark
from translator.translation.metadata_catalog import MetadataCatalog

_MOST_SECONDS = 3600.0
"""Maximum time between two passes. After a longer time, everything is read again. It is far shorter than the time for
which compaction keeps tombstones of marks and holds (`delete.retention.ms`, a day by default).
"""


class LetterFollower:
    """All dead letters in any state. Threads can share it.

    Raises:
        The same errors as `reader.look`.
    """

    def __init__(self, settings: Settings, say: Callable[[str], None]) -> None:
        self._settings = settings
        self._say = say
        self._client = client_config.librdkafka(settings.kafka)
        self._translators = build_translators(settings, MetadataCatalog())
        self._lock = threading.Lock()
        self._forget(())

    def look(self) -> Dead:
        """Return all dead letters, as `reader.look` does without a filter."""
        with self._lock:
            try:
                return self._look()
            except BaseException:
                self._forget(())  # a pass that ended early may have applied only some of the records
                raise

    def _forget(self, topics: tuple[str, ...]) -> None:
        """Forget everything.

        Args:
            topics: the ids of the topics that the next pass reads.
        """
        self._topics = topics
        self._at = time.monotonic()
        self._read: dict[tuple[str, int], int] = {}
        self._letters: list[StoredLetter] = []
        self._marks: dict[str, ReplayMark] = {}
        self._held: dict[HeldTable, HoldMark] = {}
        self._foreign = 0

    def _look(self) -> Dead:
        topics = TopicAdmin(self._client)
        topics.wait_for_broker(self._settings.timing.broker_wait, self._say)
        output = self._settings.output
        facts = topics.describe([output.dead_letter_topic, output.metadata_topic])
        ids = tuple(found.id for found in facts.values())
        if ids != self._topics or time.monotonic() - self._at > _MOST_SECONDS:
            self._forget(ids)
        self._at = time.monotonic()
        dead = Dead(facts[output.dead_letter_topic].id)
        state = StateReader(self._client, {output.metadata_topic: facts[output.metadata_topic]}, self._read)
        apply_marks(state, self._marks, self._held)
        self._close(state, output.metadata_topic, facts[output.metadata_topic])
        letters = TopicReader(self._client, {output.dead_letter_topic: facts[output.dead_letter_topic]}, self._read)
        # Marks are applied to all letters below, because a mark can arrive after its letter.
        self._letters += stored_letters(letters, dead, {}, self._translators)
        self._foreign += dead.foreign
        dead.read = self._close(letters, output.dead_letter_topic, facts[output.dead_letter_topic])
        firsts = topics.offsets(list(dead.read), "earliest")
        self._letters = [
            found for found in self._letters if found.offset >= firsts[output.dead_letter_topic, found.partition]
        ]
        return self._marked(dead)

    def _close(self, reader: TopicReader, topic: str, facts: TopicFacts) -> dict[tuple[str, int], int]:
        """Close a reader, and return where the next pass begins."""
        reached = {(topic, part): reader.next_offset(topic, part) for part in range(facts.partitions)}
        reader.close()
        self._read |= reached
        return reached

    def _marked(self, dead: Dead) -> Dead:
        """Add the dead letters with their current state."""
        keys = [mark_key(dead.topic_id, found.partition, found.offset) for found in self._letters]
        marks = [self._marks.get(key) for key in keys]
        done = {found.identity for found, mark in zip(self._letters, marks, strict=True) if mark is not None}
        dead.letters = [
            structs.replace(
                # A dead letter is done if its duplicate is done.
                found,
                replayed=found.identity in done,
                discarded=None if mark is None else mark.discarded,
            )
            for found, mark in zip(self._letters, marks, strict=True)
        ]
        born: dict[str, int] = {}
        for found in dead.letters:
            topic_id = found.letter.message.topic_id
            born[topic_id] = min(born.get(topic_id, found.timestamp_ms), found.timestamp_ms)
        dead.letters.sort(key=lambda found: replay_order(found, born))
        dead.expired = sorted(self._marks.keys() - set(keys))
        dead.held, dead.foreign = dict(self._held), self._foreign
        return dead
