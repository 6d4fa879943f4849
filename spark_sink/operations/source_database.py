"""Compute the digests of `row_digests` in a source database, in SQL. Only digests and keys leave the database."""

from __future__ import annotations

import importlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

from cdc_core.table_id import TableId
from spark_sink.config.source_database import NUMBERS, DatabaseType, SourceDatabase
from spark_sink.errors import ConfigError, FatalError
from spark_sink.operations.row_digests import DIGITS, MISFIT, NULL, SEPARATOR, ComparedColumns, Digest, Digests, summed
from spark_sink.schema.evolution import TableColumn


@dataclass(frozen=True)
class _Dialect:
    """SQL for one kind of database.

    Args:
        driver: the module of the driver, and `package` the package that contains it.
        setup: statements for a new connection.
        levels: the parts of a table's name.
        key: the text of a key column by type, and `value` the text of another column. `{c}` is the column, and
            `{scale}` the type's number of decimal places. Columns with other types are not compared.
        part: text and length of one key column, NULL if the text `{t}` is NULL.
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
    """Return the SQL for a value's text. A value that the table's column cannot store must not become another value."""
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

_DIALECTS: Mapping[DatabaseType, _Dialect] = {
    DatabaseType.MARIADB: _Dialect(
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
    DatabaseType.POSTGRES: _Dialect(
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


class DatabaseSource:
    """A table in a database.

    Args:
        name: the database's name in the settings.
    """

    def __init__(self, name: str, settings: SourceDatabase, table: TableId) -> None:
        self._name = name
        self._settings = settings
        self._dialect = _DIALECTS[settings.type]
        try:
            self._driver = importlib.import_module(self._dialect.driver)
        except ImportError:
            raise ConfigError(
                f"sources.{name}: the driver {self._dialect.package} is not installed; run `pip install "
                f"{self._dialect.package}`"
            ) from None
        parts = [part for level in self._dialect.levels if (part := getattr(table, level)) is not None]
        self._table = ".".join(map(self._quoted, parts))

    def names(self) -> set[str]:
        """Return the names of the table's columns."""
        return {name for name, *_ in self._read(self._dialect.columns.format(table=self._table.replace("'", "''")))}

    def can_compare(self, column: TableColumn, *, in_key: bool) -> bool:
        return column.type.partition("(")[0] in (self._dialect.key if in_key else self._dialect.value)

    def ranges(self, columns: ComparedColumns, digits: int) -> dict[str, Digest]:
        """Return the digest of each range of keys, in one statement."""
        rows = f"SELECT {self._key_hash(columns)} AS k, {self._row_digest(columns)} AS d FROM {self._table}"  # noqa: S608
        begin = f"LEFT(k, {digits})"
        try:
            found = self._read(f"SELECT {begin}, COUNT(*), SUM(d) FROM ({rows}) AS r GROUP BY {begin}")  # noqa: S608
        except FatalError as error:
            raise FatalError(f"{error}{self._hint(columns)}") from None
        return {begin: Digest(int(count), int(total)) for begin, count, total in found}

    def rows(self, columns: ComparedColumns, ranges: Collection[str]) -> Digests:
        """Return the digest of each key in these ranges. All of them begin with the same number of digits."""
        texts = ", ".join(self._text(one, self._dialect.key) for one in columns.key)
        digits, among = len(next(iter(ranges))), ", ".join(f"'{begin}'" for begin in sorted(ranges))
        rows = f"SELECT {texts}, {self._row_digest(columns)} FROM {self._table}"  # noqa: S608
        found = self._read(f"{rows} WHERE LEFT({self._key_hash(columns)}, {digits}) IN ({among})")
        return summed((tuple(key), int(digest)) for *key, digest in found)

    def _hint(self, columns: ComparedColumns) -> str:
        """Return a hint that names the columns that the database cannot compute digests of, if others work."""
        every, failing = (*columns.key, *columns.values), []
        for one in every:
            try:
                self._read(f"SELECT {self._text(one, self._dialect.value)} FROM {self._table} LIMIT 0")  # noqa: S608
            except FatalError:
                failing.append(one.sent_as)
        if len(failing) in (0, len(every)):
            return ""
        return f". It cannot compute digests of {', '.join(failing)}; leave these columns out with --skip"

    def _row_digest(self, columns: ComparedColumns) -> str:
        values = [_with_null(self._text(one, self._dialect.value)) for one in columns.values]
        return self._dialect.digest.format(t=_joined([self._key_hash(columns), *values]))

    def _key_hash(self, columns: ComparedColumns) -> str:
        parts = [self._dialect.part.format(t=self._text(one, self._dialect.key)) for one in columns.key]
        return self._dialect.hash.format(t=f"CONCAT({', '.join(map(_with_null, parts))})")

    def _text(self, column: TableColumn, texts: Mapping[str, str]) -> str:
        kind, _, size = column.type.partition("(")
        scale = size.rstrip(")").rpartition(",")[2].strip() or "0"
        return texts[kind].format(c=self._quoted(column.sent_as), scale=scale)

    def _quoted(self, name: str) -> str:
        quote = self._dialect.quote
        return quote + name.replace(quote, quote * 2) + quote

    def _numbers(self) -> Collection[str]:
        return NUMBERS & self._settings.connect.keys() if self._settings.type is DatabaseType.MARIADB else ()

    def _read(self, sql: str) -> Sequence[Sequence[Any]]:
        with self._cursor() as cursor:
            cursor.execute(sql)
            found: Sequence[Sequence[Any]] = cursor.fetchall()
            return found

    @contextmanager
    def _cursor(self) -> Iterator[Any]:
        """Yield a cursor of a new connection, which sees the newest committed rows."""
        connection, cursor = self._connected()
        with closing(connection):
            try:
                for statement in self._dialect.setup:
                    cursor.execute(statement)
                connection.commit()
                yield cursor
            except (self._driver.Error, UnicodeError) as error:
                raise FatalError(f"sources.{self._name}: cannot read {self._table}: {_code(error)}") from None

    def _connected(self) -> tuple[Any, Any]:
        """Return a new connection and its cursor."""
        given = {name: value.get_secret_value() for name, value in self._settings.connect.items()}
        try:
            connection = self._driver.connect(**(given | {name: int(given[name]) for name in self._numbers()}))
            return connection, connection.cursor()
        except (self._driver.Error, OSError, RuntimeError) as error:
            raise FatalError(f"sources.{self._name}: cannot connect: {_without(given.values(), error)}") from None
        except Exception as error:
            # Drivers do not check their arguments.
            raise FatalError(
                f"sources.{self._name}: cannot connect: {type(error).__name__}. {self._dialect.package} does not "
                f"accept the arguments in sources.{self._name}.connect ({', '.join(sorted(given))}) as text"
            ) from None


def _with_null(text: str) -> str:
    return f"COALESCE({text}, '{NULL}')"


def _joined(texts: Sequence[str]) -> str:
    return "CONCAT(" + f", '{SEPARATOR}', ".join(texts) + ")"


def _code(error: Exception) -> str:
    """Describe an error without the database's message, which can contain values."""
    code = getattr(error, "pgcode", None) or (error.args[0] if error.args and isinstance(error.args[0], int) else None)
    return type(error).__name__ if code is None else f"{type(error).__name__}, code {code}"


def _without(secrets: Iterable[str], error: Exception) -> str:
    """Return the first line of an error's message without the arguments, which it can quote."""
    message = str(error).strip().partition("\n")[0]
    for secret in sorted(filter(None, secrets), key=len, reverse=True):
        message = message.replace(secret, "***")
    return message
