"""`spark-sink reload` shows a load to readers in one commit, or not at all."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from cdc_core.envelope import ChangeEvent
from spark_sink.config.table_rules import TableRules
from spark_sink.control_tables.batches import BatchTable
from spark_sink.control_tables.requests import Request, State
from spark_sink.operations.verify import after_batch
from spark_sink.schema.engine_choice import Engine, EngineRules
from spark_sink.schema.evolution import Policy, ShapeChange
from spark_sink.schema.layout import FileLayout
from spark_sink.schema.table_naming import shadow_of
from spark_sink.schema.table_spec import Format, Mode
from spark_sink.tables.delta.control_tables import ParkedTables
from spark_sink.tables.shadows import Shadows
from tests.repository.pages import page
from tests.spark_sink.changes import OTHER_SCOPE, change, record, schema_of
from tests.spark_sink.lake import Lake, MergingLake, SparkLake
from tests.spark_sink.operations.rebuilt import execute
from tests.spark_sink.operations.test_rebuild_options import CommandLine

ORDERS, ITEMS = "shop_sales.orders", "shop_sales.items"
SCHEMA = schema_of({"id": "int64", "name": "string"})
WIDER = schema_of({"id": "int64", "name": "string", "more": "int32"})
ITEM = schema_of({"id": "int64"}, table="items")

CASES: Sequence[tuple[Format, dict[str, Any], Mode]] = [
    *((Format.DELTA, {}, mode) for mode in (Mode.MIRROR, Mode.HISTORY)),
    # Spark writes the tables from here on.
    (Format.DELTA, {"features": ["deletion_vectors", "change_data_feed"]}, Mode.MIRROR),
    *((Format.ICEBERG, {}, mode) for mode in (Mode.MIRROR, Mode.HISTORY)),
    (Format.ICEBERG, {"write_mode": "copy-on-write", "partition": ["bucket(2, id)"]}, Mode.MIRROR),
]


def _order(op: str, id: int, pos: int, name: str | None = None, **more: Any) -> ChangeEvent:
    after = None if name is None else {"name": name}
    return change(op, {"id": id}, after, pos=pos, **{"schema": SCHEMA, **more})


def _item(id: int, pos: int) -> ChangeEvent:
    return change("c", {"id": id}, {}, pos=pos, schema=ITEM, table="items")


BEFORE = [
    [_order("c", id, id, "old") for id in (1, 2, 3, 4)],
    [_order("c", 11, 1, "old", scope=OTHER_SCOPE), _order("c", 12, 2, "old", scope=OTHER_SCOPE), _order("d", 3, 9)],
]
OLD = {1: "old", 2: "old", 4: "old", 11: "old", 12: "old"}

# The load lacks the rows 4 and 12. Other changes arrive in between, and the table gets a column.
LOAD = [
    [_order("u", 1, 20, "changed"), _item(1, 21), _order("r", 1, 22, "loaded")],
    [
        _order("r", 11, 10, "loaded", scope=OTHER_SCOPE),
        change("r", {"id": 2}, {"name": "loaded", "more": 2}, pos=23, schema=WIDER),
        _order("c", 5, 24, "new"),
        _item(2, 25),
    ],
    [_order("u", 2, 26, "later", full=False), _order("r", 6, 27, "loaded"), _order("d", 6, 28), _order("u", 3, 8, "x")],
]
NEW = {1: "loaded", 2: "later", 5: "new", 11: "loaded"}


def _lake(lake: Lake, case: tuple[Format, dict[str, Any], Mode] = CASES[0], **more: Any) -> None:
    format, layout, mode = case
    for schema in (SCHEMA, ITEM):
        lake.announce(schema)
    layouts = {ORDERS: FileLayout.of(layout)} if layout else {}
    lake.use(TableRules(formats={"*": format}, layouts=layouts, modes={ORDERS: mode}, **more))
    for number, events in enumerate(BEFORE):
        _apply(lake, number, events)
    lake.announce(WIDER)


def _apply(lake: Lake, batch: int, events: Sequence[ChangeEvent]) -> None:
    """Apply a batch of two partitions, one for each scope."""
    columns = {
        "partition": pa.array([int(event.pos_scope == OTHER_SCOPE) for event in events], pa.int32()),
        "offset": pa.array([batch * 100 + number for number in range(len(events))], pa.int64()),
        "value": pa.array([record(event) for event in events], pa.binary()),
    }
    lake.applier(lake.frame(pa.table(columns)), batch)


def _stored(lake: MergingLake) -> list[dict[str, Any]]:
    """Return all rows with their state, except the write time."""
    rows = lake.read().drop("_cdc_updated_at").toArrow().to_pylist()
    return sorted(rows, key=str)


@pytest.fixture(params=Format)
def each_format(request: pytest.FixtureRequest, merging_lake: MergingLake) -> MergingLake:
    merging_lake.formats = {"*": request.param}
    merging_lake.use(TableRules())
    return merging_lake


def _shown(lake: MergingLake) -> dict[int, str]:
    """Return the rows that a reader sees now, by key. A history's rows are those that are current."""
    rows = _stored(lake)
    if lake.rules.form(ORDERS).mode is Mode.HISTORY:
        rows = [row for row in rows if row["_cdc_current"]]
    found = {row["id"]: row["name"] for row in rows if row.get("_cdc_deleted_at") is None}
    assert len(found) == len([row for row in rows if row.get("_cdc_deleted_at") is None])
    return found


