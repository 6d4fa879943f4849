"""A replay on the real broker writes the missing events once and in order."""

import json
from collections import defaultdict
from collections.abc import Iterator

import msgspec
import pytest

from dev.servers.broker import Broker
from tests.translator.operations._replay import AMBIGUOUS, CLEAR, Yard, content, identity, update
from tests.translator.service.test_pipeline import METADATA, QLIK_ROW
from translator.codecs.record import Record
from translator.errors import ErrorCode
from translator.message import Message
from translator.operations.dlq.reader import LetterFilter, mark_key
from translator.translation.dead_letter import DeadLetter, dead_letter_record


@pytest.fixture
def yard(broker: Broker) -> Iterator[Yard]:
    yard = Yard(broker.bootstrap)
    yield yard
    yard.close()


@pytest.fixture
def poisoned(yard: Yard) -> Yard:
    """Two partitions with unreadable messages among good ones, translated with the wrong configuration."""
    of_old = [("h", b"\xff"), ("cdc-error-output", b"a projection of old")]
    yard.feed(0, update(1), update(2, both=False), update(3), b"{]", headers=of_old)
    yard.feed(2, *(update(row) for row in range(10, 30)))
    yard.translate(yard.settings(AMBIGUOUS))
    return yard


def test_the_events_are_those_of_a_run_from_scratch(poisoned: Yard) -> None:
    """Bytes, key, headers and partition are as with the right configuration from the start, in offset order."""
    before = poisoned.read(f"{poisoned.name}-out")
    report = poisoned.replay(poisoned.settings(CLEAR))
    scratch = poisoned.settings(CLEAR, output={"topic": f"{poisoned.name}-scratch"})
    poisoned.translate(scratch)
    known = {identity(record) for record in before}
    added = [record for record in poisoned.read(f"{poisoned.name}-out") if identity(record) not in known]
    wanted = [record for record in poisoned.read(f"{poisoned.name}-scratch") if identity(record) not in known]
    assert 22 == len(added)
    for partition in range(4):
        mine = [content(record) for record in added if record.partition() == partition]
        assert [content(record) for record in wanted if record.partition() == partition] == mine
    group = report.groups["shop", "AMBIGUOUS_VARIANT"]
    assert (22, 22, 22, 0) == (group.letters, group.translated, group.events, group.dead)


def test_twice_writes_once(poisoned: Yard) -> None:
    """The second run recognizes what the first has delivered and skips it."""
    settings = poisoned.settings(CLEAR)
    poisoned.replay(settings)
    events = len(poisoned.read(settings.output.topic))
    again = poisoned.replay(settings)
    assert events == len(poisoned.read(settings.output.topic))
    assert (22, [("shop", "MALFORMED_JSON")]) == (again.before, list(again.groups))


def test_after_a_crash_before_the_marks(poisoned: Yard) -> None:
    """Letters whose marks were not written are replayed again, with the same bytes in the same order."""
    settings = poisoned.settings(CLEAR)
    before = len(poisoned.read(settings.output.topic))
    poisoned.replay(settings)
    marks = [record.key() for record in poisoned.read(settings.output.metadata_topic)]
    poisoned.write(settings.output.metadata_topic, [Record(key, None, []) for key in marks])
    poisoned.replay(settings)
    events: dict[int, list[object]] = defaultdict(list)
    for record in poisoned.read(settings.output.topic):
        events[record.partition()].append(content(record))
    assert before + 44 == sum(map(len, events.values()))
    for written in events.values():
        again = [event for place, event in enumerate(written) if event in written[:place]]
        assert again == written[-len(again) :]
        assert again == written[-2 * len(again) : -len(again)]


