"""`spark-sink relayout` gives an existing table its configured layout while other tables continue."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from deltalake import DeltaTable

from cdc_core.envelope import ChangeEvent
from spark_sink.apply.existing_tables import other_layouts
from spark_sink.config.table_rules import TableRules
from spark_sink.control_tables.requests import Request, Requests, State
from spark_sink.errors import Refused
from spark_sink.operations import relayout as relayout_module
from spark_sink.schema.layout import FileLayout
from spark_sink.schema.table_spec import Format, Mode
from spark_sink.tables.delta import relayout as delta_relayout
from spark_sink.tables.delta.relayout import DeltaRelayout
from spark_sink.tables.formats import FormatRelayout
from spark_sink.tables.iceberg.file_layout import partition_in
from spark_sink.tables.table_properties import layout_property
from tests.spark_sink.changes import change, schema_of
from tests.spark_sink.lake import Lake, MergingLake, Topic

NAME, ITEMS = "shop_sales.orders", "shop_sales.items"
TYPES = {"id": "int64", "c": "string", "n": "int32", "d": "date", "a": "string"}

PATHS: Sequence[tuple[Format, dict[str, Any], dict[str, Any]]] = [
    (Format.DELTA, {}, {"partition": ["n"]}),
    (Format.DELTA, {"partition": ["n"]}, {"partition": ["d", "n"], "file_megabytes": 8}),
    (Format.DELTA, {"partition": ["n"]}, {}),
    (Format.DELTA, {"partition": ["n"]}, {"cluster": ["n", "c"]}),
    (Format.DELTA, {"features": ["change_data_feed"]}, {"features": ["deletion_vectors"]}),
    (Format.DELTA, {}, {"features": ["column_mapping"]}),
    (Format.ICEBERG, {}, {"partition": ["n", "month(d)"], "sort": ["n desc"], "file_megabytes": 8}),
    (Format.ICEBERG, {"partition": ["bucket(4, id)", "n"], "sort": ["n"]}, {"partition": ["bucket(8, id)"]}),
    (Format.ICEBERG, {"format_version": 2}, {"format_version": 3, "write_mode": "copy-on-write"}),
    (Format.ICEBERG, {"partition": ["day(d)"], "file_megabytes": 8}, {}),
]


def _use(lake: Lake, layout: dict[str, Any], format: Format = Format.DELTA, **more: Any) -> None:
    lake.use(TableRules(formats={"*": format}, layouts={NAME: FileLayout.of(layout)}, **more))


def _item(pos: int) -> ChangeEvent:
    return change("c", {"id": pos}, {"name": "x"}, pos=pos, table="items")


def _loaded(lake: Lake) -> Topic:
    lake.announce(schema_of(TYPES))
    lake.announce(schema_of({"id": "int64", "name": "string"}, table="items"))
    topic = Topic(lake)
    rows = [{"c": ["x", "", None][id % 3], "n": [1, 2, None][id % 3], "d": f"2024-0{1 + id % 3}-01"} for id in range(6)]
    topic.apply(0, [change("c", {"id": id}, {**row, "a": "old"}, pos=1 + id) for id, row in enumerate(rows)])
    topic.apply(1, [change("u", {"id": 1}, {"a": "new"}, pos=20, full=False), change("d", {"id": 2}, pos=21)])
    topic.apply(2, [_item(1)])
    return topic


def _rows(lake: MergingLake) -> list[dict[str, Any]]:
    read = lake.read().toArrow()
    return sorted(read.to_pylist(), key=lambda row: str(row["id"]))


class _Session:
    """A sink's commands, which keep their state from round to round."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self.requests: Requests = lake.requests()

    def ask(self, command: str = "relayout", table: str = NAME) -> str:
        return self._lake.control.requests.ask(command, table)

    def see(self, id: str) -> Request:
        return next(one for one in self._lake.control.requests.requests() if one.id == id)

    def finish(self, id: str) -> Request:
        for _ in range(1000):
            if self.see(id).ended:
                break
            self.requests.run()
        return self.see(id)


