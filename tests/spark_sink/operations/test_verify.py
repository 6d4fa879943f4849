"""`spark-sink verify`: a table is compared with the changes in its topic, which another implementation applies."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from deltalake import DeltaTable, write_deltalake

from cdc_core.envelope import ChangeEvent, TableSchema
from dev.servers.broker import Broker
from spark_sink.commands.verify import VerifyReport
from spark_sink.config.table_rules import TableRules
from spark_sink.errors import FatalError
from spark_sink.operations import status
from spark_sink.operations.verified_metrics import VerifiedMetrics
from spark_sink.operations.verify import ExpectedRows, Verified, after_batch, change_of, compare
from spark_sink.tables.protocols import MirrorTable
from tests.spark_sink.changes import OTHER_SCOPE, change, schema_of, sent, statement
from tests.spark_sink.histories import history
from tests.spark_sink.lake import Lake
from tests.spark_sink.local_iceberg import LocalIcebergLake
from tests.spark_sink.oracle import table_after
from tests.spark_sink.topic_lake import TopicLake

COLUMNS = {"id": "int64", "a": "string", "b": "string", "c": "string"}


def verified(
    lake: Lake, events: Iterable[ChangeEvent], schema: TableSchema, *, complete: bool = True, cuts_times: bool = False
) -> Verified:
    """Compare the schema's table with these changes."""
    table = lake.tables.open(f"shop_sales.{schema.table}")
    assert isinstance(table, MirrorTable)
    expected = ExpectedRows(table.shape, lake.control.erased_keys().get(f"shop_sales.{schema.table}", {}))
    changes = (expected.without_erased(change_of(event), 0, offset) for offset, event in enumerate(events))
    expected.add(change for change in changes if change is not None)
    return compare(table, expected, complete=complete, cuts_times=cuts_times)


@pytest.mark.parametrize("seeds", [range(n, n + 20) for n in range(0, 100, 20)], ids=str)
def test_any_delivery_is_equal(lake: Lake, seeds: range) -> None:
    lake.use(TableRules(all_scopes=True))
    for made in map(history, seeds):
        schema = lake.announce(schema_of(COLUMNS, table=made.table))
        delivered = [sent(event, made.table) for batch in made.batches for event in batch]
        lake.apply(made.seed, delivered)
        if lake.tables.exists(f"shop_sales.{made.table}"):
            found = verified(lake, delivered, schema)
            assert found.is_equal, (made.seed, found)
            assert (found.unknown, found.compared) == (0, len(lake.rows(f"shop_sales.{made.table}")))


def test_any_fault_is_found(lake: Lake) -> None:
    """If the sink received other events than the topic has, exactly the rows that differ are found."""
    lake.use(TableRules(all_scopes=True))
    noticed = 0
    for seed in range(150):
        made = history(seed)
        if made.native or len(made.events) < 3 or any(event.withholds for event in made.events):
            continue
        name = f"shop_sales.{made.table}"
        schema = lake.announce(schema_of(COLUMNS, table=made.table))
        events = [sent(event, made.table) for event in made.events]
        lake.apply(seed, _faulty(random.Random(seed), events))
        if not lake.tables.exists(name):
            continue
        found = verified(lake, events, schema)
        right, _ = table_after(made.events)
        stored = {row["id"]: row for row in lake.stored(name).to_pylist()}
        flagged = {id for id, row in stored.items() if row["_cdc_incomplete"]}
        wrong = {id for id in right.keys() & stored.keys() if any(right[id][n] != stored[id][n] for n in COLUMNS)}
        differing = {(id,) for id in (right.keys() ^ stored.keys()) | (wrong - flagged)}
        named = {*found.missing, *found.extra, *found.different}
        assert named <= differing
        assert len(differing) == len(named) + found.inconclusive
        assert len(wrong & flagged) == found.declared
        several = len({event.scope for event in made.events}) > 1
        assert several or not found.inconclusive
        noticed += not found.is_equal
    assert noticed > 5


