"""The Grafana dashboards of both charts, generated from tables of panels.

`python -m dev.pages.dashboards` writes helm/*/dashboards/*.json. Tests compare the files with the tables, and the
tables with the metrics of the programs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

_HELM = Path(__file__).parents[2] / "helm"

# A row of the grid has 24 columns: three panels.
_WIDTH, _HEIGHT, _IN_A_ROW = 8, 8, 3

# The pods that the dashboard's variables choose.
_PODS = 'namespace="$namespace",pod=~"$pod"'


class Panel(NamedTuple):
    """A panel with lines over time.

    Args:
        about: what it shows, and what to look for.
        query: PromQL, in which PODS stands for the label matchers of the chosen pods.
        legend: the name of a line, of its labels.
        unit: Grafana's name of it.
    """

    title: str
    about: str
    query: str
    legend: str = "{{pod}}"
    unit: str = "short"


def _rate(metric: str, by: str) -> str:
    return f"sum by ({by}) (rate({metric}{{PODS}}[$__rate_interval]))"


def _came(metric: str, by: str, window: str) -> str:
    """How many came in a window.

    Prometheus' increase() begins with the second value of a series, and the first dead letter of a code begins one.
    So of one that was not there when the window began all count; after a restart those of the life that had most.
    """
    series = f"{metric}{{PODS}}"
    new = f"max_over_time({series}[{window}]) unless {series} offset {window}"
    return f"sum by ({by}) (({new}) or increase({series}[{window}]))"


DASHBOARDS: Mapping[str, Sequence[Panel]] = {
    "translator": (
        Panel(
            "Records read",
            "Raw records that were read and accounted for.",
            _rate("cdc_records_in_total", "source"),
            "{{source}}",
            "cps",
        ),
        Panel(
            "Events written",
            "Records of events, by topic: the canonical one and projections.",
            _rate("cdc_records_out_total", "output"),
            "{{output}}",
            "cps",
        ),
        Panel(
            "Behind the source",
            "From the commit of the last event at its source to its acknowledgement; as it was while a source rests.",
            "max by (source) (cdc_source_lag_seconds{PODS})",
            "{{source}}",
            "s",
        ),
        Panel(
            "Behind the topics",
            "Age of the oldest raw record that was not acknowledged. Zero at rest; it grows while a partition stands.",
            "max by (source) (cdc_partition_lag_seconds{PODS})",
            "{{source}}",
            "s",
        ),
        Panel(
            "Unread",
            "Offsets of raw topics that were not acknowledged.",
            "sum by (source) (cdc_partition_lag_records{PODS})",
            "{{source}}",
        ),
        Panel(
            "Dead letters",
            "Raw records that could not be translated, in the last hour, by reason. Zero is what is wanted.",
            _came("cdc_records_dead_total", "source, code", "1h"),
            "{{source}} {{code}}",
        ),
        Panel(
            "Refused by projections",
            "Records that are in the canonical topic and not in a projection, in the last hour.",
            _came("cdc_records_refused_total", "output, code", "1h"),
            "{{output}} {{code}}",
        ),
        Panel(
            "Held and waiting",
            "Tables that wait for the replay of a dead letter, and partitions that wait for metadata.",
            "sum(cdc_tables_held{PODS}) + sum(cdc_partitions_waiting{PODS})",
            "held and waiting",
        ),
        Panel(
            "Changes by operation",
            "Events by operation, or kind where they are no rows.",
            _rate("cdc_events_out_total", "op"),
            "{{op}}",
            "cps",
        ),
        Panel(
            "Busiest tables",
            "The ten tables with most events.",
            "topk(10, " + _rate("cdc_table_events_total", "source, table") + ")",
            "{{source}} {{table}}",
            "cps",
        ),
        Panel(
            "Oldest copies",
            "The ten tables whose newest acknowledged change was committed longest ago.",
            "topk(10, time() - max by (source, table) (cdc_table_commit_timestamp_seconds{PODS}))",
            "{{source}} {{table}}",
            "s",
        ),
        Panel(
            "Native path",
            "Raw records that the native path took, or why it did not.",
            _rate("cdc_native_messages_total", "outcome"),
            "{{outcome}}",
            "cps",
        ),
        Panel(
            "In flight",
            "Records with the producer, not yet reported on. Flat and high: the brokers take nothing.",
            "sum by (pod) (cdc_events_in_flight{PODS})",
        ),
        Panel("Partitions", "Partitions that a pod owns.", "sum by (pod) (cdc_partitions_assigned{PODS})"),
        Panel(
            "Rebalances",
            "How often a pod gave its partitions up, in the last hour.",
            _came("cdc_rebalances_total", "pod", "1h"),
        ),
    ),
    "spark-sink": (
        Panel(
            "Events read",
            "Row events that were read, of the busiest tables.",
            "topk(10, " + _rate("cdc_sink_events_total", "table") + ")",
            "{{table}}",
            "cps",
        ),
        Panel(
            "Records to come",
            "How far the tables were behind the topic when the newest batch had ended.",
            "cdc_sink_lag_records{PODS}",
        ),
        Panel(
            "Latency",
            "From the commit at the source to the commit of the table, of 99 events in 100.",
            "histogram_quantile(0.99, sum by (le) (rate(cdc_sink_latency_seconds_bucket{PODS}[$__rate_interval])))",
            "99 of 100",
            "s",
        ),
        Panel(
            "Time since the newest batch",
            "A topic at rest has no batches; with records to come it is trouble.",
            "time() - (cdc_sink_last_batch_timestamp_seconds{PODS} > 0)",
            "{{pod}}",
            "s",
        ),
        Panel(
            "Where batches spend their time",
            "Seconds of each phase a second.",
            'sum by (phase) (rate(cdc_sink_batch_seconds_total{PODS,phase!~"total|fold|write"}[$__rate_interval]))',
            "{{phase}}",
            "percentunit",
        ),
        Panel("Commits", "Commits to tables.", _rate("cdc_sink_commits_total", "pod"), "{{pod}}", "cps"),
        Panel("Parked tables", "Tables that wait for `spark-sink resume`.", "cdc_sink_parked_tables{PODS}"),
        Panel(
            "Quarantined events",
            "Events that could not be applied, in the last hour, by reason. Zero is what is wanted.",
            _came("cdc_sink_quarantined_events_total", "reason", "1h"),
            "{{reason}}",
        ),
        Panel(
            "Events that changed nothing",
            "What came again or late, by why.",
            _rate("cdc_sink_stale_events_total", "reason"),
            "{{reason}}",
            "cps",
        ),
        Panel(
            "Maintenance",
            "Steps that were done, in the last day.",
            _came("cdc_sink_maintenance_steps_total", "step", "1d"),
            "{{step}}",
        ),
        Panel(
            "Maintenance that failed",
            "Tables that were left for later, in the last day.",
            _came("cdc_sink_maintenance_failures_total", "pod", "1d"),
        ),
        Panel(
            "Columns beside",
            "Columns that came beside another, whose type the source went beyond.",
            "sum by (pod) (cdc_sink_columns_beside_total{PODS})",
        ),
    ),
}


def dashboards() -> dict[Path, str]:
    """The content of each file, by its path."""
    return {
        _HELM / chart / "dashboards" / f"{chart}.json": json.dumps(_dashboard(chart, panels), indent=2) + "\n"
        for chart, panels in DASHBOARDS.items()
    }


def _dashboard(chart: str, panels: Sequence[Panel]) -> dict[str, Any]:
    metric = {"translator": "cdc_build_info", "spark-sink": "cdc_sink_batches_total"}[chart]
    return {
        "title": f"CDC {chart}",
        "uid": f"cdc-{chart}",
        "tags": ["cdc"],
        "schemaVersion": 39,
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "templating": {
            "list": [
                {"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Prometheus"},
                _variable("namespace", f"label_values({metric}, namespace)", several=False),
                _variable("pod", f'label_values({metric}{{namespace="$namespace"}}, pod)', several=True),
            ]
        },
        "panels": [_panel(panel, number) for number, panel in enumerate(panels)],
    }


def _variable(name: str, query: str, *, several: bool) -> dict[str, Any]:
    everything = {"multi": True, "includeAll": True, "allValue": ".+"} if several else {}
    return {
        "name": name,
        "label": name.capitalize(),
        "type": "query",
        "datasource": _SOURCE,
        "query": query,
        "refresh": 2,
        "sort": 1,
        **everything,
    }


def _panel(panel: Panel, number: int) -> dict[str, Any]:
    row, place = divmod(number, _IN_A_ROW)
    return {
        "id": number + 1,
        "type": "timeseries",
        "title": panel.title,
        "description": panel.about,
        "datasource": _SOURCE,
        "gridPos": {"h": _HEIGHT, "w": _WIDTH, "x": _WIDTH * place, "y": _HEIGHT * row},
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "targets": [{"refId": "A", "expr": panel.query.replace("PODS", _PODS), "legendFormat": panel.legend}],
    }


_SOURCE = {"type": "prometheus", "uid": "${datasource}"}


def main() -> None:
    """Write the files."""
    for path, text in dashboards().items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
