"""`translator retranslate` on the real broker writes the service's bytes to a separate topic."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from dev.servers.broker import Broker
from tests.translator.commands._bench import Bench, row
from tests.translator.dialects.made import made
from tests.translator.service.test_pipeline import METADATA, QLIK_ROW
from translator.dialects.qlik import Qlik
from translator.message import Learned, Message, Setup


def beside(shop: Bench) -> str:
    return f"{shop.name}-beside"


def arguments(shop: Bench, *more: str, end: int = 4, output: str = "") -> list[str]:
    place = ["--topic", shop.raw, "--partition", "1", "--from", "1", "--to", str(end)]
    return [*place, "--output", output or beside(shop), *more]


def whole(record: Any) -> tuple[Any, ...]:
    return record.key(), record.value(), record.headers()


def test_the_same_bytes(shop: Bench) -> None:
    """It writes the events of exactly that range as the service did. Dead letters are only printed."""
    shop.feed([row(1), row(2), b"{]", row(4), row(5)], 1)
    shop.serve()
    before = [len(shop.read(topic)) for topic in (shop.canonical, shop.dead_letters)]
    ran = shop.run("retranslate", *arguments(shop))
    assert 0 == ran.returncode, ran.stderr
    wanted = f"records=3 translated=2 dead=1 skipped=0 learned=0 events=4 output={beside(shop)}"
    assert wanted == ran.stdout.strip()
    written = shop.read(shop.canonical)
    again = shop.read(beside(shop))
    assert [whole(record) for record in written[2:6]] == [whole(record) for record in again]
    assert 1 == len({record.partition() for record in again})
    (letter,) = [json.loads(line) for line in ran.stderr.splitlines() if line.startswith("{")]
    assert ("MALFORMED_JSON", 2) == (letter["code"], letter["origin"]["offset"])
    assert before == [len(shop.read(topic)) for topic in (shop.canonical, shop.dead_letters)]


def test_topics_of_the_service_that_are_gone(shop: Bench) -> None:
    """They are created along with the separate topic, which then has everything it needs."""
    shop.feed([row(1), row(2)], 1)
    gone = {shop.canonical, f"{shop.canonical}.schemas"}
    for future in shop.admin.delete_topics(list(gone)).values():
        future.result(20)
    while gone & shop.admin.list_topics(timeout=10).topics.keys():
        time.sleep(0.1)
    ran = shop.run("retranslate", *arguments(shop, end=2))
    assert 0 == ran.returncode, ran.stderr
    assert 2 == len(shop.read(beside(shop)))
    assert [] == shop.read(shop.canonical)


def test_only_some_tables(shop: Bench) -> None:
    """A pattern excludes events of other tables. Ids are those of the whole message."""
    shop.feed([row(1), row(2, "orders"), row(3), row(4, "orders_old")], 1)
    ran = shop.run("retranslate", *arguments(shop, "--table", "shop.orders*"))
    assert 0 == ran.returncode, ran.stderr
    ids = [dict(record.headers())["cdc-id"].decode() for record in shop.read(beside(shop))]
    assert [f"shop/{shop.raw}/1/{offset}/{n}" for offset in (1, 3) for n in (0, 1)] == ids


def test_what_does_not_fit(shop: Bench) -> None:
    """A message with an event too large for the separate topic becomes a dead letter as a whole."""
    shop.create(beside(shop), 1, max_message_bytes="2000")
    shop.feed([row(1), row(2), row(3, name="a" * 1500), row(4)], 1)
    ran = shop.run("retranslate", *arguments(shop))
    assert 0 == ran.returncode, ran.stderr
    assert "records=3 translated=2 dead=1" in ran.stdout
    assert "TOO_LARGE" in ran.stderr
    assert 4 == len(shop.read(beside(shop)))


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        ("{canonical}", "the service writes to topic"),
        ("{canonical}.dlq", "the service writes to topic"),
        ("{raw}", "a source reads topic"),
    ],
)
def test_a_topic_of_the_service(shop: Bench, output: str, reason: str) -> None:
    """A topic of the service is rejected with exit code 2 before anything is written."""
    shop.feed([row(1), row(2)], 1)
    name = output.format(canonical=shop.canonical, raw=shop.raw)
    ran = shop.run("retranslate", *arguments(shop, end=2, output=name))
    assert (2, True) == (ran.returncode, reason in ran.stderr), ran.stderr
    assert [] == shop.read(shop.canonical)


@pytest.fixture
def erp(broker: Broker, tmp_path: Path) -> Iterator[Bench]:
    """A Qlik source whose rows need metadata."""
    bench = Bench(broker.bootstrap, tmp_path, topics={"create": False})
    bench.document["sources"] = [{"name": "erp", "dialect": "qlik", "topics": [bench.raw]}]
    bench.config.write_text(json.dumps(bench.document))
    yield bench
    bench.close()


def test_what_the_service_has_learned(erp: Bench) -> None:
    """Metadata comes from the metadata topic and not from the range. A topic that must not be created has to exist."""
    erp.feed([b"{}", json.dumps(QLIK_ROW).encode()], 1)
    ran = erp.run("retranslate", *arguments(erp, end=2))
    assert (2, True) == (ran.returncode, f"missing topics: {beside(erp)}" in ran.stderr), ran.stderr
    erp.create(beside(erp), 2)
    ran = erp.run("retranslate", *arguments(erp, end=2))
    assert "SCHEMA_MISSING" in ran.stderr
    producer = Producer(erp.client)
    learned = made(Qlik, Setup("erp"), {}).decode(Message("md", 0, 0, 0, None, json.dumps(METADATA).encode()))
    assert isinstance(learned, Learned)
    producer.produce(erp.metadata, learned.document, f"erp/{learned.key}".encode())
    producer.flush(20)
    ran = erp.run("retranslate", *arguments(erp, end=2))
    assert "records=1 translated=1 dead=0" in ran.stdout, ran.stderr
    assert 1 == len(erp.read(beside(erp)))
