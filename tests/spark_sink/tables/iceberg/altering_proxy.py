"""A proxy for a REST catalog that silently deviates from requests, as some real catalogs do."""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Alter = Callable[[Any], None]


def nothing(_body: Any) -> None:
    pass


def second_version(request: Any) -> None:
    """Create tables in format version 2, whatever the request."""
    if "schema" in request and "properties" in request:
        request["properties"]["format-version"] = "2"


class BadRequest(Exception):
    """The proxy itself rejects the request."""


def no_third_version(request: Any) -> None:
    """Reject format version 3 openly."""
    if request.get("properties", {}).get("format-version") == "3":
        raise BadRequest("format version 3 is not supported")


def no_expiry(request: Any) -> None:
    if "schema" in request and "properties" in request:
        request["properties"]["gc.enabled"] = "false"


def no_properties_of_snapshots(request: Any) -> None:
    for update in request.get("updates", []):
        if update.get("action") == "add-snapshot":
            summary = update["snapshot"]["summary"]
            update["snapshot"]["summary"] = {"operation": summary["operation"]}


def newest_snapshot_only(answer: Any) -> None:
    metadata = answer.get("metadata")
    if metadata is not None:
        newest = metadata.get("current-snapshot-id")
        metadata["snapshots"] = [one for one in metadata["snapshots"] if one["snapshot-id"] == newest]
        metadata["snapshot-log"] = [one for one in metadata["snapshot-log"] if one["snapshot-id"] == newest]


def refused_when_made() -> Alter:
    """Create the first table but report an error."""
    made = []

    def refuse(answer: Any) -> None:
        if "metadata" in answer and not made:
            made.append(answer)
            raise BadRequest("no more tables")

    return refuse


def outdated_commits_accepted() -> Alter:
    """Answer an outdated commit as if it had been made, and do not make it. Only one table can be written."""
    newest: list[int] = []

    def accept(request: Any) -> None:
        for snapshot in [one["snapshot"] for one in request.get("updates", []) if one["action"] == "add-snapshot"]:
            parent = snapshot.get("parent-snapshot-id")
            if parent is not None and parent not in newest[-1:]:
                request["updates"], request["requirements"] = [], []
            else:
                newest.append(snapshot["snapshot-id"])

    return accept


def files_of_its_own(answer: Any) -> None:
    """Announce a setting that makes Iceberg's S3 client read table files, overriding the client's settings."""
    if "metadata" in answer:
        answer["config"] = {"io-impl": "org.apache.iceberg.aws.s3.S3FileIO"}


@contextmanager
def altering(url: str, request: Alter = nothing, answer: Alter = nothing) -> Iterator[str]:
    """Run a catalog that alters requests and responses, and yield its address."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_one(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            try:
                self._answer(*self._passed_on(_altered(body, request)))
            except BadRequest as refused:
                self._answer(400, json.dumps({"error": {"message": str(refused), "type": "x", "code": 400}}).encode())

        def _passed_on(self, body: bytes) -> tuple[int, bytes]:
            headers = {"Authorization": self.headers["Authorization"], "Content-Type": "application/json"}
            sent = urllib.request.Request(url + self.path, body or None, headers, method=self.command)
            try:
                with urllib.request.urlopen(sent, timeout=600) as got:
                    code, told = got.status, got.read()
            except urllib.error.HTTPError as refused:
                with refused:
                    code, told = refused.code, refused.read()
            return code, _altered(told, answer)

        def _answer(self, code: int, told: bytes) -> None:
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            if code != 204:
                self.send_header("Content-Length", str(len(told)))
            self.end_headers()
            self.wfile.write(told)

        do_GET = do_POST = do_HEAD = do_DELETE = handle_one  # noqa: N815 - as the handler calls them

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _altered(body: bytes, alter: Alter) -> bytes:
    if not body:
        return body
    content = json.loads(body)
    alter(content)
    return json.dumps(content).encode()
