"""Which complaints of librdkafka are final, and which may pass."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka import KafkaError

from translator.kafka import client_errors
from translator.kafka.client_errors import ClientErrors

# Texts of librdkafka 2.16. tests/integration/test_security.py checks them all with a real broker.
LOGIN = "sasl_ssl://b:1/{}: SASL authentication error: Authentication failed: Invalid username or password"
AWAY = "b:1/bootstrap: Connect to ipv4#10.0.0.1:1 failed: Connection refused (after 3ms in state CONNECT)"
NO_TOKEN = "Failed to acquire SASL OAUTHBEARER token: "


def told(*errors: tuple[int, str]) -> ClientErrors:
    complaints = ClientErrors("PLAIN", None)
    for code, text in errors:
        complaints(KafkaError(code, text))
    return complaints


def test_a_refused_login_is_a_refusal() -> None:
    """A rejected login is final, whatever else is reported with it."""
    complaints = told(
        (KafkaError._TRANSPORT, AWAY),
        (KafkaError._AUTHENTICATION, LOGIN.format("bootstrap")),
        (KafkaError._ALL_BROKERS_DOWN, "1/1 brokers are down"),
    )
    assert "check kafka.sasl_mechanism, sasl_username and sasl_password" in (complaints.refusal(needed=False) or "")


@pytest.mark.parametrize(
    ("reason", "refused"),
    [
        ("handshake failed: Local: Broker transport failure: broker's supported mechanisms: (n/a)", False),
        ("handshake failed: Broker: Request not valid in current SASL state: broker's supported mechanisms: ", False),
        ("handshake failed: Broker: Unsupported SASL mechanism: broker's supported mechanisms: PLAIN", True),
    ],
)
def test_a_login_that_is_interrupted_is_no_refusal(reason: str, refused: bool) -> None:
    """The client connects again when the connection ended during a login, or a second login came too soon."""
    text = f"sasl_ssl://b:1/1: SASL PLAIN mechanism {reason} (after 2ms in state AUTH_HANDSHAKE)"
    complaints = told((KafkaError._AUTHENTICATION, text))
    assert refused == (complaints.refusal(needed=False) is not None)
    assert refused == (complaints.last is None)


def test_a_listener_without_sasl() -> None:
    """It cannot be distinguished from a login that came too soon, so the client connects again, with advice."""
    reason = "Broker: Request not valid in current SASL state: broker's supported mechanisms: "
    text = f"sasl_plaintext://b:1/bootstrap: SASL PLAIN mechanism handshake failed: {reason}"
    complaints = told((KafkaError._AUTHENTICATION, f"{text} (after 0ms in state AUTH_HANDSHAKE)"))
    advice = "if the listener does not use SASL, correct kafka.security_protocol"
    assert f"{text.removesuffix(': ')}; {advice}" == complaints.last


def test_a_bootstrap_address_may_refuse() -> None:
    """Once others have answered, a bootstrap address can reject us, because only cluster brokers are needed."""
    assert told((KafkaError._AUTHENTICATION, LOGIN.format("bootstrap"))).refusal(needed=True) is None
    assert told((KafkaError._AUTHENTICATION, LOGIN.format("7"))).refusal(needed=True) is not None


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        (NO_TOKEN + '{"error": "invalid_client"}', True),
        (NO_TOKEN + '{"error": "invalid_scope", "error_description": "x"}', True),
        (NO_TOKEN + "SSL certificate OpenSSL verify result: certificate has expired (10)", True),
        (NO_TOKEN + '{"error": "temporarily_unavailable"}', False),
        (NO_TOKEN + "Failed to connect to 10.0.0.1:443 after 0 ms: Could not connect to server", False),
        (NO_TOKEN + "<html>Bad Gateway</html>", False),
    ],
)
def test_tokens(text: str, refused: bool) -> None:
    """An unreachable token endpoint is retried. A rejection is final."""
    complaints = told((KafkaError._AUTHENTICATION, text))
    assert refused == (complaints.refusal(needed=False) is not None)
    assert refused == (complaints.last is None)


@pytest.mark.parametrize(("alert", "refused"), [(42, True), (46, True), (116, True), (80, False), (90, False)])
def test_alerts(alert: int, refused: bool) -> None:
    """A broker with internal trouble does not count as a rejection."""
    text = f"ssl://b:1/bootstrap: Receive failed: error:0A000412:SSL routines::ssl/tls alert: SSL alert number {alert}"
    assert refused == (told((KafkaError._TRANSPORT, text)).refusal(needed=False) is not None)


def test_the_reason_stands_before_the_count() -> None:
    """The reason of an outage is reported, not the number of brokers. Without one, it is likely the protocol."""
    down = (KafkaError._ALL_BROKERS_DOWN, "1/1 brokers are down")
    assert AWAY.partition(" (after")[0] == told(down, (KafkaError._TRANSPORT, AWAY), down).last
    assert "kafka.security_protocol" in (told(down).last or "")
    assert told().last is None


def test_the_count_of_a_repeated_error_is_left_out() -> None:
    """The count has parentheses of its own."""
    refused = "b:1/bootstrap: Connect to ipv4#127.0.0.1:1 failed: Connection refused"
    for tail in ("after 0ms in state CONNECT", "after 0ms in state CONNECT, 1 identical error(s) suppressed"):
        assert refused == told((KafkaError._TRANSPORT, f"{refused} ({tail})")).last


@contextmanager
def listening(*, closes: bool) -> Iterator[str]:
    """Yield the address of a server that closes each connection, or accepts it and never answers."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()

        def close_each() -> None:
            while True:
                try:
                    server.accept()[0].close()
                except OSError:
                    return

        thread = threading.Thread(target=close_each, daemon=True)
        if closes:
            thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)
        if closes:
            thread.join()


@pytest.mark.parametrize("closes", [False, True])
def test_a_broker_that_hangs_is_no_security_problem(closes: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """librdkafka reports the same for a broker that does not respond and for one that closes connections."""
    if not closes:
        monkeypatch.setattr(client_errors, "_SECONDS", 0.2)
    with listening(closes=closes) as address:
        complaints = ClientErrors(None, None, f"127.0.0.1:1,{address}")
        complaints(KafkaError(KafkaError._ALL_BROKERS_DOWN, "1/1 brokers are down"))
        said = complaints.last or ""
    assert closes == ("kafka.security_protocol" in said)
    assert closes != (said == f"broker {address} accepts connections but does not respond")
