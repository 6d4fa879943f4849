"""Micro-batches on real Delta tables and the resulting rows. Some tests also run on Spark."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal

import pytest
from deltalake import DeltaTable

from spark_sink.tables.changes import Marker
from spark_sink.tables.delta.tables import DeltaTables
from tests.spark_sink.changes import SCOPE, change, record, schema_of
from tests.spark_sink.lake import Lake


def test_schema_makes_the_table(each_lake: Lake) -> None:
    """A table gets the types of its schema. A later column is NULL in older rows, and an old schema drops nothing."""
    one = each_lake.announce(schema_of({"id": "int64", "n": "int32"}))
    two = each_lake.announce(schema_of({"id": "int64", "n": "int32", "amount": "decimal(10,2)"}))
    first = [change("c", {"id": 1}, {"n": 7}, pos=1, schema=one)]
    second = [
        change("c", {"id": 2}, {"n": 8, "amount": "1.50"}, pos=2, schema=two),
        change("c", {"id": 3}, {"n": 9}, pos=3, schema=one),
    ]
    each_lake.apply(0, first)
    each_lake.apply(1, second)
    assert [
        {"id": 1, "n": 7, "amount": None},
        {"id": 2, "n": 8, "amount": Decimal("1.50")},
        {"id": 3, "n": 9, "amount": None},
    ] == each_lake.rows()
    assert [] == each_lake.quarantine()


def test_without_schema_columns_are_strings(lake: Lake) -> None:
    """Without a schema, a table gets string columns as they arrive, with their names, and its key from the events."""
    lake.apply(0, [change("c", {"Id": "1"}, {"名": "甲"}, pos=1)])
    lake.apply(1, [change("u", {"Id": "1"}, {"flag": True, "note": None}, pos=2, full=False)])
    assert [{"Id": "1", "名": "甲", "flag": "true", "note": None}] == lake.rows()


def test_a_column_that_no_row_of_a_batch_carries(lake: Lake) -> None:
    """A patch without a float leaves it unchanged, and a float can be NULL in all rows of a batch."""
    schema = lake.announce(schema_of({"id": "int64", "f": "float64", "g": "float32", "a": "string"}))
    lake.apply(0, [change("c", {"id": 1}, {"f": 1.5, "g": None, "a": "x"}, pos=1, schema=schema)])
    lake.apply(1, [change("u", {"id": 1}, {"a": "y"}, pos=2, full=False, schema=schema)])
    assert [{"id": 1, "f": 1.5, "g": None, "a": "y"}] == lake.rows()
    assert [] == lake.quarantine()


def test_a_timestamp_is_added(lake: Lake) -> None:
    """A table without times accepts a time column, which is a separate table feature in Delta Lake."""
    one = lake.announce(schema_of({"id": "int64"}))
    lake.apply(0, [change("c", {"id": 1}, {}, pos=1, schema=one)])
    two = lake.announce(schema_of({"id": "int64", "t": "timestamp"}))
    lake.apply(1, [change("u", {"id": 1}, {"t": "0001-01-01T00:00:00"}, pos=2, full=False, schema=two)])
    assert [{"id": 1, "t": datetime(1, 1, 1)}] == lake.rows()


@pytest.mark.parametrize(
    ("name", "type", "keys"),
    [
        ("名", "string", ["a'b", "A'B", "a'b ", "\0", "", "\U0010ffff" * 100, "z" * 5000, "z" * 5000 + "y"]),
        ("a.b", "bytes", ["", "AA==", "////", "YQ==", "QQ=="]),
    ],
)
def test_keys_are_told_apart(lake: Lake, name: str, type: str, keys: list[str]) -> None:
    """Every row is found by its key, whatever the key's values and name, in appended and merged files."""
    schema = lake.announce(schema_of({name: type, "v": "string"}, (name,)))

    def write(batch: int, op: str, numbers: Sequence[int]) -> None:
        events = [change(op, {name: keys[n]}, {"v": f"{n}{op}"}, pos=batch * 100 + n, schema=schema) for n in numbers]
        lake.apply(batch, events)

    everything = range(len(keys))
    write(0, "c", everything[::2])
    write(1, "c", everything[1::2])
    write(2, "u", everything)
    write(3, "d", everything[:2])
    assert [f"{n}u" for n in everything[2:]] == sorted(row["v"] for row in lake.rows())