def _faulty(rng: random.Random, events: list[ChangeEvent]) -> list[ChangeEvent]:
    """Return the events with one of them lost, swapped or altered."""
    place, fault = rng.randrange(1, len(events)), rng.choice(("lost", "swapped", "altered"))
    if fault == "lost":
        return events[:place] + events[place + 1 :]
    if fault == "swapped":
        one, other = events[place - 1], events[place]
        one, other = (
            msgspec.structs.replace(a, pos=b.pos, pos_scope=b.pos_scope) for a, b in ((one, other), (other, one))
        )
        return [*events[: place - 1], other, one, *events[place + 1 :]]
    changed = [n for n, event in enumerate(events) if event.after is not None and '"a":"' in event.after]
    place = rng.choice(changed or [0])
    after = (events[place].after or "").replace('"a":"', '"a":"!')
    return [*events[:place], msgspec.structs.replace(events[place], after=after or None), *events[place + 1 :]]


TYPES: dict[str, tuple[str, list[Any]]] = {
    "truth": ("boolean", [True, False]),
    "small": ("int16", [-(2**15), 2**15 - 1]),
    "large": ("uint64", [0, str(2**64 - 1)]),
    "amount": ("decimal(38,10)", ["0.1000000000", "-9999999999999999999999999999.9999999999"]),
    "single": ("float32", [0.1, "NaN"]),
    "double": ("float64", [1.5e300, "-Infinity"]),
    "text": ("string", ["", "\U0010ffff"]),
    "raw": ("bytes", ["", "AP8="]),
    "day": ("date", ["0001-01-01", "9999-12-31"]),
    "clock": ("time", ["-838:59:59.000001", "23:59:59"]),
    "local": ("timestamp", ["2026-01-31T00:00:00", "9999-12-31T23:59:59.999999"]),
    "instant": ("timestamptz", ["2026-01-31T00:00:00Z", "0001-01-01T00:00:00.000001Z"]),
    "fine": ("timestamp", ["2026-01-31T00:00:00.000000001", "2026-01-31T00:00:00.1"]),
}


@pytest.mark.parametrize("cuts", [False, True], ids=["exact times", "truncated times"])
def test_every_type(lake: Lake, cuts: bool) -> None:
    lake.use(TableRules(truncated_times=cuts))
    schema = lake.announce(schema_of({"id": "int64", **{name: type for name, (type, _) in TYPES.items()}}))
    images = [{name: values[n] for name, (_, values) in TYPES.items()} for n in (0, 1)]
    images.append(dict.fromkeys(TYPES))
    events = [change("c", {"id": n}, image, pos=n + 1, schema=schema) for n, image in enumerate(images)]
    lake.apply(0, events)
    found = verified(lake, events, schema, cuts_times=cuts)
    assert (found.compared, found.is_equal, found.declared) == (3, True, 0)
    for name, (_, values) in TYPES.items():
        images = [{**image, name: values[1]} for image in images]
        other = [change("c", {"id": n}, image, pos=n + 1, schema=schema) for n, image in enumerate(images)]
        assert {name} <= verified(lake, other, schema, cuts_times=cuts).columns.keys()


def test_a_column_with_a_second_version(lake: Lake) -> None:
    """A value is compared with the version of the column that has it."""
    first = lake.announce(schema_of({"id": "int64", "a": "int32"}))
    events = [change("c", {"id": id}, {"a": id}, pos=id, schema=first) for id in (1, 2)]
    lake.apply(0, events)
    second = lake.announce(schema_of({"id": "int64", "a": "string"}))
    later = [change("u", {"id": 2}, {"a": "two"}, pos=3, schema=second)]
    lake.apply(1, later)
    assert "a__v2" in lake.rows()[0]
    assert verified(lake, events + later, first).is_equal


def test_a_topic_without_its_beginning(lake: Lake) -> None:
    """Rows without a change cannot be compared, and other rows in the columns that were sent."""
    schema = lake.announce(schema_of({"id": "int64", "a": "string", "b": "string"}))
    events = [change("c", {"id": id}, {"a": "x", "b": "x"}, pos=id, schema=schema) for id in (1, 2, 3)]
    later = [
        change("u", {"id": 2}, {"a": "y"}, pos=4, full=False, schema=schema),
        change("d", {"id": 3}, pos=5, schema=schema),
    ]
    lake.apply(0, events + later)
    found = verified(lake, later, schema, complete=False)
    assert (found.is_equal, found.compared, found.unknown) == (True, 1, 1)
    altered = [change("u", {"id": 2}, {"a": "z"}, pos=4, full=False, schema=schema), *later[1:]]
    assert [(2,)] == verified(lake, altered, schema, complete=False).different
    assert [(1,)] == verified(lake, later, schema, complete=True).extra


