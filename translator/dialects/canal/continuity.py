"""Check that all updates that were read from a partition are consistent with each other (§6.5, C and D).

An UPDATE with two full images does not show which of them is the before image. The declaration decides, and the rows
reveal when it is wrong. The row before a change must equal the row that the previous change to its key produced. The
check does not change events.

Some contradictions only seem to be ones, because DTS sends earlier messages again after a restart. A message therefore
counts as evidence only if it is later at the source than the one it is compared with. A message from the same second
counts if it was not seen before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias, cast

from translator import _native
from translator._native.layout import TakenMessage
from translator.dialects.canal.evidence import RowEvidence, swapped
from translator.dialects.canal.forms import DeclaredForms
from translator.dialects.canal.key_states import DATA_AFTER, DATA_BEFORE, SAME_SECOND, KeyState, Pair, pair_of
from translator.dialects.canal.known_rows import Contradiction, KnownRows, NativeKnownRows, PlainKnownRows, RowKey
from translator.dialects.canal.options import Continuity, Options
from translator.dialects.canal.profile import PROFILES
from translator.dialects.canal.unconfirmed import Unconfirmed, unconfirmed_text
from translator.errors import quote
from translator.message import Change, Changes, Finding, Message, OtherChange, Outcome, RowChange

_COLUMNS = 20
"""Maximum number of columns in an error."""

_Left: TypeAlias = tuple[RowKey, int]
"""A key, and the hash of its row."""

_AFTER = "data contains the row after the change, and old the row before the change"
_BEFORE = "data contains the row before the change, and old the row after the change"
_MEANINGS = {DATA_AFTER: (_AFTER, _BEFORE), DATA_BEFORE: (_BEFORE, _AFTER)}
"""For each way to read an update, the other way."""


def continuity_of(options: Options) -> Continuity:
    """Return the check set by the options, or the profile's default."""
    if options.continuity is not None:
        return options.continuity
    profile = PROFILES[options.profile]
    # With these profiles, some messages can come from a legacy instance, whose DELETEs look the same.
    return Continuity() if profile.alibaba or profile.deleted_in == "old" else Continuity(action="off")


def remedy(options: Options) -> str:
    """Return the settings that determine which image is which."""
    if options.profile == "dts":
        if options.instance is None:
            return "profile (dts_legacy), or declare instance.created and instance.restarted"
        return "instance.created and instance.restarted, or legacy_update_direction if it was read as legacy"
    if options.profile == "dts_legacy":
        return "profile (dts, with instance.created and instance.restarted), or legacy_update_direction"
    if options.profile == "drs":
        return "profile (dts_legacy if Alibaba DTS is the writer)"
    return "profile"


