"""`spark-sink verify --against`: a table is compared with real databases, files and other tables."""

from __future__ import annotations

import base64
import importlib.util
import random
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import psycopg2
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from deltalake import DeltaTable, write_deltalake
from pydantic import SecretStr

from cdc_core.envelope import ChangeEvent, TableSchema
from cdc_core.table_id import TableId
from dev.iceberg import postgres
from dev.servers import mariadb
from dev.servers.broker import Broker
from spark_sink.commands.verify import VerifyReport
from spark_sink.config.source_database import DatabaseType, SourceDatabase
from spark_sink.errors import ConfigError, FatalError
from spark_sink.operations.source_database import DatabaseSource
from spark_sink.operations.source_rows import RowSource, file_rows, table_rows
from spark_sink.operations.verify import Verified
from spark_sink.operations.verify_source import ComparedSource, SourceComparison, compared_columns
from spark_sink.tables.protocols import MirrorTable
from tests.spark_sink.changes import change, schema_of
from tests.spark_sink.lake import Lake
from tests.spark_sink.local_iceberg import LocalIcebergLake
from tests.spark_sink.topic_lake import TopicLake

Row = Mapping[str, Any]

NAME = "shop_sales.orders"

# The canonical type of each column, its types in MariaDB and PostgreSQL, and values as in images.
TYPES: Mapping[str, tuple[str, str, str, list[Any]]] = {
    "id": ("int64", "BIGINT", "bigint", []),
    "part": ("string", "VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin", "varchar(20)", []),
    "truth": ("boolean", "BOOLEAN", "boolean", [True, False]),
    "small": ("int16", "SMALLINT", "smallint", [-(2**15), 2**15 - 1]),
    "large": ("uint64", "BIGINT UNSIGNED", "numeric(20)", [0, str(2**64 - 1)]),
    "amount": ("decimal(38,10)", "DECIMAL(38,10)", "numeric(38,10)", ["0.1000000000", f"-{'9' * 28}.{'9' * 10}"]),
    "single": ("float32", "FLOAT", "real", [0.5, -0.1]),
    "precise": ("float64", "DOUBLE", "double precision", [1.5e300, 0.1]),
    "text": ("string", "LONGTEXT", "text", ["", "?", "ü|\U0010ffff:-"]),
    "raw": ("bytes", "LONGBLOB", "bytea", ["", "AP8="]),
    "day": ("date", "DATE", "date", ["1000-01-01", "9999-12-31"]),
    "clock": ("time", "TIME", "time", ["00:00:00", "23:59:59"]),
    "local": ("timestamp", "DATETIME(6)", "timestamp", ["2026-01-31T00:00:00", "9999-12-31T23:59:59.999999"]),
    "instant": (
        "timestamptz",
        "TIMESTAMP(6) NULL",
        "timestamptz",
        ["2026-03-29T01:30:00Z", "2026-01-31T00:00:00.000001Z"],
    ),
}
KEY = ("id", "part")
FLOATS = {"single", "precise"}