def test_nan_is_no_key(lake: Lake) -> None:
    """Zero is one key whatever its sign. NaN, which no lookup finds, goes to quarantine."""
    schema = lake.announce(schema_of({"id": "float64", "v": "string"}))
    lake.apply(0, [change("c", {"id": 0.0}, {"v": "x"}, pos=1, schema=schema)])
    lake.apply(
        1,
        [
            change("u", {"id": -0.0}, {"v": "y"}, pos=2, schema=schema),
            change("c", {"id": "NaN"}, {"v": "z"}, pos=3, schema=schema),
        ],
    )
    assert [{"id": 0.0, "v": "y"}] == lake.rows()
    assert [("KEY_INVALID", 1)] == [row[:2] for row in lake.quarantine()]


def test_names_of_tables_are_text(each_lake: Lake) -> None:
    """Names of source tables have no special meaning to Spark or the file system."""
    names = ["${spark.master}", "a`b'c\"d\\e\n", ".."]
    for batch in range(2):
        each_lake.apply(batch, [change("c", {"id": "1"}, {"t": name}, pos=batch, table=name) for name in names])
    paths = [
        str(path.parent.relative_to(each_lake.warehouse))
        for path in each_lake.warehouse.glob("shop_sales/*/_delta_log")
    ]
    assert sorted(names) == sorted(row["t"] for path in paths for row in each_lake.rows(path.replace("/", ".")))


def test_patch_writes_only_what_it_carries(lake: Lake) -> None:
    """A patch keeps absent, unavailable and unfaithful columns and writes nulls. A full update replaces the row."""
    lake.apply(
        0, [change("c", {"id": "1"}, {"a": "x", "b": "y", "c": "z"}, pos=1), change("c", {"id": "2"}, {}, pos=2)]
    )
    lake.apply(
        1,
        [
            change("u", {"id": "1"}, {"a": None}, pos=3, full=False, unavailable=["b"], issues=["c"]),
            change("u", {"id": "2"}, {"a": "new", "b": "new"}, pos=4, full=False),
            change("u", {"id": "2"}, {"b": "full"}, pos=5, full=True),
        ],
    )
    assert [
        {"id": "1", "a": None, "b": "y", "c": "z"},
        {"id": "2", "a": None, "b": "full", "c": None},
    ] == lake.rows()


def test_patch_of_an_unknown_row_is_flagged(lake: Lake) -> None:
    """A patch of an unknown row creates an incomplete row, which a full image completes."""
    lake.apply(0, [change("u", {"id": "1"}, {"a": "x"}, pos=1, full=False)])

    def flag() -> list[tuple[str, bool]]:
        read = DeltaTable(lake.path()).to_pyarrow_table()
        return [(row["a"], row["_cdc_incomplete"]) for row in read.to_pylist()]

    assert [("x", True)] == flag()
    lake.apply(1, [change("u", {"id": "1"}, {"a": "y"}, pos=2)])
    assert [("y", False)] == flag()


def test_delete_and_stale_events(lake: Lake) -> None:
    """A delete removes the row. An event that is not beyond the row's position in its scope changes nothing."""
    lake.apply(0, [change("c", {"id": "1"}, {"a": "x"}, pos=5), change("c", {"id": "2"}, {"a": "x"}, pos=6)])
    (report,) = lake.apply(
        1,
        [
            change("d", {"id": "1"}, pos=7),
            change("d", {"id": "2"}, pos=4),
            change("u", {"id": "2"}, {"a": "stale"}, pos=6),
            change("d", {"id": "unknown"}, pos=8),
        ],
    )
    assert [{"id": "2", "a": "x"}] == lake.rows()
    assert {"duplicate": 2} == report.counters.stale
    lake.apply(2, [change("u", {"id": "1"}, {"a": "late"}, pos=3), change("u", {"id": "unknown"}, {}, pos=7)])
    assert [{"id": "2", "a": "x"}] == lake.rows()


