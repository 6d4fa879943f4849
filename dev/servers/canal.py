"""Run a real Canal server for tests. It follows the binary log of a real database and writes to Kafka.

`python -m dev.servers.canal --write-checksums` downloads the jars again and writes dev/servers/canal.sha256. The first
use downloads the jars (42 MB) into the user's cache.
"""

from __future__ import annotations

import os
import signal
import sys
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import ClassVar

from dev.jar_list import JarList
from dev.jars import broker_jars
from dev.java import find_java
from dev.servers.mariadb import PASSWORD, REPLICA, LogPosition, MariaDb
from dev.servers.server import Server, ServerError

_HERE = Path(__file__).parent
JARS = JarList("dev.servers.canal", _HERE / "canal.xml", ("canal",), "Canal's jars")
PROGRAM = _HERE / "CanalServer.java"

START_SECONDS = 180.0  # 5 s on a quiet machine

TIME_ZONE = "Asia/Shanghai"
"""The time zone of Canal's JVM, in which Canal prints TIMESTAMP columns. It differs from the database's."""

JVM_OPTIONS = (
    "-Xmx512m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Djava.net.preferIPv4Stack=true",
    f"-Duser.timezone={TIME_ZONE}",
)

_FOLLOWING = "\nfollowing\n"

_REPLICA_IDS = count(1234)
"""A database closes the connection of a replica when another one with the same ID connects."""


class CanalError(ServerError):
    """Raised if Canal is not running."""


@dataclass(frozen=True)
class CanalTopics:
    """The topics that Canal writes. The syntax is that of `canal.mq.dynamicTopic` and `canal.mq.partitionHash`.

    Args:
        default: the topic for all tables that `dynamic` does not name.
        dynamic: the topics by table, with a regular expression: TOPIC:TABLES,…
        partition_hash: the columns to hash by table, with a regular expression: TABLES:COLUMNS,… `$pk$` stands for the
            key. All other tables are in partition 0.
        partitions: the number of partitions per topic.
        flat: whether messages are JSON (`canal.mq.flatMessage`). Otherwise, they are Protobuf.
    """

    default: str
    dynamic: str
    partition_hash: str
    partitions: int
    flat: bool = True


class CanalServer(Server):
    """A server that can be stopped, killed and restarted. It keeps its position and the structures of the tables.

    Args:
        start: where the first start begins to read. At the first start, the table structures must be those of this
            position.
    """

    name: ClassVar[str] = "canal"
    error = CanalError

    def __init__(self, database: MariaDb, bootstrap: str, topics: CanalTopics, start: LogPosition) -> None:
        super().__init__()
        self._settings = {
            "canal.instance.master.address": database.address,
            "canal.instance.master.journal.name": start.file,
            "canal.instance.master.position": str(start.offset),
            "canal.instance.dbUsername": REPLICA,
            "canal.instance.mysql.slaveId": str(next(_REPLICA_IDS)),
            "canal.instance.dbPassword": PASSWORD,
            "canal.mq.topic": topics.default,
            # In a properties file, a backslash escapes.
            "canal.mq.dynamicTopic": topics.dynamic.replace("\\", "\\\\"),
            "canal.mq.partitionHash": topics.partition_hash.replace("\\", "\\\\"),
            "canal.mq.partitionsNum": str(topics.partitions),
            "canal.mq.flatMessage": str(topics.flat).lower(),
            "kafka.bootstrap.servers": bootstrap,
        }

    def start(self) -> None:
        """Start Canal, and return when it knows the structures of the tables. Only then execute statements."""
        self._refuse_if_running("stop() or kill()")
        file = self.directory / "canal.properties"
        file.write_text("".join(f"{name}={value}\n" for name, value in self._settings.items()))
        (client,) = [jar for jar in broker_jars() if jar.name.startswith("kafka-clients-")]
        path = os.pathsep.join([str(JARS.folder() / "canal" / "*"), str(client)])
        java = str(find_java().executable)
        self._launch([java, *JVM_OPTIONS, "-cp", path, str(PROGRAM), str(file), str(self.directory)])
        try:
            self._wait_until(self._follows, "Canal", START_SECONDS, "start to follow")
        except BaseException:
            self.kill()
            raise

    def kill(self) -> None:
        """Kill Canal. It has not stored its position. After another start(), it therefore repeats all changes since
        this one.
        """
        self._end(signal.SIGKILL)

    def _follows(self) -> bool:
        return _FOLLOWING in "\n" + self.log.read_text(errors="replace")


if __name__ == "__main__":
    sys.exit(JARS.main())
