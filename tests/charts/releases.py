"""Helm releases in a namespace, and the state of their objects according to the API server."""

from __future__ import annotations

import json
import os
import subprocess
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dev.kubernetes.cluster import Kubernetes
from dev.release.charts import FOLDER, HELM, RELEASE

# Custom resources that the charts write. Their real definitions are not installed; these accept any content.
_OF_OPERATORS = {
    "PodMonitor": ("podmonitors", "monitoring.coreos.com", "v1"),
    "PrometheusRule": ("prometheusrules", "monitoring.coreos.com", "v1"),
    "ScaledObject": ("scaledobjects", "keda.sh", "v1alpha1"),
    "KafkaTopic": ("kafkatopics", "kafka.strimzi.io", "v1"),
    "KafkaUser": ("kafkausers", "kafka.strimzi.io", "v1"),
    "SparkApplication": ("sparkapplications", "sparkoperator.k8s.io", "v1beta2"),
}

_HANGS = 120.0


class Refused(Exception):
    """Helm rejected the release, with this message."""


def prepare(cluster: Kubernetes) -> None:
    """Create what the examples expect in a cluster."""
    for kind, (plural, group, version) in _OF_OPERATORS.items():
        definition = {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            # Groups ending in k8s.io belong to Kubernetes, unless listed here.
            "metadata": {
                "name": f"{plural}.{group}",
                "annotations": {"api-approved.kubernetes.io": "unapproved, as the operator's own says"},
            },
            "spec": {
                "group": group,
                "scope": "Namespaced",
                "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
                "versions": [
                    {
                        "name": version,
                        "served": True,
                        "storage": True,
                        "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
                    }
                ],
            },
        }
        cluster.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
    for plural, group, version in _OF_OPERATORS.values():
        _until(f"{plural} are served", lambda: cluster.serves(f"/apis/{group}/{version}", plural))  # noqa: B023 - at once
    cluster.create(
        "/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": "data-pipelines"}, "value": 1000}
    )


