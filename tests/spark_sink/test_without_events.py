"""The metrics of a run that has no events to apply, such as most runs of a CronJob at night."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from dev.servers.broker import Broker
from spark_sink.control_tables.batches import ControlTables
from spark_sink.control_tables.verified import Verification
from tests.otlp_receiver import TOKEN, receiver
from tests.spark_sink.changes import change, schema_of
from tests.spark_sink.sink_process import PATIENCE_SECONDS, Sink

ORDERS = schema_of({"id": "int64", "name": "string"})
NAME = "shop_sales.orders"


@pytest.mark.integration
def test_parked_tables_and_verifications(broker: Broker, tmp_path: Path) -> None:
    """Every report of the run shows the parked table and the result of the last verification."""
    sink = Sink(broker, tmp_path, "without-events")
    sink.send([ORDERS], [change("c", {"id": 1}, {"name": "row"}, pos=1, schema=ORDERS)])
    assert 0 == sink.start("--available-now").wait(PATIENCE_SECONDS), sink.text()[-3000:]
    control = ControlTables(sink.warehouse, "test", "", sink.topic)
    control.parked.park(NAME)
    now = datetime.now(UTC)
    control.verified.write(Verification(NAME, "topic", now, 0, None, 1, 1, 0))
    with receiver() as receiving:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        sink.settings["metrics"] = {"otlp": {"endpoint": receiving.endpoint, "headers": headers, "interval": 1}}
        sink.write_config()
        assert 0 == sink.start("--available-now").wait(PATIENCE_SECONDS), sink.text()[-3000:]
    labels = (("against", "topic"), ("table", NAME))
    for report in receiving.reports:
        assert 1 == report.series["cdc_sink_parked_tables", ()].as_double
        assert 1 == report.series["cdc_sink_verify_differing_rows", labels].as_double
    assert 0 == receiving.newest("cdc_sink_batches_total").as_double
