"""Define the `kafka` section of both programs: broker addresses, TLS and credentials.

Contradictory settings are rejected, so that no connection is left unprotected by mistake. Errors never quote a value.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, SecretStr, model_validator

from cdc_core.kafka_tokens import Tokens, shared_tokens


class Section(BaseModel):
    """A section of the file. Unknown names are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True)


# The required and optional settings for each login mechanism.
_LOGIN: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"), ("sasl_username", "sasl_password")),
    "OAUTHBEARER": ("oauth_token_url", "oauth_client_id", "oauth_client_secret"),
}
_LOGIN_EXTRAS: Mapping[str, tuple[str, ...]] = {"OAUTHBEARER": ("oauth_scope", "oauth_ca_file")}
# OAUTHBEARER with a token provider instead of a token endpoint.
_PROVIDER = ("oauth_provider", "oauth_provider_options")
_HEADER_NAME = re.compile(r"[A-Za-z0-9-]+")


class Kafka(Section):
    """Broker addresses and credentials. This section configures every client."""

    bootstrap_servers: str = Field(description="Broker addresses in the form host:port, separated by commas.")
    security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = Field(
        default="PLAINTEXT",
        description="Security of the connection. Use SSL to encrypt the connection, and SASL to log in.",
    )
    sasl_mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"] | None = Field(
        default=None, description="Login mechanism. Required for SASL_PLAINTEXT and SASL_SSL."
    )
    sasl_username: str | None = Field(default=None, min_length=1, description="User name for PLAIN and SCRAM.")
    sasl_password: SecretStr | None = Field(default=None, min_length=1, description="Password for PLAIN and SCRAM.")
    oauth_token_url: str | None = Field(
        default=None,
        description="URL of the endpoint that issues OAUTHBEARER tokens in exchange for the client ID and secret.",
    )
    oauth_client_id: str | None = Field(default=None, min_length=1, description="Client id for OAUTHBEARER.")
    oauth_client_secret: SecretStr | None = Field(
        default=None, min_length=1, description="Client secret for OAUTHBEARER."
    )
    oauth_scope: str | None = Field(default=None, min_length=1, description="Scopes to request, separated by spaces.")
    oauth_ca_file: Path | None = Field(
        default=None, description="File with CA certificates for oauth_token_url, in PEM format."
    )
    oauth_provider: str | None = Field(
        default=None,
        min_length=1,
        description=(
            "Name of an installed token provider, such as msk-iam. The provider supplies OAUTHBEARER tokens. Replaces "
            "oauth_token_url."
        ),
    )
    oauth_provider_options: dict[str, str] | None = Field(
        default=None,
        description=(
            "Options for oauth_provider, without secrets. The provider finds its credentials wherever its cloud's "
            "library looks for them."
        ),
    )
    ssl_ca_file: Path | None = Field(
        default=None, description="File with CA certificates, in PEM format. Defaults to the system's certificates."
    )
    ssl_certificate_file: Path | None = Field(
        default=None, description="File with the client certificate, in PEM format."
    )
    ssl_key_file: Path | None = Field(
        default=None, description="File with the client certificate's private key, in PEM format."
    )
    ssl_key_password: SecretStr | None = Field(
        default=None, min_length=1, description="Password for an encrypted key file."
    )

    @model_validator(mode="after")
    def _login_is_whole(self) -> Kafka:
        given = self._given(("sasl_", "oauth_"))
        mechanism = self.sasl_mechanism
        if not self.security_protocol.startswith("SASL"):
            if given:
                raise ValueError(f"{_listed(given)} set, but security_protocol is neither SASL_SSL nor SASL_PLAINTEXT")
            return self
        if mechanism is None:
            raise ValueError(f"security_protocol {self.security_protocol} requires sasl_mechanism to be set")
        needed, extras, user = _LOGIN[mechanism], _LOGIN_EXTRAS.get(mechanism, ()), f"sasl_mechanism {mechanism}"
        if mechanism == "OAUTHBEARER" and any(name in given for name in _PROVIDER):
            needed, extras, user = _PROVIDER[:1], _PROVIDER[1:], "a login with a token provider"
        if missing := [name for name in needed if name not in given]:
            instead = " (or oauth_provider)" if missing == list(_LOGIN["OAUTHBEARER"]) else ""
            raise ValueError(f"{user} requires {_listed(missing)}{instead}")
        known = {"sasl_mechanism", *needed, *extras}
        if foreign := [name for name in given if name not in known]:
            raise ValueError(f"{_listed(foreign)} set, but {user} does not use it")
        if self.oauth_token_url is not None:
            scheme = checked_scheme(self.oauth_token_url, "oauth_token_url", "oauth_client_id and oauth_client_secret")
            if scheme != "https" and self.oauth_ca_file is not None:
                raise ValueError("oauth_ca_file is set, but oauth_token_url does not begin with https://")
        return self

    @model_validator(mode="after")
    def _tls_is_whole(self) -> Kafka:
        given = self._given(("ssl_",))
        if given and not self.security_protocol.endswith("SSL"):
            raise ValueError(f"{_listed(given)} set, but security_protocol is neither SSL nor SASL_SSL")
        check_certificate(self.ssl_certificate_file, self.ssl_key_file)
        if self.ssl_key_password is not None and self.ssl_key_file is None:
            raise ValueError("ssl_key_password requires ssl_key_file")
        return self

    def _given(self, prefixes: tuple[str, ...]) -> list[str]:
        """Return the names of the settings that have one of these prefixes and a value."""
        names = (name for name in type(self).model_fields if name.startswith(prefixes))
        return [name for name in names if getattr(self, name) is not None]


