"""What needs a person: the rules find each case, agree with the charts' alerts, and lead to existing pages."""

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from translator.kafka.admin import GroupMember
from translator.operations.status import (
    DeadLetters,
    HeldTableStatus,
    PartitionStatus,
    Status,
    StoppedPartition,
)
from translator.web.meanings import runbooks
from translator.web.needs import LAG_SECONDS, RULES, Facts, by_rule, needs
from translator.web.sink_view import (
    QuarantinedEvent,
    SinkConclusion,
    SinkState,
    SinkStatus,
    SinkTable,
    SinkVerification,
)

HELM = Path(__file__).parents[3] / "helm"

HEALTHY = Status(
    at_ms=0,
    group="g",
    partitions=[PartitionStatus("crm", "crm.raw", 0, 0, 5, 9, 4, float(LAG_SECONDS))],
    dead=[],
    held=[],
    schemas=[],
    members=[GroupMember("one", (("crm.raw", 0),))],
)
PARKED = SinkTable("shop.orders", 3, "TYPE_CHANGED", None, "2026-11-28T00:00:00", 7, {}, {})

# The alerts that have no rule, by what they need.
WITHOUT_RULE = {
    **dict.fromkeys(
        (
            "TranslatorStalled",
            "TranslatorLag",
            "TranslatorWaitsForMetadata",
            "TranslatorStatementNotApplied",
            "TranslatorMetadataConflict",
            "TranslatorRebalances",
            "SinkStalled",
            "SinkFallsBehind",
            "SinkRowsUnaccounted",
            "SinkColumnsBeside",
            "SinkMaintenanceFails",
            "SinkCatalogRefuses",
        ),
        "the history of a metric",
    ),
    "TranslatorNativePathDisabled": "a metric of each process",
    "SinkDown": "the processes of the sink",
    "SinkNotVerified": "the limit in the chart's values",
}


def _sink(*tables: SinkTable, quarantine: int = 0) -> SinkState:
    event = QuarantinedEvent("BAD_KEY", "t", 0, 1, None, "")
    return SinkState(SinkStatus("p", tables, {}, (), ()), (), [event] * quarantine)


def test_a_healthy_service() -> None:
    """A lag of exactly the limit is no alert, neither here nor in the charts."""
    assert [] == needs(Facts(HEALTHY, sink=_sink(msgspec.structs.replace(PARKED, parked=None))))
    assert [] == needs(Facts(msgspec.structs.replace(HEALTHY, members=None)))


@pytest.mark.parametrize(
    ("alert", "changes", "what"),
    [
        ("TranslatorDown", {"members": []}, "No process runs in group g."),
        (
            "TranslatorPartitionStopped",
            {"stopped": [StoppedPartition("crm", "crm.raw", 0, 5, "INTERNAL", "a reason")]},
            "Partition crm.raw/0 is stopped at offset 5: INTERNAL.",
        ),
        (None, {"missing": ["topic x does not exist"]}, "topic x does not exist."),
        (
            "TranslatorBehind",
            {"partitions": [msgspec.structs.replace(HEALTHY.partitions[0], behind_seconds=LAG_SECONDS + 0.1)]},
            "Raw records of source crm have been waiting for 5 min.",
        ),
        ("TranslatorTablesHeld", {"held": [HeldTableStatus("t", 4, "X")]}, "Table t is held since offset 4: X."),
        ("TranslatorDeadLetters", {"dead": [DeadLetters("crm", "X", 2)]}, "Open dead letters of source crm: 2 with X."),
    ],
)
def test_a_service_in_need(alert: str | None, changes: dict[str, Any], what: str) -> None:
    (found,) = needs(Facts(msgspec.structs.replace(HEALTHY, **changes)))
    assert (alert, what) == (found.rule.alert, found.what)


def test_a_sink_in_need() -> None:
    found = needs(Facts(HEALTHY, sink=_sink(PARKED, quarantine=2)))
    assert ["SinkTablesParked", "SinkQuarantine"] == [need.rule.alert for need in found]
    assert "Table shop.orders is parked with TYPE_CHANGED. Waiting events: 7." == found[0].what
    assert "Events in quarantine: 2 with BAD_KEY." == found[1].what


def test_a_table_that_differs() -> None:
    at = datetime(2026, 11, 28, tzinfo=UTC)
    verified = {
        against: SinkVerification(at, 0, None, conclusive)
        for against, conclusive in (("topic", None), ("checksums", SinkConclusion(at, 0)))
    }
    table = msgspec.structs.replace(PARKED, parked=None, verified=verified)
    assert [] == needs(Facts(HEALTHY, sink=_sink(table)))
    verified["database:crm"] = SinkVerification(at, 0, at, SinkConclusion(at, 3))
    (found,) = needs(Facts(HEALTHY, sink=_sink(table)))
    assert "SinkTableDiffers" == found.rule.alert
    assert "Table shop.orders differs from database:crm: 3 rows." == found.what


def test_critical_cases_come_first() -> None:
    facts = Facts(msgspec.structs.replace(HEALTHY, dead=[DeadLetters("crm", "X", 2)], members=[], missing=["x"]))
    assert ["critical", "critical", "warning"] == [need.rule.severity for need in needs(facts)]


def test_cases_of_a_rule_share_its_advice() -> None:
    dead = [DeadLetters("crm", "X", 2), DeadLetters("erp", "Y", 1)]
    found = by_rule(needs(Facts(msgspec.structs.replace(HEALTHY, dead=dead, missing=["x"]), sink=_sink(PARKED))))
    assert [(None, 1), ("TranslatorDeadLetters", 2), ("SinkTablesParked", 1)] == [
        (rule.alert, len(cases)) for rule, cases in found
    ]


def test_the_rules_are_those_of_the_alerts() -> None:
    """Each rule has the name and the severity of an alert, and the same limit for the lag. The other alerts need what
    the desk does not have.
    """
    severities: dict[str, str] = {}
    for chart in ("translator", "spark-sink"):
        text = (HELM / chart / "templates" / "_alerts.tpl").read_text(encoding="utf-8")
        severities |= dict(re.findall(r"- alert: (\w+)\n(?:(?!- alert).*\n)*?  labels: \{severity: (\w+)\}", text))
    rules = {rule.alert: rule.severity for rule in RULES if rule.alert}
    assert rules.items() <= severities.items()
    assert set(WITHOUT_RULE) == severities.keys() - rules.keys()
    values = yaml.safe_load((HELM / "translator" / "values.yaml").read_text(encoding="utf-8"))
    assert LAG_SECONDS == values["prometheusRule"]["lagSeconds"]


def test_every_rule_has_a_runbook() -> None:
    assert {rule.alert for rule in RULES if rule.alert} <= runbooks().keys()
