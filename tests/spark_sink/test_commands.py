"""Checks that the command line makes before it sends anything to the running sink."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest
import yaml

from cdc_core.table_id import TableId
from spark_sink.commands import main
from spark_sink.control_tables.batches import ControlTables
from spark_sink.errors import Reason
from spark_sink.events.quarantine import Rejected
from spark_sink.operations.status import BatchReport, CutReport, StatusReport
from spark_sink.tables.changes import Marker
from spark_sink.tables.delta.tables import DeltaTables
from tests.spark_sink.changes import change, schema_of
from tests.spark_sink.lake import Lake
from tests.spark_sink.records import report

SHOUTED = TableId("shop", "sales", None, "ORDERS")


class Prompt:
    """The command line for the tables of a stopped sink."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch, self._capsys = monkeypatch, capsys
        self._config = folder / "sink.yaml"
        warehouse = str(folder / "warehouse")
        settings = {
            "pipeline": "p",
            "kafka": {"bootstrap_servers": "b:1"},
            "tables": {"warehouse": warehouse, "exclude": ["shop/*/audit"]},
            "checkpoint": "/c",
        }
        self._config.write_text(yaml.safe_dump(settings))
        self.control = ControlTables(warehouse, "p", "one", "cdc.canonical")
        self.tables = DeltaTables(warehouse)

    def __call__(self, *arguments: str) -> tuple[int, str]:
        """Return the exit code and the output."""
        self._monkeypatch.setattr(sys, "argv", ["spark-sink", *arguments, "-c", str(self._config)])
        with pytest.raises(SystemExit) as ended:
            main()
        said = self._capsys.readouterr()
        return int(ended.value.code or 0), said.out + said.err

    def park(self, name: str, table: TableId, detail: str) -> None:
        """Park one event of a source table."""
        columns = {"kind": ["row"], "value": pa.array([b"x"]), "partition": pa.array([0]), "offset": pa.array([7])}
        records = pa.table(columns | {part: pa.array([value], pa.string()) for part, value in table._asdict().items()})
        rows = self.control.begin(1).rows(records, table, name, 1, [Rejected(0, Reason.TABLE_CLASH, detail)])
        self.tables.park(rows, Marker(f"p/one/{name}", 4096))


@pytest.fixture
def prompt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Prompt:
    return Prompt(tmp_path, monkeypatch, capsys)


@pytest.fixture
def after_a_run(prompt: Prompt) -> Prompt:
    prompt.control.create()
    prompt.control.batches.write(0, [msgspec.structs.replace(report("shop_sales.orders"), version=3)])
    prompt.park(str(SHOUTED), SHOUTED, "a clash")
    return prompt


def test_before_any_sink_has_run(prompt: Prompt) -> None:
    """Nobody would execute it."""
    assert (
        1,
        "spark-sink: no sink has run on this warehouse yet, because the table _cdc.commands does not exist\n",
    ) == prompt("park", "a")


@pytest.mark.parametrize("command", ["resume", "park", "discard", "sweep"])
@pytest.mark.parametrize(
    ("table", "said"),
    [
        (
            "shop_sales.ordres",
            "table 'shop_sales.ordres' does not exist (did you mean shop_sales.orders?); `spark-sink st",
        ),
        ("nix", "table 'nix' does not exist; `spark-sink status` lists all tables"),
        ("../warehouse", "table '../warehouse' does not exist"),
        ("shop_sales.ORDERS", "table 'shop_sales.ORDERS' does not exist (did you mean shop/sales//ORDERS?)"),
    ],
)
def test_a_table_that_is_not_there(after_a_run: Prompt, command: str, table: str, said: str) -> None:
    """An unknown table is reported immediately with the closest match, and nothing is queued."""
    more = ["--before", "0003"] if command == "sweep" else []
    code, text = after_a_run(command, table, *more)
    assert (2, True, 1) == (code, text.startswith(f"spark-sink: {said}"), len(text.splitlines()))
    assert [] == after_a_run.control.requests.requests()


@pytest.mark.parametrize(
    ("when", "said"),
    [
        (
            "gestern",
            "'gestern' is not a position, a four-digit epoch, or a time such as 2026-01-31T12:00:00+00:00",
        ),
        ("", "'' is not a position"),
        ("2026-01-31T12:00:00", "'2026-01-31T12:00:00' is not a position"),
        ("9999-01-01T00:00:00+00:00", "9999-01-01T00:00:00+00:00 is in the future"),
    ],
)
def test_a_time_that_is_none(after_a_run: Prompt, when: str, said: str) -> None:
    """A time that `sweep` cannot parse is reported immediately."""
    code, text = after_a_run("sweep", "shop_sales.orders", "--before", when)
    assert (2, True) == (code, text.startswith(f"spark-sink: {said}"))
    assert [] == after_a_run.control.requests.requests()


def test_what_is_understood_is_queued(after_a_run: Prompt) -> None:
    """A valid command is queued, by the table's name or the name under which events wait."""
    assert 0 == after_a_run("sweep", "shop_sales.orders", "--before", "2026-01-31T12:00:00+00:00")[0]
    assert 0 == after_a_run("resume", str(SHOUTED))[0]
    assert ["shop_sales.orders", str(SHOUTED)] == [one.target for one in after_a_run.control.requests.requests()]


