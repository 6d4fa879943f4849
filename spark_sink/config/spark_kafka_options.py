"""Connect to the brokers. One configuration serves two clients. Spark reads events with the Java client, and the sink
reads schemas with librdkafka.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from pydantic import Field, model_validator

from cdc_core import kafka_settings
from cdc_core.kafka_settings import named_by
from spark_sink.errors import ConfigError

_MODULES = "org.apache.kafka.common.security"
_LOGIN_MODULES = {
    "PLAIN": f"{_MODULES}.plain.PlainLoginModule",
    "SCRAM-SHA-256": f"{_MODULES}.scram.ScramLoginModule",
    "SCRAM-SHA-512": f"{_MODULES}.scram.ScramLoginModule",
    "OAUTHBEARER": f"{_MODULES}.oauthbearer.OAuthBearerLoginModule",
}
_TOKEN_HANDLER = f"{_MODULES}.oauthbearer.OAuthBearerLoginCallbackHandler"
# Each of these classes can get tokens for Java: the first for OAUTHBEARER, the second for a mechanism of the cloud.
_JAVA_HANDLERS = ("kafka.sasl.login.callback.handler.class", "kafka.sasl.client.callback.handler.class")

_JAVA: Mapping[str, str] = {
    "bootstrap_servers": "bootstrap.servers",
    "security_protocol": "security.protocol",
    "sasl_mechanism": "sasl.mechanism",
    "oauth_token_url": "sasl.oauthbearer.token.endpoint.url",
    "ssl_ca_file": "ssl.truststore.location",
}
# Templates for the settings of Java's login module, keyed by login.
_JAAS: Mapping[str, str] = {
    "sasl_username": "username",
    "sasl_password": "password",
    "oauth_client_id": "clientId",
    "oauth_client_secret": "clientSecret",
    "oauth_scope": "scope",
    "oauth_ca_file": "ssl.truststore.location",
}


class SparkKafka(kafka_settings.Kafka):
    """The connection to the brokers. CA files must exist on every machine in the Spark cluster."""

    options: dict[str, str] = Field(
        default_factory=dict,
        description="Additional options for Spark's Kafka source, such as `kafka.request.timeout.ms`.",
    )

    @model_validator(mode="after")
    def _java_has_tokens(self) -> SparkKafka:
        if self.oauth_provider is not None and not any(name in self.options for name in _JAVA_HANDLERS):
            raise ValueError(
                f"oauth_provider returns tokens only for reading schemas. Spark's client is a Java program: set "
                f"{_JAVA_HANDLERS[0]} in options (docs/operate/token-providers.md)"
            )
        return self

    def spark_options(self) -> dict[str, str]:
        """Return the options for Spark's Kafka source, which contain secrets.

        Raises:
            ConfigError: the certificate or the key cannot be read.
        """
        options = named_by(_JAVA, self)
        if self.ssl_ca_file is not None:
            options["ssl.truststore.type"] = "PEM"
        if self.ssl_certificate_file is not None and self.ssl_key_file is not None:
            # Pass the certificate and the key as text. Otherwise, Java expects both in one file that exists on every
            # machine in the Spark cluster.
            options["ssl.keystore.type"] = "PEM"
            chain = _read(self.ssl_certificate_file, "ssl_certificate_file")
            options["ssl.keystore.certificate.chain"] = chain.decode("ascii", "replace")
            options["ssl.keystore.key"] = self._java_key(_read(self.ssl_key_file, "ssl_key_file"))
        if self.sasl_mechanism is not None:
            login = named_by(_JAAS, self)
            if self.oauth_ca_file is not None:
                login["ssl.truststore.type"] = "PEM"
            if self.oauth_token_url is not None:
                options["sasl.login.callback.handler.class"] = _TOKEN_HANDLER
            module = f"{_LOGIN_MODULES[self.sasl_mechanism]} required"
            given = " ".join(f"{name}={_quoted(value)}" for name, value in login.items())
            options["sasl.jaas.config"] = f"{module} {given};"
        return {f"kafka.{name}": value for name, value in options.items()} | self.options

    def _java_key(self, pem: bytes) -> str:
        """Return the key in PKCS 8 without modern encryption, because Java reads no other format."""
        password = None if self.ssl_key_password is None else self.ssl_key_password.get_secret_value().encode()
        try:
            key = load_pem_private_key(pem, password)
        except (TypeError, ValueError):  # TypeError: a password is missing or unnecessary
            raise ConfigError(
                "kafka.ssl_key_file cannot be used; check that it is a PEM key and that ssl_key_password is correct"
            ) from None
        return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode("ascii")


def _read(path: Path, name: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(f"kafka.{name} cannot be used: {path}: {error.strerror}") from None


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
