"""Statements that change existing rows without row events, in real tables of both formats."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest
from structlog.testing import capture_logs

from cdc_core.envelope import ChangeEvent
from spark_sink.config.table_rules import TableRules
from spark_sink.schema.statement_rules import StatementRules
from spark_sink.schema.table_spec import Mode
from spark_sink.table_report import Done, Parked
from tests.sizes import count
from tests.spark_sink.changes import OTHER_SCOPE, change, schema_of, statement
from tests.spark_sink.lake import Lake
from translator.dialects import build
from translator.message import Limits, Message, Setup, Skip
from translator.translation.translate import Events, Translator

ORDERS = "shop_sales.orders"
SCHEMA = schema_of({"id": "int64", "name": "string"})
WIDER = schema_of({"id": "int64", "name": "string", "extra": "string", "n": "int32"})

GONE, DROPPED = "STATEMENT_NOT_APPLIED", "TABLE_DROPPED"


def insert(id: int, pos: int, name: str = "x", **more: Any) -> Any:
    schema = SCHEMA if "table" not in more and "source" not in more else None
    return change("c", {"id": id}, {"name": name}, pos=pos, schema=schema, **more)


def begin(lake: Lake, **rules: Any) -> None:
    """Write two rows, at positions 1 and 2."""
    lake.use(TableRules(**rules))
    lake.announce(SCHEMA)
    lake.apply(0, [insert(1, 1), insert(2, 2)])


def ids(lake: Lake, table: str = ORDERS) -> list[int]:
    return [row["id"] for row in lake.rows(table)]


class TestParks:
    @pytest.mark.parametrize(("note", "reason"), [(GONE, "ROWS_UNACCOUNTED"), (DROPPED, "TABLE_DROPPED")])
    def test_the_table_waits_from_the_statement_on(self, each_lake_of_format: Lake, note: str, reason: str) -> None:
        """Earlier events are applied, other tables continue, and the statement is the first waiting event."""
        lake = each_lake_of_format
        begin(lake)
        with capture_logs() as logs:
            reports = lake.apply(1, [insert(3, 3), statement(note, pos=4), insert(4, 5), insert(7, 6, table="other")])
        assert ([1, 2, 3], ["7"]) == (ids(lake), ids(lake, "shop_sales.other"))
        assert [(reason, 1), (reason, 2)] == lake.parked()
        assert {ORDERS} == lake.control.held().keys()
        assert [Parked] == [type(report.outcome) for report in reports if report.table == ORDERS]
        (parked,) = [entry for entry in logs if entry["event"] == "table parked"]
        assert note in parked["reason"]

    def test_a_resume_answers_it(self, lake_of_format: Lake) -> None:
        """By then the operator has reloaded the table. The waiting events are applied without parking it again."""
        lake = lake_of_format
        begin(lake)
        lake.apply(1, [statement(GONE, pos=3), insert(3, 4)])
        lake.apply(2, [change("r", {"id": 1}, {"name": "new"}, pos=5, schema=SCHEMA), statement(DROPPED, pos=6)])
        assert "done" == lake.command("resume").state
        assert {} == lake.control.held()
        lake.apply(3, [insert(5, 7)])
        assert [(1, "new"), (2, "x"), (3, "x"), (5, "x")] == [(row["id"], row["name"]) for row in lake.rows()]

    def test_a_batch_that_begins_again(self, lake_of_format: Lake) -> None:
        """A replayed batch neither parks twice nor applies waiting events, even if the table was resumed in between."""
        lake = lake_of_format
        begin(lake)
        events = [insert(3, 3), statement(GONE, pos=4), insert(4, 5)]
        lake.apply(1, events)
        lake.applier = lake.new_applier("checkpoint-1")
        lake.apply(1, events)
        assert ([1, 2, 3], 2) == (ids(lake), len(lake.parked()))
        assert "done" == lake.command("resume").state
        lake.applier = lake.new_applier("checkpoint-1")
        lake.apply(1, events)
        assert ([1, 2, 3, 4], {}) == (ids(lake), lake.control.held())

    def test_a_table_without_rows_goes_on(self, lake: Lake) -> None:
        """A table without rows continues, because most dumps begin with DROP TABLE IF EXISTS before CREATE TABLE."""
        lake.announce(SCHEMA)
        (report,) = lake.apply(0, [statement(DROPPED, pos=1), insert(1, 2)])
        assert isinstance(report.outcome, Done)
        assert [1] == ids(lake)
        lake.apply(1, [statement(DROPPED, pos=3, table="never")])
        assert {} == lake.control.held()

    @pytest.mark.parametrize("same_batch", [True, False])
    def test_rows_that_a_table_never_had(self, lake_of_format: Lake, *, same_batch: bool) -> None:
        """If a table is renamed, nobody has the rows of the new name, although the sink has no such table yet."""
        lake = lake_of_format
        lake.announce(SCHEMA)
        events = [statement(GONE, pos=1), insert(1, 2)]
        for batch, part in enumerate([events] if same_batch else [[event] for event in events]):
            lake.apply(batch, part)
        assert "ROWS_UNACCOUNTED" == lake.control.held()[ORDERS].reason
        assert 2 == len(lake.parked())
        assert "done" == lake.command("resume").state
        assert ([1], {}) == (ids(lake), lake.control.held())

    def test_a_child_that_is_created(self, lake: Lake) -> None:
        """The foreign key is declared before the child has rows. The warning or the parking still happens."""
        begin(lake)
        (report,) = lake.apply(1, [statement("CASCADE_NOT_LOGGED", pos=3, table="child")])
        assert {"CASCADE_NOT_LOGGED": 1} == report.counters.statements
        lake.use(TableRules(statements=StatementRules(park_cascades=True)))
        lake.apply(2, [statement("CASCADE_NOT_LOGGED", pos=4, table="child")])
        assert {"shop_sales.child"} == lake.control.held().keys()

    def test_policies_that_count(self, lake: Lake) -> None:
        """The statement is counted and logged."""
        begin(lake, statements=StatementRules(park_statements=False, drops="keep"))
        with capture_logs() as logs:
            reports = lake.apply(1, [statement(GONE, pos=3), statement(DROPPED, pos=4), insert(3, 5)])
        assert [1, 2, 3] == ids(lake)
        assert {GONE: 1, DROPPED: 1} == reports[0].counters.statements
        assert any(entry["event"] == "statement changed rows without events" for entry in logs)
        count = lake.metrics.registry.get_sample_value
        assert 1 == count("cdc_sink_statements_unaccounted_total", {"table": "other", "note": GONE})

    def test_a_changelog_has_events_and_no_rows(self, lake: Lake) -> None:
        """A changelog is not a copy of the table, so nothing is missing from it."""
        begin(lake, modes={"*": Mode.CHANGELOG})
        filled = statement("DEFAULT_FILLED=extra:string", pos=5, after={"extra": "dd"})
        lake.apply(1, [statement(GONE, pos=3), insert(3, 4), filled])
        assert ({}, []) == (lake.control.held(), lake.quarantine())
        assert [1, 2, 3] == sorted(lake.stored().column("id").to_pylist())

    def test_cascades(self, lake: Lake) -> None:
        """A cascade causes a warning by default."""
        begin(lake)
        (report,) = lake.apply(1, [statement("CASCADE_NOT_LOGGED", pos=3)])
        assert ({"CASCADE_NOT_LOGGED": 1}, {}) == (report.counters.statements, lake.control.held())
        lake.use(TableRules(statements=StatementRules(park_cascades=True)))
        lake.apply(2, [statement("CASCADE_NOT_LOGGED", pos=4)])
        assert [("ROWS_UNACCOUNTED", 0)] == lake.parked()


class TestDrops:
    @pytest.mark.parametrize("mode", [Mode.MIRROR, Mode.HISTORY])
    def test_emptied_at_the_position(self, lake_of_format: Lake, mode: Mode) -> None:
        """As with a truncate, rows of the table created next remain, and a late row of the old one is ignored."""
        lake = lake_of_format
        begin(lake, statements=StatementRules(drops="empty"), modes={"*": mode})
        lake.apply(1, [insert(3, 3), statement(DROPPED, pos=4), insert(2, 5, name="again")])
        lake.apply(2, [insert(3, 3)])
        if mode is Mode.MIRROR:
            assert [(2, "again")] == [(row["id"], row["name"]) for row in lake.rows()]
        else:
            current = [row for row in lake.stored().to_pylist() if row["_cdc_current"]]
            assert [(2, "again")] == [(row["id"], row["name"]) for row in current]

    def test_soft(self, lake: Lake) -> None:
        """Rows remain as deleted rows."""
        begin(lake, statements=StatementRules(drops="empty"), soft_deletes=True)
        lake.apply(1, [statement(DROPPED, pos=3)])
        assert ([], 2) == (ids(lake), lake.stored().num_rows)


class TestAllTables:
    def test_a_dropped_database(self, lake_of_format: Lake) -> None:
        """All existing tables of the database are parked at the end of the batch. A replayed batch changes nothing, and
        a resume continues the tables.
        """
        lake = lake_of_format
        begin(lake)
        lake.apply(1, [insert(7, 3, table="other")])
        events = [insert(3, 4), statement(DROPPED, pos=5, table=None), insert(8, 6, source="elsewhere")]
        lake.apply(2, events)
        assert {ORDERS, "shop_sales.other"} == lake.control.held().keys()
        assert {"TABLE_DROPPED"} == {cause.reason for cause in lake.control.held().values()}
        assert [1, 2, 3] == ids(lake)
        lake.applier = lake.new_applier("checkpoint-1")
        lake.apply(2, events)
        assert 2 == len(lake.parked())
        for table in (ORDERS, "shop_sales.other"):
            assert "done" == lake.command("resume", table).state
        lake.applier = lake.new_applier("checkpoint-1")
        with capture_logs() as logs:
            lake.apply(2, events)
        assert not [entry for entry in logs if entry["event"] == "table parked"]
        lake.apply(3, [insert(9, 8)])
        assert ([1, 2, 3, 9], {}) == (ids(lake), lake.control.held())

    def test_kept(self, lake: Lake) -> None:
        begin(lake, statements=StatementRules(drops="keep"))
        lake.apply(1, [statement(DROPPED, pos=3, table=None)])
        assert {} == lake.control.held()


FILLED = {"extra": "dd", "n": 7}
FILL = ("DEFAULT_FILLED=extra:string", "DEFAULT_FILLED=n:int32")


class TestFills:
    def test_existing_rows_get_the_default(self, lake_of_format: Lake) -> None:
        """Only rows from before the statement change: R1 of the real Canal on a real MariaDB."""
        lake = lake_of_format
        begin(lake)
        lake.announce(WIDER)
        later = change("c", {"id": 3}, {"name": "y", "extra": None, "n": None}, pos=4, schema=WIDER)
        (report,) = lake.apply(1, [statement(*FILL, pos=3, after=FILLED), later])
        assert (2 + 1, {}) == (report.counters.rows, report.counters.statements)
        assert [("dd", 7), ("dd", 7), (None, None)] == [(row["extra"], row["n"]) for row in lake.rows()]
        assert [False] * 3 == lake.stored().column("_cdc_incomplete").to_pylist()
        lake.applier = lake.new_applier("checkpoint-1")
        version = lake.version()
        lake.apply(1, [statement(*FILL, pos=3, after=FILLED), later])
        assert version == lake.version()

    def test_a_replay_under_another_checkpoint(self, lake: Lake) -> None:
        """After the replay, the rows are the same, because of their positions."""
        begin(lake)
        lake.announce(WIDER)
        lake.apply(1, [statement(*FILL, pos=3, after=FILLED)])
        lake.apply(2, [change("u", {"id": 1}, {"name": "y", "extra": "z", "n": 1}, pos=4, schema=WIDER)])
        lake.applier = lake.new_applier("checkpoint-2")
        lake.apply(0, [insert(1, 1), insert(2, 2), statement(*FILL, pos=3, after=FILLED)])
        assert [("z", 1), ("dd", 7)] == [(row["extra"], row["n"]) for row in lake.rows()]

    @pytest.mark.parametrize("mode", [Mode.MIRROR, Mode.HISTORY])
    @pytest.mark.parametrize(
        ("row", "said", "extra", "marked"), [(10, 20, "dd", False), (30, 20, None, False), (20, 20, None, True)]
    )
    def test_rows_of_another_scope(
        self, lake: Lake, mode: Mode, row: int, said: int, extra: str | None, *, marked: bool
    ) -> None:
        """If a statement and rows are in different partitions, commit times decide. Without them, the row is marked."""
        begin(lake, modes={"*": mode})
        lake.apply(1, [insert(3, 90, scope=OTHER_SCOPE, committed=row)])
        lake.apply(2, [statement(FILL[0], pos=3, after={"extra": "dd"}, committed=said)])
        (found,) = [one for one in lake.stored().to_pylist() if one["id"] == 3 and one.get("_cdc_current", True)]
        assert (extra, marked) == (found["extra"], found["_cdc_incomplete"])
        lake.apply(3, [change("u", {"id": 3}, {"name": "z"}, pos=91, full=False, scope=OTHER_SCOPE, committed=40)])
        (found,) = [one for one in lake.stored().to_pylist() if one["id"] == 3 and one.get("_cdc_current", True)]
        assert ("z", extra, marked) == (found["name"], found["extra"], found["_cdc_incomplete"])

    def test_a_history_gets_a_version(self, lake_of_format: Lake) -> None:
        """Each current row gets a version at the position of the statement. Deleted rows get none."""
        lake = lake_of_format
        begin(lake, modes={"*": Mode.HISTORY})
        lake.apply(1, [change("d", {"id": 2}, pos=3), statement(FILL[1], pos=4, after={"n": 7})])
        versions = sorted(lake.stored().to_pylist(), key=lambda row: (row["id"], row["_cdc_pos"]))
        assert [(1, None, False), (1, 7, True)] == [
            (row["id"], row["n"], row["_cdc_current"]) for row in versions if row["id"] == 1
        ]
        assert all(row["n"] is None for row in versions if row["id"] == 2)
        assert "x" == versions[1]["name"]

    def test_the_announced_type_counts(self, lake: Lake) -> None:
        """For a known column, the announced type decides. A value that does not fit it leaves its rows marked."""
        begin(lake)
        lake.announce(schema_of({"id": "int64", "name": "string", "n": "int64", "s": "int32"}))
        notes = ("DEFAULT_FILLED=n:int32", "DEFAULT_FILLED=s:string")
        lake.apply(1, [statement(*notes, pos=3, after={"n": 7, "s": "no number"})])
        assert {"bigint"} == {column.type for column in lake.tables.open(ORDERS).shape.columns if column.name == "n"}  # type: ignore[union-attr]
        assert [True, True] == lake.stored().column("_cdc_incomplete").to_pylist()

    def test_tables_that_share_one(self, lake: Lake) -> None:
        """Only rows of the statement's source table change."""
        lake.use(TableRules(shared={"*": ("*/sales//orders",)}), {"*/sales//orders": "all.orders"})
        lake.announce(SCHEMA)
        lake.apply(0, [insert(1, 1), change("c", {"id": 1}, {"name": "y"}, pos=1, source="second")])
        lake.apply(1, [statement(FILL[0], pos=3, after={"extra": "dd"})])
        assert {("x", "dd"), ("y", None)} == {(row["name"], row["extra"]) for row in lake.rows("all.orders")}


