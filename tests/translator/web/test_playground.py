"""The playground gives the core's result, or one line if there is none."""

import base64
import json

import pytest

from translator.errors import ConfigError
from translator.web.event_view import ColumnView
from translator.web.playground import RECOGNISE, PastedMessage, Sample, answer, samples

DELETED = {
    "data": None,
    "old": [{"id": "9"}],
    "database": "shop",
    "table": "t",
    "es": 1655812326000,
    "id": 5,
    "mysqlType": {"id": "int"},
    "pkNames": ["id"],
    "type": "DELETE",
}
"""An update of a legacy DTS instance or of Huawei DRS."""


def asked(sample: Sample, **changed: str) -> PastedMessage:
    given = {name: getattr(sample, name) for name in ("message", "encoding", "dialect", "options", "before")}
    return PastedMessage(**{**given, **changed})


@pytest.mark.parametrize("sample", samples().values(), ids=lambda sample: sample.name)
def test_samples(sample: Sample) -> None:
    """Each sample is read as its title says, and its dialect is recognized automatically."""
    told = answer(asked(sample))
    if sample.name == "dead_letter":
        assert ("dead", "UNKNOWN_OPERATION", []) == (told.outcome, told.code, list(told.events))
        return
    (event,) = told.events
    assert ("translated", sample.dialect) == (told.outcome, told.dialect)
    assert event.title.startswith("INSERT of" if "flink" in sample.name else "UPDATE of"), event.title
    assert any(column.changed for column in event.columns) or not event.has_before
    options = sample.options if sample.name == "qlik_bare" else ""
    found = answer(asked(sample, dialect=RECOGNISE, options=options))
    assert sample.dialect == found.dialect
    assert found.finding is not None


def test_columns_of_a_swapped_update() -> None:
    """The old row is in `data`, and the page shows it as the old row."""
    (event,) = answer(asked(samples()["canal_dts_legacy"])).events
    assert ColumnView("price", '"9.90"', '"12.50"', changed=True, issue=None) in event.columns
    assert ColumnView("id", "7", "7", changed=False, issue=None) in event.columns
    assert "SWAP_OLD_DATA" in event.notes


def test_a_number_keeps_its_digits() -> None:
    body = {"data": [{"id": 12345678901234567890, "x": 1.10}], "type": "INSERT", "database": "d", "table": "t"}
    told = answer(PastedMessage(json.dumps(body).replace("1.1", "1.10"), dialect="canal", options="profile: flink_cdc"))
    assert '"12345678901234567890"' in told.events[0].document
    assert "1.10" in told.raw


@pytest.mark.parametrize("before", ["", json.dumps({**DELETED, "id": 6})])
def test_a_message_that_contradicts_its_profile_is_shown_with_the_reason(before: str) -> None:
    """The service would stop there. The page shows the reason and continues."""
    told = answer(PastedMessage(json.dumps(DELETED), dialect="canal", options="profile: oss", before=before))
    assert any("the DELETE has its row in old" in line for line in told.decisions)
    assert 1 == len(told.events)


def test_metadata_comes_before() -> None:
    """A message without its metadata is a dead letter with that reason."""
    sample = samples()["qlik_update"]
    assert "SCHEMA_MISSING" == answer(asked(sample, before="")).code
    assert "learned" == answer(asked(sample, message=sample.before, before="")).outcome


@pytest.mark.parametrize(
    ("question", "words"),
    [
        (PastedMessage("zz", "hex"), "the message is not valid hex"),
        (PastedMessage("ü", "base64"), "the message is not valid base64"),
        (PastedMessage("{}", "utf-7"), "unknown encoding 'utf-7'"),
        (PastedMessage("{}", dialect="debezium"), "unknown dialect 'debezium'"),
        (PastedMessage("{}", dialect="canal", options="- a"), "the options must be a mapping"),
        (PastedMessage("{}", dialect="canal", options="{"), "the options are not valid YAML"),
        (PastedMessage("{}", dialect="canal", options="[" * 10_000), "the options are not valid YAML"),
        (PastedMessage("{}", dialect="canal", options="profle: oss"), "did you mean profile?"),
        (PastedMessage("x" * (1024 * 1024 + 1)), "may each have at most 1048576 bytes here"),
        (PastedMessage("{}", before="\n" * (1024 * 1024 + 1)), "may each have at most 1048576 bytes here"),
    ],
)
def test_questions_that_cannot_be_asked(question: PastedMessage, words: str) -> None:
    with pytest.raises(ConfigError, match="^" + words.replace("?", r"\?") if words[0] in "tu" else ".*"):
        answer(question)


@pytest.mark.parametrize(
    "text",
    ["", "{", "[" * 50_000, '{"a":' * 50_000, '"' + "x" * 100_000, "null", "\x00", '{"data":' + "[{}," * 50_000],
)
@pytest.mark.parametrize("dialect", [RECOGNISE, "canal", "qlik", "shareplex", "dts_avro"])
def test_what_is_no_message(text: str, dialect: str) -> None:
    """It is a dead letter, skipped or unrecognized, but never an exception."""
    assert answer(PastedMessage(text, dialect=dialect)).outcome in ("dead", "skipped", "not recognised")


def test_bytes_are_shown_as_bytes() -> None:
    told = answer(PastedMessage(base64.b64encode(b"\x00\xff<b>" * 8).decode(), "base64"))
    assert told.raw.startswith("000000  00 ff 3c 62 3e")
    assert told.raw.splitlines()[0].endswith("..<b>..<b>..<b>.")