def test_the_key_of_an_erased_row_is_not_stored(after_a_run: Prompt, tmp_path: Path) -> None:
    """The command reads the key from a file, and queues its digest."""
    path = tmp_path / "key.json"
    path.write_text('{"id": "c7nary"}')
    lake = Lake(tmp_path / "warehouse")
    schema = lake.announce(schema_of({"id": "string"}))
    lake.apply(0, [change("c", {"id": "c7nary"}, {}, pos=1, schema=schema)])
    code, text = after_a_run("erase", "shop_sales.orders", str(path))
    assert (0, True) == (code, "queued as " in text)
    (request,) = after_a_run.control.requests.requests()
    assert ("erase", "shop_sales.orders") == (request.command, request.target)
    assert "c7nary" not in str(request.argument)
    path.write_text('{"nr": 1}')
    wrong = "spark-sink: the key must be a JSON object with the table's key columns (id)\n"
    assert (2, wrong) == after_a_run("erase", "shop_sales.orders", str(path))


def test_status_says_what_to_do(after_a_run: Prompt) -> None:
    """The status shows the resume command for each parked table, and the excluded tables."""
    _, text = after_a_run("status")
    (parked,) = (line for line in text.splitlines() if line.startswith(str(SHOUTED)))
    assert "1 events waiting: TABLE_CLASH: a clash" in parked
    assert "once the cause is fixed, run: spark-sink resume shop/sales//ORDERS -c " in text
    assert "excluded by tables.exclude: shop/*/audit" in text
    found = _of_form(StatusReport, after_a_run("status", "--json")[1])
    assert ["shop/*/audit"] == found["excluded"]
    assert {"batch", "checkpoint", "ended_at"} == found["last_batch"].keys()
    assert [(None, "TABLE_CLASH"), (3, None)] == [(table["version"], table["parked"]) for table in found["tables"]]


def test_batches(after_a_run: Prompt) -> None:
    """Batches are listed newest first, with offsets and table versions. Changes between two batches have no number."""
    newer = [msgspec.structs.replace(report("shop_sales.items"), version=1)]
    after_a_run.control.batches.write(None, newer)
    code, text = after_a_run("batches")
    assert (0, ["between", "batch 0"]) == (code, [line.partition("  ")[0] for line in text.splitlines()])
    assert text.splitlines()[0].endswith("  offsets none  shop_sales.items")
    told = [_of_form(BatchReport, line) for line in after_a_run("batches", "--json")[1].splitlines()]
    assert [(None, {"shop_sales.items": 1}), (0, {"shop_sales.orders": 3})] == [
        (batch["batch"], batch["tables"]) for batch in told
    ]
    assert 1 == len(after_a_run("batches", "--limit", "1")[1].splitlines())


def test_a_mistake_in_the_file_is_exit_code_2(tmp_path: Path) -> None:
    """An invalid configuration leads to one message and exit code 2 before Spark starts."""
    config = tmp_path / "sink.yaml"
    config.write_text("pipelin: x")
    command = [sys.executable, "-m", "spark_sink", "run", "-c", str(config)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert 2 == ended.returncode
    assert "unknown setting 'pipelin' (did you mean pipeline?)" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_maintenance_is_asked_for_or_shown(after_a_run: Prompt) -> None:
    """Without a table, maintenance covers all tables. A dry run requests and changes nothing."""
    code, shown = after_a_run("maintain", "--dry-run")
    assert (0, "_cdc.batches\texpire\ta day has passed") == (code, shown.splitlines()[0])
    assert {"not done yet"} == {line.split("\t")[2] for line in shown.splitlines() if "\tvacuum\t" in line}
    assert 2 == after_a_run("maintain", "shop_sales.orderz", "--dry-run")[0]
    assert [] == after_a_run.control.requests.requests()
    assert 0 == after_a_run("maintain")[0]
    assert 0 == after_a_run("maintain", "_cdc.batches")[0]
    assert ["*", "_cdc.batches"] == [one.target for one in after_a_run.control.requests.requests()]


def test_a_cut_says_how_long_it_can_be_read(after_a_run: Prompt) -> None:
    """The output states how long removed files are kept."""
    cut = _of_form(CutReport, after_a_run("cut")[1])
    ended, until = (datetime.fromisoformat(cut[name]) for name in ("ended_at", "readable_until"))
    assert timedelta(days=7) == until - ended


@pytest.mark.parametrize(
    ("words", "code"), [(["--version"], 0), (["nonsense"], 2), (["run", "--help"], -signal.SIGABRT)]
)
def test_a_finished_command_is_not_aborted(words: list[str], code: int) -> None:
    """A native thread that aborts the interpreter's shutdown changes neither output nor exit code, except of `run`."""
    text = f"import atexit, os, sys; sys.argv[1:] = {words}; atexit.register(os.abort)"
    program = f"{text}; from spark_sink.__main__ import program; program()"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert code == done.returncode, done.stderr
    assert done.stdout or "nonsense" in done.stderr


def _of_form(shape: type, text: str) -> dict[str, Any]:
    """Return an output as JSON, after a check that it has exactly the declared fields."""
    found: dict[str, Any] = json.loads(text)
    assert msgspec.json.decode(text, type=shape).keys() == found.keys()
    return found
