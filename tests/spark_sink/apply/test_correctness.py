"""The correctness suite (docs/sink-design.md §6) on real Spark and tables of both formats, compared with a simple
oracle.

Each case is a history in source order and the batches that deliver it. Because a batch is what costs time, all `CASES`
are applied together, each to its own table. Cases that need more are separate tests here or in the places of
`BY_SUBJECT`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import zip_longest
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import msgspec
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from cdc_core.envelope import ChangeEvent
from cdc_core.position import position
from spark_sink.config.table_rules import TableRules
from spark_sink.errors import FatalError
from spark_sink.schema.layout import FileLayout
from spark_sink.schema.table_spec import Format
from spark_sink.tables.formats import FormatMaintenance
from tests.spark_sink.changes import change, schema_of
from tests.spark_sink.conftest import give_catalog
from tests.spark_sink.lake import Lake, MergingLake, rewrite_as_others

COLUMNS = {"id": "int64", "a": "string", "b": "string", "c": "string"}
NATIVE = "native:shop/task"
ROOT = Path(__file__).parents[3]

# Cases of the page that are separate tests, by subject.
BY_SUBJECT = {
    "C2": "tests/chaos/test_sink_kills.py::test_killed_at_every_point",
    "C11": "tests/spark_sink/apply/test_structure_changes_in_a_batch.py::test_columns_come_and_go_in_mid_batch",
    "C12": "tests/spark_sink/apply/test_structure_changes_in_a_batch.py::test_types_are_widened_in_place",
    "C13": "tests/spark_sink/apply/test_edge_values.py::test_values_at_the_edge",
    "C14": "tests/spark_sink/test_operator.py::test_an_operators_day",
    "C15": "tests/spark_sink/apply/test_correctness.py::test_two_drivers_at_once",
    "C16": "tests/spark_sink/test_operator.py::test_an_operators_day",
    "C17": "tests/spark_sink/operations/test_resume.py::test_sweep_after_a_reload",
    "C18": "tests/spark_sink/apply/test_two_sources_one_table.py::test_in_a_lake",
    "C19": "tests/spark_sink/apply/test_correctness.py::test_maintenance_between_batches",
    "C20": "tests/spark_sink/operations/test_resume.py::test_a_table_is_broken_for_long",
    "C21": "tests/spark_sink/apply/test_breadth.py::test_many_tables_in_one_batch",
    "C22": "tests/spark_sink/apply/test_correctness.py::test_a_cut_across_tables",
}

Rows = dict[int, dict[str, Any]]


def oracle(history: Sequence[ChangeEvent]) -> Rows:
    """Return the table after a history: each event once, in source order."""
    rows: Rows = {}
    for event in history:
        if event.op == "t":
            rows.clear()
            continue
        image, key = json.loads(event.after or "{}"), json.loads(event.key or "")["id"]
        before = rows.pop(json.loads(event.key_old or event.key or "")["id"], {})
        if event.op == "u" and event.after_state == "partial":
            rows[key] = {**dict.fromkeys(COLUMNS), **before, **image}
        elif event.op != "d":
            rows[key] = {**dict.fromkeys(COLUMNS), **image}
    return rows


class Case(NamedTuple):
    """A history and its delivery, as indexes into the history. An index that appears twice is a duplicate."""

    history: list[ChangeEvent]
    batches: list[list[int]]


def native(event: ChangeEvent, *, n: int = 0) -> ChangeEvent:
    """Return the event with a native position, so that it can arrive in any order."""
    pos = position(event.origin.offset, n, native=10**30 + event.origin.offset)
    return msgspec.structs.replace(event, pos=pos, pos_scope=NATIVE)


def c(id: int, pos: int, **columns: str | None) -> ChangeEvent:
    return change("c", {"id": id}, {"a": None, "b": None, "c": None, **columns}, pos=pos)


def u(id: int, pos: int, *, old: int | None = None, full: bool = False, **columns: str | None) -> ChangeEvent:
    return change("u", {"id": id}, columns, pos=pos, full=full, key_old=None if old is None else {"id": old})


def d(id: int, pos: int) -> ChangeEvent:
    return change("d", {"id": id}, pos=pos)


def t(pos: int) -> ChangeEvent:
    return change("t", None, pos=pos)


def _all(events: list[ChangeEvent]) -> list[ChangeEvent]:
    return [native(event) for event in events]


LIFE = [
    c(1, 1, a="1"),
    c(2, 2, a="2"),
    u(1, 3, b="x"),
    d(2, 4),
    c(3, 5, a="3"),
    u(3, 6, full=True, a="4", b=None, c=None),
]


def _scrambled(seed: int) -> Case:
    """Return a random order with a quarter of the events duplicated, split anywhere."""
    random = Random(seed)
    history = _all([*LIFE, u(1, 7, a=None), d(3, 8), c(2, 9, c="again"), u(2, 10, a="p"), u(2, 11, b="q")])
    places = random.sample(range(len(history)), len(history)) + random.sample(range(len(history)), 3)
    return Case(history, [places[:5], places[5:9], places[9:]])


CASES: dict[str, Case] = {
    "C1 batches that come again": Case(LIFE, [[0, 1, 2], [0, 1, 2, 3], [3, 4, 5], [0, 1, 2, 3, 4, 5]]),
    **{f"C3 any order, and twice ({seed})": _scrambled(seed) for seed in range(6)},
    "C4 an update that comes after the delete": Case(_all([c(1, 1), u(1, 2, a="x"), d(1, 3)]), [[0, 2], [1], [1]]),
    "C4 a whole update that comes after it": Case(_all([c(1, 1), u(1, 2, full=True, a="x"), d(1, 3)]), [[0, 2], [1]]),
    "C5 insert, delete, insert at one time": Case(
        [native(event, n=n) for n, event in enumerate([c(1, 1, a="1"), d(1, 1), c(1, 1, a="2")])], [[0, 1, 2]]
    ),
    "C5 across batches, backwards": Case(
        [native(event, n=n) for n, event in enumerate([c(1, 1, a="1"), d(1, 1), c(1, 1, a="2")])], [[2], [1], [0]]
    ),
    "C6 NULL is not absent": Case([c(1, 1, a="1", b="2"), u(1, 2, a=None), u(1, 3, c="3")], [[0], [1], [2]]),
    "C6 NULL is not absent, in one batch": Case([c(1, 1, a="1", b="2"), u(1, 2, a=None), u(1, 3, c="3")], [[0, 1, 2]]),
    "C7 a patch before its insert": Case(_all([c(1, 1, a="1", b="2"), u(1, 2, b="3")]), [[1], [0]]),
    "C8 two patches of a row": Case(
        [c(1, 1, a="1", b="2", c="3"), msgspec.structs.replace(u(1, 2, a="4"), unavailable=["c"]), u(1, 3, b="5")],
        [[0], [1, 2]],
    ),
    "C9 a key that changes": Case([c(1, 1, a="1", b="2"), u(7, 2, old=1, b="3")], [[0], [1]]),
    "C9 two keys that change places": Case(
        [c(1, 1, a="1"), c(2, 2, a="2"), u(9, 3, old=1), u(1, 4, old=2), u(2, 5, old=9)], [[0, 1], [2, 3, 4]]
    ),
    "C9 a key that changes, and a delete": Case([c(1, 1, a="1"), u(7, 2, old=1), d(7, 3)], [[0], [1, 2]]),
    "C10 a truncate in mid-batch": Case([c(1, 1), c(2, 2), t(3), c(1, 4, a="new")], [[0, 1, 2, 3]]),
    "C10 an event of before the truncate": Case(
        _all([c(1, 1), u(1, 2, a="x"), c(2, 3), t(4), c(3, 5, a="new")]), [[0, 3, 4], [1, 2]]
    ),
}


@pytest.fixture(scope="module", params=["Delta Lake", "Iceberg", "deletion vectors"])
def delivered(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """Apply all cases, each to its own table, as Delta tables without and with deletion vectors, and Iceberg tables."""
    lake = Lake(tmp_path_factory.mktemp("correctness") / "warehouse")
    if request.param != "Delta Lake":
        lake = MergingLake(request.getfixturevalue("spark"), lake.warehouse)
    if request.param == "Iceberg":
        give_catalog(request, lake)
        lake.use(TableRules(formats={"*": Format.ICEBERG}))
    if request.param == "deletion vectors":
        lake.use(TableRules(layouts={"*": FileLayout.of({"features": ["deletion_vectors"]})}))
    for number in range(len(CASES)):
        lake.announce(schema_of(COLUMNS, table=_table(number)))
    for batch, parts in enumerate(zip_longest(*(case.batches for case in CASES.values()), fillvalue=())):
        sent = []
        for number, (case, places) in enumerate(zip(CASES.values(), parts, strict=True)):
            sent += [msgspec.structs.replace(case.history[place], table=_table(number)) for place in places]
        lake.apply(batch, sent)
    return lake


def _table(number: int) -> str:
    return f"case{number}"


@pytest.mark.parametrize("name", CASES)
def test_case(name: str, delivered: Lake) -> None:
    number = list(CASES).index(name)
    found = {row["id"]: row for row in delivered.rows(f"shop_sales.{_table(number)}")}
    assert oracle(CASES[name].history) == found
    assert [] == delivered.quarantine()
    assert [] == delivered.parked()


def test_two_drivers_at_once(lake_of_format: Lake) -> None:
    """Two jobs of one checkpoint apply the same batches concurrently. One of them may fail and be restarted, and the
    table has each row once.
    """
    lake = lake_of_format
    lake.announce(schema_of(COLUMNS))
    lake.apply(0, [c(0, 0)])
    appliers = [lake.new_applier("checkpoint-1") for _ in range(2)]
    histories = [[c(10 * n + i, 100 * n + i, a=str(i)) for i in range(1, 9)] + [t(100 * n + 9)] for n in range(1, 4)]
    histories[-1] = histories[-1][:-1]
    for batch, events in enumerate(histories, 1):
        records = lake.records(events)
        with ThreadPoolExecutor(2) as pool:
            runs = [pool.submit(applier, records, batch) for applier in appliers]
            failures = [run.exception() for run in runs]
        assert None in failures, failures
        for applier, failure in zip(appliers, failures, strict=True):
            if failure is not None:
                applier(records, batch)  # restarted
    assert oracle([c(0, 0), *(event for events in histories for event in events)]) == {r["id"]: r for r in lake.rows()}
    markers = lake.commit_markers()
    assert len(set(markers)) == len(markers) > len(histories), "a segment was committed twice"


def test_maintenance_between_batches(lake_of_format: Lake, spark: SparkSession) -> None:
    """Between batches, the sink's own libraries and another program compact and remove files. Markers and positions
    survive, and the next batches work.
    """
    lake = lake_of_format
    lake.announce(schema_of(COLUMNS))
    history = [
        event for n in range(5) for event in (c(n, 10 * n, a="1"), c(n + 100, 10 * n + 1), u(n, 10 * n + 2, b="2"))
    ]
    history += [d(100, 60), u(1, 61, c="3")]
    for batch, start in enumerate(range(0, len(history), 3)):
        lake.apply(batch, history[start : start + 3])
        if batch:  # so that something can be compacted
            _maintain(lake, spark, by_others=batch % 2 == 0)
        again = lake.apply(batch, history[start : start + 3])
        assert [0] == [report.counters.commits for report in again]
    assert oracle(history) == {row["id"]: row for row in lake.rows()}


def _maintain(lake: Lake, spark: SparkSession, *, by_others: bool) -> None:
    name = "shop_sales.orders"
    if lake.tables.format(name) is Format.DELTA:
        if by_others:
            spark.sql(f"OPTIMIZE delta.`{lake.path()}`")
            return
        table = DeltaTable(lake.path())
        table.optimize.compact()
        table.vacuum(0, dry_run=False, enforce_retention_duration=False)
        return
    if by_others:
        rewrite_as_others(spark, lake, name)
        return
    files = FormatMaintenance(lake.tables, spark)
    assert files.compact(name, 1 << 20).removed > 0
    assert files.vacuum(name, 0) > 0


def test_a_cut_across_tables(lake_of_format: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Money moves between the rows of two tables, and in every batch the job dies between their commits. At the
    versions in the manifest for a batch, the sum is constant.
    """
    lake = lake_of_format
    lake.use(TableRules())
    tables = ("left", "right")
    for table in tables:
        lake.announce(schema_of({"id": "int64", "amount": "int64"}, table=table))
    balances = {table: dict.fromkeys(range(5), 100) for table in tables}

    def row(table: str, id: int, pos: int) -> ChangeEvent:
        event = change("u" if pos > 9 else "c", {"id": id}, {"amount": balances[table][id]}, pos=pos)
        return msgspec.structs.replace(event, table=table)

    lake.apply(0, [row(table, id, 1) for table in tables for id in range(5)])
    random = Random(1)
    torn = 0
    for batch in range(1, 5):
        events = []
        for transfer in range(6):
            giver, taker, amount = random.randrange(5), random.randrange(5), random.randint(1, 50)
            balances["left"][giver] -= amount
            balances["right"][taker] += amount
            events += [row("left", giver, 100 * batch + transfer), row("right", taker, 100 * batch + transfer)]
        with monkeypatch.context() as patched:
            patched.setattr(lake.control, "end", _died)
            with pytest.raises(FatalError, match="died"):
                lake.apply(batch, [event for event in events if event.table == "left"])
        torn += 1000 != _sum(lake, {})
        lake.apply(batch, events)
    assert torn, "no kill was between two commits"
    cuts = [dict(versions) for versions in lake.control.batches.read(["versions"]).column("versions").to_pylist()]
    assert [1000] * len(cuts) == [_sum(lake, cut) for cut in cuts]


def _died(*_: object) -> None:
    raise FatalError("died")


def _sum(lake: Lake, cut: dict[str, int]) -> int:
    """Return the sum over both tables, at these versions or now."""
    total = 0
    for table in ("shop_sales.left", "shop_sales.right"):
        total += sum(lake.stored(table, cut.get(table)).column("amount").to_pylist())
    return total


def test_every_case_of_the_page_is_there() -> None:
    """Every case of the page is tested here or in the given place."""
    here = {name.split()[0] for name in CASES}
    assert {f"C{number}" for number in range(1, 23)} == here | BY_SUBJECT.keys()
    for place in BY_SUBJECT.values():
        file, test = place.split("::")
        assert re.search(rf"^def {test}\(", (ROOT / file).read_text(), re.MULTILINE), place
