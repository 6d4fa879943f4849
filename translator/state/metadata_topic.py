"""Documents in the metadata topic, by source and key. The topic also contains marks, which have their own key
prefixes.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Any, NamedTuple

from translator.codecs.record import Record
from translator.state.state_record import state_record


class LearnedDocument(NamedTuple):
    """A document that a source has learned under a key."""

    source: str
    key: str
    document: bytes


def document_record(source: str, key: str, document: bytes | None) -> Record:
    """Return the record to write."""
    return state_record(f"{source}/{key}", document)


def document_of(record: Any, sources: Container[str]) -> LearnedDocument | None:
    """Return the document in a record for one of these sources, or None for a mark. A mark's key never begins with a
    valid source name.
    """
    source, _, key = (record.key() or b"").decode().partition("/")
    document = record.value()
    return LearnedDocument(source, key, document) if document is not None and source in sources else None
