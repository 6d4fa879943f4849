"""The fields that all changes in a message share: operation, table, writer, times, positions (§1)."""

from __future__ import annotations

from msgspec import Struct, structs

from cdc_core.envelope import Tx
from translator.dialects._json import JsonObject, field
from translator.dialects.canal.profile import PROFILES
from translator.dialects.canal.tidb import Tidb
from translator.dialects.canal.time_units import END, notes_on, time_us
from translator.dialects.canal.variant import Era, EraOf, era_by_marks
from translator.errors import ErrorCode, MessageError
from translator.message import TableName, Writer

DBMS = "mysql"


class Head(Struct, frozen=True, gc=False):
    """The message fields that do not depend on its rows. An empty name or text becomes None."""

    type: str
    db: str | None
    table: TableName | None
    sql: str | None
    era: Era
    ts_commit_us: int | None
    ts_capture_us: int | None
    pos_native: str | None
    tx: Tx | None
    tidb: Tidb | None = None
    time_notes: tuple[str, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """The notes that apply to the whole message."""
        return (*self.era.notes, *self.time_notes)

    @property
    def key_only(self) -> bool:
        """Return whether the images contain only the key, because the row was too large (§10)."""
        return self.tidb is not None and self.tidb.only_handle_key

    def in_table(self, table: TableName | None) -> Head:
        """Return the head of a message without a table name, using the table that is configured for its topic."""
        if self.table is not None or table is None:
            return self
        named = table if table.db is not None else TableName(self.db, None, table.table)
        return structs.replace(self, table=named, db=named.db)

    @property
    def declared_writer(self) -> Writer:
        """Return the writer of a message whose shape reveals nothing beyond the declaration."""
        return Writer(self.era.variant, self.era.basis, DBMS)


def read_head(type_: str, body: JsonObject, tidb: Tidb | None, era_of: EraOf, profile: str) -> Head:
    """Return the head of a message. `id` restarts and is shared (§5). It is therefore stored as a token, and not used
    for ordering. The same applies to TiDB's commit time.
    """
    es, ts = _time(body, "es"), _time(body, "ts")
    number = field(body, "id", int, "$", optional=True)
    native = number if tidb is None or tidb.commit_ts is None else tidb.commit_ts
    gtid = field(body, "gtid", str, "$", optional=True)
    capture = time_us(ts)
    era = era_by_marks(era_of(None if capture is None else capture // 1000), profile, type_, body)
    sql = field(body, "sql", str, "$", optional=True)
    if not PROFILES[profile].alibaba:
        gtid = None
    notes = notes_on({"es": es, "ts": ts})
    return Head(
        type_,
        _db(body),
        table_of(body),
        sql or None,
        era,
        time_us(es),
        capture,
        None if native is None else str(native),
        Tx(gtid) if gtid else None,
        tidb,
        notes,
    )


def table_of(body: JsonObject) -> TableName | None:
    """Return the table that a message contains."""
    table = field(body, "table", str, "$", optional=True)
    return TableName(_db(body), None, table) if table else None


def _db(body: JsonObject) -> str | None:
    return field(body, "database", str, "$", optional=True) or None


def _time(body: JsonObject, name: str) -> int | None:
    value: int | None = field(body, name, int, "$", optional=True)
    if value is not None and not 0 <= value < END:
        reason = f"{name} is not a time in seconds, milliseconds or microseconds since 1970; expected 0 to {END - 1}"
        raise MessageError(ErrorCode.INVALID_FIELD, reason, path=f"$.{name}")
    return value
