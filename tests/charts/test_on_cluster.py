"""Both charts on a real API server with its controllers, for checks that schemas cannot make.

The cluster has no real nodes: pods are created, but no container runs (dev/kubernetes).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dev.kubernetes.cluster import Kubernetes
from dev.kubernetes.programs import MISSING, KubernetesError, are_there
from dev.release.charts import FOLDER, render
from tests.charts.releases import Namespace, Refused, prepare
from tests.charts.test_examples import every_example

pytestmark = pytest.mark.skipif(not are_there(), reason=f"{MISSING}: installs, upgrades and rollbacks are NOT SHOWN")

_MARK = "podAnnotations.tests"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Kubernetes]:
    with Kubernetes() as started:
        prepare(started)
        yield started


@pytest.fixture
def namespace(cluster: Kubernetes, tmp_path: Path) -> Namespace:
    """A separate namespace in which pods must be restricted."""
    return Namespace(cluster, tmp_path)


@every_example
def test_life(chart: str, values: Path, namespace: Namespace) -> None:
    """After install, upgrade and rollback, only pods of that revision exist. Uninstalling leaves nothing."""
    before = namespace.objects()
    namespace.install(chart, values)
    first = namespace.marks()
    assert namespace.wanted_pods() == len(first)
    namespace.upgrade(chart, values, **{_MARK: "second"})
    assert ["second"] * len(first) == namespace.marks()
    namespace.rollback()
    assert first == namespace.marks()
    kept = {
        (one["kind"], one["metadata"]["name"])
        for one in render(chart, values)
        if one["metadata"].get("annotations", {}).get("helm.sh/resource-policy") == "keep"
    }
    namespace.uninstall()
    namespace.wait_until_there_is(before | kept)


@every_example
def test_no_field_is_dropped(chart: str, values: Path, namespace: Namespace) -> None:
    """The server accepts each object and knows all of its fields."""
    for one in sorted(render(chart, values), key=lambda one: one["kind"] != "ServiceAccount"):
        namespace.offer(one)


def test_an_unknown_field_is_seen(namespace: Namespace) -> None:
    """The test above would find an unknown field."""
    (account,) = [one for one in render("translator", _least("translator")) if one["kind"] == "ServiceAccount"]
    with pytest.raises(KubernetesError, match="automountToken"):
        namespace.offer({**account, "automountToken": False})


@pytest.mark.parametrize(
    ("chart", "typo", "named"),
    [
        ("translator", "replica=2", "'replica' not allowed"),
        ("spark-sink", "config.chekpoint=/a", "'chekpoint' not allowed"),
    ],
)
def test_typo(chart: str, typo: str, named: str, namespace: Namespace) -> None:
    """A misspelled value is rejected by name, and no object of the release is created."""
    before = namespace.objects()
    name, _, value = typo.partition("=")
    with pytest.raises(Refused, match=named):
        namespace.install(chart, _least(chart), **{name: value})
    assert before == namespace.objects()


def test_releases_beside_each_other(namespace: Namespace) -> None:
    """The Service and the disruption budget of a release cover only its own pods."""
    three = FOLDER / "translator" / "ci" / "secured-values.yaml"
    namespace.install("translator", three)
    namespace.install("translator", _least("translator"), release="billing")
    namespace.install("spark-sink", _least("spark-sink"), release="lake")
    assert {"orders-translator": 3, "billing-translator": 1} == namespace.addresses(
        "orders-translator", "billing-translator"
    )
    (budget,) = namespace.all_of("apis/policy/v1", "poddisruptionbudgets")
    assert 3 == namespace.settled("apis/policy/v1", "poddisruptionbudgets", budget, "expectedPods", 3)


def test_rights_of_the_driver(namespace: Namespace) -> None:
    """If executors are pods, their driver can create pods in its namespace and has no other permissions."""
    namespace.install("spark-sink", FOLDER / "spark-sink" / "ci" / "executors-values.yaml", release="lake")
    assert namespace.may("lake-spark-sink", "create", "pods")
    assert not namespace.may("lake-spark-sink", "get", "secrets")
    assert not namespace.may("lake-spark-sink", "create", "deployments", group="apps")
    assert not namespace.may("lake-spark-sink", "create", "pods", elsewhere="default")


@pytest.mark.parametrize("chart", ["translator", "spark-sink"])
def test_of_helm(chart: str, namespace: Namespace) -> None:
    """A restricted namespace accepts the pod of `helm test`. After success, the pod is deleted."""
    namespace.install(chart, _least(chart))
    before = namespace.objects()
    assert "Succeeded" in namespace.test()
    namespace.wait_until_there_is(before)


def _least(chart: str) -> Any:
    return FOLDER / chart / "ci" / "default-values.yaml"
