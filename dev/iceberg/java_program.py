"""Run a server that consists of one Java file. It runs from source with Spark's jars, and prints its port."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from dev.jars import pyspark, spark_jars
from dev.java import find_java
from dev.servers.server import Server

START_SECONDS = 180.0  # 3 to 6 s on a quiet machine

JVM_OPTIONS = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.net.preferIPv4Stack=true")

_LISTENING = re.compile(r"listening on port (\d+)")


class JavaProgram(Server):
    """A server on a port that the system chooses."""

    def _run(
        self, source: Path, properties: Mapping[str, str], arguments: Sequence[str] = (), env: Mapping[str, str] = {}
    ) -> None:
        """Start the server, and return when it accepts connections.

        Args:
            properties: JVM properties.
            env: the environment variables in addition to our own.
        """
        self._refuse_if_running("stop()")
        path = os.pathsep.join([str(pyspark() / "jars" / "*"), *map(str, spark_jars())])
        told = [f"-D{name}={value}" for name, value in properties.items()]
        java = str(find_java().executable)
        self._launch([java, *JVM_OPTIONS, *told, "-cp", path, str(source), *arguments], os.environ | env)
        try:
            self._wait_until(self._listens, f"the {self.name}", START_SECONDS, "start to listen")
        except BaseException:
            self.stop()
            raise

    def _listens(self) -> bool:
        listening = _LISTENING.search(self.log.read_text(errors="replace"))
        if listening:
            self.port = int(listening[1])
        return listening is not None
