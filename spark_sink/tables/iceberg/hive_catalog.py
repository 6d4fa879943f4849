"""The tables of a Hive metastore, which Spark accesses with the same protocol."""

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

# It writes a line for each attempt to standard error unless configured otherwise; the sink's error contains the last
# one.
logging.getLogger("thrift.transport.TSocket").addHandler(logging.NullHandler())

# For each answer; a metastore that takes longer counts as unavailable.
_SECONDS = 60.0

# The pauses before each round of attempts: a metastore that restarts is retried for about 15 s.
_WAITS = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)


class MetastoreCatalog(HiveCatalog):
    """A client for threads. pyiceberg's own has one connection for all threads, asks only the first of several
    metastores, and waits forever for one that hangs.
    """

    @staticmethod
    def _create_hive_client(properties: dict[str, str]) -> _HiveClient:
        return _Connection(properties[URI], properties.get("ugi"))


class _Connection(_HiveClient, threading.local):
    """A connection for each thread, open for the duration of a request."""

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
        raise last or AssertionError("no metastore was asked")

    def _init_thrift_transport(self) -> Any:
        parts = urlsplit(self._uri)
        socket = TSocket(parts.hostname, parts.port)
        socket.setTimeout(1000 * _SECONDS)
        return TBufferedTransport(socket)
