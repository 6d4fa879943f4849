"""Describe the shop as five sources, one per variant of a format. Each has the translator's configuration and a
writer.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.parquet

from dev.demo.compare import differences
from dev.demo.shop import TABLES, Shop, ShopChange, ShopTable
from dev.demo.writers import Raw
from dev.demo.writers.canal import DTS_LEGACY, CanalWriter
from dev.demo.writers.dts_avro import DtsAvroWriter
from dev.demo.writers.qlik import QlikWriter
from dev.demo.writers.shareplex import SharePlexWriter

SHOPS = "shops"
"""The folder for the rows that the shops have at the end."""

_CANONICAL = {
    "bigint": "int64",
    "int": "int32",
    "decimal": "decimal(14,2)",
    "varchar": "string",
    "datetime": "timestamp",
    "date": "date",
    "double": "float64",
}
# SharePlex does not document its format for RAW and BLOB (docs/formats/shareplex.md §5), so the shop that SharePlex
# replicates has no such column.
_PLAIN_TABLES = tuple(
    ShopTable(shape.name, tuple(column for column in shape.columns if column.kind != "blob"), shape.key)
    for shape in TABLES
)


class SourceWriter(Protocol):
    """Writes changes in one format."""

    def write(self, change: ShopChange) -> Iterator[Raw]: ...


@dataclass(frozen=True)
class ShopSource:
    """A shop that one tool replicates."""

    name: str
    settings: dict[str, Any]
    writer: SourceWriter
    shop: Shop
    prefix: str
    """The prefix for table names in the sink: `<prefix>.<table>`."""
    can_grow: bool = True
    """Whether a column can be added. It must be false if the configuration declares the columns."""

    def table(self, name: str) -> str:
        """Return the name that one of the shop's tables has in the sink."""
        return f"{self.prefix}.{name}"

    def wrong(self, rows: Callable[[str], Iterable[Mapping[str, Any]]]) -> Iterator[str]:
        """Return the differences between the sink's tables and the shop's tables.

        Args:
            rows: returns the rows of a table in the sink.
        """
        for name, expected in self.shop.rows.items():
            table = self.table(name)
            for line in differences(self.shop.shape(name), expected.values(), rows(table)):
                yield f"{table}: {line}"

    def write_rows(self, directory: Path) -> None:
        """Write the shop's own rows to Parquet files. Each has the name of the table in the sink."""
        directory.mkdir(parents=True, exist_ok=True)
        for name, rows in self.shop.rows.items():
            columns = [column.name for column in self.shop.shape(name).columns]
            found = pa.table({column: [row[column] for row in rows.values()] for column in columns})
            pyarrow.parquet.write_table(found, directory / f"{self.table(name)}.parquet")

    def messages(self, changes: int, *, grow: bool) -> Iterator[Raw]:
        """Return the messages for this shop's next changes. If `grow` is true, add a column halfway."""
        for change in self.shop.history(changes, changes // 2 if grow and self.can_grow else None):
            yield from self.writer.write(change)


def shop_sources(seed: int) -> list[ShopSource]:
    """Return the five sources. Each has a shop with a history of its own."""
    declared = [
        {
            "table": f"SHOP.{shape.name}",
            "key": list(shape.key),
            "columns": {column.name: _CANONICAL[column.kind] for column in shape.columns},
        }
        for shape in _PLAIN_TABLES
    ]
    return [
        ShopSource(
            "qlik",
            _settings("qlik", "qlik", ["raw.qlik", "raw.qlik.metadata"], metadata_topics=["raw.qlik.metadata"]),
            QlikWriter("raw.qlik", "raw.qlik.metadata"),
            Shop(seed + 1),
            "qlik_SHOP",
        ),
        ShopSource(
            "dts",
            _settings("dts", "dts_avro", ["raw.dts"]),
            DtsAvroWriter("raw.dts"),
            Shop(seed + 2),
            "dts_shop",
        ),
        ShopSource(
            "shareplex",
            _settings("shareplex", "shareplex", ["raw.shareplex"], options={"preset": "quest"}, tables=declared),
            SharePlexWriter("raw.shareplex"),
            Shop(seed + 3, _PLAIN_TABLES),
            "shareplex_SHOP",
            can_grow=False,
        ),
        ShopSource(
            "canal",
            _settings("canal", "canal", ["raw.canal"], options={"profile": "oss"}),
            CanalWriter("raw.canal"),
            Shop(seed + 4),
            "canal_shop",
        ),
        ShopSource(
            "legacy",
            _settings("legacy", "canal", ["raw.legacy"], options={"profile": "dts_legacy"}),
            CanalWriter("raw.legacy", DTS_LEGACY),
            Shop(seed + 5),
            "legacy_shop",
        ),
    ]


def _settings(name: str, dialect: str, topics: list[str], **more: Any) -> dict[str, Any]:
    return {"name": name, "dialect": dialect, "topics": topics, **more}


def interleaved(streams: Iterable[Iterable[Raw]]) -> Iterator[Raw]:
    """Yield messages from several sources alternately, as a broker receives them."""
    for turn in itertools.zip_longest(*streams):
        yield from (message for message in turn if message is not None)
