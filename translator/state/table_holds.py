"""Hold tables. After a dead letter, later messages for the same table wait for the replay (`on_error: hold_table`).

A hold applies to one table in one raw partition. If the table is unknown, it applies to all tables in the partition.
The hold is stored in the metadata topic. It therefore outlives the process, and the partition's next owner knows about
it before reading further. Only the owner sets and releases holds, in partition order. A replay only reports its
progress. This report remains valid even if the replay fails. For the reasons, see docs/decisions/0007-hold-table.md.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Protocol, TypeAlias

import msgspec
import structlog
from msgspec import Struct

from cdc_core.table_id import joined_name
from translator.codecs.record import Record
from translator.errors import quote
from translator.message import Message, TableName
from translator.state.state_record import state_record

log = structlog.get_logger("translator")

HELD = "!held/"
"""Key prefix for holds in the metadata topic. Source names cannot contain `!`, so the prefix never collides."""

CAUGHT_UP = "!caught-up/"
"""Key prefix for replay progress in the metadata topic."""

PATIENCE = 10.0
"""Seconds for which a message for a held table waits for a replay that has nearly caught up, before it is also held.
"""

TABLES = 1_000
"""Maximum number of held tables per partition. A limit is needed, because messages determine this number. When the
limit is exceeded, the whole partition is held.
"""

Partition: TypeAlias = tuple[str, int]


class HeldTable(Struct, frozen=True):
    """A held table. If `table` is None, all tables in the partition are held."""

    topic: str
    topic_id: str
    partition: int
    table: TableName | None

    @property
    def name(self) -> str:
        """The text after the prefix in metadata topic keys."""
        named = (self.table.db, self.table.schema, self.table.table) if self.table else None
        return msgspec.json.encode([self.topic, self.topic_id, self.partition, named]).decode()

    def __str__(self) -> str:
        of = f"topic {self.topic}, partition {self.partition}"
        return f"every table of {of}" if self.table is None else f"table {quote(text(self.table))} of {of}"


class HoldMark(Struct, frozen=True):
    """The reason why a table is held, which is the document in the hold's record."""

    since: int
    """The offset of the message that could not be translated."""
    code: str
    source: str
    version: str


class CaughtUp(Struct, frozen=True):
    """All dead letters for a held table before offset `read` of the dead-letter topic were replayed."""

    letters_id: str
    """The dead-letter topic's id. Offsets restart when a topic is recreated."""
    read: int


class Journal(Protocol):
    """The journal. It stores holds, and is read before a partition is taken over."""

    letters_id: str

    async def confirm(self, record: Record) -> None:
        """Return once the record is in the metadata topic."""
        ...

    async def synced(self) -> None:
        """Return once everything that the metadata topic contains now has been processed."""
        ...

    async def end_of_letters(self, partition: int) -> int:
        """Return the end offset of a partition in the dead-letter topic."""
        ...


class NoJournal:
    """The journal of a process that owns no partitions. Its holds apply only to the process itself."""

    letters_id = ""

    async def confirm(self, record: Record) -> None:
        """Write nothing."""

    async def synced(self) -> None:
        """Return immediately, because nothing has to be read."""

    async def end_of_letters(self, partition: int) -> int:
        return 0


class Hold:
    """A hold in a partition that this process owns."""

    __slots__ = ("flying", "last", "since", "table")

    def __init__(self, table: HeldTable, since: int, last: int) -> None:
        self.table = table
        self.since = since
        self.last = last  # offset of the last letter for the table, or of the last letter that could be for it
        self.flying = 0  # letters that have not been delivered yet

    def __str__(self) -> str:
        return f"{self.table} has been held since offset {self.since}, which must be replayed first"


