"""Convert the broker settings to the settings of each client library, with one table per library."""

from __future__ import annotations

import logging
import ssl
from pathlib import Path
from typing import Any

from cdc_core.kafka_settings import LIBRDKAFKA, Kafka, librdkafka_options
from translator.errors import ConfigError
from translator.kafka.client_errors import ClientErrors


def librdkafka(kafka: Kafka) -> dict[str, Any]:
    """Return the connection settings for confluent_kafka clients. The errors of all clients are collected in one place.

    Raises:
        ConfigError: a file cannot be read, or contains no certificate or key, or the token provider cannot be used.
    """
    _check_files(kafka)
    config = librdkafka_options(kafka)
    # librdkafka would otherwise write to standard error in its own format.
    config["logger"] = logging.getLogger("librdkafka")
    config["error_cb"] = ClientErrors(
        kafka.sasl_mechanism, ssl_context(kafka), kafka.bootstrap_servers, config.get("oauth_cb")
    )
    return config


def ssl_context(kafka: Kafka) -> ssl.SSLContext | None:
    """Return the TLS context for aiokafka, or None for a plain connection.

    Raises:
        ConfigError: a file contains no certificate or key.
    """
    if kafka.security_protocol not in ("SSL", "SASL_SSL"):
        return None
    context = ssl_context_for(kafka.ssl_ca_file, "ssl_ca_file")
    if kafka.ssl_certificate_file is not None:
        password = "" if kafka.ssl_key_password is None else kafka.ssl_key_password.get_secret_value()
        try:
            # Never None, because Python would then prompt for an encrypted key's password.
            context.load_cert_chain(kafka.ssl_certificate_file, kafka.ssl_key_file, password)
        except (OSError, ValueError) as error:
            names = "kafka.ssl_certificate_file and ssl_key_file cannot be used (is ssl_key_password right?)"
            raise ConfigError(f"{names}: {_reason(error)}") from None
    return context


def ssl_context_for(ca_file: Path | None, name: str) -> ssl.SSLContext:
    """Return a context that trusts the certificates in a file, or the system's certificates.

    Raises:
        ConfigError: the file contains no certificate; `name` is the setting.
    """
    try:
        return ssl.create_default_context(cafile=ca_file)
    except (OSError, ValueError) as error:
        raise ConfigError(f"kafka.{name} cannot be used: {_reason(error)}") from None


def _check_files(kafka: Kafka) -> None:
    """Check that all files exist. For a missing file, librdkafka's error mentions only `BIO lib`."""
    for name in LIBRDKAFKA:
        path = getattr(kafka, name)
        if isinstance(path, Path):
            try:
                path.open("rb").close()
            except OSError as error:
                raise ConfigError(f"kafka.{name} cannot be used: {path}: {error.strerror}") from None


def _reason(error: Exception) -> str:
    return str(getattr(error, "strerror", None) or getattr(error, "reason", None) or error)
