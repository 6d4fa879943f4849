"""Values that the charts reject, and the content of optional objects."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dev.release.charts import CHARTS, FOLDER, ChartError, examples, render
from spark_sink.commands.health import health
from tests.translator.commands import _program
from translator.commands.check import check
from translator.commands.send import send
from translator.config.settings import Settings, parse

# Chart, overrides of the minimal example, and the message for the operator.
_REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("translator", {"replica": 2}, "additional properties 'replica' not allowed"),
    ("translator", {"config.sorces": []}, "additional properties 'sorces' not allowed"),
    (
        "translator",
        {"config.sources": [{"name": "a", "dialect": "Canal", "topics": ["a"]}]},
        "at '/config/sources/0/dialect'",
    ),
    ("translator", {"config.delivery": "exactly-once"}, "at '/config/delivery'"),
    ("translator", {"config.timing.rebalance": "soon"}, "at '/config/timing/rebalance'"),
    ("translator", {"config.sources": []}, "config.sources is empty"),
    ("translator", {"config.kafka.bootstrap_servers": ""}, "config.kafka.bootstrap_servers is not set"),
    ("translator", {"config.group_instance_id": "one"}, "config.group_instance_id is one name"),
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
    ("translator", {"test.topic": "mysql.orders"}, "test.topic and test.message belong together"),
    ("translator", {"prometheusRule.enabled": True}, 'prometheusRule.runbooks is ""'),
    ("spark-sink", {"prometheusRule": {"enabled": True, "runbooks": "docs/runbooks"}}, "alerts link to it"),
    ("translator", {"strimzi.enabled": True}, "strimzi.enabled, and strimzi.cluster is not set"),
    ("spark-sink", {"config.batches.max_offset": 5}, "additional properties 'max_offset' not allowed"),
    ("spark-sink", {"config.metrics.host": "127.0.0.1"}, "config.metrics.host is"),
    ("spark-sink", {"config.checkpoint": "/tmp/checkpoint"}, "a folder of the pod that is lost"),
    (
        "spark-sink",
        {"podMonitor.enabled": True, "config.metrics.port": None},
        "podMonitor.enabled, and config.metrics.port is not set",
    ),
    (
        "spark-sink",
        {"prometheusRule": {"enabled": True, "runbooks": "https://wiki.example"}, "config.metrics.port": None},
        "prometheusRule.enabled, and config.metrics.port is not set",
    ),
    (
        "spark-sink",
        {"networkPolicy.enabled": True, "mode": "executors", "config.spark.master": "k8s://https://kubernetes"},
        "networkPolicy.enabled, and mode is executors",
    ),
    ("spark-sink", {"schedule": "hourly"}, "'hourly' does not match pattern"),
    ("spark-sink", {"schedule": "@reboot"}, "'@reboot' does not match pattern"),
    ("spark-sink", {"schedule": "* * * *"}, "'* * * *' does not match pattern"),
    ("spark-sink", {"schedule": "61 99 * * *"}, '"61" is not a valid minute. Use 0-59'),
    ("spark-sink", {"schedule": "0 1,24 * * *"}, '"1,24" is not a valid hour. Use 0-23'),
    ("spark-sink", {"schedule": "0 0 0 * *"}, '"0" is not a valid day of the month. Use 1-31'),
    ("spark-sink", {"schedule": "0 0 1 13 *"}, '"13" is not a valid month. Use 1-12 or JAN-DEC'),
    ("spark-sink", {"schedule": "0 0 * * MON-7"}, '"MON-7" is not a valid day of the week. Use 0-6 or SUN-SAT'),
    ("spark-sink", {"schedule": "*/0 * * * *"}, '"*/0" is not a valid minute'),
    ("spark-sink", {"schedule": "0 20-5 * * *"}, 'the range "20-5" ends before it begins'),
    *(
        (
            "spark-sink",
            {
                "schedule": schedule,
                "prometheusRule": {"enabled": True, "runbooks": "https://wiki.example", "batchSeconds": 2 * pause - 1},
            },
            f'runs with the schedule "{schedule}" can be {pause} seconds apart, so SinkDown would fire between them',
        )
        for schedule, pause in (
            ("*/30 * * * *", 1800),
            ("5 * * * *", 3600),
            ("@hourly", 3600),
            ("0 */4 * * *", 14400),
            ("0 2 * * *", 86400),
            ("0 2 * * MON-FRI", 3 * 86400),
            ("0 8-18 * * mon", (6 * 24 + 14) * 3600),
            ("10,50 8-18/2,20 1 * *", (11 * 60 + 20) * 60),
            ("5/20 * * * *", 1200),
            ("@weekly", 604800),
        )
    ),
    (
        "spark-sink",
        {"schedule": "@hourly", "mode": "operator", "config.spark": {"master": None, "memory": None}},
        "schedule is set, and mode is operator",
    ),
]


@pytest.mark.parametrize(("chart", "overrides", "message"), _REFUSED, ids=[case[2] for case in _REFUSED])
def test_refused(chart: str, overrides: dict[str, Any], message: str) -> None:
    """The error contains the bad value and its place."""
    least = FOLDER / chart / "ci" / "default-values.yaml"
    assert render(chart, least)
    with pytest.raises(ChartError) as refusal:
        render(chart, least, overrides=overrides)
    assert message in str(refusal.value)


def test_settings_from_the_environment() -> None:
    """Any setting of the program can come from a variable, whatever its type."""
    least = FOLDER / "translator" / "ci" / "default-values.yaml"
    variables = [{"name": "DELIVERY", "value": "exactly_once"}, {"name": "STUCK", "value": "90"}]
    overrides = {"config.delivery": "${DELIVERY}", "config.timing.stuck": "${STUCK}", "env": variables}
    assert render("translator", least, overrides=overrides)


@pytest.mark.parametrize("chart", CHARTS)
@pytest.mark.parametrize("name", ["secretEnv", "env", "secretMounts", "tolerations", "affinity", "extraObjects"])
def test_a_value_that_is_removed(chart: str, name: str) -> None:
    """Helm removes a value that is set to null. The chart then behaves as with its default."""
    assert render(chart, _least(chart)) == render(chart, _least(chart), overrides={name: None})


def test_off_by_default() -> None:
    """The minimal release needs nothing that a cluster might lack."""
    kinds = {one["kind"] for chart in ("translator", "spark-sink") for one in render(chart, _least(chart))}
    # The Pod is that of `helm test`.
    assert {"ConfigMap", "Deployment", "Pod", "Service", "ServiceAccount"} == kinds


def test_network_policy() -> None:
    """The policy opens DNS and the ports from the settings, each once, and those that the values add."""
    (policy,) = _of_kind("NetworkPolicy", "translator")
    dns, named, added = policy["spec"]["egress"]
    assert [53, 53] == [port["port"] for port in dns["ports"]]
    assert [9093, 9094, 8081, 443, 4318, 5000] == [port["port"] for port in named["ports"]]
    assert [9095] == [port["port"] for port in added["ports"]]
    (inward,) = policy["spec"]["ingress"]
    assert "monitoring" in str(inward["from"])
    (policy,) = _of_kind("NetworkPolicy", "spark-sink")
    assert [9093, 9000, 4318, 5000] == [port["port"] for port in policy["spec"]["egress"][1]["ports"]]


def test_static_membership() -> None:
    """Pods keep their names, each a distinct group member, and KEDA scales the StatefulSet."""
    watched = FOLDER / "translator" / "ci" / "watched-values.yaml"
    rendered = render("translator", watched, overrides={"staticMembership": True})
    found = {one["kind"]: one for one in rendered}
    assert "Deployment" not in found
    assert found["Service"]["metadata"]["name"] == found["StatefulSet"]["spec"]["serviceName"]
    (container,) = found["StatefulSet"]["spec"]["template"]["spec"]["containers"]
    (variable,) = (one for one in container["env"] if one["name"] == "POD_NAME")
    assert "metadata.name" == variable["valueFrom"]["fieldRef"]["fieldPath"]
    (file,) = (one["data"] for one in rendered if "translator.yaml" in one.get("data", {}))
    assert "${POD_NAME}" == json.loads(file["translator.yaml"])["group_instance_id"]
    assert "StatefulSet" == found["ScaledObject"]["spec"]["scaleTargetRef"]["kind"]


@pytest.mark.parametrize(
    ("catalog", "port"),
    [
        ({"type": "rest", "uri": "https://catalog:8181/api"}, 8181),
        ({"type": "rest", "uri": "http://catalog/api"}, 80),
        ({"type": "jdbc", "uri": "jdbc:postgresql://db/lake?sslmode=require"}, 5432),
        ({"type": "hive", "uri": "thrift://metastore1:9083,thrift://metastore2:9084"}, 9084),
        ({"type": "other", "properties": {"type": "dynamodb", "uri": "https://keys"}}, 443),
    ],
)
def test_network_policy_of_an_iceberg_catalog(catalog: dict[str, Any], port: int) -> None:
    """The sink and its workers can reach the catalog, by default on the port of its URL scheme."""
    config: dict[str, Any] = {
        "tables": {"iceberg_catalog": catalog, "formats": {"*": "iceberg"}, "warehouse": "s3a://l/t"}
    }
    if catalog["type"] == "other":
        config["spark"] = {"conf": {"spark.sql.catalog.cdc_iceberg": "org.apache.iceberg.spark.SparkCatalog"}}
    overrides = {f"config.{section}": values for section, values in config.items()}
    rendered = render("spark-sink", _least("spark-sink"), overrides={**overrides, "networkPolicy.enabled": True})
    (policy,) = (one for one in rendered if one["kind"] == "NetworkPolicy")
    assert port in [entry["port"] for entry in policy["spec"]["egress"][1]["ports"]]


@pytest.mark.parametrize(("replicas", "budgets"), [(1, 0), (3, 1)])
def test_disruption_budget(replicas: int, budgets: int) -> None:
    """A single pod has no budget, which would only keep its node from being drained."""
    found = render("translator", _least("translator"), overrides={"replicas": replicas})
    assert budgets == sum(one["kind"] == "PodDisruptionBudget" for one in found)


@pytest.mark.parametrize(("port", "probes"), [(8080, 3), (None, 0)])
def test_probes_of_the_sink(port: int | None, probes: int) -> None:
    """Probes use the port where the program answers. Without one, there are no probes."""
    (deployment,) = [
        one
        for one in render("spark-sink", _least("spark-sink"), overrides={"config.metrics.port": port})
        if one["kind"] == "Deployment"
    ]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    asked = [container[name]["httpGet"]["path"] for name in container if name.endswith("Probe")]
    assert sorted(["/livez", "/livez", "/readyz"][:probes]) == sorted(asked)


def test_monitored_ports() -> None:
    """A monitor uses an existing port of the container."""
    for chart in ("translator", "spark-sink"):
        (monitor,), (deployment,) = _of_kind("PodMonitor", chart), _of_kind("Deployment", chart)
        (container,) = deployment["spec"]["template"]["spec"]["containers"]
        asked = {endpoint["port"] for endpoint in monitor["spec"]["podMetricsEndpoints"]}
        assert asked <= {port["name"] for port in container["ports"]}


def test_scaled_object() -> None:
    """KEDA and not the Deployment sets the number of pods. Each topic of a source is a trigger."""
    (scaled,), (deployment,) = _of_kind("ScaledObject", "translator"), _of_kind("Deployment", "translator")
    assert deployment["metadata"]["name"] == scaled["spec"]["scaleTargetRef"]["name"]
    assert "replicas" not in deployment["spec"]
    (trigger,) = scaled["spec"]["triggers"]
    assert ("mysql.orders", "orders-translator") == (trigger["metadata"]["topic"], trigger["metadata"]["consumerGroup"])
    assert {"name": "kafka-login"} == trigger["authenticationRef"]


def test_extra_objects() -> None:
    """Texts in extra objects are templates."""
    assert "orders-owner" in {one["metadata"]["name"] for one in _of_kind("ConfigMap", "translator")}


def test_helm_test() -> None:
    """No Deployment, Service or budget selects the test pod, which has no more permissions than theirs."""
    (pod,), (deployment,) = _of_kind("Pod", "translator"), _of_kind("Deployment", "translator")
    assert "test" == pod["metadata"]["annotations"]["helm.sh/hook"]
    selected = deployment["spec"]["selector"]["matchLabels"]
    assert not selected.items() <= pod["metadata"]["labels"].items()
    own, theirs = pod["spec"], deployment["spec"]["template"]["spec"]
    for same in ("securityContext", "volumes", "serviceAccountName", "automountServiceAccountToken"):
        assert theirs[same] == own[same]
    for same in ("securityContext", "volumeMounts", "env", "image", "resources"):
        assert theirs["containers"][0][same] == own["containers"][0][same]


def test_what_helm_test_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program accepts the arguments, and the example message is no row. Without a topic, nothing is written."""
    (pod,) = _of_kind("Pod", "translator")
    command, *arguments = pod["spec"]["containers"][0]["args"]
    assert "send" == command
    assert ["mysql.orders", "/etc/cdc/config/test-message"] == arguments[-2:]
    message = _files()["test-message"]
    file, config = tmp_path / "message", tmp_path / "translator.yaml"
    file.write_text(message)
    config.write_text(_files()["translator.yaml"])
    monkeypatch.setenv("KAFKA_SECRET", "1")
    event = json.loads(_program.run("translate", "-c", str(config), "--raw", str(file)).stdout)
    assert ("watermark", None) == (event["kind"], event["after"])
    with send.make_context(command, [*arguments[:-1], str(file)]) as context:
        assert 60 == context.params["timeout"]
    (pod,) = [one for one in render("translator", _least("translator")) if one["kind"] == "Pod"]
    command, *arguments = pod["spec"]["containers"][0]["args"]
    assert "check" == command
    with check.make_context(command, arguments) as context:
        assert context.params["connect"]


