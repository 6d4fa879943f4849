"""The continuity check: all updates that were read from a partition must be consistent with each other (§6.5, C and D).

An UPDATE with two full images does not show which of them is the before image. The declaration decides, and the rows
show when it is wrong: the row before a change must be what the key's last change produced. The check does not change
events.

Some contradictions are only apparent: after a restart, DTS sends earlier messages again. Therefore, a message only
counts as evidence if it is later at the source than the message with which it is compared, or if it is from the same
second and was not seen before.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import TypeAlias

from translator._native.layout import TakenMessage
from translator.dialects.canal.evidence import DecodedRow, RowEvidence, RowKey, swapped, taken_rows
from translator.dialects.canal.forms import DeclaredForms
from translator.dialects.canal.key_states import SAME_SECOND, KeyState, Pair
from translator.dialects.canal.options import Continuity, Options
from translator.dialects.canal.profile import PROFILES
from translator.dialects.canal.unconfirmed import Unconfirmed
from translator.errors import quote
from translator.message import Change, Finding, Message, OtherChange, RowChange, TableName

_COLUMNS = 20
"""Maximum number of columns in an error."""

_Left: TypeAlias = tuple[RowKey, int | None]
"""A key, and the hash of its row."""

_DATA_AFTER = "data contains the row after the change and old the row before it"
_DATA_BEFORE = "data contains the row before the change and old the row after it"
_OTHER = {_DATA_AFTER: _DATA_BEFORE, _DATA_BEFORE: _DATA_AFTER}


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
        complete: whether an image contains all of its row's columns.
    """

    def __init__(self, source: str, profile: str, remedy: str, chosen: Continuity, *, complete: bool) -> None:
        self._source = source
        self._remedy = remedy
        self._keys = chosen.keys
        self._fatal = chosen.action == "stop"
        self._complete = complete
        self._known: OrderedDict[RowKey, KeyState] = OrderedDict()
        self._unconfirmed = {_DATA_AFTER: Unconfirmed(), _DATA_BEFORE: Unconfirmed()}
        self.contradictions = 0
        self._horizon, self._anew = -1, True
        self._forms = DeclaredForms(source, profile, fatal=self._fatal, earlier=self._read_so_far)

    def inspect(self, message: Message, changes: Sequence[Change]) -> list[Finding]:
        """Return the findings about the partition's next message."""
        return self._inspect(
            message,
            [
                DecodedRow(change, complete=self._complete) if isinstance(change, RowChange) else change
                for change in changes
            ],
        )

    def inspect_taken(self, message: Message, taken: TakenMessage) -> list[Finding]:
        """Return the findings about the partition's next message, which the native path translated."""
        return self._inspect(message, taken_rows(taken))

    def _inspect(self, message: Message, changes: Sequence[RowEvidence | OtherChange]) -> list[Finding]:
        findings: list[Finding | None] = []
        undecided = False
        if message.offset == 0:
            self._anew = False  # no earlier message in the partition was missed
        for n, change in enumerate(changes):
            if isinstance(change, OtherChange):
                self._announced(change)
                continue
            if change.op == "t":
                self._forget(change.table)
                continue
            self._begin(change)
            findings.append(self._forms.take(message, change))
            if change.op == "u" and change.row == 0:
                # A message's shape applies to all its rows. After the first row, `old` can list unchanged columns.
                undecided = all(map(_has_two_images, changes[n : n + change.rows]))
            images = (change.before(), change.after()) if undecided and change.op == "u" else None
            if images is not None and images[0] != images[1]:
                findings.append(self._undecided(message, change, *images))
            else:
                findings.append(self._decided(message, change))
        return [finding for finding in findings if finding is not None]

    def missed(self) -> None:
        """Note that one of the partition's messages has no events, so that the rows that it changed are unknown."""
        self._forget(None)

    # -- updates that can be read in two ways

    def _undecided(self, message: Message, change: RowEvidence, x: int | None, y: int | None) -> Finding | None:
        reading = _DATA_BEFORE if swapped(change) else _DATA_AFTER
        key, key_before = change.key(), change.key_before()
        unconfirmed = self._unconfirmed[reading]
        unconfirmed.add(message.offset)
        if key is None or key_before is None:
            # A key with NULL does not identify a row. The row with the other key did change, but the new values are
            # unknown.
            for named in filter(None, (key, key_before)):
                self._leave(named, message, change, None)
            return None
        if key != key_before:
            return self._key_changed(message, change, reading, (key_before, x), (key, y))
        pair, known = frozenset((x, y)), self._known.get(key)
        now = KeyState(y, message.offset, change.ts_commit_us, x, reading, pairs=self._pairs(known, change, pair))
        finding = None
        if known is not None and not self._may_postdate(known, change, pair):
            follows = x == known.row
            reversed_ = y in (known.row, known.if_wrong)
            if follows and y != known.if_wrong:
                self._confirm(known.reading, known.offset)
                self._confirm(reading, message.offset)
                now.if_wrong = None
            elif not follows and reversed_:
                now.row, now.if_wrong = x, None
                finding = self._contrary(message, change, known.offset, reading)
            elif not follows and x == known.if_wrong:
                now.if_wrong = None
                finding = self._contrary(message, change, known.offset, known.reading, earlier=True)
        self._keep(key, now)
        return finding

    def _key_changed(
        self, message: Message, change: RowEvidence, reading: str, from_: _Left, to: _Left
    ) -> Finding | None:
        """Check the rows for both keys: the old key must have had the row before, and the new key no row at all."""
        (key_before, x), (key, y) = from_, to
        old, new = self._known.get(key_before), self._known.get(key)
        pair = frozenset((x, y))
        follows = old is not None and x == old.row and not self._may_postdate(old, change, pair)
        reversed_ = new is not None and y in (new.row, new.if_wrong) and not self._may_postdate(new, change, pair)
        pairs = self._pairs(old, change, pair) | self._pairs(new, change, pair)
        left_before, left, finding = None, None, None
        if old is not None and follows and not reversed_:
            self._confirm(old.reading, old.offset)
            self._confirm(reading, message.offset)
            left = y
        elif new is not None and reversed_ and not follows:
            left_before = x
            finding = self._contrary(message, change, new.offset, reading)
        for at, row in ((key_before, left_before), (key, left)):
            self._keep(at, KeyState(row, message.offset, change.ts_commit_us, pairs=pairs))
        return finding

    def _contrary(
        self, message: Message, change: RowEvidence, evidence: int, reading: str, *, earlier: bool = False
    ) -> Finding | None:
        """Return a text with position and direction, but never row contents. If the check only warns, its warnings
        become less and less frequent.
        """
        self.contradictions += 1
        if not self._fatal and self.contradictions.bit_count() > 1:
            return None
        table, differ = change.table, change.differing()
        names = ", ".join(map(quote, differ[:_COLUMNS])) + (", …" if len(differ) > _COLUMNS else "")
        differ_text = f"The two images differ in {names}. " if names else ""
        wrong = evidence if earlier else message.offset
        text = (
            f"canal: source {self._source}, table {quote(f'{table.db}.{table.table}', 200)}, topic {message.topic}, "
            f"partition {message.partition}: the change at offset {message.offset} (row {change.row}) contradicts "
            f"the change at offset {evidence}. As declared, in the message at offset {wrong} {reading}; according "
            f"to the other message, {_OTHER[reading]}. "
            f"{differ_text}{self._unconfirmed[reading].text(message.offset)} Correct {self._remedy}, then translate "
            "these offsets again"
        )
        return Finding(text, self._fatal)

    # -- changes that can be read in only one way

    def _decided(self, message: Message, change: RowEvidence) -> Finding | None:
        """Use an image whose meaning is certain. Such an image shows how the key's last update must be read, and which
        row resulted from that update.
        """
        finding = None
        key = change.key()
        if change.has_before:
            key_before = change.key_before()
            finding = self._checked(message, change, key_before)
            if key_before is not None and key_before != key:
                self._leave(key_before, message, change, None)
        if key is not None:
            self._leave(key, message, change, change.after())
        return finding

    def _leave(self, key: RowKey, message: Message, change: RowEvidence, row: int | None) -> None:
        """Set a key's current row."""
        commit, snapshot = change.ts_commit_us, change.op == "r"
        if snapshot:
            # A full load overlaps with the changes that follow, so a row in it can be older than its message, but not
            # newer.
            commit = commit or change.ts_capture_us
        pairs = self._pairs(self._known.get(key), change, None)
        self._keep(key, KeyState(row, message.offset, commit, snapshot=snapshot, pairs=pairs))

    def _checked(self, message: Message, change: RowEvidence, key: RowKey | None) -> Finding | None:
        """Decide how a key's last update must be read, based on the row that must have resulted from it."""
        known = None if key is None else self._known.get(key)
        if known is None or known.if_wrong is None or self._may_postdate(known, change, None):
            return None
        row = change.before()
        if row == known.row:
            self._confirm(known.reading, known.offset)
        elif row == known.if_wrong:
            return self._contrary(message, change, known.offset, known.reading, earlier=True)
        return None

    def _read_so_far(self, offset: int) -> str:
        """Describe earlier updates that were read as declared without confirmation."""
        open_ = [unconfirmed for unconfirmed in self._unconfirmed.values() if unconfirmed]
        return " ".join(unconfirmed.text(offset) for unconfirmed in open_ or [Unconfirmed()])

    # -- state

    def _confirm(self, reading: str, offset: int) -> None:
        if reading == _DATA_BEFORE:
            # Only an instance created before the swap writes updates of this kind. An instance switches format only
            # once, from legacy to current (C.1), so everything earlier is legacy.
            self._unconfirmed[reading].confirm_until(offset)
        elif reading:
            self._unconfirmed[reading].confirm(offset)

    def _keep(self, key: RowKey, known: KeyState) -> None:
        self._known[key] = known
        self._known.move_to_end(key)
        if len(self._known) > self._keys:
            _, forgotten = self._known.popitem(last=False)
            self._horizon = max(self._horizon, forgotten.commit or -1)

    def _begin(self, change: RowEvidence) -> None:
        """Record the time of the first change since the state was reset, for all tables or for one table."""
        if self._anew and change.ts_commit_us is not None:
            self._horizon, self._anew = max(self._horizon, change.ts_commit_us), False

    def _may_postdate(self, known: KeyState, change: RowEvidence, pair: Pair | None) -> bool:
        return known.may_postdate(change.ts_commit_us, pair, self._horizon)

    @staticmethod
    def _pairs(known: KeyState | None, change: RowEvidence, pair: Pair | None) -> frozenset[Pair]:
        new = frozenset(() if pair is None else (pair,))
        if known is None or known.commit != change.ts_commit_us:
            return new
        # Limited by count only, because without `es` all updates to a key have the same time.
        return known.pairs if len(known.pairs) >= SAME_SECOND else known.pairs | new

    def _announced(self, change: OtherChange) -> None:
        """Discard the known rows of the table in a DDL statement, because they may have changed.

        If the statement can affect other tables or contains rows, discard all known rows.
        """
        if change.ddl is not None:
            one = change.ddl.parsed and len(change.ddl.tables or ()) == 1 and not change.notes
            self._forget(change.table if one else None)

    def _forget(self, table: TableName | None) -> None:
        self._anew = True
        for key in [key for key in self._known if table is None or key[0] == table]:
            del self._known[key]


def _has_two_images(change: RowEvidence | OtherChange) -> bool:
    return not isinstance(change, OtherChange) and change.has_two_images
