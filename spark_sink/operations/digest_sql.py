"""Express the digests of `row_digests` in the SQL dialect of each database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cdc_core.table_id import TableId
from spark_sink.config.source_database import DatabaseType
from spark_sink.operations.row_digests import DIGITS, MISFIT, NULL, SEPARATOR, ComparedColumns
from spark_sink.schema.evolution import TableColumn


@dataclass(frozen=True)
class DigestDialect:
    """SQL for one kind of database.

    Args:
        driver: the driver's module. `package` is the package that contains the module.
        setup: statements for a new connection.
        levels: the parts of a table's name.
        key: the text of a key column, by type. `value` is the text of any other column. `{c}` is the column, and
            `{scale}` is the number of decimal places in its type. Columns of any other type are not compared.
        part: the text and length of one key column, or NULL if the text `{t}` is NULL.
        hash: the MD5 of the text `{t}` in UTF-8.
        digest: the digest of the text `{t}` as a number.
    """

    driver: str
    package: str
    setup: tuple[str, ...]
    quote: str
    columns: str
    levels: tuple[str, ...]
    key: Mapping[str, str]
    value: Mapping[str, str]
    part: str
    hash: str
    digest: str


_INTEGERS = ("tinyint", "smallint", "int", "bigint")


def _if_fits(condition: str, text: str) -> str:
    """Return the SQL for a value's text. If the table's column cannot store a value, it must stay unchanged."""
    return f"CASE WHEN {condition} THEN {text} WHEN {{c}} IS NOT NULL THEN '{MISFIT}' END"


# Texts that only begin with a number are numbers in MariaDB. Numbers and bits have the character set `binary`.
_MARIADB_DECIMAL = "CAST({c} + 0 AS DECIMAL(65,{scale}))"
_MARIADB_NUMBER = _if_fits(
    f"(CHARSET({{c}}) = 'binary' OR {{c}} REGEXP '^[-+]?[0-9.]+$') AND {_MARIADB_DECIMAL} = {{c}} + 0",
    f"CAST({_MARIADB_DECIMAL} AS CHAR)",
)
_MARIADB_FORMATTED = "DATE_FORMAT({c}, '%Y-%m-%dT%H:%i:%s.%f')"
_MARIADB_MOMENT = _if_fits(f"{_MARIADB_FORMATTED} IS NOT NULL", _MARIADB_FORMATTED)
_MARIADB_KEY = {
    **dict.fromkeys((*_INTEGERS, "decimal"), _MARIADB_NUMBER),
    "boolean": "CAST({c} + 0 AS CHAR)",
    "string": "CONVERT({c} USING utf8mb4)",
    "binary": "LOWER(HEX({c}))",
    "date": _if_fits("DATE({c}) = {c}", "DATE_FORMAT({c}, '%Y-%m-%d')"),
    "timestamp": _MARIADB_MOMENT,
    "timestamp_ntz": _MARIADB_MOMENT,
}
_POSTGRES_DECIMAL = "round(CAST({c} AS numeric), {scale})"
_POSTGRES_NUMBER = _if_fits(f"{_POSTGRES_DECIMAL} = CAST({{c}} AS numeric)", f"CAST({_POSTGRES_DECIMAL} AS text)")
# The texts of infinity and of years BC are NULL, and those of other years.
_POSTGRES_YEAR = "isfinite({c}) AND EXTRACT(year FROM {c}) > 0"
_POSTGRES_MOMENT = _if_fits(_POSTGRES_YEAR, "to_char({c}, 'YYYY-MM-DD\"T\"HH24:MI:SS.US')")
_POSTGRES_KEY = {
    **dict.fromkeys((*_INTEGERS, "decimal"), _POSTGRES_NUMBER),
    "boolean": "CAST(CAST({c} AS integer) AS text)",
    "string": "CAST({c} AS text)",
    "binary": "encode({c}, 'hex')",
    "date": _if_fits(f"{_POSTGRES_YEAR} AND CAST({{c}} AS date) = {{c}}", "to_char({c}, 'YYYY-MM-DD')"),
    "timestamp": _POSTGRES_MOMENT,
    "timestamp_ntz": _POSTGRES_MOMENT,
}

_DIALECTS: Mapping[DatabaseType, DigestDialect] = {
    DatabaseType.MARIADB: DigestDialect(
        driver="pymysql",
        package="PyMySQL",
        setup=("SET NAMES utf8mb4", "SET time_zone = '+00:00'", "SET SESSION TRANSACTION READ ONLY"),
        quote="`",
        # SELECT * leaves out invisible columns.
        columns="SHOW COLUMNS FROM {table}",
        levels=("db", "table"),
        key=_MARIADB_KEY,
        value={**_MARIADB_KEY, "string": "MD5(CONVERT({c} USING utf8mb4))", "binary": "MD5({c})"},
        part="CONCAT(CHAR_LENGTH({t}), ':', {t})",
        hash="MD5({t})",
        digest=f"CAST(CONV(LEFT(MD5({{t}}), {DIGITS}), 16, 10) AS UNSIGNED)",
    ),
    DatabaseType.POSTGRES: DigestDialect(
        driver="psycopg2",
        package="psycopg2-binary",
        setup=("SET TIME ZONE 'UTC'", "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY"),
        quote='"',
        columns="SELECT attname FROM pg_attribute WHERE attrelid = CAST('{table}' AS regclass) AND attnum > 0 "
        "AND NOT attisdropped",
        levels=("schema", "table"),
        key=_POSTGRES_KEY,
        value={
            **_POSTGRES_KEY,
            "string": "md5(convert_to(CAST({c} AS text), 'UTF8'))",
            "binary": "md5({c})",
            # The bits of a number have the same text everywhere.
            "float": "encode(float4send(CAST({c} AS real)), 'hex')",
            "double": "encode(float8send(CAST({c} AS double precision)), 'hex')",
        },
        part="CAST(char_length({t}) AS text) || ':' || {t}",
        hash="md5(convert_to({t}, 'UTF8'))",
        digest=f"CAST(CAST('x' || left(md5(convert_to({{t}}, 'UTF8')), {DIGITS}) AS bit({4 * DIGITS})) AS bigint)",
    ),
}


class DigestSql:
    """SQL for the digests of a table.

    Args:
        table: the table's name at the source.
    """

    def __init__(self, type: DatabaseType, table: TableId) -> None:
        self.dialect = _DIALECTS[type]
        self._levels = [part for level in self.dialect.levels if (part := getattr(table, level)) is not None]
        self.table = self.sibling(self._levels[-1])

    def sibling(self, name: str) -> str:
        """Return the full name of a table in the same database or schema."""
        return ".".join(map(self.quoted, (*self._levels[:-1], name)))

    def can_compare(self, column: TableColumn, *, in_key: bool) -> bool:
        return column.type.partition("(")[0] in (self.dialect.key if in_key else self.dialect.value)

    def keys(self, columns: ComparedColumns) -> str:
        """Return the key columns as text."""
        return ", ".join(self._text(one, self.dialect.key) for one in columns.key)

    def value(self, column: TableColumn) -> str:
        """Return the text of a column in a row's digest."""
        return self._text(column, self.dialect.value)

    def row_digest(self, columns: ComparedColumns) -> str:
        values = [_with_null(self.value(one)) for one in columns.values]
        return self.dialect.digest.format(t=_joined([self.key_hash(columns), *values]))

    def key_hash(self, columns: ComparedColumns) -> str:
        parts = [self.dialect.part.format(t=self._text(one, self.dialect.key)) for one in columns.key]
        return self.dialect.hash.format(t=f"CONCAT({', '.join(map(_with_null, parts))})")

    def _text(self, column: TableColumn, texts: Mapping[str, str]) -> str:
        kind, _, size = column.type.partition("(")
        scale = size.rstrip(")").rpartition(",")[2].strip() or "0"
        return texts[kind].format(c=self.quoted(column.sent_as), scale=scale)

    def quoted(self, name: str) -> str:
        quote = self.dialect.quote
        return quote + name.replace(quote, quote * 2) + quote


def _with_null(text: str) -> str:
    return f"COALESCE({text}, '{NULL}')"


def _joined(texts: Sequence[str]) -> str:
    return "CONCAT(" + f", '{SEPARATOR}', ".join(texts) + ")"
