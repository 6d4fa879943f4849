"""The fields that any record has: writer, times, position (§6)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from msgspec import Struct

from cdc_core.envelope import Tx
from translator.dialects.dts_avro.record import DtsRecord
from translator.dialects.dts_avro.types import MYSQL_FAMILY
from translator.message import Writer


class Head(Struct):
    """The fields in a change that do not depend on its type."""

    writer: Writer
    ts_commit_us: int | None
    ts_capture_us: int | None
    pos_native: str | None
    tx: Tx | None
    ext: dict[str, str] | None


def head_of(record: DtsRecord, *, extras: bool) -> Head:
    """Return the head. `extras`: store in `ext` the values that fit no event field."""
    tags = record.tags
    return Head(
        writer_of(record.schema, record),
        time_us(record.source_timestamp),
        _capture_us(tags.get("readerThroughoutTime", "")),
        record.source_position or None,
        _tx(record),
        _extras(record) if extras else None,
    )


def writer_of(schema: str, record: DtsRecord) -> Writer:
    """Return the record's writer, for a record with this version of the schema."""
    return _writer(schema, record.source_type, record.tags.get("server_id"))


@lru_cache(maxsize=1024)
def _writer(schema: str, source_type: str, server: str | None) -> Writer:
    return Writer(variant=schema, variant_basis="certain", dbms=source_type, server=server)


# -- times

_FIRST_MILLIS = 10**10
_LAST_MILLIS = 10**14
"""Values from the year 5000 on do not count as times."""


def time_us(time: int | None) -> int | None:
    """Convert seconds or, from 10^10 up, milliseconds, just as the vendor's code does (§6). 0 means no time."""
    if time is None or not 0 < time < _LAST_MILLIS:
        return None
    return time * (1_000 if time >= _FIRST_MILLIS else 1_000_000)


def _capture_us(millis: str) -> int | None:
    if not (millis.isascii() and millis.isdigit() and len(millis) <= 14):
        return None
    return int(millis) * 1_000 or None


# -- transaction

_NO_TRANSACTION = frozenset({"", "0"})
"""MySQL sources write `0` for every transaction (§3)."""


def _tx(record: DtsRecord) -> Tx | None:
    """Return the transaction, if known. MySQL identifies transactions only on BEGIN and DDL, with the tag GTID."""
    txid = record.source_txid
    if txid in _NO_TRANSACTION:
        txid = record.tags.get("GTID", "")
    return Tx(txid) if txid else None


# -- values that fit no event field

_BINLOG_POSITION = re.compile(r"(\d{1,19})@(\d{1,19})", re.ASCII)


def _extras(record: DtsRecord) -> dict[str, str]:
    numbers = {"version": record.version, "id": record.id, "bornTimestamp": record.born_timestamp}
    return {
        **{name: str(number) for name, number in numbers.items() if number is not None},
        "safeSourcePosition": record.safe_source_position,
        "sourceTxid": record.source_txid,
        **_binlog(record),
        **{f"tag.{name}": value for name, value in record.tags.items()},
    }


def _binlog(record: DtsRecord) -> Mapping[str, str]:
    """Return the parts of MySQL's position: the binlog file's number and the offset in it (§6)."""
    match = _BINLOG_POSITION.fullmatch(record.source_position) if record.source_type in MYSQL_FAMILY else None
    return {"binlogOffset": match[1], "binlogFile": match[2]} if match else {}