def test_key_change_moves_the_row(lake: Lake) -> None:
    """A key change deletes the old row and writes the new one in one commit. Columns missing from its image come from
    the old row, whether stored or in the batch.
    """
    schema = lake.announce(schema_of({"id": "int64", "a": "timestamp", "b": "string"}))
    stored = {"a": "2026-01-01T00:00:00.123456", "b": "x"}
    lake.apply(
        0, [change("c", {"id": 1}, stored, pos=1, schema=schema), change("c", {"id": 2}, stored, pos=2, schema=schema)]
    )
    before = lake.version()
    lake.apply(
        1,
        [
            change("u", {"id": 11}, {"b": "moved"}, key_old={"id": 1}, pos=3, full=False, schema=schema),
            change("u", {"id": 12}, {"a": None, "b": "full"}, key_old={"id": 2}, pos=4, schema=schema),
            change("c", {"id": 3}, {"a": None, "b": "batch"}, pos=5, schema=schema),
            change("u", {"id": 13}, {}, key_old={"id": 3}, pos=6, full=False, schema=schema),
        ],
    )
    moment = datetime(2026, 1, 1, 0, 0, 0, 123456)
    assert [
        {"id": 11, "a": moment, "b": "moved"},
        {"id": 12, "a": None, "b": "full"},
        {"id": 13, "a": None, "b": "batch"},
    ] == lake.rows()
    assert before + 1 == lake.version()


def test_truncate_is_a_barrier(lake: Lake) -> None:
    """A truncate removes earlier rows and keeps later ones. Its duplicate keeps the rows written after it."""
    lake.apply(0, [change("c", {"id": "1"}, {"a": "x"}, pos=1)])
    batch = [
        change("c", {"id": "2"}, {"a": "x"}, pos=2),
        change("t", None, pos=3),
        change("c", {"id": "3"}, {"a": "x"}, pos=4),
    ]
    lake.apply(1, batch)
    assert ["3"] == [row["id"] for row in lake.rows()]
    before = lake.version()
    (report,) = lake.apply(2, [batch[0], batch[1]])
    assert ["3"] == [row["id"] for row in lake.rows()]
    assert ({"truncated": 1}, before) == (report.counters.stale, lake.version())


def test_replay_makes_no_commit(lake: Lake) -> None:
    """An applied batch is not applied again. Under a new checkpoint, the same number is another batch."""
    batch = [change("c", {"id": "1"}, {"a": "x"}, pos=1), change("c", None, {"a": "no key"}, pos=2)]
    lake.apply(0, batch)
    versions = lake.version(), lake.version("_cdc.quarantine")
    (report,) = lake.apply(0, batch)
    assert versions == (lake.version(), lake.version("_cdc.quarantine"))
    assert 1 == report.counters.skipped
    lake.applier = lake.new_applier("checkpoint-2")
    lake.apply(0, [change("c", {"id": "2"}, {"a": "y"}, pos=3)])
    assert ["1", "2"] == [row["id"] for row in lake.rows()]


def test_crash_between_segments(lake: Lake) -> None:
    """After a crash between two commits of a batch, the replay makes only the missing ones."""
    batch = [
        change("c", {"id": "1"}, {"a": "x"}, pos=1),
        change("t", None, pos=2),
        change("c", {"id": "2"}, {"a": "x"}, pos=3),
    ]
    lake.apply(0, [change("c", {"id": "0"}, {"a": "x"}, pos=0)])
    # The state after a crash: the last of three commits of batch 1 is missing.
    mirror = DeltaTables(str(lake.warehouse)).open("shop_sales.orders")
    assert mirror is not None
    mirror.raise_floors({SCOPE: batch[1].pos})
    mirror.clear(Marker("test/checkpoint-1/shop_sales.orders", 4096 + 1))
    before = lake.version()
    (report,) = lake.apply(1, batch)
    assert ["2"] == [row["id"] for row in lake.rows()]
    assert (2, 1, before + 1) == (report.counters.skipped, report.counters.commits, lake.version())