def test_a_dry_run_writes_nothing(poisoned: Yard) -> None:
    """A dry run counts what a replay would do and changes no topic."""
    settings = poisoned.settings(CLEAR)
    before = {topic: len(poisoned.read(topic)) for topic in settings.written_topics}
    report = poisoned.replay(settings, execute=False)
    assert before == {topic: len(poisoned.read(topic)) for topic in settings.written_topics}
    assert (22, 22) == (
        report.groups["shop", "AMBIGUOUS_VARIANT"].letters,
        report.groups["shop", "AMBIGUOUS_VARIANT"].events,
    )


def test_what_stays_dead_lies_there_once(poisoned: Yard) -> None:
    """A letter that remains dead is neither written again nor marked, and its current code is reported."""
    settings = poisoned.settings(AMBIGUOUS)
    report = poisoned.replay(settings)
    assert {("shop", code, code): count for code, count in (("AMBIGUOUS_VARIANT", 22), ("MALFORMED_JSON", 1))} == dict(
        report.still
    )
    dead = poisoned.look(settings)
    assert (23, False) == (len(dead.letters), any(found.replayed for found in dead.letters))


def test_a_part_of_them(poisoned: Yard) -> None:
    """Filters select letters. `limit` takes the first in replay order, and the next run continues there."""
    settings = poisoned.settings(CLEAR)
    few = LetterFilter(codes=["AMBIGUOUS_VARIANT"], limit=3)
    before = {identity(record) for record in poisoned.read(settings.output.topic)}
    written = []
    for _ in range(2):
        poisoned.replay(settings, few)
        events = poisoned.read(settings.output.topic)
        written.append(
            sorted(
                identity(record).removeprefix(f"shop/{poisoned.raw}/")
                for record in events
                if identity(record) not in before
            )
        )
        before |= {identity(record) for record in events}
    assert [["0/0/0", "0/2/0", "2/0/0"], ["2/1/0", "2/2/0", "2/3/0"]] == written


def test_letters_of_two_incarnations(yard: Yard) -> None:
    """Offsets repeat in a recreated topic, so each letter keeps the scope of its own topic."""
    for row in (1, 2):
        yard.feed(0, update(row))
        yard.translate(yard.settings(AMBIGUOUS))
        if row == 1:
            yard.make_raw_again()
    scopes = [found.letter.message.topic_id for found in yard.look(yard.settings(CLEAR)).letters]
    yard.replay(yard.settings(CLEAR, output={"topic": f"{yard.name}-out", "codec": "json"}))
    events = yard.read(f"{yard.name}-out")
    assert 2 == len(set(scopes)) == len(events)
    assert [True, True] == [scope.encode() in event.value() for scope, event in zip(scopes, events, strict=True)]


