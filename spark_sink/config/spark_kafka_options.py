"""How to reach the brokers, once for both clients: Spark reads with Java's, schemas are read with librdkafka."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from pydantic import BaseModel, ConfigDict, Field, SecretStr, model_validator

from spark_sink.errors import ConfigError

_MODULES = "org.apache.kafka.common.security"
_LOGIN_MODULES = {
    "PLAIN": f"{_MODULES}.plain.PlainLoginModule",
    "SCRAM-SHA-256": f"{_MODULES}.scram.ScramLoginModule",
    "SCRAM-SHA-512": f"{_MODULES}.scram.ScramLoginModule",
    "OAUTHBEARER": f"{_MODULES}.oauthbearer.OAuthBearerLoginModule",
}
_TOKEN_HANDLER = f"{_MODULES}.oauthbearer.OAuthBearerLoginCallbackHandler"

# What a way to log in needs, and what it may have beside.
_LOGIN: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"), ("sasl_username", "sasl_password")),
    "OAUTHBEARER": ("oauth_token_url", "oauth_client_id", "oauth_client_secret"),
}
_LOGIN_EXTRAS: Mapping[str, tuple[str, ...]] = {"OAUTHBEARER": ("oauth_scope", "oauth_ca_file")}

_LIBRDKAFKA: Mapping[str, str] = {
    "bootstrap_servers": "bootstrap.servers",
    "security_protocol": "security.protocol",
    "sasl_mechanism": "sasl.mechanism",
    "sasl_username": "sasl.username",
    "sasl_password": "sasl.password",
    "oauth_token_url": "sasl.oauthbearer.token.endpoint.url",
    "oauth_client_id": "sasl.oauthbearer.client.id",
    "oauth_client_secret": "sasl.oauthbearer.client.secret",
    "oauth_scope": "sasl.oauthbearer.scope",
    "oauth_ca_file": "https.ca.location",
    "ssl_ca_file": "ssl.ca.location",
    "ssl_certificate_file": "ssl.certificate.location",
    "ssl_key_file": "ssl.key.location",
    "ssl_key_password": "ssl.key.password",
}
_JAVA: Mapping[str, str] = {
    "bootstrap_servers": "bootstrap.servers",
    "security_protocol": "security.protocol",
    "sasl_mechanism": "sasl.mechanism",
    "oauth_token_url": "sasl.oauthbearer.token.endpoint.url",
    "ssl_ca_file": "ssl.truststore.location",
}
# By login, what the text for Java's login module is made of.
_JAAS: Mapping[str, str] = {
    "sasl_username": "username",
    "sasl_password": "password",
    "oauth_client_id": "clientId",
    "oauth_client_secret": "clientSecret",
    "oauth_scope": "scope",
    "oauth_ca_file": "ssl.truststore.location",
}


class Kafka(BaseModel):
    """The names, and what goes with what, are those of the translator's configuration."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    bootstrap_servers: str = Field(description="Brokers, host:port separated by commas.")
    security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = "PLAINTEXT"
    sasl_mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"] | None = None
    sasl_username: str | None = Field(default=None, min_length=1, description="Of PLAIN and SCRAM.")
    sasl_password: SecretStr | None = Field(default=None, min_length=1)
    oauth_token_url: str | None = Field(
        default=None,
        pattern=r"^https?://[^/?#@]+[^?#@]*$",
        description="Of OAUTHBEARER: where tokens are given for client id and secret.",
    )
    oauth_client_id: str | None = Field(default=None, min_length=1)
    oauth_client_secret: SecretStr | None = Field(default=None, min_length=1)
    oauth_scope: str | None = Field(default=None, min_length=1, description="Scopes to ask for, separated by spaces.")
    oauth_ca_file: Path | None = Field(default=None, description="CA certificates of oauth_token_url, PEM.")
    ssl_ca_file: Path | None = Field(default=None, description="CA certificates, PEM; on each machine of Spark's.")
    ssl_certificate_file: Path | None = Field(default=None, description="Client certificate, PEM.")
    ssl_key_file: Path | None = Field(default=None, description="Key of the client certificate, PEM.")
    ssl_key_password: SecretStr | None = Field(default=None, min_length=1, description="Of an encrypted key file.")
    options: dict[str, str] = Field(
        default_factory=dict, description="More options of Spark's Kafka source, such as `kafka.request.timeout.ms`."
    )

    @model_validator(mode="after")
    def _login_is_whole(self) -> Kafka:
        given = self._given("sasl_", "oauth_")
        mechanism = self.sasl_mechanism
        if not self.security_protocol.startswith("SASL"):
            if given:
                raise ValueError(f"{', '.join(given)} set, but security_protocol is not SASL_SSL or SASL_PLAINTEXT")
            return self
        if mechanism is None:
            raise ValueError(f"security_protocol {self.security_protocol} needs sasl_mechanism")
        needed = _LOGIN[mechanism]
        if missing := [name for name in needed if name not in given]:
            raise ValueError(f"sasl_mechanism {mechanism} needs {', '.join(missing)}")
        known = {"sasl_mechanism", *needed, *_LOGIN_EXTRAS.get(mechanism, ())}
        if foreign := [name for name in given if name not in known]:
            raise ValueError(f"{', '.join(foreign)} set, but not for sasl_mechanism {mechanism}")
        if self.oauth_ca_file is not None and not str(self.oauth_token_url).startswith("https://"):
            raise ValueError("oauth_ca_file set, but oauth_token_url is not https://")
        return self

    @model_validator(mode="after")
    def _tls_is_whole(self) -> Kafka:
        given = self._given("ssl_")
        if given and not self.security_protocol.endswith("SSL"):
            raise ValueError(f"{', '.join(given)} set, but security_protocol is not SSL or SASL_SSL")
        if (self.ssl_certificate_file is None) != (self.ssl_key_file is None):
            raise ValueError("ssl_certificate_file and ssl_key_file come together")
        if self.ssl_key_password is not None and self.ssl_key_file is None:
            raise ValueError("ssl_key_password needs ssl_key_file")
        return self

    def _given(self, *prefixes: str) -> list[str]:
        """The settings of these names that have a value."""
        names = (name for name in type(self).model_fields if name.startswith(prefixes))
        return [name for name in names if getattr(self, name) is not None]

    def _translated(self, table: Mapping[str, str]) -> dict[str, str]:
        given = ((theirs, getattr(self, ours)) for ours, theirs in table.items())
        return {theirs: _plain(value) for theirs, value in given if value is not None}

    def spark_options(self) -> dict[str, str]:
        """Options of Spark's Kafka source; they hold secrets.

        Raises:
            ConfigError: certificate or key cannot be read.
        """
        options = self._translated(_JAVA)
        if self.ssl_ca_file is not None:
            options["ssl.truststore.type"] = "PEM"
        if self.ssl_certificate_file is not None and self.ssl_key_file is not None:
            # As text: Java wants a file to hold both, and to be on each machine of Spark's.
            options["ssl.keystore.type"] = "PEM"
            chain = _read(self.ssl_certificate_file, "ssl_certificate_file")
            options["ssl.keystore.certificate.chain"] = chain.decode("ascii", "replace")
            options["ssl.keystore.key"] = self._java_key(_read(self.ssl_key_file, "ssl_key_file"))
        if self.sasl_mechanism is not None:
            login = self._translated(_JAAS)
            if self.oauth_ca_file is not None:
                login["ssl.truststore.type"] = "PEM"
            if self.sasl_mechanism == "OAUTHBEARER":
                options["sasl.login.callback.handler.class"] = _TOKEN_HANDLER
            module = f"{_LOGIN_MODULES[self.sasl_mechanism]} required"
            given = " ".join(f"{name}={_quoted(value)}" for name, value in login.items())
            options["sasl.jaas.config"] = f"{module} {given};"
        return {f"kafka.{name}": value for name, value in options.items()} | self.options

    def _java_key(self, pem: bytes) -> str:
        """The key in the one form that Java reads: PKCS 8, and none of today's encryptions of it."""
        password = None if self.ssl_key_password is None else self.ssl_key_password.get_secret_value().encode()
        try:
            key = load_pem_private_key(pem, password)
        except (TypeError, ValueError):  # TypeError: a password is missing, or not needed
            raise ConfigError(
                "kafka.ssl_key_file cannot be used: is it a PEM key, and ssl_key_password right?"
            ) from None
        return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode("ascii")

    def client_options(self) -> dict[str, str]:
        """Configuration of a librdkafka client."""
        options = self._translated(_LIBRDKAFKA)
        if self.sasl_mechanism == "OAUTHBEARER":
            options["sasl.oauthbearer.method"] = "oidc"
        return options


def _plain(value: object) -> str:
    return value.get_secret_value() if isinstance(value, SecretStr) else str(value)


def _read(path: Path, name: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(f"kafka.{name} cannot be used: {path}: {error.strerror}") from None


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
