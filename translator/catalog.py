"""What the process knows beside the messages: schemas already written, metadata already learned."""

from __future__ import annotations

from translator.envelope import TableSchema
from translator.message import Dialect, Lookup


class Catalog:
    """Filled from the compacted topics at start, by this process and by the tail of those topics afterwards."""

    def __init__(self) -> None:
        self._announced: set[str] = set()
        self._metadata: dict[tuple[str, str], object] = {}
        self._given_up: set[tuple[str, str]] = set()

    def is_announced(self, schema: TableSchema) -> bool:
        """Whether the schemas topic holds this schema: a row may name it only then."""
        return schema.topic_key in self._announced

    def announced(self, topic_key: str) -> None:
        """The schemas topic holds the schema of this key."""
        self._announced.add(topic_key)

    def learn(self, source: str, key: str, document: bytes, dialect: Dialect) -> None:
        """Takes in a metadata document of a source. Learning the same document again changes nothing."""
        self._metadata[source, key] = dialect.learn(key, document)
        self._given_up.discard((source, key))

    def lookup(self, source: str) -> Lookup:
        """The look-up that the dialect of a source is built with."""
        return lambda key: self._metadata.get((source, key))

    def give_up(self, source: str, key: str) -> None:
        """Waiting for this metadata took too long; later messages that need it do not wait again."""
        self._given_up.add((source, key))

    def is_given_up(self, source: str, key: str) -> bool:
        return (source, key) in self._given_up