class Holds:
    """Holds for all partitions as stored in the metadata topic, and holds for owned partitions."""

    def __init__(self, journal: Journal | None = None) -> None:
        self._journal: Journal = NoJournal() if journal is None else journal
        self._marks: dict[HeldTable, HoldMark] = {}
        self._caught_up: dict[HeldTable, CaughtUp] = {}
        self._waited_for: dict[HeldTable, float] = {}  # deadline
        self._mine: dict[Partition, dict[TableName | None, Hold]] = {}
        self._owned: set[Partition] = set()
        self._sync: asyncio.Task[None] | None = None

    @property
    def count(self) -> int:
        """Holds in the partitions that this process owns."""
        return sum(map(len, self._mine.values()))

    @property
    def marks(self) -> Mapping[HeldTable, HoldMark]:
        """All holds in the metadata topic."""
        return self._marks

    # -- the metadata topic

    def apply_state_record(self, key: str, document: bytes | None, *, fresh: bool) -> bool:
        """Process a record from the metadata topic. Returns False for other records.

        Args:
            fresh: whether the record was just written. If so, its writer is probably still running.
        """
        if key.startswith(HELD):
            apply_mark(self._marks, key, document)
        elif key.startswith(CAUGHT_UP):
            of = _named(key.removeprefix(CAUGHT_UP))
            if document is None:
                self._caught_up.pop(of, None)
                self._waited_for.pop(of, None)
            else:
                self._caught_up[of] = msgspec.json.decode(document, type=CaughtUp)
                if fresh:
                    self._waited_for[of] = time.monotonic() + PATIENCE
        else:
            return False
        return True

    # -- partitions

    def owns(self, place: Partition) -> bool:
        return place in self._owned

    async def take_over(self, place: Partition, topic_id: str, letters: int) -> None:
        """Load a partition's holds before its first record is translated.

        Args:
            letters: the partition of the dead-letter topic that contains the letters.
        """
        if self._sync is None:  # one read for all partitions of an assignment
            self._sync = asyncio.create_task(self._journal.synced())
        await asyncio.shield(self._sync)
        held = [(of, mark) for of, mark in self._marks.items() if (of.topic, of.partition) == place]
        held = [(of, mark) for of, mark in held if of.topic_id == topic_id]
        if held:
            # The tables to which the dead letters belong are not known here, so any of these dead letters could be the
            # last dead letter of a held table.
            last = await self._journal.end_of_letters(letters) - 1
            self._mine[place] = {of.table: Hold(of, mark.since, last) for of, mark in held}
        self._owned.add(place)

    def forget(self) -> None:
        """Release the partitions."""
        self._mine.clear()
        self._owned.clear()
        self._sync = None

    # -- messages, in partition order

    def __contains__(self, place: Partition) -> bool:
        """Return whether a partition has any hold."""
        return place in self._mine

    def holds_all(self, place: Partition) -> bool:
        """Return whether the whole partition is held."""
        return None in self._mine.get(place, {})

    def covering(self, place: Partition, offset: int, tables: Collection[TableName]) -> Hold | None:
        """Return the hold that stops a message with rows in these tables, or None. Messages before the hold are
        not affected.
        """
        held = self._mine.get(place, {})
        for table in (None, *sorted(tables, key=text)) if tables else ():
            hold = held.get(table)
            if hold is not None and hold.since < offset:
                return hold
        return None

    def blocks(self, place: Partition, table: TableName | None) -> bool:
        """Return whether any message for a table is held or, if `table` is None, any message in the partition."""
        held = self._mine.get(place, {})
        return bool(held) if table is None else None in held or table in held

    async def stands_before(
        self, message: Message, tables: Collection[TableName], pause: Callable[[], Awaitable[None]]
    ) -> Hold | None:
        """Return the hold on a message, or None if it is not held. It waits while a replay is about to catch up."""
        place = message.topic, message.partition
        while True:
            await self._end_what_is_caught_up(place)
            held = self.covering(place, message.offset, tables)
            if held is None or time.monotonic() >= self._waited_for.get(held.table, 0.0):
                return held
            await pause()

    async def hold(
        self,
        message: Message,
        tables: Collection[TableName] | None,
        mark: HoldMark,
        before: Callable[[], Awaitable[None]],
    ) -> Callable[[int], None]:
        """Hold the messages that follow a dead letter. Return once the hold has been stored.

        Args:
            tables: the message's tables, or None if unknown.
            before: awaited before a hold is written. A replay may start immediately, so earlier messages in the
                partition must already have been delivered.

        Returns:
            A function to call with the dead letter's offset once the dead letter has been delivered.
        """
        place = message.topic, message.partition
        mine = self._mine.get(place, {})
        holds = []
        for table in self._to_hold(mine, message.offset, tables):
            found = mine.get(table)
            if found is None or found.since > message.offset:
                of = HeldTable(message.topic, message.topic_id, message.partition, table)
                await before()
                await self._journal.confirm(state_record(HELD + of.name, msgspec.json.encode(mark)))
                log.warning("table held", held=str(of), since=mark.since, code=mark.code)
                if found is None:
                    found = mine[table] = Hold(of, mark.since, -1)
                    self._mine[place] = mine
                found.since = mark.since
            found.flying += 1
            holds.append(found)

        def delivered(offset: int) -> None:
            for hold in holds:
                hold.flying -= 1
                hold.last = max(hold.last, offset)

        return delivered

    @staticmethod
    def _to_hold(
        mine: Mapping[TableName | None, Hold], offset: int, tables: Collection[TableName] | None
    ) -> list[TableName | None]:
        whole = mine.get(None)
        if whole is not None and whole.since <= offset:
            return [None]
        if tables is None or len(mine) + len(tables) > TABLES:
            return [None]
        return [*sorted(tables, key=text)]

    async def _end_what_is_caught_up(self, place: Partition) -> None:
        mine = self._mine.get(place)
        if not mine or not self._caught_up:
            return
        for hold in [*mine.values()]:
            known = self._caught_up.get(hold.table)
            if known is None or known.letters_id != self._journal.letters_id:
                continue
            if not hold.flying and hold.last < known.read:
                # Write later messages only once no future owner can still consider the table held.
                for record in ended(hold.table):
                    await self._journal.confirm(record)
                log.info("table resumed", held=str(hold.table), since=hold.since)
                mine.pop(hold.table.table, None)
                self._caught_up.pop(hold.table, None)
                self._waited_for.pop(hold.table, None)
        if not mine:
            self._mine.pop(place, None)


def apply_mark(marks: dict[HeldTable, HoldMark], key: str, document: bytes | None) -> None:
    """Apply a record with the prefix HELD to the current holds."""
    of = _named(key.removeprefix(HELD))
    if document is None:
        marks.pop(of, None)
    else:
        marks[of] = msgspec.json.decode(document, type=HoldMark)


def caught_up(of: HeldTable, letters_id: str, read: int) -> Record:
    """Return the record in which a replay reports its progress with a held table."""
    return state_record(CAUGHT_UP + of.name, msgspec.json.encode(CaughtUp(letters_id, read)))


def ended(of: HeldTable) -> list[Record]:
    """Return the records that release a hold."""
    return [state_record(prefix + of.name, None) for prefix in (HELD, CAUGHT_UP)]


def _named(name: str) -> HeldTable:
    """Parse `HeldTable.name`."""
    topic, topic_id, partition, named = msgspec.json.decode(name)
    return HeldTable(topic, topic_id, partition, None if named is None else TableName(*named))


def text(table: TableName) -> str:
    """Return `db.schema.table`, without levels that the source does not have."""
    return joined_name(table.db, table.schema, table.table)