class TestRewrites:
    @pytest.mark.parametrize("note", ["COLUMN_REWRITTEN=name", "COLUMN_REWRITTEN", "COLUMN_RETYPED=name:varchar(5)"])
    def test_rows_are_marked(self, lake_of_format: Lake, note: str) -> None:
        """Rows are marked until a full row arrives."""
        lake = lake_of_format
        begin(lake)
        (report,) = lake.apply(1, [statement(note, pos=3), insert(3, 4)])
        marked = dict(zip(*(lake.stored().column(name).to_pylist() for name in ("id", "_cdc_incomplete")), strict=True))
        assert {1: True, 2: True, 3: False} == marked
        assert {note.partition("=")[0]: 1} == report.counters.statements
        assert ["x", "x", "x"] == [row["name"] for row in lake.rows()]
        lake.apply(2, [change("u", {"id": 1}, {"name": "z"}, pos=5, schema=SCHEMA)])
        marked = dict(zip(*(lake.stored().column(name).to_pylist() for name in ("id", "_cdc_incomplete")), strict=True))
        assert {1: False, 2: True, 3: False} == marked

    def test_versions_are_marked(self, lake: Lake) -> None:
        begin(lake, modes={"*": Mode.HISTORY})
        lake.apply(1, [statement("COLUMN_REWRITTEN=name", pos=3)])
        current = [row for row in lake.stored().to_pylist() if row["_cdc_current"]]
        assert [True, True] == [row["_cdc_incomplete"] for row in current]

    def test_parked(self, lake: Lake) -> None:
        begin(lake, statements=StatementRules(park_rewrites=True))
        lake.apply(1, [statement("COLUMN_REWRITTEN=name", pos=3)])
        assert [("ROWS_UNACCOUNTED", 0)] == lake.parked()

    def test_a_wider_type_changes_nothing(self, lake: Lake) -> None:
        """A wider type changes nothing if all announced schemas confirm it."""
        known = lake.announce(schema_of({"id": "int64", "name": "string"}, natives={"name": "varchar(10)"}))
        lake.apply(0, [change("c", {"id": 1}, {"name": "x"}, pos=1, schema=known)])
        (report,) = lake.apply(1, [statement("COLUMN_RETYPED=name:varchar(20)", pos=3)])
        assert ({}, 0) == (report.counters.statements, report.counters.commits)
        (report,) = lake.apply(2, [statement("COLUMN_RETYPED=name:varchar(5)", pos=4)])
        assert ({"COLUMN_RETYPED": 1}, 1) == (report.counters.statements, report.counters.commits)


