"""Compare a mirror with checksums that its source has sent through the replication tool.

A job at the source computes the checksums while no transaction can write the table. It inserts them into a table that
is also replicated (`checksum_job`). In each scope, the checksums therefore follow all the changes that they include,
and precede all later ones. As of the checksums, the table therefore has two kinds of rows:

- A row without a later change is the mirror's row.
- A row with later changes is the result of its earlier changes in the topic.

Each checksum also contains the sum of the rows' digests, each multiplied by a weight that depends on the key. If only
one row of a range differs, the two sums show which one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from cdc_core.reader import Change
from cdc_core.reader.kept_row import KeptRow
from cdc_core.statement_notes import statement_notes
from spark_sink.model.event import Key
from spark_sink.operations.checksum_runs import LEAST_DIGITS, WEIGHT_DIGITS, Checksum, ChecksumRun, summed
from spark_sink.operations.row_digests import (
    ComparedColumns,
    Digest,
    Digests,
    KeyTexts,
    key_hash,
    key_text,
    row_digests,
)
from spark_sink.operations.verify import ExpectedRows, Verified, cut, typed_values
from spark_sink.operations.verify_source import table_digests
from spark_sink.tables.protocols import MirrorTable


class LaterChanges:
    """Splits the changes of a table at a run. It applies the earlier changes, and keeps only the keys of the later
    ones.

    Args:
        places: the run's position by scope.
        expected: the rows of earlier changes.
    """

    def __init__(self, places: Mapping[str, str], expected: ExpectedRows) -> None:
        self._places = places
        self._expected = expected
        self.keys: set[Key] = set()
        """The rows with later changes."""
        self.unordered: set[Key] = set()
        """The rows that changed in a scope without a position for the run."""
        self.is_every_row = self.is_every_row_unordered = False

    def add(self, changes: Iterable[Change]) -> None:
        """Add changes in the order of their partitions."""
        for change in changes:
            place = self._places.get(change.event.pos_scope)
            changes_all = change.op == "t" or (change.kind != "row" and bool(statement_notes(change.event.notes)))
            if place is None and changes_all:
                self.is_every_row_unordered = True
            elif place is None:
                self.unordered.update(self._keys_of(change))
            elif change.event.pos < place:
                self._expected.add([change])
            elif changes_all:
                self.is_every_row = True
            else:
                self.keys.update(self._keys_of(change))

    def _keys_of(self, change: Change) -> list[Key]:
        try:
            keys = [self._expected.key(sent) for sent in (change.key, change.key_old)]
        except ValueError:
            return []  # the change is in quarantine
        return [tuple(key.values()) for key in keys if key is not None]


class _RowsAtRun(NamedTuple):
    """The rows as of a run.

    Args:
        keys: the key of each row that the table or the topic has ever had.
        doubtful: the rows that may have changed before or after the run.
        replayed: the rows in `rows` whose values come from the topic.
    """

    rows: Digests
    keys: Mapping[KeyTexts, Key]
    doubtful: set[KeyTexts]
    replayed: set[KeyTexts]


class RunComparison:
    """Compares a mirror with a run.

    Args:
        later: a topic that contains all changes in the mirror.
        complete: whether the topic still has the table's first change.
        cuts_times: whether the sink truncates times to the microsecond.
    """

    def __init__(
        self,
        table: MirrorTable,
        run: ChecksumRun,
        columns: ComparedColumns,
        expected: ExpectedRows,
        later: LaterChanges,
        *,
        complete: bool,
        cuts_times: bool,
    ) -> None:
        self._table = table
        self._run = run
        self._columns = columns
        self._expected = expected
        self._later = later
        self._complete = complete
        self._cuts_times = cuts_times

    def result(self) -> Verified:
        result = Verified(compared=self._run.total.rows)
        result.rejected, result.statements = self._expected.rejected, self._expected.statements
        at_run = self._rows_at_run()
        digits = max(map(len, self._run.ranges), default=LEAST_DIGITS)
        ranges: dict[str, Digests] = defaultdict(dict)
        for texts, digest in at_run.rows.items():
            ranges[key_hash(texts)[:digits]][texts] = digest
        doubtful = defaultdict[str, int](int)
        for texts in at_run.doubtful:
            doubtful[key_hash(texts)[:digits]] += 1
        for begin in sorted(ranges.keys() | self._run.ranges.keys()):
            rows = ranges.get(begin, {})
            difference = _checksum(rows).minus(self._run.ranges.get(begin, Checksum()))
            if difference == Checksum():
                continue
            if doubtful[begin]:
                result.inconclusive += doubtful[begin]
            else:
                self._sort_out(begin, difference, rows, at_run, result)
        return result

    def _rows_at_run(self) -> _RowsAtRun:
        mirrored, later = table_digests(self._table, self._columns), self._later
        wanted = self._expected.rows()
        known = {*wanted, *later.keys, *later.unordered}
        texts_of = dict(zip(known, self._key_texts(known), strict=True))
        texts_of |= {key: texts for texts, key in mirrored.keys.items()}
        late = set(texts_of) if later.is_every_row else later.keys
        unordered = set(texts_of) if later.is_every_row_unordered else later.unordered
        doubtful = unordered | {key for key in late if self._is_unknown(wanted.get(key))}
        replayed = late - doubtful
        rows = {texts: one for texts, one in mirrored.rows.items() if mirrored.keys[texts] not in replayed}
        from_topic = self._digests({key: wanted[key] for key in replayed & wanted.keys()})
        known_keys = {texts: key for key, texts in texts_of.items()}
        return _RowsAtRun({**rows, **from_topic}, known_keys, {texts_of[key] for key in doubtful}, set(from_topic))

    def _is_unknown(self, row: KeptRow | None) -> bool:
        """Return whether the topic fails to show the row's state at the time of the run."""
        if row is None:
            return not self._complete
        return row.incomplete or self._expected.is_disputed(row)

    def _key_texts(self, keys: Iterable[Key]) -> list[KeyTexts]:
        texts = [key_text(one) for one in self._columns.key]
        return [tuple(text(part) for text, part in zip(texts, key, strict=True)) for key in keys]

    def _digests(self, rows: Mapping[Key, KeptRow]) -> Digests:
        live = {key: row.values for key, row in rows.items() if row.values is not None}
        values = {one.name: [key[n] for key in live] for n, one in enumerate(self._columns.key)}
        for one in self._columns.values:
            sent = [row.get(one.sent_as) for row in live.values()]
            values[one.name] = typed_values(cut(sent, one.type) if self._cuts_times else sent, one.type)
        names = {one: one.name for one in (*self._columns.key, *self._columns.values)}
        return {texts: Digest(1, digest) for texts, digest in row_digests(self._columns, names, values)}

    def _sort_out(self, begin: str, difference: Checksum, rows: Digests, at_run: _RowsAtRun, result: Verified) -> None:
        """Add the row that differs to the result or, if there are several, add their range."""
        marks = self._table.marks({at_run.keys[texts] for texts in rows})
        incomplete = sum(mark.incomplete for mark in marks.values())
        found = _only_row(begin, difference, rows, at_run.keys)
        replayed = rows.keys() & at_run.replayed
        # A command such as `sweep` may have deleted a replayed row before the run, which the topic does not show.
        if difference.rows > 0 and replayed and (found is None or found.key in replayed):
            result.inconclusive += difference.rows
        elif found is None and incomplete:
            result.declared += incomplete
        elif found is None:
            result.ranges.append((begin,))
        elif (key := at_run.keys.get(found.key)) in marks and marks[key].incomplete:
            result.declared += 1
        else:
            getattr(result, found.kind).append(found.key)


