"""Run a cluster without nodes: etcd, an API server and the controllers. Each of them is a process on this machine.

Controllers create the pods for a release, but nothing runs the pods. A thread therefore marks each pod as ready, as a
kubelet would, so that everything that waits for pods continues.
"""

from __future__ import annotations

import json
import ssl
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Self

import yaml
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from dev.kubernetes.programs import MISSING, KubernetesError, etcd, kubernetes
from dev.servers.broker import LOOPBACK, hold_port
from dev.servers.server import Server, ServerError

START_SECONDS = 300.0
_PAUSE_SECONDS = 0.1

_TOKEN = "token-of-the-tests"  # noqa: S105 - the server ends with the tests, and listens to this machine alone
_NETWORK = "10.0.0.0/24"
_LONG_AGO = "2026-01-01T00:00:00Z"


class _Process(Server):
    """One of the cluster's programs. The program's folder has the same name as the program."""

    name: ClassVar[str] = "kubernetes"
    error = ServerError

    def __init__(self, command: list[str], directory: Path) -> None:
        super().__init__(directory=directory)
        self._command = command

    def start(self) -> None:
        self._refuse_if_running("stop()")
        self._launch(self._command)

    def check(self) -> None:
        """Raise an error if the program has exited."""
        code = self._running().poll()
        if code is not None:
            raise KubernetesError(f"{self.directory.name} exited with code {code}{self._log_tail()}")


