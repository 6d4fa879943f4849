"""`translator upgrade-check` on the real broker compares this release with what an earlier one has written."""

import json
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource

from tests.translator.commands._bench import Bench, row
from translator.codecs.avro import AvroCodec
from translator.codecs.record import Record
from translator.errors import ErrorCode
from translator.kafka.offset_ranges import Partitions, Range
from translator.message import Message
from translator.operations import output_search, release_notes
from translator.operations.release_notes import AnnouncedChange, ReleaseNotes
from translator.operations.rewritten import CODE, EVENTS, OUTCOME, REJECTED, Rewritten, Written, differences

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
    shop.forget(shop.canonical, 5)
    code, report = checked(shop)
    # Each message has two events. The third message still has its second event.
    assert (0, 3, 2) == (code, report["not_found"], report["equal"])


def _without(*offsets: int) -> Write:
    return lambda message, records: [] if message.offset in offsets else records


def _only(offset: int, **fields: Any) -> Write:
    """A replay of a dead letter."""
    change = changing(offset, **fields)
    return lambda message, records: change(message, records) if message.offset == offset else []


@pytest.mark.parametrize("step", [1, 3, 1000])
@pytest.mark.parametrize("code", [ErrorCode.HELD, ErrorCode.MISSING_FIELD])
def test_dead_letters_that_were_replayed(
    shop: Bench, step: int, code: ErrorCode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their events count, wherever they are in the topic."""
    monkeypatch.setattr(output_search, "_FIRST_STEP", step)
    shop.feed([row(number) for number in range(6)])
    shop.serve(_without(1, 4, 5))
    for offset in (1, 4, 5):
        shop.reject(offset, code)
    shop.serve(_only(1))
    shop.serve(_only(5))
    exit_code, report = checked(shop, "--count", "4")
    different = [place for group in report["groups"] for place in group["first"]]
    expected = (0, 1, []) if code == ErrorCode.HELD else (1, 0, [f"{shop.raw}/0@4"])
    assert expected == (exit_code, report["not_compared"], different)
    assert 3 == report["equal"]
    shop.serve(_only(4, after='{"id":4,"name":"old"}'))
    exit_code, report = checked(shop, "--count", "4")
    (group,) = report["groups"]
    assert (1, ["after"], [f"{shop.raw}/0@4"]) == (exit_code, group["fields"], group["first"])


@pytest.mark.parametrize("was_dead", [False, True])
def test_events_that_become_dead_letters(shop: Bench, was_dead: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are searched for, although this release expects none, also if they come from a replay."""
    monkeypatch.setattr(output_search, "_FIRST_STEP", 1)
    shop.feed([row(0), row(1)])
    shop.serve()
    if was_dead:
        shop.reject(1, ErrorCode.MISSING_FIELD)
    shop.document["sources"][0] = {"name": "shop", "dialect": "qlik", "topics": [shop.raw]}
    shop.config.write_text(yaml.safe_dump(shop.document))
    code, report = checked(shop)
    (group,) = report["groups"]
    assert (1, [REJECTED], 2) == (code, group["fields"], group["count"])


@pytest.mark.parametrize("step", [1, 6, 1000])
@pytest.mark.parametrize("code", [ErrorCode.HELD, ErrorCode.MISSING_FIELD])
def test_a_replay_before_later_records(
    shop: Bench, step: int, code: ErrorCode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading continues to the replayed events, although it finds all other events before. A step of 6 ends in
    between.
    """
    monkeypatch.setattr(output_search, "_FIRST_STEP", step)
    shop.feed([row(number) for number in range(3)])
    shop.serve(_without(2))
    shop.reject(2, code)
    shop.serve(_only(2, after='{"id":2,"name":"old"}'))
    shop.feed([row(number) for number in range(3, 6)])
    shop.serve(_without(0, 1, 2))
    exit_code, report = checked(shop, "--count", "4")
    (group,) = report["groups"]
    assert (1, 3, ["after"]) == (exit_code, report["equal"], group["fields"])


def test_only_dead_letters(shop: Bench) -> None:
    """This release translates them. They have no events, because they were not replayed."""
    shop.feed([row(1), row(2)])
    shop.serve(_without(0, 1))
    for offset in (0, 1):
        shop.reject(offset, ErrorCode.MISSING_FIELD)
    code, report = checked(shop)
    (group,) = report["groups"]
    assert (1, [OUTCOME], 2) == (code, group["fields"], group["count"])


def test_dead_letters_that_retention_deleted(shop: Bench) -> None:
    """A record without output may have had a dead letter, unless one of an earlier record still exists."""
    shop.feed([row(number) for number in range(5)])
    shop.serve(_without(0, 1, 3))
    for offset in (0, 1):
        shop.reject(offset, ErrorCode.MISSING_FIELD)
    shop.forget(shop.dead_letters, 1)
    code, report = checked(shop)
    (group,) = report["groups"]
    assert (1, 1, 2) == (code, report["not_found"], report["equal"])
    assert ([OUTCOME], [f"{shop.raw}/0@1", f"{shop.raw}/0@3"]) == (group["fields"], group["first"])
    shop.forget(shop.dead_letters, 2)
    code, report = checked(shop)
    assert (0, 3, 2) == (code, report["not_found"], report["equal"])


def test_events_in_another_partition(shop: Bench) -> None:
    """Records are not compared if the canonical topic had fewer partitions when their events were written."""
    shop.feed([row(number) for number in range(4)])
    shop.serve()
    shop.repartition(shop.canonical)
    assert (0, 4) == ((ran := checked(shop))[0], ran[1]["not_found"])
    shop.feed([row(4), row(5), row(6)])
    shop.serve(_without(*range(4), 5))
    code, report = checked(shop)
    (group,) = report["groups"]
    assert (1, 4, 2, [f"{shop.raw}/0@5"]) == (code, report["not_found"], report["equal"], group["first"])


def test_dead_letters_in_another_partition(shop: Bench) -> None:
    """They are found."""
    shop.feed([row(1), b"{]", row(2)])
    shop.serve()
    shop.repartition(shop.dead_letters)
    code, report = checked(shop)
    assert (0, 3) == (code, report["equal"])


def test_a_replay_does_not_show_what_retention_deleted(shop: Bench) -> None:
    """The events of an earlier record that was replayed are later in the topic."""
    shop.feed([row(number) for number in range(5)])
    shop.serve(_without(0))
    shop.reject(0, ErrorCode.MISSING_FIELD)
    shop.serve(_only(0))
    shop.forget(shop.canonical, 3)
    code, report = checked(shop, "--count", "3")
    assert (0, 1, 2) == (code, report["not_found"], report["equal"])


def test_a_compacted_topic(shop: Bench) -> None:
    """Any event can be missing."""
    resource = ConfigResource(ConfigResource.Type.TOPIC, shop.canonical)
    resource.add_incremental_config(
        ConfigEntry("cleanup.policy", "compact", incremental_operation=AlterConfigOpType.SET)
    )
    shop.admin.incremental_alter_configs([resource])[resource].result(20)
    shop.feed([row(1), row(2), row(3)])
    shop.serve(lambda message, records: records[message.offset % 2 :])
    code, report = checked(shop)
    assert (0, 1, 2) == (code, report["not_found"], report["equal"])


@pytest.mark.parametrize("deleted", [0, 6])
def test_a_topic_that_was_created_again(shop: Bench, deleted: int) -> None:
    """Its records have the offsets of earlier records, whose events are not theirs. If retention has deleted some of
    the earlier topic's events, the others show that none of this one's are gone, whatever their raw offsets are.
    """
    shop.feed([row(number, name="old") for number in range(4)])
    shop.serve()
    shop.create_raw_again()
    shop.feed([row(1), row(2)])
    shop.serve(_without(1))
    if deleted:
        shop.forget(shop.canonical, deleted)
    code, report = checked(shop)
    (group,) = report["groups"]
    assert (1, 1, [f"{shop.raw}/0@1"], [OUTCOME]) == (code, report["equal"], group["first"], group["fields"])


def test_a_part_of_the_topics_is_read(shop: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading ends at the event of an earlier record, and each partition with dead letters is read once."""
    shop.feed([*(row(number) for number in range(2000)), b"{]", row(1)])
    shop.feed([row(number) for number in range(5)], 1)
    shop.serve(_without(2001))
    read: list[Range] = []
    whole = Partitions.read

    def counted(partitions: Partitions, range_: Range) -> Iterator[Any]:
        read.append(range_)
        return whole(partitions, range_)

    monkeypatch.setattr(Partitions, "read", counted)
    code, report = checked(shop, "--count", "4")
    assert (1, 7) == (code, report["equal"])
    assert 2000 >= sum(range_.end - range_.first for range_ in read if range_.topic == shop.canonical)
    letters = [range_.partition for range_ in read if range_.topic == shop.dead_letters]
    assert len(letters) == len(set(letters))


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
