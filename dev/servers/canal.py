"""A real Canal server that follows the binary log of a real database and writes to Kafka, for tests.

`python -m dev.servers.canal --write-checksums` downloads the jars again and writes dev/servers/canal.sha256. The first
use downloads the jars (42 MB) into the user's cache.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import signal
import sys
import tempfile
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import ClassVar

from dev.jars import JarsError, broker_jars, cache, fetch, only_one, read_checksums
from dev.java import JavaError, find_java
from dev.servers.mariadb import PASSWORD, REPLICA, LogPosition, MariaDb
from dev.servers.server import Server, ServerError

_HERE = Path(__file__).parent
WANTED, CHECKSUMS = _HERE / "canal.xml", _HERE / "canal.sha256"
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
"""A database ends the connection of a replica when another one with the same ID connects."""


class CanalError(ServerError):
    """Raised if Canal is not running, or if its jars are not the listed ones."""


@dataclass(frozen=True)
class CanalTopics:
    """The topics that Canal writes. The syntax is the one of `canal.mq.dynamicTopic` and `canal.mq.partitionHash`.

    Args:
        default: the topic for all tables that `dynamic` does not name.
        dynamic: topics by table, with a regular expression: TOPIC:TABLES,…
        partition_hash: columns to hash by table, with a regular expression: TABLES:COLUMNS,… `$pk$` stands for the
            key. All other tables are in partition 0.
        partitions: the number of partitions of each topic.
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
        start: where the first start begins to read. The structures that the tables have at the first start must be
            valid there.
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
        path = os.pathsep.join([str(jars() / "*"), str(client)])
        java = str(find_java().executable)
        self._launch([java, *JVM_OPTIONS, "-cp", path, str(PROGRAM), str(file), str(self.directory)])
        try:
            self._wait_until(self._follows, "Canal", START_SECONDS, "start to follow")
        except BaseException:
            self.kill()
            raise

    def kill(self) -> None:
        """Kill Canal. It has not stored its position, so after another start() it repeats everything since this one."""
        self._end(signal.SIGKILL)

    def _follows(self) -> bool:
        return _FOLLOWING in "\n" + self.log.read_text(errors="replace")


def jars(*, write_checksums: bool = False) -> Path:
    """Return the folder with the jars. The jars are downloaded if necessary, and verified.

    Args:
        write_checksums: whether to download the jars again, and write the list. Use this after a change of canal.xml.

    Raises:
        JarsError: the jars could not be downloaded.
        CanalError: the jars differ from the list.
    """
    directory = cache() / f"canal-{hashlib.sha256(WANTED.read_bytes()).hexdigest()[:12]}"
    with only_one(directory):
        if write_checksums or not directory.is_dir():
            with tempfile.TemporaryDirectory(dir=directory.parent, prefix=f"{directory.name}.new-") as temporary:
                fetch(WANTED, ("canal",), ("jar", "bundle"), Path(temporary), "Canal's jars")
                shutil.rmtree(directory, ignore_errors=True)
                (Path(temporary) / "jars" / "canal").rename(directory)
        sums = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(directory.glob("*.jar"))}
        if write_checksums:
            CHECKSUMS.write_text("".join(f"{digest}  {name}\n" for name, digest in sums.items()))
        elif sums != read_checksums(CHECKSUMS):
            raise CanalError(
                f"the jars in {directory} differ from dev/servers/canal.sha256: delete that folder. If "
                "dev/servers/canal.xml was changed on purpose, renew the list: .venv/bin/python -m dev.servers.canal "
                "--write-checksums"
            )
    return directory


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m dev.servers.canal", description="Download Canal's jars.")
    parser.add_argument(
        "--write-checksums", action="store_true", help="Download all jars again and update dev/servers/canal.sha256."
    )
    arguments = parser.parse_args()
    try:
        print(jars(write_checksums=arguments.write_checksums))
    except (JarsError, JavaError, CanalError) as error:
        print(f"canal: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
