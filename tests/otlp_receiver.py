"""An OTLP receiver that keeps the reports it gets, parsed with the protocol's own classes.

`make interop` sends the same reports to the OpenTelemetry Collector.
"""

import gzip
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

TOKEN = "toy-token"

Series = Mapping[tuple[str, tuple[tuple[str, str], ...]], Any]


class Report(NamedTuple):
    """One request: the resource attributes, and each data point by metric name and labels."""

    identity: Mapping[str, str]
    series: Series


class Receiver(ThreadingHTTPServer):
    """Accept reports that carry the token and reject all others."""

    def __init__(self) -> None:
        self.reports: list[Report] = []
        super().__init__(("127.0.0.1", 0), _Handler)

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1/metrics"

    def newest(self, name: str) -> Any:
        """Return the latest point of a metric without labels, or None if there is none."""
        return next((found for report in reversed(self.reports) if (found := report.series.get((name, ())))), None)


class _Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers["Authorization"] != f"Bearer {TOKEN}":
            self.send_error(401, "who are you")
            return
        if self.headers["Content-Encoding"] == "gzip":
            body = gzip.decompress(body)
        self.server.reports += _reports(body)
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: a failing test reports what is missing."""


def _reports(body: bytes) -> Iterator[Report]:
    for resource in ExportMetricsServiceRequest.FromString(body).resource_metrics:
        identity = {entry.key: entry.value.string_value for entry in resource.resource.attributes}
        metrics = [metric for scope in resource.scope_metrics for metric in scope.metrics]
        yield Report(
            identity,
            {
                (metric.name, tuple(sorted((label.key, label.value.string_value) for label in point.attributes))): point
                for metric in metrics
                for point in getattr(metric, metric.WhichOneof("data")).data_points
            },
        )


@contextmanager
def receiver() -> Iterator[Receiver]:
    """A receiver on its own port."""
    with Receiver() as made:
        thread = threading.Thread(target=made.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield made
        finally:
            made.shutdown()
            thread.join()
