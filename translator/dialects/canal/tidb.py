"""The member `_tidb` that TiCDC adds, and its watermarks (formats/canal.md section 10)."""

from __future__ import annotations

from msgspec import Struct

from translator.dialects._json import JsonObject, field
from translator.errors import ErrorCode, MessageError

HANDLE_KEY_ONLY = "HANDLE_KEY_ONLY"
"""Note on a row that was too large for TiCDC to send: its images hold the key alone."""


class Tidb(Struct, frozen=True):
    """What of it is read. `commit_ts` and `watermark_ts` are TiDB's own times, of which 46 bits are milliseconds."""

    commit_ts: int | None = None
    watermark_ts: int | None = None
    only_handle_key: bool = False


def read_tidb(body: JsonObject) -> Tidb | None:
    """The member; None where it was not sent, as TiCDC sends it only with its extension switched on.

    Raises:
        MessageError: UNSUPPORTED_SHAPE for a row that TiCDC stored elsewhere.
    """
    sent = field(body, "_tidb", dict, "$", optional=True)
    if sent is None:
        return None
    if field(sent, "claimCheckLocation", str, "$._tidb", optional=True):
        reason = (
            "TiCDC put the row into its claim-check storage, and the message says only where;"
            " let it send the key in its place (large-message-handle-option=handle-key-only), or allow larger messages"
        )
        raise MessageError(ErrorCode.UNSUPPORTED_SHAPE, reason, path="$._tidb.claimCheckLocation")
    return Tidb(
        field(sent, "commitTs", int, "$._tidb", optional=True),
        field(sent, "watermarkTs", int, "$._tidb", optional=True),
        field(sent, "onlyHandleKey", bool, "$._tidb", optional=True) or False,
    )
