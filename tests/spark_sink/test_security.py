"""One block of settings configures Spark's client and librdkafka, as real reads show."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)
from pydantic import ValidationError
from pyspark.sql import SparkSession

from cdc_core.kafka_settings import librdkafka_options
from dev.servers.certificates import Authority
from dev.servers.secured import GUEST, PASSWORD, USER, SecuredBroker
from spark_sink.config.spark_kafka_options import SparkKafka
from spark_sink.errors import ConfigError, FatalError
from spark_sink.schema import catalog
from spark_sink.schema.catalog import SchemaReader
from tests import token_providers

TOPIC = "secured"
OAUTH = "org.apache.kafka.common.security.oauthbearer"

LOGIN = {"sasl_mechanism": "SCRAM-SHA-512", "sasl_username": "u", "sasl_password": "correct horse"}
TOKENS = {
    "sasl_mechanism": "OAUTHBEARER",
    "oauth_token_url": "https://identity/token",
    "oauth_client_id": "u",
    "oauth_client_secret": "correct horse",
}


@pytest.mark.parametrize(
    ("kafka", "reason"),
    [
        ({"security_protocol": "SASL_SSL"}, "security_protocol SASL_SSL requires sasl_mechanism"),
        ({"security_protocol": "SASL_SSL", "sasl_mechanism": "PLAIN"}, "requires sasl_username and sasl_password"),
        (
            {"security_protocol": "SASL_SSL", "sasl_mechanism": "OAUTHBEARER"},
            "requires oauth_token_url, oauth_client_id",
        ),
        ({"security_protocol": "SASL_SSL", **TOKENS, "sasl_username": "u"}, "sasl_username set, but sasl_mechanism"),
        (
            {"security_protocol": "SASL_SSL", **TOKENS, "oauth_token_url": "https://u:correct horse@i"},
            "oauth_token_url",
        ),
        (
            {"security_protocol": "SASL_SSL", **TOKENS, "oauth_token_url": "http://i/t", "oauth_ca_file": "c"},
            "oauth_ca_file is set, but oauth_token_url does not begin with https://",
        ),
        (LOGIN, "sasl_mechanism, sasl_username and sasl_password set, but security_protocol is neither SASL_SSL"),
        (
            {"security_protocol": "SSL", "ssl_key_file": "k"},
            "ssl_certificate_file and ssl_key_file must be set together",
        ),
        ({"security_protocol": "SSL", "ssl_key_password": "correct horse"}, "ssl_key_password requires ssl_key_file"),
        ({"security_protocol": "SASL_PLAINTEXT", **LOGIN, "ssl_ca_file": "c"}, "ssl_ca_file set, but"),
        (
            {"security_protocol": "SASL_SSL", "sasl_mechanism": "OAUTHBEARER", "oauth_provider": "msk-iam"},
            "set kafka.sasl.login.callback.handler.class in options",
        ),
    ],
)
def test_contradiction(kafka: dict[str, str], reason: str) -> None:
    """As in the translator, contradictory settings are rejected, so that nobody relies on security that is off."""
    with pytest.raises(ValidationError) as caught:
        SparkKafka(bootstrap_servers="b", **kafka)  # type: ignore[arg-type]  # pydantic reads them
    (mistake,) = caught.value.errors(include_input=False, include_url=False)
    assert reason in f"{mistake['loc']} {mistake['msg']}"


def test_every_setting_reaches_both_clients(tmp_path: Path) -> None:
    """Login settings are quoted for Java. A certificate travels as text, so that executors need no file."""
    certificate, key = Authority(tmp_path, "ca").issue("client", password="k")
    kafka = SparkKafka(
        bootstrap_servers="b:1",
        security_protocol="SASL_SSL",
        sasl_mechanism="OAUTHBEARER",
        oauth_token_url="https://identity/token",
        oauth_client_id='i"d',
        oauth_client_secret="a\\b",
        oauth_scope="x y",
        oauth_ca_file="token.pem",
        ssl_ca_file="ca.pem",
        ssl_certificate_file=certificate,
        ssl_key_file=key,
        ssl_key_password="k",
    )
    module = "org.apache.kafka.common.security.oauthbearer.OAuthBearer"
    assert {
        "kafka.bootstrap.servers": "b:1",
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.mechanism": "OAUTHBEARER",
        "kafka.sasl.oauthbearer.token.endpoint.url": "https://identity/token",
        "kafka.sasl.login.callback.handler.class": f"{module}LoginCallbackHandler",
        "kafka.sasl.jaas.config": f'{module}LoginModule required clientId="i\\"d" clientSecret="a\\\\b" scope="x y" '
        'ssl.truststore.location="token.pem" ssl.truststore.type="PEM";',
        "kafka.ssl.truststore.type": "PEM",
        "kafka.ssl.truststore.location": "ca.pem",
        "kafka.ssl.keystore.type": "PEM",
        "kafka.ssl.keystore.certificate.chain": certificate.read_text(),
    } == without_key(kafka.spark_options())
    assert {
        "bootstrap.servers": "b:1",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.token.endpoint.url": "https://identity/token",
        "sasl.oauthbearer.client.id": 'i"d',
        "sasl.oauthbearer.client.secret": "a\\b",
        "sasl.oauthbearer.scope": "x y",
        "https.ca.location": "token.pem",
        "ssl.ca.location": "ca.pem",
        "ssl.certificate.location": str(certificate),
        "ssl.key.location": str(key),
        "ssl.key.password": "k",
    } == librdkafka_options(kafka)
    assert not [secret for secret in ("a\\\\b", "'k'", "PRIVATE") if secret in repr(kafka)]


def without_key(options: dict[str, str]) -> dict[str, str]:
    """Return the options without the key, which must be an unencrypted PKCS 8 key."""
    assert options["kafka.ssl.keystore.key"].startswith("-----BEGIN PRIVATE KEY-----\n")
    return {name: value for name, value in options.items() if name != "kafka.ssl.keystore.key"}


@pytest.mark.parametrize("password", [None, "battery staple"])
def test_keys_that_cannot_be_used(tmp_path: Path, password: str | None) -> None:
    """Unusable keys are rejected before Spark starts. The error states the file but not its content."""
    certificate, key = Authority(tmp_path, "ca").issue("client", password="k")
    (tmp_path / "text").write_text("no key")
    for file in (key, tmp_path / "text", tmp_path / "absent"):
        kafka = SparkKafka(
            bootstrap_servers="b",
            security_protocol="SSL",
            ssl_certificate_file=certificate,
            ssl_key_file=file,
            ssl_key_password=password,  # type: ignore[arg-type]  # pydantic reads it
        )
        with pytest.raises(ConfigError, match=r"kafka\.ssl_key_file cannot be used") as caught:
            kafka.spark_options()
        assert "staple" not in str(caught.value)


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    site = tmp_path_factory.mktemp("site")
    token_providers.install(site, "issued", token_providers.ISSUED)
    with SecuredBroker(tmp_path_factory.mktemp("secured")) as running, pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(site))
        patch.setenv("ISSUED_LOGIN", f"{USER}:{PASSWORD}")
        admin = AdminClient({"bootstrap.servers": running.bootstrap})
        admin.create_topics([NewTopic(TOPIC, 1, 1)])[TOPIC].result(20)
        producer = Producer({"bootstrap.servers": running.bootstrap})
        producer.produce(TOPIC, b"value")
        assert 0 == producer.flush(20)
        where = (ResourceType.TOPIC, TOPIC, ResourcePatternType.LITERAL, f"User:{GUEST}", "*")
        right = AclBinding(*where, AclOperation.READ, AclPermissionType.ALLOW)
        admin.create_acls([right])[right].result(20)
        yield running


def sections(secured: SecuredBroker) -> dict[str, dict[str, Any]]:
    """Return one `kafka` section for each login mechanism."""
    ca = str(secured.authority.file)
    certificate, key = secured.authority.issue("client", owner=USER, password="k")
    login = {"bootstrap_servers": secured.address("LOGIN"), "security_protocol": "SASL_SSL", "ssl_ca_file": ca}
    tokens = {**TOKENS, "oauth_client_id": USER, "oauth_client_secret": PASSWORD, "oauth_ca_file": ca}
    return {
        "scram": {**login, **LOGIN, "sasl_username": USER, "sasl_password": PASSWORD},
        "oauth": {**login, **tokens, "oauth_token_url": secured.identity.url},
        "certificate": {
            "bootstrap_servers": secured.address("MUTUAL"),
            "security_protocol": "SSL",
            "ssl_ca_file": ca,
            "ssl_certificate_file": str(certificate),
            "ssl_key_file": str(key),
            "ssl_key_password": "k",
        },
        # Spark's client has its own handler, which requests tokens from the endpoint.
        "provider": {
            **login,
            "sasl_mechanism": "OAUTHBEARER",
            "oauth_provider": "issued",
            "oauth_provider_options": {"url": secured.identity.url, "ca": ca},
            "options": {
                "kafka.sasl.login.callback.handler.class": f"{OAUTH}.OAuthBearerLoginCallbackHandler",
                "kafka.sasl.oauthbearer.token.endpoint.url": secured.identity.url,
                "kafka.sasl.jaas.config": f'{OAUTH}.OAuthBearerLoginModule required clientId="{USER}" '
                f'clientSecret="{PASSWORD}" ssl.truststore.type="PEM" ssl.truststore.location="{ca}";',
            },
        },
        # It can read the topic, but can use no group.
        "guest": {**login, **LOGIN, "sasl_username": GUEST, "sasl_password": PASSWORD},
    }


def test_real_reads(spark: SparkSession, secured: SecuredBroker) -> None:
    """Each login works with both clients, and Spark's description of the read contains no secret."""
    for section in sections(secured).values():
        kafka = SparkKafka(**section)
        reader = SchemaReader(librdkafka_options(kafka), TOPIC)
        reader.reach()
        reader.refresh()
        reader.close()
        options = {**kafka.spark_options(), "subscribe": TOPIC, "startingOffsets": "earliest"}
        frame = spark.read.format("kafka").options(**options).load()
        shown = io.StringIO()
        with redirect_stdout(shown), redirect_stderr(shown):
            assert [b"value"] == [bytes(row.value) for row in frame.collect()]
            frame.explain(extended=True)
        assert not [secret for secret in (PASSWORD, "PRIVATE KEY") if secret in shown.getvalue()]


