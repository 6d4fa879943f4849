"""`translator explain` on the real broker: one record, its events and the decisions in them, without values."""

import json

from tests.translator.commands._bench import Bench, row
from tests.translator.runtime._pipeline import CANAL_ROW

SECRET = "not-for-everybody"


def secret_update(old: dict[str, str]) -> bytes:
    rows = [{"id": "1", "name": SECRET}]
    return json.dumps({**CANAL_ROW, "type": "UPDATE", "data": rows, "old": [old], "table": "t"}).encode()


def test_events_with_their_decisions(shop: Bench) -> None:
    """Each event says how it was read: form and its basis, states of the images, what changed, notes."""
    shop.feed([row(1), secret_update({"id": "9"})], 1)
    ran = shop.run("explain", shop.raw, "1", "1")
    assert 0 == ran.returncode, ran.stderr
    lines = ran.stdout.splitlines()
    assert f"record: {shop.raw}/1 offset 1, timestamp 1700000000001" == lines[0]
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


def test_values_only_when_asked_for(shop: Bench) -> None:
    """The whole event is what `translate` prints."""
    shop.feed([secret_update({"name": "x"})])
    ran = shop.run("explain", "--values", shop.raw, "0", "0")
    (event,) = [json.loads(line) for line in ran.stdout.splitlines() if line.startswith("  {")]
    assert (f"shop/{shop.raw}/0/0/0", SECRET) == (event["id"], event["after"]["name"])


def test_why_there_is_no_event(shop: Bench) -> None:
    """A dead letter gives its code and reason."""
    shop.feed([b"{]"])
    ran = shop.run("explain", shop.raw, "0", "0")
    assert 0 == ran.returncode, ran.stderr
    assert "value: 2 bytes, not JSON; they begin with 7b 5d" in ran.stdout
    assert "outcome: dead letter MALFORMED_JSON: canal: " in ran.stdout


def test_a_record_that_is_not_there(shop: Bench) -> None:
    """Neither the next record, nor a wait for one that may come."""
    shop.feed([row(1)])
    for place in (("0", "7"), ("9", "0")):
        ran = shop.run("explain", shop.raw, *place)
        assert 2 == ran.returncode
        assert shop.raw in ran.stderr
    assert 2 == shop.run("explain", "another", "0", "0").returncode
