"""Schemas that messages name by their id in a real registry: fetched when needed, waited for while it is down."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient

from dev.broker import Broker
from dev.registry import RegistryServer
from dev.stack import wait_until
from tests.integration._workers import Workers, dumps
from tests.translator.runtime._lessons import Lessons
from tests.translator.runtime._pipeline import PARTITION, Bench
from tests.translator.runtime.test_waits import letters, need, soon
from translator.runtime.registry import SchemaRegistry
from translator.settings import Registry

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parents[2]
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


SERVICE = """
import sys
from tests.translator.runtime._lessons import Lessons
from translator import dialects
from translator.commands import main
dialects.DIALECTS = {**dialects.DIALECTS, "lessons": lambda setup, options: Lessons(setup)}
sys.argv = ["translator", "run", "-c", sys.argv[1]]
main()
"""
"""The service, which knows the dialect of this test."""


def test_the_service_asks(tmp_path: Path) -> None:
    """While the registry is down, the partition that needs it waits, and the other goes on; then all is translated."""
    source = {"name": "erp", "dialect": "lessons", "topics": ["erp"]}
    with RegistryServer() as server, Broker() as broker:
        with SchemaRegistryClient({"url": server.url, "timeout": 30}) as client:
            schema_id = client.register_schema("erp-value", Schema(SCHEMA, "AVRO"))
        server.stop()
        given = {"output": {"codec": "json"}, "registry": {"url": server.url}, "timing": {"metadata_wait": 1}}
        workers = Workers(broker, tmp_path, 1, [source], **given)
        workers.create(erp=2)
        config = workers.stacks[0].directory / "translator.yaml"
        with workers.stacks[0].log("translator").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-c", SERVICE, config], cwd=ROOT, stdout=log, stderr=subprocess.STDOUT
            )
        try:
            workers.feed("erp", [dumps({"need": "7", "id": schema_id})] * 20, 0)
            workers.feed("erp", [dumps({"teach": "k", "text": "text"}), *[dumps({"need": "k"})] * 20], 1)
            workers.wait_committed("erp", 21, 1)
            wait_until("it says so", 60, lambda: workers.said("waiting for the schema registry, which is asked"))
            assert 0 == workers.committed("erp", 0)
            server.start()
            workers.wait_committed("erp", 20, 0)
            assert 40 == len(workers.events())
            assert [] == workers.dead_letters()
            process.terminate()
            assert 0 == process.wait(60)
        finally:
            process.kill()
            workers.close()
