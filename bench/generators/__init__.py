"""Generate raw messages for a benchmark: a seeded table history in the formats of the replication tools."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from bench.generators.canal import CanalMessages, CheckedCanalMessages
from bench.generators.dts_avro import DtsAvroMessages
from bench.generators.history import History, StreamChange, StreamSpec, StreamTable, tables_of
from bench.generators.qlik_avro import QlikAvroMessages
from bench.generators.qlik_json import QlikJsonMessages
from bench.generators.shareplex import SharePlexMessages


class MessageWriter(Protocol):
    """Writes the changes from a history in one tool's format."""

    dialect: str
    """The translator's name for the dialect."""
    unusual: Mapping[str, int]
    """Weights for unusual messages, by kind. A message is unusual if it changes a key or is not a row change."""

    def options(self) -> Mapping[str, Any]:
        """Return the dialect's options."""

    def declared(self, tables: Sequence[StreamTable]) -> Sequence[Mapping[str, Any]]:
        """Return the tables to declare, as in a source's `tables` section."""

    def metadata(self, tables: Sequence[StreamTable]) -> Iterator[bytes]:
        """Return the messages for the metadata topic. If the tool has no such topic, the result is empty."""

    def write(self, change: StreamChange) -> bytes | None:
        """Return a message's value."""


WRITERS: Mapping[str, type[MessageWriter]] = {
    "canal": CanalMessages,
    "canal_dts": CheckedCanalMessages,
    "shareplex": SharePlexMessages,
    "dts_avro": DtsAvroMessages,
    "qlik_json": QlikJsonMessages,
    "qlik_avro": QlikAvroMessages,
}
"""The writers, keyed by the format names in reports."""


class RawMessage(NamedTuple):
    """A raw topic message. It is `unusual` if it changes a key or is not a row change."""

    partition: int
    value: bytes | None
    unusual: bool
    updates: bool
    """Whether the message is an update. Some peers write two records for each update."""
    skipped: bool
    """Whether the message produces no record."""


class MessageStream(NamedTuple):
    """The messages for a spec, and the matching source section in the translator's configuration."""

    metadata: Sequence[bytes]
    messages: Sequence[RawMessage]
    dialect: str
    options: Mapping[str, Any]
    declared: Sequence[Mapping[str, Any]]

    @property
    def bytes(self) -> int:
        """The total size of all values."""
        return sum(len(message.value or b"") for message in self.messages)

    def source(self, topic: str) -> dict[str, Any]:
        """Return the source as a section in the translator's configuration. Metadata is in `TOPIC.metadata`."""
        more: dict[str, Any] = {"topics": [topic]}
        if self.metadata:
            more = {"topics": [topic, f"{topic}.metadata"], "metadata_topics": [f"{topic}.metadata"]}
        if self.declared:
            more["tables"] = list(self.declared)
        return {"name": "bench", "dialect": self.dialect, "options": dict(self.options), **more}


def generate(name: str, spec: StreamSpec) -> MessageStream:
    """Return the messages in a given format. The same spec always gives the same bytes."""
    writer = WRITERS[name]()
    history = History(spec, writer.unusual)
    messages = [
        RawMessage(
            change.partition,
            writer.write(change),
            change.kind in writer.unusual,
            change.kind in ("update", "moved"),
            change.kind == "blank",
        )
        for change in history.changes()
    ]
    tables = tables_of(spec)
    return MessageStream(
        [*writer.metadata(tables)], messages, writer.dialect, writer.options(), writer.declared(tables)
    )