def _files(lake: Lake) -> list[Path]:
    """Return the files of the shadow. Without files, an object store has no folders."""
    return [path for path in Path(lake.path(shadow_of(ORDERS))).rglob("*") if path.is_file()]


def _reload(lake: Lake, step: str) -> Request:
    return execute(lake, "reload", ORDERS, step)


def _done(request: Request) -> str:
    assert (State.DONE, None) == (request.state, request.error)
    return request.result or ""


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_reload(merging_lake: MergingLake, case: tuple[Format, dict[str, Any], Mode]) -> None:
    lake = merging_lake
    _lake(lake, case)
    assert "begun" in _done(_reload(lake, "begin"))
    before, version = _stored(lake), lake.version()
    for number, events in enumerate(LOAD):
        _apply(lake, 2 + number, events)
    assert (before, version) == (_stored(lake), lake.version())
    assert [{"id": 1}, {"id": 2}] == lake.rows(ITEMS)
    assert "9 events applied, 2 missing rows deleted" == _done(_reload(lake, "end"))
    assert NEW == _shown(lake)
    assert {2: 2} == {row["id"]: row["more"] for row in _stored(lake) if row["more"] is not None}
    assert ([], []) == (lake.parked(), _files(lake))
    # Deleted rows stay deleted, changes continue, and repeated events change nothing.
    stored = _stored(lake)
    lake.applier = lake.new_applier("checkpoint-2")
    for number, events in enumerate([*BEFORE, *LOAD]):
        _apply(lake, number, events)
    assert stored == _stored(lake)
    _apply(lake, 5, [_order("c", 4, 30, "again"), _order("u", 5, 31, "on")])
    assert {**NEW, 4: "again", 5: "on"} == _shown(lake)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_cancelled(merging_lake: MergingLake, tmp_path: Path, case: tuple[Format, dict[str, Any], Mode]) -> None:
    """The table becomes what it would have become without the reload."""
    lake, other = merging_lake, merging_lake.beside(tmp_path / "other")
    for one in (lake, other):
        _lake(one, case)
    _done(_reload(lake, "begin"))
    for number, events in enumerate(LOAD):
        _apply(lake, 2 + number, events)
        _apply(other, 2 + number, events)
    assert "cancelled; 9 events replayed" == _done(_reload(lake, "cancel"))
    assert _stored(other) == _stored(lake)
    assert {**OLD, **NEW} == _shown(lake)
    assert [] == lake.parked()
    assert "it is not being reloaded" == _done(_reload(lake, "cancel")) == _done(_reload(lake, "end"))


def test_a_comparison_while_a_reload_ends(each_format: MergingLake) -> None:
    """A comparison with the topic needs the rows that match the offsets of its batch."""
    lake = each_format
    _lake(lake, (lake.tables.format(ORDERS), {}, Mode.MIRROR))
    _done(_reload(lake, "begin"))
    for number, events in enumerate(LOAD):
        _apply(lake, 2 + number, events)
    version, apps = lake.version(), lake.control.apps("checkpoint-1")
    _done(_reload(lake, "end"))
    compared = after_batch(lake.tables, ORDERS, version, apps)
    assert compared is not None
    assert {(key,) for key in OLD} == set(compared.live_keys())


