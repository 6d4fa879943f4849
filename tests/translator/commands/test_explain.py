"""`translator explain` on the real broker shows one record, its events and their decisions, without values."""

import json
from pathlib import Path

from confluent_kafka import Producer

from dev.servers.broker import Broker
from tests.translator.commands._bench import PARTITIONS, TIMES, Bench, row
from tests.translator.service._pipeline import CANAL_ROW

SECRET = "not-for-everybody"


def secret_update(old: dict[str, str]) -> bytes:
    rows = [{"id": "1", "name": SECRET}]
    return json.dumps({**CANAL_ROW, "type": "UPDATE", "data": rows, "old": [old], "table": "t"}).encode()


def test_events_with_their_decisions(shop: Bench) -> None:
    """For each event, it shows the form and how it was decided, image states, changes and notes."""
    shop.feed([row(1), secret_update({"id": "9"})], 1)
    ran = shop.run("explain", shop.raw, "1", "1")
    assert 0 == ran.returncode, ran.stderr
    lines = ran.stdout.splitlines()
    assert f"record: {shop.raw}/1 offset 1, 2023-11-14T22:13:20.001Z" == lines[0]
    assert "source: shop (canal)" in lines
    assert "outcome: translated, 1 events" in lines
    assert any(line.startswith("event 0: row shop.t, ") for line in lines)
    for fact in (
        "op: u",
        "variant_basis: declared",
        'notes: ["BEFORE_MERGED", "PK_CHANGED"]',
        "after columns: id, name",
    ):
        assert f"  {fact}" in lines
    assert SECRET not in ran.stdout + ran.stderr


def test_for_programs(shop: Bench) -> None:
    """JSON output has the same in parts, and the whole event if values are requested."""
    shop.feed([secret_update({"id": "9"}), b"{]"])
    ran, whole, dead = (
        shop.run("explain", "--json", *arguments, shop.raw, "0", offset)
        for arguments, offset in (([], "0"), (["--values"], "0"), ([], "1"))
    )
    told = json.loads(ran.stdout)
    assert ("shop", "canal", 0, "translated") == (
        told["source"], told["dialect"], told["record"]["offset"], told["outcome"]
    )  # fmt: skip
    (event,) = told["events"]
    assert ("u", ["BEFORE_MERGED", "PK_CHANGED"], ["id", "name"]) == (
        event["op"], event["notes"], event["after_columns"]
    )  # fmt: skip
    assert SECRET not in ran.stdout
    assert SECRET == json.loads(whole.stdout)["events"][0]["event"]["after"]["name"]
    assert ("dead", "MALFORMED_JSON", []) == tuple(
        json.loads(dead.stdout)[name] for name in ("outcome", "code", "events")
    )


def test_what_a_producer_may_write(shop: Bench) -> None:
    """Table names and headers cannot move the terminal's cursor."""
    producer = Producer(shop.client)
    named = row(1, "t\x1b[2J")
    producer.produce(shop.raw, named, partition=0, timestamp=TIMES, headers=[("h\x1b[2J", b"x")])
    assert 0 == producer.flush(20)
    ran = shop.run("explain", "--values", shop.raw, "0", "0")
    assert 0 == ran.returncode, ran.stderr
    assert "\x1b" not in ran.stdout
    lines = ran.stdout.splitlines()
    assert "headers: h\\u001b[2J" in lines
    assert any(line.startswith("event 0: row shop.t\\u001b[2J, ") for line in lines)
    assert "t\x1b[2J" == json.loads(next(line for line in lines if line.startswith("  {")))["table"]


def test_values_only_when_asked_for(shop: Bench) -> None:
    """On request, it shows the whole event as `translate` prints it."""
    shop.feed([secret_update({"name": "x"})])
    ran = shop.run("explain", "--values", shop.raw, "0", "0")
    (event,) = [json.loads(line) for line in ran.stdout.splitlines() if line.startswith("  {")]
    assert (f"shop/{shop.raw}/0/0/0", SECRET) == (event["id"], event["after"]["name"])


MASKS = {"rules": [{"column": "NAME", "mask": "replace", "text": "***"}]}


def test_of_a_source_with_masks(broker: Broker, tmp_path: Path) -> None:
    """Events are masked even if values are requested. Of the message itself, only the size is shown."""
    masked = Bench(broker.bootstrap, tmp_path, masks=MASKS)
    try:
        masked.feed([secret_update({"name": "x"}), json.dumps({"type": SECRET, "data": [{SECRET: 1}]}).encode()])
        ran, dead = (masked.run("explain", "--values", masked.raw, "0", offset) for offset in "01")
    finally:
        masked.close()
    (event,) = [json.loads(line) for line in ran.stdout.splitlines() if line.startswith("  {")]
    assert ({"id": 1, "name": "***"}, ["MASKED=name", "BEFORE_MERGED"]) == (event["after"], event["notes"])
    assert "bytes, not shown because columns of the source are masked" in dead.stdout
    assert (
        "outcome: dead letter UNKNOWN_OPERATION: canal: unknown operation; rejected in dialects/canal/decode.py:"
        in dead.stdout
    )
    assert SECRET not in ran.stdout + ran.stderr + dead.stdout + dead.stderr


def test_why_there_is_no_event(shop: Bench) -> None:
    """A dead letter is shown with its code and reason."""
    shop.feed([b"{]"])
    ran = shop.run("explain", shop.raw, "0", "0")
    assert 0 == ran.returncode, ran.stderr
    assert "value: 2 bytes, not JSON, beginning with 7b 5d" in ran.stdout
    assert "outcome: dead letter MALFORMED_JSON: canal: " in ran.stdout


def test_a_record_that_is_not_there(shop: Bench) -> None:
    """The error states the partition's range. The command neither uses the next record nor waits for a future one."""
    shop.feed([row(1), row(2)])
    for partition, offset, reason in (
        (0, 99999, f"{shop.raw}/0 has no offset 99999; it has 0 to 1"),
        (0, 2, f"{shop.raw}/0 has no offset 2; it has 0 to 1"),
        (1, 0, f"{shop.raw}/1 has no offset 0; it is empty, and the next record will have offset 0"),
        (9, 0, f"topic {shop.raw} has no partition 9; it has {PARTITIONS}"),
    ):
        ran = shop.run("explain", shop.raw, str(partition), str(offset))
        assert (2, f"translator: {reason}\n") == (ran.returncode, ran.stderr)
    assert 2 == shop.run("explain", "another", "0", "0").returncode


def test_transactions_of_whoever_writes_the_raw_topic(shop: Bench) -> None:
    """A transaction marker is not a record, and records of an open transaction do not exist yet."""
    producer = Producer({**shop.client, "transactional.id": shop.name})
    producer.init_transactions(30)
    for end in (lambda: producer.commit_transaction(30), lambda: producer.flush(30)):
        producer.begin_transaction()
        producer.produce(shop.raw, row(1), partition=0)
        end()
    try:
        assert 0 == shop.run("explain", shop.raw, "0", "0").returncode
        for offset, reason in (
            (
                1,
                f"there is no record at {shop.raw}/0, offset 1. It was compacted away, or it is a transaction "
                "marker or an aborted record",
            ),
            (2, f"{shop.raw}/0 has no offset 2; it has 0 to 1"),
        ):
            ran = shop.run("explain", shop.raw, "0", str(offset))
            assert (2, f"translator: {reason}\n") == (ran.returncode, ran.stderr)
    finally:
        producer.abort_transaction(30)
