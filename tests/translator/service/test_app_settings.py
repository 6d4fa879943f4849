"""The settings of Faust and of the clients."""

import asyncio
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import faust
import pytest
from aiokafka.errors import KafkaConnectionError

from dev.servers.certificates import Authority
from dev.servers.identity import TokenEndpoint
from translator.config.settings import Kafka, LatencySettings, Settings, Source, Timing, Web
from translator.kafka.client_config import librdkafka, ssl_context
from translator.kafka.oauth import EndpointTokens
from translator.kafka.producer import producer_config
from translator.kafka.transactional_producer import transactional_config
from translator.service.assembly import transactional_id
from translator.service.faust_settings import checked, faust_settings
from translator.service.faust_transport import attach, batches
from translator.service.start_offsets import offset_lookup_timeout

PLAIN = Kafka(bootstrap_servers="a:1,b:2")
SASL = Kafka(
    bootstrap_servers="a:1",
    security_protocol="SASL_SSL",
    sasl_mechanism="SCRAM-SHA-512",
    sasl_username="user",
    sasl_password="secret",
)


def settings(kafka: Kafka) -> Settings:
    return Settings(kafka=kafka, sources=(Source(name="s", dialect="canal", topics=("raw",)),))


def test_faust_waits_longer_for_places_than_they_take() -> None:
    """After `broker_request_timeout`, Faust continues without start offsets, which can take `timing.delivery`."""
    slow = Timing(delivery=300, rebalance=400)
    for delivery in ("at_least_once", "exactly_once"):
        for timing in (Timing(), slow):
            given = settings(PLAIN).model_copy(update={"delivery": delivery, "timing": timing})
            assert faust_settings(given, "unused")["broker_request_timeout"] > offset_lookup_timeout(given)
    assert offset_lookup_timeout(given) > 300 + 10, "the broker's timeout of a transaction, and how often it looks"


def test_a_process_has_the_transactional_id_of_the_one_before_it() -> None:
    """The same place has the same id, and another place a different one."""
    here = settings(PLAIN)
    beside = here.model_copy(update={"web": Web(port=8081)})
    assert transactional_id(here) == transactional_id(here) != transactional_id(beside)
    assert transactional_id(here).startswith("cdc-translator-")


def test_a_transaction_outlives_its_records() -> None:
    """librdkafka requires the transaction timeout to be at least that of a record."""
    config = transactional_config(producer_config(librdkafka(PLAIN), 40, [1_000_000]), "id", 40)
    assert config["transaction.timeout.ms"] >= config["delivery.timeout.ms"]
    assert config["enable.idempotence"]


def test_every_faust_setting_exists() -> None:
    """Faust silently ignores a misspelled setting. Here it is an error."""
    checked(faust_settings(settings(PLAIN), "unused"))
    with pytest.raises(TypeError, match="brokr"):
        checked({"brokr": "x"})