def test_quarantine_keeps_the_record(each_lake: Lake) -> None:
    """Quarantine keeps an inapplicable event once, with its reason, id and original bytes. The rest is applied."""
    schema = each_lake.announce(schema_of({"id": "int64", "n": "int32", "t": "timestamp"}))
    good = {"n": 1, "t": "2026-01-01T00:00:00.123456000"}
    batch: list[object] = [
        change("c", {"id": 1}, good, pos=1, schema=schema),
        change("c", {"id": 2}, {**good, "n": 2**31}, pos=2, schema=schema),
        change("u", {"id": 1}, {**good, "t": "2026-13-01T00:00:00"}, pos=3, schema=schema),
        change("u", {"id": 1}, {"n": 5}, pos=4, full=False, schema=schema),
        change("c", {"id": 3}, {**good, "unheard": 1}, pos=5, schema=schema),
        change("c", {"id": None}, good, pos=6, schema=schema),
        change("c", {"id": "abc"}, good, pos=7, schema=schema),
        change("c", {"other": 1}, good, pos=8, schema=schema),
        change("x", {"id": 1}, good, pos=9, schema=schema),
        change("c", {"id": 1}, None, pos=10, schema=schema),
        change("c", {"id": 4}, good, pos=11, schema=schema_of({"id": "int64"})),  # never announced
        change("c", {"id": 1}, good, pos=12, table=None),
        b"\x00not ours",
        record(change("c", {"id": 9}, good, pos=13))[:40],
        change(None, None, pos=14, kind="watermark", table=None),
        change(None, None, pos=15, kind="of-a-later-release"),
    ]
    reports = each_lake.apply(0, batch)  # type: ignore[arg-type]
    moment = datetime(2026, 1, 1, 0, 0, 0, 123456)
    # An event with a value that does not fit is applied without it.
    assert [{"id": 1, "n": 5, "t": moment}, {"id": 2, "n": None, "t": moment}] == each_lake.rows()
    assert [
        ("VALUE_INVALID", 1, "shop/raw/0/2/0"),
        ("VALUE_INVALID", 2, "shop/raw/0/3/0"),
        ("COLUMN_UNKNOWN", 4, "shop/raw/0/5/0"),
        ("KEY_UNKNOWN", 5, "shop/raw/0/6/0"),
        ("KEY_INVALID", 6, "shop/raw/0/7/0"),
        ("KEY_DIFFERS", 7, "shop/raw/0/8/0"),
        ("OPERATION_UNKNOWN", 8, "shop/raw/0/9/0"),
        ("IMAGE_MISSING", 9, "shop/raw/0/10/0"),
        ("SCHEMA_UNKNOWN", 10, "shop/raw/0/11/0"),
        ("TABLE_UNKNOWN", 11, "shop/raw/0/12/0"),
        ("UNDECODABLE", 12, None),
        ("UNDECODABLE", 13, None),
    ] == each_lake.quarantine()
    stored = DeltaTable(each_lake.path("_cdc.quarantine")).to_pyarrow_table().to_pylist()
    raw = [one if isinstance(one, bytes) else record(one) for one in batch]  # type: ignore[arg-type]
    assert [raw[offset] for offset in range(1, 14) if offset != 3] == [row["value"] for row in stored]
    assert {"watermark": 1, "of-a-later-release": 1} == {k: n for r in reports for k, n in r.counters.ignored.items()}


def test_a_refused_table_does_not_stop_others(lake: Lake) -> None:
    """If a table cannot accept a schema, its events of the batch are parked and other tables continue."""
    one = lake.announce(schema_of({"id": "int64", "n": "int32"}))
    lake.apply(0, [change("c", {"id": 1}, {"n": 7}, pos=1, schema=one)])
    two = lake.announce(schema_of({"id": "int64", "n": "int32"}, ("id", "n")))
    lake.apply(
        1,
        [
            change("c", {"id": 2, "n": 8}, {}, pos=2, schema=two),
            change("c", {"id": 3}, {"n": 8}, pos=3, schema=one),
            change("c", {"id": "1"}, {"a": "x"}, pos=4, table="customers"),
        ],
    )
    assert [{"id": 1, "n": 7}] == lake.rows()
    assert [{"id": "1", "a": "x"}] == lake.rows("shop_sales.customers")
    assert ([], [("SCHEMA_REFUSED", 0), ("SCHEMA_REFUSED", 1)]) == (lake.quarantine(), lake.parked())


def test_two_scopes(lake: Lake) -> None:
    """Topic order decides between scopes, and the row still remembers its position in each."""
    a, b = "raw:0@one", "raw:0@two"
    batch = [
        change("c", {"id": "1"}, {"a": "old topic"}, pos=9, scope=a),
        change("u", {"id": "1"}, {"a": "new topic"}, pos=1, scope=b),
    ]
    lake.apply(0, batch)
    lake.apply(1, batch)
    assert [{"id": "1", "a": "new topic"}] == lake.rows()


def test_marker_is_in_the_commit(lake: Lake) -> None:
    """A commit carries its marker: the app of pipeline, checkpoint and table; version batch * 4096 + segment."""
    lake.apply(3, [change("c", {"id": "1"}, {}, pos=1)])
    table = DeltaTable(lake.path())
    assert 3 * 4096 == table.transaction_version("test/checkpoint-1/shop_sales.orders")
