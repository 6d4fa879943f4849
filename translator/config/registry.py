"""The `registry` section: the schema registry's address, trust settings and credentials."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field, SecretStr, model_validator

from cdc_core.kafka_settings import Section, check_certificate, checked_scheme


class Registry(Section):
    """A schema registry with Confluent's API. With a registry, Avro records begin with the schema id that the registry
    assigns.
    """

    url: str = Field(
        description="Base URL of the registry's API. Separate multiple URLs of the same registry with commas."
    )
    auto_register: bool = Field(
        default=True,
        description=(
            "Register a schema if the registry does not have it. If false, the translator only looks up schema IDs."
        ),
    )
    username: str | None = Field(
        default=None, pattern="^[^:]+$", description="User name for HTTP basic authentication."
    )
    password: SecretStr | None = Field(default=None, description="Password for HTTP basic authentication.")
    ssl_ca_file: Path | None = Field(default=None, description="File with CA certificates, in PEM format.")
    ssl_certificate_file: Path | None = Field(
        default=None, description="File with the client certificate, in PEM format."
    )
    ssl_key_file: Path | None = Field(
        default=None, description="File with the private key for the client certificate, in PEM format."
    )

    @model_validator(mode="after")
    def _complete(self) -> Registry:
        schemes = {checked_scheme(url.strip(), "url", "username and password") for url in self.url.split(",")}
        if (self.username is None) != (self.password is None):
            raise ValueError("username and password must be set together")
        check_certificate(self.ssl_certificate_file, self.ssl_key_file)
        if "https" not in schemes and (self.ssl_ca_file, self.ssl_certificate_file) != (None, None):
            raise ValueError("ssl_* is set, but url does not begin with https://")
        return self