def test_a_letter_that_was_written_twice(poisoned: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a crash, a letter can exist twice. Its message is replayed once, and both are marked."""
    monkeypatch.setattr("translator.operations.dlq.replay.AT_ONCE", 5)
    poisoned.translate(poisoned.settings(AMBIGUOUS))
    settings = poisoned.settings(CLEAR)
    events = len(poisoned.read(settings.output.topic))
    report = poisoned.replay(settings)
    assert events + 22 == len(poisoned.read(settings.output.topic))
    assert 22 == report.groups["shop", "AMBIGUOUS_VARIANT"].repeated
    assert ["MALFORMED_JSON"] * 2 == [found.letter.code for found in poisoned.look(settings, pending=True).letters]


def test_a_letter_of_a_projection(yard: Yard) -> None:
    """A message dead for a projection only is written there only. One that was dead as a whole and is now rejected
    there becomes a new letter.
    """
    out, shown = f"{yard.name}-out", f"{yard.name}-shown"
    yard.make(shown, 1, 3_000)
    yard.feed(0, update(1, both=False, name="x" * 5_000), update(2, name="x" * 5_000))
    clear = yard.settings(CLEAR, projections=[{"topic": shown, "codec": "json"}])
    yard.translate(yard.settings(AMBIGUOUS, projections=[{"topic": shown, "codec": "json"}]))
    first = yard.replay(clear)
    assert {(shown, "TOO_LARGE"): 1} == dict(first.refused)
    assert [(0, shown), (1, shown)] == [
        (found.letter.message.offset, found.letter.output) for found in yard.look(clear, pending=True).letters
    ]
    yard.allow(shown, 1_000_000)
    yard.replay(clear)
    assert [2, 2] == [len(yard.read(topic)) for topic in (out, shown)]
    assert [identity(event) for event in yard.read(out)] == [identity(event) for event in yard.read(shown)]
    assert [] == yard.look(clear, pending=True).letters


def test_each_row_goes_to_the_topic_of_its_table(yard: Yard) -> None:
    """Topic, partition and bytes are as in a run from scratch. Only a real run creates missing topics."""
    yard.feed(0, update(1), update(2, both=False), update(3, table="u"))
    yard.feed(1, *(update(row, table=table) for row, table in enumerate("utttuu")))
    routed, scratch = (f"{yard.name}-{which}-rows.{{table}}" for which in ("routed", "scratch"))
    yard.translate(yard.settings(AMBIGUOUS, projections=[{"topic": routed, "codec": "json"}]))
    clear = yard.settings(CLEAR, projections=[{"topic": routed, "codec": "json"}])
    yard.replay(clear, execute=False)
    assert [routed.format(table="shop.t")] == yard.topics(routed.format(table=""))
    known = {identity(record) for record in yard.read(routed.format(table="shop.t"))}
    yard.replay(clear)
    yard.translate(
        yard.settings(
            CLEAR, output={"topic": f"{yard.name}-scratch"}, projections=[{"topic": scratch, "codec": "json"}]
        )
    )
    for table, count in (("shop.t", 5), ("shop.u", 4)):
        ours, theirs = (yard.read(topic.format(table=table)) for topic in (routed, scratch))
        assert count == len(ours)
        added, wanted = ([content(one) for one in found if identity(one) not in known] for found in (ours, theirs))
        assert len(added) >= count - 1
        assert sorted(wanted) == sorted(added)


def test_a_letter_of_a_projection_by_table(yard: Yard) -> None:
    """The letter contains the template. Its row goes to the table's topic and to no other output."""
    routed = f"{yard.name}-rows.{{table}}"
    yard.feed(0, update(1, both=False, name="x" * 5_000))
    small = {"topic": routed, "codec": "json", "config": {"max.message.bytes": "3000"}}
    yard.translate(yard.settings(CLEAR, projections=[small]))
    assert [] == yard.topics(routed.format(table=""))
    clear = yard.settings(CLEAR, projections=[{"topic": routed, "codec": "json"}])
    (found,) = yard.look(clear, pending=True).letters
    assert (routed, "TOO_LARGE") == (found.letter.output, found.letter.code)
    yard.replay(clear)
    assert [1, 1] == [len(yard.read(topic)) for topic in (f"{yard.name}-out", routed.format(table="shop.t"))]
    assert [] == yard.look(clear, pending=True).letters


def test_metadata_that_came_later(yard: Yard) -> None:
    """Unreadable rows are replayed with the metadata now in the topic. Without it, the replay does not wait."""
    settings = yard.settings({}, "qlik", timing={"metadata_wait": 0, "broker_wait": 20, "delivery": 20})
    yard.feed(0, json.dumps(QLIK_ROW).encode())
    yard.translate(settings)
    patient = settings.model_copy(update={"timing": settings.timing.model_copy(update={"metadata_wait": 3_600.0})})
    assert {("shop", "SCHEMA_MISSING", "SCHEMA_MISSING"): 1} == dict(yard.replay(patient).still)
    yard.feed(1, json.dumps(METADATA).encode())
    yard.translate(settings)
    assert 1 == yard.replay(patient).groups["shop", "SCHEMA_MISSING"].translated


def test_what_cannot_be_replayed(yard: Yard) -> None:
    """The report lists letters without a body, of a removed source or projection, or of a topic without an id."""
    settings = yard.settings(CLEAR)
    yard.translate(settings)
    message = Message(yard.raw, 0, 90, 1, None, b"x" * 9_000, (), "id")
    dead = DeadLetter(ErrorCode.FRAMING, "reason")
    letters = [
        dead_letter_record(message, dead, "shop", "0", 2_000),
        dead_letter_record(message, dead, "gone", "0", 100_000),
        dead_letter_record(message, dead, "shop", "0", 100_000, "gone"),
        dead_letter_record(msgspec.structs.replace(message, topic_id="-"), dead, "shop", "0", 100_000),
    ]
    yard.write(settings.output.dead_letter_topic, letters)
    yard.write(settings.output.dead_letter_topic, [Record(None, b"something else", [])])
    said = sorted(reason for _, reason in yard.replay(settings).impossible)
    reasons = [
        "it does not contain its topic's id",
        "the dead letter does not contain its value of 9000 bytes",
        "unknown output",
        "unknown source",
    ]
    assert [True] * 4 == [text.startswith(reason) for text, reason in zip(said, reasons, strict=True)]
    assert (4, 1) == (len(yard.look(settings).letters), yard.look(settings).foreign)


SECRET = "hush-hush"
MASKS = {"rules": [{"column": "NAME", "mask": "set_null"}]}


def test_messages_that_letters_leave_out(yard: Yard) -> None:
    """For a masked source, the messages are read at their origin and masked like all others. The same applies to
    messages that were too large.
    """
    wrong, clear = (yard.settings(options, masks=MASKS) for options in (AMBIGUOUS, CLEAR))
    yard.feed(
        1, update(1, name=SECRET), update(2, both=False), update(3, name=SECRET), headers=[("h", SECRET.encode())]
    )
    yard.feed(2, update(4, name=SECRET))
    yard.translate(wrong)
    letters = yard.read(wrong.output.dead_letter_topic)
    assert [(None, None)] * 3 == [(letter.key(), letter.value()) for letter in letters]
    known = {identity(record) for record in yard.read(wrong.output.topic)}
    report = yard.replay(clear)
    assert (3, 3, []) == (
        report.groups["shop", "AMBIGUOUS_VARIANT"].translated,
        report.groups["shop", "AMBIGUOUS_VARIANT"].events,
        yard.look(clear, pending=True).letters,
    )
    scratch = yard.settings(CLEAR, masks=MASKS, output={"topic": f"{yard.name}-scratch"})
    yard.translate(scratch)
    wanted, added = (
        {
            identity(record): content(record)
            for record in yard.read(settings.output.topic)
            if identity(record) not in known
        }
        for settings in (scratch, clear)
    )
    assert wanted == added
    topics = clear.written_topics
    written = [part for topic in topics for record in yard.read(topic) for part in (record.value(), record.headers())]
    assert SECRET not in repr(written)


def test_marks_of_letters_that_are_gone(poisoned: Yard) -> None:
    """Such marks are removed, so that the metadata topic does not grow with every letter ever written."""
    settings = poisoned.settings(CLEAR)
    poisoned.write(settings.output.metadata_topic, [Record(mark_key("another", 0, 0).encode(), b"{}", [])])
    poisoned.replay(settings, LetterFilter(limit=1))
    marks = {record.key(): record.value() for record in poisoned.read(settings.output.metadata_topic)}
    assert None is marks.pop(b"!replayed/another/0/0")
    assert [True] == [value is not None for value in marks.values()]
    assert [] == poisoned.look(settings).expired


def test_letters_are_no_evidence_against_each_other(yard: Yard) -> None:
    """Other messages came between two letters, so a guard that compared the letters would stop without a reason."""
    legacy = {"profile": "dts", "instance": {"created": "2023-01-01T00:00:00+08:00"}}
    yard.feed(0, update(1, name="a"), update(1, name="b"))
    yard.translate(yard.settings(AMBIGUOUS))
    report = yard.replay(yard.settings(legacy))
    assert 2 == report.groups["shop", "AMBIGUOUS_VARIANT"].translated
