"""The catalog of table schemas and the topic that feeds it."""

from __future__ import annotations

import pickle
import time
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from structlog.testing import capture_logs

from cdc_core.kafka_settings import librdkafka_options
from cdc_core.kafka_tokens import Tokens
from cdc_core.table_id import TableId
from dev.servers.broker import Broker
from spark_sink.config.spark_kafka_options import SparkKafka
from spark_sink.errors import ConfigError, FatalError
from spark_sink.schema import catalog
from spark_sink.schema.catalog import SchemaCatalog, SchemaReader
from tests.spark_sink.changes import announced, schema_of
from tests.token_providers import install

ORDERS = TableId("shop", "sales", None, "orders")
ONE = schema_of({"id": "int64"})
TWO = schema_of({"id": "int64", "n": "int32"})


def test_latest_is_the_last_announced() -> None:
    """Events without a schema use the last announced one, even if it was announced before."""
    catalog = SchemaCatalog()
    assert catalog.latest(ORDERS) is None
    for schema in (ONE, TWO, ONE):
        catalog.add(schema)
    assert ONE == catalog.latest(ORDERS)
    assert TWO == catalog.find(ORDERS, TWO.id)
    assert catalog.find(ORDERS, "unheard") is None


def test_a_catalog_travels() -> None:
    """The catalog is serialized completely and in order each time. It is packed again only after a change."""
    catalog = SchemaCatalog()
    for schema in (ONE, TWO, ONE):
        catalog.add(schema)
    joined = catalog.joined(TableId("all", None, None, "orders"), [ORDERS])
    for known in (catalog, joined):
        there = pickle.loads(pickle.dumps(known))
        assert (known.tables(), ONE) == (there.tables(), there.latest(known.tables()[-1]))
        assert TWO == there.find(known.tables()[-1], TWO.id)
    packed = catalog.__getstate__()
    assert packed is catalog.__getstate__()
    catalog.add(TWO)
    assert TWO == pickle.loads(pickle.dumps(catalog)).latest(ORDERS)


def test_reads_to_the_end_each_time(broker: Broker) -> None:
    """Each refresh reads everything written before it. An unreadable schema and a tombstone do no harm."""
    topic = "sink-schemas"
    reader = SchemaReader({"bootstrap.servers": broker.bootstrap}, topic)
    try:
        assert [] == reader.refresh().tables()
        _create(broker, topic, 1)
        producer = Producer({"bootstrap.servers": broker.bootstrap})
        assert [] == reader.refresh().tables()
        producer.produce(topic, announced(ONE), ONE.topic_key)
        producer.flush()
        assert ONE == reader.refresh().latest(ORDERS)
        for value in (b"{", None, announced(TWO)):
            producer.produce(topic, value, TWO.topic_key)
        producer.flush()
        assert TWO == reader.refresh().latest(ORDERS)
        assert TWO == reader.refresh().latest(ORDERS)
    finally:
        reader.close()


