"""A gate in front of an object store that loses responses: the request is executed, but no answer arrives."""

from __future__ import annotations

import re
import select
import socket
import threading
from collections import Counter
from contextlib import suppress

from tests.gate import Gate, Server


class LossyGate(Gate):
    """For each entry of `lost`, drop the connection instead of answering the first request that begins with it.

    Args:
        answer: an answer to this request instead, and the store does not receive the request.

    Attributes:
        requests: number of requests that begin with each entry.
    """

    def __init__(self, port: int, *lost: bytes, answer: bytes = b"") -> None:
        super().__init__(port)
        self.answer = answer
        self.requests: Counter[bytes] = Counter()
        self._lost = lost
        self._counting = threading.Lock()

    def _new_server(self) -> Server:
        return _LossyServer(self.port, self.behind, self)

    def loses(self, request: bytes) -> bool:
        """Return whether the response to this request must be lost."""
        begun = next((lost for lost in self._lost if re.match(lost, request)), None)
        if begun is None:
            return False
        with self._counting:
            self.requests[begun] += 1
            return 1 == self.requests[begun]


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
                        if losing and self._gate.answer:
                            client.sendall(self._gate.answer)
                            client.shutdown(socket.SHUT_WR)
                            while client.recv(1 << 16):  # the client would miss the answer if its request were reset
                                pass
                            return
                        store.sendall(data)
                    elif losing and not data.startswith(b"HTTP/1.1 100 "):  # which only asks for the body
                        return
                    else:
                        client.sendall(data)
