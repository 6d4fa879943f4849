"""A real REST catalog of Iceberg tables on this machine, for tests and by hand: Iceberg's own handlers, loopback only.

    with RestCatalogServer(warehouse) as catalog:
        load_catalog("any", type="rest", uri=catalog.url, token=TOKEN)

`python -m dev.iceberg.rest_catalog` runs one until Ctrl-C. It forgets at its end which tables there were.
"""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from dev.broker import LOOPBACK
from dev.jars import pyspark, spark_jars
from dev.java import find_java
from dev.server import Server, ServerError, run_until_interrupted

SOURCE = Path(__file__).with_name("RestCatalogServer.java")

# Whoever has no token, or another one, is refused.
TOKEN = "cdc-token-of-the-tests"  # noqa: S105 - of a server of the tests

START_SECONDS = 180.0  # 3 s on a quiet machine

JVM_OPTIONS = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.net.preferIPv4Stack=true")

_LISTENING = re.compile(r"listening on port (\d+)")


class RestCatalogError(ServerError):
    """The catalog does not run."""


class RestCatalogServer(Server):
    """A catalog of one warehouse.

    Args:
        warehouse: folder or URL of its tables; in its own directory if not given.
        hadoop: settings by which Hadoop finds an object store (`fs.…`).
    """

    name: ClassVar[str] = "rest_catalog"
    error = RestCatalogError

    def __init__(
        self,
        port: int | None = None,
        directory: Path | None = None,
        *,
        warehouse: str | None = None,
        hadoop: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(port, directory)
        self.warehouse = warehouse or str(self.directory / "warehouse")
        self._hadoop = dict(hadoop or {})

    @property
    def url(self) -> str:
        """The address of a catalog; with a name behind it, of one beside."""
        return f"http://{LOOPBACK}:{self.settled_port()}"

    def start(self) -> None:
        self._refuse_if_running("stop()")
        path = os.pathsep.join([str(pyspark() / "jars" / "*"), *map(str, spark_jars())])
        settings = [f"-D{name}={value}" for name, value in self._hadoop.items()]
        java = str(find_java().executable)
        command = [java, *JVM_OPTIONS, *settings, "-cp", path, str(SOURCE), self.warehouse]
        self._launch(command, os.environ | {"CDC_CATALOG_TOKEN": TOKEN})
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
                raise RestCatalogError(f"the catalog ended with exit code {process.returncode}{self._log_tail()}")
            if listening := _LISTENING.search(self.log.read_text(errors="replace")):
                self.port = int(listening[1])
                return
            time.sleep(0.05)
        raise RestCatalogError(f"the catalog did not listen within {START_SECONDS:.0f} s{self._log_tail()}")


def main() -> int:
    return run_until_interrupted(RestCatalogServer, "REST catalog of Iceberg tables", lambda catalog: catalog.url)


if __name__ == "__main__":
    sys.exit(main())