class _Found(NamedTuple):
    """A row that differs. `kind` is the name of the list in the result."""

    kind: str
    key: KeyTexts


def _only_row(begin: str, difference: Checksum, rows: Digests, known: Iterable[KeyTexts]) -> _Found | None:
    """Return the row that differs, if a single row can explain the difference."""
    count, total, weighted = difference
    if count not in _KINDS or not total or weighted % total:
        return None
    weight = weighted // total
    if not 0 <= weight < 16**WEIGHT_DIGITS:
        return None
    digits = f"{weight:0{WEIGHT_DIGITS}x}"
    among = known if count < 0 else rows
    keys = [texts for texts in among if key_hash(texts).startswith(digits)] if digits.startswith(begin) else []
    if count < 0 and total < 0 and digits.startswith(begin):
        return _Found("missing", keys[0] if len(keys) == 1 else (f"key hash {digits}",))
    if len(keys) != 1:
        return None
    (key,) = keys
    if count > 0 and rows[key].total != total * rows[key].rows:
        return None
    return _Found("duplicated" if rows[key].rows > 1 else _KINDS[count], key)


_KINDS = {-1: "missing", 0: "different", 1: "extra"}


def _checksum(rows: Digests) -> Checksum:
    return summed(Checksum(*one, one.total * int(key_hash(key)[:WEIGHT_DIGITS], 16)) for key, one in rows.items())
