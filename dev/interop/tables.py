"""The shops' tables, and the topics that contain each table in various formats."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from confluent_kafka.admin import AdminClient

from dev.demo.shop import Row, ShopTable
from dev.demo.sources import ShopSource, shop_sources
from dev.servers.stack import CANONICAL, Stack

WITHOUT_WHOLE_ROWS = "shareplex"
"""The shop whose tool sends only the changed columns of an update. The rows of this shop by key can therefore not be
complete (docs/upsert.md).
"""

ROWS, CONNECT, DEBEZIUM, DEBEZIUM_AVRO, DEBEZIUM_CONNECT = "rows", "connect", "debezium", "avro", "changes"
_OF_TABLE = "{source}.{table}"
PROJECTIONS: Sequence[Mapping[str, Any]] = (
    {"topic": f"{ROWS}.{_OF_TABLE}", "codec": "upsert", "options": {"key": "columns"}},
    {"topic": f"{CONNECT}.{_OF_TABLE}", "codec": "upsert", "options": {"key": "columns", "schema_block": True}},
    {"topic": f"{DEBEZIUM}.{_OF_TABLE}", "codec": "debezium"},
    {"topic": f"{DEBEZIUM_CONNECT}.{_OF_TABLE}", "codec": "debezium", "options": {"schema_block": True}},
    {"topic": f"{DEBEZIUM_AVRO}.{_OF_TABLE}", "codec": "debezium_avro"},
)


@dataclass(frozen=True)
class SourceTable:
    """A shop's table as a reader sees it.

    Args:
        levels: the table's name, as it follows a topic's prefix.
        types: each column's canonical type.
    """

    source: str
    shape: ShopTable
    levels: str
    types: Mapping[str, str]
    rows: Sequence[Row]

    def topic(self, prefix: str) -> str:
        return f"{prefix}.{self.levels}"


def sources(seed: int) -> list[ShopSource]:
    """Return the shops of the demo whose tools send whole rows."""
    return [one for one in shop_sources(seed) if one.name != WITHOUT_WHOLE_ROWS]


def tables(stack: Stack, shops: Sequence[ShopSource]) -> list[SourceTable]:
    """Return every table that exists at the end, in shop order."""
    names = AdminClient({"bootstrap.servers": stack.bootstrap, "log_level": 0}).list_topics(timeout=60).topics
    declared = {
        (schema["source"], schema["table"].lower()): {one["name"]: one["type"] for one in schema["columns"]}
        for schema in _schemas(stack)
    }
    found = []
    for shop in shops:
        for shape in map(shop.shop.shape, shop.shop.rows):
            (topic,) = [
                name
                for name in names
                if name.startswith(f"{ROWS}.{shop.name}.") and name.lower().endswith(f".{shape.name}")
            ]
            rows = [*shop.shop.rows[shape.name].values()]
            levels = topic.removeprefix(f"{ROWS}.")
            found.append(SourceTable(shop.name, shape, levels, declared[shop.name, shape.name], rows))
    return found


def _schemas(stack: Stack) -> Iterator[Mapping[str, Any]]:
    """Return all schemas of the tables, ordered by number of columns, because a later delete may refer to an older
    version.
    """
    found = [json.loads(record.value()) for record in stack.records(f"{CANONICAL}.schemas")]
    return iter(sorted(found, key=lambda schema: len(schema["columns"])))
