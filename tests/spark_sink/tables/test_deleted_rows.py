"""The deleted rows that are remembered outside a table, compared with a dictionary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from cdc_core.table_id import TableId
from spark_sink.schema.column_types import arrow_type
from spark_sink.schema.evolution import TableColumn, TableShape
from spark_sink.tables import deleted_rows
from spark_sink.tables.changes import Marker
from spark_sink.tables.deleted_rows import REMEMBERED, DeletedRows, has_files
from spark_sink.tables.reach import reach_of

NAME = "shop_sales.orders"
COLUMNS = (TableColumn("id", "int"), TableColumn("shop", "string"), TableColumn("n", "int"))
SHAPE = TableShape(TableId("s", "d", None, "t"), COLUMNS, ("shop", "id"))
DAY = 86_400_000_000

Rows = dict[tuple[str, int], tuple[str, int]]
"""Position and time of the delete, by key."""


class Commits:
    """A table that only deletes. `number` is the generation that its last commit named."""

    def __init__(self, warehouse: Path | str) -> None:
        self.warehouse = warehouse
        self.number: int | None = None
        self.floors: dict[str, str] = {}

    def opened(self, shape: TableShape = SHAPE) -> DeletedRows:
        return DeletedRows(str(self.warehouse), NAME, shape, self.number)

    def remember(self, rows: Rows, before: int | None = None) -> None:
        deleted = self.opened()
        if before is not None:
            deleted.forget(before)
        for marker in deleted.remember(_table(rows), self.floors):
            assert "cdc.deleted" == marker.app
            assert marker.version > (self.number or 0)
            self.number = marker.version

    def found(self, keys: Sequence[tuple[str, int]] | None = None) -> Rows:
        reach = None if keys is None else reach_of(keys, SHAPE.key)
        read = self.opened().find(["shop", "id", "_cdc_pos", "_cdc_deleted_at"], self.floors, reach)
        found = [((row["shop"], row["id"]), (row["_cdc_pos"], _micros(row))) for row in read.to_pylist()]
        assert len(found) == len(dict(found)), "a key was found twice"
        return dict(found)

    def files(self) -> set[int]:
        folder = Path(self.warehouse) / "_cdc" / "deleted" / "shop_sales" / "orders"
        return {int(path.stem) for path in folder.glob("*.parquet")}

    def shadow(self) -> Commits:
        """Return a copy that a reload fills. Its files are next to the table's."""
        copy = Commits(self.warehouse)
        copy.number, copy.floors = self.number, self.floors
        return copy


class Clock:
    """A clock that a test sets, in days."""

    day = 1_000.0

    def time(self) -> float:
        return self.day * DAY / 1e6

    def time_ns(self) -> int:
        return int(self.day * DAY) * 1000


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(deleted_rows, "time", clock)
    return clock


def _micros(row: Mapping[str, Any]) -> int:
    return round(row["_cdc_deleted_at"].timestamp() * 1_000_000)


def _table(rows: Rows) -> pa.Table:
    columns: dict[str, list[Any]] = {name: [None] * len(rows) for name in (*SHAPE.types, *REMEMBERED)}
    columns["shop"], columns["id"] = [shop for shop, _ in rows], [id for _, id in rows]
    columns["_cdc_scope"] = ["scope"] * len(rows)
    columns["_cdc_pos"] = [pos for pos, _ in rows.values()]
    columns["_cdc_deleted_at"] = [at for _, at in rows.values()]
    types = {**SHAPE.types, **REMEMBERED}
    return pa.table({name: pa.array(values, arrow_type(types[name])) for name, values in columns.items()})


