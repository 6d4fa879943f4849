"""Find the preset for a sample of SharePlex messages, based on `key` and the cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from translator.message import RowChange
from translator.proposals import Proposal, ReadMessage

_STOCK = frozenset({"op", "table"})
"""The `meta` fields that Quest writes without additional options."""


def propose(sample: Sequence[ReadMessage]) -> list[Proposal]:
    """Return the preset if cells and keys agree on a writer. Otherwise, return `lenient`, which assumes nothing."""
    quest = [words for words, seen in _QUEST.items() if any(seen(read) for read in sample)]
    dts = [words for words, seen in _DTS.items() if any(seen(read) for read in sample)]
    why = f"seen: {'; '.join([*quest, *dts]) or 'no trait that distinguishes writers'}"
    if bool(quest) == bool(dts):
        return [Proposal("preset", "lenient", "unknown", f"{why}; quest and dts remain possible")]
    return [Proposal("preset", "quest" if quest else "dts", "likely", why)]


def _body(read: ReadMessage) -> Mapping[str, Any]:
    """Return the message if it is a single object. A value with several objects does not identify its writer."""
    try:
        body = msgspec.json.decode(read.message.value or b"")
    except (msgspec.DecodeError, RecursionError):
        return {}
    return body if isinstance(body, dict) else {}


def _numbers(read: ReadMessage) -> bool:
    images = (_body(read).get(member) for member in ("data", "key"))
    return any(type(cell) in (int, float) for image in images if isinstance(image, dict) for cell in image.values())


def _stock(read: ReadMessage) -> bool:
    meta = _body(read).get("meta")
    return isinstance(meta, dict) and meta.keys() <= _STOCK


def _nulls_in_key(read: ReadMessage) -> bool:
    """Return whether `key` contains something that Quest's keys never contain. A changed column proves nothing. Quest's
    key also contains changed columns, if they are key columns.
    """
    updates = (change for change in read.changes if isinstance(change, RowChange) and change.op == "u")
    return any(value is None for change in updates for value in (change.before or {}).values())


_QUEST = {"numbers that are not strings": _numbers, "only op and table in meta": _stock}
_DTS = {"nulls in key": _nulls_in_key}
