"""A gate in front of a server. When open, it forwards everything. When shut, its port refuses connections.

It simulates a server outage. Stopping and starting a real server would take seconds, most of them CPU time.
"""

from __future__ import annotations

import select
import socket
import threading
from contextlib import suppress
from socketserver import BaseRequestHandler, ThreadingTCPServer
from types import TracebackType
from typing import Any, Self

from dev.servers.broker import LOOPBACK, hold_port


class Gate:
    """A port of its own in front of a server's port, initially shut."""

    def __init__(self, port: int) -> None:
        self.behind = port
        self._held = hold_port()
        self.port: int = self._held.getsockname()[1]
        self._server: Server | None = None

    def open(self) -> None:
        """Open the gate. Connections work when this returns."""
        self._server = self._new_server()
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def _new_server(self) -> Server:
        return Server(self.port, self.behind)

    def shut(self) -> None:
        """Drop all connections and refuse new ones. Do nothing if the gate is already shut."""
        server, self._server = self._server, None
        if server is not None:
            server.shutdown()
            server.server_close()
            server.disconnect()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.shut()
        self._held.close()


class Server(ThreadingTCPServer):
    """The listener on the port of an open gate."""

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, port: int, behind: int) -> None:
        self.behind = behind
        self._ends: list[socket.socket] = []
        self._shut = False
        super().__init__((LOOPBACK, port), _Passage)

    def between(self, ends: list[socket.socket]) -> None:
        """Copy bytes in both directions until one end closes."""
        self._ends += ends
        if self._shut:  # it connected just before the gate was shut
            return
        other = dict(zip(ends, reversed(ends), strict=True))
        with suppress(OSError):
            while True:
                for end in select.select(ends, [], [])[0]:
                    if not (data := end.recv(1 << 16)):
                        return
                    other[end].sendall(data)

    def disconnect(self) -> None:
        self._shut = True
        for end in [*self._ends]:
            with suppress(OSError):  # already closed
                end.shutdown(socket.SHUT_RDWR)


class _Passage(BaseRequestHandler):
    """One connection through the gate."""

    server: Any

    def handle(self) -> None:
        with socket.create_connection((LOOPBACK, self.server.behind)) as behind:
            self.server.between([self.request, behind])
