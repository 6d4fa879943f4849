"""Run a real MariaDB server from Debian's packages that writes a binary log of rows. The server listens on loopback
only.

`python -m dev.servers.mariadb --build` installs MariaDB if it is missing. This needs root and apt. The exit code is 1
if MariaDB is not available. Without the option, the command runs a server until Ctrl-C.
"""

from __future__ import annotations

import getpass
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from dev.servers.broker import LOOPBACK, hold_port
from dev.servers.server import Server, ServerError, run_until_interrupted

PACKAGES = ("mariadb-server",)
MISSING = f"MariaDB is not installed: apt-get install {' '.join(PACKAGES)}"

START_SECONDS = 120.0  # 1 s on a quiet machine

REPLICA, PASSWORD = "canal", "canal"
"""The account of a program that follows the binary log, and its password."""

_GRANTS = f"""
CREATE USER {REPLICA}@'%' IDENTIFIED BY '{PASSWORD}';
GRANT SELECT, RELOAD, SHOW DATABASES, REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO {REPLICA}@'%';
"""

SETTINGS = {
    "bind-address": LOOPBACK,
    "server-id": "1",
    "log-bin": "binlog",
    "binlog-format": "ROW",
    "binlog-row-image": "FULL",
    "character-set-server": "utf8mb4",
    # Zero dates and empty values for NOT NULL columns, as in a database that has existed for a long time.
    "sql-mode": "",
    "default-time-zone": "+00:00",
    # A test's data does not have to survive a power failure.
    "innodb-flush-log-at-trx-commit": "0",
    "innodb-buffer-pool-size": "128M",
    "innodb-log-file-size": "64M",
}


class MariaDbError(ServerError):
    """Raised if the database is not installed, is not running, or rejects a statement."""


@dataclass(frozen=True)
class LogPosition:
    """A position in the binary log."""

    file: str
    offset: int


def build() -> bool:
    """Install missing packages, and return whether MariaDB is now available."""
    apt = shutil.which("apt-get")
    if _program("mariadbd") is None and os.geteuid() == 0 and apt:
        for arguments in (("update",), ("install", "-y", "--no-install-recommends", *PACKAGES)):
            subprocess.run((apt, "-qq", *arguments), check=False, stdout=subprocess.DEVNULL)
    return is_installed()


def is_installed() -> bool:
    return all(map(_program, ("mariadbd", "mariadb", "mariadb-install-db")))


def _program(name: str) -> str | None:
    # Debian's /usr/sbin is not on every user's path.
    return shutil.which(name, path=os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin")))


class MariaDb(Server):
    """A server that starts without databases. The data persists across restarts.

    Args:
        version: the version that the server announces. None means its own.
    """

    name: ClassVar[str] = "mariadb"
    error = MariaDbError

    def __init__(self, port: int | None = None, directory: Path | None = None, version: str | None = None) -> None:
        super().__init__(port, directory)
        self._more = {} if version is None else {"version": version}
        self._held = None if port else hold_port()
        self._port = port or (self._held.getsockname()[1] if self._held else 0)
        self._socket = self.directory / "socket"

    @property
    def address(self) -> str:
        return f"{LOOPBACK}:{self.settled_port()}"

    def start(self) -> None:
        self._refuse_if_running("stop()")
        if not is_installed():
            raise MariaDbError(MISSING)
        data = self.directory / "data"
        is_new = not data.exists()
        if is_new:
            self._make(data)
        self.port = self._port
        places = {"datadir": str(data), "socket": str(self._socket), "port": str(self.port), "user": getpass.getuser()}
        options = [f"--{name}={value}" for name, value in (SETTINGS | self._more | places).items()]
        self._launch([str(_program("mariadbd")), "--no-defaults", *options])
        try:
            self._wait_until(self._answers, "MariaDB", START_SECONDS)
            if is_new:
                self.run(_GRANTS)
        except BaseException:
            self.stop()
            raise

    def close(self) -> None:
        super().close()
        if self._held is not None:
            self._held.close()

    def run(self, sql: str) -> list[list[str]]:
        """Execute statements as the administrator, and return the rows of all results. Each cell is the text from the
        client, with its escapes. NULL is the text `NULL`.
        """
        ran = self._client(sql)
        if ran.returncode:
            raise MariaDbError(f"the statements failed: {ran.stderr.strip()[-500:]}")
        return [line.split("\t") for line in ran.stdout.splitlines()]

    def force(self, sql: str) -> None:
        """Execute statements as the administrator. Continue after those that fail."""
        self._client(sql, "--force")

    def position(self) -> LogPosition:
        """Return the end of the binary log."""
        ((file, offset, *_),) = self.run("SHOW MASTER STATUS")
        return LogPosition(file, int(offset))

    def _client(self, sql: str, *more: str) -> subprocess.CompletedProcess[str]:
        program = str(_program("mariadb"))
        options = ("--no-defaults", f"--socket={self._socket}", "--user=root", "--default-character-set=utf8mb4")
        output = ("--batch", "--skip-column-names", "--quick", "--max-allowed-packet=256M")
        return subprocess.run(
            [program, *options, *output, *more], input=sql, capture_output=True, encoding="utf-8", check=False
        )

    def _make(self, data: Path) -> None:
        places = (f"--datadir={data}", f"--user={getpass.getuser()}")
        accounts = ("--skip-test-db", "--auth-root-authentication-method=normal")
        made = subprocess.run(
            [str(_program("mariadb-install-db")), "--no-defaults", *places, *accounts],
            capture_output=True,
            text=True,
            check=False,
        )
        if made.returncode:
            raise MariaDbError(f"mariadb-install-db exited with code {made.returncode}: {made.stderr.strip()[-500:]}")

    def _answers(self) -> bool:
        return not self._client("SELECT 1").returncode


def main(arguments: Sequence[str]) -> int:
    if "--build" not in arguments:
        return run_until_interrupted(MariaDb, "MariaDB", lambda database: database.address)
    if not build():
        print(MISSING, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
