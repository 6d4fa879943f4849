"""`translator status` reads only the topics, whether or not a service runs."""

import json
from pathlib import Path

import yaml
from confluent_kafka import Consumer, Producer

from dev.servers.stack import wait_until
from tests.translator.commands import _program
from tests.translator.commands._bench import TIMES, Bench, row
from translator.config import settings as settings_module
from translator.message import Message
from translator.operations.file_translator import of_dialect
from translator.operations.status import StatusLooker


def looked(shop: Bench) -> dict[str, object]:
    ran = shop.run("status", "--json")
    assert 0 == ran.returncode, ran.stderr
    told: dict[str, object] = json.loads(ran.stdout)
    return told


def test_what_was_not_read(shop: Bench) -> None:
    """Before the first commit, everything from the first record is lag. Afterwards, only newer records are."""
    shop.feed([row(1), row(2), b"{]"])
    first = looked(shop)["partitions"]
    assert [(None, 3, 3), (None, 0, 0)] == [(p["committed"], p["end"], p["lag"]) for p in first]
    shop.serve()
    shop.feed([row(4)])
    told = looked(shop)
    assert [(3, 4, 1), (0, 0, 0)] == [(p["committed"], p["end"], p["lag"]) for p in told["partitions"]]
    # Its records are from November 2023 (_bench.TIMES), and an idle source has no lag.
    behind, rest = (partition["behind_seconds"] for partition in told["partitions"])
    assert behind > 86400
    assert 0 == rest
    assert [{"source": "shop", "code": "MALFORMED_JSON", "count": 1}] == told["dead"]
    assert [] == told["missing"]


def test_a_screen(shop: Bench) -> None:
    """The output fits 80 columns with any names, and its last line has the totals."""
    shop.feed([b"{]", row(1)])
    ran = shop.run("status")
    assert 0 == ran.returncode, ran.stderr
    lines = ran.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert "lag=2 dead=0 held=0 stopped=0" == lines[-1]
    assert "members: 0 – no process is running in this group" == lines[1]
    assert f"{shop.raw}/0" in ran.stdout


def test_before_the_first_run(shop: Bench) -> None:
    """Missing topics are reported but are not an error."""
    shop.document["output"] = {"topic": f"{shop.name}-new"}
    shop.document["sources"][0]["topics"] = [shop.raw, f"{shop.name}-gone"]
    shop.config.write_text(yaml.safe_dump(shop.document))
    told = looked(shop)
    assert f"topic {shop.name}-gone does not exist" in told["missing"]
    assert f"topic {shop.name}-new.dlq does not exist: the service has not run yet" in told["missing"]
    assert 2 == len(told["partitions"])
    ran = shop.run("status")
    assert max(map(len, ran.stdout.splitlines())) <= 80


def test_rates_are_of_two_looks(shop: Bench) -> None:
    shop.feed([row(number) for number in range(100)])
    looker = StatusLooker(settings_module.load(shop.config), print)
    assert [None, None] == [partition.rate for partition in looker.look().partitions]
    shop.commit(80)
    moved, still = looker.look().partitions
    assert moved.rate is not None
    assert moved.rate > 0
    assert 0 == still.rate


def test_newest_schemas(shop: Bench) -> None:
    producer = Producer(shop.client)
    for number, table in enumerate(("a", "b")):
        message = Message(shop.raw, 0, number, 0, None, row(1, table))
        translation = of_dialect("canal", {}, "shop", [message], print).translate(message)
        (record,) = translation.schemas.values()
        producer.produce(f"{shop.canonical}.schemas", record.value, record.key, timestamp=TIMES + number)
    assert 0 == producer.flush(20)
    newest = looked(shop)["schemas"]
    assert [("shop", "shop.b"), ("shop", "shop.a")] == [(schema["source"], schema["table"]) for schema in newest]


def test_nobody_answers(tmp_path: Path, free_port: int) -> None:
    document = {
        "kafka": {"bootstrap_servers": f"127.0.0.1:{free_port}"},
        "timing": {"broker_wait": 0},
        "sources": [{"name": "s", "dialect": "canal", "topics": ["t"], "options": {"profile": "oss"}}],
    }
    (tmp_path / "t.yaml").write_text(yaml.safe_dump(document))
    ran = _program.run("status", "-c", str(tmp_path / "t.yaml"))
    assert 1 == ran.returncode
    assert ran.stderr.startswith("translator: ")


def test_members(shop: Bench) -> None:
    """The processes of the group are listed with their partitions."""
    assert [] == looked(shop)["members"]
    reader = Consumer(shop.client | {"group.id": shop.name, "client.id": "one"})
    try:
        reader.subscribe([shop.raw])
        wait_until("it owns both", 120, lambda: reader.poll(0.1) is None and len(reader.assignment()) == 2)
        (member,) = looked(shop)["members"]
        assert [[shop.raw, 0], [shop.raw, 1]] == member["partitions"]
        assert member["name"].startswith("one at ")
        lines = shop.run("status").stdout.splitlines()
        assert "members: 1" == lines[1]
        assert max(map(len, lines)) <= 80
    finally:
        reader.close()