class ContinuityGuard:
    """One partition's check.

    Args:
        profile: the declared writer.
        remedy: the settings that determine how updates are read.
        known: the state.
        complete: whether an image contains all of its row's columns.
    """

    def __init__(
        self, source: str, profile: str, remedy: str, chosen: Continuity, known: KnownRows, *, complete: bool
    ) -> None:
        self._source = source
        self._remedy = remedy
        self._complete = complete
        self._known = known
        self._fatal = chosen.action == "stop"
        self._forms = DeclaredForms(source, profile, fatal=self._fatal, earlier=self._read_so_far)

    def inspect(self, message: Message, changes: Sequence[Change]) -> list[Finding]:
        """Return the findings about the partition's next message."""
        findings: list[Finding | None] = []
        undecided = False
        if message.offset == 0:
            self._known.complete()
        rows = [self._row(change) if isinstance(change, RowChange) else None for change in changes]
        for n, (change, row) in enumerate(zip(changes, rows, strict=True)):
            if isinstance(change, OtherChange):
                self._announced(change)
                continue
            if row is None or change.op == "t":
                self._known.forget(change.table)
                continue
            self._known.begin(change.ts_commit_us)
            findings.append(self._forms.take(message, change))
            if change.op == "u" and change.row == 0:
                # A message's shape applies to all its rows. After the first row, `old` can list unchanged columns.
                undecided = all(row is not None and row.has_two_images for row in rows[n : n + change.rows])
            is_open = undecided and change.op == "u"
            x, y = (self._hash(row.before()), self._hash(row.after())) if is_open else (None, None)
            if x is not None and y is not None and x != y:
                findings.append(self._undecided(message, row, x, y))
            else:
                findings.append(self._decided(message, row))
        return [finding for finding in findings if finding is not None]

    def missed(self) -> None:
        """Record that one of the partition's messages has no events. The rows that it changed are then unknown."""
        self._known.forget(None)

    def _row(self, change: RowChange) -> RowEvidence:
        return RowEvidence(change, complete=self._complete)

    def _hash(self, image: bytes | None) -> int | None:
        return None if image is None else self._known.digest(image)

    # -- updates that can be read in two ways

    def _undecided(self, message: Message, row: RowEvidence, x: int, y: int) -> Finding | None:
        reading = DATA_BEFORE if swapped(row) else DATA_AFTER
        key, key_before, change = row.key(), row.key_before(), row.change
        self._known.add_unconfirmed(reading, message.offset)
        if key is None or key_before is None:
            # A key with NULL does not identify a row. The row with the other key did change, but the new values are
            # unknown.
            for named in filter(None, (key, key_before)):
                self._leave(named, message, change, None)
            return None
        if key != key_before:
            return self._key_changed(message, row, reading, (key_before, x), (key, y))
        pair, known = pair_of(x, y), self._known.get(*key)
        now = KeyState(y, message.offset, change.ts_commit_us, x, reading, pairs=self._pairs(known, change, pair))
        finding = None
        if known is not None and not self._may_postdate(known, change, pair):
            follows = x == known.row
            reversed_ = y in (known.row, known.if_wrong)
            if follows and y != known.if_wrong:
                self._known.confirm(known.reading, known.offset)
                self._known.confirm(reading, message.offset)
                now.if_wrong = None
            elif not follows and reversed_:
                now.row, now.if_wrong = x, None
                finding = self._contrary(message, row, known.offset, reading)
            elif not follows and x == known.if_wrong:
                now.if_wrong = None
                finding = self._contrary(message, row, known.offset, known.reading, earlier=True)
        self._known.keep(*key, now)
        return finding

    def _key_changed(self, message: Message, row: RowEvidence, reading: int, from_: _Left, to: _Left) -> Finding | None:
        """Check the rows of both keys. The old key must have had the before image, and the new key no row at all."""
        (key_before, x), (key, y), change = from_, to, row.change
        old, new = self._known.get(*key_before), self._known.get(*key)
        pair = pair_of(x, y)
        follows = old is not None and x == old.row and not self._may_postdate(old, change, pair)
        reversed_ = new is not None and y in (new.row, new.if_wrong) and not self._may_postdate(new, change, pair)
        pairs = self._pairs(old, change, pair) | self._pairs(new, change, pair)
        left_before, left, finding = None, None, None
        if old is not None and follows and not reversed_:
            self._known.confirm(old.reading, old.offset)
            self._known.confirm(reading, message.offset)
            left = y
        elif new is not None and reversed_ and not follows:
            left_before = x
            finding = self._contrary(message, row, new.offset, reading)
        for at, hash_ in ((key_before, left_before), (key, left)):
            self._known.keep(*at, KeyState(hash_, message.offset, change.ts_commit_us, pairs=pairs))
        return finding

    def _contrary(
        self, message: Message, row: RowEvidence, evidence: int, reading: int, *, earlier: bool = False
    ) -> Finding | None:
        if not self._known.contradicted():
            return None
        return self._finding(message, row, (evidence, earlier, reading, self._known.unconfirmed(reading)))

    def _finding(self, message: Message, row: RowEvidence, contradiction: Contradiction) -> Finding:
        """Return a description with the position and the direction, but never the contents of a row."""
        evidence, earlier, reading, unconfirmed = contradiction
        declared, other = _MEANINGS[reading]
        change, differ = row.change, row.differing()
        names = ", ".join(map(quote, differ[:_COLUMNS])) + (", …" if len(differ) > _COLUMNS else "")
        differ_text = f"The two images differ in {names}. " if names else ""
        wrong = evidence if earlier else message.offset
        table = quote(f"{change.table.db}.{change.table.table}", 200)
        text = (
            f"canal: source {self._source}, table {table}, topic {message.topic}, "
            f"partition {message.partition}: the change at offset {message.offset} (row {change.row}) contradicts "
            f"the change at offset {evidence}. As declared, in the message at offset {wrong} {declared}; according "
            f"to the other message, {other}. "
            f"{differ_text}{unconfirmed_text(unconfirmed, message.offset)} Correct {self._remedy}, then translate "
            "these offsets again"
        )
        return Finding(text, self._fatal)

    # -- changes that can be read in only one way

    def _decided(self, message: Message, row: RowEvidence) -> Finding | None:
        """Use an image whose meaning is certain. Such an image shows how the last update of the key must be read, and
        which row it produced.
        """
        finding = None
        key, change = row.key(), row.change
        if row.has_before:
            key_before = row.key_before()
            finding = self._checked(message, row, key_before)
            if key_before is not None and key_before != key:
                self._leave(key_before, message, change, None)
        if key is not None:
            self._leave(key, message, change, self._hash(row.after()))
        return finding

    def _leave(self, key: RowKey, message: Message, change: RowChange, row: int | None) -> None:
        """Set a key's current row."""
        commit, snapshot = change.ts_commit_us, change.op == "r"
        if snapshot:
            # A full load overlaps with the changes that follow, so a row in it can be older than its message, but not
            # newer.
            commit = commit or change.ts_capture_us
        pairs = self._pairs(self._known.get(*key), change, None)
        self._known.keep(*key, KeyState(row, message.offset, commit, snapshot=snapshot, pairs=pairs))

    def _checked(self, message: Message, row: RowEvidence, key: RowKey | None) -> Finding | None:
        """Decide how the last update of a key must be read, given the row that it must have produced."""
        known = None if key is None else self._known.get(*key)
        if known is None or known.if_wrong is None or self._may_postdate(known, row.change, None):
            return None
        x = self._hash(row.before())
        if x == known.row:
            self._known.confirm(known.reading, known.offset)
        elif x == known.if_wrong:
            return self._contrary(message, row, known.offset, known.reading, earlier=True)
        return None

    def _read_so_far(self, offset: int) -> str:
        """Describe earlier updates that were read as declared without confirmation."""
        open_ = [listed for listed in map(self._known.unconfirmed, _MEANINGS) if listed[0]]
        return " ".join(unconfirmed_text(listed, offset) for listed in open_ or [Unconfirmed().listed()])

    # -- state

    def _may_postdate(self, known: KeyState, change: RowChange, pair: Pair | None) -> bool:
        return known.may_postdate(change.ts_commit_us, pair, self._known.horizon)

    @staticmethod
    def _pairs(known: KeyState | None, change: RowChange, pair: Pair | None) -> frozenset[Pair]:
        new = frozenset(() if pair is None else (pair,))
        if known is None or known.commit != change.ts_commit_us:
            return new
        # Limited by count only, because without `es` all updates to a key have the same time.
        return known.pairs if len(known.pairs) >= SAME_SECOND else known.pairs | new

    def _announced(self, change: OtherChange) -> None:
        """Discard the known rows of the table in a DDL statement, because they may have changed.

        If the statement may affect other tables or contains rows, discard all known rows.
        """
        if change.ddl is not None:
            one = change.ddl.parsed and len(change.ddl.tables or ()) == 1 and not change.notes
            self._known.forget(change.table if one else None)


