"""Codecs are built by name with options, and mistakes are reported as for dialects."""

import pytest

from translator.codecs import CODECS, Framing, build
from translator.codecs.avro import AvroCodec, confluent_header
from translator.codecs.registered import TableSchemas, unknown_id
from translator.errors import ConfigError


def no_header() -> bytes:
    """Fail: no registry may be asked."""
    raise AssertionError("asked for the header of Avro values")


@pytest.mark.parametrize("name", CODECS)
def test_unknown_option(name: str) -> None:
    """Every codec rejects an unknown option in its own name."""
    with pytest.raises(ConfigError, match=rf"^{name}: unknown option 'no_such_option'"):
        build(name, {"no_such_option": 1})


def test_unknown_codec() -> None:
    """The error for an unknown codec contains the closest match."""
    with pytest.raises(
        ConfigError,
        match=r"^unknown codec 'jsn' \(did you mean json\?\); allowed: avro, debezium, debezium_avro, json, upsert$",
    ):
        build("jsn", {})


def test_options_reach_the_codec() -> None:
    """An option with a value of the wrong type stops the start."""
    with pytest.raises(ConfigError, match=r"^debezium: option tombstones: expected true or false$"):
        build("debezium", {"tombstones": "perhaps"})


def test_header() -> None:
    """Avro values begin with the given header. Other codecs do not request it."""
    codec = build("avro", {}, Framing(lambda: confluent_header(7)))
    assert isinstance(codec, AvroCodec)
    with pytest.raises(ValueError, match="0000000007"):
        codec.decode(b"")
    for name in CODECS.keys() - {"avro"}:
        build(name, {}, Framing(no_header, TableSchemas(unknown_id, lambda event: "t")))


def test_a_registry_is_wanted() -> None:
    """Without a registry, no id would ever be known, and nothing would be written."""
    with pytest.raises(ConfigError, match=r"^debezium_avro requires a schema registry; set registry\.url$"):
        build("debezium_avro", {})