class Database:
    """The table `orders` in a real database."""

    def __init__(self, type: DatabaseType, run: Callable[[str], Any], connect: dict[str, SecretStr]) -> None:
        self.type, self.run = type, run
        self.settings = SourceDatabase(type=type, connect=connect)
        self._types = {name: of[1 if type is DatabaseType.MARIADB else 2] for name, of in TYPES.items()}

    def create(self) -> None:
        columns = ", ".join(f"{name} {sql}" for name, sql in self._types.items())
        self.run(f"DROP TABLE IF EXISTS orders; CREATE TABLE orders ({columns})")

    def insert(self, rows: list[Row]) -> None:
        values = ", ".join(f"({', '.join(self.literal(name, row[name]) for name in TYPES)})" for row in rows)
        self.run(f"INSERT INTO orders VALUES {values}")

    def set(self, key: tuple[Any, ...], name: str, value: Any) -> None:
        self.run(f"UPDATE orders SET {name} = {self.literal(name, value)} WHERE {self.where(key)}")

    def delete(self, key: tuple[Any, ...]) -> None:
        self.run(f"DELETE FROM orders WHERE {self.where(key)}")

    def where(self, key: tuple[Any, ...]) -> str:
        return f"id = {key[0]} AND part = '{key[1]}'"

    def literal(self, name: str, value: Any) -> str:
        if value is None:
            return "NULL"
        if name == "raw":
            digits = base64.b64decode(value).hex()
            return f"X'{digits}'" if self.type is DatabaseType.MARIADB else f"'\\x{digits}'"
        if name in ("local", "instant"):
            zone = "+00" if name == "instant" and self.type is DatabaseType.POSTGRES else ""
            return f"'{value.replace('T', ' ').rstrip('Z')}{zone}'"
        return f"'{value}'" if isinstance(value, str) else str(value)

    @property
    def source(self) -> DatabaseSource:
        return DatabaseSource("shop", self.settings, TableId("shop", "sales", None, "orders"))


@pytest.fixture(scope="module", params=DatabaseType)
def server(request: pytest.FixtureRequest) -> Iterator[Database]:
    if request.param is DatabaseType.MARIADB:
        if not mariadb.is_installed() or importlib.util.find_spec("pymysql") is None:
            pytest.skip("MariaDB or PyMySQL is not installed: a comparison with MariaDB is NOT SHOWN")
        with mariadb.MariaDb() as running:
            running.run(
                "CREATE DATABASE sales; CREATE USER reader@'%' IDENTIFIED BY 'canary';"
                "GRANT SELECT ON sales.* TO reader@'%'; SET GLOBAL time_zone = '+05:00'"
            )
            host, port = running.address.split(":")
            login = {"user": SecretStr("reader"), "password": SecretStr("canary")}
            utc = "SET time_zone = '+00:00'; USE sales; "
            yield Database(
                request.param,
                lambda sql: running.run(utc + sql),
                {"host": SecretStr(host), "port": SecretStr(port), **login},
            )
        return
    if postgres.programs() is None:
        pytest.skip(f"{postgres.MISSING}: a comparison with PostgreSQL is NOT SHOWN")
    with postgres.Postgres() as running_postgres:
        port = running_postgres.settled_port()
        login = {"user": SecretStr(postgres.USER), "password": SecretStr(postgres.PASSWORD)}
        place: dict[str, SecretStr] = {"host": SecretStr("127.0.0.1"), "port": SecretStr(str(port))}
        writer = psycopg2.connect(
            host="127.0.0.1", port=port, user=postgres.USER, password=postgres.PASSWORD, dbname=postgres.DATABASE
        )
        writer.autocommit = True

        def run(sql: str) -> None:
            with writer.cursor() as cursor:
                cursor.execute(sql)

        run(f"ALTER ROLE {postgres.USER} SET TimeZone = 'Asia/Kolkata'")
        yield Database(request.param, run, {**place, **login, "dbname": SecretStr(postgres.DATABASE)})
        writer.close()


@pytest.fixture
def database(server: Database) -> Database:
    server.create()
    return server


def rows_of_every_type() -> list[Row]:
    """Return rows that have each value, and NULL, in each column."""
    count = max(len(values) for *_, values in TYPES.values())
    rows = [
        {name: values[n % len(values)] if values else None for name, (*_, values) in TYPES.items()}
        for n in range(count)
    ]
    rows.append(dict.fromkeys(TYPES))
    return [{**row, "id": n, "part": f"{n}:ü"} for n, row in enumerate(rows)]


def many_rows(rng: random.Random, count: int) -> list[Row]:
    every = {name: [*values, None] for name, (*_, values) in TYPES.items()}
    return [
        {**{name: rng.choice(values) for name, values in every.items()}, "id": n, "part": rng.choice("aAbB")}
        for n in range(count)
    ]