class TestMessages:
    """Messages that Canal 1.1.7 sent for a MariaDB 10.11, through the translator into tables."""

    @staticmethod
    def events(lake: Lake, *bodies: dict[str, Any], first: int) -> list[ChangeEvent]:
        """Return the events of messages at offsets from `first`, with their schemas announced."""
        translator = Translator("shop", build("canal", Setup("shop"), {"profile": "oss"}), Limits())
        found = []
        for offset, body in enumerate(bodies, first):
            value = json.dumps({"database": "fk", "table": "parent", "es": 1_000, "ts": 1_000, "old": None, **body})
            result = translator.translate(Message("raw", 0, offset, 0, None, value.encode()))
            if isinstance(result, Skip):
                continue
            assert isinstance(result, Events)
            for schema in result.schemas:
                if schema is not None:
                    lake.announce(schema)
            found += result.events
        return found

    @staticmethod
    def rows(*data: dict[str, str | None], **types: str) -> dict[str, Any]:
        kinds = {"id": "int(11)", "v": "varchar(10)", **types}
        return {"type": "INSERT", "isDdl": False, "data": [*data], "mysqlType": kinds, "pkNames": ["id"], "sql": ""}

    @staticmethod
    def text(type_: str, sql: str, **members: Any) -> dict[str, Any]:
        body = {"type": type_, "isDdl": type_ != "QUERY", "sql": sql, "data": None, "mysqlType": None, "pkNames": None}
        return body | members

    def test_a_day_of_a_table(self, lake_of_format: Lake) -> None:
        """A column with a default is added, a partition is dropped, and finally the table."""
        lake, table = lake_of_format, "shop_fk.parent"
        echo = self.text("QUERY", "insert into parent values (1,'a'),(2,'b')", database="", table="")
        inserts = self.rows({"id": "1", "v": "a"}, {"id": "2", "v": "b"})
        default = self.text("ALTER", "alter table parent add column extra varchar(10) not null default 'dd'")
        later = self.rows({"id": "4", "v": "d", "extra": "q"}, extra="varchar(10)")
        lake.apply(0, self.events(lake, echo, inserts, default, later, first=0))
        assert {1: "dd", 2: "dd", 4: "q"} == {row["id"]: row["extra"] for row in lake.rows(table)}
        assert {False} == {*lake.stored(table).column("_cdc_incomplete").to_pylist()}
        partition = self.text("ALTER", "alter table parent drop partition p0")
        lake.apply(1, self.events(lake, partition, first=4))
        assert "ROWS_UNACCOUNTED" == lake.control.held()[table].reason
        assert "done" == lake.command("resume", table).state
        dropped = self.text("ERASE", "DROP TABLE `parent` /* generated by server */")
        lake.apply(2, self.events(lake, dropped, first=5))
        assert "TABLE_DROPPED" == lake.control.held()[table].reason


