"""The fields that all changes of one message share: operation, table, writer, times, positions (§1)."""

from __future__ import annotations

from msgspec import Struct, structs

from cdc_core.envelope import Tx
from translator.dialects._json import JsonObject, field
from translator.dialects.canal.profile import PROFILES
from translator.dialects.canal.tidb import Tidb
from translator.dialects.canal.variant import Era, EraOf, era_by_marks
from translator.errors import ErrorCode, MessageError
from translator.message import TableName, Writer

DBMS = "mysql"
MAX_MS = (2**63 - 1) // 1000


class Head(Struct, frozen=True, gc=False):
    """The members of a message that do not depend on its rows. An empty name or text is None: there is none."""

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

    @property
    def key_only(self) -> bool:
        """Return whether the images hold the key alone, as the row was too large (§10)."""
        return self.tidb is not None and self.tidb.only_handle_key

    def in_table(self, table: TableName | None) -> Head:
        """The head of a message that names no table, and is of this one by its topic."""
        if self.table is not None or table is None:
            return self
        named = table if table.db is not None else TableName(self.db, None, table.table)
        return structs.replace(self, table=named, db=named.db)

    @property
    def declared_writer(self) -> Writer:
        """The writer where the shape of the message adds nothing to the declaration."""
        return Writer(self.era.variant, self.era.basis, DBMS)


def read_head(type_: str, body: JsonObject, tidb: Tidb | None, era_of: EraOf, profile: str) -> Head:
    """`id` restarts and is shared (§5): it is kept as a token, and orders nothing. So is TiDB's commit time."""
    es, ts = _milliseconds(body, "es"), _milliseconds(body, "ts")
    number = field(body, "id", int, "$", optional=True)
    native = number if tidb is None or tidb.commit_ts is None else tidb.commit_ts
    gtid = field(body, "gtid", str, "$", optional=True)
    era, sql = era_by_marks(era_of(ts), profile, type_, body), field(body, "sql", str, "$", optional=True)
    if not PROFILES[profile].alibaba:
        gtid = None
    return build_head(type_, _db(body), table_of(body), sql, era, es, ts, native, gtid, tidb)


def build_head(
    type_: str,
    db: str | None,
    table: TableName | None,
    sql: str | None,
    era: Era,
    es: int | None,
    ts: int | None,
    native: int | None,
    gtid: str | None,
    tidb: Tidb | None = None,
) -> Head:
    """Build the head of members that were read and checked: both ways of reading a message meet here.

    Args:
        es, ts: milliseconds since 1970, 0 to `MAX_MS`.
        native: the writer's own number of the message.
        gtid: None where the profile's `gtid` does not name the transaction.
    """
    return Head(
        type_,
        db,
        table,
        sql or None,
        era,
        None if es is None else es * 1000,
        None if ts is None else ts * 1000,
        None if native is None else str(native),
        Tx(gtid) if gtid else None,
        tidb,
    )


def table_of(body: JsonObject) -> TableName | None:
    """The table that a message names."""
    table = field(body, "table", str, "$", optional=True)
    return TableName(_db(body), None, table) if table else None


def _db(body: JsonObject) -> str | None:
    return field(body, "database", str, "$", optional=True) or None


def _milliseconds(body: JsonObject, name: str) -> int | None:
    value: int | None = field(body, name, int, "$", optional=True)
    if value is not None and not 0 <= value <= MAX_MS:
        reason = f"{name} is not a time in milliseconds: outside 0 to {MAX_MS}"
        raise MessageError(ErrorCode.INVALID_FIELD, reason, path=f"$.{name}")
    return value
