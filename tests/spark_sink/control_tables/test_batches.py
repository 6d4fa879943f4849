"""The sink's control tables, without Spark: the manifest, parked events, and the start of a new checkpoint."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import msgspec
import pyarrow as pa
import pytest
from deltalake import DeltaTable

from cdc_core.table_id import TableId
from spark_sink.control_tables import cut
from spark_sink.control_tables.batches import BatchTable, ControlTables
from spark_sink.errors import ConfigError, FatalError, Reason
from spark_sink.events import event_columns
from spark_sink.events.offset_span import NOWHERE, OffsetSpan, merge_spans
from spark_sink.events.parking import Parking
from spark_sink.events.quarantine import Rejected
from spark_sink.events.starting_offsets import starting_offsets
from spark_sink.operations import status
from spark_sink.schema.table_naming import TablePattern
from spark_sink.table_report import Parked, TableReport
from spark_sink.tables.changes import Marker
from spark_sink.tables.delta.tables import DeltaTables
from spark_sink.tables.formats import FormatTables
from tests.spark_sink.records import report

TABLE = TableId("shop", "sales", None, "orders")


def _report(table: str, version: int | None, extent: OffsetSpan) -> TableReport:
    return msgspec.structs.replace(report(table), version=version, extent=extent)


def _records(offsets: Sequence[int]) -> pa.Table:
    columns = {
        "kind": pa.array(["row"] * len(offsets)),
        "partition": pa.array([0] * len(offsets), pa.int32()),
        "offset": pa.array(offsets, pa.int64()),
        "value": pa.array([b"x"] * len(offsets), pa.binary()),
    }
    columns |= {name: pa.array([part] * len(offsets), pa.string()) for name, part in TABLE._asdict().items()}
    return pa.table(columns)


def test_the_manifest(tmp_path: Path) -> None:
    """A row for every batch, once, with offsets, positions and versions over all of its tables; the offsets reached are
    those of all checkpoints of a pipeline and topic."""
    control = ControlTables(str(tmp_path), "p", "one", "t")
    control.create()
    reports = [
        _report("a", 3, OffsetSpan({0: 5, 1: 7}, {0: 10, 1: 8}, {"s": "02", "r": "09"})),
        _report("b", None, OffsetSpan({0: 2}, {0: 12}, {"s": "01"})),
    ]
    for _ in range(2):
        control.batches.write(4, reports)
    control.batches.write(None, [_report("a", 4, OffsetSpan({0: 1}, {0: 99}, {}))])
    BatchTable(str(tmp_path), "p", "two", "t").write(0, [_report("a", 5, OffsetSpan({1: 8}, {1: 20}, {}))])
    BatchTable(str(tmp_path), "other", "two", "t").write(
        0, [_report("z", 5, OffsetSpan({0: 8}, {0: 50}, {}))], parked=1
    )
    assert ({"a"}, {"z"}) == (control.batches.tables(), BatchTable(str(tmp_path), "other", "", "").tables())
    BatchTable(str(tmp_path), "p", "two", "topic before").write(0, [_report("a", 5, OffsetSpan({0: 8}, {0: 60}, {}))])
    rows = DeltaTable(str(tmp_path / "_cdc" / "batches")).to_pyarrow_table().to_pylist()
    (row,) = [row for row in rows if row["batch"] == 4]
    assert [(0, 2), (1, 7)] == row["from_offsets"]
    assert [(0, 12), (1, 8)] == row["to_offsets"]
    assert [("r", "09"), ("s", "02")] == row["positions"]
    assert [("a", 3)] == row["versions"]
    assert {0: 12, 1: 20} == control.batches.reached()


def test_books_that_several_begin_at_once(tmp_path: Path) -> None:
    """Sinks of a warehouse start concurrently and create each control table once."""
    together = Barrier(8)

    def begin(number: int) -> None:
        control = ControlTables(str(tmp_path), f"p{number}", "", "canonical")
        together.wait()
        control.create()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(begin, range(8)))
    assert {0} == {DeltaTable(str(log.parent)).version() for log in tmp_path.rglob("_delta_log")}


def test_the_manifest_tells_what_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once something was parked, every batch names the version at which `_cdc.parked` has what waits behind it; of a
    table that is told twice the last version stands. Rows have an order even when the clock goes back."""
    tables, control = DeltaTables(str(tmp_path)), ControlTables(str(tmp_path), "p", "one", "t")
    control.create()
    refused = report("a", Parked("cause", 2))
    for batch, reports in enumerate([[_report("a", 1, NOWHERE)], [refused], [_report("b", 1, NOWHERE)]]):
        parking = control.begin(batch)
        if refused in reports:
            rows = parking.rows(_records([3, 4]), TABLE, "a", batch, [Rejected(n, Reason.COMMAND, "") for n in (0, 1)])
            tables.park(rows, Marker("p/one/a", batch))
        control.end(batch, reports)
    control.batches.write(None, [_report("a", 2, NOWHERE), _report("a", 3, NOWHERE), _report("a", None, NOWHERE)])
    control.parked.remove("a", control.parked.version())
    monkeypatch.setattr(time, "time_ns", lambda: 0)
    control.begin(3)
    control.end(3, [])
    ControlTables(str(tmp_path), "p", "two", "t").batches.write(0, [])
    rows = sorted(control.batches.rows(), key=lambda row: row.ended_at)
    assert [0, 1, 2, None, 3, 0] == [row.batch for row in rows]
    waits = {"_cdc.parked": 1}
    assert [{"a": 1}, waits, {"b": 1, **waits}, {"a": 3}, {"_cdc.parked": 2}, {}] == [row.versions for row in rows]
    assert ({"a": {0: 3}}, {}) == (control.parked.first_waiting(1), control.parked.first_waiting(2))
    assert (["a"], []) == (list(control.parked.held(1)), list(control.parked.held(2)))
    told = status.status(FormatTables(str(tmp_path)), "p", TablePattern.parse("{table}"))
    assert ["a", "b"] == [table["table"] for table in told["tables"]]


