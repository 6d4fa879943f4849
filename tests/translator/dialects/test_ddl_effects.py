"""Effects of statements on existing rows, in one table for all dialects."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc_core.statement_notes import NOTES, StatementNote, statement_notes
from translator.dialects._ddl import MAX_CHARS
from translator.dialects._ddl_defaults import mysql_value, plain_value
from translator.dialects._ddl_effects import Literal, SqlType, effects_of, rows_changed_by
from translator.dialects._ddl_words import MYSQL, ORACLE, OTHER, POSTGRES, TSQL

GONE, DROPPED, CASCADE = "STATEMENT_NOT_APPLIED", "TABLE_DROPPED", "CASCADE_NOT_LOGGED"


def told(sql: str, grammar: str = MYSQL) -> list[str]:
    """Return each effect as `note table.column`."""
    return [
        " ".join(filter(None, (e.note, ".".join((*(e.table or ()), *filter(None, [e.column]))) or e.db)))
        for e in effects_of(sql, grammar)
    ]


@pytest.mark.parametrize(
    ("sql", "effects"),
    [
        ("TRUNCATE TABLE a, b.c", [f"{GONE} a", f"{GONE} b.c"]),
        ("TRUNCATE TABLE a PARTITION (p)", [f"{GONE} a"]),
        ("DROP TABLE IF EXISTS a, `b`.`c;d` RESTRICT", [f"{DROPPED} a", f"{DROPPED} b.c;d"]),
        ("DROP TEMPORARY TABLE a", []),
        ("DROP VIEW a", []),
        ("DROP SCHEMA IF EXISTS a", [f"{DROPPED} a"]),
        ("CREATE OR REPLACE TABLE a (b int)", [f"{DROPPED} a"]),
        ("CREATE TABLE IF NOT EXISTS a (b int)", []),
        ("CREATE TEMPORARY TABLE a (b int REFERENCES c (d) ON DELETE CASCADE)", []),
        ("RENAME TABLE a TO _a_del, _a_gho TO a", [f"{GONE} a", f"{GONE} _a_del", f"{GONE} _a_gho"]),
        ("RENAME TABLE IF EXISTS a WAIT 5 TO b", [f"{GONE} a", f"{GONE} b"]),
        ("RENAME USER a TO b", []),
        ("ALTER TABLE a RENAME b", [f"{GONE} a", f"{GONE} b"]),
        ("ALTER TABLE a RENAME = b", [f"{GONE} a", f"{GONE} b"]),
        ("ALTER TABLE a RENAME INDEX b TO c, RENAME KEY d TO e", []),
        ("ALTER TABLE a RENAME COLUMN b TO c", ["COLUMN_REWRITTEN a.c"]),
        ("ALTER TABLE a CHANGE b c int", ["COLUMN_REWRITTEN a.c"]),
        ("ALTER TABLE a CHANGE b B bigint", ["COLUMN_RETYPED a.B"]),
        ("ALTER TABLE a DROP PARTITION p0, p1", [f"{GONE} a"]),
        ("alter table a truncate partition all", [f"{GONE} a"]),
        ("/*!50100 ALTER TABLE a TRUNCATE PARTITION p */", [f"{GONE} a"]),
        ("ALTER TABLE a EXCHANGE PARTITION p WITH TABLE b.c WITHOUT VALIDATION", [f"{GONE} a", f"{GONE} b.c"]),
        ("ALTER TABLE a CONVERT PARTITION p TO TABLE b", [f"{GONE} a", f"{GONE} b"]),
        ("ALTER TABLE a IMPORT TABLESPACE", [f"{GONE} a"]),
        ("ALTER TABLE a DISCARD PARTITION p TABLESPACE", [f"{GONE} a"]),
        ("ALTER TABLE a COALESCE PARTITION 2", []),
        ("ALTER TABLE a REORGANIZE PARTITION p INTO (PARTITION q VALUES LESS THAN (5))", []),
        ("ALTER TABLE a ADD PARTITION (PARTITION q VALUES LESS THAN (5))", []),
        ("ALTER TABLE a REBUILD PARTITION p; ALTER TABLE a REMOVE PARTITIONING", []),
        ("ALTER TABLE a DROP COLUMN b, DROP c, DROP INDEX d, DROP FOREIGN KEY e, DROP PRIMARY KEY", []),
        ("ALTER TABLE a ADD INDEX (b), ADD UNIQUE KEY u (b), ADD CONSTRAINT c CHECK (d > 1), ADD PRIMARY KEY (b)", []),
        ("ALTER TABLE a ALTER b SET DEFAULT 5, ALTER COLUMN c DROP DEFAULT, ALTER INDEX i INVISIBLE", []),
        ("ALTER TABLE a ENGINE = InnoDB, AUTO_INCREMENT 5, ROW_FORMAT=DYNAMIC, COMMENT 'MODIFY b int'", []),
        ("ALTER TABLE a DEFAULT CHARACTER SET latin1", []),
        ("ALTER TABLE a CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_bin", []),
        ("ALTER TABLE a CONVERT TO CHARACTER SET latin1", ["COLUMN_REWRITTEN a"]),
        ("ALTER TABLE a MODIFY b varchar(9) CHARACTER SET latin1", ["COLUMN_REWRITTEN a.b"]),
        ("ALTER TABLE a MODIFY b int AS (c + 1) STORED", ["COLUMN_REWRITTEN a.b"]),
        ("ALTER IGNORE TABLE a ADD UNIQUE (b)", [f"{GONE} a"]),
        ("ALTER ONLINE TABLE a ADD b int NOT NULL", ["DEFAULT_FILLED a.b"]),
        ("ALTER TABLE a ADD COLUMN IF NOT EXISTS b int DEFAULT (7)", ["DEFAULT_FILLED a.b"]),
        ("ALTER TABLE a ADD b int AFTER c, ADD d int FIRST", []),
        ("ALTER TABLE a ADD b int AUTO_INCREMENT PRIMARY KEY", ["COLUMN_REWRITTEN a.b"]),
        ("ALTER TABLE a ADD b int GENERATED ALWAYS AS (c + 1) VIRTUAL", ["COLUMN_REWRITTEN a.b"]),
        ("ALTER TABLE a ADD b serial", ["COLUMN_REWRITTEN a.b"]),
        ("ALTER TABLE a ADD b char(36) DEFAULT (uuid())", ["COLUMN_REWRITTEN a.b"]),
        ("ALTER TABLE a ADD b text DEFAULT ('it\\'s')", ["COLUMN_REWRITTEN a.b"]),
        ("ALTER TABLE a ADD b varchar(9) DEFAULT 'it''s, (x' COMMENT 'DEFAULT'", ["DEFAULT_FILLED a.b"]),
        ("ALTER TABLE a ADD FOREIGN KEY (b) REFERENCES c (d) ON UPDATE SET DEFAULT", [f"{CASCADE} a"]),
        ("ALTER TABLE a ADD FOREIGN KEY (b) REFERENCES c (d) ON DELETE RESTRICT ON UPDATE NO ACTION", []),
        ("CREATE TABLE a (b int, FOREIGN KEY (b) REFERENCES c (d) ON DELETE SET NULL)", [f"{CASCADE} a"]),
        ("CREATE PROCEDURE p() BEGIN DROP TABLE a; END", []),
        ("CREATE DEFINER=`x`@`y` TRIGGER t BEFORE INSERT ON a FOR EACH ROW DROP TABLE b", []),
        ("DROP TABLE a; DROP TABLE b", [f"{DROPPED} a", f"{DROPPED} b"]),
        ("BEGIN; DROP TABLE a; COMMIT", [f"{DROPPED} a"]),
        ("BEGIN DROP TABLE a; END", []),
        ("GRANT DROP ON a TO b", []),
        ("SELECT 'DROP TABLE a'", []),
        ("", []),
    ],
)
def test_mysql(sql: str, effects: list[str]) -> None:
    """This includes text that no parser understands. An index, a comment or a storage option changes no row."""
    assert effects == told(sql)


@pytest.mark.parametrize(
    ("grammar", "sql", "effects"),
    [
        (ORACLE, "DROP TABLE a CASCADE CONSTRAINTS PURGE", [f"{DROPPED} A"]),
        (ORACLE, 'DROP TABLE "a"', [f"{DROPPED} a"]),
        (ORACLE, "RENAME a TO b", [f"{GONE} A", f"{GONE} B"]),
        (ORACLE, "ALTER TABLE s.a RENAME TO b", [f"{GONE} S.A", f"{GONE} S.B"]),
        (ORACLE, "ALTER TABLE a EXCHANGE PARTITION p WITH TABLE b INCLUDING INDEXES", [f"{GONE} A", f"{GONE} B"]),
        (ORACLE, "ALTER TABLE a DROP SUBPARTITION p UPDATE INDEXES", [f"{GONE} A"]),
        (ORACLE, "ALTER TABLE a MERGE PARTITIONS p, q INTO PARTITION r", []),
        (ORACLE, "ALTER TABLE a SPLIT PARTITION p AT (5); ALTER TABLE a MOVE PARTITION p", []),
        (ORACLE, "ALTER TABLE a ADD (b int DEFAULT 1, c date DEFAULT sysdate)",
         ["DEFAULT_FILLED A.B", "COLUMN_REWRITTEN A.C"]),
        (ORACLE, "ALTER TABLE a ADD b number DEFAULT ON NULL 1 NOT NULL", ["DEFAULT_FILLED A.B"]),
        (ORACLE, "ALTER TABLE a ADD SUPPLEMENTAL LOG DATA (ALL) COLUMNS", []),
        (ORACLE, "ALTER TABLE a MODIFY (b varchar2(9), c char(9)) ADD (d int)", ["COLUMN_RETYPED A.C"]),
        (ORACLE, "ALTER TABLE a MODIFY b NOT NULL; ALTER TABLE a MODIFY b DEFAULT 5", []),
        (ORACLE, "FLASHBACK TABLE a TO BEFORE DROP", [f"{GONE} A"]),
        (ORACLE, "ALTER TABLE a ADD CONSTRAINT f FOREIGN KEY (b) REFERENCES c ON DELETE CASCADE", []),
        (POSTGRES, "TRUNCATE a CASCADE", [GONE]),
        (POSTGRES, "TRUNCATE ONLY A, s.b RESTART IDENTITY", [f"{GONE} a", f"{GONE} s.b"]),
        (POSTGRES, "DROP SCHEMA s CASCADE", [DROPPED]),
        (POSTGRES, "ALTER TABLE ONLY a RENAME b TO c", ["COLUMN_REWRITTEN a.c"]),
        (POSTGRES, "ALTER TABLE a RENAME CONSTRAINT b TO c", []),
        (POSTGRES, "ALTER TABLE s.a SET SCHEMA t", [f"{GONE} s.a", f"{GONE} t.a"]),
        (POSTGRES, "ALTER TABLE a DETACH PARTITION b", [f"{GONE} a", f"{GONE} b"]),
        (POSTGRES, "ALTER TABLE a ADD b bool DEFAULT true", ["DEFAULT_FILLED a.b"]),
        (POSTGRES, "ALTER TABLE a ADD c int DEFAULT nextval('s')", ["COLUMN_REWRITTEN a.c"]),
        (POSTGRES, "ALTER TABLE a ADD b int GENERATED BY DEFAULT AS IDENTITY", ["COLUMN_REWRITTEN a.b"]),
        (POSTGRES, "ALTER TABLE a ALTER b SET NOT NULL, ALTER b SET STATISTICS 5, ALTER b SET DEFAULT 5", []),
        (POSTGRES, "ALTER TABLE a ALTER b SET DATA TYPE varchar(20)", ["COLUMN_RETYPED a.b"]),
        (POSTGRES, "ALTER TABLE a ADD b int NOT NULL", []),
        (TSQL, "ALTER TABLE dbo.a SWITCH PARTITION 2 TO dbo.b", [f"{GONE} dbo.a", f"{GONE} dbo.b"]),
        (TSQL, "ALTER TABLE a WITH CHECK ADD CONSTRAINT d DEFAULT 5 FOR b", []),
        (TSQL, "ALTER TABLE a ADD b int DEFAULT 5 WITH VALUES", ["DEFAULT_FILLED a.b"]),
        (TSQL, "ALTER TABLE a ADD b int DEFAULT 5", []),
        (TSQL, "ALTER TABLE a ADD b int IDENTITY(1,1)", ["COLUMN_REWRITTEN a.b"]),
        (TSQL, "ALTER TABLE a ADD b AS (c + 1)", ["COLUMN_REWRITTEN a.b"]),
        (TSQL, "EXEC sp_rename 'dbo.a.b', 'c', 'COLUMN'", ["COLUMN_REWRITTEN dbo.a.c"]),
        (TSQL, "DROP TABLE #a", []),
        (OTHER, "ALTER TABLE a DROP PARTITION p", [f"{GONE} a"]),
    ],
)  # fmt: skip
def test_other_grammars(grammar: str, sql: str, effects: list[str]) -> None:
    """According to the manuals, Oracle rejects what would change a value, and SQL Server fills only on demand."""
    assert effects == told(sql, grammar)


@pytest.mark.parametrize(
    ("sql", "tables"),
    [
        ("INSERT INTO a.b SELECT * FROM c", ["a.b"]),
        ("REPLACE LOW_PRIORITY INTO a VALUES (1)", ["a"]),
        ("UPDATE IGNORE a AS x SET x.b = (SELECT 1 FROM c)", ["a"]),
        ("DELETE FROM a WHERE b = 1", ["a"]),
        ("UPDATE a, b SET a.c = 1", [""]),
        ("UPDATE a JOIN b ON a.c = b.c SET a.d = 1", [""]),
        ("DELETE a FROM a JOIN b", [""]),
        ("DELETE FROM a USING a JOIN b", [""]),
        ("LOAD DATA INFILE 'x' INTO TABLE a", [""]),
    ],
)
def test_rows_of_which_table(sql: str, tables: list[str]) -> None:
    """If the names are ambiguous, any table may be affected."""
    assert tables == [".".join(effect.table or ()) for effect in rows_changed_by(sql, MYSQL)]


@pytest.mark.parametrize(
    ("type_", "literal", "value"),
    [
        ("int", Literal("implicit", ""), "0"),
        ("varchar(3)", Literal("implicit", ""), ""),
        ("enum('a','b''c')", Literal("implicit", ""), "a"),
        ("enum('a','b''c')", Literal("string", "b'c"), "b'c"),
        ("enum('a')", Literal("string", "A"), None),
        ("set('a','b')", Literal("string", "b,a"), None),
        ("time", Literal("implicit", ""), "00:00:00"),
        ("date", Literal("implicit", ""), None),
        ("json", Literal("implicit", ""), None),
        ("timestamp", Literal("string", "2020-01-01 00:00:00"), None),
        ("binary(3)", Literal("implicit", ""), None),
        ("decimal(9,2)", Literal("number", "1.555"), None),
        ("decimal", Literal("number", "1.5"), None),
        ("datetime", Literal("string", "2020-01-01 00:00:00.5"), None),
        ("datetime(3)", Literal("string", "2020-01-01"), "2020-01-01 00:00:00"),
        ("datetime", Literal("string", "0000-00-00"), None),
        ("char(3)", Literal("string", "a "), None),
        ("varchar(3)", Literal("number", "007"), None),
        ("varchar(2)", Literal("string", "abc"), None),
        ("year", Literal("number", "70"), None),
        ("bit(1)", Literal("number", "1"), None),
    ],
)
def test_constants_of_mysql(type_: str, literal: Literal, value: str | None) -> None:
    """There is none if the server rounds, pads, sorts or depends on its settings."""
    assert value == mysql_value(SqlType(type_), literal)


@pytest.mark.parametrize(
    ("grammar", "type_", "literal", "value"),
    [
        (ORACLE, "number(5,2)", Literal("number", "1"), ("decimal(5,2)", "1")),
        (ORACLE, "number(5)", Literal("number", "1.5"), None),
        (ORACLE, "date", Literal("string", "2020-01-01"), None),
        (ORACLE, "char(5)", Literal("string", "a"), None),
        (POSTGRES, "numeric", Literal("number", "1.50"), ("decimal", "1.50")),
        (POSTGRES, "boolean", Literal("string", "f"), ("boolean", "0")),
        (POSTGRES, "timestamptz", Literal("string", "2020-01-01"), None),
        (TSQL, "nvarchar(5)", Literal("string", "é"), ("string", "é")),
        (TSQL, "bit", Literal("number", "1"), ("boolean", "1")),
        (OTHER, "int", Literal("number", "1"), None),
    ],
)
def test_constants_of_other_sources(grammar: str, type_: str, literal: Literal, value: tuple[str, str] | None) -> None:
    """An undocumented type has no certain constant."""
    assert value == plain_value(SqlType(type_), literal, grammar)


def test_a_long_text() -> None:
    """Its end is not read, and other columns may have changed there."""
    sql = "ALTER TABLE a ADD b int DEFAULT 1, " + "ADD INDEX (c), " * MAX_CHARS
    assert ["DEFAULT_FILLED a.b", "COLUMN_REWRITTEN a"] == told(sql)


WORDS = """
    ALTER CREATE DROP RENAME TRUNCATE TABLE DATABASE PARTITION EXCHANGE WITH TO ADD COLUMN MODIFY CHANGE DEFAULT
    NULL NOT GENERATED AS ( ) , ; . ' " ` [ ] * /* */ /*! -- # = 1 1e9 -1 varchar(10) int enum('a') t d.t 'x' ON
    DELETE CASCADE é"""


@given(st.text() | st.lists(st.sampled_from(WORDS.split()), max_size=14).map(" ".join))
def test_no_text_breaks_it(sql: str) -> None:
    """Any text works in every grammar."""
    for grammar in (MYSQL, ORACLE, POSTGRES, TSQL, OTHER):
        assert all(effect.note in NOTES for effect in effects_of(sql, grammar))
        rows_changed_by(sql, grammar)


NAMES = st.text(min_size=1, max_size=8)
TYPES = st.sampled_from(["int32", "varchar(10)", "decimal(9,2)", "enum('a:b',')')", "timestamp with time zone"])


@given(NAMES, TYPES)
def test_notes_are_taken_apart(column: str, type_: str) -> None:
    """A reader gets the column and the type that were written."""
    for note in (StatementNote("DEFAULT_FILLED", column, type_), StatementNote("COLUMN_REWRITTEN", column)):
        if "('" in column:
            continue
        assert [note] == statement_notes(["PK_CHANGED", note.text])
    assert [StatementNote("TABLE_DROPPED")] == statement_notes(["TABLE_DROPPED"])
    assert [] == statement_notes(None)