def test_helm_test_of_the_sink() -> None:
    """The test pod queries the Service on the sink's port. A policy admits it, and no claim is mounted."""
    (pod,), (service,) = _of_kind("Pod", "spark-sink"), _of_kind("Service", "spark-sink")
    (deployment,), (policy,) = _of_kind("Deployment", "spark-sink"), _of_kind("NetworkPolicy", "spark-sink")
    command, *arguments = pod["spec"]["containers"][0]["args"]
    assert "health" == command
    with health.make_context(command, arguments) as context:
        assert ("http://orders-spark-sink:9100", 60) == (context.params["url"], context.params["timeout"])
    assert ("orders-spark-sink", 9100) == (service["metadata"]["name"], service["spec"]["ports"][0]["port"])
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert {"name": service["spec"]["ports"][0]["targetPort"], "containerPort": 9100} in container["ports"]
    labels = pod["metadata"]["labels"]
    assert not service["spec"]["selector"].items() <= labels.items()
    (*_, tester) = policy["spec"]["ingress"][0]["from"]
    assert tester["podSelector"]["matchLabels"].items() <= labels.items()
    assert "volumes" not in pod["spec"]
    assert container["image"] == pod["spec"]["containers"][0]["image"]


@pytest.mark.parametrize("overrides", [{"config.metrics.port": None}, {"mode": "operator", "config.spark": None}])
def test_a_sink_without_a_page(overrides: dict[str, Any]) -> None:
    """Without a metrics port, or with the operator's driver, neither a Service nor a test exists."""
    kinds = {one["kind"] for one in render("spark-sink", _least("spark-sink"), overrides=overrides)}
    assert not {"Service", "Pod"} & kinds