@pytest.mark.parametrize("value", ["x", None])
def test_a_table_that_another_program_changed(lake: Lake, value: str | None) -> None:
    schema = lake.announce(schema_of({"id": "int64", "a": "string"}))
    events = [change("c", {"id": id}, {"a": value}, pos=id, schema=schema) for id in (1, 2)]
    lake.apply(0, events)
    DeltaTable(lake.path()).update({"a": "'changed'"}, predicate="id = 1")
    found = verified(lake, events, schema)
    assert ([(1,)], {"a": 1}) == (found.different, dict(found.columns))
    DeltaTable(lake.path()).update({"a": "NULL"})
    assert (2 if value else 0) == len(verified(lake, events, schema).different)


def test_rows_that_two_scopes_wrote(lake: Lake) -> None:
    """The topic does not show in which order the sink read its partitions."""
    lake.use(TableRules(all_scopes=True))
    schema = lake.announce(schema_of({"id": "int64", "a": "string"}))
    first = [change("c", {"id": id}, {"a": "x"}, pos=id, schema=schema) for id in (1, 2, 3)]
    second = [
        change("u", {"id": 1}, {"a": "y"}, pos=1, schema=schema, scope=OTHER_SCOPE),
        change("d", {"id": 2}, pos=2, schema=schema, scope=OTHER_SCOPE),
    ]
    lake.apply(0, first + second)
    assert verified(lake, first + second, schema).inconclusive == 0
    found = verified(lake, second + first, schema)
    assert (found.is_equal, found.inconclusive) == (True, 2)


def test_statements_are_counted(lake: Lake) -> None:
    schema = lake.announce(schema_of({"id": "int64", "a": "string"}))
    events = [
        change("c", {"id": 1}, {"a": "x"}, pos=1, schema=schema),
        statement("TABLE_DROPPED", pos=2),
    ]
    lake.apply(0, events)
    assert 1 == verified(lake, events, schema).statements


def test_a_table_with_another_key(lake: Lake) -> None:
    schema = lake.announce(schema_of({"id": "int64", "a": "string"}))
    lake.apply(0, [change("c", {"id": 1}, {"a": "x"}, pos=1, schema=schema)])
    with pytest.raises(
        FatalError, match=r"rows by a, but the table by id \(tables\.keys\), so its rows cannot be compared"
    ):
        verified(lake, [change("c", {"a": "x"}, {"id": 1}, pos=1)], schema)


def test_changes_that_the_sink_rejects(lake: Lake) -> None:
    """They are in quarantine, and do not prevent the comparison."""
    schema = lake.announce(schema_of({"id": "decimal(10,2)", "a": "string"}))
    events = [
        change("c", {"id": "1.00"}, {"a": "x"}, pos=1, schema=schema),
        change("u", {"id": "1.0"}, {"a": "y"}, pos=2, schema=schema),
        *(change("c", {"id": id}, {"a": "x"}, pos=3 + n) for n, id in enumerate((None, [1], {"a": 1}, "NaN", "x"))),
        change("c", {"other": 1}, {"a": "x"}, pos=10),
        change("x", {"id": "2.00"}, {"a": "x"}, pos=11),
    ]
    lake.apply(0, events)
    assert len(lake.quarantine()) == 7
    found = verified(lake, events, schema)
    assert (found.is_equal, found.compared, found.rejected) == (True, 1, 7)


def test_duplicated_rows(lake: Lake) -> None:
    schema = lake.announce(schema_of({"id": "int64", "a": "string"}))
    events = [change("c", {"id": id}, {"a": "x"}, pos=id, schema=schema) for id in (1, 2)]
    lake.apply(0, events)
    write_deltalake(lake.path(), DeltaTable(lake.path()).to_pyarrow_table().slice(0, 1), mode="append")
    found = verified(lake, events, schema)
    assert (found.is_equal, len(found.duplicated)) == (False, 1)


