"""Run a real Hive metastore on this machine, for tests and manual use. It comes from PySpark's jars. The server listens
on loopback only.

`python -m dev.iceberg.hive_metastore` runs a metastore until Ctrl-C. When the metastore stops, its tables are lost.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import ClassVar

from dev.iceberg.java_program import JavaProgram
from dev.servers.broker import LOOPBACK
from dev.servers.server import ServerError, run_until_interrupted

SOURCE = Path(__file__).with_name("HiveMetastoreServer.java")


class HiveMetastoreError(ServerError):
    """Raised if the metastore is not running."""


class HiveMetastore(JavaProgram):
    """A metastore whose default database is in its own directory."""

    name: ClassVar[str] = "hive_metastore"
    error = HiveMetastoreError

    @property
    def url(self) -> str:
        return f"thrift://{LOOPBACK}:{self.settled_port()}"

    def start(self) -> None:
        settings = {
            "javax.jdo.option.ConnectionURL": "jdbc:derby:memory:metastore;create=true",
            "derby.stream.error.file": str(self.directory / "derby.log"),
            "datanucleus.schema.autoCreateAll": "true",
            # The metastore's default connection pool is not among the jars.
            "datanucleus.connectionPoolingType": "HikariCP",
            "hive.metastore.schema.verification": "false",
            "hive.metastore.warehouse.dir": str(self.directory / "warehouse"),
        }
        self._run(SOURCE, settings)


def main() -> int:
    return run_until_interrupted(HiveMetastore, "Hive metastore", lambda metastore: metastore.url)


if __name__ == "__main__":
    sys.exit(main())
