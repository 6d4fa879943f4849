"""`spark-sink verify --against checksums`: every fault before a run is found, and nothing else."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from cdc_core.envelope import ChangeEvent
from spark_sink.operations.row_digests import ComparedColumns, key_hash
from spark_sink.operations.verify import Verified
from spark_sink.schema.evolution import TableColumn
from tests.spark_sink.changes import schema_of
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
    pos = len(made.events) * 10 + 6
    checksums = checksum_events(checksum_rows(at_run, _columns(), table, 1), made.scopes, pos)
    made.change(rng.randrange(CHANGES // 2))
    after = made.events[len(before) + (fault == "dropped") - (fault == "doubled") :]
    delivered = _delivered(rng, before, checksums, after)
    for batch, events in enumerate(_batches(rng, delivered)):
        lake.apply(seed * 100 + batch, [event for event in events if event.table == table])
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
