"""Canal: heartbeat tables, which a server writes to show that it is alive (§3.3)."""

from __future__ import annotations

from typing import Any

import pytest

from cdc_core.envelope import Ddl, Tx
from tests.translator.dialects.canal.messages import FULL, UPDATE, of_type, other, refused, row, update
from translator.message import TableName

HEALTH = TableName("mysql", None, "ha_health_check")
PATTERNS = ["mysql.ha_health_check", "test.heart*"]


@pytest.mark.requirement("canal.accept.6")
@pytest.mark.parametrize(
    "body",
    [
        update(),
        of_type("INSERT", [FULL, FULL]),
        of_type("DELETE", [FULL]),
        of_type("INIT", [FULL]),
        of_type("UPDATE", [FULL], [FULL], ts=None),
        update(mysqlType=None, pkNames=None),
        update(note="unknown members take the message off the quick way"),
    ],
    ids=["update", "two rows", "delete", "full load", "ambiguous", "no types", "plain way"],
)
def test_a_message_of_a_heartbeat_table_is_one_watermark(body: Any) -> None:
    """Each message becomes one event and never a row, whatever its rows are."""
    instance = {"created": "2021-05-01T00:00+08:00", "restarted": ["2023-11-14T22:13:20Z"]}
    body = {**body, "database": HEALTH.db, "table": HEALTH.table, "gtid": "a:1"}
    change = other(body, profile="dts", instance=instance, heartbeat_tables=PATTERNS)
    assert ("watermark", HEALTH, "mysql", None, Tx("a:1")) == (
        change.kind,
        change.table,
        change.db,
        change.ddl,
        change.tx,
    )
    assert (1700000000000000, "3") == (change.ts_commit_us, change.pos_native)


@pytest.mark.parametrize(
    ("patterns", "db", "table"),
    [
        ([], "mysql", "ha_health_check"),
        (PATTERNS, "shop", "ha_health_check"),
        (PATTERNS, "mysql", "ha_health_checks"),
        (PATTERNS, "MYSQL", "HA_HEALTH_CHECK"),
        (["test.h[a-z]*"], "test", "heartbeat"),
        (["heartbeat"], "test", "heartbeat"),
    ],
)
def test_other_tables_have_rows(patterns: list[str], db: str, table: str) -> None:
    """Only * and ? are special, the whole name must match, and no table is a heartbeat table unless declared."""
    assert TableName(db, None, table) == row(update(database=db, table=table), heartbeat_tables=patterns).table


@pytest.mark.parametrize(
    ("pattern", "db", "table"), [("test.h?", "test", "hb"), ("h*", None, "hb"), ("*.h[b", "x", "h[b")]
)
def test_patterns(pattern: str, db: str | None, table: str) -> None:
    """Without a database, the pattern matches the table name only."""
    assert "watermark" == other(update(database=db, table=table), heartbeat_tables=[pattern]).kind


def test_ddl_of_a_heartbeat_table_is_told() -> None:
    """A schema change is not a heartbeat."""
    sql = "ALTER TABLE heartbeat ADD c INT"
    change = other(of_type("ALTER", sql=sql, database="test", table="heartbeat"), heartbeat_tables=PATTERNS)
    assert Ddl("ALTER", sql, ["test.heartbeat"], True) == change.ddl


def test_a_message_that_cannot_be_read_is_none() -> None:
    """A heartbeat is parsed as strictly as rows are, up to its images."""
    assert "INVALID_FIELD" == refused(update(table="t", data=[1]), heartbeat_tables=["*"]).code
    assert "MISSING_FIELD" == refused({**UPDATE, "data": [], "old": [], "table": "t"}, heartbeat_tables=["*"]).code