class Namespace:
    """A namespace and the releases in it."""

    def __init__(self, cluster: Kubernetes, directory: Path) -> None:
        self._cluster = cluster
        self.name = f"cdc-{uuid.uuid4().hex[:8]}"
        self._environment = os.environ | {"KUBECONFIG": str(cluster.kubeconfig)}
        for place in ("CACHE", "CONFIG", "DATA"):
            self._environment[f"HELM_{place}_HOME"] = str(directory / place)
        labels = {"pod-security.kubernetes.io/enforce": "restricted"}
        cluster.create("/api/v1/namespaces", {"metadata": {"name": self.name, "labels": labels}})
        # The account that exists on real platforms.
        cluster.create(self._place("api/v1", "serviceaccounts"), {"metadata": {"name": "pipelines"}})
        _until("it has what namespaces have", lambda: len(self.objects()) >= len(("pipelines", "default", "a CA")))

    # -- Helm

    def install(self, chart: str, values: Path, *, release: str = RELEASE, **overrides: str) -> None:
        """Install a release, and wait until it is ready.

        Raises:
            Refused: Helm or the API server rejects it.
        """
        self._helm("install", release, str(FOLDER / chart), "-f", str(values), *_set(overrides), *_WAIT)

    def upgrade(self, chart: str, values: Path, **overrides: str) -> None:
        self._helm("upgrade", RELEASE, str(FOLDER / chart), "-f", str(values), *_set(overrides), *_WAIT)

    def rollback(self) -> None:
        """Roll back to the previous revision."""
        self._helm("rollback", RELEASE, *_WAIT)

    def uninstall(self) -> None:
        self._helm("uninstall", RELEASE, *_WAIT)

    def test(self) -> str:
        """Run `helm test` and return its output."""
        return self._helm("test", RELEASE)

    def _helm(self, *arguments: str) -> str:
        command = [str(HELM.built()), "--namespace", self.name, *arguments]
        done = subprocess.run(command, env=self._environment, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Refused(done.stderr.strip())
        return done.stdout

    # -- state on the server

    def all_of(self, group: str, plural: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._cluster.ask(self._place(group, plural))["items"]
        return found

    def objects(self) -> set[tuple[str, str]]:
        """Return the kind and name of all objects except events, which describe the past."""
        return {found for found in self._cluster.objects(self.name) if found[0] != "Event"}

    def wanted_pods(self) -> int:
        """Return the number of pods that the Deployments and StatefulSets request."""
        askers = (one for kind in ("deployments", "statefulsets") for one in self.all_of("apis/apps/v1", kind))
        return sum(one["spec"]["replicas"] for one in askers)

    def marks(self) -> list[str]:
        """Return the annotation `tests` of each pod that is not terminating."""
        pods = self.all_of("api/v1", "pods")
        stays = [one["metadata"] for one in pods if "deletionTimestamp" not in one["metadata"]]
        return [one.get("annotations", {}).get("tests", "") for one in stays]

    def wait_until_there_is(self, wanted: set[tuple[str, str]]) -> None:
        """Wait until only these objects exist. Objects that belong to a deleted one are deleted after it."""
        _until(f"there is no more than {wanted}", lambda: wanted == self.objects(), self.objects)

    def addresses(self, *services: str) -> dict[str, int]:
        """Return the number of pods behind each Service that has any."""

        def counted() -> dict[str, int]:
            slices = self.all_of("apis/discovery.k8s.io/v1", "endpointslices")
            return {
                one["metadata"]["labels"]["kubernetes.io/service-name"]: len(one["endpoints"] or ()) for one in slices
            }

        _until("services lead to pods", lambda: all(counted().get(name) for name in services), counted)
        return {name: counted()[name] for name in services}

    def settled(self, group: str, plural: str, one: dict[str, Any], field: str, wanted: Any) -> Any:
        """Wait until the status of an object matches, and return it."""

        def told() -> Any:
            found = self._cluster.ask(f"{self._place(group, plural)}/{one['metadata']['name']}")
            return found.get("status", {}).get(field)

        _until(f"{field} is {wanted}", lambda: told() == wanted, told)
        return told()

    def may(self, account: str, verb: str, plural: str, *, group: str = "", elsewhere: str | None = None) -> bool:
        """Return whether an account of this namespace has that permission, here or in another namespace."""
        asked = {"namespace": elsewhere or self.name, "verb": verb, "resource": plural, "group": group}
        review = {"spec": {"user": f"system:serviceaccount:{self.name}:{account}", "resourceAttributes": asked}}
        answer = self._cluster.create("/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
        return bool(answer["status"]["allowed"])

    def offer(self, one: dict[str, Any]) -> None:
        """Have the server validate an object. Only accounts, which pods require, are stored.

        Raises:
            KubernetesError: the server rejects the object or does not know one of its fields.
        """
        version = one["apiVersion"]
        group = f"apis/{version}" if "/" in version else f"api/{version}"
        plural = self._cluster.plural(f"/{group}", one["kind"])
        moved = {**one, "metadata": {**one["metadata"], "namespace": self.name}}
        kept = "" if one["kind"] == "ServiceAccount" else "&dryRun=All"
        self._cluster.create(f"{self._place(group, plural)}?fieldValidation=Strict{kept}", moved)

    def _place(self, group: str, plural: str) -> str:
        return f"/{group}/namespaces/{self.name}/{plural}"


_WAIT = ("--wait", "--timeout", f"{_HANGS:.0f}s")


def _set(overrides: dict[str, str]) -> list[str]:
    return [f"--set-json={name}={json.dumps(value)}" for name, value in overrides.items()]


def _until(what: str, ready: Callable[[], bool], seen: Callable[[], Any] = lambda: "") -> None:
    deadline = time.monotonic() + _HANGS
    while not ready():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {_HANGS:.0f} s: {what}; seen: {seen()}")
        time.sleep(0.1)
