"""Let a source database compute the digests of rows in SQL, just as `row_digests` does in Python. Only digests and keys
leave the database.
"""

from __future__ import annotations

import importlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any

from cdc_core.table_id import TableId
from spark_sink.config.source_database import NUMBERS, DatabaseType, SourceDatabase
from spark_sink.errors import ConfigError, FatalError
from spark_sink.operations.digest_sql import DigestSql
from spark_sink.operations.row_digests import ComparedColumns, Digest, Digests, summed
from spark_sink.schema.evolution import TableColumn


class DatabaseSource:
    """A table in a database.

    Args:
        name: the database's name in the settings.
    """

    def __init__(self, name: str, settings: SourceDatabase, table: TableId) -> None:
        self._name = name
        self._settings = settings
        self._sql = DigestSql(settings.type, table)
        self._dialect = self._sql.dialect
        try:
            self._driver = importlib.import_module(self._dialect.driver)
        except ImportError:
            raise ConfigError(
                f"sources.{name}: the driver {self._dialect.package} is not installed; run `pip install "
                f"{self._dialect.package}`"
            ) from None
        self._table = self._sql.table

    def names(self) -> set[str]:
        """Return the names of the table's columns."""
        return {name for name, *_ in self._read(self._dialect.columns.format(table=self._table.replace("'", "''")))}

    def can_compare(self, column: TableColumn, *, in_key: bool) -> bool:
        return self._sql.can_compare(column, in_key=in_key)

    def ranges(self, columns: ComparedColumns, digits: int) -> dict[str, Digest]:
        """Return the digest of each key range, in one statement."""
        rows = f"SELECT {self._sql.key_hash(columns)} AS k, {self._sql.row_digest(columns)} AS d FROM {self._table}"  # noqa: S608
        begin = f"LEFT(k, {digits})"
        try:
            found = self._read(f"SELECT {begin}, COUNT(*), SUM(d) FROM ({rows}) AS r GROUP BY {begin}")  # noqa: S608
        except FatalError as error:
            raise FatalError(f"{error}{self._hint(columns)}") from None
        return {begin: Digest(int(count), int(total)) for begin, count, total in found}

    def rows(self, columns: ComparedColumns, ranges: Collection[str]) -> Digests:
        """Return the digest of each key in these ranges. All of them begin with the same number of digits."""
        digits, among = len(next(iter(ranges))), ", ".join(f"'{begin}'" for begin in sorted(ranges))
        rows = f"SELECT {self._sql.keys(columns)}, {self._sql.row_digest(columns)} FROM {self._table}"  # noqa: S608
        found = self._read(f"{rows} WHERE LEFT({self._sql.key_hash(columns)}, {digits}) IN ({among})")
        return summed((tuple(key), int(digest)) for *key, digest in found)

    def _hint(self, columns: ComparedColumns) -> str:
        """If the database cannot compute the digests of some columns, return a hint that names them."""
        every, failing = (*columns.key, *columns.values), []
        for one in every:
            try:
                self._read(f"SELECT {self._sql.value(one)} FROM {self._table} LIMIT 0")  # noqa: S608
            except FatalError:
                failing.append(one.sent_as)
        if len(failing) in (0, len(every)):
            return ""
        return f". It cannot compute digests of {', '.join(failing)}; leave these columns out with --skip"

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


def _code(error: Exception) -> str:
    """Describe an error without the message of the database, which may contain values."""
    code = getattr(error, "pgcode", None) or (error.args[0] if error.args and isinstance(error.args[0], int) else None)
    return type(error).__name__ if code is None else f"{type(error).__name__}, code {code}"


def _without(secrets: Iterable[str], error: Exception) -> str:
    """Return the first line of an error's message without the arguments that it may quote."""
    message = str(error).strip().partition("\n")[0]
    for secret in sorted(filter(None, secrets), key=len, reverse=True):
        message = message.replace(secret, "***")
    return message
