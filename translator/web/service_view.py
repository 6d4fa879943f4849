"""Collect the data about the service that pages show: its status, its dead letters, and what a replay would do. All
data is read from topics.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct

from translator.config.settings import Settings
from translator.errors import ConfigError
from translator.operations.dlq.follower import LetterFollower
from translator.operations.dlq.reader import Dead, LetterFilter, StoredLetter
from translator.operations.dlq.replay import ReplayReport, replay
from translator.operations.explanation import outcome_lines
from translator.operations.message_preview import preview, size_alone
from translator.operations.offline_translator import OfflineTranslator, registering_nothing
from translator.operations.status import Status, StatusLooker
from translator.state.state_snapshot import StateSnapshot, read_state
from translator.translation.dead_letter import DeadLetter
from translator.web.event_view import EventView, view
from translator.web.kept import Kept
from translator.web.playground import shown

_BROKER_SECONDS = 10.0

_STATUS_SECONDS = 2.0
_LETTERS_SECONDS = 10.0
"""Seconds for which a query is cached. Brokers then get no more queries if many users read the page."""


class LetterView(Struct, frozen=True):
    """A dead letter.

    Args:
        layout: names, types and lengths in the message. For a source with masks, only its size.
        now: the message's result with the current configuration, in lines without row data.
        raw: the message, or None if it must not be shown.
        events: the resulting events; empty if they must not be shown.
        dialect: the dialect of the source; empty if the configuration no longer contains the source.
    """

    stored: StoredLetter
    reason: str | None
    layout: Sequence[str]
    now: Sequence[str]
    raw: str | None
    events: Sequence[EventView]
    dialect: str


class ServiceView:
    """The data for the pages. Each call may take seconds, so run it in a thread."""

    def __init__(self, settings: Settings, say: Callable[[str], None]) -> None:
        timing = settings.timing
        # Waiting longer for a page is not worthwhile, and each wait occupies a thread.
        timing = timing.model_copy(update={"broker_wait": min(timing.broker_wait, _BROKER_SECONDS)})
        settings = settings.model_copy(update={"timing": timing})
        self.settings = settings
        self._say = say
        self._looker: StatusLooker | None = None
        self._status = Kept(self._look, _STATUS_SECONDS)
        self._known = Kept(lambda: read_state(settings, say), _LETTERS_SECONDS)
        self._follower: LetterFollower | None = None
        self._letters = Kept(self._follow, _LETTERS_SECONDS)

    def status(self) -> Status:
        return self._status.get()

    def known(self) -> StateSnapshot:
        """Return the schemas that events refer to, and the documents that sources have learned."""
        return self._known.get()

    def letters(self) -> Dead:
        return self._letters.get()

    def is_masked(self, stored: StoredLetter) -> bool:
        """Return whether columns of the dead letter's source are masked."""
        return stored.letter.source in self.settings.masked_sources

    def reason(self, stored: StoredLetter) -> str | None:
        """Return why a message became a dead letter, or None if masks do not allow showing it."""
        return stored.letter.reason_without_values(masked=self.is_masked(stored))

    def letter(self, partition: int, offset: int, *, reveal: bool) -> LetterView | None:
        """Return the dead letter at a position. None if that position has no dead letter.

        Args:
            reveal: whether to include the complete message and its events, if masks allow it.
        """
        letters = self.letters().letters
        stored = next((found for found in letters if (found.partition, found.offset) == (partition, offset)), None)
        if stored is None:
            return None
        letter = stored.letter
        masked = self.is_masked(stored)
        now, events = self._now(stored)
        open_ = reveal and not masked and letter.body_bytes is None
        return LetterView(
            stored,
            reason=self.reason(stored),
            layout=[size_alone(letter.message.value)] if masked else preview(letter.message.value),
            now=now,
            raw=shown(letter.message.value or b"") if open_ else None,
            events=events if open_ else (),
            dialect=next((source.dialect for source in self.settings.sources if source.name == letter.source), ""),
        )

    def replay(self, source: str, code: str, *, execute: bool) -> ReplayReport:
        """Replay a source's dead letters with a code, or report what a replay would produce. A report changes nothing.
        No topic is created, and no schema is registered.
        """
        settings = self.settings if execute else _creating_nothing(self.settings)
        if execute:
            self._letters.forget()
            self._known.forget()
        wanted = LetterFilter(codes=(code,), sources=(source,))
        return replay(settings, wanted, self._say, execute=execute)

    def _look(self) -> Status:
        if self._looker is None:
            self._looker = StatusLooker(self.settings, self._say, self._follow, self.known)
        return self._looker.look()

    def _follow(self) -> Dead:
        if self._follower is None:
            self._follower = LetterFollower(self.settings, self._say)
        return self._follower.look()

    def _now(self, stored: StoredLetter) -> tuple[list[str], list[EventView]]:
        if stored.letter.body_bytes is not None:
            return ["its message was too large for the dead letter"], []
        again = OfflineTranslator(self.settings, self._say)
        try:
            translation = again.translate(stored.letter.message)
        except ConfigError as error:  # no source reads its topic any more
            return [str(error)], []
        finally:
            again.close()
        letter, outcome = stored.letter, translation.outcome
        if isinstance(outcome, DeadLetter) and (outcome.code, outcome.reason) == (letter.code, letter.reason):
            return ["outcome: the same dead letter, for the same reason"], []
        events = translation.events.events if translation.events else ()
        return list(outcome_lines(translation, values=False)), [view(event) for event in events]


def _creating_nothing(settings: Settings) -> Settings:
    topics = settings.topics.model_copy(update={"create": False})
    return registering_nothing(settings.model_copy(update={"topics": topics}))
