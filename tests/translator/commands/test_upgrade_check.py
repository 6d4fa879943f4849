"""`translator upgrade-check` on the real broker compares this release with what an earlier one has written."""

import json
import re
import tomllib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from confluent_kafka import TopicPartition

from tests.translator.commands._bench import Bench, row
from translator.codecs.avro import AvroCodec
from translator.codecs.record import Record
from translator.message import Message
from translator.operations import output_search, release_notes
from translator.operations.release_notes import AnnouncedChange, ReleaseNotes
from translator.operations.rewritten import CODE, EVENTS, OUTCOME, Rewritten, Written, differences

Write = Callable[[Message, list[Record]], Iterable[Record]]


@pytest.fixture(autouse=True)
def notes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The releases 1 to 3, and a change to Canal's notes in 3."""
    change = AnnouncedChange(("canal",), ("notes",), "A note is new.")
    known = [ReleaseNotes("1"), ReleaseNotes("2", steps=("Read this.",)), ReleaseNotes("3", (change,))]
    monkeypatch.setattr(release_notes, "all_releases", lambda: known)


def checked(shop: Bench, *arguments: str, since: str = "3") -> tuple[int, Any]:
    ran = shop.run("upgrade-check", "--json", "--from", since, *arguments)
    assert ran.stdout, ran.stderr
    return ran.returncode, json.loads(ran.stdout)


def changing(offset: int, **fields: Any) -> Write:
    """A release that writes other fields for a message."""
    codec = AvroCodec()

    def write(message: Message, records: list[Record]) -> list[Record]:
        if message.offset != offset or message.partition:
            return records
        events = [msgspec.structs.replace(codec.decode(record.value or b""), **fields) for record in records]
        return [
            Record(old.key, codec.encode(event)[0].value, old.headers)
            for old, event in zip(records, events, strict=True)
        ]

    return write


@pytest.mark.parametrize("step", [1, 3, 1000])
def test_the_same_release(shop: Bench, step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Events, a dead letter and a skipped record are equal, in each partition. A step back through the topic can end
    between two events of a message.
    """
    monkeypatch.setattr(output_search, "_FIRST_STEP", step)
    shop.feed([row(1), None, b"{]", row(2)])
    shop.feed([row(3)], 1)
    shop.serve()
    code, report = checked(shop)
    counts = {name: report[name] for name in ("records", "equal", "different", "not_found", "not_compared")}
    assert (0, {"records": 5, "equal": 5, "different": 0, "not_found": 0, "not_compared": 0}) == (code, counts)


def test_another_value_is_not_announced(shop: Bench) -> None:
    """Without --json, the place is printed, but no row."""
    shop.feed([row(1), row(2, name="secret")])
    shop.serve(changing(1, after='{"id":2,"name":"old secret"}'))
    ran = shop.run("upgrade-check", "--from", "1")
    assert 1 == ran.returncode
    assert [
        "step: Read this.",
        "NOT ANNOUNCED: source shop (canal): after: 1 record(s)",
        f"  {shop.raw}/0@1",
        "records=2 equal=1 different=1 not_found=0 not_compared=0",
    ] == ran.stdout.splitlines()
    assert "secret" not in ran.stdout + ran.stderr


@pytest.mark.parametrize(("since", "expected"), [("1", 0), ("2", 0), ("3", 1)])
def test_an_announced_change(shop: Bench, since: str, expected: int) -> None:
    """Only releases after the running one announce something."""
    shop.feed([row(1)])
    shop.serve(changing(0, notes=["OLD"]))
    code, report = checked(shop, since=since)
    (group,) = report["groups"]
    assert (expected, ["notes"], expected == 0) == (code, group["fields"], group["announced"])


def test_an_announced_field_does_not_cover_another(shop: Bench) -> None:
    shop.feed([row(1)])
    shop.serve(changing(0, notes=["OLD"], op="u"))
    assert 1 == checked(shop, since="1")[0]


def test_a_record_that_had_no_output(shop: Bench) -> None:
    """The earlier release skipped a message, and ones before and after it have events."""
    shop.feed([row(1), row(2), row(3)])
    shop.serve(lambda message, records: [] if message.offset == 1 else records)
    code, report = checked(shop)
    (group,) = report["groups"]
    assert (1, [OUTCOME], [f"{shop.raw}/0@1"]) == (code, group["fields"], group["first"])


def test_output_that_retention_deleted(shop: Bench) -> None:
    """Records are only compared if their output still exists."""
    shop.feed([row(number) for number in range(5)])
    shop.serve()
    (partition,) = {one.partition() for one in shop.read(shop.canonical)}
    place = TopicPartition(shop.canonical, partition, 5)
    shop.admin.delete_records([place])[place].result(20)
    code, report = checked(shop)
    # Each message has two events. The third message still has its second event.
    assert (0, 3, 2) == (code, report["not_found"], report["equal"])


def test_an_event_that_is_missing(shop: Bench) -> None:
    shop.feed([row(1), row(2)])
    shop.serve(lambda message, records: records[message.offset :])
    code, report = checked(shop)
    (group,) = report["groups"]
    assert (1, [EVENTS], [f"{shop.raw}/0@1"]) == (code, group["fields"], group["first"])


def test_only_the_newest_records(shop: Bench) -> None:
    """An earlier difference is outside the sample, and records that the group has not committed are, too."""
    shop.feed([row(number) for number in range(2000)])
    shop.serve(changing(0, op="u"))
    shop.feed([row(1)])
    code, report = checked(shop, "--count", "3")
    assert (0, 3, 3) == (code, report["records"], report["equal"])
    assert 1 == checked(shop, "--count", "2000")[0]


def test_nothing_to_compare(shop: Bench) -> None:
    ran = shop.run("upgrade-check", "--from", "3")
    assert 0 == ran.returncode
    assert "nothing was compared" in ran.stderr


def test_an_unknown_release(shop: Bench) -> None:
    ran = shop.run("upgrade-check", "--from", "4")
    assert 2 == ran.returncode
    assert "unknown release '4'; allowed: 1, 2, 3" in ran.stderr


@pytest.mark.parametrize(
    ("letters", "now", "found"),
    [
        ({"KEY_MISSING"}, "KEY_MISSING", frozenset()),
        ({"KEY_MISSING"}, "UNKNOWN_TYPE", {CODE}),
        ({"KEY_MISSING"}, None, {OUTCOME}),
        ({"HELD"}, None, None),
        (set(), "KEY_MISSING", {OUTCOME}),
        (set(), None, frozenset()),
    ],
)
def test_dead_letters(letters: set[str], now: str | None, found: set[str] | None) -> None:
    assert found == differences(Written({}, letters), Rewritten({}, now))


def test_the_file_ends_with_this_release() -> None:
    """The notes name every field and dialect as the command prints them."""
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]
    text = (Path(release_notes.__file__).parents[1] / "upgrades.yaml").read_bytes()
    known = msgspec.yaml.decode(text, type=list[ReleaseNotes])
    assert project["version"] == known[-1].release
    changes = [change for one in known for change in one.changes]
    assert {name for change in changes for name in change.dialects} <= {"canal", "dts_avro", "qlik", "shareplex"}
    for change in changes:
        for name in change.fields:
            assert re.fullmatch(r"[a-z_]+|\([a-z ]+\)", name)