class NativeContinuityGuard(ContinuityGuard):
    """The check for one partition. It shares its state with the extension, which checks the messages that it has
    translated.

    Args:
        decode: the dialect's decoder, for the wording of findings.
    """

    def __init__(
        self,
        source: str,
        profile: str,
        remedy: str,
        chosen: Continuity,
        known: NativeKnownRows,
        decode: Callable[[Message], Outcome],
        *,
        complete: bool,
    ) -> None:
        super().__init__(source, profile, remedy, chosen, known, complete=complete)
        self._native = known
        self._decode = decode

    def inspect_taken(
        self, messages: Sequence[Message], taken: Sequence[TakenMessage]
    ) -> tuple[int, Sequence[Finding]]:
        """Inspect messages that the native path has translated, up to the first one with findings."""
        count, found = self._native.inspect(taken, self._forms.needs_current, self._forms.needs_legacy)
        if not found:
            return count, ()
        message = messages[count - 1]
        # The native path accepts only messages that consist of rows.
        changes = cast(Sequence[RowChange], cast(Changes, self._decode(message)).changes)
        findings: list[Finding | None] = []
        for number, contradiction in found:
            change = changes[number]
            if contradiction is None:
                findings.append(self._forms.take(message, change))
            else:
                findings.append(self._finding(message, self._row(change), contradiction))
        return count, [finding for finding in findings if finding is not None]


def continuity_guard(
    source: str, chosen: Continuity, options: Options, decode: Callable[[Message], Outcome], *, complete: bool
) -> ContinuityGuard:
    """Return a partition's check. If the extension is available, it has its own state."""
    profile, fatal = options.profile, chosen.action == "stop"
    if _native.absence() is not None:
        known = PlainKnownRows(chosen.keys, fatal=fatal)
        return ContinuityGuard(source, profile, remedy(options), chosen, known, complete=complete)
    from translator._native import rows

    native = rows.KnownRows(chosen.keys, fatal, KeyState)
    return NativeContinuityGuard(source, profile, remedy(options), chosen, native, decode, complete=complete)
