"""Follow the compacted topics, and apply the records that other processes of the group write to them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import structlog

from translator.service.components import Components
from translator.state.contradiction_marks import PREFIX
from translator.state.metadata_loader import load_document
from translator.state.metadata_topic import document_record

log = structlog.get_logger("translator")


def follow(components: Components, records: Iterable[Any]) -> None:
    """Apply the records that were written to the compacted topics since startup, up to the reader's position."""
    for record in records:
        apply_state_record(components, record, fresh=True)
    components.journal.follow(components.reader.next_offset(components.settings.output.metadata_topic, 0))


def apply_state_record(components: Components, record: Any, *, fresh: bool) -> None:
    """Apply one record from a compacted topic.

    Args:
        fresh: the record was written after startup.
    """
    key = (record.key() or b"").decode()
    if components.holds.apply_state_record(key, record.value(), fresh=fresh) or record.value() is None:
        return
    if record.topic() == components.settings.output.schemas_topic:
        components.catalog.announced(key)
        if components.lineage is not None:
            components.lineage.announced(record.value())
        return
    if key.startswith(PREFIX):
        source = components.contradictions.apply(key, record.value())
        if source is not None:
            log.error("source stopped", source=source, reason=components.contradictions.found[source])
        return
    loaded = load_document(record, components.translators, components.catalog)
    if loaded is None:
        return
    if loaded.refusal is not None:
        log.warning("metadata refused", source=loaded.source, id=loaded.key, reason=loaded.refusal.reason)
        return
    (components.outdated.discard if loaded.is_newest else components.outdated.add)((loaded.source, loaded.key))


async def restore(components: Components) -> None:
    """If compaction would remove the newest documents, write them again. Compaction keeps only the last record of a
    key.

    If two processes learn two documents with the same id at the same time, they may write them in either order.
    """
    for source, key in sorted(components.outdated):
        record = document_record(source, key, components.catalog.document(source, key))
        await components.delivery.confirm(components.settings.output.metadata_topic, record)
        components.outdated.discard((source, key))
