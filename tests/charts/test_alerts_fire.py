"""The alerts, evaluated by promtool over series like those of the programs."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from dev.release.charts import CHARTS, FOLDER, render
from dev.release.promtool import MISSING, promtool

_PROMTOOL = promtool()
pytestmark = pytest.mark.skipif(_PROMTOOL is None, reason=f"{MISSING}: that alerts fire is NOT SHOWN")

# Alert, series with a value per minute, and whether it fires after these minutes. `0x30` is 31 zeros, `_` no value.
_CASES: dict[str, list[tuple[str, dict[str, str], int, bool]]] = {
    "translator": [
        ("TranslatorDown", {}, 15, True),
        ("TranslatorDown", {'cdc_build_info{version="1"}': "1x20"}, 15, False),
        ("TranslatorStalled", {"cdc_batches_in_flight": "3x30", "cdc_records_in_total": "7x30"}, 25, True),
        ("TranslatorStalled", {"cdc_batches_in_flight": "3x30", "cdc_records_in_total": "0+5x30"}, 25, False),
        ("TranslatorStalled", {"cdc_batches_in_flight": "0x30", "cdc_records_in_total": "7x30"}, 25, False),
        ("TranslatorBehind", {'cdc_partition_lag_seconds{source="a"}': "500x20"}, 15, True),
        ("TranslatorBehind", {'cdc_partition_lag_seconds{source="a"}': "0x20"}, 15, False),
        (
            "TranslatorLag",
            {'cdc_source_lag_seconds{source="a"}': "500x30", 'cdc_records_in_total{source="a"}': "0+5x30"},
            25,
            True,
        ),
        (
            "TranslatorLag",
            {'cdc_source_lag_seconds{source="a"}': "500x30", 'cdc_records_in_total{source="a"}': "7x30"},
            25,
            False,
        ),
        (
            "TranslatorLag",
            {'cdc_source_lag_seconds{source="a"}': "20x30", 'cdc_records_in_total{source="a"}': "0+5x30"},
            25,
            False,
        ),
        ("TranslatorDeadLetters", {'cdc_records_dead_total{source="a",code="FRAMING"}': "_x20 1x5"}, 22, True),
        ("TranslatorDeadLetters", {'cdc_records_dead_total{source="a",code="FRAMING"}': "1x20 2x5"}, 22, True),
        ("TranslatorDeadLetters", {'cdc_records_dead_total{source="a",code="FRAMING"}': "2x40"}, 30, False),
        (
            "TranslatorProjectionRefused",
            {'cdc_records_refused_total{source="a",output="b",code="KEY_MISSING"}': "_x20 1x5"},
            22,
            True,
        ),
        ("TranslatorPartitionStopped", {"cdc_partition_stopped": "1x20"}, 5, True),
        ("TranslatorPartitionStopped", {"cdc_partition_stopped": "0x20"}, 5, False),
        ("TranslatorTablesHeld", {"cdc_tables_held": "2x20"}, 10, True),
        ("TranslatorTablesHeld", {"cdc_tables_held": "0x20"}, 10, False),
        ("TranslatorWaitsForMetadata", {"cdc_partitions_waiting": "1x30"}, 20, True),
        ("TranslatorWaitsForMetadata", {"cdc_partitions_waiting": "0x10 1x5 0x15"}, 20, False),
        ("TranslatorMetadataConflict", {'cdc_metadata_conflicts_total{source="a"}': "_x20 1x5"}, 22, True),
        (
            "TranslatorStatementNotApplied",
            {'cdc_statements_not_applied_total{source="a",table="t",note="TABLE_DROPPED"}': "_x20 1x5"},
            22,
            True,
        ),
        ("TranslatorNativePathDisabled", {'cdc_native_path_disabled{source="a"}': "0x10 1x5"}, 12, True),
        ("TranslatorNativePathDisabled", {'cdc_native_path_disabled{source="a"}': "0x20"}, 12, False),
        ("TranslatorRebalances", {"cdc_rebalances_total": "0+1x30"}, 30, True),
        ("TranslatorRebalances", {"cdc_rebalances_total": "0x20 2x10"}, 30, False),
    ],
    "spark-sink": [
        ("SinkDown", {}, 15, True),
        ("SinkDown", {"cdc_sink_batches_total": "0x20"}, 15, False),
        ("SinkStalled", {"cdc_sink_last_batch_timestamp_seconds": "0x60", "cdc_sink_lag_records": "5x60"}, 40, True),
        ("SinkStalled", {"cdc_sink_last_batch_timestamp_seconds": "0x60", "cdc_sink_lag_records": "0x60"}, 40, False),
        ("SinkFallsBehind", {"cdc_sink_lag_records": "100+50x90"}, 80, True),
        ("SinkFallsBehind", {"cdc_sink_lag_records": "5000-50x90"}, 80, False),
        ("SinkTablesParked", {"cdc_sink_parked_tables": "1x20"}, 10, True),
        ("SinkTablesParked", {"cdc_sink_parked_tables": "0x20"}, 10, False),
        (
            "SinkRowsUnaccounted",
            {'cdc_sink_statements_unaccounted_total{table="t",note="TABLE_DROPPED"}': "_x20 1x5"},
            22,
            True,
        ),
        ("SinkQuarantine", {'cdc_sink_quarantined_events_total{reason="KEY_INVALID"}': "_x20 1x5"}, 22, True),
        ("SinkQuarantine", {'cdc_sink_quarantined_events_total{reason="KEY_INVALID"}': "4x40"}, 30, False),
        ("SinkColumnsBeside", {"cdc_sink_columns_beside_total": "0x20 1x5"}, 22, True),
        ("SinkMaintenanceFails", {"cdc_sink_maintenance_failures_total": "0+1x20"}, 20, True),
        ("SinkMaintenanceFails", {"cdc_sink_maintenance_failures_total": "0x10 1x10"}, 20, False),
        ("SinkTableDiffers", {'cdc_sink_verify_differing_rows{table="t",against="topic"}': "2x20"}, 5, True),
        ("SinkTableDiffers", {'cdc_sink_verify_differing_rows{table="t",against="topic"}': "2x5 0x15"}, 10, False),
        (
            "SinkNotVerified",
            {'cdc_sink_last_verified_timestamp_seconds{table="t",against="topic"}': "-700000x20"},
            5,
            True,
        ),
        ("SinkNotVerified", {'cdc_sink_last_verified_timestamp_seconds{table="t"}': "0x20"}, 5, False),
        ("SinkCatalogRefuses", {"cdc_sink_registration_failures_total": "0x20 1x5"}, 22, True),
    ],
}


@pytest.mark.parametrize("chart", CHARTS)
def test_every_alert_fires(chart: str, tmp_path: Path) -> None:
    """Each alert fires when it should and stays quiet otherwise. Those on counters fire at the first count."""
    rule = _rule(chart, "watched")
    (group,) = rule["groups"]
    fired = {alert for alert, _, _, fires in _CASES[chart] if fires}
    assert fired == {alert["alert"] for alert in group["rules"]}
    _evaluate(rule, chart, _CASES[chart], tmp_path)


_NAMESPACE = 'namespace="cdc"'
_CREATED, _SUCCEEDED, _NEXT = (
    f'kube_cronjob_{what}{{cronjob="orders-spark-sink"}}'
    for what in ("created", "status_last_successful_time", "next_schedule_time")
)
_FIRST_RUN, _SECOND_RUN = (f'pod="orders-spark-sink-{run}"' for run in (1, 2))
_SCHEDULED: list[tuple[str, dict[str, str], int, bool]] = [
    ("SinkDown", {}, 15, True),
    ("SinkDown", {_CREATED: "0x120"}, 60, False),
    ("SinkDown", {_CREATED: "0x120"}, 110, True),
    ("SinkDown", {_CREATED: "0x120", _SUCCEEDED: "1800x120"}, 110, False),
    ("SinkDown", {_CREATED: "0x150", _SUCCEEDED: "1800x150"}, 140, True),
    # The run that began at 0 s ends after 30 and after 50 minutes. The next run is due after 30 minutes.
    ("SinkFallsBehind", {_NEXT: "1800x30 3600x20"}, 45, False),
    ("SinkFallsBehind", {_NEXT: "1800x50 5400x20"}, 45, True),
    # A run of three minutes, or of a single scrape, whose pod is gone afterwards.
    ("SinkTablesParked", {"cdc_sink_parked_tables": "1x3 stale"}, 40, True),
    ("SinkTablesParked", {"cdc_sink_parked_tables": "1x3 stale"}, 110, False),
    ("SinkTableDiffers", {'cdc_sink_verify_differing_rows{table="t",against="topic"}': "2x3 stale"}, 40, True),
    (
        "SinkNotVerified",
        {'cdc_sink_last_verified_timestamp_seconds{table="t",against="topic"}': "-700000x3 stale"},
        40,
        True,
    ),
    ("SinkQuarantine", {'cdc_sink_quarantined_events_total{reason="KEY_INVALID"}': "_x20 1 stale"}, 24, True),
    (
        "SinkRowsUnaccounted",
        {'cdc_sink_statements_unaccounted_total{table="t",note="TABLE_DROPPED"}': "_x20 1 stale"},
        24,
        True,
    ),
    ("SinkColumnsBeside", {"cdc_sink_columns_beside_total": "_x20 1 stale"}, 24, True),
    ("SinkCatalogRefuses", {"cdc_sink_registration_failures_total": "_x20 1 stale"}, 24, True),
    # A run of one scrape in each half hour.
    ("SinkMaintenanceFails", {"cdc_sink_maintenance_failures_total": "1 stale"}, 40, False),
    (
        "SinkMaintenanceFails",
        {
            f"cdc_sink_maintenance_failures_total{{{_FIRST_RUN}}}": "1 stale",
            f"cdc_sink_maintenance_failures_total{{{_SECOND_RUN}}}": "_x30 0 stale",
        },
        40,
        False,
    ),
    (
        "SinkMaintenanceFails",
        {
            f"cdc_sink_maintenance_failures_total{{{_FIRST_RUN}}}": "1 stale",
            f"cdc_sink_maintenance_failures_total{{{_SECOND_RUN}}}": "_x30 1 stale",
        },
        40,
        True,
    ),
    # A run that hangs after its first batch.
    ("SinkStalled", {"cdc_sink_last_batch_timestamp_seconds": "0x120", "cdc_sink_lag_records": "5x120"}, 110, True),
    (
        "SinkStalled",
        {"cdc_sink_last_batch_timestamp_seconds": "0x3 stale", "cdc_sink_lag_records": "5x120"},
        110,
        False,
    ),
]
"""The first run of this release would be at its creation, at 0 s. A run without success counts after 5400 s."""

# Two runs with the same result: one alert, for the release and not for each pod.
_REPEATED: list[tuple[str, dict[str, str], int, bool]] = [
    (alert, {f"{metric}{{{run}}}": values for run in (_FIRST_RUN, _SECOND_RUN)}, 24, True)
    for alert, metric, values in (
        ("SinkTablesParked", "cdc_sink_parked_tables", "1x3 stale"),
        ("SinkColumnsBeside", "cdc_sink_columns_beside_total", "_x20 1 stale"),
        ("SinkCatalogRefuses", "cdc_sink_registration_failures_total", "_x20 1 stale"),
        ("SinkMaintenanceFails", "cdc_sink_maintenance_failures_total", "1x3 stale"),
    )
]


def test_alerts_of_a_schedule(tmp_path: Path) -> None:
    """With a schedule, each alert also fires. It fires once for all pods, and results of a run outlive its pod."""
    rule = _rule("spark-sink", "scheduled")
    (group,) = rule["groups"]
    fired = {alert for alert, _, _, fires in _SCHEDULED if fires}
    assert fired == {alert["alert"] for alert in group["rules"]}
    _evaluate(rule, "spark-sink", [*_SCHEDULED, *_REPEATED], tmp_path)


def _rule(chart: str, values: str) -> dict[str, Any]:
    objects = render(chart, FOLDER / chart / "ci" / f"{values}-values.yaml")
    (rule,) = [one["spec"] for one in objects if one["kind"] == "PrometheusRule"]
    found: dict[str, Any] = rule
    return found


def _evaluate(
    rule: dict[str, Any], chart: str, cases: list[tuple[str, dict[str, str], int, bool]], folder: Path
) -> None:
    (folder / "rules.yaml").write_text(yaml.safe_dump(rule), encoding="utf-8")
    tests = {
        "rule_files": ["rules.yaml"],
        "evaluation_interval": "1m",
        "tests": [_test(chart, *case) for case in cases],
    }
    (folder / "tests.yaml").write_text(yaml.safe_dump(tests), encoding="utf-8")
    assert _PROMTOOL is not None
    done = subprocess.run(
        [_PROMTOOL, "test", "rules", "tests.yaml"], cwd=folder, capture_output=True, text=True, check=False
    )
    assert 0 == done.returncode, done.stdout + done.stderr


def _test(chart: str, alert: str, series: dict[str, str], minutes: int, fires: bool) -> dict[str, Any]:
    """Return a promtool test for a pod of the release."""
    inputs = []
    for name, values in series.items():
        metric, _, labels = name.rstrip("}").partition("{")
        pod = "" if "pod=" in labels else f'pod="orders-{chart}-1"'
        inputs.append({"series": f"{metric}{{{','.join(filter(None, (labels, pod, _NAMESPACE)))}}}", "values": values})
    return {
        "interval": "1m",
        "input_series": inputs,
        "promql_expr_test": [
            {
                "expr": f'count(ALERTS{{alertname="{alert}",alertstate="firing"}}) or vector(0)',
                "eval_time": f"{minutes}m",
                "exp_samples": [{"labels": "{}", "value": int(fires)}],
            }
        ],
    }
