"""A real Prometheus with the rules of both charts, where a minute takes a second."""

from __future__ import annotations

import json
import re
import subprocess
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from dev.release.charts import NAMESPACE, RELEASE, render
from dev.release.promtool import program
from dev.servers.broker import LOOPBACK, free_port
from dev.servers.stack import wait_until

_SHORTER = {"m": "s", "h": "m"}
_DURATION = re.compile(r"\b(\d+)([mh])\b")
# The longest rule window, six hours, becomes six minutes.
_HANGS = 600.0

# Durations that no drill has to wait for: seconds of lag, and of a missing batch.
THRESHOLDS = {"translator": {"lagSeconds": 5}, "spark-sink": {"batchSeconds": 20}}


def rules(chart: str) -> list[dict[str, Any]]:
    """Return the alerts of a chart with all durations divided by sixty."""
    overrides = {"prometheusRule": {"enabled": True, "runbooks": "https://wiki.example/runbooks", **THRESHOLDS[chart]}}
    (example, *_) = sorted((Path("helm") / chart / "ci").glob("*-values.yaml"))
    (found,) = (one for one in render(chart, example, overrides=overrides) if one["kind"] == "PrometheusRule")
    alerts = [rule for group in found["spec"]["groups"] for rule in group["rules"]]
    return [{**rule, **{name: _shorter(rule[name]) for name in ("expr", "for") if name in rule}} for rule in alerts]


def _shorter(text: str) -> str:
    return _DURATION.sub(lambda found: found[1] + _SHORTER[found[2]], text)


class Prometheus:
    """A server that scrapes the programs once a second.

    Args:
        ports: metrics ports by chart.
    """

    def __init__(self, directory: Path, ports: Mapping[str, int]) -> None:
        self._port = free_port()
        self.address = f"http://{LOOPBACK}:{self._port}"
        directory.mkdir(parents=True, exist_ok=True)
        groups = [{"name": chart, "interval": "1s", "rules": rules(chart)} for chart in ports]
        (directory / "rules.yml").write_text(yaml.safe_dump({"groups": groups}))
        jobs = [
            {
                "job_name": chart,
                "static_configs": [
                    {
                        "targets": [f"{LOOPBACK}:{port}"],
                        "labels": {"namespace": NAMESPACE, "pod": f"{RELEASE}-{chart}-0"},
                    }
                ],
            }
            for chart, port in ports.items()
        ]
        settings = {
            "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
            "rule_files": ["rules.yml"],
            "scrape_configs": jobs,
        }
        (directory / "prometheus.yml").write_text(yaml.safe_dump(settings))
        command = [
            *(str(program("prometheus")), f"--config.file={directory}/prometheus.yml"),
            *(f"--storage.tsdb.path={directory}/data", f"--web.listen-address={LOOPBACK}:{self._port}"),
        ]
        with (directory / "prometheus.log").open("wb") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)

    def close(self) -> None:
        self._process.terminate()
        self._process.wait()

    def states(self, alert: str) -> set[str]:
        """Return the states of an alert's instances, `pending` or `firing`, or none if it is inactive."""
        alerts = self._ask("alerts").get("alerts", ())
        return {found["state"] for found in alerts if found["labels"]["alertname"] == alert}

    def value(self, metric: str) -> float:
        """Return the latest value of a metric with one series, or 0 if it has none."""
        found: Any = self._ask(f"query?query={metric}").get("result") or [{"value": (0, "0")}]
        return float(found[0]["value"][1])

    def _ask(self, question: str) -> dict[str, Any]:
        """Return the server's answer, or nothing while it does not respond."""
        try:
            with urllib.request.urlopen(f"{self.address}/api/v1/{question}", timeout=5) as answer:
                found: dict[str, Any] = json.load(answer)["data"]
        except OSError:
            return {}
        return found

    def wait(self, alert: str, *, fires: bool) -> None:
        """Wait until an alert fires or is inactive."""
        what = f"{alert} {'fires' if fires else 'ends'}"
        wait_until(what, _HANGS, lambda: "firing" in self.states(alert) if fires else not self.states(alert))