def _listed(names: Sequence[str]) -> str:
    return " and ".join(names) if len(names) < 3 else f"{', '.join(names[:-1])} and {names[-1]}"


def check_certificate(certificate: Path | None, key: Path | None) -> None:
    """Reject a certificate without its key, and a key without its certificate."""
    if (certificate is None) != (key is None):
        raise ValueError("ssl_certificate_file and ssl_key_file must be set together")


def check_header_names(headers: Iterable[str]) -> None:
    """Check the names of HTTP headers.

    Raises:
        ValueError: a name is invalid.
    """
    if any(_HEADER_NAME.fullmatch(name) is None for name in headers):
        raise ValueError("a header name may contain only letters, digits and -")


def checked_scheme(url: str, name: str, login: str) -> str:
    """Return a URL's scheme. Errors name the setting and never quote the URL, because it might contain a password.

    Args:
        login: the settings where credentials belong, because a URL must not contain them.
    """
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 - it is read only when asked for
    except ValueError:
        raise ValueError(f"{name} is not a URL") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{name} must begin with http:// or https:// and contain a host")
    if parts.username is not None:
        raise ValueError(f"{name} contains a user name or password; use {login} instead")
    if parts.query or parts.fragment:
        raise ValueError(f"{name} must not contain ? or #")
    return parts.scheme


LIBRDKAFKA: Mapping[str, str] = {
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
"""The settings' librdkafka names."""


def librdkafka_options(kafka: Kafka) -> dict[str, Any]:
    """Return the connection settings for confluent_kafka clients. They contain secrets.

    Raises:
        ConfigError: the token provider cannot be used.
    """
    options: dict[str, Any] = dict(named_by(LIBRDKAFKA, kafka))
    if (tokens := tokens_of(kafka)) is not None:
        options["oauth_cb"] = tokens
    elif kafka.sasl_mechanism == "OAUTHBEARER":
        options["sasl.oauthbearer.method"] = "oidc"  # librdkafka requests tokens itself and renews each token in time
    return options


def tokens_of(kafka: Kafka) -> Tokens | None:
    """Return the tokens of the configured provider, or None if the login uses none.

    Raises:
        ConfigError: the token provider cannot be used.
    """
    if kafka.oauth_provider is None:
        return None
    return shared_tokens(kafka.oauth_provider, frozenset((kafka.oauth_provider_options or {}).items()))


def named_by(table: Mapping[str, str], kafka: Kafka) -> dict[str, str]:
    """Return the settings that have a value. They have the names that a client library uses, and secrets are in plain
    text.
    """
    given = ((theirs, getattr(kafka, ours)) for ours, theirs in table.items())
    return {theirs: _plain(value) for theirs, value in given if value is not None}


def _plain(value: object) -> str:
    return value.get_secret_value() if isinstance(value, SecretStr) else str(value)
