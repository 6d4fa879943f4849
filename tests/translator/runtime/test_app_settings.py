"""What Faust and the clients are told."""

import faust
import pytest

from translator.runtime.app import _checked, _faust_settings
from translator.runtime.connection import librdkafka, ssl_context
from translator.runtime.delivery import producer_config
from translator.settings import Kafka, Settings, Source

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


def test_every_faust_setting_exists() -> None:
    """Faust ignores a misspelt setting without a word; here it is an error."""
    _checked(_faust_settings(settings(PLAIN), "unused"))
    with pytest.raises(TypeError, match="brokr"):
        _checked({"brokr": "x"})


def test_the_environment_does_not_reach_faust(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    """A variable that Kubernetes injects for a Service called `web` changes nothing."""
    monkeypatch.setenv("WEB_PORT", "tcp://10.0.0.1:80")
    monkeypatch.setenv("BROKER_REQUEST_TIMEOUT", "7")
    app = faust.App("t", **_checked(_faust_settings(settings(PLAIN), str(tmp_path))))
    assert 8080 == app.conf.web_port
    assert 60.0 == app.conf.broker_request_timeout


def test_all_brokers_reach_both_clients() -> None:
    """Both libraries get every bootstrap server."""
    assert ["kafka://a:1", "kafka://b:2"] == _faust_settings(settings(PLAIN), "unused")["broker"]
    assert "a:1,b:2" == librdkafka(PLAIN)["bootstrap.servers"]


def test_login_reaches_both_clients() -> None:
    """SASL settings of one configuration reach librdkafka and aiokafka alike."""
    config = librdkafka(SASL)
    assert ("SASL_SSL", "SCRAM-SHA-512", "user", "secret") == (
        config["security.protocol"],
        config["sasl.mechanism"],
        config["sasl.username"],
        config["sasl.password"],
    )
    credentials = _faust_settings(settings(SASL), "unused")["broker_credentials"]
    assert ("user", "secret") == (credentials.username, credentials.password)
    assert "SASL_SSL" == credentials.protocol.value
    assert "SCRAM-SHA-512" == credentials.mechanism.value
    assert credentials.ssl_context is not None


def test_a_plain_connection_has_no_context() -> None:
    """Without TLS there are no credentials and no context."""
    assert ssl_context(PLAIN) is None
    assert _faust_settings(settings(PLAIN), "unused")["broker_credentials"] is None


def test_the_producer_cannot_lose_or_reorder() -> None:
    """Idempotent, all replicas, and a delivery timeout that is ours."""
    config = producer_config(librdkafka(PLAIN), 40, [1_000_000])
    assert (True, "all", 40_000, "murmur2_random") == (
        config["enable.idempotence"],
        config["acks"],
        config["delivery.timeout.ms"],
        config["partitioner"],
    )
