"""The whole sink on a real broker, after half of its state was restored from a backup or its topic was recreated."""

from __future__ import annotations

import shutil
import time

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from dev.servers.broker import Broker
from spark_sink.control_tables.requests import RequestTable
from spark_sink.schema.table_spec import Format
from spark_sink.tables.formats import FormatTables
from spark_sink.tables.protocols import ChangelogTable
from tests.spark_sink.changes import change, schema_of
from tests.spark_sink.sink_process import PATIENCE_SECONDS, Sink

ORDERS = schema_of({"id": "int64", "name": "string"})


def _send(sink: Sink, ids: range) -> None:
    sink.send([ORDERS], [change("c", {"id": n}, {"name": f"row {n}"}, pos=n + 1, schema=ORDERS) for n in ids])


def _run(sink: Sink) -> int:
    return sink.start("--available-now").wait(PATIENCE_SECONDS)


@pytest.mark.integration
@pytest.mark.faults
@pytest.mark.parametrize("format", Format)
def test_a_copy_of_one_half_is_noticed(
    broker: Broker, tmp_path_factory: pytest.TempPathFactory, format: Format
) -> None:
    """The warehouse is restored behind the checkpoint, then the checkpoint behind the warehouse. Both exit with code 2,
    and the steps in the message restore all rows. Otherwise events would be missing: those between the backups, and
    those of batches whose numbers the tables already have.
    """
    folder = tmp_path_factory.mktemp("sink")
    sink = Sink(broker, folder, f"set-back-{format}")
    sink.settings["tables"]["formats"] = {"*": str(format)}
    sink.write_config()
    checkpoint = folder / "checkpoint"
    _send(sink, range(10))
    assert 0 == _run(sink), sink.text()[-3000:]
    shutil.copytree(sink.warehouse, folder / "night")
    _send(sink, range(10, 20))
    assert 0 == _run(sink), sink.text()[-3000:]

    shutil.rmtree(sink.warehouse)
    shutil.copytree(folder / "night", sink.warehouse)
    _send(sink, range(20, 30))
    assert 2 == _run(sink), sink.text()[-3000:]
    assert "the warehouse was rolled back to a state before the checkpoint" in sink.text()
    checkpoint.rename(folder / "moved away")
    assert 0 == _run(sink), sink.text()[-3000:]
    assert [(n, f"row {n}") for n in range(30)] == sink.rows()

    shutil.copytree(checkpoint, folder / "night checkpoint")
    for ids in (range(30, 40), range(40, 50)):
        _send(sink, ids)
        assert 0 == _run(sink), sink.text()[-3000:]
    shutil.rmtree(checkpoint)
    shutil.copytree(folder / "night checkpoint", checkpoint)
    _send(sink, range(50, 60))
    assert 2 == _run(sink), sink.text()[-3000:]
    assert "was rolled back to a state before the warehouse" in sink.text()
    shutil.rmtree(checkpoint)
    assert 0 == _run(sink), sink.text()[-3000:]
    assert [(n, f"row {n}") for n in range(60)] == sink.rows()


@pytest.mark.integration
@pytest.mark.faults
def test_a_topic_that_was_made_again_is_noticed(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The new topic has more records than were read from the old one, so no offset reveals the change. With another
    pipeline and an empty checkpoint, the sink reads all of it into the existing tables.
    """
    folder = tmp_path_factory.mktemp("sink")
    sink = Sink(broker, folder, "made-again")
    _send(sink, range(5))
    assert 0 == _run(sink), sink.text()[-3000:]
    admin = AdminClient({"bootstrap.servers": sink.bootstrap})
    for deleted in admin.delete_topics([sink.topic]).values():
        deleted.result()
    deadline = time.monotonic() + PATIENCE_SECONDS
    while sink.topic in admin.list_topics(timeout=PATIENCE_SECONDS).topics:
        assert time.monotonic() < deadline, "the topic stays"
        time.sleep(0.2)
    for created in admin.create_topics([NewTopic(sink.topic, 2, 1)]).values():
        created.result()
    _send(sink, range(12))
    assert 2 == _run(sink), sink.text()[-3000:]
    assert f"the topic {sink.topic} was deleted and recreated" in sink.text()
    sink.settings |= {"pipeline": "again", "checkpoint": str(folder / "checkpoint-2")}
    sink.write_config()
    assert 0 == _run(sink), sink.text()[-3000:]
    assert [(n, f"row {n}") for n in range(12)] == sink.rows()
    assert 0 == _run(sink), sink.text()[-3000:]


@pytest.mark.integration
@pytest.mark.faults
@pytest.mark.parametrize("format", Format)
def test_a_table_is_rebuilt_from_the_topic(
    broker: Broker, tmp_path_factory: pytest.TempPathFactory, format: Format
) -> None:
    """A table whose folder is missing is parked, and complete again after a rebuild. For another mode, exit code 2
    suggests a rebuild, which the next start executes.
    """
    folder = tmp_path_factory.mktemp("sink")
    sink = Sink(broker, folder, f"rebuild-{format}")
    sink.settings["tables"]["formats"] = {"*": str(format)}
    sink.write_config()
    _send(sink, range(10))
    assert 0 == _run(sink), sink.text()[-3000:]
    shutil.rmtree(f"{sink.warehouse}/shop_sales/orders")
    _send(sink, range(10, 12))
    assert 0 == _run(sink), sink.text()[-3000:]
    (parked,) = [line for line in sink.log() if line["event"] == "table parked"]
    assert "no longer exists" in parked["reason"]
    requests = RequestTable(sink.warehouse, "test")
    requests.ask("rebuild", "shop_sales.orders")
    _send(sink, range(12, 14))
    assert 0 == _run(sink), sink.text()[-3000:]
    assert [(n, f"row {n}") for n in range(14)] == sink.rows()

    sink.settings["tables"]["modes"] = {"*": "changelog"}
    sink.write_config()
    assert 2 == _run(sink), sink.text()[-3000:]
    assert "spark-sink rebuild shop_sales.orders" in sink.text()
    requests.ask("rebuild", "shop_sales.orders")
    assert 0 == _run(sink), sink.text()[-3000:]
    opened = FormatTables(sink.warehouse, formats={"*": format}).open("shop_sales.orders")
    assert isinstance(opened, ChangelogTable)
    assert ["done", "done"] == [request.state for request in requests.requests()]
