"""The sink's page shows what `spark-sink` reports for real tables, or why it reports nothing."""

import re
import sys
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest
import yaml
from click.testing import CliRunner

from cdc_core.table_id import TableId
from spark_sink.commands.look import status
from spark_sink.control_tables.batches import ControlTables
from spark_sink.control_tables.verified import Verification, VerifiedTable
from spark_sink.errors import Reason
from spark_sink.events.quarantine import Rejected
from spark_sink.tables.changes import Marker
from spark_sink.tables.delta.tables import DeltaTables
from tests.spark_sink.records import report
from tests.translator.web._serving import served
from tests.translator.web.test_desk import ask
from translator.errors import FatalError
from translator.web.sink_pages import _row
from translator.web.sink_view import SinkConclusion, SinkState, SinkStatus, SinkTable, SinkVerification, SinkView

SHOUTED = TableId("shop", "sales", None, "OR<b>\u202eDERS")


def sink(folder: Path) -> Path:
    """The configuration of a sink that has written one table in a batch and parked another."""
    config = folder / "sink.yaml"
    warehouse = str(folder / "warehouse")
    tables = {"warehouse": warehouse, "exclude": ["shop/*/audit"]}
    settings = {"pipeline": "p", "kafka": {"bootstrap_servers": "b:1"}, "tables": tables, "checkpoint": "/c"}
    config.write_text(yaml.safe_dump(settings))
    control = ControlTables(warehouse, "p", "one", "cdc.canonical")
    control.create()
    control.batches.write(0, [msgspec.structs.replace(report("shop_sales.orders"), version=3)])
    columns = {"kind": ["row"], "value": pa.array([b"secret"]), "partition": pa.array([0]), "offset": pa.array([7])}
    records = pa.table(columns | {part: pa.array([value], pa.string()) for part, value in SHOUTED._asdict().items()})
    why = Rejected(0, Reason.TABLE_CLASH, "a clash")
    rows = control.begin(1).rows(records, SHOUTED, str(SHOUTED), 1, [why])
    DeltaTables(warehouse).park(rows, Marker(f"p/one/{SHOUTED}", 4096))
    return config


def test_tables_batches_and_what_is_parked(tmp_path: Path) -> None:
    """Table names are shown as text, and there is no row data. Without a service, its pages are absent."""
    with served(sink=SinkView(sink(tmp_path))) as address:
        status, text, _ = ask(f"{address}sink")
        others = [ask(address + path)[0] for path in ("status", "letters")]
    assert (200, [404, 404]) == (status, others)
    for part in ("shop_sales.orders</th>", "PARKED", "TABLE_CLASH: a clash", "shop/*/audit", "shop_sales.orders 3"):
        assert part in text, part
    assert "OR&lt;b&gt;\\u202eDERS" in text
    assert "secret" not in text
    # The parked table comes first, with its command. The other one shows its newest batch.
    assert text.index("PARKED") < text.index("shop_sales.orders</th>")
    assert "<code>spark-sink resume &#39;shop/sales//OR&lt;b&gt;\\u202eDERS&#39; -c sink.yaml</code>" in text
    assert re.search(r">\d+ s ago, batch 0</td>", text)
    assert 'aria-current="page">Lakehouse' in text


def test_a_sink_that_cannot_be_asked(tmp_path: Path) -> None:
    """The page shows the error of the sink's program."""
    (tmp_path / "sink.yaml").write_text("pipelin: x")
    with served(sink=SinkView(tmp_path / "sink.yaml")) as address:
        status, text, _ = ask(f"{address}sink")
    assert 503 == status
    assert "unknown setting &#39;pipelin&#39; (did you mean pipeline?)" in text


def test_a_comparison_without_a_result(tmp_path: Path) -> None:
    """It does not hide that an earlier one found rows that differ."""
    config = sink(tmp_path)
    results = VerifiedTable(yaml.safe_load(config.read_text())["tables"]["warehouse"], "p")
    for hour, differing in enumerate((2, None)):
        at = datetime(2026, 11, 28, hour, tzinfo=UTC)
        results.write(Verification("shop_sales.orders", "topic", at, 0, None, 5, differing, 0))
    state = SinkView(config).state()
    assert [2] == [table.verified["topic"].differing for table in state.status.tables if table.verified]
    ran = CliRunner().invoke(status, ["-c", str(config)])
    assert "not verified against topic (on 2026-11-28 00:00:00 UTC, 2 rows differed; on 2026-11-28 01:" in ran.output


def test_output_of_another_form(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page says so. Both programs can be of different releases for a while."""
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\necho '{\"pipeline\": 1}'\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    with pytest.raises(FatalError, match=r"the output of spark-sink \w+ --json is not readable: Expected `str`"):
        SinkView(tmp_path / "sink.yaml").state()


def test_a_sink_that_has_not_written(tmp_path: Path) -> None:
    """Instead of empty tables, the page says what to do."""
    config = sink(tmp_path)
    settings = yaml.safe_load(config.read_text())
    settings["tables"]["warehouse"] = str(tmp_path / "empty")
    config.write_text(yaml.safe_dump(settings))
    ControlTables(str(tmp_path / "empty"), "p", "one", "cdc.canonical").create()
    with served(sink=SinkView(config)) as address:
        status, text, _ = ask(f"{address}sink")
    assert (200, True, False) == (status, "spark-sink run -c sink.yaml" in text, "<table" in text)


_AT = datetime(2026, 11, 28, 12, tzinfo=UTC)


def _verification(
    differing: int | None, *, verified_through: datetime | None = None, left_out: int = 0
) -> SinkVerification:
    """Return a verification by the result of the last conclusive comparison."""
    conclusive = None if differing is None else SinkConclusion(_AT, differing)
    return SinkVerification(_AT, left_out, verified_through, conclusive)


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (_verification(0, verified_through=_AT), "equal to the topic through 2026-11-28 12:00 UTC"),
        (_verification(0, verified_through=_AT, left_out=2), "equal to the topic through 2026-11-28 12:00 UTC, 2 rows"),
        (_verification(3), "3 rows differ from the topic"),
        (_verification(3, verified_through=_AT), "3 rows differ from the topic"),
        (_verification(None), "not verified against the topic"),
    ],
)
def test_the_state_of_a_verification(found: SinkVerification, words: str) -> None:
    table = SinkTable("t", 1, "RELOAD", None, None, 0, {}, {}, {"the topic": found})
    row = _row(table, SinkState(SinkStatus("p", [table], {}, (), ()), (), ()), "my sink.yaml")
    assert row.verified[0].startswith(words)
    assert row.differs == bool(found.differing)
    assert "spark-sink reload t end -c 'my sink.yaml'" == row.command
    assert "not in the newest batches" == row.changed
