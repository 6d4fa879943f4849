"""The receivers of events: a file, a server, a topic."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

from cdc_core.kafka_settings import Kafka, librdkafka_options
from cdc_core.lineage.settings import Lineage

Send: TypeAlias = Callable[[bytes], None]
"""Sends one event.

Raises:
    NotDelivered: the receiver did not accept the event.
"""

_SECONDS = 5.0
"""The timeout for one event."""

_MAX_BYTES = 100_000_000
"""The maximum size of an event in a topic before compression. The broker limits the compressed size."""


class NotDelivered(Exception):
    """A receiver did not accept an event. The message gives the reason, but no secrets."""


def receiver(settings: Lineage, kafka: Kafka) -> Send:
    """Return the configured receiver."""
    if settings.path is not None:
        return _file(Path(settings.path))
    if settings.topic is not None:
        return _topic(settings.topic, kafka)
    return _server(settings.to, {name: value.get_secret_value() for name, value in settings.headers.items()})


def _file(path: Path) -> Send:
    def send(event: bytes) -> None:
        try:
            with path.open("ab") as file:
                file.write(event + b"\n")
        except OSError as error:
            raise NotDelivered(f"{type(error).__name__}: {error.strerror}") from None

    return send


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Treats a redirect as an error. Python would send the headers to the other server, and they can contain a
    token.
    """

    def redirect_request(self, *_: Any) -> None:
        return None


def _server(url: str, headers: dict[str, str]) -> Send:
    opener = urllib.request.build_opener(_NoRedirects)

    def send(event: bytes) -> None:
        request = urllib.request.Request(  # noqa: S310 - the settings accept only http and https
            url, event, {"Content-Type": "application/json", **headers}, method="POST"
        )
        try:
            with opener.open(request, timeout=_SECONDS):
                pass
        except urllib.error.HTTPError as error:
            with error:
                raise NotDelivered(f"the server answers HTTP {error.code}") from None
        except OSError as error:
            reason = getattr(error, "reason", error)
            raise NotDelivered(f"{type(error).__name__}: {getattr(reason, 'strerror', None) or reason}") from None

    return send


def _topic(topic: str, kafka: Kafka) -> Send:
    # Imported here because the settings import this package, and most commands need no client.
    from confluent_kafka import KafkaException, Producer

    limit = {"message.timeout.ms": int(_SECONDS * 1000), "log_level": 0}
    # The event of a topic with many tables is larger than a broker accepts by default, but mostly repeats itself.
    size = {"compression.type": "gzip", "message.max.bytes": _MAX_BYTES}
    producer = Producer({**librdkafka_options(kafka), **limit, **size})

    def send(event: bytes) -> None:
        errors: list[str] = ["no response"]

        def delivered(error: Any, _: object) -> None:
            errors[:] = [] if error is None else [error.str()]

        try:
            producer.produce(topic, event, on_delivery=delivered)
            producer.flush(_SECONDS + 1)
        except KafkaException as error:
            raise NotDelivered(error.args[0].str()) from None
        except BufferError as error:
            raise NotDelivered(type(error).__name__) from None
        if errors:
            raise NotDelivered(errors[0])

    return send
