"""One configuration of the brokers -> the settings of both client libraries."""

from __future__ import annotations

import logging
import ssl
from typing import Any

from translator.settings import Kafka


def librdkafka(kafka: Kafka) -> dict[str, Any]:
    """Connection settings of confluent_kafka's clients."""
    config: dict[str, Any] = {
        # otherwise librdkafka writes to standard error in a form of its own
        "logger": logging.getLogger("librdkafka"),
        "bootstrap.servers": kafka.bootstrap_servers,
        "security.protocol": kafka.security_protocol,
        "sasl.mechanism": kafka.sasl_mechanism,
        "sasl.username": kafka.sasl_username,
        "sasl.password": kafka.sasl_password.get_secret_value() if kafka.sasl_password else None,
        "ssl.ca.location": _path(kafka.ssl_ca_file),
        "ssl.certificate.location": _path(kafka.ssl_certificate_file),
        "ssl.key.location": _path(kafka.ssl_key_file),
    }
    return {name: value for name, value in config.items() if value is not None}


def ssl_context(kafka: Kafka) -> ssl.SSLContext | None:
    """The context for aiokafka; None for a plain connection."""
    if kafka.security_protocol not in ("SSL", "SASL_SSL"):
        return None
    context = ssl.create_default_context(cafile=_path(kafka.ssl_ca_file))
    if kafka.ssl_certificate_file is not None:
        context.load_cert_chain(kafka.ssl_certificate_file, kafka.ssl_key_file)
    return context


def _path(path: object) -> str | None:
    return None if path is None else str(path)
