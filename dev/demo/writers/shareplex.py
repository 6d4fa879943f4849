"""SharePlex messages with only the changed columns. Inserts and deletes omit nulls."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from dev.demo.shop import ShopChange
from dev.demo.writers import Raw, iso, partition_of, to_json


@dataclass
class SharePlexWriter:
    """SharePlex JSON in Quest's Post format."""

    topic: str
    owner: str = "SHOP"

    def write(self, change: ShopChange) -> Iterator[Raw]:
        """Return the message for a change."""
        words = {"load": "ins", "insert": "ins", "update": "upd", "delete": "del"}
        message: dict[str, Any] = {
            "meta": {"op": words[change.op], "table": f"{self.owner}.{change.table.name}", "time": iso(change.at)[:19]}
        }
        before, after = change.before or {}, change.after or {}
        if change.op == "update":
            message["data"] = {k: _shareplex_cell(v) for k, v in after.items() if v != before[k]}
            message["key"] = {name: _shareplex_cell(before[name]) for name in change.table.key}
            if not message["data"]:  # the new values equal the old values, but the log has the column anyway
                name = change.table.columns[-1].name
                message["data"] = {name: _shareplex_cell(after[name])}
        else:
            row = after or before
            message["data"] = {k: _shareplex_cell(v) for k, v in row.items() if v is not None}
        yield Raw(self.topic, partition_of(change.table), None, to_json(message))


def _shareplex_cell(value: Any) -> Any:
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%dT%H:%M:%S.%f}000"
    return iso(value) if isinstance(value, date) else value
