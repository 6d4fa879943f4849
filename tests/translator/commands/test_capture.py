"""`translator capture` on the real broker writes what `translator translate` reads."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from dev.servers.broker import Broker
from tests.translator.commands import _program
from tests.translator.commands._bench import PARTITIONS, Bench, row
from translator.codecs.json import JsonCodec
from translator.commands.record_file import read_files
from translator.config import settings as settings_module
from translator.kafka.offset_ranges import Partitions, message_of
from translator.operations.offline_translator import OfflineTranslator

HEADERS = [("a", b"1"), ("a", b"\xff\x00"), ("b", None)]


def captured(shop: Bench, *arguments: str) -> list[Any]:
    ran = shop.run("capture", *arguments)
    assert 0 == ran.returncode, ran.stderr
    lines = ran.stdout.count("\n")
    assert f"records={lines}" == ran.stderr.splitlines()[-1]
    (shop.directory / "captured.jsonl").write_text(ran.stdout)
    return [line.message for line in read_files([shop.directory / "captured.jsonl"])]


def test_the_same_messages(shop: Bench) -> None:
    """Every byte is preserved in keys, values and headers, missing or binary, with position and time."""
    shop.feed([row(1), None, b"", b"null", b"\xff\xfe", '"ä\n\u2028"'.encode(), b"\xef\xbb\xbf{}"], headers=HEADERS)
    shop.feed([row(2)], key=b"\xff")
    shop.feed([row(3)], 1, headers=[("t", "ü".encode())], key=b"k")
    partitions = Partitions(shop.client, "unused")
    bounds = [partitions.bounds(shop.raw, number) for number in range(PARTITIONS)]
    there = [message_of(record, "-") for range_ in bounds for record in partitions.read(range_)]
    partitions.close()
    assert 9 == len(there)
    assert there == captured(shop, "--count", "100", shop.raw)
    assert there[3:5] == captured(shop, "--count", "2", "--partition", "0", "--from", "3", shop.raw)
    assert there[8:] == captured(shop, "--count", "2", "--partition", "1", shop.raw)


def test_the_same_events(shop: Bench) -> None:
    """The file produces the same events, except that those of the service also have the topic id in `pos_scope`."""
    shop.feed([row(1), b"{]", row(2)])
    again = OfflineTranslator(settings_module.load(shop.config), print)
    events = [again.translate(message).events for message in captured(shop, "--count", "3", shop.raw)]
    again.close()
    codec = JsonCodec()
    wanted = [codec.encode(event)[0].value for found in events if found for event in found.events]
    file = str(shop.directory / "captured.jsonl")
    ran = _program.run("translate", "-d", "canal", "-o", "profile=oss", "--source", "shop", file)
    assert 4 == len(wanted)
    assert wanted == ran.stdout.encode().splitlines()
    assert "records=3 translated=2 dead=1 skipped=0 learned=0 events=4" == ran.stderr.splitlines()[-1]


def test_masked(shop: Bench) -> None:
    """The copies contain everything except values of rows and keys. Messages without a copy are reported."""
    secret = row(471199).replace(b'"a"', b'"Jane"')
    shop.feed([secret, b'{"id": "Jane', secret], key=b"Jane")
    ran = shop.run("capture", "--mask", "--count", "9", shop.raw)
    assert 1 == ran.returncode
    left_out = f"translator: {shop.raw}/0 offset 1 has no masked copy: it is not valid JSON at character 7"
    assert [left_out, "records=3 masked=2 left_out=1"] == ran.stderr.splitlines()[-2:]
    assert not {"Jane", "471199"} & set(re.findall(r"\w+", ran.stdout + ran.stderr))
    first, second = (json.loads(line) for line in ran.stdout.splitlines())
    assert (0, 2) == (first.pop("offset"), second.pop("offset"))
    assert (first["key"], first["value"]) == (second["key"], second["value"])
    assert json.loads(secret).keys() == json.loads(first["value"]).keys()


def test_a_source_with_masks(broker: Broker, tmp_path: Path) -> None:
    """Records of such a source are not copied unmasked, unless the operator keeps messages."""
    rules = [{"column": "name", "mask": "set_null"}]
    masked = Bench(broker.bootstrap, tmp_path, masks={"rules": rules})
    try:
        masked.feed([row(1)])
        refused = masked.run("capture", "--count", "1", masked.raw)
        masked.config.write_text(yaml.safe_dump({**masked.document, "masks": {"rules": rules, "messages": "keep"}}))
        kept = masked.run("capture", "--count", "1", masked.raw)
    finally:
        masked.close()
    assert (2, "") == (refused.returncode, refused.stdout)
    assert "has masks and masks.messages: leave_out" in refused.stderr
    assert (0, 1) == (kept.returncode, len(kept.stdout.splitlines()))


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--count", "1", "--from", "0", "RAW"], "--from requires --partition"),
        (["--count", "1", "--partition", "5", "RAW"], "has no partition 5; it has 2"),
        (["--count", "1", "--partition", "0", "--from", "5", "RAW"], "/0 has no offset 5; it is empty"),
        (["--count", "1", "elsewhere"], "topic elsewhere"),
        (["RAW"], "Missing option '--count'"),
    ],
)
def test_a_wrong_call(shop: Bench, arguments: list[str], reason: str) -> None:
    """A bad call is rejected with exit code 2."""
    ran = shop.run("capture", *(shop.raw if argument == "RAW" else argument for argument in arguments))
    assert (2, True) == (ran.returncode, reason in ran.stderr), ran.stderr
