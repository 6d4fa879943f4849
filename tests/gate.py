"""A gate before a server: open, everything goes through; shut, nobody answers at its port, as if the server had ended.

For what is said and done while a server is away. A real end and a start would take seconds, most of them processors'.
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
    """A port of its own before the port of a server; shut at first."""

    def __init__(self, port: int) -> None:
        self.behind = port
        self._held = hold_port()
        self.port: int = self._held.getsockname()[1]
        self._server: Server | None = None

    def open(self) -> None:
        """Connections go through when it returns."""
        self._server = self._new_server()
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def _new_server(self) -> Server:
        return Server(self.port, self.behind)

    def shut(self) -> None:
        """Whoever is connected no longer is, and nobody else gets in; nothing happens when it is shut."""
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
    """What listens at the port of a gate that is open."""

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, port: int, behind: int) -> None:
        self.behind = behind
        self._ends: list[socket.socket] = []
        self._shut = False
        super().__init__((LOOPBACK, port), _Passage)

    def between(self, ends: list[socket.socket]) -> None:
        """Carry bytes from each end to the other, until one closes."""
        self._ends += ends
        if self._shut:  # it came in a moment before
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
            with suppress(OSError):  # it is closed already
                end.shutdown(socket.SHUT_RDWR)


class _Passage(BaseRequestHandler):
    """One connection."""

    server: Any

    def handle(self) -> None:
        with socket.create_connection((LOOPBACK, self.server.behind)) as behind:
            self.server.between([self.request, behind])
