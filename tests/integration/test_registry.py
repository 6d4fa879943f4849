"""The service with a real schema registry: required at startup, optional afterwards."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from confluent_kafka.schema_registry import SchemaRegistryClient, topic_subject_name_strategy
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext

from dev.demo.sources import shop_sources
from dev.servers.broker import Broker
from dev.servers.registry import RegistryServer
from dev.servers.stack import CANONICAL, DEAD_LETTERS, Stack, wait_until
from tests.integration._workers import PATIENCE
from tests.integration.conftest import RegistryGate
from translator.codecs.avro import confluent_header

pytestmark = pytest.mark.integration


def test_the_registry_is_needed_at_start_only(
    empty_broker: Broker, registry: RegistryServer, registry_gate: RegistryGate, tmp_path: Path
) -> None:
    """Nothing is written before the id is known. After that, the registry can stop, and every record has the id."""
    (source,) = [source for source in shop_sources(1) if source.name == "canal"]
    stack = Stack(empty_broker.bootstrap, tmp_path, [source.settings])
    use_registry(stack, registry_gate.url)
    try:
        stack.create_raw_topics()
        stack.feed(source.messages(200, grow=False))
        stack.start("translator")
        log = stack.log("translator")
        wait_until("it says that it waits", PATIENCE, lambda: "waiting for a schema registry" in log.read_text(), stack)
        assert 0 == sum(stack.committed().values())

        registry_gate.open()
        wait_until("the first messages are committed", PATIENCE, lambda: sum(stack.committed().values()) == 200, stack)
        registry_gate.shut()
        stack.feed(source.messages(200, grow=False))
        wait_until("the others are committed", PATIENCE, lambda: sum(stack.committed().values()) == 400, stack)
        assert 0 == stack.stop("translator")

        registry_gate.open()
        stack.start("translator")
        stack.feed(source.messages(200, grow=False))
        wait_until("the last are committed", PATIENCE, lambda: sum(stack.committed().values()) == 600, stack)
        values = [record.value() for record in stack.records(CANONICAL)]
        with SchemaRegistryClient({"url": registry.url, "timeout": 30}) as client:
            header = confluent_header(client.get_latest_version(f"{CANONICAL}-value").schema_id or 0)
            reader = AvroDeserializer(client, conf={"subject.name.strategy": topic_subject_name_strategy})
            events = [reader(value, SerializationContext(CANONICAL, MessageField.VALUE)) for value in values]
        assert {header} == {value[:5] for value in values}
        assert 600 == len({event["id"] for event in events if event})
        assert [] == stack.records(DEAD_LETTERS)
    finally:
        stack.close()


def test_schemas_of_tables(
    empty_broker: Broker, registry: RegistryServer, registry_gate: RegistryGate, tmp_path: Path
) -> None:
    """A Confluent consumer finds each table's schemas by topic. While the registry is down, the tables wait.

    The rows use Debezium's JSON. Events of the codec avro are found by the same kind of topic name.
    """
    (source,) = [source for source in shop_sources(1) if source.name == "canal"]
    projections = [
        {"topic": f"{form}.{{source}}.{{table}}", "codec": codec, "options": {"missing_before": ["partial"]}}
        for form, codec in (("json", "debezium"), ("avro", "debezium_avro"))
    ]
    projections.append({"topic": "events.{source}.{table}", "codec": "avro"})
    stack = Stack(empty_broker.bootstrap, tmp_path, [source.settings], projections=projections)
    use_registry(stack, registry_gate.url)
    try:
        stack.create_raw_topics()
        registry_gate.open()
        stack.start("translator")
        log = stack.log("translator")
        wait_until(
            "it knows its own", PATIENCE, lambda: "schema id received from the registry" in log.read_text(), stack
        )
        registry_gate.shut()
        stack.feed(source.messages(200, grow=False))
        wait_until("it says that it waits", PATIENCE, lambda: "to return an id under avro." in log.read_text(), stack)
        registry_gate.open()
        wait_until("all is committed", PATIENCE, lambda: sum(stack.committed().values()) == 200, stack)
        tables = [f"canal.shop.{table.name}" for table in source.shop.tables]
        with SchemaRegistryClient({"url": registry.url, "timeout": 30}) as client:
            reader = AvroDeserializer(client, conf={"subject.name.strategy": topic_subject_name_strategy})
            for table in tables:
                plain, framed = stack.records(f"json.{table}"), stack.records(f"avro.{table}")
                assert [_row(json.loads(one.value())) for one in plain] == [
                    _row(reader(one.value(), SerializationContext(one.topic(), MessageField.VALUE)) or {})
                    for one in framed
                ]
                assert {f"avro.{table}-key", f"avro.{table}-value"} <= {*client.get_subjects()}
                events = [
                    reader(one.value(), SerializationContext(one.topic(), MessageField.VALUE)) or {}
                    for one in stack.records(f"events.{table}")
                ]
                assert len(plain) <= 2 * len(events)
                assert {table.rpartition(".")[2]} == {event["table"] for event in events}
                assert f"events.{table}-value" in client.get_subjects()
        assert [] == stack.records(DEAD_LETTERS)
    finally:
        stack.close()


def _row(envelope: Mapping[str, Any]) -> tuple[object, ...]:
    """Return what both forms spell alike."""
    images = [envelope["before"] or {}, envelope["after"] or {}]
    return envelope["op"], envelope["source"]["lsn"], [image.get("id") for image in images]


def use_registry(stack: Stack, url: str) -> None:
    config = stack.directory / "translator.yaml"
    settings = yaml.safe_load(config.read_text(encoding="utf-8"))
    settings["timing"]["broker_wait"] = 2 * PATIENCE  # includes the start of the registry on a busy machine
    config.write_text(yaml.safe_dump({**settings, "registry": {"url": url}}), encoding="utf-8")