class Kubernetes:
    """The cluster for `helm` and the tests."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._directory = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="cdc-kubernetes-")))
        self._etcd_port, self._port = self._port_of_its_own(), self._port_of_its_own()
        self.kubeconfig = self._directory / "kubeconfig"
        self._certificates = self._directory / "certificates"
        self._ended = threading.Event()

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def ask(self, path: str, body: Any = None, *, method: str = "GET", kind: str = "application/json") -> Any:
        """Send a request to the API server, and return the response.

        Args:
            kind: the body's content type.

        Raises:
            KubernetesError: the server rejects the request. The message comes from the server.
        """
        address = f"https://{LOOPBACK}:{self._port}{path}"
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {_TOKEN}", "Content-Type": kind}
        request = urllib.request.Request(address, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, context=self._context(), timeout=START_SECONDS) as answer:  # noqa: S310
                return json.load(answer)
        except urllib.error.HTTPError as refused:
            raise KubernetesError(f"{method} {path}: {refused.read().decode(errors='replace')}") from None

    def create(self, path: str, body: Mapping[str, Any]) -> Any:
        return self.ask(path, body, method="POST")

    def serves(self, group: str, plural: str) -> bool:
        """Return whether the server knows this kind of object."""
        try:
            return any(known["name"] == plural for known in self.ask(group)["resources"])
        except KubernetesError:
            return False

    def plural(self, group: str, kind: str) -> str:
        """Return the name that paths use for a kind."""
        (found,) = (
            one["name"] for one in self.ask(group)["resources"] if (one["kind"], "/" in one["name"]) == (kind, False)
        )
        return str(found)

    def objects(self, namespace: str) -> Iterator[tuple[str, str]]:
        """Return the kind and name of every object in a namespace, for all kinds that the server knows."""
        groups = [f"/apis/{one['preferredVersion']['groupVersion']}" for one in self.ask("/apis")["groups"]]
        for group in ("/api/v1", *groups):
            for known in self.ask(group)["resources"]:
                if known["namespaced"] and "list" in known["verbs"]:
                    for one in self.ask(f"{group}/namespaces/{namespace}/{known['name']}")["items"]:
                        yield known["kind"], one["metadata"]["name"]

    # -- start

    def _start(self) -> None:
        storage = etcd()
        if storage is None or not kubernetes().is_file():
            raise KubernetesError(MISSING)
        key = self._directory / "accounts.key"
        made = rsa.generate_private_key(65537, 2048)
        key.write_bytes(made.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        tokens = self._directory / "tokens.csv"
        tokens.write_text(f"{_TOKEN},admin,admin,system:masters\n", encoding="utf-8")
        store = f"http://{LOOPBACK}:{self._etcd_port}"
        self._run(
            "etcd",
            [storage],
            {
                "listen-client-urls": store,
                "advertise-client-urls": store,
                "listen-peer-urls": f"http://{LOOPBACK}:0",
                "data-dir": "data",
                "unsafe-no-fsync": "true",
            },
        )
        server = self._run(
            "kube-apiserver",
            [kubernetes(), "kube-apiserver"],
            {
                "etcd-servers": store,
                "bind-address": LOOPBACK,
                "advertise-address": LOOPBACK,
                "secure-port": self._port,
                "cert-dir": self._certificates,
                "token-auth-file": tokens,
                "authorization-mode": "Node,RBAC",
                "service-account-issuer": "https://kubernetes.default.svc",
                "service-account-key-file": key,
                "service-account-signing-key-file": key,
                "service-cluster-ip-range": _NETWORK,
                "endpoint-reconciler-type": "none",
                "profiling": "false",
            },
        )
        self._until("the API server is ready", lambda: self._is_ready(server))
        self._write_kubeconfig()
        manager = self._run(
            "kube-controller-manager",
            [kubernetes(), "kube-controller-manager"],
            {
                "kubeconfig": self.kubeconfig,
                "service-account-private-key-file": key,
                "leader-elect": "false",
                "secure-port": 0,
            },
        )
        self._until("the controllers are running", lambda: self._has_accounts(manager))
        kubelet = threading.Thread(target=self._say_that_pods_are_ready)
        kubelet.start()
        self._stack.callback(kubelet.join)
        self._stack.callback(self._ended.set)

    def _run(self, name: str, command: list[object], options: Mapping[str, object]) -> _Process:
        line = [*map(str, command), *(f"--{option}={value}" for option, value in options.items())]
        process = _Process(line, self._directory / name)
        self._stack.enter_context(process)
        return process

    def _port_of_its_own(self) -> int:
        port: int = self._stack.enter_context(hold_port()).getsockname()[1]
        return port

    def _is_ready(self, server: _Process) -> bool:
        server.check()
        try:
            self.ask("/api")
            self.ask("/api/v1/namespaces/default")
        except (OSError, KubernetesError):
            return False
        return True

    def _has_accounts(self, manager: _Process) -> bool:
        """Return whether new namespaces get their service accounts, which a controller creates."""
        manager.check()
        return bool(self.ask("/api/v1/namespaces/default/serviceaccounts")["items"])

    def _until(self, what: str, ready: Callable[[], bool]) -> None:
        deadline = time.monotonic() + START_SECONDS
        while not ready():
            if time.monotonic() > deadline:
                raise KubernetesError(f"not within {START_SECONDS:.0f} s: {what}")
            time.sleep(_PAUSE_SECONDS)

    def _context(self) -> ssl.SSLContext:
        """Return an SSL context that trusts the certificate that the server created for itself."""
        return ssl.create_default_context(cafile=str(self._certificates / "apiserver.crt"))

    def _write_kubeconfig(self) -> None:
        name = "tests"
        address = {
            "server": f"https://{LOOPBACK}:{self._port}",
            "certificate-authority": str(self._certificates / "apiserver.crt"),
        }
        settings = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": name, "cluster": address}],
            "users": [{"name": name, "user": {"token": _TOKEN}}],
            "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
            "current-context": name,
        }
        self.kubeconfig.write_text(yaml.safe_dump(settings), encoding="utf-8")

    # -- acting as the kubelet

    def _say_that_pods_are_ready(self) -> None:
        while not self._ended.wait(_PAUSE_SECONDS):
            for number, pod in enumerate(self.ask("/api/v1/pods")["items"]):
                if pod["status"]["phase"] == "Pending" and "deletionTimestamp" not in pod["metadata"]:
                    self._say(pod, number)

    def _say(self, pod: Mapping[str, Any], number: int) -> None:
        """Mark the pods of jobs as completed. Mark all other pods as running for so long that nothing waits for
        `minReadySeconds`.
        """
        ends = pod["spec"]["restartPolicy"] == "Never"
        status = {
            "phase": "Succeeded" if ends else "Running",
            "conditions": [{"type": "Ready", "status": "False" if ends else "True", "lastTransitionTime": _LONG_AGO}],
            "podIPs": [{"ip": f"10.1.0.{number % 250 + 1}"}],
            "podIP": f"10.1.0.{number % 250 + 1}",
        }
        place = f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}/status"
        try:
            self.ask(place, {"status": status}, method="PATCH", kind="application/merge-patch+json")
        except KubernetesError:
            return  # the pod was deleted in the meantime