class TestAnyHistory:
    """Random histories with statements, split into random batches and partly replayed, against a simple model."""

    SEEDS = range(count(0.12))

    @pytest.mark.parametrize("mode", [Mode.MIRROR, Mode.HISTORY])
    @pytest.mark.parametrize("seed", SEEDS)
    def test_rows_and_marks(self, lake: Lake, seed: int, mode: Mode) -> None:
        random = Random(seed)
        lake.use(TableRules(statements=StatementRules(drops="empty"), modes={"*": mode}))
        lake.announce(WIDER)
        told, model = _history(random)
        cuts = sorted(random.sample(range(1, len(told)), 4))
        begun = 0
        for batch, end in enumerate([*cuts, len(told)]):
            lake.apply(batch, told[begun:end])
            begun = end if random.random() < 0.7 else random.randrange(end)
        lake.apply(len(cuts) + 1, told[begun:] or told)
        stored = lake.stored().to_pylist()
        if mode is Mode.HISTORY:
            stored = [row for row in stored if row["_cdc_current"] and row["_cdc_op"] != "d"]
        found = {row["id"]: (row["name"], row["extra"], row["_cdc_incomplete"]) for row in stored}
        assert model == found


def _history(random: Random) -> tuple[list[ChangeEvent], dict[int, tuple[str | None, str | None, bool]]]:
    """Return events at rising positions, and the resulting rows: name, extra, whether incomplete."""
    told, rows = [], dict[int, tuple[str | None, str | None, bool]]()
    told.append(change("c", {"id": 0}, {"name": "first", "extra": None, "n": None}, pos=1, schema=WIDER))
    rows[0] = ("first", None, False)
    for pos in range(2, 40):
        id, text = random.randrange(6), f"t{pos}"
        kind = random.choice(("write", "write", "write", "patch", "delete", "fill", "mark", "drop"))
        if kind == "write":
            image = {"name": text, "extra": text, "n": None}
            told.append(change("u" if id in rows else "c", {"id": id}, image, pos=pos, schema=WIDER))
            rows[id] = (text, text, False)
        elif kind == "patch" and id in rows:
            told.append(change("u", {"id": id}, {"name": text}, pos=pos, full=False, schema=WIDER))
            rows[id] = (text, *rows[id][1:])
        elif kind == "delete" and id in rows:
            told.append(change("d", {"id": id}, pos=pos))
            del rows[id]
        elif kind == "fill":
            told.append(statement(FILL[0], pos=pos, after={"extra": text}))
            rows = {one: (name, text, incomplete) for one, (name, _, incomplete) in rows.items()}
        elif kind == "mark":
            told.append(statement("COLUMN_REWRITTEN=name", pos=pos))
            rows = {one: (name, extra, True) for one, (name, extra, _) in rows.items()}
        elif kind == "drop" and random.random() < 0.3:
            told.append(statement(DROPPED, pos=pos))
            rows = {}
    return told, rows