def schema_of_orders(lake: Lake) -> TableSchema:
    types = {name: canonical for name, (canonical, *_) in TYPES.items()}
    return lake.announce(schema_of(types, key=KEY))


def created(rows: list[Row], schema: TableSchema) -> list[ChangeEvent]:
    return [
        change(
            "c",
            {name: row[name] for name in KEY},
            {name: value for name, value in row.items() if name not in KEY},
            pos=pos,
            schema=schema,
        )
        for pos, row in enumerate(rows, 1)
    ]


def updated(key: tuple[Any, ...], text: str, pos: int, schema: TableSchema) -> ChangeEvent:
    return change("u", dict(zip(KEY, key, strict=True)), {"text": text}, pos=pos, full=False, schema=schema)


def fill(lake: Lake, rows: list[Row]) -> None:
    lake.apply(0, created(rows, schema_of_orders(lake)))


def mirror(lake: Lake) -> MirrorTable:
    table = lake.tables.open(NAME)
    assert isinstance(table, MirrorTable)
    return table


def verified(lake: Lake, source: ComparedSource, catch_up: Callable[[], bool] = lambda: True) -> Verified:
    columns, _ = compared_columns(mirror(lake).shape, source, ())
    return SourceComparison(lambda: mirror(lake), source, columns, catch_up).run()


def key_of(row: Row) -> tuple[Any, ...]:
    return tuple(str(row[name]) for name in KEY)


@pytest.mark.parametrize("lake_of", [Lake, LocalIcebergLake])
def test_every_type(lake_of: type[Lake], tmp_path: Path, database: Database) -> None:
    lake, rows = lake_of(tmp_path / "warehouse"), rows_of_every_type()
    fill(lake, rows)
    database.insert(rows)
    found = verified(lake, database.source)
    assert (found.is_equal, found.compared, found.left_out) == (True, len(rows), 0)
    _, left_out = compared_columns(mirror(lake).shape, database.source, ())
    is_mariadb = database.type is DatabaseType.MARIADB
    assert left_out.keys() == (FLOATS if is_mariadb else set())
    for name, (*_, values) in TYPES.items():
        if name not in left_out and values:
            for row, value in ((rows[0], values[1]), (rows[0], None), (rows[-1], values[0])):
                database.set(key_of(row), name, value)
                assert [key_of(row)] == verified(lake, database.source).different, (name, value)
                database.set(key_of(row), name, row[name])
    assert verified(lake, database.source).is_equal


def test_every_fault_is_narrowed_to_its_key(lake: Lake, database: Database) -> None:
    rng = random.Random(7)
    rows = many_rows(rng, 2_500)
    fill(lake, rows)
    database.insert(rows)
    assert verified(lake, database.source).is_equal
    lost, doubled, altered, one, other, new = rng.sample(rows, 6)
    texts = {**altered, "text": "altered"}
    database.set(key_of(altered), "text", texts["text"])
    database.delete(key_of(lost))
    database.delete(key_of(new))
    database.insert([{**new, "part": "new"}])
    write_deltalake(lake.path(), _stored(lake, doubled), mode="append")
    for mine, theirs in ((one, other), (other, one)):
        for name in TYPES.keys() - {*KEY}:
            database.set(key_of(mine), name, theirs[name])
    swapped = {key_of(one), key_of(other)} if any(one[n] != other[n] for n in TYPES.keys() - {*KEY, *FLOATS}) else set()
    found = verified(lake, database.source)
    assert {key_of(lost), key_of(new)} == set(found.extra)
    assert [(str(new["id"]), "new")] == found.missing
    assert {key_of(altered), *swapped} == set(found.different)
    assert ([key_of(doubled)], 0) == (found.duplicated, found.inconclusive)


def _stored(lake: Lake, row: Row) -> pa.Table:
    stored = DeltaTable(lake.path()).to_pyarrow_table()
    return stored.filter(pa.array([one == row["id"] for one in stored.column("id").to_pylist()]))


