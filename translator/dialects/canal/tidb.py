"""The `_tidb` field that TiCDC adds, and its watermarks (§10)."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from cdc_core.envelope import TableSchema
from translator.dialects._json import JsonObject, field
from translator.dialects.canal.variant import Row
from translator.errors import ErrorCode, MessageError, quote

HANDLE_KEY_ONLY = "HANDLE_KEY_ONLY"
"""Note on a row that was too large for TiCDC to send: its images contain only the key."""


class Tidb(Struct, frozen=True):
    """The relevant fields in `_tidb`. `commit_ts`, `watermark_ts`: TiDB's own times, 46 bits of milliseconds."""

    commit_ts: int | None = None
    watermark_ts: int | None = None
    only_handle_key: bool = False


def read_tidb(body: JsonObject) -> Tidb | None:
    """Return the field, or None if it was not sent. TiCDC sends it only if its extension is enabled.

    Raises:
        MessageError: ROW_NOT_SENT for a row that TiCDC stored elsewhere.
    """
    sent = field(body, "_tidb", dict, "$", optional=True)
    if sent is None:
        return None
    if field(sent, "claimCheckLocation", str, "$._tidb", optional=True):
        reason = (
            "TiCDC stored the row in its claim-check storage, and the message contains only its location. Configure "
            "TiCDC to send larger messages (max-message-bytes), or to send only the keys of such rows "
            "(large-message-handle-option: handle-key-only, and here the option handle_key_only: unavailable). Then "
            "load the row from the source"
        )
        raise MessageError(ErrorCode.ROW_NOT_SENT, reason, path="$._tidb.claimCheckLocation")
    return Tidb(
        field(sent, "commitTs", int, "$._tidb", optional=True),
        field(sent, "watermarkTs", int, "$._tidb", optional=True),
        field(sent, "onlyHandleKey", bool, "$._tidb", optional=True) or False,
    )


def check_key_only(rows: Sequence[Row], schema: TableSchema | None, *, wanted: bool) -> None:
    """Reject rows for which TiCDC sent only the key, unless the operator accepts them and the list of their columns is
    known. No message contains that list, because `mysqlType` also covers only the key.

    Args:
        schema: the schema declared in `tables:`.

    Raises:
        MessageError: ROW_NOT_SENT.
    """
    remedy = None
    if not wanted:
        remedy = "set handle_key_only: unavailable and declare the columns of the table (tables:)"
    elif schema is None:
        remedy = "declare the columns of the table (tables:), which handle_key_only: unavailable requires"
    else:
        stray = next((name for row in rows for name in row if name not in schema.column_names), None)
        if stray is not None:
            remedy = f"declare all columns of the table (tables:); column {quote(stray)} is missing there"
    if remedy is not None:
        reason = (
            "the row was too large for TiCDC, which sent only its key. Configure TiCDC to send larger messages "
            f"(max-message-bytes), or {remedy}. Then load the row from the source"
        )
        raise MessageError(ErrorCode.ROW_NOT_SENT, reason, path="$._tidb.onlyHandleKey")
