"""Publish schemas before rows. No row is written before the schemas topic contains its schema."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import structlog

from translator.codecs.record import Record
from translator.service.bounded_log import BoundedLog
from translator.service.delivery.base import Delivery
from translator.translation.metadata_catalog import MetadataCatalog

log = structlog.get_logger("translator")

_LINES = 20
"""Maximum number of log lines per minute, because a start with thousands of tables announces thousands of schemas."""


class SchemaAnnouncements:
    """Writes each schema once, even if several partitions need it at the same time."""

    def __init__(self, topic: str, catalog: MetadataCatalog, delivery: Delivery) -> None:
        self._topic = topic
        self._catalog = catalog
        self._delivery = delivery
        self._writing: dict[str, asyncio.Task[None]] = {}
        self._log = BoundedLog(log.info, _LINES)

    async def announce(self, schemas: Mapping[str, Record]) -> None:
        """Return once the schemas topic contains these schemas. Waits for schemas that another partition is writing.

        Raises:
            FatalError: a schema was not written, now or in an earlier attempt.
        """
        missing = {key: record for key, record in schemas.items() if not self._catalog.is_announced(key)}
        for key, record in missing.items():
            if key not in self._writing:
                self._writing[key] = asyncio.create_task(self._write(key, record))
        # Shielded, because a partition that is handed over during the wait must not cancel the write for the other
        # partitions.
        await asyncio.gather(*(asyncio.shield(self._writing[key]) for key in missing))

    async def _write(self, key: str, record: Record) -> None:
        await self._delivery.confirm(self._topic, record)
        self._catalog.announced(key)
        source, *_, schema_id = key.split(
            "/"
        )  # without the names in the middle, because a masked source's names must not be logged
        self._log.tell("schema announced", source=source, schema_id=schema_id)
        del self._writing[key]  # a failure is permanent
