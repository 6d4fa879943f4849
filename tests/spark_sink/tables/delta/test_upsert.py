"""The two ways to write rows of a Delta table: deltalake's `MERGE`, and writing a small table as a whole."""

from __future__ import annotations

import random
from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, TableFeatures, write_deltalake

from spark_sink.errors import Overtaken
from spark_sink.tables.changes import Marker, TableChanges
from spark_sink.tables.delta import rows
from spark_sink.tables.delta.mirror import DeltaMirror
from spark_sink.tables.delta.upsert import Upsert
from spark_sink.tables.meta_columns import DELETED_AT
from tests.spark_sink.changes import change, schema_of
from tests.spark_sink.lake import Lake

NAME = "shop_sales.orders"
SCHEMA = pa.schema(
    {
        "k": pa.string(),
        "at": pa.timestamp("us", "UTC"),
        "n": pa.int32(),
        "amount": pa.decimal128(38, 10),
        "day": pa.date32(),
        "raw": pa.binary(),
        "set": pa.list_(pa.string()),
        "gone": pa.timestamp("us", "UTC"),
    }
)
KEY = ("k", "at")
VALUES: Mapping[str, tuple[Any, ...]] = {
    "n": (1, -(2**31), None),
    "amount": (Decimal("0.0000000001"), Decimal("9" * 28), None),
    "day": (date(1, 1, 1), date(9999, 12, 31), None),
    "raw": (b"", b"\0\xff", None),
    "set": ([], ["a", ""], None),
}
KEYS = [(k, datetime(2026, 1, day, tzinfo=UTC)) for k in ("", "a", "A ", "\U0010ffff") for day in (1, 2)]


def _rows(rng: random.Random, keys: list[tuple[str, datetime]]) -> pa.Table:
    made = [dict(zip(KEY, key, strict=True)) | {n: rng.choice(v) for n, v in VALUES.items()} for key in keys]
    return pa.Table.from_pylist([row | {"gone": rng.choice((None, None, KEYS[0][1]))} for row in made], SCHEMA)