def test_changes_in_flight(lake: Lake, database: Database) -> None:
    """A row that the sink receives later is equal, and a row that changes again is inconclusive."""
    rows = many_rows(random.Random(1), 50)
    fill(lake, rows)
    database.insert(rows)
    schema = schema_of_orders(lake)
    first, second, third = map(key_of, rows[:3])
    for key in (first, second, third):
        database.set(key, "text", "changed")

    def catch_up() -> bool:
        lake.apply(1, [updated(first, "changed", 1000, schema)])
        database.set(second, "text", "changed again")
        return True

    found = verified(lake, database.source, catch_up)
    assert ([third], 1) == (found.different, found.inconclusive)
    found = verified(lake, database.source, lambda: False)
    assert (found.is_equal, found.inconclusive) == (True, 2)


def test_a_busy_source(lake: Lake, database: Database) -> None:
    """Changes that the sink applies between the passes never raise an alarm."""
    rng = random.Random(3)
    rows = {key_of(row): dict(row) for row in many_rows(rng, 200)}
    fill(lake, list(rows.values()))
    database.insert(list(rows.values()))
    schema, pos = schema_of_orders(lake), 1000
    for batch in range(1, 15):
        waiting = []
        for key in rng.sample(sorted(rows), 5):
            pos += 1
            text = str(rng.random())
            database.set(key, "text", text)
            waiting.append(updated(key, text, pos, schema))
        passes: list[bool] = []

        def catch_up(batch: int = batch, waiting: list[ChangeEvent] = waiting, passes: list[bool] = passes) -> bool:
            lake.apply(batch, waiting)
            passes.append(True)
            return True

        found = verified(lake, database.source, catch_up)
        assert (found.is_equal, found.inconclusive, passes) == (True, 0, [True])


def test_a_row_that_the_source_has_twice(lake: Lake, database: Database) -> None:
    rows = many_rows(random.Random(2), 30)
    fill(lake, rows)
    database.insert([*rows, rows[3]])
    assert [key_of(rows[3])] == verified(lake, database.source).different


def test_rows_without_a_key(lake: Lake, database: Database) -> None:
    """The sink cannot store a row whose key is NULL."""
    rows = many_rows(random.Random(2), 3)
    fill(lake, rows)
    database.insert([*rows, {**rows[0], "part": None}])
    assert [("0", None)] == verified(lake, database.source).missing
    database.run("UPDATE orders SET part = '-' WHERE part IS NULL")
    assert [("0", "-")] == verified(lake, database.source).missing


def test_a_row_that_both_sides_have_twice(lake: Lake, database: Database) -> None:
    """Two rows of a key that differ from each other could have the expected sum."""
    rows = many_rows(random.Random(2), 30)
    fill(lake, rows)
    database.insert([*rows, rows[3]])
    write_deltalake(lake.path(), _stored(lake, rows[3]), mode="append")
    assert Verified(compared=30, duplicated=[key_of(rows[3])]) == verified(lake, database.source)


def test_a_row_that_changes_and_changes_back(lake: Lake, database: Database) -> None:
    rows = [{**row, "text": "old"} for row in many_rows(random.Random(2), 3)]
    fill(lake, rows)
    database.insert(rows)
    database.set(key_of(rows[0]), "text", "new")
    schema = schema_of_orders(lake)

    def catch_up() -> bool:
        lake.apply(1, [updated(key_of(rows[0]), "new", 1000, schema), updated(key_of(rows[0]), "old", 1001, schema)])
        return True

    found = verified(lake, database.source, catch_up)
    assert (found.is_equal, found.inconclusive) == (True, 1)


