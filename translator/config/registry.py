"""The section `registry`: where the schema registry is, whom it trusts, who we are to it."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field, SecretStr, model_validator

from cdc_core.kafka_settings import Section, check_certificate, checked_scheme


class Registry(Section):
    """A schema registry with Confluent's API; where there is one, Avro records begin with the id it gives."""

    url: str = Field(description="Root of its API, or several of one registry separated by commas.")
    auto_register: bool = Field(
        default=True, description="Register the schema where it is not yet; false: only look up its id."
    )
    username: str | None = Field(default=None, pattern="^[^:]+$", description="Of HTTP basic authentication.")
    password: SecretStr | None = Field(default=None, description="Of HTTP basic authentication.")
    ssl_ca_file: Path | None = Field(default=None, description="CA certificates, PEM.")
    ssl_certificate_file: Path | None = Field(default=None, description="Client certificate, PEM.")
    ssl_key_file: Path | None = Field(default=None, description="Key of the client certificate, PEM.")

    @model_validator(mode="after")
    def _complete(self) -> Registry:
        schemes = {checked_scheme(url.strip(), "url", "username and password") for url in self.url.split(",")}
        if (self.username is None) != (self.password is None):
            raise ValueError("username and password come together")
        check_certificate(self.ssl_certificate_file, self.ssl_key_file)
        if "https" not in schemes and (self.ssl_ca_file, self.ssl_certificate_file) != (None, None):
            raise ValueError("ssl_* is set but url is not https://")
        return self