def test_deletes_that_are_soft(each_format: MergingLake) -> None:
    """Missing rows stay with their values, and are marked as deleted."""
    lake = each_format
    _lake(lake, (lake.tables.format(ORDERS), {}, Mode.MIRROR), soft_deletes=True)
    _done(_reload(lake, "begin"))
    for number, events in enumerate(LOAD):
        _apply(lake, 2 + number, events)
    _done(_reload(lake, "end"))
    assert NEW == _shown(lake)
    deleted = {row["id"]: row["name"] for row in _stored(lake) if row["_cdc_deleted_at"] is not None}
    assert {3: "old", 4: "old", 6: "loaded", 12: "old"} == deleted


def test_deletes_that_are_soft_from_now_on(each_format: MergingLake) -> None:
    """The first event after the change needs one of the sink's own columns, and the table gets it with the reload."""
    lake = each_format
    _lake(lake, (lake.tables.format(ORDERS), {}, Mode.MIRROR))
    lake.use(replace(lake.rules, soft_deletes=True))
    _done(_reload(lake, "begin"))
    for number, events in enumerate(LOAD):
        _apply(lake, 2 + number, events)
    _done(_reload(lake, "end"))
    assert NEW == _shown(lake)
    assert {3, 4, 6, 12} == {row["id"] for row in _stored(lake) if row["_cdc_deleted_at"] is not None}


def test_a_column_with_a_name_of_the_format(merging_lake: MergingLake) -> None:
    """Iceberg reserves the name, and no pattern in `tables.formats` matches the shadow."""
    lake, wide = merging_lake, schema_of({"id": "int64", "name": "string", "_pos": "int8"})
    lake.formats = {"shop_sales.*": Format.ICEBERG}
    _lake(lake, (Format.DELTA, {}, Mode.MIRROR))
    lake.announce(wide)
    _done(_reload(lake, "begin"))
    _apply(lake, 2, [change("r", {"id": 1}, {"name": "loaded", "_pos": 7}, pos=20, schema=wide)])
    _done(_reload(lake, "end"))
    assert [(1, "loaded", 7)] == [(row["id"], row["name"], row["~5f~pos"]) for row in _stored(lake)]


def test_a_truncate_before_the_load(each_format: MergingLake) -> None:
    """Readers see neither the empty table nor events from before the truncate."""
    lake = each_format
    _lake(lake, (lake.tables.format(ORDERS), {}, Mode.MIRROR), all_scopes=True)
    _done(_reload(lake, "begin"))
    _apply(lake, 2, [change("t", None, pos=20), _order("r", 1, 21, "loaded"), _order("u", 2, 19, "late")])
    assert OLD == _shown(lake)
    _done(_reload(lake, "end"))
    assert {1: "loaded"} == _shown(lake)
    _apply(lake, 3, [_order("u", 4, 18, "late"), _order("c", 7, 22, "new")])
    assert {1: "loaded", 7: "new"} == _shown(lake)


def test_a_history_keeps_its_versions(each_format: MergingLake) -> None:
    lake = each_format
    _lake(lake, (lake.tables.format(ORDERS), {}, Mode.HISTORY))
    before = _stored(lake)
    _done(_reload(lake, "begin"))
    _apply(lake, 2, [_order("r", id, 30 + id, "old") for id in (1, 2)])
    _done(_reload(lake, "end"))
    after = _stored(lake)
    place = ("id", "_cdc_scope", "_cdc_pos")
    kept = {tuple(row[name] for name in place): row["name"] for row in after}
    assert {tuple(row[name] for name in place): row["name"] for row in before}.items() <= kept.items()
    assert {1: "old", 2: "old"} == _shown(lake)
    ends = {row["id"]: row["_cdc_end_op"] for row in after if row["_cdc_op"] == "c" and row["id"] in (4, 11, 12)}
    assert {4: "d", 11: "d", 12: "d"} == ends


