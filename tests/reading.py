"""Read records as a consumer does, with cdc_core.reader, for tests that check rows rather than types."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from cdc_core.envelope import ChangeEvent
from cdc_core.reader import Change, DictStore, apply
from cdc_core.reader import decode as event_of
from cdc_core.wire_format import IMAGES


def decode(value: bytes | None) -> dict[str, Any]:
    """Return the fields of an event, with its images as objects."""
    assert value is not None
    fields: dict[str, Any] = msgspec.to_builtins(event_of(value))
    return fields | {name: fields[name] and json.loads(fields[name]) for name in IMAGES}


class ReadTable:
    """The rows of one table. `left_out` counts changes to rows without a key."""

    def __init__(self) -> None:
        self._store = DictStore()
        self._key: list[str] = []
        self.left_out = 0

    def apply(self, event: dict[str, Any]) -> None:
        texts = {name: None if event[name] is None else json.dumps(event[name]) for name in IMAGES}
        change = Change.of(msgspec.convert(event | texts, ChangeEvent), None)
        self._key = [*(change.key or change.key_old or self._key)]
        self.left_out += apply([change], self._store).keyless

    @property
    def rows(self) -> dict[str, Any]:
        """Return the rows by key, as text."""
        found = [item for table in self._store.tables() for item in self._store.rows(table).items()]
        return {json.dumps(dict(zip(self._key, key, strict=True))): row for key, row in found}