def test_a_scheduled_sink() -> None:
    """A CronJob starts the Deployment's pod with one more argument. Between runs, `helm test` has nothing to query."""
    found = {
        schedule: {
            one["kind"]: one for one in render("spark-sink", _least("spark-sink"), overrides={"schedule": schedule})
        }
        for schedule in ("", "@hourly")
    }
    assert {"CronJob"} == found["@hourly"].keys() - found[""].keys()
    assert {"Deployment", "Pod"} == found[""].keys() - found["@hourly"].keys()
    pod = found["@hourly"]["CronJob"]["spec"]["jobTemplate"]["spec"]["template"]
    assert "--available-now" == pod["spec"]["containers"][0]["args"].pop()
    assert "Never" == pod["spec"].pop("restartPolicy")
    assert found[""]["Deployment"]["spec"]["template"] == pod
    assert 86400 == found["@hourly"]["CronJob"]["spec"]["jobTemplate"]["spec"]["activeDeadlineSeconds"]


@pytest.mark.parametrize(
    "schedule", ["@daily", "*/5 * * * *", "0,30 8-18/2 * jan-MAR ?", "59 23 31 12 6", "00 02 * * Mon-Fri,0"]
)
def test_schedules(schedule: str) -> None:
    """A schedule that Kubernetes accepts is rendered unchanged. Alerts are only rejected for long pauses."""
    alerts = {"enabled": True, "runbooks": "https://wiki.example", "batchSeconds": 345_600}
    overrides = {"schedule": schedule, "prometheusRule": alerts}
    rendered = render("spark-sink", _least("spark-sink"), overrides=overrides)
    assert [schedule] == [one["spec"]["schedule"] for one in rendered if one["kind"] == "CronJob"]


