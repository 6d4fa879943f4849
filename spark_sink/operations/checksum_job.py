"""Generate the SQL for the job that computes checksums at a source (`checksums`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from cdc_core.table_id import TableId
from spark_sink.config.source_database import DatabaseType
from spark_sink.operations.checksum_runs import LEAST_DIGITS, TABLE, TOTAL, WEIGHT_DIGITS, ChecksumColumns
from spark_sink.operations.digest_sql import DigestSql
from spark_sink.operations.row_digests import ComparedColumns
from spark_sink.operations.verify_source import range_digits
from spark_sink.schema.evolution import TableColumn, TableShape

_COLUMNS = "run, table_name, key_range, computed_at, row_count, digest, weighted, sent_columns"


class ExpectedColumns:
    """The columns of a table's source, as far as the table shows them."""

    def __init__(self, shape: TableShape, sql: DigestSql) -> None:
        self._shape = shape
        self._sql = sql

    def names(self) -> set[str]:
        return {one.sent_as for one in self._shape.columns if one.name not in self._shape.foreign}

    def can_compare(self, column: TableColumn, *, in_key: bool) -> bool:
        return self._sql.can_compare(column, in_key=in_key)


def creation(type: DatabaseType, table: TableId) -> str:
    """Return the statement that creates the table with the checksums."""
    name = DigestSql(type, table).sibling(TABLE)
    return _CREATION.format(name=name, options=_OPTIONS[type])


_CREATION = """CREATE TABLE {name} (
  run varchar(64) NOT NULL,
  table_name varchar(200) NOT NULL,
  key_range varchar(8) NOT NULL,
  computed_at varchar(26) NOT NULL,
  row_count bigint NOT NULL,
  digest decimal(38,0) NOT NULL,
  weighted decimal(38,0) NOT NULL,
  sent_columns text,
  PRIMARY KEY (run, key_range)
){options};
"""

_OPTIONS: Mapping[DatabaseType, str] = {
    DatabaseType.MARIADB: " ENGINE=InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
    DatabaseType.POSTGRES: "",
}


def job(type: DatabaseType, table: TableId, columns: ComparedColumns, rows: int) -> str:
    """Return the job for a table.

    Args:
        rows: the approximate number of rows. It determines the number of ranges.
    """
    sql = DigestSql(type, table)
    literal = _LITERALS[type]
    return _JOBS[type].format(
        checksums=sql.sibling(TABLE),
        columns=_COLUMNS,
        table=sql.table,
        name=literal(table.table),
        total=literal(TOTAL),
        sent_columns=literal(msgspec.json.encode(ChecksumColumns.of(columns)).decode()),
        digits=max(LEAST_DIGITS, range_digits(rows)),
        weight=WEIGHT_DIGITS,
        bits=4 * WEIGHT_DIGITS,
        key_hash=sql.key_hash(columns),
        row_digest=sql.row_digest(columns),
    )


def row_query(type: DatabaseType, table: TableId, columns: ComparedColumns, digits: str) -> str:
    """Return a query that finds the key of a row by its hash.

    Args:
        digits: the first digits of the key's hash.
    """
    sql = DigestSql(type, table)
    where = f"LEFT({sql.key_hash(columns)}, {len(digits)}) = {_quoted(digits)}"
    return f"SELECT {sql.keys(columns)} FROM {sql.table} WHERE {where};\n"  # noqa: S608 - an operator runs it


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


_LITERALS: Mapping[DatabaseType, Callable[[str], str]] = {
    DatabaseType.MARIADB: lambda text: _quoted(text.replace("\\", "\\\\")),
    DatabaseType.POSTGRES: _quoted,
}

# SERIALIZABLE locks the rows that the job reads, and the gaps between them, until it commits. `computed_at` is the time
# at which a statement began, and the last one begins after all rows are locked. After an error, a client can continue
# (`mariadb --force`). The run then gets no total, so it does not count: ROW_COUNT() is -1 after a failed statement, and
# a deadlock ends the transaction.
_MARIADB = """SET NAMES utf8mb4;
SET time_zone = '+00:00', SESSION innodb_lock_wait_timeout = 10, @run = UUID();
SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE;
START TRANSACTION;
DELETE FROM {checksums} WHERE table_name = {name};
INSERT INTO {checksums} ({columns})
SELECT @run, {name}, LEFT(k, {digits}), DATE_FORMAT(UTC_TIMESTAMP(6), '%Y-%m-%dT%H:%i:%s.%f'), COUNT(*), SUM(d),
  SUM(CAST(d AS DECIMAL(20)) * CAST(CONV(LEFT(k, {weight}), 16, 10) AS DECIMAL(20))), NULL
FROM (
  SELECT {key_hash} AS k,
    {row_digest} AS d
  FROM {table} LOCK IN SHARE MODE
) AS r
GROUP BY LEFT(k, {digits});
SET @ranges = IF(@@in_transaction, ROW_COUNT(), -1);
INSERT INTO {checksums} ({columns})
SELECT @run, {name}, {total}, DATE_FORMAT(UTC_TIMESTAMP(6), '%Y-%m-%dT%H:%i:%s.%f'), COALESCE(SUM(row_count), 0),
  COALESCE(SUM(digest), 0), COALESCE(SUM(weighted), 0), {sent_columns}
FROM (SELECT row_count, digest, weighted FROM {checksums} WHERE run = @run) AS r
HAVING COUNT(*) = @ranges;
COMMIT;
"""

# The lock waits for transactions that have written the table. Only later statements see what these committed.
_POSTGRES = """BEGIN ISOLATION LEVEL READ COMMITTED;
SET LOCAL TIME ZONE 'UTC';
SET LOCAL lock_timeout = '10s';
LOCK TABLE {table} IN SHARE MODE;
DELETE FROM {checksums} WHERE table_name = {name};
INSERT INTO {checksums} ({columns})
WITH r AS (
  SELECT {key_hash} AS k,
    {row_digest} AS d
  FROM {table}
), ranges AS (
  SELECT left(k, {digits}) AS key_range, COUNT(*) AS row_count, SUM(CAST(d AS numeric)) AS digest,
    SUM(CAST(d AS numeric) * CAST(CAST('x' || left(k, {weight}) AS bit({bits})) AS bigint)) AS weighted
  FROM r GROUP BY left(k, {digits})
), run AS (
  SELECT CAST(txid_current() AS text) || '-' || to_char(now(), 'YYYYMMDDHH24MISSUS') AS run,
    to_char(clock_timestamp(), 'YYYY-MM-DD"T"HH24:MI:SS.US') AS computed_at
)
SELECT run, {name}, key_range, computed_at, row_count, digest, weighted, NULL FROM ranges CROSS JOIN run
UNION ALL
SELECT run, {name}, {total}, computed_at, COALESCE(SUM(row_count), 0), COALESCE(SUM(digest), 0),
  COALESCE(SUM(weighted), 0), {sent_columns}
FROM run LEFT JOIN ranges ON TRUE GROUP BY run, computed_at;
COMMIT;
"""

_JOBS: Mapping[DatabaseType, str] = {DatabaseType.MARIADB: _MARIADB, DatabaseType.POSTGRES: _POSTGRES}