@pytest.mark.parametrize(("format", "before", "after"), PATHS, ids=str)
def test_layouts_that_change(
    merging_lake: MergingLake, format: Format, before: dict[str, Any], after: dict[str, Any]
) -> None:
    """The table keeps its rows and its markers, and has the new layout. Later events are applied to it."""
    lake = merging_lake
    _use(lake, before, format)
    topic = _loaded(lake)
    expected, markers = _rows(lake), lake.commit_markers()
    _use(lake, after, format)
    assert [NAME] == list(other_layouts([NAME, ITEMS], lake.tables))
    session = _Session(lake)
    done = session.finish(session.ask())
    assert (State.DONE, "rewritten in the configured layout; 0 events replayed") == (done.state, done.result)
    assert {} == other_layouts([NAME, ITEMS], lake.tables)
    assert expected == _rows(lake)
    _assert_laid_out(lake, after)
    lake.applier = lake.new_applier("checkpoint-1")
    reports = lake.apply(1, [change("u", {"id": 1}, {"a": "again"}, pos=20, full=False)])
    assert [1] == [report.counters.skipped for report in reports]
    assert {*markers} <= {*lake.commit_markers()} or format is Format.ICEBERG
    topic.apply(3, [change("d", {"id": 0}, pos=30), change("u", {"id": 3}, {"a": "moved", "n": 9, "c": "y"}, pos=31)])
    found = {row["id"]: row["a"] for row in _rows(lake)}
    assert {row["id"]: row["a"] for row in expected if row["id"]} | {3: "moved"} == found


def _assert_laid_out(lake: MergingLake, after: dict[str, Any]) -> None:
    if lake.tables.format(NAME) is Format.DELTA:
        table = DeltaTable(lake.path())
        detail = lake.spark.sql(f"DESCRIBE DETAIL delta.`{lake.path()}`").collect()[0]
        assert after.get("partition", []) == table.metadata().partition_columns
        assert after.get("cluster", []) == list(detail["clusteringColumns"] or [])
        assert ("deletion_vectors" in after.get("features", [])) == ("deletionVectors" in detail["tableFeatures"])
        assert "true" != table.metadata().configuration.get("delta.enableChangeDataFeed")
        return
    metadata = lake.iceberg().metadata
    assert {*after.get("partition", [])} == {str(part) for part in partition_in(metadata).values()}
    assert after.get("format_version", 3) == metadata.format_version
    assert len(after.get("sort", [])) == len(metadata.sort_order().fields)
    assert ("write.target-file-size-bytes" in metadata.properties) == ("file_megabytes" in after)
    tasks = list(lake.iceberg().scan().plan_files())
    assert tasks
    assert {metadata.default_spec_id} == {task.file.spec_id for task in tasks}
    assert not [file for task in tasks for file in task.delete_files]


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """A rewrite starts only when the gate is opened."""
    opened, rewrite = threading.Event(), FormatRelayout.rewrite

    def waiting(self: FormatRelayout, name: str) -> None:
        assert opened.wait(120)
        rewrite(self, name)

    monkeypatch.setattr(FormatRelayout, "rewrite", waiting)
    monkeypatch.setattr(relayout_module, "_LOOK_SECONDS", 0.01)
    yield opened
    opened.set()


def test_other_tables_continue(merging_lake: MergingLake, gate: threading.Event) -> None:
    """Events of the table wait until the rewrite ends, and a command for it as well. Other tables get theirs, and
    maintenance leaves the table out.
    """
    lake = merging_lake
    _use(lake, {})
    topic = _loaded(lake)
    _use(lake, {"partition": ["n"]})
    session = _Session(lake)
    id, later = session.ask(), session.ask("park")
    for batch in range(3, 6):
        assert session.requests.run()
        topic.apply(batch, [change("u", {"id": 1}, {"a": f"{batch}"}, pos=10 * batch, full=False), _item(batch)])
    assert (State.RUNNING, State.QUEUED) == (session.see(id).state, session.see(later).state)
    states = lake.control.requests.read(["id", "state"]).to_pylist()
    assert 1 == sum(row == {"id": id, "state": State.RUNNING} for row in states)
    assert ["new"] == [row["a"] for row in lake.rows() if row["id"] == 1]
    assert 4 == len(lake.rows(ITEMS))
    assert {NAME: "RELAYOUT"} == {name: cause.reason for name, cause in lake.control.held().items()}
    gate.set()
    assert "rewritten in the configured layout; 3 events replayed" == session.finish(id).result
    assert ["5"] == [row["a"] for row in lake.rows() if row["id"] == 1]
    assert State.DONE == session.finish(later).state


def test_maintenance_leaves_it_out(merging_lake: MergingLake, gate: threading.Event) -> None:
    lake = merging_lake
    _use(lake, {})
    topic = _loaded(lake)
    _use(lake, {"partition": ["n"]})
    actions = lake.actions()
    assert not actions.relayout(NAME, None).ended
    assert "nothing to do" == actions.maintain(NAME, None).result
    gate.set()
    while not actions.relayout(NAME, None).ended:
        pass
    topic.apply(3, [change("c", {"id": 77}, {"n": 1}, pos=77)])
    assert "compact" in actions.maintain(NAME, None).result