@pytest.mark.parametrize("server", [DatabaseType.POSTGRES], indirect=True)
def test_a_database_with_another_encoding(lake: Lake, database: Database) -> None:
    rows = rows_of_every_type()
    rows = [{**row, "text": "ü"} for row in rows]
    fill(lake, rows)
    database.run("CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    connect = {name: value.get_secret_value() for name, value in database.settings.connect.items()}
    settings = SourceDatabase(type=database.type, connect={**database.settings.connect, "dbname": SecretStr("latin")})
    with closing(psycopg2.connect(**{**connect, "dbname": "latin"})) as writer:
        writer.autocommit = True
        with writer.cursor() as cursor:
            latin = Database(database.type, cursor.execute, settings.connect)
            latin.create()
            latin.insert(rows)
            assert verified(lake, latin.source).is_equal
    database.run("DROP DATABASE latin")


def test_another_table_with_several_versions_of_a_column(lake: Lake, tmp_path: Path) -> None:
    """Its rows have their values in different columns."""
    other = LocalIcebergLake(tmp_path / "other")
    for place in (lake, other):
        first = place.announce(schema_of({"id": "int64", "a": "int32"}))
        place.apply(0, [change("c", {"id": 1}, {"a": 1}, pos=1, schema=first)])
    second = other.announce(schema_of({"id": "int64", "a": "string"}))
    other.apply(1, [change("u", {"id": 1}, {"a": "1"}, pos=2, schema=second)])
    source = RowSource(lambda: table_rows(mirror(other)))
    assert compared_columns(mirror(lake).shape, source, ())[1] == {"a": "not in the source"}
    assert verified(lake, source) == Verified(compared=1)


@pytest.mark.parametrize("connect", [{"port": "s3cret"}, {"dsn": "host=s3cret"}])
def test_arguments_that_a_driver_would_quote(broker: Broker, tmp_path: Path, connect: dict[str, str]) -> None:
    lake = TopicLake(tmp_path, broker)
    lake.settings["sources"] = {"shop": {"type": "mariadb", "connect": connect}}
    code, told = lake.run("status")
    assert (code, f"`connect.{next(iter(connect))}` " in told, "s3cret" in told) == (2, True, False), told


def test_arguments_that_a_driver_rejects(database: Database) -> None:
    """The error does not quote them."""
    name = "cursorclass" if database.type is DatabaseType.MARIADB else "connection_factory"
    connect = {**database.settings.connect, name: SecretStr("s3cret")}
    settings = database.settings.model_copy(update={"connect": connect})
    with pytest.raises(FatalError, match=rf"sources\.shop: cannot .*{name}") as caught:
        DatabaseSource("shop", settings, TableId("shop", "sales", None, "orders")).names()
    assert "s3cret" not in str(caught.value)


def test_an_error_that_quotes_an_argument(database: Database) -> None:
    name = "host" if database.type is DatabaseType.MARIADB else "options"
    connect = {**database.settings.connect, name: SecretStr("s3cret.invalid")}
    settings = database.settings.model_copy(update={"connect": connect})
    with pytest.raises(FatalError, match=r"sources\.shop: cannot connect: .*\*\*\*") as caught:
        DatabaseSource("shop", settings, TableId("shop", "sales", None, "orders")).names()
    assert "s3cret" not in str(caught.value)


MARIADB, POSTGRES = DatabaseType.MARIADB, DatabaseType.POSTGRES

# A value in the table, the types of its column in the table and at the source, and two values at the source: one that
# is equal, and one that the table cannot store.
MISFITS = [
    (MARIADB, "1.23", "decimal(10,2)", "decimal(10,4)", "1.2300", "1.2345"),
    (MARIADB, 1, "int32", "decimal(10,4)", "1", "1.4"),
    (MARIADB, 12, "int32", "varchar(20)", "'12'", "'12abc'"),
    (MARIADB, "2026-01-01", "date", "datetime", "'2026-01-01'", "'2026-01-01 10:00:00'"),
    (MARIADB, None, "timestamp", "varchar(20)", "NULL", "'abc'"),
    (POSTGRES, "1.23", "decimal(10,2)", "decimal(10,4)", "1.2300", "1.2345"),
    (POSTGRES, 1, "int32", "decimal(10,4)", "1", "1.4"),
    (POSTGRES, "2026-01-01", "date", "timestamp", "'2026-01-01'", "'2026-01-01 10:00:00'"),
    (POSTGRES, None, "timestamp", "timestamp", "NULL", "'infinity'"),
    (POSTGRES, "0010-01-01", "date", "date", "'0010-01-01'", "'0010-01-01 BC'"),
]


@pytest.mark.parametrize(("server", "stored", "canonical", "sql", "equal", "other"), MISFITS, indirect=["server"])
def test_a_value_that_does_not_fit(
    lake: Lake, database: Database, stored: Any, canonical: str, sql: str, equal: str, other: str
) -> None:
    schema = lake.announce(schema_of({"id": "int64", "a": canonical}))
    lake.apply(0, [change("c", {"id": 1}, {"a": stored}, pos=1, schema=schema)])
    database.run(f"DROP TABLE orders; CREATE TABLE orders (id bigint, a {sql}); INSERT INTO orders VALUES (1, {equal})")
    assert verified(lake, database.source) == Verified(compared=1)
    database.run(f"UPDATE orders SET a = {other}")
    assert verified(lake, database.source).different == [("1",)]


@pytest.mark.parametrize("server", [DatabaseType.POSTGRES], indirect=True)
def test_a_column_of_a_type_that_the_database_cannot_convert(lake: Lake, database: Database) -> None:
    fill(lake, many_rows(random.Random(2), 3))
    database.run("ALTER TABLE orders DROP COLUMN small; ALTER TABLE orders ADD COLUMN small point")
    with pytest.raises(FatalError, match=r"cannot read .* cannot compute digests of small; .* --skip"):
        verified(lake, database.source)


@pytest.mark.parametrize("server", [DatabaseType.MARIADB], indirect=True)
def test_an_invisible_column(lake: Lake, database: Database) -> None:
    database.run("ALTER TABLE orders MODIFY COLUMN text LONGTEXT INVISIBLE")
    assert database.source.names() == set(TYPES)


def _images(rows: list[Row]) -> dict[str, list[Any]]:
    return {name: [row[name] for row in rows] for name in TYPES}


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_file(lake: Lake, tmp_path: Path, suffix: str) -> None:
    rows, path = rows_of_every_type(), tmp_path / f"orders.{suffix}"
    fill(lake, rows)
    if suffix == "csv":
        texts = {name: [None if one is None else str(one) for one in of] for name, of in _images(rows).items()}
        pyarrow.csv.write_csv(pa.table({name: pa.array(of, pa.string()) for name, of in texts.items()}), path)
    else:
        stored = DeltaTable(lake.path()).to_pyarrow_table()
        pyarrow.parquet.write_table(stored.set_column(1, "part", stored.column("part").dictionary_encode()), path)
    source = RowSource(lambda: file_rows(path))
    assert verified(lake, source).is_equal
    DeltaTable(lake.path()).update({"amount": "NULL"}, predicate="id = 1")
    assert [key_of(rows[1])] == verified(lake, source).different


def test_a_file_with_other_values(lake: Lake, tmp_path: Path) -> None:
    """A value that the table cannot store differs, also if a key has it."""
    fill(lake, [{**dict.fromkeys(TYPES), "id": n, "part": "a"} for n in (1, 2)])
    path = tmp_path / "orders.csv"
    path.write_text("id,part,small\n1,a,canary\nx,a,\n")
    found = verified(lake, RowSource(lambda: file_rows(path)))
    assert ([("1", "a")], [("2", "a")], [("?", "a")]) == (found.different, found.extra, found.missing)


@pytest.mark.parametrize(("name", "stored", "other"), [("small", 1, 1.5), ("small", 0, 65_536.0)])
def test_a_value_is_never_rounded(lake: Lake, tmp_path: Path, name: str, stored: Any, other: Any) -> None:
    fill(lake, [{**dict.fromkeys(TYPES), "id": 1, "part": "a", name: stored}])
    path = tmp_path / "orders.parquet"
    pyarrow.parquet.write_table(pa.table({"id": [1], "part": ["a"], name: [other]}), path)
    assert [("1", "a")] == verified(lake, RowSource(lambda: file_rows(path))).different


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="does not exist"):
        file_rows(tmp_path / "orders.csv")
    path = tmp_path / "orders.txt"
    path.touch()
    with pytest.raises(ConfigError, match=r"\.csv"):
        file_rows(path)
    path = tmp_path / "orders.csv"
    path.write_text("a,b\n1\ncanary,2,3\n")
    with pytest.raises(FatalError, match="cannot be read: ArrowInvalid") as caught:
        file_rows(path)
    assert "canary" not in str(caught.value)
    for content in (b"", "ü\n1\n".encode("latin-1")):
        path.write_bytes(content)
        with pytest.raises(FatalError, match="Expected UTF-8 CSV with a header line"):
            file_rows(path)
    path.write_text("a,a\n1,2\n")
    with pytest.raises(FatalError, match="several columns with the same name: a"):
        file_rows(path)
    with pytest.raises(FatalError, match="cannot be read: TableNotFoundError"):
        file_rows(tmp_path)