def test_the_environment_does_not_reach_faust(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    """A variable that Kubernetes sets for a Service called `web` changes nothing."""
    monkeypatch.setenv("WEB_PORT", "tcp://10.0.0.1:80")
    monkeypatch.setenv("BROKER_REQUEST_TIMEOUT", "7")
    app = faust.App("t", **checked(faust_settings(settings(PLAIN), str(tmp_path))))
    assert 8080 == app.conf.web_port
    assert 60.0 == app.conf.broker_request_timeout


def test_all_brokers_reach_both_clients() -> None:
    """Both libraries get every bootstrap server."""
    assert ["kafka://a:1", "kafka://b:2"] == faust_settings(settings(PLAIN), "unused")["broker"]
    assert "a:1,b:2" == librdkafka(PLAIN)["bootstrap.servers"]


def test_login_reaches_both_clients() -> None:
    """SASL settings of one configuration reach librdkafka and aiokafka."""
    config = librdkafka(SASL)
    assert ("SASL_SSL", "SCRAM-SHA-512", "user", "secret") == (
        config["security.protocol"],
        config["sasl.mechanism"],
        config["sasl.username"],
        config["sasl.password"],
    )
    credentials = faust_settings(settings(SASL), "unused")["broker_credentials"]
    assert ("user", "secret") == (credentials.username, credentials.password)
    assert "SASL_SSL" == credentials.protocol.value
    assert "SCRAM-SHA-512" == credentials.mechanism.value
    assert credentials.ssl_context is not None


def test_every_setting_reaches_librdkafka(tmp_path: Path) -> None:
    """The table covers every setting of the block. Secrets are passed unchanged."""
    files = Authority(tmp_path, "ca").issue("client", password="k")
    kafka = Kafka(
        bootstrap_servers="a:1",
        security_protocol="SASL_SSL",
        sasl_mechanism="OAUTHBEARER",
        oauth_token_url="https://identity/token",
        oauth_client_id="c",
        oauth_client_secret="s",
        oauth_scope="o",
        oauth_ca_file=tmp_path / "ca.pem",
        ssl_ca_file=tmp_path / "ca.pem",
        ssl_certificate_file=files[0],
        ssl_key_file=files[1],
        ssl_key_password="k",
    )
    config = librdkafka(kafka)
    own = {"logger", "error_cb"}
    assert {
        "bootstrap.servers": "a:1",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.token.endpoint.url": "https://identity/token",
        "sasl.oauthbearer.client.id": "c",
        "sasl.oauthbearer.client.secret": "s",
        "sasl.oauthbearer.scope": "o",
        "https.ca.location": str(tmp_path / "ca.pem"),
        "ssl.ca.location": str(tmp_path / "ca.pem"),
        "ssl.certificate.location": str(files[0]),
        "ssl.key.location": str(files[1]),
        "ssl.key.password": "k",
    } == {name: value for name, value in config.items() if name not in own}
    other_logins = {"sasl_username", "sasl_password", "oauth_provider", "oauth_provider_options"}
    assert set(Kafka.model_fields) - other_logins == kafka.model_fields_set


def test_tokens_reach_aiokafka(tmp_path: Path) -> None:
    """A token serves many connections and is replaced before it expires."""
    for seconds, asked in ((300, 1), (30, 3)):  # treated as expired a minute early
        with closing(TokenEndpoint(tmp_path, "client", "secret", seconds=seconds)) as endpoint:
            endpoint.start()
            kafka = Kafka(
                bootstrap_servers="a:1",
                security_protocol="SASL_PLAINTEXT",
                sasl_mechanism="OAUTHBEARER",
                oauth_token_url=endpoint.url,
                oauth_client_id="client",
                oauth_client_secret="secret",
            )
            credentials = faust_settings(settings(kafka), "unused")["broker_credentials"]
            assert ("SASL_PLAINTEXT", "OAUTHBEARER") == (credentials.protocol.value, credentials.mechanism.value)
            tokens = [asyncio.run(credentials.oauth_cb.token()) for _ in range(3)]
            assert all(token.count(".") == 2 for token in tokens)
            assert asked == endpoint.asked


def test_no_token() -> None:
    """aiokafka sees a connection failure, which it retries, without the secret."""
    kafka = Kafka(
        bootstrap_servers="a:1",
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="OAUTHBEARER",
        oauth_token_url="http://127.0.0.1:1/token",
        oauth_client_id="client",
        oauth_client_secret="correct horse",
    )
    with pytest.raises(KafkaConnectionError, match=r"no token from kafka\.oauth_token_url") as caught:
        asyncio.run(EndpointTokens(kafka).token())
    assert "correct horse" not in str(caught.value)


def test_a_plain_connection_has_no_context() -> None:
    """Without TLS, there are neither credentials nor a context."""
    assert ssl_context(PLAIN) is None
    assert faust_settings(settings(PLAIN), "unused")["broker_credentials"] is None


def test_the_linger_time_reaches_the_producer() -> None:
    """Every command that writes uses the default. The service passes its setting."""
    assert LatencySettings().linger_ms == producer_config(librdkafka(PLAIN), 40, [1_000_000])["linger.ms"]
    assert 3 == producer_config(librdkafka(PLAIN), 40, [1_000_000], linger_ms=3)["linger.ms"]


def test_the_fetch_wait_reaches_aiokafka() -> None:
    """aiokafka passes the attribute to its fetcher when the consumer starts."""
    drain: Any = None
    positions: Any = SimpleNamespace(note=str)

    async def waits() -> int:
        app = faust.App("g", **checked(faust_settings(settings(PLAIN), "unused")))
        attach(app, drain, positions, None, LatencySettings(fetch_wait_ms=7))
        thread: Any = batches(app)._thread
        client = thread._create_worker_consumer(app.transport)
        client._closed = True  # it was never started
        thread.thread_loop.close()
        found: int = client._fetch_max_wait_ms
        return found

    assert 7 == asyncio.run(waits())


def test_the_producer_cannot_lose_or_reorder() -> None:
    """The producer is idempotent, waits for all replicas, and has our delivery timeout."""
    config = producer_config(librdkafka(PLAIN), 40, [1_000_000])
    assert (True, "all", 40_000, "murmur2_random") == (
        config["enable.idempotence"],
        config["acks"],
        config["delivery.timeout.ms"],
        config["partitioner"],
    )
