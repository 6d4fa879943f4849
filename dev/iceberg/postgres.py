"""Run a real PostgreSQL server from Debian's packages, to test catalogs in a database. The server listens on loopback
only.

`python -m dev.iceberg.postgres --build` installs PostgreSQL if it is missing. This needs root and apt. The exit code is
1 if PostgreSQL is not available. Without the option, the command runs a server until Ctrl-C.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from dev.servers.broker import LOOPBACK, hold_port
from dev.servers.server import Server, ServerError, run_until_interrupted

PACKAGES = ("postgresql",)
MISSING = f"PostgreSQL is not installed: apt-get install {' '.join(PACKAGES)}"

USER, PASSWORD, DATABASE = "cdc", "cdc password/of the tests", "postgres"

START_SECONDS = 120.0

# PostgreSQL refuses to run as root.
_ACCOUNT = "postgres"


class PostgresError(ServerError):
    """Raised if the database is not installed or is not running."""


def programs() -> Path | None:
    """Return the folder with PostgreSQL's programs. Debian puts only the client on the path."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    on_path = shutil.which("initdb")
    return found[-1].parent if found else None if on_path is None else Path(on_path).resolve().parent


def build() -> bool:
    """Install missing packages, and return whether PostgreSQL is now available."""
    apt = shutil.which("apt-get")
    if programs() is None and os.geteuid() == 0 and apt:
        for arguments in (("update",), ("install", "-y", "--no-install-recommends", *PACKAGES)):
            subprocess.run((apt, "-qq", *arguments), check=False, stdout=subprocess.DEVNULL)
    return programs() is not None


class Postgres(Server):
    """A server that starts with an empty database. The data persists across restarts."""

    name: ClassVar[str] = "postgres"
    error = PostgresError

    def __init__(self, port: int | None = None, directory: Path | None = None) -> None:
        super().__init__(port, directory)
        self._held: socket.socket | None = None

    @property
    def jdbc(self) -> str:
        """Return the database's JDBC address."""
        return f"jdbc:postgresql://{LOOPBACK}:{self.settled_port()}/{DATABASE}"

    def start(self) -> None:
        self._refuse_if_running("stop()")
        found = programs()
        if found is None:
            raise PostgresError(MISSING)
        if self.port is None:
            self._held = hold_port()
            self.port = self._held.getsockname()[1]
        data = self.directory / "data"
        if not (data / "PG_VERSION").exists():
            self._make(found / "initdb", data)
        of_tests = {"listen_addresses": LOOPBACK, "port": str(self.port), "unix_socket_directories": "", "fsync": "off"}
        options = [word for name, value in of_tests.items() for word in ("-c", f"{name}={value}")]
        self._launch([*_unprivileged(), str(found / "postgres"), "-D", str(data), *options])
        try:
            self._wait_until(self._answers, "PostgreSQL", START_SECONDS)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        # After a SIGTERM, PostgreSQL would wait until its clients have disconnected.
        self._end(signal.SIGINT)

    def close(self) -> None:
        super().close()
        if self._held is not None:
            self._held.close()

    def _make(self, initdb: Path, data: Path) -> None:
        data.mkdir()
        password = self.directory / "password"
        password.write_text(PASSWORD + "\n")
        if os.geteuid() == 0:
            self.directory.chmod(0o711)
            shutil.chown(data, _ACCOUNT)
            shutil.chown(password, _ACCOUNT)
        command = [*_unprivileged(), str(initdb), "-D", str(data), "--username", USER, "--auth", "scram-sha-256"]
        made = subprocess.run(
            [*command, "--no-sync", "--encoding", "UTF8", "--locale", "C", "--pwfile", str(password)],
            capture_output=True,
            text=True,
            cwd=data,
            check=False,
        )
        if made.returncode:
            raise PostgresError(f"initdb exited with code {made.returncode}: {made.stderr.strip()[-500:]}")

    def _answers(self) -> bool:
        return "ready to accept connections" in self.log.read_text(errors="replace")


def _unprivileged() -> Sequence[str]:
    """Return the prefix with which a command runs under an unprivileged account. If the user changes, the tether to
    this process is lost, so the prefix restores it.
    """
    if os.geteuid() != 0:
        return ()
    account = pwd.getpwnam(_ACCOUNT)
    setpriv = shutil.which("setpriv") or "setpriv"
    groups = (f"--reuid={account.pw_uid}", f"--regid={account.pw_gid}", "--clear-groups")
    return (setpriv, *groups, "--pdeathsig", "KILL", "--")


def main(arguments: Sequence[str]) -> int:
    if "--build" not in arguments:
        return run_until_interrupted(Postgres, "PostgreSQL", lambda database: database.jdbc)
    if not build():
        print(MISSING, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
