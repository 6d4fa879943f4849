"""Describe the writers that an operator can declare, and the properties of their messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

Labels = Literal["index", "text", "either"]
"""The possible formats of ENUM and SET values: by number, by label, or by either."""

Binary = Literal["latin1", "hex", "base64", "numbers"]
"""The possible formats of bytes."""


class Profile(Struct, frozen=True):
    """A declared writer. `auto` stands for all writers, and allows everything that any of them writes."""

    alibaba: bool = False
    """True if the writer is Alibaba DTS. Its `gtid` identifies the transaction, while canal's `gtid` is the set of all
    executed transactions (§1). The message format depends on the history of the DTS instance.
    """

    tidb: bool = False
    """True if the writer may send the field `_tidb` and watermarks."""

    native_cells: bool = False
    """True if cells may have any JSON type. If false, cells are text or null."""

    deleted_in: Literal["data", "old", "either"] = "data"
    """The field that contains the row of a DELETE, unless the history of an Alibaba instance determines it."""

    changed_alone: bool = False
    """True if `old` lists only the changed columns in the first row of an UPDATE message."""

    epoch_timestamps: bool = False
    """True if a TIMESTAMP is printed as seconds since 1970, with a fraction."""

    labels: Labels = "index"
    binary: Binary = "latin1"
    binary_documented: bool = True


# A DELETE from DTS shows the instance's format, which deleted_in does not describe.
_DTS = Profile(alibaba=True, labels="either", binary_documented=False)

PROFILES: Mapping[str, Profile] = {
    "oss": Profile(changed_alone=True),
    "dts": _DTS,
    "dts_legacy": _DTS,
    "drs": Profile(deleted_in="old", epoch_timestamps=True, labels="either", binary="numbers"),
    "ticdc": Profile(tidb=True),
    "flink_cdc": Profile(
        native_cells=True, deleted_in="either", labels="text", binary="base64", binary_documented=False
    ),
    "ckafka": Profile(native_cells=True, deleted_in="either", labels="either", binary_documented=False),
    "auto": Profile(tidb=True, native_cells=True, labels="either", binary_documented=False),
}
