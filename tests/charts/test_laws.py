"""Laws of the rendered objects: their ports, paths, files and names match each other and the programs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dev.release.charts import CHARTS, FOLDER, examples, render

_WORKLOADS = ("Deployment", "StatefulSet", "CronJob")
_PROBES = {"startupProbe": "/livez", "livenessProbe": "/livez", "readinessProbe": "/readyz"}
_POD_EXAMPLES = [(chart, values) for chart in CHARTS for values in examples(chart) if values.stem != "operator-values"]
every_pod = pytest.mark.parametrize(
    ("chart", "values"), _POD_EXAMPLES, ids=[f"{chart}-{values.stem}" for chart, values in _POD_EXAMPLES]
)

# Settings whose change must replace the pods, because the program reads its file only once.
_CHANGES: dict[str, dict[str, Any]] = {
    "translator": {"config.kafka.bootstrap_servers": "other:9092", "config.timing.stuck": 77, "config.group": "other"},
    "spark-sink": {"config.kafka.bootstrap_servers": "other:9092", "config.batches": {"trigger_seconds": 77}},
}


@every_pod
def test_probes(chart: str, values: Path) -> None:
    """Each probe asks for the path of its purpose, on a port of the container."""
    container = _container(chart, values)
    asked = {name: container[name]["httpGet"] for name in _PROBES}
    assert _PROBES == {name: probe["path"] for name, probe in asked.items()}
    assert {probe["port"] for probe in asked.values()} <= _ports(container).keys()


@every_pod
def test_the_file_of_the_program(chart: str, values: Path) -> None:
    """The program reads the file of the release's ConfigMap, from a mounted folder that cannot be written."""
    objects = render(chart, values)
    container, spec = _container(chart, values), _pod(objects)["spec"]
    (flag,) = (number for number, text in enumerate(container["args"]) if text == "-c")
    path = Path(container["args"][flag + 1])
    (mount,) = (one for one in container["volumeMounts"] if Path(one["mountPath"]) == path.parent)
    assert mount["readOnly"]
    (volume,) = (one for one in spec["volumes"] if one["name"] == mount["name"])
    (file,) = (
        one for one in objects if one["kind"] == "ConfigMap" and one["metadata"]["name"] == volume["configMap"]["name"]
    )
    assert path.name in file["data"]
    assert "run" == container["args"][0]


@every_pod
def test_volumes(chart: str, values: Path) -> None:
    """Every mounted volume exists, and every volume is mounted. /tmp is the only other folder that can be written."""
    container, spec = _container(chart, values), _pod(render(chart, values))["spec"]
    assert {one["name"] for one in spec["volumes"]} == {one["name"] for one in container["volumeMounts"]}
    claims = {one["name"] for one in spec["volumes"] if "persistentVolumeClaim" in one}
    written = {one["mountPath"] for one in container["volumeMounts"] if not one.get("readOnly")}
    mounted = {one["mountPath"] for one in container["volumeMounts"] if one["name"] in claims}
    assert {"/tmp"} == written - mounted
    assert container["securityContext"]["readOnlyRootFilesystem"]


@every_pod
def test_services(chart: str, values: Path) -> None:
    """A Service leads to a port of the container."""
    objects = render(chart, values)
    container = _container(chart, values)
    services = [one for one in objects if one["kind"] == "Service"]
    assert services
    for service in services:
        for port in service["spec"]["ports"]:
            target = port["targetPort"]
            assert target in _ports(container)
            assert port.get("protocol", "TCP") == _ports(container)[target][1]


@pytest.mark.parametrize("chart", CHARTS)
def test_network_policy(chart: str) -> None:
    """The policy restricts both directions, admits the ports of the container, and lets the pods ask DNS."""
    values = _values(chart, "watched")
    container = _container(chart, values)
    (policy,) = (one["spec"] for one in render(chart, values) if one["kind"] == "NetworkPolicy")
    assert {"Ingress", "Egress"} == set(policy["policyTypes"])
    (inward,) = policy["ingress"]
    admitted = {(port["port"], port["protocol"]) for port in inward["ports"]}
    assert {(name, protocol) for name, (_, protocol) in _ports(container).items()} == admitted
    outward = {(port["port"], port["protocol"]) for rule in policy["egress"] for port in rule["ports"]}
    assert {(53, "UDP"), (53, "TCP")} <= outward
    assert {"TCP"} == {protocol for port, protocol in outward if port != 53}
    assert all("to" not in rule for rule in policy["egress"])


