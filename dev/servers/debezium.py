"""Run a real Debezium connector for tests. It follows the binary log of a real database and writes to Kafka.

`python -m dev.servers.debezium --write-checksums` downloads the jars again and writes dev/servers/debezium.sha256. The
first use downloads the jars (45 MB) into the user's cache.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import ClassVar

from dev.jar_list import JarList
from dev.servers.connect import ConnectWorker
from dev.servers.mariadb import PASSWORD, REPLICA, MariaDb

JARS = JarList(
    "dev.servers.debezium", Path(__file__).with_name("debezium.xml"), ("debezium",), "Debezium's connector for MySQL"
)

DATABASE_VERSION = "5.7.19-MariaDB-log"
"""The version that a MariaDB must announce. From this number, Debezium and MySQL's driver infer which statements they
can use. MariaDB 10 knows those of MySQL 5.7.
"""

START_SECONDS = 180.0  # 5 s on a quiet machine


class Debezium(ConnectWorker):
    """Debezium's connector in a worker. It first reads the existing rows, and then follows the binary log.

    Each table has its own topic with one partition, PREFIX.DATABASE.TABLE.
    """

    name: ClassVar[str] = "debezium"

    def __init__(self, database: MariaDb, bootstrap: str, prefix: str) -> None:
        host, port = database.address.split(":")
        connector = {
            "name": prefix,
            "connector.class": "io.debezium.connector.mysql.MySqlConnector",
            "database.hostname": host,
            "database.port": port,
            "database.user": REPLICA,
            "database.password": PASSWORD,
            "database.server.id": "4242",
            "database.ssl.mode": "disabled",
            "topic.prefix": prefix,
            "topic.creation.default.partitions": "1",
            "topic.creation.default.replication.factor": "1",
            "include.schema.changes": "false",
            "schema.history.internal": "io.debezium.storage.file.history.FileSchemaHistory",
            "schema.history.internal.file.filename": "history.jsonl",
            # By default, Debezium sends no TRUNCATE.
            "skipped.operations": "none",
            # By default, Debezium sends large unsigned numbers as negative ones.
            "bigint.unsigned.handling.mode": "precise",
        }
        super().__init__(JARS.folder() / "debezium", bootstrap, connector)

    def start(self) -> None:
        """Start Debezium, and return when it follows the binary log."""
        super().start()
        try:
            self._wait_until(self._follows, "Debezium", START_SECONDS, "start to follow")
        except BaseException:
            self.stop()
            raise

    def _follows(self) -> bool:
        self.check()
        return "Keepalive thread is running" in self.log.read_text(encoding="utf-8", errors="replace")


if __name__ == "__main__":
    sys.exit(JARS.main())
