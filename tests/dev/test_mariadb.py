"""MariaDB starts, keeps its data across a restart, and leaves nothing behind. An error explains how to install it."""

from __future__ import annotations

import pytest

import dev.servers.mariadb
from dev.servers.mariadb import MISSING, MariaDb, MariaDbError, is_installed
from tests.dev.running import alive


@pytest.mark.integration
@pytest.mark.skipif(not is_installed(), reason=MISSING)
def test_its_life() -> None:
    """The binary log has rows, a restart begins another file and keeps the data, and closing removes everything."""
    with MariaDb() as database:
        assert [["ROW", "FULL"]] == database.run("SELECT @@binlog_format, @@binlog_row_image")
        database.run("CREATE DATABASE kept; CREATE TABLE kept.t (id INT PRIMARY KEY, v TEXT);")
        database.run("INSERT INTO kept.t VALUES (1, 'ü'), (2, NULL)")
        address, before = database.address, database.position()
        database.stop()
        database.start()
        assert address == database.address
        assert before.file < database.position().file
        assert [["1", "ü"], ["2", "NULL"]] == database.run("SELECT * FROM kept.t")
        with pytest.raises(MariaDbError, match=r"(?s)the statements failed: .*Table 'kept.missing' doesn't exist"):
            database.run("SELECT * FROM kept.missing")
        pid, directory = database.pid, database.directory
    assert not alive(pid)
    assert not directory.exists()


def test_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error contains the command that installs MariaDB."""
    monkeypatch.setattr(dev.servers.mariadb, "_program", lambda name: None)
    database = MariaDb()
    with pytest.raises(MariaDbError, match="apt-get install mariadb-server"):
        database.start()
    database.close()