@pytest.mark.parametrize("override", ["nameOverride", "fullnameOverride"])
@pytest.mark.parametrize("chart", CHARTS)
def test_long_names(chart: str, override: str) -> None:
    """Kubernetes derives names of 63 characters at most from a workload's name: CronJobs and StatefulSets can only have
    52. The alerts match the pods' names, which begin with the workload's.
    """
    long = f"{'a-' * 31}a"
    alerts: dict[str, Any] = {"prometheusRule.enabled": True, "prometheusRule.runbooks": "https://wiki.example"}
    other: dict[str, Any] = {"staticMembership": True}
    if chart == "spark-sink":
        other = {"schedule": "@hourly", "prometheusRule.batchSeconds": 7200}
    for changed in ({}, other):
        overrides = {override: long, **alerts, "dashboard.enabled": True, **changed}
        rendered = render(chart, _least(chart), overrides=overrides)
        assert max(len(one["metadata"]["name"]) for one in rendered) <= 63
        (name,) = (
            one["metadata"]["name"] for one in rendered if one["kind"] in {"Deployment", "StatefulSet", "CronJob"}
        )
        assert 40 < len(name) <= 52
        (rule,) = (one for one in rendered if one["kind"] == "PrometheusRule")
        assert f'pod=~"{name}-.+"' in str(rule["spec"])


