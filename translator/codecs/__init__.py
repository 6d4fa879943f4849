"""Convert events in the envelope to bytes. A codec is `encode(event, schema) -> list of Record`, and one dictionary
lists all codecs.

Here, "codec" means an event's wire format, not Python's `codecs` module.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from msgspec import Struct

from cdc_core.envelope import ChangeEvent, TableSchema
from translator.codecs.avro import HEADER, AvroCodec, RoutedAvroCodec
from translator.codecs.debezium import DebeziumCodec
from translator.codecs.debezium import Options as DebeziumOptions
from translator.codecs.debezium_avro import DebeziumAvroCodec
from translator.codecs.debezium_avro import Options as DebeziumAvroOptions
from translator.codecs.json import JsonCodec
from translator.codecs.key_changes import EnvelopeCodec, EnvelopeOptions, SplitKeyChanges
from translator.codecs.record import Record
from translator.codecs.registered import TableSchemas
from translator.codecs.upsert import Options as UpsertOptions
from translator.codecs.upsert import UpsertCodec
from translator.config.options import parse_options
from translator.errors import ConfigError, unknown

AvroHeader = Callable[[], bytes]
"""Returns the bytes with which every Avro value begins. It is called once, and only for the codec that writes such
values.
"""


class Framing(Struct, frozen=True):
    """The names of the Avro schemas."""

    avro_header: AvroHeader = lambda: HEADER
    tables: TableSchemas | None = None
    """The registered table schemas, or None without a registry."""
    routed: bool = False
    """True if the topic's name depends on the event, so that it is not known yet."""


class Codec(Protocol):
    """A wire format for the envelope."""

    name: str

    def encode(self, event: ChangeEvent, schema: TableSchema | None = None) -> list[Record]:
        """Return an event's records. The result is empty if the format cannot express the event, and has several
        records if the event needs them.

        Args:
            schema: the schema that the event refers to by `schema_id`.

        Raises:
            MessageError: the codec's options reject the event.
        """
        ...


def _avro(options: Mapping[str, Any], framing: Framing) -> Codec:
    found = parse_options(EnvelopeOptions, options, AvroCodec.name)
    if framing.routed and framing.tables is not None:
        return _by_key_change(RoutedAvroCodec(framing.tables), found)
    return _by_key_change(AvroCodec(framing.avro_header()), found)


def _json(options: Mapping[str, Any], framing: Framing) -> Codec:
    return _by_key_change(JsonCodec(), parse_options(EnvelopeOptions, options, JsonCodec.name))


def _by_key_change(codec: EnvelopeCodec, options: EnvelopeOptions) -> Codec:
    return SplitKeyChanges(codec) if options.key_change == "two_events" else codec


def _debezium(options: Mapping[str, Any], framing: Framing) -> Codec:
    return DebeziumCodec(parse_options(DebeziumOptions, options, DebeziumCodec.name))


def _debezium_avro(options: Mapping[str, Any], framing: Framing) -> Codec:
    found = parse_options(DebeziumAvroOptions, options, DebeziumAvroCodec.name)
    if framing.tables is None:
        raise ConfigError(f"{DebeziumAvroCodec.name} requires a schema registry; set registry.url")
    return DebeziumAvroCodec(framing.tables, found)


def _upsert(options: Mapping[str, Any], framing: Framing) -> Codec:
    return UpsertCodec(parse_options(UpsertOptions, options, UpsertCodec.name))


CODECS: Mapping[str, Callable[[Mapping[str, Any], Framing], Codec]] = {
    "avro": _avro,
    "json": _json,
    "debezium": _debezium,
    "debezium_avro": _debezium_avro,
    "upsert": _upsert,
}


_WITHOUT_REGISTRY = Framing()


def build(name: str, options: Mapping[str, Any], framing: Framing = _WITHOUT_REGISTRY) -> Codec:
    """Return the codec with this name and these options.

    Raises:
        ConfigError: the codec or an option is unknown, or the codec requires a registry and none is configured.
    """
    if name not in CODECS:
        raise ConfigError(unknown("codec", name, CODECS))
    return CODECS[name](options, framing)