def test_a_csv_file_with_the_texts_of_postgres(lake: Lake, tmp_path: Path) -> None:
    rows = [{**dict.fromkeys(TYPES), "id": n, "part": "a", "truth": truth} for n, truth in ((1, True), (2, False))]
    fill(lake, rows)
    path = tmp_path / "orders.csv"
    path.write_text("id,part,truth\n1,a,t\n2,a,f\n")
    assert verified(lake, RowSource(lambda: file_rows(path))) == Verified(compared=2)


def test_a_date_that_python_does_not_have(lake: Lake, tmp_path: Path) -> None:
    fill(lake, [{**dict.fromkeys(TYPES), "id": 1, "part": "a"}])
    path = tmp_path / "orders.parquet"
    day = pa.array([4_000_000], pa.int32()).cast(pa.date32())
    pyarrow.parquet.write_table(pa.table({"id": [1], "part": ["a"], "day": day}), path)
    assert [("1", "a")] == verified(lake, RowSource(lambda: file_rows(path))).different


def test_a_file_with_other_types(lake: Lake, tmp_path: Path) -> None:
    """Types that cannot be converted differ, and large texts are texts."""
    fill(lake, [{**dict.fromkeys(TYPES), "id": 1, "part": "a", "text": "x", "amount": "1.5"}])
    path = tmp_path / "orders.parquet"
    large = {name: pa.array([value], pa.large_string()) for name, value in (("part", "a"), ("amount", "1.50"))}
    rows = pa.table({"id": pa.array([1]), **large})
    pyarrow.parquet.write_table(rows, path)
    source = RowSource(lambda: file_rows(path))
    assert verified(lake, source).is_equal
    rows = rows.append_column("text", pa.array([["x"]]))
    pyarrow.parquet.write_table(rows, path)
    assert [("1", "a")] == verified(lake, source).different
    pyarrow.parquet.write_table(rows.slice(0, 0), path)
    assert [("1", "a")] == verified(lake, source).extra


