"""A record in the compacted topics. Its headers contain its format and the release that wrote it."""

from __future__ import annotations

from cdc_core.state_format import FORMAT, release
from translator.codecs.record import Record

FORMAT_HEADER, RELEASE_HEADER = "cdc-format", "cdc-release"


def state_record(key: str, value: bytes | None) -> Record:
    """Return a record that stores a key's state, or removes it if `value` is None."""
    return Record(key.encode(), value, [(FORMAT_HEADER, b"%d" % FORMAT), (RELEASE_HEADER, release().encode())])