@pytest.mark.integration
def test_refused(secured: SecuredBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong password is reported as a configuration error before Spark starts. An unreachable broker is not."""
    other = Authority(tmp_path, "other").file
    scram, provider = sections(secured)["scram"], sections(secured)["provider"]
    away = {**provider, "oauth_provider_options": {**provider["oauth_provider_options"], "away": str(other)}}
    cases = (
        ({**scram, "sasl_password": "battery staple"}, 600.0, ConfigError, "invalid credentials"),
        ({**scram, "ssl_ca_file": str(other)}, 600.0, ConfigError, "certificate verify failed"),
        ({**scram, "bootstrap_servers": "127.0.0.1:1"}, 1.0, FatalError, "no broker responded within 1 s: "),
        (away, 1.0, FatalError, "no broker responded within 1 s: token provider issued failed: RuntimeError: the ide"),
    )
    monkeypatch.setattr(catalog, "_ATTEMPT_SECONDS", 0.5)
    for section, patience, kind, text in cases:
        reader = SchemaReader(librdkafka_options(SparkKafka(**section)), TOPIC)
        with pytest.raises(kind) as caught:
            reader.reach(patience)
        reader.close()
        assert kind is type(caught.value)
        assert text in str(caught.value)
        assert not [secret for secret in (PASSWORD, "battery staple") if secret in str(caught.value)]