@pytest.mark.parametrize("format", Format)
@pytest.mark.parametrize("step", ["before", "after the rows"])
def test_a_command_that_is_killed(
    merging_lake: MergingLake, monkeypatch: pytest.MonkeyPatch, format: Format, step: str
) -> None:
    """The next process executes the command again, and events that arrived in between are replayed."""
    lake = merging_lake
    _use(lake, {}, format)
    topic = _loaded(lake)
    expected = _rows(lake)
    _use(lake, {"partition": ["n"]}, format)
    died = threading.Event()

    def dies(self: FormatRelayout, name: str) -> None:
        if step != "before":
            rewrite(self, name)
            # As if the process had ended before it recorded the layout.
            lake.ddl.set_properties(name, {"cdc.layout": "{}"})
        died.set()
        threading.Event().wait()

    rewrite, pool = FormatRelayout.rewrite, relayout_module.ThreadPoolExecutor
    monkeypatch.setattr(FormatRelayout, "rewrite", dies)
    monkeypatch.setattr(relayout_module, "ThreadPoolExecutor", _Daemons)
    killed = _Session(lake)
    id = killed.ask()
    killed.requests.run()
    assert died.wait(120)
    topic.apply(3, [change("u", {"id": 5}, {"a": "meanwhile"}, pos=40, full=False)])
    monkeypatch.setattr(FormatRelayout, "rewrite", rewrite)
    monkeypatch.setattr(relayout_module, "ThreadPoolExecutor", pool)
    lake.use(lake.rules)
    assert "rewritten in the configured layout; 1 events replayed" == _Session(lake).finish(id).result
    ours = [{name: value for name, value in row.items() if not name.startswith("_cdc_")} for row in expected]
    ours[-1]["a"] = "meanwhile"
    assert ours == lake.rows()


@pytest.mark.parametrize("format", Format)
def test_a_change_that_is_taken_back(
    merging_lake: MergingLake, monkeypatch: pytest.MonkeyPatch, format: Format
) -> None:
    """After a change that failed on the way, the former layout is a change as well, and is given to the table."""
    lake = merging_lake
    _use(lake, {}, format)
    _loaded(lake)
    expected, rewrite = _rows(lake), FormatRelayout.rewrite

    def fails(self: FormatRelayout, name: str) -> None:
        rewrite(self, name)
        lake.ddl.set_properties(name, layout_property(FileLayout().while_changing_to(FileLayout())))
        raise OSError("no space left")

    _use(lake, {"partition": ["n"]}, format)
    with monkeypatch.context() as failing:
        failing.setattr(FormatRelayout, "rewrite", fails)
        session = _Session(lake)
        failed = session.finish(session.ask())
    assert "the layout may be partly changed" in str(failed.error)
    assert {} == lake.control.held()
    _use(lake, {}, format)
    (difference,) = other_layouts([NAME], lake.tables)[NAME]
    assert difference == "an earlier change of the layout was interrupted or failed"
    session = _Session(lake)
    assert State.DONE == session.finish(session.ask()).state
    _assert_laid_out(lake, {})
    assert expected == _rows(lake)


def test_a_clustering_that_fails(merging_lake: MergingLake, monkeypatch: pytest.MonkeyPatch) -> None:
    """The table has recorded the columns, but not been clustered by them. The next command does that."""
    lake = merging_lake
    _use(lake, {})
    _loaded(lake)
    expected = _rows(lake)

    def fails(_: FileLayout) -> str:
        raise OSError("no space left")

    _use(lake, {"cluster": ["n"]})
    with monkeypatch.context() as failing:
        failing.setattr(delta_relayout, "placed", fails)
        session = _Session(lake)
        failed = session.finish(session.ask())
    assert "the layout may be partly changed" in str(failed.error)
    session = _Session(lake)
    assert State.DONE == session.finish(session.ask()).state
    _assert_laid_out(lake, {"cluster": ["n"]})
    assert expected == _rows(lake)


def test_a_layout_that_is_removed_meanwhile(merging_lake: MergingLake, gate: threading.Event) -> None:
    """If the sink stops during the rewrite and starts with no layout configured, the table does not stay parked."""
    lake = merging_lake
    _use(lake, {})
    _loaded(lake)
    _use(lake, {"partition": ["n"]})
    session = _Session(lake)
    id = session.ask()
    session.requests.run()
    assert "RELAYOUT" == lake.control.held()[NAME].reason
    lake.use(TableRules())
    again = _Session(lake)
    assert "tables.layout has no entry" in str(again.finish(id).error)
    assert {} == lake.control.held()


