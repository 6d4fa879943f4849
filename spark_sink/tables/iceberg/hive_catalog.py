"""Tables in a Hive metastore. Spark accesses them with the same protocol."""

from __future__ import annotations

import logging
import threading
import time
from typing import Any
from urllib.parse import urlsplit

from pyiceberg.catalog import URI
from pyiceberg.catalog.hive import HiveCatalog, _HiveClient
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport, TTransportException

# By default, this logger reports every attempt on standard error. The sink's error reports the last attempt.
logging.getLogger("thrift.transport.TSocket").addHandler(logging.NullHandler())

# The timeout for each response. A slower metastore counts as unavailable.
_SECONDS = 60.0

# The pause before each round of attempts, in seconds. Together, the pauses give a restarting metastore about 15 s.
_WAITS = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)


class MetastoreCatalog(HiveCatalog):
    """A thread-safe client. The client in pyiceberg has one connection for all threads, uses only the first of several
    metastores, and waits forever for one that hangs.
    """

    @staticmethod
    def _create_hive_client(properties: dict[str, str]) -> _HiveClient:
        return _Connection(properties[URI], properties.get("ugi"))


class _Connection(_HiveClient, threading.local):
    """One connection per thread. It is open for the duration of a request."""

    def __init__(self, uri: str, ugi: str | None) -> None:
        self._addresses = uri.split(",")
        super().__init__(self._addresses[0], ugi, kerberos_auth=False)

    def __enter__(self) -> Any:
        last: Exception | None = None
        for wait in _WAITS:
            time.sleep(wait)
            for address in self._addresses:
                self._uri = address
                self._transport = self._init_thrift_transport()
                try:
                    self._transport.open()
                except TTransportException as error:
                    last = error
                else:
                    return self._client()
        raise last or AssertionError("no metastore has been queried")

    def _init_thrift_transport(self) -> Any:
        parts = urlsplit(self._uri)
        socket = TSocket(parts.hostname, parts.port)
        socket.setTimeout(1000 * _SECONDS)
        return TBufferedTransport(socket)
