"""Keep the order in a replay. No message for a held table is written before the table's earlier messages.

During a run, the service's rules apply. A dead letter blocks later ones for its table if it was skipped, or if it still
cannot be translated under `hold_table`. The configuration of the replay determines which codes block. To skip a
message, the operator replays with `dead_letter` for its code.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from translator.errors import ErrorCode
from translator.operations.dlq.reader import StoredLetter
from translator.state.table_holds import HeldTable, HoldMark, Holds
from translator.translation.translate import Translator


class ReplayOrder:
    """The tables blocked in one run.

    Args:
        marks: the service's holds. Dead letters from other partitions block nothing.
        codes: the codes with `hold_table`.
    """

    def __init__(self, marks: Mapping[HeldTable, HoldMark], codes: Collection[ErrorCode]) -> None:
        self._marks = marks
        self._codes = codes
        self._holds: dict[
            str, Holds
        ] = {}  # by raw topic id, because an older incarnation of a topic does not block a newer one

    def holds(self, found: StoredLetter) -> Holds | None:
        """Return the holds that apply to a dead letter, or None if no hold concerns its position."""
        message = found.letter.message
        if found.letter.output is not None:
            return None  # the message is already in the canonical topic
        if not any(mark.since <= message.offset for _, mark in self._of(found)):
            return None
        return self._holds.setdefault(message.topic_id, Holds())

    async def skip(self, found: StoredLetter, translator: Translator | None, *, impossible: bool) -> None:
        """Block the dead letters that follow one that is not replayed.

        Args:
            translator: the translator for the dead letter's message, or None if the message cannot be read.
            impossible: the dead letter can never be replayed. If no code has the policy `hold_table`, the dead letter
                blocks nothing.
        """
        holds, letter = self.holds(found), found.letter
        is_held = letter.code == ErrorCode.HELD and (bool(self._codes) or not impossible)
        if holds is None or not (is_held or letter.code in self._codes):
            return
        tables = translator.tables(letter.message) if translator is not None else None
        mark = HoldMark(letter.message.offset, letter.code, letter.source, letter.version)
        await holds.hold(letter.message, tables, mark, _at_once)

    def releasable(self) -> list[HeldTable]:
        """Return the service's holds without remaining dead letters."""
        return [of for of in self._marks if not self._is_blocked(of)]

    def _is_blocked(self, of: HeldTable) -> bool:
        holds = self._holds.get(of.topic_id)
        return holds is not None and holds.blocks((of.topic, of.partition), of.table)

    def _of(self, found: StoredLetter) -> Iterator[tuple[HeldTable, HoldMark]]:
        message = found.letter.message
        place = message.topic, message.topic_id, message.partition
        return ((of, mark) for of, mark in self._marks.items() if (of.topic, of.topic_id, of.partition) == place)


async def _at_once() -> None:
    """Return immediately, because everything that the service wrote before this dead letter has already been
    delivered.
    """
