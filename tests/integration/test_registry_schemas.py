"""Schemas that messages reference by registry id are fetched when needed, and awaited while the registry is down."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient

from dev.servers.broker import Broker
from dev.servers.registry import RegistryServer
from dev.servers.stack import wait_until
from tests.integration._workers import PATIENCE, STEADY, Workers, dumps
from tests.integration.conftest import RegistryGate
from tests.translator.dialects.qlik.avro import body, data_schema, framed, key_schema, written
from tests.translator.dialects.qlik.messages import SCHEMA_ID, bare, enveloped, metadata
from tests.translator.service._lessons import Lessons
from tests.translator.service._pipeline import PARTITION, Bench
from tests.translator.service.test_metadata_wait import letters, need, soon
from translator.config.settings import Registry
from translator.kafka.schema_registry import SchemaRegistry

pytestmark = pytest.mark.integration

SCHEMA = json.dumps({"type": "record", "name": "DataRecord", "fields": [{"name": "a", "type": "string"}]})


def test_down_up_and_gone(registry: RegistryServer, registry_gate: RegistryGate) -> None:
    """A row waits while the registry is down and is read when it is back. After that, the registry is not needed."""
    with SchemaRegistryClient({"url": registry.url, "timeout": 30}) as client:
        schema_id = client.register_schema("lessons-value", Schema(SCHEMA, "AVRO"))
    asked = SchemaRegistry(Registry(url=registry_gate.url))
    bench = Bench(Lessons, fetch=lambda number: asked.schema_text(number, limit=10_000))

    async def steps() -> None:
        waiting = asyncio.create_task(bench.run([need(0, "7", schema_id)]))
        await soon(lambda: len(bench.said) > 1)
        registry_gate.open()
        await asyncio.wait_for(waiting, PATIENCE)
        registry_gate.shut()
        await bench.run([need(1, "7", schema_id)])

    asyncio.run(steps())
    assert f"waiting for the schema registry to return schema {schema_id}: " in bench.said[0]
    assert [] == letters(bench)
    events = [json.loads(event.value()) for event in bench.read(bench.output.topic, PARTITION)]
    assert [json.loads(SCHEMA)] * 2 == [json.loads(event["after"]["by"]) for event in events]


DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
DATE = {"type": "int", "logicalType": "date"}
NAMESPACE = "com.attunity.queue.msg.to_lake.HR.STAFF"
"""Letters that Avro allows. This registry accepts no others, although Confluent's has been seen with them."""
COLUMNS: dict[str, Any] = {"id": "long", "name": "string", "pay": DECIMAL, "hired": DATE}
ROW: dict[str, Any] = {"id": 7, "name": "a", "pay": b"\x04\xd2", "hired": 3}
RAISED = {**ROW, "name": "b", "pay": b"\xff"}


def test_the_service_asks(
    empty_broker: Broker, registry: RegistryServer, registry_gate: RegistryGate, tmp_path: Path
) -> None:
    """Messages in Confluent's frame, as Replicate registers them: data records and keys of two schemas.

    While the registry is down, the partition that needs it waits and the other one continues. Then all is translated.
    """
    source = {"name": "erp", "dialect": "qlik", "topics": ["erp"]}
    schemas = {"erp-value": data_schema(COLUMNS, NAMESPACE), "erp-key": key_schema({"id": "long"}, NAMESPACE)}
    with SchemaRegistryClient({"url": registry.url, "timeout": 30}) as client:
        value_id, key_id = (
            client.register_schema(subject, Schema(json.dumps(schema), "AVRO")) for subject, schema in schemas.items()
        )
    given = {
        "output": {"codec": "json"},
        "registry": {"url": registry_gate.url},
        "timing": STEADY | {"metadata_wait": 1},
    }
    workers = Workers(empty_broker, tmp_path, 1, [source], **given)
    workers.create(erp=2)
    key = framed(key_id, written(schemas["erp-key"], {"id": 7}))
    changes = [body("INSERT", ROW), body("UPDATE", RAISED, ROW), body("DELETE", RAISED)]
    try:
        workers.start()
        values = [framed(value_id, written(schemas["erp-value"], change)) for change in changes]
        workers.feed("erp", values, 0, key)
        told = metadata({"ID": {"type": "INT4", "primaryKeyPosition": 1}}, table="T")
        row = enveloped(bare("INSERT", {"ID": 1}), SCHEMA_ID)
        workers.feed("erp", [dumps(told), *[dumps(row)] * 20], 1)
        workers.wait_committed("erp", 21, 1)
        asked = "waiting for the schema registry to return"
        wait_until("it says so", PATIENCE, lambda: workers.said(asked), workers.stacks[0])
        assert 0 == workers.committed("erp", 0)
        registry_gate.open()
        workers.wait_committed("erp", 3, 0)
        assert [] == workers.dead_letters()
        events = [json.loads(record.value()) for record in workers.events()]
        assert 20 == sum(event["table"] == "T" for event in events)
        _check_staff([event for event in events if event["table"] == "STAFF"])
        (types,) = [
            table["columns"]
            for record in workers.stacks[0].records("cdc.canonical.schemas")
            if (table := json.loads(record.value()))["table"] == "STAFF"
        ]
        declared = [(column["name"], column["type"], column["key"]) for column in types]
        assert [("id", "int64", 1), ("name", "string", None)] == declared[:2]
        assert [("pay", "decimal(9,2)", None), ("hired", "date", None)] == declared[2:]
        assert 0 == workers.stacks[0].stop("translator")
    finally:
        workers.close()


def _check_staff(events: list[Any]) -> None:
    """Check one row that is inserted, updated and deleted: its key follows the key record, its values the schema."""
    first = {"id": 7, "name": "a", "pay": "12.34", "hired": "1970-01-04"}
    second = {"id": 7, "name": "b", "pay": "-0.01", "hired": "1970-01-04"}
    images = [("c", None, first), ("u", first, second), ("d", second, None)]
    assert images == [(event["op"], event["before"], event["after"]) for event in events]
    for event in events:
        assert ("confluent_avro", "to_lake", "HR") == (event["variant"], event["task"], event["schema"])
        assert ({"id": 7}, "primary", None) == (event["key"], event["key_kind"], event["key_old"])