@pytest.mark.parametrize("seed", range(6))
def test_like_a_dictionary(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Deletes, repeated deletes, truncates, days that pass, failed commits and cleaning, in any order. Files are small,
    so that rows are spread over several files and row groups. Half of the runs read no file as a whole.
    """
    monkeypatch.setattr(deleted_rows, "_READ_WHOLE", seed % 2 << 20)
    monkeypatch.setattr(deleted_rows, "_SMALL", 3)
    monkeypatch.setattr(deleted_rows, "_GROUP", 4)
    monkeypatch.setattr(deleted_rows, "_UNCOMMITTED_DAYS", 0)
    monkeypatch.setattr(deleted_rows, "_LINK", 1)
    random, table, expected = Random(seed), Commits(tmp_path), Rows()
    most = 0
    for step in range(1, 60):
        keys = {(random.choice("ab"), random.randrange(-200, 200)) for _ in range(random.choice((1, 1, 2, 9, 40)))}
        rows = dict.fromkeys(sorted(keys), (f"{step:04}", step * DAY))
        if random.random() < 0.2:  # the commit fails, and the batch is repeated
            number = table.number
            table.remember(dict.fromkeys([*rows][::2], ("9999", 0)))
            table.number = number
        before = (step - random.randrange(20)) * DAY if random.random() < 0.1 else None
        table.remember(rows, before)
        if before is not None:
            expected = {key: row for key, row in expected.items() if row[1] >= before}
        expected |= rows
        if random.random() < 0.1:
            table.floors["scope"] = max(f"{step - random.randrange(30):04}", table.floors.get("scope", ""))
        expected = {key: row for key, row in expected.items() if row[0] > table.floors.get("scope", "")}
        if random.random() < 0.2:
            table.opened().clean(0)
        most = max(most, len(table.opened()._generation.parts))
        assert expected == table.found()
        wanted = [*keys, ("b", random.randrange(-200, 200))]
        assert {key: expected[key] for key in wanted if key in expected}.items() <= table.found(wanted).items()
    assert 1 < most < 10


def test_only_near_files_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lookup opens no file whose keys are all smaller or all greater, and reads only one of its row groups."""
    monkeypatch.setattr(deleted_rows, "_SMALL", 0)
    monkeypatch.setattr(deleted_rows, "_GROUP", 10)
    table = Commits(tmp_path)
    for first, count in ((0, 100), (1_000, 40), (2_000, 10)):
        table.remember({("a", first + n): ("1", 0) for n in range(count)})
    assert {("a", n) for n in range(1_000, 1_010)} == set(table.found([("a", 1_003)]))
    for number in sorted(table.files())[:-1]:
        (tmp_path / f"_cdc/deleted/shop_sales/orders/{number}.parquet").unlink()
    assert ({}, 10) == (table.found([("a", 500)]), len(table.found([("a", 2_003)])))
    with pytest.raises(FileNotFoundError):
        table.found([("a", 1_003)])


def test_the_present_types(tmp_path: Path) -> None:
    """Files from before a key column was widened are read with the present type, and the older bounds still count."""
    table = Commits(tmp_path)
    table.remember({("a", 7): ("1", 0)})
    wide = msgspec.structs.replace(SHAPE, columns=(TableColumn("id", "bigint"), *COLUMNS[1:]))
    found = table.opened(wide).find(["id", "n"], {}, reach_of([("a", 7)], SHAPE.key))
    assert (pa.int64(), [{"id": 7, "n": None}]) == (found.schema.field("id").type, found.to_pylist())
    text = msgspec.structs.replace(SHAPE, columns=(TableColumn("id", "string"), *COLUMNS[1:]))
    assert ["7"] == table.opened(text).find(["id"], {}, reach_of([("a", "7")], SHAPE.key)).column("id").to_pylist()


def test_a_rebuilt_table(tmp_path: Path) -> None:
    """It has a marker of its own, because it does not remember what the replaced table deleted."""
    table = Commits(tmp_path)
    shape = msgspec.structs.replace(SHAPE, built="r1")
    rebuilt = table.opened(shape)
    rebuilt.begin(apart=True)
    assert (Marker("cdc.deleted@r1", 0),) == rebuilt.remember(_table({}), {})
    assert () == rebuilt.remember(_table({}), {})


def test_where_deleted_rows_are(tmp_path: Path) -> None:
    """By default in the table. A commit that names a generation can move them in either direction."""
    table = Commits(tmp_path)
    assert (False, False) == (table.opened().are_apart, has_files(str(tmp_path), NAME))
    for apart in (True, False, True):
        deleted = table.opened()
        deleted.begin(apart=apart)
        (marker,) = deleted.remember(_table({}), {})
        table.number = marker.version
        assert apart == table.opened().are_apart
    assert has_files(str(tmp_path), NAME)


def test_files_of_the_last_days_stay(tmp_path: Path, clock: Clock) -> None:
    """A version from the last days can still be read, and the present one always."""
    table = Commits(tmp_path)
    for step in range(3):
        table.remember({("a", step): (str(step), 0)})
        clock.day += 1
    clock.day += 1
    damaged = tmp_path / "_cdc/deleted/shop_sales/orders" / f"{(table.number or 0) + 1}.parquet"
    damaged.write_bytes(b"PAR1")
    assert (0, 4) == (table.opened().clean(2), len(table.files()))
    assert (1, 3) == (table.opened().clean(1), len(table.files()))
    assert (2, {table.number}) == (table.opened().clean(0), table.files())
    assert {("a", 0), ("a", 1), ("a", 2)} == set(table.found())


def test_the_number_of_files_of_a_busy_table(tmp_path: Path, clock: Clock) -> None:
    """It follows the number of days, and not the age of the table."""
    table = Commits(tmp_path)
    for day in range(200):
        clock.day += 1
        table.remember({("a", day): (f"{day:04}", 0)})
        table.opened().clean(7)
    assert 8 <= len(table.files()) <= 10


def test_a_table_that_deletes_rows_many_times_a_day(tmp_path: Path, clock: Clock) -> None:
    """Cleaning opens one file per day, and not one per commit."""
    table, versions = Commits(tmp_path), list[tuple[float, int | None, Rows]]()
    for step in range(240):
        clock.day += 0.05
        table.remember({("a", step % 30): (f"{step:04}", 0)})
        versions.append((clock.day, table.number, table.found()))
    opened = table.opened()
    assert opened.clean(7) > 40
    assert len(opened._open) < 12
    for day, number, rows in versions:
        if day >= clock.day - 7:
            then = Commits(tmp_path)
            then.number = number
            assert rows == then.found()


def test_a_table_that_a_rebuild_has_replaced(tmp_path: Path, clock: Clock) -> None:
    """Its files stay as long as its versions."""
    table = Commits(tmp_path)
    table.remember({("a", 1): ("1", 0)})
    clock.day += 100
    rebuilt = DeletedRows(str(tmp_path), NAME, msgspec.structs.replace(SHAPE, built="r1"), None)
    rebuilt.begin(apart=True)
    rebuilt.remember(_table({}), {})
    assert 0 == rebuilt.clean(7)
    rebuilt.remember(_table({("a", 2): ("2", 0)}), {})
    assert 0 == rebuilt.clean(7)
    clock.day += 9
    assert 1 == rebuilt.clean(7)
    assert 1 == len(table.files())


@pytest.mark.parametrize("seed", range(8))
def test_versions_of_the_last_days(tmp_path: Path, clock: Clock, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """They can be read after cleaning, whatever commits and reloads have failed, and few other files stay."""
    monkeypatch.setattr(deleted_rows, "_SMALL", 3)
    random, table = Random(seed), Commits(tmp_path)
    versions: list[tuple[float, int | None, Rows]] = []  # the day of a commit, its generation and rows

    def some() -> Rows:
        keys = {(random.choice("ab"), random.randrange(200)) for _ in range(random.choice((1, 2, 9)))}
        return dict.fromkeys(sorted(keys), ("1", 0))

    for _ in range(60):
        clock.day += random.choice((1, 1, 3, 20))
        if random.random() < 0.3:  # the commit fails
            number = table.number
            table.remember(some())
            table.number = number
            clock.day += random.choice((1, 9))
        if random.random() < 0.3:
            shadow = table.shadow()
            for _ in range(random.randrange(1, 4)):
                shadow.remember(some())
                clock.day += 0.25
            table.number = random.choice((shadow.number, table.number))
        else:
            table.remember(some())
        versions.append((clock.day, table.number, table.found()))
        days = random.randrange(1, 15)
        table.opened().clean(days)
        outdated = [version for version in versions if version[0] < clock.day - days]
        versions = versions[max(0, len(outdated) - 1) :]
        for _, number, rows in versions:
            then = Commits(tmp_path)
            then.number = number
            assert rows == then.found()
    clock.day += 100
    table.opened().clean(1)
    assert table.files() == {table.number, *(part.number for part in table.opened()._generation.parts)}
