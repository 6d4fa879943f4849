"""`spark-sink verify --against checksums`: every fault before a run is found, and nothing else."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from deltalake import DeltaTable, write_deltalake

from cdc_core.envelope import ChangeEvent
from cdc_core.position import position
from spark_sink.errors import FatalError
from spark_sink.operations.row_digests import ComparedColumns, key_hash
from spark_sink.operations.verify import Verified
from spark_sink.schema.evolution import TableColumn
from tests.spark_sink.changes import change, schema_of
from tests.spark_sink.checksum_source import (
    COLUMNS,
    FAULTS,
    SCOPES,
    TYPES,
    Workload,
    checksum_events,
    checksum_rows,
    compared,
    rows_after,
    with_fault,
)
from tests.spark_sink.lake import Lake
from tests.spark_sink.local_iceberg import LocalIcebergLake

CHANGES = 400


def _columns() -> ComparedColumns:
    key, *values = (TableColumn(name, type, name) for name, type in TYPES.items())
    return ComparedColumns((key,), tuple(values))


def _run(lake: Lake, seed: int, fault: str | None) -> tuple[Verified, set[int], Workload]:
    """Return the result for a workload, and the keys of the rows that really differ at the run."""
    rng = random.Random(seed)
    table = f"orders{seed}"
    schema = lake.announce(schema_of(COLUMNS, table=table))
    made = Workload(rng, table, schema, SCOPES[: rng.choice((1, 3))])
    made.change(rng.randrange(CHANGES // 2, CHANGES))
    before, at_run = list(made.events), dict(made.rows)
    if fault is not None:
        before = with_fault(rng, fault, made.events)
        while rows_after(before) == at_run:
            before = with_fault(rng, fault, made.events)
    checksums = checksum_events(checksum_rows(at_run, _columns(), table, 1), made.scopes, made.next_pos - 4)
    made.change(rng.randrange(CHANGES // 2))
    after = made.events[len(before) + (fault == "dropped") - (fault == "doubled") :]
    delivered = _delivered(rng, before, checksums, after)
    for batch, events in enumerate(_batches(rng, delivered)):
        if of_table := [event for event in events if event.table == table]:
            lake.apply(seed * 100 + batch, of_table)
    wrong = rows_after(before)
    differing = {key for key in wrong.keys() | at_run.keys() if wrong.get(key) != at_run.get(key)}
    return compared(lake, table, delivered), differing, made


def _delivered(rng: random.Random, *parts: Sequence[ChangeEvent]) -> list[ChangeEvent]:
    """Return the events in an order in which only each scope keeps its own."""
    by_scope: dict[str, list[ChangeEvent]] = {}
    for event in (event for part in parts for event in part):
        by_scope.setdefault(event.pos_scope, []).append(event)
    order = [scope for scope, events in by_scope.items() for _ in events]
    rng.shuffle(order)
    left = {scope: iter(events) for scope, events in by_scope.items()}
    return [next(left[scope]) for scope in order]


def _batches(rng: random.Random, events: Sequence[ChangeEvent]) -> list[Sequence[ChangeEvent]]:
    place = rng.randrange(1, len(events))
    return [events[:place], events[place:]]


@pytest.mark.parametrize("seeds", [range(n, n + 10) for n in range(0, 30, 10)], ids=str)
def test_no_alarm_without_a_fault(lake: Lake, seeds: range) -> None:
    """Changes after the run, which the table already contains, do not matter."""
    for seed in seeds:
        found, differing, _ = _run(lake, seed, None)
        assert (found.is_equal, found.left_out, differing) == (True, 0, set()), (seed, found)


@pytest.mark.parametrize("fault", FAULTS)
def test_every_fault_is_narrowed_to_its_keys(lake: Lake, fault: str) -> None:
    for seed in range(8):
        found, differing, _ = _run(lake, seed, fault)
        assert not found.is_equal, (seed, fault)
        named = {name for keys in (found.missing, found.extra, found.different) for (name,) in keys}
        hashes = {key: key_hash((str(key),)) for key in differing}
        in_ranges = {key for key, hashed in hashes.items() if (hashed[:2],) in found.ranges}
        by_hash = {key for key, hashed in hashes.items() if f"key hash {hashed[:8]}" in named}
        by_key = {key for key in differing if str(key) in named}
        assert in_ranges | by_hash | by_key == differing, (seed, found, differing)
        assert len(named) == len(by_hash | by_key), (seed, found, differing)
        assert (len(found.ranges) <= len(in_ranges), found.left_out) == (True, 0)


def _made(lake: Lake, seed: int, table: str, scopes: Sequence[str]) -> tuple[Workload, list[ChangeEvent]]:
    """Return a workload before a run, and the run's rows at the source."""
    schema = lake.announce(schema_of(COLUMNS, table=table))
    made = Workload(random.Random(seed), table, schema, scopes)
    made.change(CHANGES)
    return made, checksum_events(checksum_rows(made.rows, _columns(), table, 1), scopes, made.next_pos - 4)