@pytest.mark.parametrize("seed", range(40))
def test_both_ways(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    stored = _rows(rng, rng.sample(KEYS, rng.randint(0, len(KEYS))))
    # A column that someone else added is NULL in new rows.
    stored = stored.append_column("theirs", pa.array([f"{n}" for n in range(len(stored))], pa.string()))
    write_deltalake(tmp_path, stored)
    written = _rows(rng, rng.sample(KEYS, rng.randint(1, len(KEYS))))
    kept = {n: pa.array([rng.random() < 0.5 for _ in range(len(written))]) for n in VALUES if rng.random() < 0.5}
    upsert = Upsert(written, KEY, kept, rng.choice((None, written.column("gone").is_valid())))
    table = DeltaTable(tmp_path)
    whole = upsert.applied_to(table.to_pyarrow_table())
    upsert.merge(table, [])
    assert (whole is None) == (table.version() == 0)
    assert _sorted(table.to_pyarrow_table()) == _sorted(stored if whole is None else whole)


def _sorted(table: pa.Table) -> list[dict[str, Any]]:
    return sorted(table.to_pylist(), key=lambda row: tuple(map(row.__getitem__, KEY)))


@pytest.mark.parametrize("key", [pa.array([0.0]), pa.array([None], pa.int64())], ids=["a float", "NULL"])
def test_keys_that_only_sql_compares(key: pa.Array) -> None:
    assert not Upsert(pa.table({"k": key}), ("k",)).can_apply
    assert Upsert(pa.table({"k": pa.array(["NaN"])}), ("k",)).can_apply


def _opened(lake: Lake, *, feed: bool = False) -> DeltaMirror:
    """Return a table with one row."""
    schema = lake.announce(schema_of({"id": "int64", "a": "string"}))
    lake.apply(0, [change("c", {"id": 1}, {"a": "x"}, pos=1, schema=schema)])
    if feed:
        altered = DeltaTable(lake.path(NAME))
        altered.alter.add_feature(TableFeatures.ChangeDataFeed, allow_protocol_versions_increase=True)
        altered.alter.set_table_properties({"delta.enableChangeDataFeed": "true"})
    table = lake.tables.open(NAME)
    assert isinstance(table, DeltaMirror)
    return table


def _changed(table: DeltaMirror) -> TableChanges:
    stored = table._table.to_pyarrow_table().append_column(DELETED_AT, pa.nulls(1, pa.timestamp("us", "UTC")))
    place = stored.column_names.index("a")
    return TableChanges(stored.set_column(place, "a", pa.array(["y"])), kept={}, inserts_only=False)


@pytest.mark.parametrize(
    ("feed", "limit", "operation"),
    [(False, rows.SMALL, "WRITE"), (False, 100, "MERGE"), (True, rows.SMALL, "MERGE")],
    ids=["small", "large", "with a change data feed"],
)
def test_which_way(lake: Lake, monkeypatch: pytest.MonkeyPatch, feed: bool, limit: int, operation: str) -> None:
    monkeypatch.setattr(rows, "SMALL", limit)
    table = _opened(lake, feed=feed)
    table.write(_changed(table), Marker("m", 1))
    (newest,) = DeltaTable(lake.path(NAME)).history(1)
    assert operation == newest["operation"]
    assert [{"id": 1, "a": "y"}] == lake.rows()


@pytest.mark.parametrize("limit", ["SMALL", "FEW_ROWS", "IN_MEMORY"])
def test_a_table_that_is_too_large(lake: Lake, monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    """A file of repeated texts is small, but its rows may not fit into memory."""
    schema = lake.announce(schema_of({"id": "int64", "a": "string"}))
    lake.apply(0, [change("c", {"id": id}, {"a": "x" * 3000}, pos=id, schema=schema) for id in range(600)])
    of = DeltaTable(lake.path(NAME))
    size, decoded = pa.table(of.get_add_actions())["size_bytes"][0].as_py(), of.to_pyarrow_table().nbytes
    assert size < decoded / 20
    least = {"SMALL": size, "FEW_ROWS": 600, "IN_MEMORY": decoded}[limit]
    operations = []
    for n, allowed in enumerate((2 * least, least // 2)):
        monkeypatch.setattr(rows, limit, allowed)
        lake.apply(2 * n + 1, [change("u", {"id": 5}, {"a": f"{n}"}, pos=700 + n, schema=schema)])
        operations.append(DeltaTable(lake.path(NAME)).history(1)[0]["operation"])
        assert f"{n}" == next(row["a"] for row in lake.rows(NAME) if row["id"] == 5)
        monkeypatch.undo()
    assert operations == ["WRITE", "MERGE"]


def test_a_partitioned_table(lake: Lake) -> None:
    table = _opened(lake)
    stored, properties = table._table.to_pyarrow_table(), table._table.metadata().configuration
    options: dict[str, Any] = {"mode": "overwrite", "schema_mode": "overwrite", "configuration": properties}
    write_deltalake(lake.path(NAME), stored, partition_by=["a"], **options)
    table = lake.tables.open(NAME)  # type: ignore[assignment]
    table.write(_changed(table), Marker("m", 1))
    (path,) = DeltaTable(lake.path(NAME)).file_uris()
    assert "/a=y/" in path
    assert [{"id": 1, "a": "y"}] == lake.rows()


def test_a_row_that_another_program_added_meanwhile(lake: Lake) -> None:
    """Writing the whole table must not commit next to another commit, or a key could be in the table twice."""
    table = _opened(lake)
    changes = _changed(table)
    other = DeltaTable(lake.path(NAME))
    write_deltalake(other, other.to_pyarrow_table(), mode="append")
    with pytest.raises(Overtaken):
        table.write(changes, Marker("m", 1))