def test_old_rows_become_one(tmp_path: Path) -> None:
    """By topic; what they told together still stands: the last version of each table, over topics and checkpoints, and
    the greatest offsets. Of what another pipeline wrote nothing goes."""
    control = ControlTables(str(tmp_path), "p", "one", "t")
    control.create()
    other = BatchTable(str(tmp_path), "p", "zero", "topic before")
    other.write(7, [_report("a", 9, OffsetSpan({0: 8}, {0: 60}, {}))])
    control.batches.write(0, [_report("a", 3, OffsetSpan({0: 5}, {0: 10}, {})), _report("b", 1, NOWHERE)])
    other.write(8, [_report("b", 2, OffsetSpan({0: 60}, {0: 61}, {}))])
    control.batches.write(1, [_report("a", 5, OffsetSpan({0: 3, 1: 2}, {0: 8, 1: 4}, {}))])
    BatchTable(str(tmp_path), "foreign", "one", "t").write(0, [_report("z", 5, NOWHERE)])
    control.batches.write(2, [_report("c", 1, OffsetSpan({1: 4}, {1: 9}, {}))])
    before = cut.fold(control.batches.rows(), "t"), control.batches.reached(), control.batches.tables()
    assert {"a": 5, "b": 2, "c": 1} == before[0].versions
    assert 2 == control.batches.fold_before(time.time() + 60)
    assert before == (cut.fold(control.batches.rows(), "t"), control.batches.reached(), control.batches.tables())
    assert 3 == len(control.batches.rows())
    assert {"z"} == BatchTable(str(tmp_path), "foreign", "", "").tables()
    with pytest.raises(FatalError, match=r"checkpoint one has no batch 1; existing batches: 2 to 2 of one"):
        cut.fold(control.batches.rows(), "t", 1)