def _applied(lake: Lake, batch: int, made: Workload, delivered: list[ChangeEvent]) -> None:
    lake.apply(batch, [event for event in delivered if event.table == made.table])


def test_a_partition_without_checksums(lake: Lake) -> None:
    """Equal ranges are equal, and ranges that differ are inconclusive if they have rows of that partition."""
    made, checksums = _made(lake, 1, "orders", SCOPES[:2])
    in_one = [event for event in checksums if event.pos_scope == SCOPES[0]]
    moved = [msgspec.structs.replace(event, pos_scope=SCOPES[0]) for event in checksums if event not in in_one]
    delivered = [*made.events, *in_one, *moved]
    _applied(lake, 0, made, delivered)
    assert compared(lake, "orders", delivered) == Verified(compared=len(made.rows))
    count = len(made.events)
    made.change(100)
    later = made.events[count:]
    _applied(lake, 1, made, later)
    found = compared(lake, "orders", [*delivered, *later])
    assert (found.is_equal, found.inconclusive > 0) == (True, True)


def test_a_topic_without_its_first_changes(lake: Lake) -> None:
    """A row that changed after the run is unknown if the topic does not show what it was before."""
    made, checksums = _made(lake, 2, "orders", SCOPES[:1])
    before = list(made.events)
    made.change(100)
    later = made.events[len(before) :]
    _applied(lake, 0, made, made.events)
    for first in (0, 50, CHANGES):
        delivered = [*before[first:], *checksums, *later]
        found = compared(lake, "orders", delivered, complete=not first)
        assert (found.is_equal, found.inconclusive > 0) == (True, bool(first)), first


def test_a_later_truncate(lake: Lake) -> None:
    """All rows are compared as the topic has them."""
    made, checksums = _made(lake, 3, "orders", SCOPES[:1])
    truncate = change("t", None, pos=made.next_pos, table="orders", scope=SCOPES[0], schema=made.schema)
    _applied(lake, 0, made, [*made.events, truncate])
    found = compared(lake, "orders", [*made.events, *checksums, truncate])
    assert (found, lake.rows()) == (Verified(compared=len(made.rows)), [])


def test_a_truncate_in_a_partition_without_checksums(lake: Lake) -> None:
    made, checksums = _made(lake, 3, "orders", SCOPES[:1])
    truncate = change("t", None, pos=made.next_pos, table="orders", scope=SCOPES[1], schema=made.schema)
    _applied(lake, 0, made, made.events)
    DeltaTable(lake.path()).delete()
    found = compared(lake, "orders", [*made.events, *checksums, truncate])
    assert (found.is_equal, found.inconclusive >= len(made.rows)) == (True, True)


@pytest.mark.parametrize("lake_of", [Lake, LocalIcebergLake])
def test_a_tool_that_repeats_a_range(lake_of: type[Lake], tmp_path: Path) -> None:
    """The first position of the run counts, because the repeated run comes after changes that it does not contain."""
    lake = lake_of(tmp_path / "warehouse")
    made, checksums = _made(lake, 4, "orders", SCOPES[:1])
    before = list(made.events)
    made.change(100)
    later = made.events[len(before) :]
    repeated = [*before[-50:], *checksums, *later]
    again = [
        msgspec.structs.replace(event, pos=position(made.next_pos + n, 0), pos_scope=SCOPES[0])
        for n, event in enumerate(repeated)
    ]
    delivered = [*before, *checksums, *later, *again]
    _applied(lake, 0, made, delivered)
    assert compared(lake, "orders", delivered) == Verified(compared=len(rows_after(before)))


def test_the_newest_run_counts(lake: Lake) -> None:
    made, first = _made(lake, 5, "orders", SCOPES[:1])
    before = list(made.events)
    made.change(50)
    second = checksum_events(checksum_rows(made.rows, _columns(), "orders", 2), SCOPES[:1], made.next_pos - 4)
    snapshot = [msgspec.structs.replace(event, op="r", pos=position(1, 0)) for event in second]
    delivered = [*before, *first, *made.events[len(before) :], *second, *snapshot]
    _applied(lake, 0, made, delivered)
    assert compared(lake, "orders", delivered) == Verified(compared=len(made.rows))


def test_a_row_that_the_table_has_twice(lake: Lake) -> None:
    made, checksums = _made(lake, 6, "orders", SCOPES[:1])
    _applied(lake, 0, made, made.events)
    stored = DeltaTable(lake.path()).to_pyarrow_table().slice(3, 1)
    write_deltalake(lake.path(), stored, mode="append")
    found = compared(lake, "orders", [*made.events, *checksums])
    assert found == Verified(compared=len(made.rows), duplicated=[(str(stored["id"][0]),)])