def test_a_column_that_the_table_lacks(lake: Lake) -> None:
    schema = lake.announce(schema_of({"id": "int64", "a": "string"}))
    events = [change("c", {"id": id}, {"a": a}, pos=id, schema=schema) for id, a in ((1, "x"), (2, None))]
    lake.apply(0, events)
    rows = DeltaTable(lake.path()).to_pyarrow_table().drop_columns(["a"])
    write_deltalake(lake.path(), rows, mode="overwrite", schema_mode="overwrite")
    found = verified(lake, events, schema)
    assert ([(1,)], {"a": 1}) == (found.different, dict(found.columns))


def test_a_truncate_in_another_partition(lake: Lake) -> None:
    lake.use(TableRules(all_scopes=True))
    schema = lake.announce(schema_of({"id": "int64"}))
    first = change("c", {"id": 1}, {}, pos=1, schema=schema)
    truncate = change("t", None, pos=1, scope=OTHER_SCOPE)
    last = change("c", {"id": 2}, {}, pos=2, schema=schema)
    lake.apply(0, [first, truncate, last])
    assert verified(lake, [first, truncate, last], schema).inconclusive == 0
    found = verified(lake, [first, last, truncate], schema)
    assert (found.is_equal, found.inconclusive) == (True, 1)


@pytest.mark.parametrize("lake_of", [Lake, LocalIcebergLake])
def test_an_earlier_batch(lake_of: type[Lake], tmp_path: Path) -> None:
    lake = lake_of(tmp_path / "warehouse")
    schema = lake.announce(schema_of({"id": "int64", "a": "string"}))
    lake.apply(0, [change("c", {"id": 1}, {"a": "x"}, pos=1, schema=schema)])
    first = lake.version()
    lake.apply(1, [change("u", {"id": 1}, {"a": "y"}, pos=2, schema=schema)])
    for version, value in ((first, "x"), (lake.version(), "y")):
        table = after_batch(lake.tables, "shop_sales.orders", version, lake.control.apps("checkpoint-1"))
        assert table is not None
        assert {(1,): {"id": 1, "a": value}} == table.rows({(1,)})
    with pytest.raises(FatalError, match=r"of shop_sales\.orders (cannot be read|no longer exists)"):
        after_batch(lake.tables, "shop_sales.orders", 77, lake.control.apps("checkpoint-1"))


@pytest.mark.parametrize("lake_of", [Lake, LocalIcebergLake])
def test_a_resume_after_the_newest_batch(lake_of: type[Lake], tmp_path: Path) -> None:
    """The events that a resume applies are not in the batch before it."""
    lake = lake_of(tmp_path / "warehouse")
    schema = lake.announce(schema_of({"id": "int64", "a": "string"}))
    lake.apply(0, [change("c", {"id": 1}, {"a": "x"}, pos=1, schema=schema)])
    lake.command("park")
    lake.apply(1, [change("u", {"id": 1}, {"a": "y"}, pos=2, schema=schema)])
    parked = lake.version()
    lake.command("resume")
    table = after_batch(lake.tables, "shop_sales.orders", parked, lake.control.apps("checkpoint-1"))
    assert table is not None
    assert {(1,): {"id": 1, "a": "x"}} == table.rows({(1,)})


def test_the_command(broker: Broker, tmp_path: Path) -> None:
    lake = TopicLake(tmp_path, broker)
    schema = lake.announce(schema_of({"id": "int64", "a": "string"}))
    rows = [change("c", {"id": id}, {"a": "x"}, pos=id, schema=schema) for id in range(1, 4)]
    bad = [change("c", {"id": 2**63}, {"a": "x"}, pos=4, schema=schema), b"not an event"]
    lake.receive(0, [*rows, *bad])
    code, told = lake.verify()
    assert (
        code,
        "at batch 0 (version 1): equal; rows compared: 3; changes in quarantine: 1; unreadable records" in told,
    ) == (0, True)
    DeltaTable(lake.path()).update({"a": "'changed'"}, predicate="id = 1")
    code, told = lake.verify("--keys")
    assert (code, "with other values (a 1): 1" in told, "different: 1" in told) == (3, True, True)
    lake.receive(1, [change("u", {"id": 1}, {"a": "y"}, pos=5, schema=schema)])
    assert 0 == lake.verify()[0]
    code, told = lake.verify("--batch", "0", "--json")
    report = msgspec.json.decode(told, type=VerifyReport)
    assert (code, report["equal"], report["version"]) == (0, True, 1)
    assert report.keys() == msgspec.json.decode(told).keys()
    lake.command("park")
    lake.receive(2, [change("d", {"id": 1}, pos=6, schema=schema)])
    assert (0, True) == ((found := lake.verify())[0], "at batch 2" in found[1])  # the event waits
    assert 1 == lake.verify("--batch", "7")[0]
    lake.settings["input"] |= {"starting_offsets": {0: 2}}
    code, told = lake.verify()
    assert (code, "extra: 1" in told) == (3, True)
    lake.settings["input"] |= {"starting_offsets": "latest"}
    assert "the topic has events that the sink did not read" in lake.verify()[1]


