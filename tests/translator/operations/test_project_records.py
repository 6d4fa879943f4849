"""A projection derived from the canonical topic has the service's bytes, because an event survives reading."""

import pytest

from cdc_core.envelope import ChangeEvent, TableSchema
from cdc_core.reader.decode import decode
from dev.demo.sources import interleaved, shop_sources
from translator.codecs import Codec, build
from translator.codecs.record import Record
from translator.config.settings import Settings
from translator.errors import MessageError
from translator.message import Learned, Message
from translator.resolution.builders import build_translators
from translator.translation.metadata_catalog import MetadataCatalog
from translator.translation.translate import Events

CHANGES = 120
PROJECTIONS = [
    build("json", {}),
    build("avro", {}),
    build("json", {"key_change": "two_events"}),
    build("debezium", {"tombstones": True, "schema_block": True}),
    build("upsert", {"unavailable": "omit", "truncate": "drop"}),
]


@pytest.mark.parametrize("canonical", ["avro", "json"])
def test_what_is_read_is_what_was_written(canonical: str) -> None:
    """This holds for every dialect, both forms of the canonical topic, and each codec of projections."""
    sources = shop_sources(5)
    settings = Settings.model_validate(
        {"kafka": {"bootstrap_servers": "none:1"}, "sources": [source.settings for source in sources]}
    )
    catalog = MetadataCatalog()
    translators = build_translators(settings, catalog)
    by_topic = {topic: source.name for source in settings.sources for topic in source.topics}
    codec = build(canonical, {})
    compared, dialects = 0, set()
    for raw in interleaved([source.messages(CHANGES, grow=True) for source in sources]):
        message = Message(raw.topic, 0, compared, 1, raw.key, raw.value, (), "id")
        translator = translators[by_topic[raw.topic]]
        result = translator.translate(message)
        if isinstance(result, Learned):
            catalog.register(translator, result.key, result.document)
        if not isinstance(result, Events):
            continue
        stored = translator.encode(codec, message, result)
        assert isinstance(stored, list)
        assert len(stored) == len(result.events)
        for record, event, change in zip(stored, result.events, result.changes, strict=True):
            assert record.value is not None
            read = decode(record.value)
            for projection in PROJECTIONS:
                assert _records(projection, read, change.schema) == _records(projection, event, change.schema)
            compared += 1
            dialects.add(event.dialect)
    assert compared > 3 * CHANGES
    assert {"qlik", "dts_avro", "shareplex", "canal"} == dialects


def _records(codec: Codec, event: ChangeEvent, schema: TableSchema | None) -> list[Record] | str:
    """Return the records, or the reason of a refusal."""
    try:
        return codec.encode(event, schema)
    except MessageError as error:
        return str(error)
