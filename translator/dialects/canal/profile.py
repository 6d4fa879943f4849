"""The writers that can be declared, and what their messages have in common whatever their shape."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

Labels = Literal["index", "text", "either"]
"""The forms in which ENUM and SET are printed: by number, by label, or by either."""

Binary = Literal["latin1", "hex", "base64", "numbers"]
"""The forms in which bytes are printed."""


class Profile(Struct, frozen=True):
    """A declared writer. `auto` stands for all of them, so that it allows what any of them writes."""

    alibaba: bool = False
    """Its `gtid` is that of the transaction; canal's is the set of all that were executed (§1).
    Its form depends on the life of the instance."""

    tidb: bool = False
    """It may send the member `_tidb`, and watermarks."""

    native_cells: bool = False
    """Its cells may be of any JSON type; elsewhere they are text or null."""

    deleted_in: Literal["data", "old", "either"] = "data"
    """The field of a DELETE that holds its row, unless the life of an Alibaba instance decides."""

    changed_alone: bool = False
    """`old` of an UPDATE lists the changed columns alone, in the first row of a message."""

    epoch_timestamps: bool = False
    """TIMESTAMP is printed as seconds since 1970, with a fraction."""

    labels: Labels = "index"
    binary: Binary = "latin1"
    binary_documented: bool = True


# Its DELETE shows the form of an instance: deleted_in says nothing of it.
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
