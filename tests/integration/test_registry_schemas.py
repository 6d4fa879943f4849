"""Schemas that messages name by their id in a real registry: fetched when needed, waited for while it is down."""

from __future__ import annotations

import asyncio
import json

import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient

from dev.broker import Broker
from dev.registry import RegistryServer
from tests.translator.runtime._lessons import Lessons
from tests.translator.runtime._pipeline import PARTITION, Bench
from tests.translator.runtime.test_waits import letters, need, soon
from translator.runtime.registry import SchemaRegistry
from translator.settings import Registry

pytestmark = pytest.mark.integration

SCHEMA = json.dumps({"type": "record", "name": "DataRecord", "fields": [{"name": "a", "type": "string"}]})


def test_down_up_and_gone(broker: Broker) -> None:
    """A row waits while the registry is down, and is read when it is back; after that the registry is not missed."""
    with RegistryServer() as server:
        with SchemaRegistryClient({"url": server.url, "timeout": 30}) as client:
            schema_id = client.register_schema("erp-value", Schema(SCHEMA, "AVRO"))
        server.stop()
        registry = SchemaRegistry(Registry(url=server.url))
        bench = Bench(broker.bootstrap, Lessons, fetch=lambda number: registry.schema_text(number, limit=10_000))

        async def steps() -> None:
            waiting = asyncio.create_task(bench.run([need(0, "7", schema_id)]))
            await soon(lambda: len(bench.said) > 1)
            await asyncio.to_thread(server.start)
            await asyncio.wait_for(waiting, 60)
            await asyncio.to_thread(server.stop)
            await bench.run([need(1, "7", schema_id)])

        try:
            asyncio.run(steps())
            assert f"waiting for the schema registry, which is asked for schema {schema_id}: " in bench.said[0]
            assert [] == letters(bench)
            events = [json.loads(event.value()) for event in bench.read(bench.output.topic, PARTITION)]
            assert [json.loads(SCHEMA)] * 2 == [json.loads(event["after"]["by"]) for event in events]
        finally:
            bench.close()
