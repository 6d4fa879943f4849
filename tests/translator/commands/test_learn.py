"""`translator learn` on the real broker: its input, the resulting metadata topic, and its output."""

import copy
import json
import subprocess
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from dev.servers.broker import Broker
from tests.translator.commands import _program
from tests.translator.service.test_pipeline import METADATA, QLIK_ROW


def metadata(schema_id: str, table: str, version: int, column: str = "ID") -> bytes:
    """Return a metadata message. The column distinguishes contents."""
    message: Any = copy.deepcopy(METADATA)
    message["messageSchemaId"] = message["message"]["schemaId"] = schema_id
    message["message"]["lineage"] |= {"table": table, "tableVersion": version}
    structure = message["message"]["tableStructure"]
    structure["tableColumns"] = {column: structure["tableColumns"]["ID"]}
    return json.dumps(message).encode()


@dataclass
class Bench:
    """Two raw topics of a source `erp` on the broker, and the command."""

    bootstrap: str
    directory: Path
    name: str

    @property
    def topics(self) -> list[str]:
        return [f"{self.name}.data", f"{self.name}.md"]

    def feed(self, topic: str, partition: int, *values: bytes) -> None:
        producer = Producer({"bootstrap.servers": self.bootstrap})
        for value in values:
            producer.produce(topic, value, partition=partition)
        assert 0 == producer.flush(20)

    def run(self, *arguments: str, **changes: Any) -> subprocess.CompletedProcess[str]:
        config = self.directory / "translator.yaml"
        settings = {
            "kafka": {"bootstrap_servers": self.bootstrap},
            "output": {"topic": f"out-{self.name}"},
            "sources": [
                {"name": "erp", "dialect": "qlik", "topics": [f"{self.name}.*"]},
                {
                    "name": "shop",
                    "dialect": "canal",
                    "topics": [f"{self.name}-shop"],
                    "options": {"profile": "oss"},
                },
            ],
        }
        config.write_text(yaml.safe_dump({**settings, **changes}))
        return _program.run("learn", "-c", str(config), *arguments)

    def learned(self) -> list[tuple[str, int]]:
        """Return the key and table version of each record in the metadata topic."""
        reader = Consumer({"bootstrap.servers": self.bootstrap, "group.id": "unused"})
        place = TopicPartition(f"out-{self.name}.metadata", 0)
        low, high = reader.get_watermark_offsets(place, timeout=10)
        reader.assign([TopicPartition(place.topic, 0, low)])
        found: list[Any] = []
        while len(found) < high - low:
            found += reader.consume(100, 0.05)
        reader.close()
        return [(record.key().decode(), json.loads(record.value())["tableVersion"]) for record in found]


@pytest.fixture
def bench(broker: Broker, tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(broker.bootstrap, tmp_path, f"learn-{uuid.uuid4().hex[:8]}")
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    for future in admin.create_topics([NewTopic(topic, 3, 1) for topic in bench.topics]).values():
        future.result(20)
    yield bench
    # A recently created topic may still be missing from the list.
    made = {*bench.topics, *(name for name in admin.list_topics(timeout=10).topics if bench.name in name)}
    for future in admin.delete_topics([*made]).values():
        future.result(20)


def row() -> bytes:
    return json.dumps(QLIK_ROW).encode()


def test_from_all_topics_and_partitions(bench: Bench) -> None:
    """Metadata among the data is learned like that of a metadata topic. Rows and malformed messages are skipped."""
    data, md = bench.topics
    bench.feed(data, 0, row(), b"{]", metadata("A1", "EMP", 1), row())
    bench.feed(data, 2, metadata("A2", "EMP", 2, "NO"), row())
    bench.feed(md, 1, metadata("B1", "DEPT", 7), metadata("A1", "EMP", 1))
    ran = bench.run()
    assert 0 == ran.returncode, ran.stderr
    assert [("erp/A1", 1), ("erp/A2", 2), ("erp/B1", 7)] == bench.learned()
    assert "erp: topics=2 records=8 metadata=4 ids=3 new=3 refused=0" == ran.stdout.splitlines()[-1]
    assert ["A1", "HR.EMP", "1", "new"] == _row_of(ran.stdout, "A1")


def test_again(bench: Bench) -> None:
    """A second run writes only what is new since the first."""
    data, _ = bench.topics
    bench.feed(data, 0, metadata("A1", "EMP", 1))
    bench.run()
    bench.feed(data, 0, metadata("A2", "EMP", 2))
    ran = bench.run("--source", "erp")
    assert [("erp/A1", 1), ("erp/A2", 2)] == bench.learned()
    (told,) = json.loads(bench.run("--json").stdout)["sources"]
    assert [("A1", True), ("A2", True)] == [(lesson["key"], lesson["known"]) for lesson in told["lessons"]]
    assert ["known", "new"] == [_row_of(ran.stdout, key)[-1] for key in ("A1", "A2")]


def test_of_two_contents_the_newest(bench: Bench) -> None:
    """If two messages of one id disagree, that is reported, and the one with the higher version is written."""
    data, md = bench.topics
    bench.feed(data, 0, metadata("A1", "EMP", 3, "NO"))
    bench.feed(md, 0, metadata("A1", "EMP", 2))
    ran = bench.run()
    assert [("erp/A1", 3)] == bench.learned()
    assert "source erp: conflicting metadata A1, keeping the newest" in ran.stderr


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--source", "epr"], "unknown source 'epr' (did you mean erp?)"),
        (["--source", "shop"], "source shop: dialect canal has no metadata messages"),
    ],
)
def test_a_wrong_source(bench: Bench, arguments: list[str], reason: str) -> None:
    """A bad source is rejected with exit code 2 before anything is read."""
    ran = bench.run(*arguments)
    assert 2 == ran.returncode
    assert reason in ran.stderr


def test_without_a_broker(bench: Bench, free_port: int) -> None:
    """Without a broker, it fails with exit code 1 after the configured time."""
    away = {"kafka": {"bootstrap_servers": f"127.0.0.1:{free_port}"}, "timing": {"broker_wait": 0}}
    ran = bench.run(**away)
    assert 1 == ran.returncode
    assert "no broker available within 0 s" in ran.stderr


def _row_of(text: str, key: str) -> list[str]:
    """Return the cells of a row of the printed table."""
    (line,) = [line for line in text.splitlines() if f" {key} " in line]
    return [cell.strip() for cell in line.replace("┃", "│").split("│") if cell.strip()]
