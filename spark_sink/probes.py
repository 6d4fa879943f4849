"""Serve the driver's HTTP pages: /livez and /readyz for probes, and /metrics for Prometheus."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from socketserver import ThreadingMixIn
from typing import TYPE_CHECKING, Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import CollectorRegistry, make_wsgi_app

from cdc_core.metrics_registry import shown
from spark_sink.errors import ConfigError

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIEnvironment

# The query is normally checked every second, but Spark's JVM can pause, and starting the query takes a few seconds.
PATIENCE_SECONDS = 300.0

# The maximum number of open connections. Each connection has its own thread.
CONNECTIONS = 32

# A connection on which nothing is sent or received for this long is closed.
IDLE_SECONDS = 10.0


class Health:
    """Tracks whether the process is alive and ready.

    A batch may take any amount of time. So may a command, or maintenance between batches. During this time, the process
    counts as alive. At any other time, if the query has not been checked for long, Spark's JVM no longer responds, and
    the process counts as dead.

    Args:
        clock: returns seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seen = clock()
        self._busy = 0
        self._begun = False

    def beat(self) -> None:
        """Record that the query was checked."""
        self._seen = self._clock()

    @contextmanager
    def working(self) -> Iterator[None]:
        """Count the process as alive while a command, maintenance or a start runs, however long this takes."""
        self._busy += 1
        try:
            yield
        finally:
            self._busy -= 1
            self.beat()

    def begin(self) -> None:
        """Record that the first batch is planned, or that the topic has nothing to read."""
        self._begun = True

    def hangs(self) -> str | None:
        """Return what hangs, or None if nothing does."""
        idle = self._clock() - self._seen
        return (
            f"the query has not been checked for {idle:.0f} s" if not self._busy and idle > PATIENCE_SECONDS else None
        )

    def missing(self) -> str | None:
        """Return what is missing, or None if the sink is ready."""
        return None if self._begun else "no batch has been planned yet"


class _Server(ThreadingMixIn, WSGIServer):
    """A server with a thread per connection, up to a limit. Further connections are closed immediately."""

    daemon_threads = True
    request_queue_size = CONNECTIONS

    def __init__(self, *arguments: Any, **named: Any) -> None:
        self._free = threading.BoundedSemaphore(CONNECTIONS)
        super().__init__(*arguments, **named)

    def process_request(self, request: Any, client_address: Any) -> None:
        if self._free.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log nothing. Otherwise, anyone who connects could fill the log."""


class _Server6(_Server):
    address_family = socket.AF_INET6


class _SilentHandler(WSGIRequestHandler):
    timeout = IDLE_SECONDS

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing. Otherwise, probe requests would fill the log."""


def serve(host: str, port: int, registry: CollectorRegistry, health: Health) -> int:
    """Serve the pages in a thread, and return the port. If `port` is 0, the system chooses a port.

    Raises:
        ConfigError: the host or port is not available.
    """
    metrics = make_wsgi_app(shown(registry))
    probes = {"/livez": health.hangs, "/readyz": health.missing}

    def answer(request: WSGIEnvironment, respond: StartResponse) -> Iterable[bytes]:
        probe = probes.get(request["PATH_INFO"])
        if probe is None:
            answered: Iterable[bytes] = metrics(request, respond)
            return answered
        wrong = probe()
        status = "200 OK" if wrong is None else "503 Service Unavailable"
        respond(status, [("Content-Type", "text/plain; charset=utf-8")])
        return [f"{wrong or 'ok'}\n".encode()]

    try:
        server = make_server(host, port, answer, _Server6 if ":" in host else _Server, _SilentHandler)
    except OSError as error:
        raise ConfigError(f"metrics.host {host}, metrics.port {port}: {error.strerror}") from None
    threading.Thread(target=server.serve_forever, name="probes and metrics", daemon=True).start()
    return int(server.server_port)
