"""Decode one message: determine the type of its record, and handle the record accordingly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from translator.dialects.dts_avro.envelope_fields import Head, head_of, time_us
from translator.dialects.dts_avro.names import place
from translator.dialects.dts_avro.native_rows import DtsAvroNativeRows
from translator.dialects.dts_avro.options import Options
from translator.dialects.dts_avro.reader import RecordReader
from translator.dialects.dts_avro.record import DtsRecord
from translator.dialects.dts_avro.rows import ROWS, RowReader
from translator.dialects.dts_avro.statement import STATEMENTS, statement
from translator.errors import FatalError
from translator.message import Changes, Message, OtherChange, Outcome, Setup, Skip, TableName

MOCK_BYTES = 2
"""A value of at most this many bytes only advances the tracking service's offset (§2)."""

TRANSACTIONS: Mapping[str, str] = {
    "BEGIN": "TRANSACTION_BEGIN",
    "COMMIT": "TRANSACTION_COMMIT",
    "ROLLBACK": "TRANSACTION_ROLLBACK",
    "ABORT": "TRANSACTION_ABORT",
}
"""Transaction markers, and the notes that distinguish them."""

PROGRESS = frozenset({"HEARTBEAT", "CHECKPOINT"})

SKIPPED: Mapping[str, str] = {
    "FILL": "fill",
    "FINISH": "finish",
    "CONTROL": "control",
    "RDB": "rdb",
    "NOOP": "noop",
}
"""Operations without content, whatever the length of the record, each with the reason under which it is counted."""


class DtsAvro:
    """Decodes Alibaba DTS records in bare Avro (docs/formats/dts_avro.md)."""

    name = "dts_avro"

    def __init__(self, setup: Setup, options: Options) -> None:
        self._options = options
        self._limits = setup.limits
        self._reader = RecordReader(setup.limits)
        self._rows = RowReader(setup, self._options)

    def decode(self, message: Message) -> Outcome:
        """Return the only change in a record, or the reason to skip the record."""
        value = message.value
        if value is None:
            return Skip("tombstone")
        if len(value) <= MOCK_BYTES:
            return Skip("empty")
        record = self._reader.read(value)
        operation = record.operation
        if operation in ROWS:
            return Changes([self._rows.change(record)])
        if operation in SKIPPED:
            return Skip(SKIPPED[operation])
        if operation in TRANSACTIONS and not self._options.transactions:
            return Skip("transaction_mark")
        head = head_of(record, extras=self._options.extras)
        if operation in STATEMENTS:
            return Changes(statement(record, head, whole_tables=not self._options.logical_names))
        return Changes([_MARKS[operation](record, head)])

    def native_rows(self) -> DtsAvroNativeRows:
        """Return what the native path needs. It accepts rows with all options."""
        return DtsAvroNativeRows(self._options, self._limits, self._reader.read, self._rows)

    def tables(self, message: Message) -> Sequence[TableName]:
        """Return the table of a record whose columns or values cannot be read.

        Raises:
            MessageError: the record itself cannot be read, or contains no table name.
        """
        return [self._rows.table(self._reader.read(message.value or b""))]

    def learn(self, key: str, document: bytes) -> object:
        """Learn nothing, because every record describes itself."""
        raise FatalError(f"{self.name} does not use metadata")


def _transaction(record: DtsRecord, head: Head) -> OtherChange:
    return _mark("tx", record, head, head.ts_commit_us, [TRANSACTIONS[record.operation]])


def _progress(record: DtsRecord, head: Head) -> OtherChange:
    """Return the watermark for a heartbeat. While the source is idle, only the heartbeat's last field changes (§6)."""
    times = [time for time in (head.ts_commit_us, time_us(record.born_timestamp)) if time is not None]
    return _mark("watermark", record, head, max(times, default=None), None)


def _mark(kind: str, record: DtsRecord, head: Head, ts_commit_us: int | None, notes: list[str] | None) -> OtherChange:
    where = place(record.object_name)
    return OtherChange(
        kind,
        head.writer,
        where.table,
        where.db,
        ts_commit_us=ts_commit_us,
        ts_capture_us=head.ts_capture_us,
        pos_native=head.pos_native,
        tx=head.tx,
        notes=notes,
        ext=head.ext,
    )


_MARKS = {
    **dict.fromkeys(TRANSACTIONS, _transaction),
    **dict.fromkeys(PROGRESS, _progress),
}

OPERATIONS = frozenset({*ROWS, *SKIPPED, *STATEMENTS, *_MARKS})