def test_what_is_rejected(merging_lake: MergingLake) -> None:
    lake = merging_lake
    _lake(lake)
    assert "it is not being reloaded" == _done(_reload(lake, "end"))
    _done(_reload(lake, "begin"))
    assert "its reload has already begun" == _done(_reload(lake, "begin"))
    version = lake.version()
    for command, argument, why in [
        ("reload", "end", "no event of a load (operation r) is waiting"),
        ("reload", "stop", "unknown step 'stop'"),
        ("resume", None, "it is being reloaded; run `spark-sink reload shop_sales.orders end` or"),
        ("rebuild", None, "it is being reloaded"),
        ("adopt", "shop/sales//others", "it is being reloaded"),
        ("sweep", "0001", "is parked"),
    ]:
        found = execute(lake, command, ORDERS, argument)
        assert (State.FAILED, True) == (found.state, why in (found.error or "")), found
    _apply(lake, 2, [_order("r", 1, 20, "loaded")])
    assert {"RELOAD"} == {cause.reason for cause in lake.control.held().values()}
    assert (version, OLD) == (lake.version(), _shown(lake))
    assert "cancelled; 1 events replayed" == _done(_reload(lake, "cancel"))
    assert "parked" == _done(execute(lake, "park", ORDERS, None))
    assert "it is parked (COMMAND); run `spark-sink resume shop_sales.orders` first" == _reload(lake, "begin").error


@pytest.mark.parametrize("mode", [Mode.MIRROR, Mode.HISTORY])
def test_a_load_that_is_too_old(merging_lake: MergingLake, mode: Mode) -> None:
    """The table would ignore it, as it does under native order without a new epoch."""
    lake = merging_lake
    _lake(lake, (Format.DELTA, {}, mode))
    _done(_reload(lake, "begin"))
    _apply(lake, 2, [_order("r", id, 0, "loaded") for id in (1, 2, 4)])
    failed = _reload(lake, "end")
    assert (State.FAILED, True) == (failed.state, "needs a new epoch" in (failed.error or "")), failed
    assert OLD == _shown(lake)
    _apply(lake, 3, [_order("r", 1, 9, "loaded")])
    _done(_reload(lake, "end"))
    assert {1: "loaded"} == _shown(lake)


@pytest.mark.parametrize(
    ("rules", "why"),
    [
        ({"modes": {ORDERS: Mode.CHANGELOG}}, "it is a changelog, which keeps every event"),
        ({"shared": {ORDERS: ("shop/sales//orders",)}}, "several source tables share it"),
    ],
)
def test_tables_that_cannot_be_reloaded(merging_lake: MergingLake, rules: dict[str, Any], why: str) -> None:
    lake = merging_lake
    lake.announce(SCHEMA)
    lake.use(TableRules(**rules))
    _apply(lake, 0, BEFORE[0])
    found = _reload(lake, "begin")
    assert (State.FAILED, True) == (found.state, why in (found.error or "")), found
    assert {} == lake.control.held()


def test_a_load_that_does_not_fit(merging_lake: MergingLake) -> None:
    """The table stays as it was. Once the cause is fixed, the reload can still end."""
    lake = merging_lake
    _lake(lake)
    rules = lake.rules
    _done(_reload(lake, "begin"))
    for number, events in enumerate(LOAD):
        _apply(lake, 2 + number, events)
    lake.use(replace(rules, policies={**rules.policies, ShapeChange.ADD: Policy.FAIL}))
    failed = _reload(lake, "end")
    assert (State.FAILED, True) == (failed.state, "its events still wait" in (failed.error or "")), failed
    assert (OLD, []) == (_shown(lake), _files(lake))
    lake.use(rules)
    _done(_reload(lake, "end"))
    assert NEW == _shown(lake)


def _failed_after_the_reload(lake: MergingLake, step: str, monkeypatch: pytest.MonkeyPatch) -> Request:
    """Make `cancel` fail, or `end` after it was killed between the new rows and the manifest."""
    if step == "end":
        lake.control.requests.ask("reload", ORDERS, step)
        assert _killed(monkeypatch, (BatchTable, "write", False), lake.requests(100).run)
        lake.announce(_LAST)
        lake.applier = lake.new_applier("checkpoint-1")
        _apply(lake, 5, [change("u", {"id": 5}, {"name": "after", "less": 1}, pos=50, schema=_LAST)])
    lake.use(replace(lake.rules, policies={**lake.rules.policies, ShapeChange.ADD: Policy.FAIL}))
    if step == "cancel":
        return _reload(lake, step)
    while lake.requests(100).run():
        pass
    return lake.control.requests.requests()[-1]


