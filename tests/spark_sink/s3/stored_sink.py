"""Run the sink as a separate process, with tables and checkpoint on an object store."""

from __future__ import annotations

import copy
from pathlib import Path

from deltalake import DeltaTable

from dev.servers.broker import Broker
from dev.servers.object_store import BUCKET, ObjectStore
from tests.spark_sink.sink_process import Sink


class StoredSink(Sink):
    """A sink whose local folder contains the configuration and the log.

    Args:
        port: where the sink finds the store, by default the store's own port.
    """

    def __init__(
        self, broker: Broker, store: ObjectStore, folder: Path, topic: str, *, port: int | None = None
    ) -> None:
        self._store = store
        super().__init__(broker, folder, topic)
        self.warehouse = f"s3://{BUCKET}/{topic}/warehouse"
        self.settings["tables"]["warehouse"] = self.warehouse
        self.settings["checkpoint"] = f"s3a://{BUCKET}/{topic}/checkpoint"
        endpoint = store.endpoint if port is None else f"http://127.0.0.1:{port}"
        self.settings["storage"] = {"endpoint": endpoint}
        self.write_config()

    def beside(self, folder: Path) -> StoredSink:
        """Return another sink with the same configuration and a separate log folder."""
        folder.mkdir()
        other = copy.copy(self)
        other.folder = folder
        return other

    def environment(self) -> dict[str, str]:
        return {**super().environment(), **self._store.credentials}

    def table(self, name: str) -> DeltaTable:
        return DeltaTable(f"{self.warehouse}/{name.replace('.', '/')}", storage_options=options(self._store))


def options(store: ObjectStore) -> dict[str, str]:
    """Return deltalake's options for a store."""
    return {
        **store.credentials,
        "AWS_ENDPOINT_URL": store.endpoint,
        "AWS_ALLOW_HTTP": "true",
        "AWS_REGION": "us-east-1",
    }