def test_strimzi() -> None:
    """The chart creates the topics that the translator writes, and a user with permissions on these and its inputs."""
    settings = _settings()
    topics = {one["spec"]["topicName"]: one for one in _of_kind("KafkaTopic", "translator")}
    assert {*settings.written_topics} == topics.keys()
    for name in (settings.output.schemas_topic, settings.output.metadata_topic):
        assert (1, "compact") == (topics[name]["spec"]["partitions"], topics[name]["spec"]["config"]["cleanup.policy"])
    assert (6, {"retention.ms": "86400000"}) == tuple(
        topics["cdc.debezium"]["spec"][key] for key in ("partitions", "config")
    )
    assert {"keep"} == {one["metadata"]["annotations"]["helm.sh/resource-policy"] for one in topics.values()}
    (user,) = _of_kind("KafkaUser", "translator")
    rights = {
        (found["resource"]["type"], found["resource"]["name"], found["resource"].get("patternType", "literal")): {
            *found["operations"]
        }
        for found in user["spec"]["authorization"]["acls"]
        if found["operations"] != ["Write", "DescribeConfigs"]  # of `helm test`
    }
    both = {"Read", "Write", "DescribeConfigs"}
    assert rights == {
        **{("topic", name, "literal"): both for name in topics},
        ("topic", "rows.", "prefix"): both | {"Create"},
        ("topic", "mysql.orders", "literal"): {"Read", "DescribeConfigs"},
        ("group", settings.group, "literal"): {"Read"},
    }


@pytest.mark.parametrize(
    ("topic", "resource"), [("erp.*", ("erp.", "prefix")), ("*.erp", ("*", "literal")), ("erp", ("erp", "literal"))]
)
def test_rights_on_patterns(topic: str, resource: tuple[str, str]) -> None:
    """Kafka's ACLs support names and prefixes. A pattern gets its prefix, or all topics if it has none."""
    overrides = {
        "strimzi": {"enabled": True, "cluster": "kafka"},
        "config.sources": [{"name": "erp", "dialect": "qlik", "topics": [topic]}],
    }
    (user,) = [
        one for one in render("translator", _least("translator"), overrides=overrides) if one["kind"] == "KafkaUser"
    ]
    first = user["spec"]["authorization"]["acls"][0]["resource"]
    assert resource == (first["name"], first["patternType"])


def _settings() -> Settings:
    return parse(_files()["translator.yaml"], {"KAFKA_SECRET": "1"}, "the ConfigMap")


def _files() -> dict[str, str]:
    """Return the files that the translator's pods see."""
    return {name: text for one in _of_kind("ConfigMap", "translator") for name, text in one["data"].items()}


def _least(chart: str) -> Any:
    return FOLDER / chart / "ci" / "default-values.yaml"


def _of_kind(kind: str, chart: str) -> list[dict[str, Any]]:
    (watched,) = [values for values in examples(chart) if values.stem == "watched-values"]
    return [one for one in render(chart, watched) if one["kind"] == kind]