def test_several_rows_of_a_range(lake: Lake) -> None:
    """The range is named, because no single row explains the difference."""
    made, checksums = _made(lake, 7, "orders", SCOPES[:1])
    _applied(lake, 0, made, made.events)
    ranges: dict[str, list[int]] = {}
    for key in made.rows:
        ranges.setdefault(key_hash((str(key),))[:2], []).append(key)
    begin, keys = max(ranges.items(), key=lambda one: len(one[1]))
    DeltaTable(lake.path()).delete(f"id IN ({keys[0]}, {keys[1]})")
    found = compared(lake, "orders", [*made.events, *checksums])
    assert found == Verified(compared=len(made.rows), ranges=[(begin,)])


@pytest.mark.parametrize("count", [1, 2])
def test_swept_rows_that_the_source_has_again(lake: Lake, count: int) -> None:
    """The topic shows neither that a command deleted the rows, nor that the source lacked them at the run."""
    made, _ = _made(lake, 7, "orders", SCOPES[:1])
    ranges: dict[str, list[int]] = {}
    for key in made.rows:
        ranges.setdefault(key_hash((str(key),))[:2], []).append(key)
    swept = max(ranges.values(), key=len)[:count]
    left = {key: row for key, row in made.rows.items() if key not in swept}
    checksums = checksum_events(checksum_rows(left, _columns(), "orders", 1), SCOPES[:1], made.next_pos)
    _applied(lake, 0, made, made.events)
    DeltaTable(lake.path()).delete(f"id IN ({', '.join(map(str, swept))})")
    delivered = [*made.events, *checksums]
    assert compared(lake, "orders", delivered) == Verified(compared=len(left))
    again = [
        change("c", {"id": key}, {"a": "x"}, pos=made.next_pos + 10 + n, schema=made.schema, scope=SCOPES[0])
        for n, key in enumerate(swept)
    ]
    _applied(lake, 1, made, again)
    assert compared(lake, "orders", [*delivered, *again]) == Verified(compared=len(left), inconclusive=count)


def test_an_empty_source(lake: Lake) -> None:
    """The ranges have names, although the run has none."""
    made, _ = _made(lake, 7, "orders", SCOPES[:1])
    checksums = checksum_events(checksum_rows({}, _columns(), "orders", 1), SCOPES[:1], made.next_pos)
    _applied(lake, 0, made, made.events)
    found = compared(lake, "orders", [*made.events, *checksums])
    begins = Counter(key_hash((str(key),))[:2] for key in made.rows)
    assert {(begin,) for begin, count in begins.items() if count > 1} == set(found.ranges)
    assert len(found.extra) == sum(count == 1 for count in begins.values())


def test_columns_that_the_table_no_longer_has(lake: Lake) -> None:
    made, checksums = _made(lake, 8, "orders", SCOPES[:1])
    _applied(lake, 0, made, made.events)
    altered = [
        msgspec.structs.replace(event, after=(event.after or "").replace(r"[\"b\",\"int\"]", r"[\"b\",\"date\"]"))
        for event in checksums
    ]
    with pytest.raises(FatalError, match="column b with type date, but in the table it has int"):
        compared(lake, "orders", [*made.events, *altered])


def test_a_row_that_the_topic_has_only_in_part(lake: Lake) -> None:
    """It is unknown what the row was at the run, because the mirror has only its newest values."""
    schema = lake.announce(schema_of(COLUMNS))
    created = change("c", {"id": 1}, {"a": "x", "b": 1, "c": "1.0000"}, pos=10, schema=schema)
    before, later = (change("u", {"id": 1}, {"b": n}, pos=10 * n, full=False, schema=schema) for n in (2, 3))
    at_run = {1: {"id": 1, "a": "x", "b": 2, "c": "1.0000"}}
    checksums = checksum_events(checksum_rows(at_run, _columns(), "orders", 1), [before.pos_scope], 25)
    lake.apply(0, [created, before, later])
    assert compared(lake, "orders", [created, before, *checksums, later]) == Verified(compared=1)
    found = compared(lake, "orders", [before, *checksums, later], complete=False)
    assert found == Verified(compared=1, inconclusive=1)


@pytest.mark.parametrize(("sent", "other"), [('"row_count":', '"rows":'), (r"{\"key\":", r"{\"keys\":")])
def test_a_table_that_the_job_did_not_create(lake: Lake, sent: str, other: str) -> None:
    made, checksums = _made(lake, 9, "orders", SCOPES[:1])
    _applied(lake, 0, made, made.events)
    altered = [msgspec.structs.replace(one, after=(one.after or "").replace(sent, other)) for one in checksums]
    with pytest.raises(FatalError, match="has other columns than the table that `spark-sink checksums --create`"):
        compared(lake, "orders", [*made.events, *altered])
    # The table has been created correctly since.
    assert compared(lake, "orders", [*made.events, *altered, *checksums]) == Verified(compared=len(made.rows))
