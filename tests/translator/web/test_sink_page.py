"""The sink's page shows what `spark-sink` reports for real tables, or why it reports nothing."""

import re
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest
import yaml

from cdc_core.table_id import TableId
from spark_sink.control_tables.batches import ControlTables
from spark_sink.errors import Reason
from spark_sink.events.quarantine import Rejected
from spark_sink.tables.changes import Marker
from spark_sink.tables.delta.tables import DeltaTables
from tests.spark_sink.records import report
from tests.translator.web._serving import served
from tests.translator.web.test_desk import ask
from translator.web.sink_pages import _row
from translator.web.sink_view import SinkState, SinkStatus, SinkTable, SinkVerification, SinkView

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


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (SinkVerification(_AT, 0, 0, _AT), "equal to the topic through 2026-11-28 12:00 UTC"),
        (SinkVerification(_AT, 0, 2, _AT), "equal to the topic through 2026-11-28 12:00 UTC, 2 rows left out"),
        (SinkVerification(_AT, 3, 0, _AT), "3 rows differ from the topic"),
        (SinkVerification(_AT, None, 0, None), "not verified against the topic"),
    ],
)
def test_the_state_of_a_verification(found: SinkVerification, words: str) -> None:
    table = SinkTable("t", 1, "RELOAD", None, None, 0, {}, {}, {"the topic": found})
    row = _row(table, SinkState(SinkStatus("p", [table], {}, (), ()), (), ()), "my sink.yaml")
    assert row.verified[0].startswith(words)
    assert row.differs == bool(found.differing)
    assert "spark-sink reload t end -c 'my sink.yaml'" == row.command
    assert "not in the newest batches" == row.changed
