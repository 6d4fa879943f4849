"""Releases in a namespace of a cluster, by Helm, and what the API server says of them."""

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

# Kinds of operators that the charts write. Their own definitions are not here: these take any content.
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
    """Helm refuses; the message is its own."""


def prepare(cluster: Kubernetes) -> None:
    """Make what the examples take for granted in a cluster."""
    for kind, (plural, group, version) in _OF_OPERATORS.items():
        definition = {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            # Groups below k8s.io are Kubernetes' own, but for those that say so.
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
    """A namespace, and the releases in it."""

    def __init__(self, cluster: Kubernetes, directory: Path) -> None:
        self._cluster = cluster
        self.name = f"cdc-{uuid.uuid4().hex[:8]}"
        self._environment = os.environ | {"KUBECONFIG": str(cluster.kubeconfig)}
        for place in ("CACHE", "CONFIG", "DATA"):
            self._environment[f"HELM_{place}_HOME"] = str(directory / place)
        labels = {"pod-security.kubernetes.io/enforce": "restricted"}
        cluster.create("/api/v1/namespaces", {"metadata": {"name": self.name, "labels": labels}})
        # The account that platforms have.
        cluster.create(self._place("api/v1", "serviceaccounts"), {"metadata": {"name": "pipelines"}})
        _until("it has what namespaces have", lambda: len(self.objects()) >= len(("pipelines", "default", "a CA")))

    # -- Helm

    def install(self, chart: str, values: Path, *, release: str = RELEASE, **overrides: str) -> None:
        """Install a release, and wait until it is ready.

        Raises:
            Refused: Helm or the API server does not take it.
        """
        self._helm("install", release, str(FOLDER / chart), "-f", str(values), *_set(overrides), *_WAIT)

    def upgrade(self, chart: str, values: Path, **overrides: str) -> None:
        self._helm("upgrade", RELEASE, str(FOLDER / chart), "-f", str(values), *_set(overrides), *_WAIT)

    def rollback(self) -> None:
        """Go back to the revision before."""
        self._helm("rollback", RELEASE, *_WAIT)

    def uninstall(self) -> None:
        self._helm("uninstall", RELEASE, *_WAIT)

    def test(self) -> str:
        """Run `helm test`; returns what it says."""
        return self._helm("test", RELEASE)

    def _helm(self, *arguments: str) -> str:
        command = [str(HELM.built()), "--namespace", self.name, *arguments]
        done = subprocess.run(command, env=self._environment, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Refused(done.stderr.strip())
        return done.stdout

    # -- what the server says

    def all_of(self, group: str, plural: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._cluster.ask(self._place(group, plural))["items"]
        return found

    def objects(self) -> set[tuple[str, str]]:
        """Kind and name of all that is there; events tell of what was."""
        return {found for found in self._cluster.objects(self.name) if found[0] != "Event"}

    def wanted_pods(self) -> int:
        """How many pods the Deployments and StatefulSets ask for."""
        askers = (one for kind in ("deployments", "statefulsets") for one in self.all_of("apis/apps/v1", kind))
        return sum(one["spec"]["replicas"] for one in askers)

    def marks(self) -> list[str]:
        """What the annotation `tests` says, of each pod that is not about to go."""
        pods = self.all_of("api/v1", "pods")
        stays = [one["metadata"] for one in pods if "deletionTimestamp" not in one["metadata"]]
        return [one.get("annotations", {}).get("tests", "") for one in stays]

    def wait_until_there_is(self, wanted: set[tuple[str, str]]) -> None:
        """Wait until nothing but that is there: what belongs to what went goes after it."""
        _until(f"there is no more than {wanted}", lambda: wanted == self.objects(), self.objects)

    def addresses(self, *services: str) -> dict[str, int]:
        """How many pods each Service leads to, when it leads to any."""

        def counted() -> dict[str, int]:
            slices = self.all_of("apis/discovery.k8s.io/v1", "endpointslices")
            return {
                one["metadata"]["labels"]["kubernetes.io/service-name"]: len(one["endpoints"] or ()) for one in slices
            }

        _until("services lead to pods", lambda: all(counted().get(name) for name in services), counted)
        return {name: counted()[name] for name in services}

    def settled(self, group: str, plural: str, one: dict[str, Any], field: str, wanted: Any) -> Any:
        """Wait until the status of an object says that; returns what it says."""

        def told() -> Any:
            found = self._cluster.ask(f"{self._place(group, plural)}/{one['metadata']['name']}")
            return found.get("status", {}).get(field)

        _until(f"{field} is {wanted}", lambda: told() == wanted, told)
        return told()

    def may(self, account: str, verb: str, plural: str, *, group: str = "", elsewhere: str | None = None) -> bool:
        """Tell whether an account of this namespace may do that, here or elsewhere."""
        asked = {"namespace": elsewhere or self.name, "verb": verb, "resource": plural, "group": group}
        review = {"spec": {"user": f"system:serviceaccount:{self.name}:{account}", "resourceAttributes": asked}}
        answer = self._cluster.create("/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
        return bool(answer["status"]["allowed"])

    def offer(self, one: dict[str, Any]) -> None:
        """Have the server judge an object; it keeps accounts, which pods ask for, and nothing else.

        Raises:
            KubernetesError: it refuses the object, or does not know one of its fields.
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