def test_the_command(broker: Broker, tmp_path: Path) -> None:
    """The second pass waits until the sink has applied what was in the topic."""
    lake = TopicLake(tmp_path, broker)
    schema = lake.announce(schema_of({"id": "int64", "text": "string"}))
    lake.receive(0, [change("c", {"id": id}, {"text": "canary"}, pos=id, schema=schema) for id in (1, 2)])
    path = tmp_path / "orders.csv"
    against = ("--against", f"file:{path}", "--settle", "0")
    path.write_text("id,text,more\n1,canary,x\n2,canary,x\n")
    code, told = lake.verify(*against)
    assert (code, "against file: equal; rows compared: 2" in told) == (0, True)
    assert "column not compared: more: only in the source" in told
    path.write_text("id,text\n1,changed\n2,canary\n")
    later: list[ChangeEvent | bytes] = [change("u", {"id": 1}, {"text": "changed"}, pos=3, schema=schema)]
    lake.send(later)
    sink = threading.Timer(3, lake.apply_sent, (1, later))
    sink.start()
    code, told = lake.verify(*against)
    sink.join()
    assert (code, "file: equal; rows compared: 2\n" in told) == (0, True)
    path.write_text("id,text\n1,canary\n2,canary\n")
    code, told = lake.verify(*against, "--keys", "--json")
    report = msgspec.json.decode(told, type=VerifyReport)
    assert report.keys() == msgspec.json.decode(told).keys()
    assert (code, report["different"], report["keys"]["different"], report["against"]) == (3, 1, [["1"]], "file")
    assert "canary" not in told
    lake.command("park")
    code, told = lake.verify(*against)
    assert (code, "file: INCONCLUSIVE; rows compared: 2; different, but inconclusive: 1" in told) == (4, True)
    assert (msgspec.json.decode(lake.verify(*against, "--json")[1])["equal"]) is False
    recorded = lake.control.verified.read(["at", "against", "differing"]).sort_by("at").to_pylist()
    assert [("file", 0), ("file", 0), ("file", 1), ("file", None), ("file", None)] == [
        (one["against"], one["differing"]) for one in recorded
    ]