@pytest.mark.parametrize("few", [0, 32], ids=["in columns", "one by one"])
def test_an_extent_is_that_of_its_parts(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The extent does not depend on the distribution of records over tasks. Records other than rows count by offset."""
    monkeypatch.setattr(event_columns, "FEW", few)
    scopes, positions = ["s", "s", None, "r"], ["03", "01", None, "07"]
    records = pa.table(
        {
            "partition": pa.array([0, 0, 1, 1], pa.int32()),
            "offset": pa.array([4, 9, 0, 1], pa.int64()),
            "pos_scope": pa.array(scopes, pa.string()),
            "pos": pa.array(positions, pa.string()),
        }
    )
    whole = OffsetSpan.of(records)
    assert OffsetSpan({0: 4, 1: 0}, {0: 10, 1: 2}, {"s": "03", "r": "07"}) == whole
    assert 6 + 2 == whole.offsets
    assert whole == merge_spans([OffsetSpan.of(records.slice(2)), OffsetSpan.of(records.slice(0, 2))])


def test_where_a_new_checkpoint_begins() -> None:
    """The manifest decides first, then the configuration. Other partitions are read from the beginning. An offset that
    the topic does not have is an error that states it.
    """
    ends = {0: 100, 1: 50}
    assert "latest" == starting_offsets("t", "latest", {}, ends)
    assert {"t": {"0": 7, "1": -2}} == json.loads(starting_offsets("t", {0: 7}, {}, ends))
    assert {"t": {"0": 100, "1": -2}} == json.loads(starting_offsets("t", "latest", {0: 100}, ends))
    with pytest.raises(ConfigError, match=r"input.starting_offsets are past the end of t \(2: 1\)."):
        starting_offsets("t", {2: 1}, {}, ends)
    with pytest.raises(ConfigError, match=r"the manifest are past the end of t \(0: 101\)"):
        starting_offsets("t", "earliest", {0: 101}, ends)


def test_what_is_parked(tmp_path: Path) -> None:
    """Turns increase from batch to batch, even if batch numbers restart, and a marker is appended once. A table is
    parked as long as rows of it wait, for the reason of its first turn.
    """
    tables = DeltaTables(str(tmp_path))
    control = ControlTables(str(tmp_path), "p", "one", "t")
    control.create()
    other = ControlTables(str(tmp_path), "another pipeline", "one", "t")
    turns = []
    for batch, (app, name) in enumerate([("p/one", "a.b"), ("p/one", "it's"), ("p/two", "a.b"), ("p/two", "a.b")]):
        parking = control.begin(batch)
        turns.append(parking.turn)
        assert not parking.again
        reason = Reason.COMMAND if batch > 1 else Reason.TABLE_REFUSED
        rows = parking.rows(_records([batch, batch + 1]), TABLE, name, batch, [Rejected(1, reason, f"cause {batch}")])
        for _ in range(2):
            tables.park(rows, Marker(f"{app}/{name}", batch))
        control.end(batch, [report(name, Parked("cause", 1))])
    assert sorted(set(turns)) == turns
    assert [(turns[0], 1), (turns[2], 1), (turns[3], 1)] == control.parked.turns("a.b")
    held = control.held()
    assert ("TABLE_REFUSED", "cause 0", 3) == (held["a.b"].reason, held["a.b"].detail, held["a.b"].events)
    assert {} == other.held()
    control.parked.remove("a.b", turns[2])
    control.parked.remove("it's", turns[2])
    other.parked.remove("a.b", turns[3])
    control.changed()
    assert ["a.b"] == list(control.held())
    control.end(4, [])
    assert control.begin(6).again


def test_a_parked_table_without_events(tmp_path: Path) -> None:
    """What a command parks is parked before anything comes, and the count of what waits begins at none."""
    control = ControlTables(str(tmp_path), "p", "one", "t")
    control.create()
    control.parked.park("a")
    assert ("COMMAND", 0) == (control.held()["a"].reason, control.held()["a"].events)
    assert Parking().held == {}
