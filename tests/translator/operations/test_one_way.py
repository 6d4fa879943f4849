"""Service, audit, explain, retranslate, replay and files all translate a message to the same result."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from dev.servers.broker import Broker
from tests.translator.operations._replay import Yard, content
from tests.translator.service._pipeline import CANAL_ROW
from tests.translator.service.test_pipeline import METADATA, QLIK_ROW
from translator.codecs.record import Record
from translator.commands.translate import translate
from translator.config.settings import Settings
from translator.kafka.offset_ranges import message_of
from translator.message import Message
from translator.operations.audit import audit
from translator.operations.offline_translator import OfflineTranslator
from translator.operations.retranslate import Selection, retranslate
from translator.resolution.resolve import Translation
from translator.translation.dead_letter import DeadLetter, dead_letter_record

ROW: Mapping[str, Any] = {
    **CANAL_ROW,
    "data": [{"id": "1", "name": "a"}, {"id": "2", "name": None}],
    "old": [{"name": "b"}, {"id": "3"}],
    "type": "UPDATE",
}
DDL = {**ROW, "type": "ALTER", "isDdl": True, "sql": "ALTER TABLE t ADD x int", "data": None, "old": None}
CANAL: tuple[Any, ...] = (ROW, b"{]", None, DDL, {**ROW, "type": "DELETE", "old": None}, {**ROW, "type": "QUERY?"})
QLIK: tuple[Any, ...] = (
    METADATA,
    QLIK_ROW,
    {**METADATA, "message": {**METADATA["message"], "lineage": None}},  # type: ignore[dict-item]  # JSON
    {**QLIK_ROW, "messageSchemaId": "unknown"},
)


def value(document: Any) -> bytes | None:
    return document if document is None or isinstance(document, bytes) else json.dumps(document).encode()


@pytest.fixture(params=[("canal", {"profile": "oss"}, CANAL), ("qlik", {}, QLIK)], ids=["canal", "qlik"])
def served(request: pytest.FixtureRequest, broker: Broker) -> Iterator[tuple[Yard, Settings]]:
    """A raw topic that the service has translated: rows, metadata, a tombstone and dead messages."""
    dialect, options, documents = request.param
    yard = Yard(broker.bootstrap)
    yard.feed(0, *map(value, documents))
    settings = yard.settings(options, dialect, output={"topic": f"{yard.name}-out", "codec": "json"})
    yard.translate(settings)
    yield yard, settings
    yard.close()


def written(yard: Yard, topic: str) -> list[tuple[Any, ...]]:
    """Return the key, value and headers of what the service wrote."""
    return [content(record)[1:] for record in yard.read(topic)]


def as_read(record: Record) -> tuple[Any, ...]:
    headers: list[tuple[str, Any]] = record.headers
    pairs = [(name, text.encode() if isinstance(text, str) else text) for name, text in headers]
    return record.key, record.value, tuple(pairs)


def resolved(yard: Yard, offline: OfflineTranslator) -> list[tuple[Message, Translation]]:
    topic_id = offline.facts(yard.raw).id
    messages = [message_of(record, topic_id) for record in yard.read(yard.raw)]
    return [(message, offline.translate(message)) for message in messages]


def test_audit_and_explain(served: tuple[Yard, Settings]) -> None:
    """Both translate a message again: its records and those of its dead letter have the bytes of the service."""
    yard, settings = served
    offline = OfflineTranslator(settings, yard.said.append)
    events, letters = [], []
    for message, translation in resolved(yard, offline):
        events += [as_read(record) for record in translation.canonical]
        if isinstance(translation.outcome, DeadLetter):
            letter = dead_letter_record(message, translation.outcome, "shop", "0", 1_000_000)
            letters.append((letter.key, letter.value, dict(as_read(letter)[2])["cdc-error-message"]))
    assert written(yard, settings.output.topic) == events != []
    found = written(yard, settings.output.dead_letter_topic)
    texts = [(key, body, dict(headers)["cdc-error-message"]) for key, body, headers in found]
    assert [code_free(text) for text in letters] == [code_free(text) for text in texts]
    report = audit(offline, yard.raw, 0, 0, None, yard.said.append)
    assert (True, True) == (report.sound, report.same)
    offline.close()


def code_free(letter: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return a letter without the sentence about waiting, which differs if a command does not wait for metadata."""
    key, body, text = letter
    return key, body, text.split(b" was not learned")[0]


def test_retranslate(served: tuple[Yard, Settings]) -> None:
    """The separate topic has the bytes of the canonical one."""
    yard, settings = served
    offline = OfflineTranslator(settings, yard.said.append)
    beside = f"{yard.name}-beside"
    end = len(yard.read(yard.raw))
    retranslate(offline, Selection(yard.raw, 0, 0, end, beside), yard.said.append, lambda *_: None)
    offline.close()
    assert written(yard, settings.output.topic) == written(yard, beside) != []


def test_files(served: tuple[Yard, Settings], tmp_path: Path) -> None:
    """A file of the same messages gives the service's events, except for the topic id, which files lack."""
    yard, settings = served
    (source,) = settings.sources
    file = tmp_path / "records.jsonl"
    lines = [
        {
            "topic": record.topic(),
            "partition": record.partition(),
            "offset": record.offset(),
            "timestamp": record.timestamp()[1],
            "key": record.key().decode(),
            "value": None if record.value() is None else record.value().decode(),
        }
        for record in yard.read(yard.raw)
    ]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    options = [text for name, given in source.options.items() for text in ("-o", f"{name}={given}")]
    ran = CliRunner().invoke(translate, ["-d", source.dialect, *options, "--source", source.name, str(file)])
    assert 0 == ran.exit_code, ran.output
    service = [json.loads(body) for _, body, _ in written(yard, settings.output.topic)]
    assert [no_topic_id(event) for event in service] == [
        no_topic_id(json.loads(line)) for line in ran.stdout.splitlines()
    ]


def no_topic_id(event: dict[str, Any]) -> dict[str, Any]:
    return {**event, "pos_scope": event["pos_scope"].partition("@")[0]}


def test_replay(served: tuple[Yard, Settings]) -> None:
    """The letters remain dead with the service's codes, and nothing is written."""
    yard, settings = served
    before = written(yard, settings.output.topic), written(yard, settings.output.dead_letter_topic)
    report = yard.replay(settings)
    assert (
        {(source, code): n for (source, code, now), n in report.still.items() if code == now}
        == {place: group.letters for place, group in report.groups.items()}
        != {}
    )
    assert before == (written(yard, settings.output.topic), written(yard, settings.output.dead_letter_topic))
