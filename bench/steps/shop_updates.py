"""Provide benchmark input: the same updates to one table, in the formats of all replication tools."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from dev.demo.shop import Shop, ShopChange, ShopColumn, ShopTable
from dev.demo.sources import SourceWriter
from dev.demo.writers.canal import CanalWriter
from dev.demo.writers.dts_avro import DtsAvroWriter
from dev.demo.writers.qlik import QlikWriter
from dev.demo.writers.shareplex import SharePlexWriter
from translator.dialects import build
from translator.message import DeclaredTable, Dialect, Learned, Message, Setup

TOPIC = "raw.shop.orders"
_FIRST_OFFSET = 1_000_000
_FIRST_MS = 1_767_600_000_000
_RECORDS_PER_MS = 50

# The kinds of the shop's columns, in the order in which a table uses them, with the names that declarations use.
_KINDS: Mapping[str, str] = {
    "bigint": "int64",
    "varchar": "string",
    "decimal": "decimal(14,2)",
    "datetime": "timestamp",
    "int": "int32",
    "date": "date",
    "double": "float64",
}

Options: TypeAlias = Mapping[str, Any]

SOURCES: Mapping[str, tuple[Callable[[], SourceWriter], Options]] = {
    "canal": (lambda: CanalWriter(TOPIC), {"profile": "oss"}),
    "dts_avro": (lambda: DtsAvroWriter(TOPIC), {}),
    "qlik": (lambda: QlikWriter(TOPIC, f"{TOPIC}.metadata"), {}),
    "shareplex": (lambda: SharePlexWriter(TOPIC), {"preset": "quest"}),
}
"""Each dialect's writer and options."""


class DialectFeed(NamedTuple):
    """Messages, and a dialect with the metadata for reading them."""

    dialect: Dialect
    messages: Sequence[Message]


def feed(name: str, columns: int, count: int) -> DialectFeed:
    """Return updates that each change one or two columns of a table, in the format of the dialect's tool."""
    shape = _shape(columns)
    writer, options = SOURCES[name]
    learned: dict[str, object] = {}
    dialect = build(name, Setup("bench", tables=(declaration(columns),), lookup=learned.get), options)
    messages = []
    for number, raw in enumerate(itertools.chain.from_iterable(map(writer().write, _changes(shape, count)))):
        message = Message(
            raw.topic,
            raw.partition,
            _FIRST_OFFSET + number,
            _FIRST_MS + number // _RECORDS_PER_MS,
            raw.key,
            raw.value,
            topic_id="dGhlLXRvcGljLWlkLS0tLQ",
        )
        outcome = dialect.decode(message)
        if isinstance(outcome, Learned):
            learned[outcome.key] = dialect.learn(outcome.key, outcome.document)
        else:
            messages.append(message)
    return DialectFeed(dialect, messages)


def declaration(columns: int) -> DeclaredTable:
    """Return the table's declaration, for a source whose messages do not contain it."""
    shape = _shape(columns)
    return DeclaredTable(f"SHOP.{shape.name}", shape.key, {c.name: _KINDS[c.kind] for c in shape.columns})


def _shape(columns: int) -> ShopTable:
    kinds = itertools.islice(itertools.cycle(_KINDS), columns)
    return ShopTable(
        "orders", tuple(ShopColumn(f"column_{n}" if n else "id", kind) for n, kind in enumerate(kinds)), ("id",)
    )


def _changes(shape: ShopTable, count: int) -> list[ShopChange]:
    """Return the first updates in the shop's history that do not change the key."""
    history = Shop(7, (shape,)).history(4 * count + 100)
    plain = (c for c in history if c.before and c.after and c.before["id"] == c.after["id"])
    return list(itertools.islice(plain, count))
