"""Load documents from the metadata topic into the catalog, at startup, while the service runs, and for commands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from translator.errors import MessageError
from translator.state.metadata_topic import document_of
from translator.translation.metadata_catalog import MetadataCatalog
from translator.translation.translate import Translator


class LoadedDocument(Struct, frozen=True):
    """A document of a configured source, and whether it was learned."""

    source: str
    key: str
    document: bytes
    is_newest: bool
    """False if a newer document for this key is known, or if this one was rejected."""
    refusal: MessageError | None
    """The reason why the document cannot be read, although an earlier release accepted it. Messages that need the
    document quote this reason.
    """


def load_document(
    record: Any, translators: Mapping[str, Translator], catalog: MetadataCatalog
) -> LoadedDocument | None:
    """Let the catalog learn a record from the metadata topic. It returns None if the record contains no document for
    us.

    Args:
        record: a consumer's record.
        translators: translators by source. Metadata from sources that are no longer configured is ignored.
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
