"""The canonical topic of the five demo shops, as records in the forms that the translator writes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping

import msgspec

from cdc_core.envelope import ChangeEvent, TableSchema
from cdc_core.reader import KnownSchemas
from dev.demo.sources import ShopSource
from dev.demo.writers import Raw
from translator.codecs import Codec
from translator.codecs.avro import AvroCodec, confluent_header
from translator.codecs.json import JsonCodec
from translator.dialects import build
from translator.message import DeclaredTable, Learned, Limits, Message, Setup
from translator.translation.translate import Events, Translator

FORMS: Mapping[str, Callable[[], Codec]] = {
    "avro": AvroCodec,
    "avro with a registry": lambda: AvroCodec(confluent_header(7)),
    "json": JsonCodec,
}
"""Every form in which the translator writes the canonical topic."""

Translated = tuple[ChangeEvent, TableSchema | None]


def translated(source: ShopSource, raws: Iterable[Raw]) -> list[Translated]:
    """Return the events of a shop with their schemas, in the order of the raw messages. No message is rejected."""
    learned: dict[str, object] = {}
    tables = msgspec.convert(source.settings.get("tables", []), tuple[DeclaredTable, ...])
    setup = Setup(source.name, Limits(), tables, learned.get)
    dialect = build(source.settings["dialect"], setup, source.settings.get("options", {}))
    translator, ends, events = Translator(source.name, dialect, Limits()), Counter[tuple[str, int]](), []
    for raw in raws:
        place = raw.topic, raw.partition
        result = translator.translate(Message(*place, ends[place], 0, raw.key, raw.value))
        ends[place] += 1
        if isinstance(result, Learned):
            learned[result.key] = dialect.learn(result.key, result.document)
            continue
        assert isinstance(result, Events), result
        events += zip(result.events, result.schemas, strict=True)
    return events


def value_of(codec: Codec, event: ChangeEvent, schema: TableSchema | None = None) -> bytes:
    """Return the record value of an event."""
    (record,) = codec.encode(event, schema)
    assert record.value is not None
    return record.value


def known(events: Iterable[Translated]) -> KnownSchemas:
    """Return the schemas known to a reader that has read the whole schemas topic."""
    schemas = KnownSchemas()
    for schema in {schema.topic_key: schema for _, schema in events if schema is not None}.values():
        schemas.learn(msgspec.json.encode(schema))
    return schemas
