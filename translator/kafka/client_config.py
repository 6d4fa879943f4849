"""One configuration of the brokers -> the settings of each client library: a table for each."""

from __future__ import annotations

import logging
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from translator.errors import ConfigError
from translator.kafka.client_errors import Complaints
from translator.settings import Kafka

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


def librdkafka(kafka: Kafka) -> dict[str, Any]:
    """Connection settings of confluent_kafka's clients; what they complain of is collected in one place for all.

    Raises:
        ConfigError: a file cannot be read, or holds no certificate or key.
    """
    _check_files(kafka)
    given = ((theirs, getattr(kafka, ours)) for ours, theirs in _LIBRDKAFKA.items())
    config: dict[str, Any] = {name: _plain(value) for name, value in given if value is not None}
    if kafka.sasl_mechanism == "OAUTHBEARER":
        config["sasl.oauthbearer.method"] = "oidc"  # librdkafka asks for tokens itself, in time
    # otherwise librdkafka writes to standard error in a form of its own
    config["logger"] = logging.getLogger("librdkafka")
    config["error_cb"] = Complaints(kafka.sasl_mechanism, ssl_context(kafka))
    return config


def ssl_context(kafka: Kafka) -> ssl.SSLContext | None:
    """The context for aiokafka; None for a plain connection.

    Raises:
        ConfigError: a file holds no certificate or key.
    """
    if kafka.security_protocol not in ("SSL", "SASL_SSL"):
        return None
    context = trusting(kafka.ssl_ca_file, "ssl_ca_file")
    if kafka.ssl_certificate_file is not None:
        password = "" if kafka.ssl_key_password is None else kafka.ssl_key_password.get_secret_value()
        try:
            # Never None: for an encrypted key Python would ask for the password on the terminal.
            context.load_cert_chain(kafka.ssl_certificate_file, kafka.ssl_key_file, password)
        except (OSError, ValueError) as error:
            names = "kafka.ssl_certificate_file and ssl_key_file cannot be used (is ssl_key_password right?)"
            raise ConfigError(f"{names}: {_reason(error)}") from None
    return context


def trusting(ca_file: Path | None, name: str) -> ssl.SSLContext:
    """A context that trusts the certificates of a file, or those of the system.

    Raises:
        ConfigError: the file holds no certificate; `name` is the setting.
    """
    try:
        return ssl.create_default_context(cafile=ca_file)
    except (OSError, ValueError) as error:
        raise ConfigError(f"kafka.{name} cannot be used: {_reason(error)}") from None


def _check_files(kafka: Kafka) -> None:
    """librdkafka says of a file that is not there that the `BIO lib` failed."""
    for name in _LIBRDKAFKA:
        path = getattr(kafka, name)
        if isinstance(path, Path):
            try:
                path.open("rb").close()
            except OSError as error:
                raise ConfigError(f"kafka.{name} cannot be used: {path}: {error.strerror}") from None


def _plain(value: object) -> str:
    return value.get_secret_value() if isinstance(value, SecretStr) else str(value)


def _reason(error: Exception) -> str:
    return str(getattr(error, "strerror", None) or getattr(error, "reason", None) or error)