_LAST = schema_of({"id": "int64", "name": "string", "more": "int32", "less": "int32"})


@pytest.mark.parametrize("step", ["cancel", "end"])
def test_events_that_still_wait_after_the_reload(
    merging_lake: MergingLake, tmp_path: Path, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table counts as parked, so an operator notices it, and every command continues with its events."""
    lake = merging_lake
    _lake(lake)
    rules, run = lake.rules, CommandLine(lake, tmp_path)
    _done(_reload(lake, "begin"))
    for number, events in enumerate(LOAD):
        _apply(lake, 2 + number, events)
    failed = _failed_after_the_reload(lake, step, monkeypatch)
    assert (State.FAILED, True) == (failed.state, "is not in the table" in (failed.error or "")), failed
    for again in ("end", "cancel"):
        found = _reload(lake, again)
        assert (State.FAILED, failed.error) == (found.state, found.error)
    _apply(lake, 6, [_item(3, 60)])
    sample = lake.metrics.registry.get_sample_value
    assert (1, 0) == (sample("cdc_sink_parked_tables"), sample("cdc_sink_reloading_tables"))
    shown = str(run("status", "-c", "sink.yaml").output)
    assert "events waiting: RELOAD_ENDED: its reload ended or was canceled" in shown
    assert "once the cause is fixed, run: spark-sink resume shop_sales.orders" in shown
    assert "it is parked (RELOAD_ENDED); run `spark-sink resume" in (_reload(lake, "begin").error or "")
    lake.use(rules)
    _done(execute(lake, "resume", ORDERS, None))
    assert _shown(lake) == ({**OLD, **NEW} if step == "cancel" else {**NEW, 5: "after"})
    assert ([], []) == (lake.parked(), _files(lake))


def test_on_spark(spark_lake: SparkLake) -> None:
    """The waiting events are decoded and applied in Spark's workers, in several slices."""
    lake = spark_lake
    _lake(lake)
    _done(_reload(lake, "begin"))
    for number, events in enumerate(LOAD):
        _apply(lake, 2 + number, events)
    id = lake.control.requests.ask("reload", ORDERS, "end")
    rounds, requests = 1, lake.requests(3)
    while requests.run():
        assert OLD == _shown(lake)
        rounds += 1
    (ended,) = (one for one in lake.control.requests.requests() if one.id == id)
    assert ("9 events applied, 2 missing rows deleted", 3) == (ended.result, rounds), ended.error
    assert NEW == _shown(lake)


def test_a_column_that_is_widened(each_format: MergingLake) -> None:
    """The table's column is widened before the commit with the new rows."""
    lake = each_format
    narrow, wide = (schema_of({"id": "int64", "n": sql}) for sql in ("int32", "int64"))
    lake.announce(narrow)
    lake.use(TableRules(engines=EngineRules({"*": Engine.SPARK})))
    _apply(lake, 0, [change("c", {"id": id}, {"n": id}, pos=id, schema=narrow) for id in (1, 2)])
    lake.announce(wide)
    _done(_reload(lake, "begin"))
    _apply(lake, 1, [change("r", {"id": 1}, {"n": 5_000_000_000}, pos=5, schema=wide)])
    _done(_reload(lake, "end"))
    assert [(1, 5_000_000_000)] == [(row["id"], row["n"]) for row in _stored(lake)]


def test_a_shadow_that_spark_writes(merging_lake: MergingLake) -> None:
    lake = merging_lake
    _lake(lake, engines=EngineRules({"*": Engine.SPARK}))
    _done(_reload(lake, "begin"))
    for number, events in enumerate(LOAD):
        _apply(lake, 2 + number, events)
    assert "9 events applied, 2 missing rows deleted" == _done(_reload(lake, "end"))
    assert NEW == _shown(lake)


def test_a_table_that_was_rolled_back(merging_lake: MergingLake) -> None:
    """The copy of an earlier state would lack rows."""
    lake = merging_lake
    _lake(lake)
    _done(_reload(lake, "begin"))
    for number, events in enumerate(LOAD):
        _apply(lake, 2 + number, events)
    DeltaTable(lake.path()).restore(1)
    failed = _reload(lake, "end")
    assert (State.FAILED, True) == (failed.state, "was rolled back" in (failed.error or "")), failed


def test_the_commands_on_the_page(merging_lake: MergingLake, tmp_path: Path) -> None:
    """Each command on docs/sink/reload.md does what the page says."""
    lake = merging_lake
    _lake(lake)
    text = page("sink/reload.md")
    begin, status, end, cancel = re.findall(r"^ *(?:\$ )?spark-sink (.+ -c sink\.yaml.*)$", text, re.MULTILINE)
    run = CommandLine(lake, tmp_path)

    def said(command: str) -> str:
        ended = run(*shlex.split(command))
        assert 0 == ended.exit_code, ended.exception
        return str(ended.output)

    assert "begun" in said(begin)
    for number, events in enumerate(LOAD):
        _apply(lake, 2 + number, events)
    shown = said(status).replace(str(tmp_path / "sink.yaml"), "sink.yaml")
    assert "9 events waiting\n" in shown
    printed = [re.sub(r"\d+", "0", line) for line in shown.splitlines() if ITEMS not in line]
    assert printed == [
        re.sub(r"\d+", "0", line.strip()) for line in text.split(status)[1].split("```")[0].split("\n")[1:-1]
    ]
    sample = lake.metrics.registry.get_sample_value
    assert (0, 1) == (sample("cdc_sink_parked_tables"), sample("cdc_sink_reloading_tables"))
    assert "9 events applied, 2 missing rows deleted" in said(end)
    assert NEW == _shown(lake)
    said(begin)
    assert "cancelled; no events were waiting" in said(cancel)
    assert (NEW, []) == (_shown(lake), lake.parked())


# The calls at which the sink is killed, in their order, and whether it is killed before or after them.
POINTS: Sequence[tuple[type, str, bool]] = [
    (Shadows, "_mark", False),
    (Shadows, "copy", True),
    (Shadows, "swap", False),
    (Shadows, "_replace", False),
    (Shadows, "_replace", True),
    (BatchTable, "write", True),
    (ParkedTables, "remove", False),
    (ParkedTables, "remove", True),
]


def _killed(monkeypatch: pytest.MonkeyPatch, point: tuple[type, str, bool], run: Callable[[], Any]) -> bool:
    """Run until the sink is killed. Return whether it reached the call."""
    owner, name, after = point
    done = getattr(owner, name)

    def killed(*arguments: Any, **more: Any) -> None:
        if after:
            done(*arguments, **more)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(owner, name, killed)
        try:
            run()
        except KeyboardInterrupt:
            return True
    return False


@pytest.mark.parametrize(
    "case",
    [CASES[0], CASES[4], *(pytest.param(case, marks=pytest.mark.faults) for case in (CASES[1], CASES[3]))],
    ids=str,
)
def test_kills(
    merging_lake: MergingLake,
    tmp_path: Path,
    case: tuple[Format, dict[str, Any], Mode],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A restart repeats the command. Readers see the old rows or the new ones, and nothing is lost or doubled."""
    for number, point in enumerate(POINTS):
        lake = merging_lake.beside(tmp_path / str(number))
        _lake(lake, case)
        _done(_reload(lake, "begin"))
        for batch, events in enumerate(LOAD):
            _apply(lake, 2 + batch, events)
        id = lake.control.requests.ask("reload", ORDERS, "end")
        requests = lake.requests(3)
        assert any(_killed(monkeypatch, point, requests.run) for _ in range(3)), point
        assert _shown(lake) == (OLD if number < 4 else NEW), point
        lake.applier = lake.new_applier("checkpoint-1")
        # The next batch comes before the command.
        _apply(lake, 5, [_order("u", 5, 40, "after"), _item(3, 41)])
        requests = lake.requests(3)
        while requests.run():
            pass
        (ended,) = (one for one in lake.control.requests.requests() if one.id == id)
        assert (State.DONE, None) == (ended.state, ended.error), point
        assert {**NEW, 5: "after"} == _shown(lake), point
        assert ([], []) == (lake.parked(), _files(lake)), point
        assert [1, 2, 3] == [row["id"] for row in lake.rows(ITEMS)]
