"""Compare a mirror with the changes in the canonical topic. The reader for consumers (`cdc_core.reader`) applies these
changes again. Apart from converting values to column types, it shares no code with the part of the sink that writes
tables.

If the topic no longer has the first changes of a table, rows without later changes cannot be compared. In all other
rows, only the columns that later changes wrote are compared.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from types import MappingProxyType
from typing import Any

import msgspec

from cdc_core.envelope import ChangeEvent
from cdc_core.reader import ApplyError, Change, DictStore, KeptRow, apply
from cdc_core.table_id import TableId
from spark_sink.apply.table_commits import commit_app
from spark_sink.errors import ConfigError, FatalError
from spark_sink.events.arrow_values import column, image, image_value
from spark_sink.events.erased_keys import ErasedKeys, digest_of
from spark_sink.events.shared_tables import SEVERAL
from spark_sink.model.event import Key
from spark_sink.operations.row_digests import UNFIT
from spark_sink.schema.business_view import versions
from spark_sink.schema.evolution import TableColumn, TableShape
from spark_sink.tables.formats import FormatTables
from spark_sink.tables.protocols import MirrorTable

# The number of rows that are compared at a time.
_ROWS = 50_000

# The digits after the microsecond.
_FINE = re.compile(r"(\.\d{6})\d+(?=Z?$)")


class Verified(msgspec.Struct):
    """The result of a comparison.

    Args:
        compared: the number of rows in the table that were compared.
        missing: the keys of rows that only the topic has.
        extra: the keys of rows that only the table has.
        different: the keys of rows with different values. `columns` has the number of differences in each column.
        duplicated: the keys that occur in several rows of the table.
        ranges: the ranges in which several rows differ from a source's checksums. Each is identified by the first
            digits of its key hashes.
        declared: the number of differing rows that are marked as incomplete.
        rejected: the number of changes that cannot be applied, or whose key the table cannot store. The sink moves them
            to quarantine.
        inconclusive: the number of differing rows that depend on the order in which the sink received the changes of
            different partitions. In a comparison with the source, this is the number of rows that changed during the
            comparison.
        unknown: the number of rows in the table whose changes the topic no longer has.
        statements: the number of statements in the topic that changed rows without sending changes.
        unreadable: the number of records in the topic that are not changes. The sink moves them to quarantine.
    """

    compared: int = 0
    missing: list[Key] = []
    extra: list[Key] = []
    different: list[Key] = []
    columns: Counter[str] = msgspec.field(default_factory=Counter)
    duplicated: list[Key] = []
    ranges: list[Key] = []
    declared: int = 0
    rejected: int = 0
    inconclusive: int = 0
    unknown: int = 0
    statements: int = 0
    unreadable: int = 0

    @property
    def is_equal(self) -> bool:
        return not (self.missing or self.extra or self.different or self.duplicated or self.ranges)

    @property
    def left_out(self) -> int:
        """The number of rows for which the comparison is inconclusive."""
        return self.declared + self.inconclusive + self.unknown


def change_of(event: ChangeEvent) -> Change:
    """Return the change in an event, with the values that the sink reads from its images.

    Raises:
        ValueError: an image is not a JSON object.
    """
    table = None if event.table is None else TableId(event.source, event.db, event.schema, event.table)
    texts = (event.key, event.key_old, event.before, event.after)
    return Change(event, table, None, *(None if text is None else image(text) for text in texts))


def as_mirror(opened: object, name: str) -> MirrorTable:
    """Return an opened table, if it is a mirror.

    Raises:
        ConfigError: it is not.
    """
    if not isinstance(opened, MirrorTable):
        raise ConfigError(f"{name} is not a mirror (tables.modes); only the rows of a mirror can be compared")
    return opened


def after_batch(tables: FormatTables, name: str, version: int, apps: Iterable[str]) -> MirrorTable:
    """Return the mirror of one source table after a batch.

    Args:
        version: the table's version after the batch. If no later batch has written the table, this includes later
            changes by other programs.
        apps: the apps of all commits that apply events; see `ControlTables.apps`.

    Raises:
        ConfigError: the table has another mode, or several source tables share it.
    """
    then, now = as_mirror(tables.at(name, version), name), tables.open(name)
    if then.shape.table.source == SEVERAL:
        raise ConfigError(f"{name} is shared by several source tables (tables.shared), so it cannot be compared")
    if not isinstance(now, MirrorTable) or then.shape.built != now.shape.built:
        return then
    markers = [commit_app(app, name, now.shape) for app in apps]
    return now if all(now.applied(marker) == then.applied(marker) for marker in markers) else then


class ExpectedRows:
    """The rows of a table, as the changes of its source table define them.

    Args:
        shape: the table's shape. A row has the same key as in the table.
        erased: the table's erased keys.
    """

    def __init__(self, shape: TableShape, erased: ErasedKeys = MappingProxyType({})) -> None:
        self.source = shape.table
        self.statements = 0
        self.rejected = 0
        self._shape = shape
        self._erased = {key.digest: offsets for key, offsets in erased.items() if key.columns == shape.key}
        self._store = DictStore()
        self._scopes: set[str] = set()
        self._orders_matter = False
        self._named: tuple[str, ...] | None = None

    def add(self, changes: Iterable[Change]) -> None:
        """Apply the table's changes, in the order of their partitions. Count changes that the sink rejects."""
        for change in changes:
            try:
                done = apply([self._typed(change)], self._store)
            except (ApplyError, ValueError):
                self.rejected += 1
                continue
            self.statements += len(done.not_applied)
            self._scopes.add(change.event.pos_scope)
            self._orders_matter |= change.op == "t" or done.filled > 0

    def _typed(self, change: Change) -> Change:
        """Return the change with the keys that its rows have in the table.

        Raises:
            ValueError: the table cannot store the key, or has another key.
        """
        return msgspec.structs.replace(change, key=self.key(change.key), key_old=self.key(change.key_old))

    def key(self, sent: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
        """Return a key as the table stores it.

        Raises:
            ValueError: the table cannot store the key, or has another key.
        """
        if sent is None:
            return None
        if sent.keys() != set(self._shape.key_sent_as):
            self._named = tuple(sent)
            raise ValueError("another key")
        names = zip(self._shape.key_sent_as, self._shape.key, strict=True)
        key = {name: typed_values([sent[name]], self._shape.types[stored])[0] for name, stored in names}
        # NaN is not a key.
        if any(part is None or part is UNFIT or part != part for part in key.values()):
            raise ValueError("a key that the table cannot store")
        return key

    def rows(self) -> dict[Key, KeptRow]:
        """Return all rows, including deleted ones.

        Raises:
            FatalError: all changes have another key.
        """
        keys = list(self._store.keys(self.source))
        if self._named is not None and not keys:
            sent, stored = " and ".join(self._named) or "no column", " and ".join(self._shape.key_sent_as)
            raise FatalError(
                f"the changes identify rows by {sent}, but the table by {stored} (tables.keys), so its rows cannot be "
                "compared"
            )
        return {key: row for key in keys if (row := self._store.load(self.source, key)) is not None}

    def without_erased(self, change: Change, partition: int, offset: int) -> Change | None:
        """Return a change as the table has it. The part that affects an erased row is removed.

        If nothing is left, return None.

        Args:
            partition, offset: the position of the change's record in the canonical topic.
        """
        if not self._erased:
            return change
        key, old = (self._is_erased(sent, partition, offset) for sent in (change.key, change.key_old))
        if not key and not old:
            return change
        if change.key_old is None or (key and old):
            return None
        if old:
            return msgspec.structs.replace(change, key_old=None)
        event = msgspec.structs.replace(change.event, op="d", after=None)
        return msgspec.structs.replace(change, event=event, key=change.key_old, key_old=None, after=None)

    def _is_erased(self, sent: Mapping[str, Any] | None, partition: int, offset: int) -> bool:
        try:
            key = self.key(sent)
        except ValueError:
            return False
        ends = self._erased.get(digest_of(tuple(key.values())), {}) if key is not None else {}
        return offset < ends.get(partition, 0)

    def is_disputed(self, row: KeptRow | None) -> bool:
        """Return whether a row depends on the order in which the sink received the changes of several scopes."""
        if self._orders_matter and len(self._scopes) > 1:
            return True
        return row is not None and len(row.progress.positions) > 1


def compare(table: MirrorTable, expected: ExpectedRows, *, complete: bool, cuts_times: bool) -> Verified:
    """Compare the table's rows with the expected rows.

    Args:
        complete: whether the topic still has the table's first change.
        cuts_times: whether the sink truncates times to the microsecond.

    Raises:
        FatalError: the table has another key.
    """
    wanted, counts = expected.rows(), table.live_keys()
    found, live = counts.keys(), {key for key, row in wanted.items() if row.values is not None}
    result = Verified(statements=expected.statements, rejected=expected.rejected)
    result.duplicated = sorted((key for key, count in counts.items() if count > 1), key=repr)
    rest = found - live
    extra = rest if complete else rest & wanted.keys()
    result.unknown = len(rest) - len(extra)
    for keys, into in ((live - found, result.missing), (extra, result.extra)):
        into += sorted((key for key in keys if not expected.is_disputed(wanted.get(key))), key=repr)
        result.inconclusive += len(keys) - len(into)
    for chunk in chunks(sorted(live & found, key=repr)):
        _compare_rows(table, {key: wanted[key] for key in chunk}, expected, result, cuts_times)
    return result


def _compare_rows(
    table: MirrorTable, wanted: Mapping[Key, KeptRow], expected: ExpectedRows, result: Verified, cuts_times: bool
) -> None:
    stored, marks = table.rows(set(wanted)), table.marks(set(wanted))
    differing: dict[Key, list[str]] = {}
    apart = {*table.shape.foreign, *table.shape.key}
    columns = versions([one for one in table.shape.columns if one.name not in apart])
    for name, group in columns.items():
        for key in _differing(name, group, wanted, stored, cuts_times):
            differing.setdefault(key, []).append(name)
    known = {*columns, *table.shape.key_sent_as}
    for key, row in wanted.items():
        lacking = [name for name, value in (row.values or {}).items() if value is not None and name not in known]
        if lacking:
            differing.setdefault(key, []).extend(lacking)
    result.compared += len(wanted)
    for key, names in differing.items():
        if marks[key].incomplete:
            result.declared += 1
        elif expected.is_disputed(wanted[key]):
            result.inconclusive += 1
        else:
            result.different.append(key)
            result.columns.update(names)


def _differing(
    name: str,
    group: Sequence[TableColumn],
    wanted: Mapping[Key, KeptRow],
    stored: Mapping[Key, Mapping[str, Any]],
    cuts_times: bool,
) -> Iterator[Key]:
    """Yield the rows whose values in a source column differ.

    A column that no change wrote is compared only if the row is complete in the topic.
    """
    rows = {key: row.values or {} for key, row in wanted.items()}
    keys = [key for key, values in rows.items() if name in values or not wanted[key].incomplete]
    sent = [rows[key].get(name) for key in keys]
    found = [{one: stored[key][one.name] for one in group if stored[key][one.name] is not None} for key in keys]
    expected = {one: iter(typed_values(cut(sent, one.type) if cuts_times else sent, one.type)) for one in group}
    for key, value, versions_with_value in zip(keys, sent, found, strict=True):
        typed = {one: next(values) for one, values in expected.items()}
        same = {image_value(typed[one]) == image_value(value) for one, value in versions_with_value.items()}
        if (value is None) != (not same) or (value is not None and same != {True}):
            yield key


def typed_values(images: Sequence[Any], sql: str) -> list[Any]:
    """Convert values from the format of images to a column's type. A value that the column cannot store becomes
    UNFIT.
    """
    try:
        found: list[Any] = column(images, sql).to_pylist()
    except ValueError:
        if len(images) == 1:
            return [UNFIT]
        found = [typed for one in images for typed in typed_values([one], sql)]
    return found


def cut(images: Sequence[Any], sql: str) -> Sequence[Any]:
    """Truncate times to the microsecond."""
    if not sql.startswith("timestamp"):
        return images
    return [_FINE.sub(r"\1", one) if isinstance(one, str) else one for one in images]


def chunks(keys: Iterable[Key]) -> Iterator[list[Key]]:
    left = iter(keys)
    while chunk := list(islice(left, _ROWS)):
        yield chunk