def test_the_command_with_a_database(
    broker: Broker, tmp_path: Path, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The password comes from the environment, and a password that is wrong is not shown."""
    lake, rows = TopicLake(tmp_path, broker), rows_of_every_type()
    lake.receive(0, [*created(rows, schema_of_orders(lake))])
    database.insert(rows)
    connect = {name: value.get_secret_value() for name, value in database.settings.connect.items()}
    monkeypatch.setenv("SHOP_PASSWORD", connect["password"])
    lake.settings["sources"] = {
        "shop": {"type": database.type.value, "connect": {**connect, "password": "${SHOP_PASSWORD}"}}
    }
    against = ("--against", "database:shop", "--settle", "0")
    code, told = lake.verify(*against)
    assert (code, f"against database:shop: equal; rows compared: {len(rows)}" in told) == (0, True), told
    database.set(key_of(rows[0]), "text", "altered")
    code, told = lake.verify(*against, "--keys")
    assert (code, "NOT EQUAL; " in told, "  different: 0, 0:ü\n" in told) == (3, True, True)
    assert (0, True) == ((found := lake.verify(*against, "--skip", "text"))[0], "text: skipped" in found[1])
    assert "not verified" not in lake.run("status")[1]
    monkeypatch.setenv("SHOP_PASSWORD", "s3cret")
    code, told = lake.verify(*against)
    assert (code, "sources.shop: cannot connect: " in told, "s3cret" in told) == (1, True, False)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (
            ("--against", "orders.csv"),
            "expected database:NAME, file:PATH, table:NAME or checksums, but got 'orders.csv'",
        ),
        (("--against", "database:shpo"), "database 'shpo'"),
        (("--against", "table:other"), "other is not a mirror"),
        (("--skip", "a"), "--skip requires --against"),
        (("--against", "file:a.csv", "--batch", "0"), "--batch cannot be combined with --against"),
    ],
)
def test_wrong_options(broker: Broker, tmp_path: Path, options: tuple[str, ...], told: str) -> None:
    lake = TopicLake(tmp_path, broker)
    schema = lake.announce(schema_of({"id": "int64"}))
    lake.receive(0, [change("c", {"id": 1}, {}, pos=1, schema=schema)])
    lake.settings["sources"] = {"shop": {"type": "mariadb", "connect": {"password": "s3cret"}}}
    code, found = lake.verify(*options)
    assert (code, told in found, "s3cret" in found) == (2, True, False), found
