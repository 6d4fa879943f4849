"""How to reach the brokers, once for both clients: Spark reads with Java's, schemas are read with librdkafka."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr, model_validator

_LOGIN_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}


class Kafka(BaseModel):
    """The names are those of the translator's configuration."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    bootstrap_servers: str = Field(description="Brokers, host:port separated by commas.")
    security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = "PLAINTEXT"
    sasl_mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] | None = None
    sasl_username: str | None = None
    sasl_password: SecretStr | None = None
    ssl_ca_file: Path | None = Field(default=None, description="CA certificates, PEM.")
    options: dict[str, str] = Field(
        default_factory=dict, description="More options of Spark's Kafka source, such as `kafka.request.timeout.ms`."
    )

    @model_validator(mode="after")
    def _complete(self) -> Kafka:
        login = (self.sasl_mechanism, self.sasl_username, self.sasl_password)
        if self.security_protocol.startswith("SASL"):
            if None in login:
                raise ValueError("SASL needs sasl_mechanism, sasl_username and sasl_password")
        elif login != (None, None, None):
            raise ValueError("sasl_* is set but security_protocol is not SASL_SSL or SASL_PLAINTEXT")
        return self

    def spark_options(self) -> dict[str, str]:
        """Options of Spark's Kafka source."""
        options = {
            "kafka.bootstrap.servers": self.bootstrap_servers,
            "kafka.security.protocol": self.security_protocol,
        }
        if self.ssl_ca_file:
            options["kafka.ssl.truststore.type"] = "PEM"
            options["kafka.ssl.truststore.location"] = str(self.ssl_ca_file)
        if self.sasl_mechanism and self.sasl_password:
            user, password = _quoted(self.sasl_username or ""), _quoted(self.sasl_password.get_secret_value())
            options["kafka.sasl.mechanism"] = self.sasl_mechanism
            options["kafka.sasl.jaas.config"] = (
                f"{_LOGIN_MODULES[self.sasl_mechanism]} required username={user} password={password};"
            )
        return options | self.options

    def client_options(self) -> dict[str, str]:
        """Configuration of a librdkafka client."""
        options = {"bootstrap.servers": self.bootstrap_servers, "security.protocol": self.security_protocol}
        if self.ssl_ca_file:
            options["ssl.ca.location"] = str(self.ssl_ca_file)
        if self.sasl_mechanism and self.sasl_password:
            options["sasl.mechanism"] = self.sasl_mechanism
            options["sasl.username"] = self.sasl_username or ""
            options["sasl.password"] = self.sasl_password.get_secret_value()
        return options


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
