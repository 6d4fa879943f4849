"""The audit commands work on the output of a service that was killed along the way."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from confluent_kafka import Producer

from dev.demo.bad_input import bad_input
from dev.demo.sources import interleaved, shop_sources
from dev.servers.broker import Broker
from dev.servers.stack import CANONICAL, Stack, wait_until

pytestmark = pytest.mark.integration

CHANGES = 300
SECONDS = 300  # for each step: a timeout for hanging tests, not a measurement
SEED = 20220320


@dataclass
class Left:
    """A broker with everything that a service read and wrote."""

    stack: Stack
    fed: int

    def run(self, command: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        line = [sys.executable, "-m", "translator", command, "-c", "translator.yaml", *arguments]
        return subprocess.run(line, capture_output=True, text=True, timeout=300, check=False, cwd=self.stack.directory)

    def audit(self, *arguments: str) -> tuple[int, Any]:
        ran = self.run("audit", "--json", *arguments)
        assert ran.returncode in (0, 1), ran.stderr
        return ran.returncode, json.loads(ran.stdout)


@pytest.fixture(scope="module")
def left(module_broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Left]:
    """Run five sources, including bad input. The service is killed once, soon after it starts to process."""
    sources = shop_sources(SEED)
    messages = [*(bad.message for bad in bad_input()), *interleaved([s.messages(CHANGES, grow=True) for s in sources])]
    half = len(messages) // 2
    stack = Stack(module_broker.bootstrap, tmp_path_factory.mktemp("audit"), [source.settings for source in sources])
    try:
        stack.create_raw_topics()
        stack.feed(messages[:half])
        stack.start("translator")
        wait_until("something is accounted for", SECONDS, lambda: bool(stack.account()), stack)
        stack.kill("translator")
        stack.feed(messages[half:])
        stack.start("translator")
        wait_until("all is committed", SECONDS, lambda: sum(stack.committed().values()) == len(messages), stack)
        assert 0 == stack.stop("translator")
        yield Left(stack, len(messages))
    finally:
        stack.close()


def test_the_service_loses_and_invents_nothing(left: Left) -> None:
    """Every fed record is accounted for, and duplicates have the bytes of today's translation."""
    code, report = left.audit("--strict")
    accounts = report["accounts"]
    assert 0 == code, report
    assert left.fed == sum(account["records"] for account in accounts)
    names = {bad.code for bad in bad_input()} - {None}
    assert names == {name for account in accounts for name in account["dead"]}
    ids = [dict(record.headers())["cdc-id"] for record in left.stack.records(CANONICAL)]
    assert len(set(ids)) == sum(account["events"] for account in accounts)
    assert len(ids) - len(set(ids)) == sum(account["duplicates"] for account in accounts)


def test_another_configuration_is_seen(left: Left) -> None:
    """The audit distinguishes events that other options would produce from lost events."""
    config = left.stack.directory / "translator.yaml"
    as_it_was = config.read_text()
    assert "profile: dts_legacy" in as_it_was
    try:
        config.write_text(as_it_was.replace("profile: dts_legacy", "profile: oss"))
        code, report = left.audit("--topic", "raw.legacy")
    finally:
        config.write_text(as_it_was)
    assert 0 == code, report
    assert sum(account["different"] for account in report["accounts"])


def test_again_and_compared(left: Left) -> None:
    """Translating again produces what the service wrote, also for Qlik, whose metadata is in another topic."""
    _, report = left.audit("--topic", "raw.qlik")
    for account in report["accounts"]:
        place = ["--topic", account["topic"], "--partition", str(account["partition"])]
        ran = left.run("retranslate", *place, "--from", "0", "--to", str(account["end"]), "--output", "beside")
        assert 0 == ran.returncode, ran.stderr
    ran = left.run("diff", CANONICAL, "beside")
    events = sum(account["events"] for account in report["accounts"])
    assert events
    assert f"equal={events} different=0 " in ran.stdout, ran.stdout + ran.stderr
    assert " only_b=0 " in ran.stdout


def test_what_was_not_translated_is_lost(left: Left) -> None:
    """A record beyond the committed offset counts as lost only on request. This test adds a record, so it runs last."""
    producer = Producer({"bootstrap.servers": left.stack.bootstrap, "log_level": 0})
    (record,) = left.stack.records("raw.canal")[-1:]
    producer.produce("raw.canal", record.value(), record.key(), 0)
    assert 0 == producer.flush(20)
    end = left.stack.committed()["raw.canal", 0]
    assert 0 == left.audit("--topic", "raw.canal")[0]
    range_ = ("--from", str(end - 1), "--to", str(end + 1))
    code, report = left.audit("--topic", "raw.canal", "--partition", "0", *range_)
    (account,) = report["accounts"]
    assert (1, [end]) == (code, [finding["offset"] for finding in account["lost"]["first"]])
