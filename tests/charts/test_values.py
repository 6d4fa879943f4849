"""Values that the charts refuse, and what the optional objects say."""

from __future__ import annotations

from typing import Any

import pytest

from dev.charts import FOLDER, ChartError, examples, render

# Chart, values over those of the least example, and what the operator reads.
_REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("translator", {"replica": 2}, "additional properties 'replica' not allowed"),
    ("translator", {"config.sorces": []}, "additional properties 'sorces' not allowed"),
    ("translator", {"config.delivery": "exactly-once"}, "at '/config/delivery'"),
    ("translator", {"config.timing.rebalance": "soon"}, "at '/config/timing/rebalance'"),
    ("translator", {"config.sources": []}, "config.sources is empty"),
    ("translator", {"config.kafka.bootstrap_servers": ""}, "config.kafka.bootstrap_servers is not set"),
    ("translator", {"config.kafka.sasl_password": "secret"}, "config.kafka.sasl_password holds a password"),
    ("translator", {"config.group": "${GROUP}"}, "asks for the variable ${GROUP}"),
    ("translator", {"terminationGracePeriodSeconds": 60}, "config.timing.rebalance lets a drain take 60"),
    ("translator", {"config.web.host": "127.0.0.1"}, "the kubelet and Prometheus reach a pod from outside"),
    (
        "translator",
        {"networkPolicy.enabled": True, "config.kafka.bootstrap_servers": "kafka"},
        'the port of the broker "kafka" is not known here',
    ),
    ("translator", {"scaledObject.enabled": True, "scaledObject.maxReplicas": 0}, "at '/scaledObject/maxReplicas'"),
    (
        "translator",
        {"scaledObject.enabled": True, "config.sources": [{"name": "a", "dialect": "canal", "topics": ["mysql.*"]}]},
        'source a reads the pattern "mysql.*"',
    ),
    ("spark-sink", {"config.batches.max_offset": 5}, "additional properties 'max_offset' not allowed"),
    ("spark-sink", {"config.checkpoint": "/tmp/checkpoint"}, "a folder of the pod that is lost"),
    (
        "spark-sink",
        {"podMonitor.enabled": True, "config.metrics.port": None},
        "podMonitor.enabled, and config.metrics.port is not set",
    ),
    (
        "spark-sink",
        {"prometheusRule.enabled": True, "config.metrics.port": None},
        "prometheusRule.enabled, and config.metrics.port is not set",
    ),
    (
        "spark-sink",
        {"networkPolicy.enabled": True, "mode": "executors", "config.spark.master": "k8s://https://kubernetes"},
        "networkPolicy.enabled, and mode is executors",
    ),
]


@pytest.mark.parametrize(("chart", "overrides", "message"), _REFUSED, ids=[case[2] for case in _REFUSED])
def test_refused(chart: str, overrides: dict[str, Any], message: str) -> None:
    """The refusal says what came and where."""
    least = FOLDER / chart / "ci" / "default-values.yaml"
    assert render(chart, least)
    with pytest.raises(ChartError) as refusal:
        render(chart, least, overrides=overrides)
    assert message in str(refusal.value)


def test_settings_from_the_environment() -> None:
    """Any setting of the program may come from a variable, whatever it takes."""
    least = FOLDER / "translator" / "ci" / "default-values.yaml"
    variables = [{"name": "DELIVERY", "value": "exactly_once"}, {"name": "STUCK", "value": "90"}]
    overrides = {"config.delivery": "${DELIVERY}", "config.timing.stuck": "${STUCK}", "env": variables}
    assert render("translator", least, overrides=overrides)


def test_off_by_default() -> None:
    """The least release has nothing that a cluster may not know."""
    kinds = {one["kind"] for chart in ("translator", "spark-sink") for one in render(chart, _least(chart))}
    assert {"ConfigMap", "Deployment", "Service", "ServiceAccount"} == kinds


def test_network_policy() -> None:
    """Open are DNS and the ports of what the settings name, each once, and what the values add."""
    (policy,) = _of_kind("NetworkPolicy", "translator")
    dns, named, added = policy["spec"]["egress"]
    assert [53, 53] == [port["port"] for port in dns["ports"]]
    assert [9093, 9094, 8081, 443] == [port["port"] for port in named["ports"]]
    assert [9095] == [port["port"] for port in added["ports"]]
    (inward,) = policy["spec"]["ingress"]
    assert "monitoring" in str(inward["from"])
    (policy,) = _of_kind("NetworkPolicy", "spark-sink")
    assert [9093, 9000] == [port["port"] for port in policy["spec"]["egress"][1]["ports"]]


@pytest.mark.parametrize(("replicas", "budgets"), [(1, 0), (3, 1)])
def test_disruption_budget(replicas: int, budgets: int) -> None:
    """One pod has none: it could only keep its node from being drained."""
    found = render("translator", _least("translator"), overrides={"replicas": replicas})
    assert budgets == sum(one["kind"] == "PodDisruptionBudget" for one in found)


@pytest.mark.parametrize(("port", "probes"), [(8080, 3), (None, 0)])
def test_probes_of_the_sink(port: int | None, probes: int) -> None:
    """They ask where the program answers; where it does not, there are none."""
    (deployment,) = [
        one
        for one in render("spark-sink", _least("spark-sink"), overrides={"config.metrics.port": port})
        if one["kind"] == "Deployment"
    ]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    asked = [container[name]["httpGet"]["path"] for name in container if name.endswith("Probe")]
    assert sorted(["/livez", "/livez", "/readyz"][:probes]) == sorted(asked)


def test_monitored_ports() -> None:
    """A monitor names a port that the container has."""
    for chart in ("translator", "spark-sink"):
        (monitor,), (deployment,) = _of_kind("PodMonitor", chart), _of_kind("Deployment", chart)
        (container,) = deployment["spec"]["template"]["spec"]["containers"]
        asked = {endpoint["port"] for endpoint in monitor["spec"]["podMetricsEndpoints"]}
        assert asked <= {port["name"] for port in container["ports"]}


def test_scaled_object() -> None:
    """KEDA has the number of pods, and not the Deployment; each topic of a source is a trigger."""
    (scaled,), (deployment,) = _of_kind("ScaledObject", "translator"), _of_kind("Deployment", "translator")
    assert deployment["metadata"]["name"] == scaled["spec"]["scaleTargetRef"]["name"]
    assert "replicas" not in deployment["spec"]
    (trigger,) = scaled["spec"]["triggers"]
    assert ("mysql.orders", "cdc-translator") == (trigger["metadata"]["topic"], trigger["metadata"]["consumerGroup"])
    assert {"name": "kafka-login"} == trigger["authenticationRef"]


def test_extra_objects() -> None:
    """Texts in them are templates."""
    (topic,) = _of_kind("KafkaTopic", "translator")
    assert "orders.canonical" == topic["metadata"]["name"]


def _least(chart: str) -> Any:
    return FOLDER / chart / "ci" / "default-values.yaml"


def _of_kind(kind: str, chart: str) -> list[dict[str, Any]]:
    (watched,) = [values for values in examples(chart) if values.stem == "watched-values"]
    return [one for one in render(chart, watched) if one["kind"] == kind]
