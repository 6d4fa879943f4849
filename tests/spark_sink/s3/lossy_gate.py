"""A gate before an object store that loses one answer: the store has done what it was asked for, and nobody hears."""

from __future__ import annotations

import re
import select
import socket
from contextlib import suppress

from tests.gate import Gate, Server


class LossyGate(Gate):
    """The answer to the first request whose first line has `lost` does not come through, and its connection ends."""

    def __init__(self, port: int, lost: bytes) -> None:
        super().__init__(port)
        self._lost = re.compile(rb"\A" + lost)
        self.requests: list[bytes] = []

    def _new_server(self) -> Server:
        return _LossyServer(self.port, self.behind, self)

    def loses(self, request: bytes) -> bool:
        """Tell whether the answer to this request is the one to be lost."""
        if self._lost.search(request) is None:
            return False
        self.requests.append(request.partition(b"\r\n")[0])
        return 1 == len(self.requests)


class _LossyServer(Server):
    def __init__(self, port: int, behind: int, gate: LossyGate) -> None:
        self._gate = gate
        super().__init__(port, behind)

    def between(self, ends: list[socket.socket]) -> None:
        client, store = ends
        losing = False
        with suppress(OSError):
            while True:
                for end in select.select(ends, [], [])[0]:
                    if not (data := end.recv(1 << 16)):
                        return
                    if end is client:
                        losing = losing or self._gate.loses(data)
                        store.sendall(data)
                    elif losing and not data.startswith(b"HTTP/1.1 100 "):  # which only asks for the body
                        return
                    else:
                        client.sendall(data)