def test_while_no_broker_answers(
    free_port: int, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """An outage is logged once, and so is its end. librdkafka, which would log it many times per second, is silent."""
    monkeypatch.setattr(catalog, "_ATTEMPT_SECONDS", 0.5)
    kafka = SparkKafka(bootstrap_servers=f"127.0.0.1:{free_port}")
    reader = SchemaReader(librdkafka_options(kafka), "none")
    refused = rf"127.0.0.1:{free_port}/bootstrap: Connect to ipv4#127.0.0.1:{free_port} failed: Connection refused"
    with capture_logs() as logs, pytest.raises(FatalError, match=rf"^no broker responded within 3 s: {refused}$"):
        reader.reach(3.0)
    reader.close()
    assert [{"event": "waiting for a broker", "reason": refused, "log_level": "warning"}] == logs
    assert ("", "") == capfd.readouterr()


def test_no_login_token_is_a_fatal_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that does not wait for a broker ends with the provider's reason."""
    monkeypatch.syspath_prepend(str(tmp_path))
    install(tmp_path, "tokenless", "def Issued():\n    return lambda: {}['token']", distribution="tokenless")
    reader = SchemaReader({"oauth_cb": Tokens("tokenless", {})}, "schemas")
    for read in (reader.refresh, lambda: reader.begins("events"), lambda: reader.ends("events")):
        with pytest.raises(FatalError, match=r"token provider tokenless failed: KeyError: 'token'$"):
            read()
    reader.close()


@pytest.mark.parametrize("count", ["", ", 1 identical error(s) suppressed"])
def test_the_count_of_repeated_errors_is_left_out(count: str) -> None:
    """The count contains parentheses, too."""
    reader = SchemaReader({"bootstrap.servers": "127.0.0.1:1"}, "none")
    refused = "b:1/bootstrap: Connect to ipv4#127.0.0.1:1 failed: Connection refused"
    reader._complain(KafkaError(KafkaError._TRANSPORT, f"{refused} (after 0ms in state CONNECT{count})"))
    complaint = reader._complaint
    reader.close()
    assert refused == complaint


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        ("b: SASL PLAIN mechanism handshake failed: Local: Broker transport failure: broker's supported", False),
        ("b: SASL PLAIN mechanism handshake failed: Broker: Request not valid in current SASL state: broker's", False),
        ("b: SASL PLAIN mechanism handshake failed: Broker: Unsupported SASL mechanism: broker's supported", True),
        ("b: SASL authentication error: Authentication failed: Invalid username or password", True),
    ],
)
def test_a_login_that_is_interrupted_is_no_refusal(text: str, refused: bool) -> None:
    """The client connects again when the connection ended during a login, or a second login came too soon."""
    assert refused == (catalog._REFUSED.search(text) is not None)


def test_more_than_one_partition_is_an_error(broker: Broker) -> None:
    """Schemas are ordered, and only a single partition preserves the order."""
    topic = "sink-schemas-wide"
    reader = SchemaReader({"bootstrap.servers": broker.bootstrap}, topic)
    try:
        _create(broker, topic, 2)
        _await({0: 0, 1: 0}, reader, topic)  # the broker does not know a new topic at first
        with pytest.raises(ConfigError, match="2 partitions"):
            reader.refresh()
    finally:
        reader.close()


def test_where_a_topic_ends(broker: Broker) -> None:
    """A partition ends after its last readable record. Transaction markers are before the end, and an open transaction
    and records after it are not. A missing topic has no partitions.
    """
    topic = "sink-schemas-ends"
    reader = SchemaReader({"bootstrap.servers": broker.bootstrap}, "none")
    try:
        assert {} == reader.ends(topic)
        _create(broker, topic, 3)
        _await({0: 0, 1: 0, 2: 0}, reader, topic)
        plain = Producer({"bootstrap.servers": broker.bootstrap})
        producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": topic})
        producer.init_transactions()
        for end in (producer.commit_transaction, producer.abort_transaction):
            producer.begin_transaction()
            for partition in (0, 2, 2):
                producer.produce(topic, b"x", partition=partition)
            producer.flush()
            plain.produce(topic, b"x", partition=0)
            plain.flush()
            before = reader.ends(topic)
            end()
        assert {0: 3, 1: 0, 2: 3} == before
        # The broker completes a transaction after its response, in one partition before the other.
        _await({0: 6, 1: 0, 2: 6}, reader, topic)
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        (deleted,) = admin.delete_records([TopicPartition(topic, 2, 4)]).values()
        deleted.result()
        assert {0: 0, 1: 0, 2: 4} == reader.begins(topic)
        assert {} == reader.begins("none")
    finally:
        reader.close()


def _await(wanted: dict[int, int], reader: SchemaReader, topic: str) -> None:
    deadline = time.monotonic() + 60
    while (ends := reader.ends(topic)) != wanted and time.monotonic() < deadline:
        pass
    assert wanted == ends


def _create(broker: Broker, topic: str, partitions: int) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result()
