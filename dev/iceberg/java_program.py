"""A server that consists of one Java file. It runs from source with Spark's jars, and prints its port."""

from __future__ import annotations

import os
import re
import time
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
            env: environment variables in addition to our own.
        """
        self._refuse_if_running("stop()")
        path = os.pathsep.join([str(pyspark() / "jars" / "*"), *map(str, spark_jars())])
        told = [f"-D{name}={value}" for name, value in properties.items()]
        java = str(find_java().executable)
        self._launch([java, *JVM_OPTIONS, *told, "-cp", path, str(source), *arguments], os.environ | env)
        try:
            self._wait_until_it_listens()
        except BaseException:
            self.stop()
            raise

    def _wait_until_it_listens(self) -> None:
        process = self._running()
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if process.poll() is not None:
                raise self.error(f"the {self.name} exited with code {process.returncode}{self._log_tail()}")
            if listening := _LISTENING.search(self.log.read_text(errors="replace")):
                self.port = int(listening[1])
                return
            time.sleep(0.05)
        raise self.error(f"the {self.name} did not start to listen within {START_SECONDS:.0f} s{self._log_tail()}")
