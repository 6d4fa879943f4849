"""Recognizing the dialect of sampled messages: right wherever the messages allow it, and never overconfident."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from dev.demo.sources import ShopSource, shop_sources
from tests.translator.dialects import case as cases
from tests.translator.dialects.canal.messages import of_type, update
from translator import dialects
from translator.config import settings as settings_module
from translator.message import Message
from translator.operations.proposed_configuration import configuration
from translator.operations.recognition import TopicFinding, recognise
from translator.proposals import Proposal
from translator.resolution.builders import build_translators
from translator.translation.metadata_catalog import MetadataCatalog

# Not JSON, another dialect, or no dialect: no dialect can claim these for certain.
_OF_NOBODY = frozenset(
    {
        *("canal/debezium", "canal/dts_ddl_as_documented", "canal/dts_update_2021_verbatim", "canal/seatunnel_broken"),
        *("canal/seatunnel_empty_object", "canal/seatunnel_insert_without_rows", "canal/seatunnel_unknown_type"),
        *("dts_avro/damaged", "dts_avro/json_for_another_dialect"),
        *("qlik/avro_bytes_after_the_record", "qlik/legacy_flat", "qlik/renamed_sections"),
        # Only a schema, which is missing here, tells the dialect of these.
        *("qlik/registry_delete_by_key", "qlik/registry_schema_with_array", "qlik/registry_update"),
        *("shareplex/dts_delete_verbatim", "shareplex/dts_update_verbatim"),
    }
)


def messages(*bodies: Any) -> list[Message]:
    values = [body if isinstance(body, bytes) else json.dumps(body).encode() for body in bodies]
    return [Message("raw", 0, offset, 0, None, value) for offset, value in enumerate(values)]


def found(*bodies: Any) -> TopicFinding:
    (finding,) = recognise({"raw": messages(*bodies)})
    return finding


def proposed(option: str, *bodies: Any) -> Proposal:
    (proposal,) = [proposal for proposal in found(*bodies).proposals if proposal.option == option]
    return proposal


def _name(case: Path) -> str:
    return f"{case.parent.name}/{case.name}"


@pytest.mark.parametrize("case", cases.find_cases(), ids=_name)
def test_every_case(case: Path) -> None:
    """A message is recognized as its dialect, or as uncertain. A certain profile is the one that the case declares."""
    metadata = [cases._message(path) for path in sorted(case.glob("metadata*"))]
    finding = recognise({"raw": [cases.opened(case)[1]], "metadata": metadata})[0]
    if _name(case) in _OF_NOBODY:
        assert "certain" != finding.certainty
        return
    assert finding.verdict is not None, finding.why
    assert case.parent.name == finding.verdict.dialect
    declared = json.loads((case / "options.json").read_bytes()) if (case / "options.json").exists() else {}
    sure = {proposal.option: proposal.value for proposal in finding.proposals if proposal.certainty == "certain"}
    if "read_as" not in case.name and declared.get("profile") != "auto" and "profile" in declared:
        assert sure.get("profile", declared["profile"]) == declared["profile"]


@pytest.mark.parametrize("case", [case for case in cases.find_cases() if case.parent.name == "canal"], ids=_name)
def test_a_profile_is_proposed_of_every_canal_topic(case: Path) -> None:
    """Without a profile, the file would be rejected. If the sample cannot decide it, the proposal is `auto`."""
    (finding,) = recognise({"raw": [cases.opened(case)[1]]})
    if finding.verdict is not None and finding.verdict.dialect == "canal":
        assert finding.options.get("profile")


@pytest.mark.parametrize("source", shop_sources(7), ids=lambda source: source.name)
def test_the_sources_of_the_demo(source: ShopSource) -> None:
    """The dialect and other settings of each source are found or left open, and nothing else is claimed."""
    samples: dict[str, list[Message]] = {topic: [] for topic in source.settings["topics"]}
    for raw in source.messages(300, grow=True):
        samples[raw.topic].append(Message(raw.topic, 0, len(samples[raw.topic]), 0, raw.key, raw.value))
    findings = recognise(samples)
    assert {source.settings["dialect"]} == {finding.verdict.dialect for finding in findings if finding.verdict}
    assert ["certain"] * len(samples) == [finding.certainty for finding in findings]
    expected: dict[str, Any] = {
        "shareplex": {"preset": ("quest", "likely")},
        "canal": {"profile": ("auto", "unknown")},  # canal without GTIDs and a DTS instance write the same
        "legacy": {"profile": ("dts_legacy", "likely")},  # its rows prove the direction
    }.get(source.name, {})
    said = {p.option: (p.value, p.certainty) for p in findings[0].proposals if p.value is not None}
    assert expected == said


OLD_ALONE = of_type("DELETE", None, [{"id": "1"}])
DATA_ALONE = of_type("DELETE", [{"id": "1"}])
CLOUD = of_type("INIT", [{"id": "1"}])
CONNECTOR = {"id": 0, "es": 1655812326, "mysqlType": None, "sqlType": None, "pkNames": None, "gtid": None}
SET = "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-77"


@pytest.mark.parametrize(
    ("profile", "certainty", "bodies"),
    [
        ("ticdc", "certain", [update(_tidb={"commitTs": 1}, id=0)]),
        ("auto", "unknown", [OLD_ALONE]),  # a legacy DTS instance, or Huawei DRS
        ("dts_legacy", "likely", [{**OLD_ALONE, "gtid": SET.replace("1-77", "77")}]),
        ("drs", "certain", [of_type("INIT_DDL", sql="create table t (id int)", mysqlType=None), OLD_ALONE]),
        ("drs", "likely", [{**OLD_ALONE, "old": [{"t": "1624614713.201"}], "mysqlType": {"t": "timestamp"}}]),
        (
            "ckafka",
            "likely",
            [of_type("INSERT", [{"id": 1}], **CONNECTOR)],
        ),
        ("auto", "unknown", [OLD_ALONE, DATA_ALONE]),  # two instances, or one before and after its restart
        ("auto", "unknown", [CLOUD]),
        ("dts", "certain", [CLOUD, DATA_ALONE]),
        ("auto", "unknown", [DATA_ALONE]),
        ("oss", "likely", [{**DATA_ALONE, "gtid": SET}]),
        ("dts", "likely", [{**DATA_ALONE, "gtid": SET.replace("1-77", "77")}]),
        ("auto", "unknown", [{**CLOUD, "gtid": SET}]),  # no writer does both
        ("flink_cdc", "likely", [{"data": [{"id": 1}], "type": "INSERT", "database": "d", "table": "t"}]),
        ("auto", "certain", [{**update(), "pgType": None}]),
    ],
)
def test_canal_profiles(profile: str, certainty: str, bodies: list[Any]) -> None:
    proposal = proposed("profile", *bodies)
    assert (profile, certainty) == (proposal.value, proposal.certainty)


def turned(body: dict[str, Any]) -> dict[str, Any]:
    return {**body, "data": body["old"], "old": body["data"]}


INSERTED = of_type("INSERT", [{"id": "1", "a": "1"}], es=1_700_000_001_000)
CHANGED = [
    of_type("UPDATE", [{"id": "1", "a": str(n + 1)}], [{"id": "1", "a": str(n)}], es=1_700_000_001_000 + 1000 * n)
    for n in (1, 2)
]
RESTARTED = of_type("UPDATE", [{"id": "1", "a": "4"}], [{"id": "1", "a": "3"}], es=1_700_000_009_000)


@pytest.mark.parametrize(
    ("profile", "certainty", "bodies"),
    [
        ("dts_legacy", "likely", [INSERTED, *map(turned, CHANGED)]),
        ("auto", "unknown", [INSERTED, *CHANGED]),  # canal, or an instance of today
        ("drs", "likely", [INSERTED, *CHANGED, OLD_ALONE]),
        ("auto", "unknown", [INSERTED, *map(turned, CHANGED), RESTARTED]),  # both forms: an instance that restarted
    ],
    ids=["legacy", "today", "Huawei", "restarted"],
)
def test_rows_prove_the_direction_of_updates(profile: str, certainty: str, bodies: list[Any]) -> None:
    """A change must begin with the row that the previous change to its key produced."""
    proposal = proposed("profile", *bodies)
    assert (profile, certainty) == (proposal.value, proposal.certainty)


@pytest.mark.parametrize("gap", [0, 97])
def test_a_gap_is_no_evidence(gap: int) -> None:
    """Between the oldest and the newest records, a row can have changed back to an earlier state."""
    flag = [
        of_type("UPDATE", [{"id": "1", "a": new}], [{"id": "1", "a": old}], es=1_700_000_001_000 + 1000 * n)
        for n, (old, new) in enumerate([("1", "2"), ("2", "1"), ("3", "1")])
    ]
    first, second, third = messages(*flag)
    (finding,) = recognise({"raw": [first, second, structs.replace(third, offset=2 + gap)]})
    (profile,) = [proposal for proposal in finding.proposals if proposal.option == "profile"]
    assert (gap == 0) == ("only consistent if data is the row before" in profile.why)


@pytest.mark.parametrize(("odd", "left"), [(1, "oss, dts"), (4, None)])
def test_a_few_odd_messages_do_not_decide(odd: int, left: str | None) -> None:
    """Up to one message in 20 may not fit. Their number and traits are reported."""
    numbers = [of_type("INSERT", [{"id": 42}])] * odd
    proposal = proposed("profile", *[DATA_ALONE] * (70 - odd), *numbers)
    if left is None:
        assert "several writers" in proposal.why
    else:
        assert f"remaining candidates: {left}" in proposal.why
        assert "69 of 70 messages match (cells that are not strings); remaining candidates" in proposal.why


def test_a_delete_on_the_other_side_is_not_odd() -> None:
    """One message is enough, because an instance changes its form with a restart."""
    assert "several writers, or one in two forms" in proposed("profile", *[DATA_ALONE] * 69, OLD_ALONE).why


WIDE = {"meta": {"op": "upd", "table": "A.B", "scn": "1"}, "data": {"N": "1"}, "key": {"ID": "1", "M": None}}
KEY_CHANGE = {"meta": {"op": "upd", "table": "A.B", "scn": "1"}, "data": {"ID": "2"}, "key": {"ID": "1"}}
NUMBER = {"meta": {"op": "ins", "table": "A.B", "scn": "1"}, "data": {"ID": 1}}


@pytest.mark.parametrize(
    ("preset", "certainty", "bodies"),
    [
        ("dts", "likely", [WIDE]),
        ("quest", "likely", [NUMBER]),
        ("lenient", "unknown", [WIDE, NUMBER]),
        ("lenient", "unknown", [KEY_CHANGE]),
    ],
)
def test_shareplex_presets(preset: str, certainty: str, bodies: list[Any]) -> None:
    proposal = proposed("preset", *bodies)
    assert (preset, certainty) == (proposal.value, proposal.certainty)


@pytest.mark.parametrize(
    ("option", "body"),
    [
        ("newline_batches", b"\n".join(json.dumps(body).encode() for body in (DATA_ALONE, CLOUD))),
        ("object_rows", {"data": {"id": 1}, "type": "INSERT", "database": "d", "table": "t"}),
    ],
)
def test_forms_that_need_an_option(option: str, body: Any) -> None:
    """The simplest reading that recognizes the messages wins, so no unnecessary option is proposed."""
    assert found(body).options[option] is True
    assert option not in found(DATA_ALONE).options


def test_messages_of_two_dialects() -> None:
    finding = found(DATA_ALONE, NUMBER)
    assert (None, "unknown") == (finding.verdict, finding.certainty)
    assert "shareplex 1, canal 1" in finding.why


def test_nothing_to_look_at() -> None:
    (finding,) = recognise({"raw": [Message("raw", 0, 0, 0, b"k", None)]})
    assert (None, "unknown", 0) == (finding.verdict, finding.certainty, finding.messages)


def test_a_built_in_dialect_has_a_recognizer() -> None:
    assert all(plugin.recognizer is not None for plugin in dialects.DIALECTS.values())


def test_the_file_is_a_configuration() -> None:
    """`check` accepts the file for all that the demo writes. Topics of a task form a source, including metadata."""
    samples: dict[str, list[Message]] = {}
    for source in shop_sources(7):
        for raw in source.messages(60, grow=False):
            topic = samples.setdefault(raw.topic, [])
            topic.append(Message(raw.topic, 0, len(topic), 0, raw.key, raw.value))
    samples["raw.other"] = messages(b"\x01\x02")
    text = configuration(recognise(samples), {"bootstrap_servers": "kafka:9092", "sasl_password": "${SECRET}"}, "g")
    assert "sasl_password: ${SECRET}" in text
    assert "# topic raw.other: CANNOT KNOW" in text
    settings = settings_module.parse(text.replace("  sasl_password: ${SECRET}\n", ""), {}, "text")
    build_translators(settings, MetadataCatalog())
    sources = {source.dialect: source for source in settings.sources}
    assert {"qlik", "dts_avro", "shareplex", "canal"} == sources.keys()
    assert ("raw.qlik", "raw.qlik.metadata") == sources["qlik"].topics
    assert ("raw.qlik.metadata",) == sources["qlik"].metadata_topics
    assert 5 == len(settings.sources)


@pytest.mark.parametrize("name", ["a\nsources: []", "a\u2028b", "x: [", "\x1b[31m", "'#"])
def test_names_from_outside_stay_comments(name: str) -> None:
    """A table or column name that looks like YAML does not change the file."""
    body = {"meta": {"op": "ins", "table": f'A."{name}"'}, "data": {name: "1"}}
    text = configuration([found(body)], {"bootstrap_servers": "kafka:9092"}, "g")
    settings = settings_module.parse(text, {}, "text")
    assert [("shareplex", ("raw",), ())] == [(s.name, s.topics, s.tables) for s in settings.sources]
    assert "\x1b" not in text
