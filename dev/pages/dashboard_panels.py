"""The panels of both charts' Grafana dashboards, grouped by question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple


class Panel(NamedTuple):
    """A panel. It is a time series or, if it has steps, a single figure.

    Args:
        about: a description of what the panel shows, and what to look for.
        query: PromQL, with PODS in place of the label matchers for the selected pods.
        legend: the template for a line's name, with the line's labels as placeholders.
        unit: Grafana's name for the unit.
        steps: the thresholds at which a single figure changes color. The first one has no value.
        alert: the alert for the same condition. The panel links to its runbook.
    """

    title: str
    about: str
    query: str
    legend: str = "{{pod}}"
    unit: str = "short"
    steps: tuple[tuple[float | None, str], ...] = ()
    alert: str | None = None


def _rate(metric: str, by: str) -> str:
    return f"sum by ({by}) (rate({metric}{{PODS}}[$__rate_interval]))"


def _came(metric: str, by: str, window: str) -> str:
    """Return a query for the number of occurrences in a window.

    Prometheus's increase() starts with the second value of a series, but the first dead letter with a code starts a new
    series. If a series did not exist at the start of the window, the query therefore uses its maximum instead. If the
    process restarted within the window, the maximum counts only what happened in one of the processes.
    """
    series = f"{metric}{{PODS}}"
    new = f"max_over_time({series}[{window}]) unless {series} offset {window}"
    return f"sum by ({by}) (({new}) or increase({series}[{window}]))"


DASHBOARDS: Mapping[str, Mapping[str, Sequence[Panel]]] = {
    "translator": {
        "Is it healthy?": (
            Panel(
                "Processes",
                "Processes that report metrics. Without one, nothing is translated.",
                "count(cdc_build_info{PODS}) or vector(0)",
                "processes",
                steps=((None, "red"), (1, "green")),
                alert="TranslatorDown",
            ),
            Panel(
                "Oldest unread record",
                "Age of the oldest raw record that is not acknowledged yet.",
                "max(cdc_partition_lag_seconds{PODS})",
                "oldest",
                "s",
                steps=((None, "green"), (60, "orange"), (300, "red")),
                alert="TranslatorBehind",
            ),
            Panel(
                "Freshness",
                "Time from the last event's commit at the source to its acknowledgement, for the slowest source.",
                "max(cdc_source_lag_seconds{PODS})",
                "slowest source",
                "s",
                steps=((None, "green"), (60, "orange"), (300, "red")),
                alert="TranslatorLag",
            ),
            Panel(
                "Dead, last hour",
                "Raw records that could not be translated in the last hour.",
                f"sum({_came('cdc_records_dead_total', 'source', '1h')}) or vector(0)",
                "dead",
                steps=((None, "green"), (1, "red")),
                alert="TranslatorDeadLetters",
            ),
            Panel(
                "Held or stopped",
                "Tables that are held until a dead letter is replayed, and partitions that are stopped.",
                "(sum(cdc_tables_held{PODS}) or vector(0)) + (sum(cdc_partition_stopped{PODS}) or vector(0))",
                "held or stopped",
                steps=((None, "green"), (1, "red")),
                alert="TranslatorTablesHeld",
            ),
        ),
        "Is it keeping up?": (
            Panel(
                "Records read",
                "Raw records that have been read and have an outcome.",
                _rate("cdc_records_in_total", "source"),
                "{{source}}",
                "cps",
            ),
            Panel(
                "Events written",
                "Event records by topic, for the canonical topic and the projections.",
                _rate("cdc_records_out_total", "output"),
                "{{output}}",
                "cps",
            ),
            Panel(
                "Source lag",
                "Time from the last event's commit at the source to its acknowledgement. Constant while idle.",
                "max by (source) (cdc_source_lag_seconds{PODS})",
                "{{source}}",
                "s",
            ),
            Panel(
                "Topic lag",
                "Age of the oldest unacknowledged raw record. The age is zero when idle, and grows while a partition "
                "is blocked.",
                "max by (source) (cdc_partition_lag_seconds{PODS})",
                "{{source}}",
                "s",
            ),
            Panel(
                "Backlog",
                "Raw topic offsets that are not yet acknowledged.",
                "sum by (source) (cdc_partition_lag_records{PODS})",
                "{{source}}",
            ),
            Panel(
                "In flight",
                "Records in the producer without a delivery report. A flat, high line means that the brokers accept no "
                "records.",
                "sum by (pod) (cdc_events_in_flight{PODS})",
            ),
            Panel(
                "Latency by stage",
                "99th percentile of the time that batches spend in each stage, from the raw record's timestamp to its "
                "acknowledgement.",
                "histogram_quantile(0.99, sum by (stage, le) (rate(cdc_latency_seconds_bucket{PODS}"
                "[$__rate_interval])))",
                "{{stage}}",
                "s",
            ),
        ),
        "What is missing?": (
            Panel(
                "Dead letters",
                "Raw records that could not be translated in the last hour, by error code. Should be zero.",
                _came("cdc_records_dead_total", "source, code", "1h"),
                "{{source}} {{code}}",
            ),
            Panel(
                "Rejected by projections",
                "Records from the last hour that are in the canonical topic but missing from a projection.",
                _came("cdc_records_refused_total", "output, code", "1h"),
                "{{output}} {{code}}",
            ),
            Panel(
                "Held, waiting and stopped",
                "Tables that are held until a dead letter is replayed, and partitions that wait or are stopped.",
                "sum(cdc_tables_held{PODS}) + sum(cdc_partitions_waiting{PODS}) + "
                "(sum(cdc_partition_stopped{PODS}) or vector(0))",
                "held, waiting and stopped",
            ),
        ),
        "What changes at the sources?": (
            Panel(
                "Changes by operation",
                "Row events by operation, and all other events by kind.",
                _rate("cdc_events_out_total", "op"),
                "{{op}}",
                "cps",
            ),
            Panel(
                "Busiest tables",
                "The ten tables with the most events.",
                "topk(10, " + _rate("cdc_table_events_total", "source, table") + ")",
                "{{source}} {{table}}",
                "cps",
            ),
            Panel(
                "Oldest copies",
                "The ten tables whose newest acknowledged change has the oldest commit time.",
                "topk(10, time() - max by (source, table) (cdc_table_commit_timestamp_seconds{PODS}))",
                "{{source}} {{table}}",
                "s",
            ),
        ),
        "Who does the work?": (
            Panel("Partitions", "Partitions owned by each pod.", "sum by (pod) (cdc_partitions_assigned{PODS})"),
            Panel(
                "Rebalances",
                "Number of times each pod lost its partitions in the last hour.",
                _came("cdc_rebalances_total", "pod", "1h"),
            ),
            Panel(
                "Native path",
                "Raw records that the native path translated, and other raw records by the reason why it did not "
                "translate them.",
                _rate("cdc_native_messages_total", "outcome"),
                "{{outcome}}",
                "cps",
            ),
        ),
    },
    "spark-sink": {
        "Is it healthy?": (
            Panel(
                "Processes",
                "Processes that report metrics. Without a sink, no table is written.",
                "count(cdc_sink_lag_records{PODS}) or vector(0)",
                "processes",
                steps=((None, "red"), (1, "green")),
                alert="SinkDown",
            ),
            Panel(
                "Records behind",
                "Records that had not been applied when the newest batch ended.",
                "max(cdc_sink_lag_records{PODS})",
                "records",
                steps=((None, "green"), (100_000, "orange")),
                alert="SinkFallsBehind",
            ),
            Panel(
                "Freshness",
                "Time since the newest batch ended. An idle topic has no batches.",
                "max(time() - (cdc_sink_last_batch_timestamp_seconds{PODS} > 0))",
                "newest batch",
                "s",
                steps=((None, "green"), (600, "orange"), (1800, "red")),
                alert="SinkStalled",
            ),
            Panel(
                "Quarantined, last hour",
                "Events that could not be applied in the last hour.",
                f"sum({_came('cdc_sink_quarantined_events_total', 'reason', '1h')}) or vector(0)",
                "quarantined",
                steps=((None, "green"), (1, "red")),
                alert="SinkQuarantine",
            ),
            Panel(
                "Parked",
                "Tables that wait for `spark-sink resume`.",
                "max(cdc_sink_parked_tables{PODS})",
                "parked",
                steps=((None, "green"), (1, "red")),
                alert="SinkTablesParked",
            ),
        ),
        "Is it keeping up?": (
            Panel(
                "Events read",
                "Row events read, for the busiest tables.",
                "topk(10, " + _rate("cdc_sink_events_total", "table") + ")",
                "{{table}}",
                "cps",
            ),
            Panel(
                "Backlog",
                "Records that were not applied when the newest batch ended.",
                "cdc_sink_lag_records{PODS}",
            ),
            Panel(
                "Latency",
                "99th percentile of the time from an event's commit at the source to the table's commit.",
                "histogram_quantile(0.99, sum by (le) (rate(cdc_sink_latency_seconds_bucket{PODS}[$__rate_interval])))",
                "p99",
                "s",
            ),
            Panel(
                "Time since the newest batch",
                "An idle topic has no batches. If there is a backlog, this indicates a problem.",
                "time() - (cdc_sink_last_batch_timestamp_seconds{PODS} > 0)",
                "{{pod}}",
                "s",
            ),
            Panel(
                "Batch time by phase",
                "Seconds spent in each phase, per second.",
                'sum by (phase) (rate(cdc_sink_batch_seconds_total{PODS,phase!~"total|fold|write"}[$__rate_interval]))',
                "{{phase}}",
                "percentunit",
            ),
            Panel("Commits", "Commits to tables.", _rate("cdc_sink_commits_total", "pod"), "{{pod}}", "cps"),
        ),
        "What is missing?": (
            Panel("Parked tables", "Tables that wait for `spark-sink resume`.", "cdc_sink_parked_tables{PODS}"),
            Panel(
                "Quarantined events",
                "Events that could not be applied in the last hour, by reason. Should be zero.",
                _came("cdc_sink_quarantined_events_total", "reason", "1h"),
                "{{reason}}",
            ),
            Panel(
                "Events that changed nothing",
                "Duplicate and late events, by reason.",
                _rate("cdc_sink_stale_events_total", "reason"),
                "{{reason}}",
                "cps",
            ),
        ),
        "Are the tables right?": (
            Panel(
                "Rows that differ",
                "Rows that differed in the last `spark-sink verify`, by table. Should be zero.",
                "sum by (table, against) (cdc_sink_verify_differing_rows{PODS})",
                "{{table}} against {{against}}",
            ),
            Panel(
                "Time since the last verification",
                "Time since `spark-sink verify` last verified all rows of a table.",
                "time() - cdc_sink_last_verified_timestamp_seconds{PODS}",
                "{{table}} against {{against}}",
                "s",
            ),
            Panel(
                "Additional columns",
                "Columns that were added because a source column outgrew the type of its table column.",
                "sum by (pod) (cdc_sink_columns_beside_total{PODS})",
            ),
        ),
        "Is maintenance done?": (
            Panel(
                "Maintenance",
                "Maintenance steps in the last day.",
                _came("cdc_sink_maintenance_steps_total", "step", "1d"),
                "{{step}}",
            ),
            Panel(
                "Failed maintenance",
                "Tables whose maintenance was postponed in the last day.",
                _came("cdc_sink_maintenance_failures_total", "pod", "1d"),
            ),
        ),
    },
}
"""The panels of each chart, by the question that they answer. Single figures answer the first question."""