@pytest.mark.parametrize(
    ("chart", "path", "value"), [(chart, path, value) for chart in CHARTS for path, value in _CHANGES[chart].items()]
)
def test_a_changed_setting_replaces_the_pods(chart: str, path: str, value: Any) -> None:
    least = _values(chart, "default")
    before = _pod(render(chart, least))
    assert before == _pod(render(chart, least)), "an unchanged setting keeps them"
    assert (
        before["metadata"]["annotations"]
        != _pod(render(chart, least, overrides={path: value}))["metadata"]["annotations"]
    )


@every_pod
def test_one_writer(chart: str, values: Path) -> None:
    """Neither program runs two releases at a time, and a sink has one pod."""
    (workload,) = (one["spec"] for one in render(chart, values) if one["kind"] in _WORKLOADS)
    if "schedule" in workload:
        assert "Forbid" == workload["concurrencyPolicy"]
        assert 0 == workload["jobTemplate"]["spec"]["backoffLimit"]
        return
    if "podManagementPolicy" in workload:
        assert "Parallel" == workload["podManagementPolicy"]
    else:
        assert {"type": "Recreate"} == workload["strategy"]
    if chart == "spark-sink":
        assert 1 == workload["replicas"]


@every_pod
def test_the_token_of_the_account(chart: str, values: Path) -> None:
    """Only a driver that creates pods gets the token of its account, and only such an account has rights."""
    objects = render(chart, values)
    creates_pods = values.stem == "executors-values"
    assert creates_pods == _pod(objects)["spec"]["automountServiceAccountToken"]
    assert creates_pods == any(one["kind"] == "RoleBinding" for one in objects)


@every_pod
def test_names_in_references(chart: str, values: Path) -> None:
    """Variables from Secrets are in the container, and no variable is set twice."""
    container = _container(chart, values)
    names = [one["name"] for one in container.get("env", [])]
    assert len(names) == len({*names})
    for one in container.get("env", []):
        assert ("value" in one) != ("valueFrom" in one)


def test_runbooks_are_addresses() -> None:
    """Every alert links to a section under the given address, without a double slash."""
    for chart in CHARTS:
        (rule,) = (one for one in render(chart, _values(chart, "watched")) if one["kind"] == "PrometheusRule")
        links = [alert["annotations"]["runbook_url"] for group in rule["spec"]["groups"] for alert in group["rules"]]
        assert links
        assert all(link.startswith(f"https://wiki.example/cdc/runbooks/{chart}.md#") for link in links)


def test_two_releases_do_not_share_a_group() -> None:
    """The consumer group comes from the release's name, unless the configuration has one."""
    least = _values("translator", "default")
    for overrides, group in (({}, "orders-translator"), ({"fullnameOverride": "b"}, "b"), ({"config.group": "g"}, "g")):
        (file,) = (one for one in render("translator", least, overrides=overrides) if one["kind"] == "ConfigMap")
        assert f'"group": "{group}"' in file["data"]["translator.yaml"]


def _values(chart: str, name: str) -> Path:
    return FOLDER / chart / "ci" / f"{name}-values.yaml"


def _pod(objects: list[dict[str, Any]]) -> dict[str, Any]:
    (workload,) = (one for one in objects if one["kind"] in _WORKLOADS)
    spec = workload["spec"].get("jobTemplate", workload)["spec"]
    template: dict[str, Any] = spec["template"]
    return template


def _container(chart: str, values: Path) -> dict[str, Any]:
    (container,) = _pod(render(chart, values))["spec"]["containers"]
    found: dict[str, Any] = container
    return found


def _ports(container: dict[str, Any]) -> dict[str, tuple[int, str]]:
    """Return the number and the protocol of each port by its name."""
    return {port["name"]: (port["containerPort"], port.get("protocol", "TCP")) for port in container["ports"]}
