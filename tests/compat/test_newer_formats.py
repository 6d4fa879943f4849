"""State in the format of a later release is rejected before anything is read from it.

The later release is this one, and the earlier release only knows format 0.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from cdc_core import state_format
from cdc_core.table_id import TableId
from dev.servers.broker import Broker
from spark_sink.control_tables.verified import VerifiedTable
from spark_sink.errors import Refused
from spark_sink.schema.evolution import TableColumn, TableShape
from spark_sink.tables.delta import control_tables
from spark_sink.tables.delta.control_tables import rows_of
from spark_sink.tables.table_properties import shape_from, shape_properties
from tests.spark_sink.tables.test_deleted_rows import Commits
from tests.translator.service.test_start_offsets import Bench
from translator.errors import ErrorCode, FatalError
from translator.kafka.admin import TopicAdmin
from translator.message import Message
from translator.state.state_reader import StateReader
from translator.state.state_record import state_record
from translator.translation.dead_letter import DeadLetter, dead_letter_record, read_dead_letter

Earlier = Callable[[], None]


@pytest.fixture
def earlier(monkeypatch: pytest.MonkeyPatch) -> Earlier:
    """A function that changes this release to the earlier one."""
    return lambda: monkeypatch.setattr(state_format, "FORMAT", 0)


@pytest.mark.parametrize(
    ("found", "is_readable"),
    [
        (None, True),
        ("0", True),
        ("1", True),
        ("2", False),
        ("10", False),
        ("", False),
        ("-1", False),
        ("1" * 5000, False),
        ("\u0661", False),
    ],
)
def test_formats(found: str | None, is_readable: bool) -> None:
    assert (state_format.refusal_of(found) is None) == is_readable


def test_a_record_in_a_compacted_topic(broker: Broker, earlier: Earlier) -> None:
    client = {"bootstrap.servers": broker.bootstrap, "log_level": 0}
    topics = TopicAdmin(client)
    name = f"state-{uuid.uuid4().hex[:8]}"
    admin = AdminClient(client)
    admin.create_topics([NewTopic(name, 1, 1)])[name].result(60)
    record = state_record("key", b"{}")
    producer = Producer(client)
    producer.produce(name, record.value, record.key, headers=record.headers)
    producer.produce(name, b"{}", b"from before 0.1.0")
    assert 0 == producer.flush(60)

    def read() -> list[bytes | None]:
        reader = StateReader(client, topics.describe([name]))
        try:
            return [one.key() for one in reader.to_end()]
        finally:
            reader.close()

    assert [b"key", b"from before 0.1.0"] == read()
    earlier()
    with pytest.raises(FatalError, match=f"topic {name}, offset 0, has the format '1' of release "):
        read()


def test_committed_offsets(broker: Broker, earlier: Earlier) -> None:
    bench = Bench(broker)
    bench.commit(0, 5)
    assert 5 == bench.find(0)[0][0]
    earlier()
    with pytest.raises(FatalError, match=f"{bench.topic}, partition 0 has the format '1' of a later release"):
        bench.find(0)


def test_a_dead_letter(earlier: Earlier) -> None:
    """A header with the same name that came with the message does not count."""
    message = Message("raw", 0, 1, 2, b"k", b"v", (("cdc-format", b"7"),), "id")
    record = dead_letter_record(message, DeadLetter(ErrorCode.INTERNAL, "why"), "shop", "0.1.0", 10_000)
    headers = [
        (name, value if value is None or isinstance(value, bytes) else value.encode()) for name, value in record.headers
    ]
    assert read_dead_letter(record.key, record.value, headers) is not None
    earlier()
    with pytest.raises(
        FatalError,
        match=r"the dead letter of topic 'raw', partition 0, offset 1 has the format '1' of release '0\.1\.0'",
    ):
        read_dead_letter(record.key, record.value, headers)


def test_a_foreign_record_is_no_dead_letter() -> None:
    headers = [("cdc-error-code", b"X"), ("cdc-format", b"2"), ("cdc-version", b"9")]
    assert read_dead_letter(b"k", b"v", headers) is None


def test_a_table_of_an_earlier_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, earlier: Earlier) -> None:
    """The start of this release sets the format, so that the earlier release does not start any more."""
    table = VerifiedTable(str(tmp_path), "pipeline")
    with monkeypatch.context() as before:
        before.setattr(control_tables, "format_properties", dict)
        before.setattr(VerifiedTable, "_stamp", lambda _: None)
        table.create()
    assert table.kept_property("cdc.format") is None
    table.create()
    assert "1" == table.kept_property("cdc.format")
    earlier()
    with pytest.raises(FatalError, match="has the format '1'"):
        table.create()


def test_a_table_of_the_sink(tmp_path: Path, earlier: Earlier) -> None:
    table = VerifiedTable(str(tmp_path), "pipeline")
    table.create()
    assert ([], 0) == ([*rows_of(str(tmp_path), table.name, ["table"])], table.version())
    earlier()
    for read in (table.version, lambda: table.append([]), lambda: [*rows_of(str(tmp_path), table.name, ["table"])]):
        with pytest.raises(FatalError, match=f"the table {table.name} has the format '1' of release"):
            read()


def test_a_table(earlier: Earlier) -> None:
    shape = TableShape(TableId("s", "d", None, "t"), (TableColumn("id", "int"),), ("id",))
    properties = shape_properties(shape)
    types = {"id": "int", "_cdc_scope": "string", "_cdc_pos": "string", "_cdc_commit_ts": "timestamp"}
    types |= {"_cdc_updated_at": "timestamp", "_cdc_state": "string", "_cdc_incomplete": "boolean"}
    assert shape.key == shape_from(properties, types).key
    earlier()
    with pytest.raises(Refused, match="the table has the format '1' of release"):
        shape_from(properties, types)


def test_deleted_rows(tmp_path: Path, earlier: Earlier) -> None:
    commits = Commits(tmp_path)
    commits.remember({("a", 1): ("p", 2)})
    assert {("a", 1): ("p", 2)} == commits.found()
    (file,) = tmp_path.rglob("*.parquet")
    footer = json.loads(pq.read_metadata(file).metadata[b"cdc.deleted"])
    later = pq.read_table(file).replace_schema_metadata(
        {"cdc.deleted": json.dumps({**footer, "parts": "of a later release"})}
    )
    pq.write_table(later, file)
    earlier()
    with pytest.raises(FatalError, match=r"the file _cdc/deleted/shop_sales/orders/.*has the format '1' of release"):
        commits.found()