class _Daemons:
    """Threads that end with the process, like those of a process that is killed."""

    def __init__(self, *_: object) -> None:
        pass

    def submit(self, work: Any, *arguments: Any) -> Any:
        made: relayout_module.Future[None] = relayout_module.Future()
        threading.Thread(target=work, args=arguments, daemon=True).start()
        return made


@pytest.mark.parametrize(
    ("format", "before", "after", "said"),
    [
        (Format.DELTA, {"features": ["deletion_vectors"]}, {}, "a Delta table keeps deletion_vectors in its protocol"),
        (Format.DELTA, {}, {"partition": ["c"]}, "c has the type string"),
        (
            Format.ICEBERG,
            {},
            {"format_version": 2},
            "the table has format version 3, and Iceberg cannot change it back",
        ),
    ],
)
def test_layouts_that_the_table_cannot_have(
    merging_lake: MergingLake, format: Format, before: dict[str, Any], after: dict[str, Any], said: str
) -> None:
    """The command fails with the reason, and the table continues in its old layout."""
    lake = merging_lake
    _use(lake, before, format)
    topic = _loaded(lake)
    _use(lake, after, format)
    session = _Session(lake)
    failed = session.finish(session.ask())
    assert State.FAILED == failed.state
    assert said in (failed.error or "")
    assert {} == lake.control.held()
    topic.apply(3, [change("d", {"id": 0}, pos=30)])
    assert [1, 3, 4, 5] == [row["id"] for row in _rows(lake)]


def test_a_table_that_is_parked_stays_parked(merging_lake: MergingLake) -> None:
    lake = merging_lake
    _use(lake, {})
    topic = _loaded(lake)
    lake.command("park")
    topic.apply(3, [change("d", {"id": 0}, pos=30)])
    _use(lake, {"partition": ["n"]})
    session = _Session(lake)
    assert "rewritten in the configured layout; it stays parked (COMMAND)" == session.finish(session.ask()).result
    assert ["COMMAND"] == [cause.reason for cause in lake.control.held().values()]
    assert "1 events replayed" == lake.command("resume").result
    assert ["n"] == DeltaTable(lake.path()).metadata().partition_columns


def test_nothing_to_change(merging_lake: MergingLake) -> None:
    lake = merging_lake
    _use(lake, {"partition": ["n"]})
    _loaded(lake)
    before = lake.version()
    assert "it has the configured layout; no event was parked" == lake.command("relayout").result
    assert before == lake.version()
    assert "tables.layout has no entry for shop_sales.items" in (lake.command("relayout", ITEMS).error or "")


@pytest.mark.parametrize("mode", [Mode.HISTORY, Mode.CHANGELOG])
def test_modes(merging_lake: MergingLake, mode: Mode) -> None:
    lake = merging_lake
    _use(lake, {}, modes={NAME: mode})
    topic = _loaded(lake)
    expected = sorted(map(str, _rows(lake)))
    _use(lake, {"partition": ["d"]}, modes={NAME: mode})
    session = _Session(lake)
    assert State.DONE == session.finish(session.ask()).state
    assert expected == sorted(map(str, _rows(lake)))
    topic.apply(3, [change("d", {"id": 0}, pos=30)])
    assert len(_rows(lake)) == len(expected) + 1
    assert ["d"] == DeltaTable(lake.path()).metadata().partition_columns


def test_deleted_rows_stay_deleted(merging_lake: MergingLake) -> None:
    """The remembered position of a deleted row still rejects a late event."""
    lake = merging_lake
    _use(lake, {})
    topic = _loaded(lake)
    _use(lake, {"partition": ["n"]})
    session = _Session(lake)
    session.finish(session.ask())
    topic.apply(3, [change("u", {"id": 2}, {"a": "late"}, pos=19, full=False)])
    assert 2 not in [row["id"] for row in lake.rows()]


def test_a_refusal_is_raised(merging_lake: MergingLake) -> None:
    """A rewrite checks the layout again, because columns can have changed since the table was created."""
    _use(merging_lake, {})
    _loaded(merging_lake)
    with pytest.raises(Refused, match="the table has no column x"):
        DeltaRelayout(merging_lake.spark, str(merging_lake.warehouse))(NAME, FileLayout.of({"partition": ["x"]}))
