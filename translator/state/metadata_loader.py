"""Documents of the metadata topic into the catalog: at the start, while the service runs, and for commands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from translator.errors import MessageError
from translator.state.metadata_topic import document_of
from translator.translation.metadata_catalog import MetadataCatalog
from translator.translation.translate import Translator


class LoadedDocument(Struct, frozen=True):
    """A document of a source that is configured, and what became of it."""

    source: str
    key: str
    document: bytes
    is_newest: bool
    """False: a newer document of this key is known, or this one was refused."""
    refusal: MessageError | None
    """The reason why it cannot be read: an earlier release took it. The messages that need it say so."""


def load_document(
    record: Any, translators: Mapping[str, Translator], catalog: MetadataCatalog
) -> LoadedDocument | None:
    """Let the catalog learn what one record of the metadata topic teaches; None when that is nothing.

    Args:
        record: as a consumer gives it.
        translators: by source. A source that is no longer configured leaves its metadata behind.
    """
    found = document_of(record, translators)
    if found is None:
        return None
    try:
        newest = catalog.register(translators[found.source], found.key, found.document)
    except MessageError as refusal:
        catalog.refuse(found.source, found.key, refusal)
        return LoadedDocument(*found, is_newest=False, refusal=refusal)
    return LoadedDocument(*found, is_newest=newest, refusal=None)
