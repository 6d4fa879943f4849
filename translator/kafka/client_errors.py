"""Find out why no broker can be reached, from the errors that librdkafka reports for all clients of a process.

For a client, a rejection by the brokers looks like an outage, because no response arrives either way. Only the reported
errors reveal the difference. If waiting cannot fix an error, it is a rejection. Any other error is only logged.
"""

from __future__ import annotations

import re
import socket
import ssl
from collections.abc import Mapping, Sequence

from confluent_kafka import KafkaError

from cdc_core.kafka_tokens import Tokens
from translator.errors import quote

_UNFETCHED = "Failed to acquire SASL OAUTHBEARER token"
_UNTRUSTED = "certificate verify failed"

# Texts from librdkafka that mean a rejection, each with what to check.
_REFUSALS: Sequence[tuple[re.Pattern[str], str]] = (
    (
        re.compile(rf"{_UNFETCHED}: .*certificate"),
        "the server at kafka.oauth_token_url is not trusted: check oauth_ca_file",
    ),
    # The errors in RFC 6749, section 5.2. All other errors can be temporary.
    (
        re.compile(
            rf"{_UNFETCHED}: .*(invalid_request|invalid_client|invalid_grant|unauthorized_client"
            r"|unsupported_grant_type|invalid_scope)"
        ),
        "check kafka.oauth_client_id, oauth_client_secret and oauth_scope",
    ),
    (re.compile(_UNTRUSTED), "the broker is not trusted: check kafka.ssl_ca_file, and the broker's certificate"),
    # TLS alerts sent by the broker, except internal errors (80) and user cancellation (90).
    (
        re.compile(r"SSL alert number (?!80\b|90\b)\d+"),
        "the broker rejects this client: check kafka.ssl_certificate_file (is it set, known to the broker and "
        "still valid?)",
    ),
)
_LOGIN: Mapping[str, str] = {
    "OAUTHBEARER": "the broker does not accept the tokens from kafka.oauth_token_url for kafka.oauth_client_id",
}
_PROVIDER_LOGIN = "the broker does not accept the tokens from kafka.oauth_provider: check oauth_provider_options"
_ANY_LOGIN = "check kafka.sasl_mechanism, sasl_username and sasl_password"

# A login that failed for a temporary reason: the connection ended during the login, or the broker received a second
# login within a second of the first one, which it never accepts. The client connects again.
_UNEXPECTED = "Broker: Request not valid in current SASL state"
_TEMPORARY = re.compile(f"failed: (Local: |{_UNEXPECTED})")
# A listener without SASL gives the same answer to each login.
_NO_SASL = "if the listener does not use SASL, correct kafka.security_protocol"

# The suffix that librdkafka adds to an error text. The suffix can contain parentheses: `1 identical error(s)
# suppressed`.
_TAIL = re.compile(r" \((after \d+ms in state |install ca-certificates).*\)$", re.DOTALL)
_ADDRESS = re.compile(r"://(?P<host>[^/]+):(?P<port>\d+)/")
# The name that librdkafka gives a broker whose address is known, but not its ID in the cluster.
_BOOTSTRAP = "/bootstrap: "
_SECONDS = 5.0

_API_VERSIONS = bytes.fromhex("0000000a 0012 0000 00000001 ffff")
"""Kafka's first request (ApiVersions, version 0, no client id), with its length."""


class ClientErrors:
    """The `error_cb` for librdkafka clients.

    Args:
        context: the clients' TLS context.
        servers: the bootstrap addresses, separated by commas.
        tokens: the clients' tokens, if a token provider returns them.
    """

    def __init__(
        self, mechanism: str | None, context: ssl.SSLContext | None, servers: str = "", tokens: Tokens | None = None
    ) -> None:
        self._mechanism = mechanism
        self._tokens = tokens
        self._context = context
        self._refusals: dict[bool, tuple[str, str]] = {}  # key: whether only a bootstrap address rejected the client
        self._servers = [server.strip() for server in servers.split(",") if server.strip()]
        self._last: str | None = None  # an error other than a rejection
        self._all_down = False

    def __call__(self, error: KafkaError) -> None:
        text = _TAIL.sub("", str(error.str()))
        advice = self._advice(error.code(), text)
        if advice is not None:
            self._refusals[_BOOTSTRAP in text] = text, advice
        elif error.code() != KafkaError._ALL_BROKERS_DOWN:
            # librdkafka drops the text of a Python exception.
            failure = self._tokens.failure if self._tokens is not None and text.startswith(_UNFETCHED) else None
            self._last = failure or (f"{text.rstrip(': ')}; {_NO_SASL}" if _UNEXPECTED in text else text)
        else:
            self._all_down = True

    @property
    def last(self) -> str | None:
        """Return the last error other than a rejection. If librdkafka gives no reason, the bootstrap addresses are
        probed.
        """
        if self._last is None and self._all_down:
            if hanging := next(filter(_hangs, self._servers), None):
                return f"broker {hanging} accepts connections but does not respond"
            return "connections are closed without a reason: check kafka.security_protocol"
        return self._last

    def _advice(self, code: int, text: str) -> str | None:
        for pattern, advice in _REFUSALS:
            if pattern.search(text):
                return advice
        if code == KafkaError._AUTHENTICATION and not (text.startswith(_UNFETCHED) or _TEMPORARY.search(text)):
            if self._tokens is not None:
                return _PROVIDER_LOGIN
            return _LOGIN.get(self._mechanism or "", _ANY_LOGIN)
        return None

    def refusal(self, *, needed: bool) -> str | None:
        """Return the rejection and what to check, or None if nothing was rejected.

        Args:
            needed: whether to count only brokers in the cluster. If one bootstrap address rejects the client, this does
                not matter as long as others respond.
        """
        found = self._refusals.get(False) or (None if needed else self._refusals.get(True))
        if found is None:
            return None
        text, advice = found
        if _UNTRUSTED in text and (address := _ADDRESS.search(text)):
            host, port = address["host"], address["port"]
            text = f"broker {host}:{port}: {self._distrust(host.strip('[]'), int(port)) or _UNTRUSTED}"
        return f"{quote(text, 300)[1:-1]}; {advice}"

    def _distrust(self, host: str, port: int) -> str | None:
        """Return Python's reason for distrusting a broker's certificate, because librdkafka reports none."""
        if self._context is None:
            return None
        try:
            with (
                socket.create_connection((host, port), _SECONDS) as plain,
                self._context.wrap_socket(plain, server_hostname=host),
            ):
                return None
        except ssl.SSLCertVerificationError as error:
            return str(error.verify_message)
        except OSError:
            return None


def _hangs(server: str) -> bool:
    """Return whether a server accepts a connection but then neither responds nor closes it. A broker that expects
    another protocol would either respond or close it.
    """
    host, _, port = server.rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), _SECONDS) as plain:
            plain.sendall(_API_VERSIONS)
            plain.recv(1)
    except TimeoutError:
        return True
    except (OSError, ValueError):
        pass
    return False