def test_results_are_recorded(broker: Broker, tmp_path: Path) -> None:
    """`status` shows through when a table was verified, even if a later verification found differences."""
    lake = TopicLake(tmp_path, broker)
    schema = lake.announce(schema_of({"id": "int64", "a": "string"}))
    lake.receive(0, [change("c", {"id": id}, {"a": "canary"}, pos=id, schema=schema) for id in (1, 2)])
    assert "verified" not in lake.run("status")[1]
    lake.verify()
    ((last, verified, _),) = lake.control.verified.standings()
    ended_at = status.cut(str(lake.warehouse), "test", lake.topic_name, 7)["ended_at"]
    assert last == verified
    assert last[:2] + last[3:] == ("shop_sales.orders", "topic", 0, ended_at, 2, 0, 0)
    for value, incomplete in (("other", "true"), ("canary", "false")):
        DeltaTable(lake.path()).update({"a": f"'{value}'", "_cdc_incomplete": incomplete}, predicate="id = 2")
        assert 0 == lake.verify()[0]
        last = lake.control.verified.standings()[0].last
        assert (last.through, last.left_out) == ((None, 1) if incomplete == "true" else (ended_at, 0))
    lake.command("park")
    lake.receive(1, [change("c", {"id": 3}, {"a": "x"}, pos=3, schema=schema)])
    assert 0 == lake.verify()[0]
    ((last, verified, _),) = lake.control.verified.standings()
    assert (last.batch, last.through, last.differing, verified and verified.batch) == (1, None, 0, 0)  # it is parked
    DeltaTable(lake.path()).delete("id = 1")
    lake.verify("--keys")
    ((last, verified, _),) = lake.control.verified.standings()
    assert (last.through, last.differing, verified and verified.through) == (None, 1, ended_at)
    shown = f"verified through {ended_at:%Y-%m-%d %H:%M:%S} UTC against topic (on "
    told = lake.run("status")[1]
    assert (shown in told, "UTC, 1 rows differed)" in told) == (True, True)
    recorded = DeltaTable(lake.path("_cdc.verified")).to_pyarrow_table()
    assert "canary" not in str(recorded.to_pylist())
    VerifiedMetrics(lake.control.verified, lake.metrics).refresh()
    value = lake.metrics.registry.get_sample_value
    assert 1 == value("cdc_sink_verify_differing_rows", {"table": "other", "against": "topic"})
    code, told = lake.verify("--forget")
    assert (0, True) == (code, "results were deleted" in told)
    VerifiedMetrics(lake.control.verified, lake.metrics).refresh()
    assert value("cdc_sink_verify_differing_rows", {"table": "other", "against": "topic"}) is None
    assert (1, True) == (
        (done := lake.verify("--forget"))[0],
        "no results of shop_sales.orders are recorded" in done[1],
    )


def test_a_result_that_cannot_be_recorded(broker: Broker, tmp_path: Path) -> None:
    lake = TopicLake(tmp_path, broker)
    schema = lake.announce(schema_of({"id": "int64", "a": "string"}))
    lake.receive(0, [change("c", {"id": 1}, {"a": "x"}, pos=1, schema=schema)])
    shutil.rmtree(lake.path("_cdc.verified"))
    Path(lake.path("_cdc.verified")).touch()
    code, told = lake.verify()
    assert (code, "equal; rows compared: 1" in told, "was not recorded in _cdc.verified" in told) == (0, True, True)
